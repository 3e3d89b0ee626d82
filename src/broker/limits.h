// limits.h - how fast may be delivered, and how often subscribed: policies' rates of a topic and of a subscription.
#ifndef BROKER_LIMITS_H
#define BROKER_LIMITS_H

#include "broker/subscription.h"

// Takes the rates that are in force now: after policies changed, at each statistics interval where they follow the publish rate, and with a new dispatcher.
void dispatch_limits_refresh(struct ox_subscription *s);
// At the end of a statistics interval: takes the rates anew where one of them follows the publish rate.
void dispatch_limits_follow(struct ox_subscription *s);
// The parts below that need a look at buckets.
uint64_t dispatch_limits_wait_ns(struct ox_subscription *s);
double dispatch_limits_room(struct ox_subscription *s);
void dispatch_limits_take(struct ox_subscription *s, uint32_t messages, uint64_t bytes);
// Free what was kept.
void subscription_limits_free(struct ox_subscription *s);
void topic_limits_free(struct ox_topic *t);

static inline bool dispatch_is_limited(const struct ox_subscription *s)
{
    return s->limits || s->topic->dispatch_limits;
}
// How long nothing may be delivered; 0: something may now.
static inline uint64_t dispatch_wait_ns(struct ox_subscription *s)
{
    return dispatch_is_limited(s) ? dispatch_limits_wait_ns(s) : 0;
}
// How many messages may be delivered now, 1 at least; `most` if there is no limit below.
static inline double dispatch_room(struct ox_subscription *s, double most)
{
    return dispatch_is_limited(s) ? OX_MIN(most, dispatch_limits_room(s)) : most;
}
// It was delivered.
static inline void dispatch_take(struct ox_subscription *s, uint32_t messages, uint64_t bytes)
{
    if (dispatch_is_limited(s))
        dispatch_limits_take(s, messages, bytes);
}

// May this consumer subscribe once more in this period? Counts it.
bool subscribe_rate_allows(const struct ox_subscribe *o);

#endif
