// subscribe_limits.c - how often a consumer may subscribe: counted by address, name and id, for one period at a time.
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "broker/key_hash.h"
#include "broker/limits.h"

struct subscribe_count {
    uint64_t key;
    int64_t taken;
};

struct subscribe_limits {
    uint64_t since_ms; // the period's start
    size_t count, cap;
    struct subscribe_count *of;
};

static uint64_t subscriber_key(const struct ox_subscribe *o)
{
    const char *peer = o->peer ? o->peer : "", *port = strrchr(peer, ':');
    size_t host = port ? (size_t)(port - peer) : strlen(peer);
    uint64_t high = ox_murmur3(o->name, strlen(o->name), (uint32_t)o->id), low = ox_murmur3(peer, host, (uint32_t)o->id);
    return high << 32 | low;
}

// The count of a key; NULL if too many are counted already.
static struct subscribe_count *limits_count(struct subscribe_limits *l, uint64_t key)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->of[i].key == key)
            return &l->of[i];
    if (l->count == OX_SUBSCRIBERS_COUNTED_MAX)
        return NULL;
    if (l->count == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 8;
        l->of = ox_realloc(l->of, l->cap, sizeof *l->of);
    }
    l->of[l->count] = (struct subscribe_count){.key = key};
    return &l->of[l->count++];
}

bool subscribe_rate_allows(const struct ox_subscribe *o)
{
    struct ox_topic *t = o->topic;
    const struct ox_rate_limit *rate = &t->policies.subscribe;
    if (rate->messages <= 0)
        return true;
    if (!t->subscribe_limits)
        t->subscribe_limits = ox_malloc(sizeof *t->subscribe_limits);
    struct subscribe_limits *l = t->subscribe_limits;
    uint64_t now = ox_now_ns(t->shard->loop) / OX_MS;
    if (now - l->since_ms >= OX_MAX(rate->period_s, 1u) * UINT64_C(1000)) {
        l->since_ms = now;
        l->count = 0;
    }
    struct subscribe_count *c = limits_count(l, subscriber_key(o));
    return c && c->taken++ < rate->messages;
}

void topic_limits_free(struct ox_topic *t)
{
    if (t->subscribe_limits)
        ox_free(t->subscribe_limits->of);
    ox_free(t->subscribe_limits);
    ox_free(t->dispatch_limits);
    t->subscribe_limits = NULL;
    t->dispatch_limits = NULL;
}
