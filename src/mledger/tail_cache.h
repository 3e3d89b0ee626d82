// tail_cache.h - one cache of recent entries for all readers of all logs; it counts slabs, not slices.
#ifndef MLEDGER_TAIL_CACHE_H
#define MLEDGER_TAIL_CACHE_H

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "base/pos.h"

// Entries of all logs, the oldest dropped first when bytes_max is passed. Zero it, then init.
struct ox_tail_cache {
    uint64_t bytes_max;       // public
    uint64_t bytes;           // read-only: slab bytes pinned
    uint64_t hits, misses;    // read-only
    struct ox_list lru;       // private
    struct ox_map entries;    // private
    struct ox_map slabs;      // private: how many cached entries pin each slab
};
void ox_tail_cache_init(struct ox_tail_cache *c, uint64_t bytes_max);
// Drops everything.
void ox_tail_cache_fini(struct ox_tail_cache *c);
// Adds an entry (a reference is taken; an entry that would pin a slab of which it uses less than a quarter is copied when the slab is otherwise unused).
void ox_tail_cache_put(struct ox_tail_cache *c, struct ox_pos pos, struct ox_buf entry);
// The entry with a reference of the caller's, or an empty slice and false.
bool ox_tail_cache_get(struct ox_tail_cache *c, struct ox_pos pos, struct ox_buf *ret_entry);
// Drops all entries of a ledger.
void ox_tail_cache_drop_ledger(struct ox_tail_cache *c, int64_t ledger);

#endif
