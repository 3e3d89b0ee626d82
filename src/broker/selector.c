// selector.c - a ring of points for auto split, a sorted table for sticky ranges.
#include "broker/selector.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/random.h"
#include "broker/consumer.h"
#include "broker/key_hash.h"

// A point of the ring: its consumer has the places from the point before up to it. A sticky range: `from` .. `to`.
struct slice {
    uint32_t from, to; // the ring uses `to`
    struct ox_consumer *consumer;
};

// A consumer of the ring, and its number among those of its name.
struct member {
    const struct ox_consumer *consumer;
    uint32_t number;
};

struct ox_selector {
    enum ox_key_shared_mode mode;
    uint32_t points;
    struct slice *slices; // sorted by `to`
    size_t count;
    struct member *members; // of the ring
    size_t members_count;
};

struct ox_selector *ox_selector_new(enum ox_key_shared_mode mode, uint32_t points)
{
    struct ox_selector *s = ox_malloc(sizeof *s);
    s->mode = mode;
    s->points = OX_MAX(points, 1u);
    return s;
}

void ox_selector_free(struct ox_selector *s)
{
    if (!s)
        return;
    ox_free(s->slices);
    ox_free(s->members);
    ox_free(s);
}

static int slice_cmp(const void *a, const void *b)
{
    const struct slice *x = (const struct slice *)a, *y = (const struct slice *)b;
    return x->to < y->to ? -1 : x->to > y->to;
}

// Merges sorted slices into the table.
static void slices_merge(struct ox_selector *s, const struct slice *more, size_t n)
{
    s->slices = ox_realloc(s->slices, s->count + n, sizeof *s->slices);
    size_t old = s->count;
    s->count += n;
    for (size_t to = s->count; n; to--)
        s->slices[to - 1] = old && s->slices[old - 1].to > more[n - 1].to ? s->slices[--old] : more[--n];
}

// The first slice that ends at `at` or after it; count if there is none.
static size_t slice_at(const struct ox_selector *s, uint32_t at)
{
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (s->slices[middle].to < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// ---- auto split

static bool ring_has(const struct ox_selector *s, const char *name, uint32_t number)
{
    for (size_t i = 0; i < s->members_count; i++)
        if (s->members[i].number == number && strcmp(s->members[i].consumer->name, name) == 0)
            return true;
    return false;
}

// Where the points go: told by the name, and by the number that is free among those of this name.
static uint64_t ring_join(struct ox_selector *s, const struct ox_consumer *c)
{
    uint32_t number = 0;
    size_t len = strlen(c->name);
    while (ring_has(s, c->name, number))
        number++;
    s->members = ox_realloc(s->members, s->members_count + 1, sizeof *s->members);
    s->members[s->members_count++] = (struct member){c, number};
    return ((uint64_t)ox_murmur3(c->name, len, 1) << 32 | ox_murmur3(c->name, len, 0)) + number;
}

static void ring_add(struct ox_selector *s, struct ox_consumer *c)
{
    struct ox_random random;
    OX_CLEANUP(ox_free_ptr)
    struct slice *points = ox_calloc(s->points, sizeof *points);
    ox_random_seed(&random, ring_join(s, c));
    for (uint32_t i = 0; i < s->points; i++)
        points[i] = (struct slice){.to = (uint32_t)ox_random_next(&random), .consumer = c};
    qsort(points, s->points, sizeof *points, slice_cmp);
    slices_merge(s, points, s->points);
}

static void ring_leave(struct ox_selector *s, const struct ox_consumer *c)
{
    size_t i = 0;
    while (i < s->members_count && s->members[i].consumer != c)
        i++;
    if (i < s->members_count)
        s->members[i] = s->members[--s->members_count];
}

// Hashes are spread over the ring's 32 bits.
static struct ox_consumer *ring_find(const struct ox_selector *s, uint32_t hash)
{
    size_t i = slice_at(s, hash << 16);
    return s->slices[i == s->count ? 0 : i].consumer;
}

// ---- sticky ranges

static bool range_read(const struct ox_key_shared *want, size_t i, struct slice *ret)
{
    int32_t from = want->ranges[2 * i], to = want->ranges[2 * i + 1];
    if (to == (int32_t)OX_KEY_HASHES)
        to--;
    *ret = (struct slice){.from = (uint32_t)from, .to = (uint32_t)to};
    return from >= 0 && from <= to && to < (int32_t)OX_KEY_HASHES;
}

// The ranges of a wish, sorted; NULL if one is out of bounds or two overlap. The caller frees it.
static struct slice *ranges_read(const struct ox_key_shared *want)
{
    struct slice *ranges = ox_calloc(want->range_count, sizeof *ranges);
    bool good = want->range_count > 0;
    for (size_t i = 0; good && i < want->range_count; i++)
        good = range_read(want, i, &ranges[i]);
    if (good)
        qsort(ranges, want->range_count, sizeof *ranges, slice_cmp);
    for (size_t i = 1; good && i < want->range_count; i++)
        good = ranges[i - 1].to < ranges[i].from;
    if (good)
        return ranges;
    ox_free(ranges);
    return NULL;
}

enum ox_err ox_selector_check(const struct ox_selector *s, const struct ox_key_shared *want, struct ox_consumer **ret_holder)
{
    if (s->mode == OX_KEY_AUTO_SPLIT)
        return OX_OK;
    OX_CLEANUP(ox_free_ptr)
    struct slice *ranges = ranges_read(want);
    if (!ranges)
        return OX_E_CONSUMER_ASSIGN;
    for (size_t i = 0; i < want->range_count; i++) {
        size_t at = slice_at(s, ranges[i].from);
        if (at < s->count && s->slices[at].from <= ranges[i].to) {
            *ret_holder = s->slices[at].consumer;
            return OX_E_CONSUMER_ASSIGN;
        }
    }
    return OX_OK;
}

static void ranges_add(struct ox_selector *s, struct ox_consumer *c, const struct ox_key_shared *want)
{
    OX_CLEANUP(ox_free_ptr)
    struct slice *ranges = ranges_read(want);
    OX_ASSERT(ranges);
    for (size_t i = 0; i < want->range_count; i++)
        ranges[i].consumer = c;
    slices_merge(s, ranges, want->range_count);
}

static struct ox_consumer *ranges_find(const struct ox_selector *s, uint32_t hash)
{
    size_t i = slice_at(s, hash);
    return i < s->count && s->slices[i].from <= hash ? s->slices[i].consumer : NULL;
}

// ---- both

void ox_selector_add(struct ox_selector *s, struct ox_consumer *c, const struct ox_key_shared *want)
{
    if (s->mode == OX_KEY_AUTO_SPLIT)
        ring_add(s, c);
    else
        ranges_add(s, c, want);
}

void ox_selector_remove(struct ox_selector *s, const struct ox_consumer *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->count; i++)
        if (s->slices[i].consumer != c)
            s->slices[kept++] = s->slices[i];
    s->count = kept;
    ring_leave(s, c);
}

struct ox_consumer *ox_selector_find(const struct ox_selector *s, uint32_t hash)
{
    if (s->count == 0)
        return NULL;
    return s->mode == OX_KEY_AUTO_SPLIT ? ring_find(s, hash) : ranges_find(s, hash);
}

// The hashes of a slice of the ring: those behind the one before it.
static struct slice ring_slice(const struct ox_selector *s, size_t i)
{
    struct slice slice = s->slices[i];
    slice.from = i ? (s->slices[i - 1].to >> 16) + 1 : 0;
    slice.to >>= 16;
    return slice;
}

void ox_selector_ranges(const struct ox_selector *s, const struct ox_consumer *c,
                        void (*range)(void *ctx, uint32_t from, uint32_t to), void *ctx)
{
    bool ring = s->mode == OX_KEY_AUTO_SPLIT;
    for (size_t i = 0; i < s->count; i++) {
        struct slice slice = ring ? ring_slice(s, i) : s->slices[i];
        if (slice.consumer == c && slice.from <= slice.to)
            range(ctx, slice.from, slice.to);
    }
    uint32_t behind = ring && s->count ? (s->slices[s->count - 1].to >> 16) + 1 : OX_KEY_HASHES;
    if (behind < OX_KEY_HASHES && s->slices[0].consumer == c) // the ring closes
        range(ctx, behind, OX_KEY_HASHES - 1);
}

enum ox_key_shared_mode ox_selector_mode(const struct ox_selector *s)
{
    return s->mode;
}
