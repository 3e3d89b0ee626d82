// failover.c - Failover: which of several consumers is the active one.
#include "broker/failover.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "broker/key_hash.h"

#define RING_POINTS 100u // of each consumer

static int candidate_cmp(const struct ox_consumer *a, const struct ox_consumer *b)
{
    return strcmp(a->name, b->name);
}

// Those that may be active, sorted by name (equal names in order of attaching); returns how many.
static size_t candidates(struct ox_subscription *s, const struct ox_consumer *leaving, struct ox_consumer **ret)
{
    size_t n = 0;
    OX_LIST_EACH(&s->consumers, l) {
        struct ox_consumer *c = CONTAINER_OF(l, struct ox_consumer, link);
        if (c == leaving || (n && c->priority > ret[0]->priority))
            continue;
        if (n && c->priority < ret[0]->priority)
            n = 0;
        size_t at = n++;
        for (; at > 0 && candidate_cmp(ret[at - 1], c) > 0; at--)
            ret[at] = ret[at - 1];
        ret[at] = c;
    }
    return n;
}

static uint32_t ring_hash(const char *text)
{
    return ox_murmur3(text, strlen(text), 0) & 0x7fffffff;
}

// How far behind `at` on the ring the consumer's nearest point lies. Of equal points the later consumer's counts.
static uint32_t ring_distance(const struct ox_consumer *c, uint32_t at)
{
    uint32_t best = UINT32_MAX;
    size_t len = strlen(c->name);
    char *point = ox_malloc(len + 16);
    for (unsigned i = 0; i < RING_POINTS; i++) {
        snprintf(point, len + 16, "%s%u", c->name, i);
        best = OX_MIN(best, (ring_hash(point) - at) & 0x7fffffff);
    }
    ox_free(point);
    return best;
}

static size_t ring_choose(struct ox_consumer *const *from, size_t n, const char *topic)
{
    uint32_t at = ring_hash(topic), best = UINT32_MAX;
    size_t chosen = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t distance = ring_distance(from[i], at);
        if (distance <= best) {
            best = distance;
            chosen = i;
        }
    }
    return chosen;
}

struct ox_consumer *failover_choose(struct ox_subscription *s, const struct ox_consumer *leaving)
{
    struct ox_consumer **from = ox_calloc(s->consumers.count + 1, sizeof *from);
    size_t n = candidates(s, leaving, from);
    int32_t partition = s->topic->name.partition;
    size_t i = n < 2 ? 0 : partition >= 0 ? (size_t)partition % n : ring_choose(from, n, s->topic->name.full);
    struct ox_consumer *chosen = n ? from[i] : NULL;
    ox_free(from);
    return chosen;
}
