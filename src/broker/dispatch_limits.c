// dispatch_limits.c - how fast may be delivered: a topic's rate over all its subscriptions, and a subscription's own.
#include <math.h>

#include "base/mem.h"
#include "base/token_bucket.h"
#include "broker/limits.h"

struct dispatch_limits {
    struct ox_token_bucket messages, bytes;
};

static double per_second(int64_t amount, const struct ox_rate_limit *rate, double published)
{
    if (amount <= 0)
        return 0;
    return (double)amount / OX_MAX(rate->period_s, 1u) + (rate->relative ? published : 0);
}

static void bucket_refresh(struct ox_token_bucket *b, double per_s, uint64_t now)
{
    if (b->per_s < per_s || b->per_s > per_s)
        ox_token_bucket_set(b, per_s, per_s, now);
}

static void limits_refresh(struct dispatch_limits **at, const struct ox_rate_limit *rate, const struct ox_topic *t)
{
    double messages = per_second(rate->messages, rate, t->in.messages_per_s);
    double bytes = per_second(rate->bytes, rate, t->in.bytes_per_s);
    if (messages <= 0 && bytes <= 0) {
        ox_free(*at);
        *at = NULL;
        return;
    }
    if (!*at)
        *at = ox_malloc(sizeof **at);
    uint64_t now = ox_now_ns(t->shard->loop);
    bucket_refresh(&(*at)->messages, messages, now);
    bucket_refresh(&(*at)->bytes, bytes, now);
}

void dispatch_limits_refresh(struct ox_subscription *s)
{
    struct ox_topic *t = s->topic;
    bool system = ox_topic_name_is_system(&t->name);
    struct ox_rate_limit none = {0}, own = ox_policies_subscription_dispatch(&t->policies, t->own_policies, s->name);
    limits_refresh(&t->dispatch_limits, system ? &none : &t->policies.dispatch, t);
    limits_refresh(&s->limits, system ? &none : &own, t);
}

void dispatch_limits_follow(struct ox_subscription *s)
{
    const struct ox_topic *t = s->topic;
    struct ox_rate_limit own = ox_policies_subscription_dispatch(&t->policies, t->own_policies, s->name);
    bool open = s->state == OX_SUBSCRIPTION_OPEN && t->state == OX_TOPIC_OPEN;
    if (open && s->dispatcher && s->dispatcher->body->kick && (own.relative || t->policies.dispatch.relative))
        s->dispatcher->body->kick(s->dispatcher); // who waits by the old rate looks again
}

static uint64_t limits_wait_ns(struct dispatch_limits *l, struct ox_throttled *count, uint64_t now)
{
    uint64_t messages = ox_token_bucket_wait_ns(&l->messages, now), bytes = ox_token_bucket_wait_ns(&l->bytes, now);
    count->messages += messages > 0;
    count->bytes += bytes > 0;
    return OX_MAX(messages, bytes);
}

uint64_t dispatch_limits_wait_ns(struct ox_subscription *s)
{
    uint64_t now = ox_now_ns(s->topic->shard->loop), wait = 0;
    if (s->limits)
        wait = limits_wait_ns(s->limits, &s->throttled, now);
    if (s->topic->dispatch_limits)
        wait = OX_MAX(wait, limits_wait_ns(s->topic->dispatch_limits, &s->throttled_topic, now));
    return wait;
}

static double limits_room(const struct dispatch_limits *l)
{
    return l && l->messages.per_s > 0 ? OX_MAX(l->messages.tokens, 1.0) : INFINITY;
}

double dispatch_limits_room(struct ox_subscription *s)
{
    return OX_MIN(limits_room(s->limits), limits_room(s->topic->dispatch_limits));
}

static void limits_take(struct dispatch_limits *l, uint32_t messages, uint64_t bytes, uint64_t now)
{
    if (!l)
        return;
    ox_token_bucket_take(&l->messages, messages, now);
    ox_token_bucket_take(&l->bytes, (double)bytes, now);
}

void dispatch_limits_take(struct ox_subscription *s, uint32_t messages, uint64_t bytes)
{
    uint64_t now = ox_now_ns(s->topic->shard->loop);
    limits_take(s->limits, messages, bytes, now);
    limits_take(s->topic->dispatch_limits, messages, bytes, now);
}

void subscription_limits_free(struct ox_subscription *s)
{
    ox_free(s->limits);
    s->limits = NULL;
}
