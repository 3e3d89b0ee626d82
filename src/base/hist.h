// hist.h - a histogram with a fixed relative error (HDR style) for latencies.
#ifndef BASE_HIST_H
#define BASE_HIST_H

#include <stdint.h>

// Values from 0 to 2^40 in buckets of at most 1/64 relative width (about 2.2k counters, 18 KiB). Zeroed memory is empty.
#define OX_HIST_BUCKETS ((40 - 6 + 1) * 64 + 64)
struct ox_hist {
    uint64_t counts[OX_HIST_BUCKETS]; // private
    uint64_t count, sum, max;         // read-only
};

// Adds one value.
void ox_hist_add(struct ox_hist *h, uint64_t value);
// The value below or at which a share q (0..1) of all values lies; 0 if empty.
uint64_t ox_hist_quantile(const struct ox_hist *h, double q);
// Adds all of `from`.
void ox_hist_merge(struct ox_hist *h, const struct ox_hist *from);

#endif
