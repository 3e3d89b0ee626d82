// tail_cache.c - recent entries of all logs in a ring in order of arrival, bounded by the slabs that they keep alive; a ledger's entries are found by counting.
#include "mledger/tail_cache.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

#define RING_SIZE_MIN 64u

// A ledger with cached entries first..first+count-1: the slots of its entries, in a ring of its own.
struct cache_ledger {
    struct ox_map_node node;
    int64_t id;
    int64_t first;
    uint64_t *slots; // numbers of slots, size a power of two
    size_t begin, count, size;
};

// A cached entry; ledger NULL: dropped before its time.
struct cache_slot {
    struct cache_ledger *ledger;
    struct ox_buf data;
};

void ox_tail_cache_init(struct ox_tail_cache *c, uint64_t bytes_max)
{
    *c = (struct ox_tail_cache){.bytes_max = bytes_max};
}

// ---- ledgers ---------------------------------------------------------------------------------------------------------

static struct cache_ledger *ledger_find(const struct ox_tail_cache *c, int64_t id)
{
    if (c->newest && c->newest->id == id)
        return c->newest;
    struct ox_map_node *node = ox_map_find_u64(&c->ledgers, (uint64_t)id);
    return node ? CONTAINER_OF(node, struct cache_ledger, node) : NULL;
}

static struct cache_ledger *ledger_new(struct ox_tail_cache *c, struct ox_pos pos)
{
    struct cache_ledger *l = ox_malloc(sizeof *l);
    l->id = pos.ledger;
    l->first = pos.entry;
    l->size = 8;
    l->slots = ox_calloc(l->size, sizeof *l->slots);
    ox_map_put_u64(&c->ledgers, &l->node, (uint64_t)l->id);
    return l;
}

static void ledger_free(struct ox_tail_cache *c, struct cache_ledger *l)
{
    if (c->newest == l)
        c->newest = NULL;
    ox_map_remove(&c->ledgers, &l->node);
    ox_free(l->slots);
    ox_free(l);
}

static uint64_t ledger_slot(const struct cache_ledger *l, size_t i)
{
    return l->slots[(l->begin + i) & (l->size - 1)];
}

static void ledger_add(struct cache_ledger *l, uint64_t slot)
{
    if (l->count == l->size) {
        uint64_t *grown = ox_calloc(l->size * 2, sizeof *grown);
        for (size_t i = 0; i < l->count; i++)
            grown[i] = ledger_slot(l, i);
        ox_free(l->slots);
        l->slots = grown;
        l->begin = 0;
        l->size *= 2;
    }
    l->slots[(l->begin + l->count++) & (l->size - 1)] = slot;
}

// Its oldest entry goes; the last one takes the ledger with it.
static void ledger_shift(struct ox_tail_cache *c, struct cache_ledger *l)
{
    OX_ASSERT(l->count > 0);
    l->begin = (l->begin + 1) & (l->size - 1);
    l->first++;
    if (--l->count == 0)
        ledger_free(c, l);
}

// ---- slots -----------------------------------------------------------------------------------------------------------

static struct cache_slot *slot_at(const struct ox_tail_cache *c, uint64_t number)
{
    return &c->ring[number & (c->ring_size - 1)];
}

static void slot_release(struct ox_tail_cache *c, struct cache_slot *slot)
{
    struct ox_slab *slab = slot->data.slab;
    slot->ledger = NULL;
    c->dropped++;
    c->bytes -= sizeof *slot;
    if (slab && --slab->cached == 0)
        c->bytes -= slab->size + sizeof *slab;
    ox_buf_unref(&slot->data);
}

static void cache_drop_oldest(struct ox_tail_cache *c)
{
    struct cache_slot *slot = slot_at(c, c->head++);
    if (!slot->ledger)
        return;
    ledger_shift(c, slot->ledger);
    slot_release(c, slot);
}

static void cache_fit(struct ox_tail_cache *c)
{
    while (c->bytes > c->bytes_max && c->head < c->tail)
        cache_drop_oldest(c);
}

static void cache_grow(struct ox_tail_cache *c)
{
    struct ox_tail_cache old = *c;
    c->ring_size = old.ring_size ? old.ring_size * 2 : RING_SIZE_MIN;
    c->ring = ox_calloc(c->ring_size, sizeof *c->ring);
    for (uint64_t i = c->head; i < c->tail; i++)
        *slot_at(c, i) = *slot_at(&old, i);
    ox_free(old.ring);
}

void ox_tail_cache_fini(struct ox_tail_cache *c)
{
    while (c->head < c->tail)
        cache_drop_oldest(c);
    if (c->packing)
        ox_slab_unref(c->packing);
    c->packing = NULL;
    ox_free(c->ring);
    c->ring = NULL;
    c->ring_size = 0;
}

// ---- bytes -----------------------------------------------------------------------------------------------------------

static size_t parts_bytes(const struct ox_buf *parts, size_t n)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        len += parts[i].len;
    return len;
}

// A copy in the slab that takes small entries one after another.
static struct ox_buf cache_pack(struct ox_tail_cache *c, const struct ox_buf *parts, size_t n, size_t len)
{
    if (!c->packing || c->packing->size - c->packing->used < len) {
        if (c->packing)
            ox_slab_unref(c->packing);
        c->packing = ox_slab_new(OX_SLAB_BYTES);
    }
    struct ox_slab *slab = c->packing;
    uint8_t *to = slab->data + slab->used;
    for (size_t i = 0, at = 0; i < n; at += parts[i++].len)
        memcpy(to + at, parts[i].data, parts[i].len);
    slab->used += (uint32_t)len;
    return (struct ox_buf){ox_slab_ref(slab), to, len};
}

static struct ox_buf cache_take(struct ox_tail_cache *c, const struct ox_buf *parts, size_t n, size_t len)
{
    if (len < OX_SLAB_BYTES / 4)
        return cache_pack(c, parts, n, len);
    return ox_buf_compact(ox_buf_join(parts, n));
}

// ---- the cache -------------------------------------------------------------------------------------------------------

// The ledger that an entry is to be added to; NULL: it comes out of order.
static struct cache_ledger *cache_ledger_for(struct ox_tail_cache *c, struct ox_pos pos)
{
    struct cache_ledger *l = ledger_find(c, pos.ledger);
    if (l && pos.entry < l->first + (int64_t)l->count)
        return NULL;
    if (l && pos.entry > l->first + (int64_t)l->count) {
        ox_tail_cache_drop_ledger(c, pos.ledger); // a gap: the older ones can't be counted on from here
        l = NULL;
    }
    c->newest = l ? l : ledger_new(c, pos);
    return c->newest;
}

void ox_tail_cache_put(struct ox_tail_cache *c, struct ox_pos pos, const struct ox_buf *parts, size_t n)
{
    size_t len = parts_bytes(parts, n);
    struct cache_ledger *l = len <= c->bytes_max ? cache_ledger_for(c, pos) : NULL;
    if (!l)
        return;
    if (c->tail - c->head == c->ring_size)
        cache_grow(c);
    struct cache_slot *slot = slot_at(c, c->tail);
    *slot = (struct cache_slot){l, cache_take(c, parts, n, len)};
    ledger_add(l, c->tail++);
    c->inserted++;
    c->bytes += sizeof *slot;
    if (slot->data.slab && slot->data.slab->cached++ == 0)
        c->bytes += slot->data.slab->size + sizeof *slot->data.slab;
    cache_fit(c);
}

void ox_tail_cache_limit(struct ox_tail_cache *c, uint64_t bytes_max)
{
    c->bytes_max = bytes_max;
    cache_fit(c);
}

bool ox_tail_cache_get(struct ox_tail_cache *c, struct ox_pos pos, struct ox_buf *ret_entry)
{
    struct cache_ledger *l = ledger_find(c, pos.ledger);
    if (!l || pos.entry < l->first || pos.entry >= l->first + (int64_t)l->count) {
        c->misses++;
        *ret_entry = ox_buf_empty();
        return false;
    }
    c->hits++;
    *ret_entry = ox_buf_ref(slot_at(c, ledger_slot(l, (size_t)(pos.entry - l->first)))->data);
    c->hit_bytes += ret_entry->len;
    return true;
}

void ox_tail_cache_drop_ledger(struct ox_tail_cache *c, int64_t ledger)
{
    struct cache_ledger *l = ledger_find(c, ledger);
    if (!l)
        return;
    for (size_t i = 0; i < l->count; i++)
        slot_release(c, slot_at(c, ledger_slot(l, i)));
    ledger_free(c, l);
}
