// cache.c - the bounded cache of index blocks.
#include "ledger/store/cache.h"

#include <string.h>

#include "base/mem.h"

struct cache_block {
    struct ox_map_node node;
    struct ox_link link;
    struct {
        uint64_t segment, block;
    } key;
    uint8_t data[OX_SEG_BLOCK];
};

void ox_index_cache_init(struct ox_index_cache *c, uint64_t bytes_max)
{
    *c = (struct ox_index_cache){.bytes_max = bytes_max};
    ox_list_init(&c->lru);
}

static void cache_drop(struct ox_index_cache *c, struct cache_block *b)
{
    ox_map_remove(&c->blocks, &b->node);
    ox_list_remove(&c->lru, &b->link);
    c->bytes -= sizeof *b;
    ox_free(b);
}

void ox_index_cache_fini(struct ox_index_cache *c)
{
    while (!ox_list_empty(&c->lru))
        cache_drop(c, CONTAINER_OF(ox_list_first(&c->lru), struct cache_block, link));
}

static struct cache_block *cache_lookup(struct ox_index_cache *c, uint64_t segment, uint32_t block)
{
    uint64_t key[2] = {segment, block};
    struct ox_map_node *node = ox_map_find(&c->blocks, key, sizeof key);
    return node ? CONTAINER_OF(node, struct cache_block, node) : NULL;
}

const uint8_t *ox_index_cache_find(struct ox_index_cache *c, uint64_t segment, uint32_t block)
{
    struct cache_block *b = cache_lookup(c, segment, block);
    if (!b)
        return NULL;
    ox_list_remove(&c->lru, &b->link);
    ox_list_push_back(&c->lru, &b->link);
    return b->data;
}

void ox_index_cache_put(struct ox_index_cache *c, uint64_t segment, uint32_t block, const uint8_t *data)
{
    if (cache_lookup(c, segment, block))
        return;
    struct cache_block *b = ox_malloc(sizeof *b);
    b->key.segment = segment;
    b->key.block = block;
    memcpy(b->data, data, OX_SEG_BLOCK);
    ox_map_put(&c->blocks, &b->node, &b->key, sizeof b->key);
    ox_list_push_back(&c->lru, &b->link);
    c->bytes += sizeof *b;
    while (c->bytes > c->bytes_max && c->lru.count > 1)
        cache_drop(c, CONTAINER_OF(ox_list_first(&c->lru), struct cache_block, link));
}
