// compaction_keys.c - the last message of each key.
#include "broker/compaction_keys.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

struct key_node {
    struct ox_map_node node;
    struct ox_pos pos;
    int32_t index;
    size_t uuid_len;
    char *uuid; // of a chunked message, or NULL
    char key[];
};
#define KEY_OF(n) CONTAINER_OF(n, struct key_node, node)
#define KEY_OVERHEAD 64u // of the allocator and the map's buckets, about

static size_t key_bytes(const struct key_node *k)
{
    return sizeof *k + KEY_OVERHEAD + k->node.key_len + k->uuid_len;
}

static void key_drop(struct compaction_keys *k, struct ox_map *map, struct key_node *n)
{
    k->bytes -= key_bytes(n);
    ox_map_remove(map, &n->node);
    ox_free(n->uuid);
    ox_free(n);
}

static void map_clear(struct compaction_keys *k, struct ox_map *map)
{
    OX_MAP_EACH(map, n)
        key_drop(k, map, KEY_OF(n));
}

void compaction_keys_fini(struct compaction_keys *k)
{
    map_clear(k, &k->map);
    map_clear(k, &k->open);
}

static struct key_node *key_find(const struct ox_map *map, struct ox_span key)
{
    struct ox_map_node *n = ox_map_find(map, key.data, key.len);
    return n ? KEY_OF(n) : NULL;
}

static void key_forget(struct compaction_keys *k, struct ox_map *map, struct ox_span key)
{
    struct key_node *n = key_find(map, key);
    if (n)
        key_drop(k, map, n);
}

static void key_put(struct compaction_keys *k, struct ox_map *map, struct ox_span key, struct ox_span uuid,
                    struct ox_pos pos, int32_t index)
{
    struct key_node *n = key_find(map, key);
    if (n && (n->uuid || uuid.data)) {
        key_drop(k, map, n);
        n = NULL;
    }
    if (!n) {
        n = ox_malloc(sizeof *n + key.len + 1);
        memcpy(n->key, key.data, key.len);
        ox_map_put(map, &n->node, n->key, key.len);
        if (uuid.data) {
            n->uuid = ox_malloc(uuid.len + 1);
            memcpy(n->uuid, uuid.data, uuid.len);
            n->uuid_len = uuid.len;
        }
        k->bytes += key_bytes(n);
    }
    n->pos = pos;
    n->index = index;
}

bool compaction_keys_has_room(const struct compaction_keys *k, const struct compaction_entry *e)
{
    struct compaction_message m;
    size_t need = 0;
    for (size_t at = 0; compaction_entry_next(e, &at, &m);)
        if (m.uuid.data || (m.key.data && !m.tombstone && !key_find(&k->map, m.key)))
            need += sizeof(struct key_node) + KEY_OVERHEAD + m.key.len + 2 * m.uuid.len;
    return k->bytes + need <= k->bytes_max;
}

void compaction_keys_note(struct compaction_keys *k, const struct compaction_entry *e, struct ox_pos pos)
{
    struct compaction_message m;
    for (size_t at = 0; compaction_entry_next(e, &at, &m);) {
        bool whole = !m.uuid.data || m.is_last_chunk;
        if (m.uuid.data && !whole)
            key_put(k, &k->open, m.uuid, (struct ox_span){0}, pos, -1);
        else if (m.uuid.data)
            key_forget(k, &k->open, m.uuid);
        if (m.gone || !m.key.data || !whole)
            continue;
        if (m.tombstone)
            key_forget(k, &k->map, m.key);
        else
            key_put(k, &k->map, m.key, m.uuid, pos, m.index);
    }
}

bool compaction_keys_has(const struct compaction_keys *k, const struct compaction_message *m, struct ox_pos pos, bool keyless)
{
    if (m->gone)
        return false;
    if (m->uuid.data && key_find(&k->open, m->uuid))
        return true;
    if (!m->key.data)
        return keyless;
    const struct key_node *n = key_find(&k->map, m->key);
    if (!n)
        return false;
    if (m->uuid.data)
        return n->uuid && n->uuid_len == m->uuid.len && memcmp(n->uuid, m->uuid.data, m->uuid.len) == 0;
    return ox_pos_equal(n->pos, pos) && n->index == m->index;
}
