// ranges.h - sets of integers kept as sorted, disjoint, closed intervals.
#ifndef BASE_RANGES_H
#define BASE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// first..last, both included.
struct ox_range {
    int64_t first, last;
};

// Sorted, never touching (touching intervals are joined). Zeroed memory is the empty set.
struct ox_ranges {
    struct ox_range *items; // read-only
    size_t count;           // read-only
    size_t cap;             // private
};

// Frees the memory; the set is empty then.
void ox_ranges_fini(struct ox_ranges *r);
// Adds first..last; returns how many integers were new. Appending at the end costs O(1), elsewhere O(log n + move).
uint64_t ox_ranges_add(struct ox_ranges *r, int64_t first, int64_t last);
// Removes first..last; returns how many integers were removed.
uint64_t ox_ranges_remove(struct ox_ranges *r, int64_t first, int64_t last);
// True if v is in the set.
bool ox_ranges_has(const struct ox_ranges *r, int64_t v);
// The interval that holds v, or the first one after it; NULL if there is none. Borrowed until the next change.
const struct ox_range *ox_ranges_at_or_after(const struct ox_ranges *r, int64_t v);
// How many integers of first..last are in the set.
uint64_t ox_ranges_count_in(const struct ox_ranges *r, int64_t first, int64_t last);

#endif
