// hist.c - counters over logarithmic buckets, 64 to each power of two.
#include "base/hist.h"

#include <stddef.h>

#define HIST_VALUE_MAX (UINT64_C(1) << 40)

// Values below 128 have a bucket each; above, the six bits below the leading one choose the bucket.
static size_t hist_index(uint64_t value)
{
    if (value > HIST_VALUE_MAX)
        value = HIST_VALUE_MAX;
    unsigned shift = value < 64 ? 0 : 57u - (unsigned)__builtin_clzll(value);
    return shift * 64 + (size_t)(value >> shift);
}

// The greatest value that falls into a bucket.
static uint64_t hist_upper(size_t index)
{
    uint64_t shift = index < 128 ? 0 : index / 64 - 1;
    return ((index - shift * 64 + 1) << shift) - 1;
}

void ox_hist_add(struct ox_hist *h, uint64_t value)
{
    h->counts[hist_index(value)]++;
    h->count++;
    h->sum += value;
    if (value > h->max)
        h->max = value;
}

uint64_t ox_hist_quantile(const struct ox_hist *h, double q)
{
    double wanted = q * (double)h->count;
    uint64_t rank = (uint64_t)wanted;
    if ((double)rank < wanted || rank == 0)
        rank++;
    uint64_t seen = 0;
    for (size_t i = 0; i < OX_HIST_BUCKETS; i++) {
        seen += h->counts[i];
        if (seen >= rank && h->count)
            return i == hist_index(h->max) || hist_upper(i) > h->max ? h->max : hist_upper(i);
    }
    return h->max;
}

void ox_hist_merge(struct ox_hist *h, const struct ox_hist *from)
{
    for (size_t i = 0; i < OX_HIST_BUCKETS; i++)
        h->counts[i] += from->counts[i];
    h->count += from->count;
    h->sum += from->sum;
    if (from->max > h->max)
        h->max = from->max;
}
