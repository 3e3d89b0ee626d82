// pos_set.h - ordered sets of positions: bits in chunks, the chunks in order.
#ifndef BASE_POS_SET_H
#define BASE_POS_SET_H

#include <stddef.h>

#include "base/pos.h"

struct ox_pos_chunk;

// Zeroed memory is the empty set. Only entries >= 0 may be in it.
struct ox_pos_set {
    struct ox_pos_chunk *chunks; // private: by ledger and first entry, ascending
    size_t chunk_count;          // private
    size_t chunk_cap;            // private
    size_t count;                // read-only: positions
};

// Frees the memory; the set is empty then.
void ox_pos_set_fini(struct ox_pos_set *s);
// Adds a position; false if it was there. O(log chunks), and a move of those behind where a chunk is new.
bool ox_pos_set_add(struct ox_pos_set *s, struct ox_pos p);
// Removes a position; false if it was not there.
bool ox_pos_set_remove(struct ox_pos_set *s, struct ox_pos p);
// True if it is in the set.
bool ox_pos_set_has(const struct ox_pos_set *s, struct ox_pos p);
// The first position at or behind p in *ret; false if there is none.
bool ox_pos_set_at_or_after(const struct ox_pos_set *s, struct ox_pos p, struct ox_pos *ret);

#endif
