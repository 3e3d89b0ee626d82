// map.c - hash maps over embedded nodes; the only user of uthash's macros.
#include "base/mem.h"

// Integers are mixed by two multiplications, other keys by uthash's own function.
#define HASH_FUNCTION(key, len, value) \
    do {                               \
        if ((len) == sizeof(uint64_t)) \
            (value) = map_mix(key);    \
        else                           \
            HASH_JEN(key, len, value); \
    } while (0)
#define HASH_KEYCMP(a, b, len) map_differ(a, b, len)
#define uthash_malloc(n) ox_malloc_raw(n)
#define uthash_free(p, n) ox_free(p)
#include "base/map.h"

#include <string.h>

#include "base/assert.h"

// Most maps hold a few nodes, and there is one for each topic.
#undef HASH_INITIAL_NUM_BUCKETS
#undef HASH_INITIAL_NUM_BUCKETS_LOG2
#define HASH_INITIAL_NUM_BUCKETS 4U
#define HASH_INITIAL_NUM_BUCKETS_LOG2 2U

static inline int map_differ(const void *a, const void *b, size_t len)
{
    uint64_t x, y;
    if (len != sizeof x)
        return memcmp(a, b, len);
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x != y;
}

static inline unsigned map_mix(const void *key)
{
    uint64_t x;
    memcpy(&x, key, sizeof x);
    x *= UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return (unsigned)(x >> 32);
}

void ox_map_put(struct ox_map *map, struct ox_map_node *node, const void *key, size_t key_len)
{
    OX_ASSERT(ox_map_find(map, key, key_len) == NULL);
    node->key = key;
    node->key_len = key_len;
    HASH_ADD_KEYPTR(hh, map->head, key, (unsigned)key_len, node);
}

void ox_map_put_str(struct ox_map *map, struct ox_map_node *node, const char *key)
{
    ox_map_put(map, node, key, strlen(key));
}

void ox_map_put_u64(struct ox_map *map, struct ox_map_node *node, uint64_t key)
{
    node->number = key;
    ox_map_put(map, node, &node->number, sizeof node->number);
}

struct ox_map_node *ox_map_find(const struct ox_map *map, const void *key, size_t key_len)
{
    struct ox_map_node *node = NULL;
    HASH_FIND(hh, map->head, key, (unsigned)key_len, node);
    return node;
}

struct ox_map_node *ox_map_find_str(const struct ox_map *map, const char *key)
{
    return ox_map_find(map, key, strlen(key));
}

struct ox_map_node *ox_map_find_u64(const struct ox_map *map, uint64_t key)
{
    struct ox_map_node *node = NULL;
    HASH_FIND(hh, map->head, &key, (unsigned)sizeof key, node);
    return node;
}

void ox_map_remove(struct ox_map *map, struct ox_map_node *node)
{
    HASH_DELETE(hh, map->head, node);
    node->key = NULL;
    node->key_len = 0;
}

size_t ox_map_count(const struct ox_map *map)
{
    return HASH_CNT(hh, map->head);
}

struct ox_map_node *ox_map_first(const struct ox_map *map)
{
    return map->head;
}

struct ox_map_node *ox_map_next(const struct ox_map_node *node)
{
    return (struct ox_map_node *)node->hh.next;
}
