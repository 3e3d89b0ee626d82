// ranges.c - sets of entry ids as sorted closed intervals.
#include "base/ranges.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

static uint64_t range_width(int64_t first, int64_t last)
{
    return (uint64_t)last - (uint64_t)first + 1;
}

// The index of the first interval that ends at or after v.
static size_t ranges_search(const struct ox_ranges *r, int64_t v)
{
    size_t low = 0, high = r->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->items[middle].last < v)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void ranges_reserve(struct ox_ranges *r)
{
    if (r->count < r->cap)
        return;
    r->cap = r->cap ? r->cap * 2 : 4;
    r->items = (struct ox_range *)ox_realloc(r->items, r->cap, sizeof *r->items);
}

// Puts `n` intervals in the place of items from..to (to excluded).
static void ranges_replace(struct ox_ranges *r, size_t from, size_t to, const struct ox_range *items, size_t n)
{
    if (n > to - from)
        ranges_reserve(r);
    if (r->count != to)
        memmove(r->items + from + n, r->items + to, (r->count - to) * sizeof *r->items);
    for (size_t i = 0; i < n; i++)
        r->items[from + i] = items[i];
    r->count = r->count - (to - from) + n;
}

void ox_ranges_fini(struct ox_ranges *r)
{
    ox_free(r->items);
    *r = (struct ox_ranges){0};
}

// Adds at or behind the last interval's start; false if first..last does not lie there.
static bool ranges_append(struct ox_ranges *r, int64_t first, int64_t last, uint64_t *ret_new)
{
    struct ox_range *end = r->count ? &r->items[r->count - 1] : NULL;
    if (end && first < end->first)
        return false;
    if (end && (first <= end->last || first - 1 == end->last)) {
        *ret_new = last > end->last ? (uint64_t)last - (uint64_t)end->last : 0;
        end->last = OX_MAX(last, end->last);
        return true;
    }
    ranges_reserve(r);
    r->items[r->count++] = (struct ox_range){first, last};
    *ret_new = range_width(first, last);
    return true;
}

uint64_t ox_ranges_add(struct ox_ranges *r, int64_t first, int64_t last)
{
    OX_ASSERT(first <= last);
    uint64_t added;
    if (ranges_append(r, first, last, &added))
        return added;
    size_t from = ranges_search(r, first == INT64_MIN ? first : first - 1), to = from;
    struct ox_range joined = {first, last};
    added = range_width(first, last) - ox_ranges_count_in(r, first, last);
    while (to < r->count && (r->items[to].first <= last || r->items[to].first - 1 == last)) {
        joined.first = OX_MIN(joined.first, r->items[to].first);
        joined.last = OX_MAX(joined.last, r->items[to].last);
        to++;
    }
    ranges_replace(r, from, to, &joined, 1);
    return added;
}

uint64_t ox_ranges_remove(struct ox_ranges *r, int64_t first, int64_t last)
{
    OX_ASSERT(first <= last);
    uint64_t removed = ox_ranges_count_in(r, first, last);
    if (removed == 0)
        return 0;
    size_t from = ranges_search(r, first), to = from, n = 0;
    struct ox_range rest[2];
    while (to < r->count && r->items[to].first <= last)
        to++;
    if (r->items[from].first < first)
        rest[n++] = (struct ox_range){r->items[from].first, first - 1};
    if (r->items[to - 1].last > last)
        rest[n++] = (struct ox_range){last + 1, r->items[to - 1].last};
    ranges_replace(r, from, to, rest, n);
    return removed;
}

bool ox_ranges_has(const struct ox_ranges *r, int64_t v)
{
    const struct ox_range *range = ox_ranges_at_or_after(r, v);
    return range && range->first <= v;
}

const struct ox_range *ox_ranges_at_or_after(const struct ox_ranges *r, int64_t v)
{
    size_t i = ranges_search(r, v);
    return i < r->count ? &r->items[i] : NULL;
}

uint64_t ox_ranges_count_in(const struct ox_ranges *r, int64_t first, int64_t last)
{
    uint64_t count = 0;
    for (size_t i = ranges_search(r, first); i < r->count && r->items[i].first <= last; i++)
        count += range_width(OX_MAX(first, r->items[i].first), OX_MIN(last, r->items[i].last));
    return count;
}
