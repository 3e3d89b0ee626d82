// cache.h - blocks of sealed segments' indexes, least recently used first out.
#ifndef LEDGER_STORE_CACHE_H
#define LEDGER_STORE_CACHE_H

#include "base/list.h"
#include "base/map.h"
#include "ledger/store/format.h"

struct ox_index_cache {
    struct ox_map blocks; // private: by segment number and block index
    struct ox_list lru;   // private: least recently used first
    uint64_t bytes, bytes_max;
};

// Makes an empty cache of at most bytes_max bytes (at least one block stays).
void ox_index_cache_init(struct ox_index_cache *c, uint64_t bytes_max);
// Frees all blocks.
void ox_index_cache_fini(struct ox_index_cache *c);
// The block (4096 bytes, borrowed until the next put), or NULL.
const uint8_t *ox_index_cache_find(struct ox_index_cache *c, uint64_t segment, uint32_t block);
// Keeps a copy of a checked block, and gives up old ones above the limit.
void ox_index_cache_put(struct ox_index_cache *c, uint64_t segment, uint32_t block, const uint8_t *data);

#endif
