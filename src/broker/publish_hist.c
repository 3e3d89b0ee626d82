// publish_hist.c - counts by ranges.
#include "broker/publish_hist.h"

#include <string.h>

#include "base/mem.h"

// The number of the first bound that is not below the value; all but the first bounds lie far apart, so a walk from the start is short for what is common.
static unsigned range_of(const uint32_t *bounds, unsigned count, uint64_t value)
{
    unsigned i = 0;
    while (i < count && value > bounds[i])
        i++;
    return i;
}

void publish_hist_add(struct publish_hist **hist, uint64_t us, uint64_t bytes)
{
    static const uint32_t latencies[] = {500, 1000, 5000, 10000, 20000, 50000, 100000, 200000, 1000000};
    static const uint32_t sizes[] = {128, 512, 1024, 2048, 4096, 16384, 102400, 1048576};
    if (!*hist)
        *hist = ox_malloc(sizeof **hist);
    struct publish_interval *now = &(*hist)->now;
    now->latencies[range_of(latencies, OX_COUNT(latencies), us)]++;
    now->sizes[range_of(sizes, OX_COUNT(sizes), bytes)]++;
    now->entries++;
    now->us += us;
    now->bytes += bytes;
}

void publish_hist_tick(struct publish_hist **hist)
{
    struct publish_hist *h = *hist;
    if (!h)
        return;
    h->last = h->now;
    memset(&h->now, 0, sizeof h->now);
    if (h->last.entries)
        return;
    ox_free(h);
    *hist = NULL;
}
