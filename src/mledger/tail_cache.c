// tail_cache.c - recent entries of all logs in order of arrival, bounded by the slabs that they keep alive.
#include "mledger/tail_cache.h"

#include "base/mem.h"

// A cached entry; its position is its key.
struct cache_entry {
    struct ox_map_node node;
    struct ox_link link;
    struct ox_pos pos;
    struct ox_buf data;
    struct cache_slab *slab; // NULL: bytes that nobody counts
};

// A slab that cached entries keep alive; its address is its key.
struct cache_slab {
    struct ox_map_node node;
    struct ox_slab *slab;
    uint32_t entries;
};

void ox_tail_cache_init(struct ox_tail_cache *c, uint64_t bytes_max)
{
    *c = (struct ox_tail_cache){.bytes_max = bytes_max};
    ox_list_init(&c->lru);
}

static struct cache_slab *cache_slab_find(const struct ox_tail_cache *c, const struct ox_slab *slab)
{
    struct ox_map_node *node = ox_map_find(&c->slabs, &slab, sizeof slab);
    return node ? CONTAINER_OF(node, struct cache_slab, node) : NULL;
}

static uint64_t cache_slab_cost(const struct ox_slab *slab)
{
    return slab->size + sizeof *slab + sizeof(struct cache_slab);
}

static struct cache_slab *cache_slab_pin(struct ox_tail_cache *c, struct ox_slab *slab)
{
    struct cache_slab *pinned = cache_slab_find(c, slab);
    if (!pinned) {
        pinned = ox_malloc(sizeof *pinned);
        pinned->slab = slab;
        ox_map_put(&c->slabs, &pinned->node, &pinned->slab, sizeof(struct ox_slab *));
        c->bytes += cache_slab_cost(slab);
    }
    pinned->entries++;
    return pinned;
}

static void cache_slab_unpin(struct ox_tail_cache *c, struct cache_slab *pinned)
{
    if (!pinned || --pinned->entries > 0)
        return;
    c->bytes -= cache_slab_cost(pinned->slab);
    ox_map_remove(&c->slabs, &pinned->node);
    ox_free(pinned);
}

static void cache_drop(struct ox_tail_cache *c, struct cache_entry *e)
{
    ox_map_remove(&c->entries, &e->node);
    ox_list_remove(&c->lru, &e->link);
    c->bytes -= sizeof *e;
    cache_slab_unpin(c, e->slab);
    ox_buf_unref(&e->data);
    ox_free(e);
}

static struct cache_entry *cache_oldest(struct ox_tail_cache *c)
{
    struct ox_link *link = ox_list_first(&c->lru);
    return link ? CONTAINER_OF(link, struct cache_entry, link) : NULL;
}

void ox_tail_cache_fini(struct ox_tail_cache *c)
{
    for (struct cache_entry *e; (e = cache_oldest(c));)
        cache_drop(c, e);
}

static struct cache_entry *cache_find(const struct ox_tail_cache *c, struct ox_pos pos)
{
    struct ox_map_node *node = ox_map_find(&c->entries, &pos, sizeof pos);
    return node ? CONTAINER_OF(node, struct cache_entry, node) : NULL;
}

// A reference to keep: of the slice itself, or of a copy where it would be alone in keeping a slab that it hardly uses.
static struct ox_buf cache_take(const struct ox_tail_cache *c, struct ox_buf entry)
{
    if (!entry.slab || cache_slab_find(c, entry.slab))
        return ox_buf_ref(entry);
    return ox_buf_compact(ox_buf_ref(entry));
}

void ox_tail_cache_put(struct ox_tail_cache *c, struct ox_pos pos, struct ox_buf entry)
{
    if (entry.len > c->bytes_max || cache_find(c, pos))
        return;
    struct cache_entry *e = ox_malloc(sizeof *e);
    e->pos = pos;
    e->data = cache_take(c, entry);
    e->slab = e->data.slab ? cache_slab_pin(c, e->data.slab) : NULL;
    c->bytes += sizeof *e;
    ox_map_put(&c->entries, &e->node, &e->pos, sizeof e->pos);
    ox_list_push_back(&c->lru, &e->link);
    while (c->bytes > c->bytes_max && (e = cache_oldest(c)))
        cache_drop(c, e);
}

bool ox_tail_cache_get(struct ox_tail_cache *c, struct ox_pos pos, struct ox_buf *ret_entry)
{
    struct cache_entry *e = cache_find(c, pos);
    if (!e) {
        c->misses++;
        *ret_entry = ox_buf_empty();
        return false;
    }
    c->hits++;
    *ret_entry = ox_buf_ref(e->data);
    return true;
}

void ox_tail_cache_drop_ledger(struct ox_tail_cache *c, int64_t ledger)
{
    OX_LIST_EACH(&c->lru, link) {
        struct cache_entry *e = CONTAINER_OF(link, struct cache_entry, link);
        if (e->pos.ledger == ledger)
            cache_drop(c, e);
    }
}
