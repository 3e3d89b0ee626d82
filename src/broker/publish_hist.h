// publish_hist.h - how long a topic's entries took to be stored and how large they were, by Pulsar's bounds, for one statistics interval after another.
#ifndef BROKER_PUBLISH_HIST_H
#define BROKER_PUBLISH_HIST_H

#include <stdint.h>

#define PUBLISH_LATENCIES 10u // up to 0.5, 1, 5, 10, 20, 50, 100, 200, 1000 ms, longer
#define PUBLISH_SIZES 9u      // up to 128, 512 bytes, 1, 2, 4, 16, 100 KiB, 1 MiB, larger

struct publish_interval {
    uint32_t latencies[PUBLISH_LATENCIES], sizes[PUBLISH_SIZES]; // entries in each range
    uint32_t entries;
    uint64_t us, bytes; // sums
};

// Made with a topic's first entry, gone after an interval without one: idle topics have none.
struct publish_hist {
    struct publish_interval now, last; // read-only: the interval at work, the last whole one
};

// Counts an entry; makes *hist where there is none.
void publish_hist_add(struct publish_hist **hist, uint64_t us, uint64_t bytes);
// Ends an interval.
void publish_hist_tick(struct publish_hist **hist);

#endif
