// rate.h - counters with their rate over the last statistics interval.
#ifndef BROKER_RATE_H
#define BROKER_RATE_H

#include <stdint.h>

// Zeroed memory counts from nothing.
struct ox_rate {
    uint64_t messages, bytes, entries;                // read-only: totals since it began
    double messages_per_s, bytes_per_s;               // read-only: over the last whole interval
    double entries_per_s;                             // read-only
    uint64_t mark_messages, mark_bytes, mark_entries; // private: totals at the interval's start
};

// Counts one entry.
static inline void ox_rate_add(struct ox_rate *r, uint64_t messages, uint64_t bytes)
{
    r->messages += messages;
    r->bytes += bytes;
    r->entries++;
}

// Ends an interval of `seconds` (> 0).
void ox_rate_tick(struct ox_rate *r, double seconds);
// The mean size of a message in bytes over all; 0 if there was none.
double ox_rate_mean_bytes(const struct ox_rate *r);

#endif
