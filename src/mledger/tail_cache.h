// tail_cache.h - one cache of recent entries for all readers of all logs; it counts slabs, not slices.
#ifndef MLEDGER_TAIL_CACHE_H
#define MLEDGER_TAIL_CACHE_H

#include "base/buf.h"
#include "base/map.h"
#include "base/pos.h"

struct cache_slot;

// Entries of all logs in order of arrival, the oldest dropped first when bytes_max is passed. Zero it, then init. A slab's `cached` belongs to the cache
// that holds its slices: one cache a process.
struct ox_tail_cache {
    uint64_t bytes_max;      // public
    uint64_t bytes;          // read-only: slab bytes kept alive, and bookkeeping
    uint64_t hits, misses;   // read-only: entries that were there, looks that found none
    uint64_t hit_bytes;      // read-only
    uint64_t inserted;       // read-only: entries that came
    uint64_t dropped;        // read-only: those of them that are gone
    struct cache_slot *ring; // private: slots head..tail-1, modulo ring_size (a power of two)
    uint64_t head, tail, ring_size;
    struct ox_map ledgers;       // private: which slots a ledger's entries are in
    struct cache_ledger *newest; // private: the ledger of the last put
    struct ox_slab *packing;     // private: where small entries are copied to
};
void ox_tail_cache_init(struct ox_tail_cache *c, uint64_t bytes_max);
// Changes how much it may hold; what is too much goes at once, the oldest first.
void ox_tail_cache_limit(struct ox_tail_cache *c, uint64_t bytes_max);
// Drops everything.
void ox_tail_cache_fini(struct ox_tail_cache *c);
// Adds an entry, given in n parts; entries of a ledger come in order. One that uses a quarter of its slab or more is kept by reference, a smaller one is copied
// together with its neighbours. One that comes out of order, or is larger than the cache, is not kept.
void ox_tail_cache_put(struct ox_tail_cache *c, struct ox_pos pos, const struct ox_buf *parts, size_t n);
// The entry with a reference of the caller's, or an empty slice and false.
bool ox_tail_cache_get(struct ox_tail_cache *c, struct ox_pos pos, struct ox_buf *ret_entry);
// Drops all entries of a ledger.
void ox_tail_cache_drop_ledger(struct ox_tail_cache *c, int64_t ledger);

#endif
