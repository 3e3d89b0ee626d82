// subscription_int.h - subscriptions and consumers for this folder's own eyes.
#ifndef BROKER_SUBSCRIPTION_INT_H
#define BROKER_SUBSCRIPTION_INT_H

#include "broker/subscription.h"
#include "broker/topic_int.h"

#define SUBSCRIPTION_MAGIC OX_MAGIC('S', 'u', 'b', 's')
#define CONSUMER_MAGIC OX_MAGIC('C', 'o', 'n', 's')
#define SUBSCRIPTION_LINGER_NS (60 * OX_SEC)
#define SUBSCRIPTION_OF(n) CONTAINER_OF(n, struct ox_subscription, by_name)

// A new subscription in the topic's map, OPENING.
struct ox_subscription *subscription_new(struct ox_topic *t, const char *name, bool durable);
// The subscription of a durable cursor that was opened with the log.
void subscription_adopt(struct ox_topic *t, struct ox_cursor *c);
// Changes the state; the edge is asserted. Those who wait for it look again.
void subscription_set_state(struct ox_subscription *s, enum ox_sub_state to, const char *why);
// Closes all consumers but one (NULL: all) with an event.
void subscription_close_consumers(struct ox_subscription *s, enum ox_err why, const struct ox_consumer *except);
// Ends dispatch; op finishes when nothing reads the cursor. No consumer is attached.
void subscription_stop(struct ox_subscription *s, struct ox_op *op);
// Takes it out of the map and frees it; its cursor is the caller's or the log's to close.
void subscription_free(struct ox_subscription *s);
// A non-durable subscription without consumers goes.
void subscription_abandon(struct ox_subscription *s);
// After a seek its consumers were closed and come back at once, to the place that was sought: a non-durable subscription is abandoned only if they don't.
void subscription_linger(struct ox_subscription *s);
// Tells consumers once that a terminated topic has nothing more for them: when all of it is acknowledged.
void subscription_tell_end(struct ox_subscription *s);
static inline void subscription_look_at_end(struct ox_subscription *s)
{
    if (s->topic->ml && s->topic->ml->terminated)
        subscription_tell_end(s);
}

// Publish time of an entry in ms; 0 if it cannot be told.
uint64_t entry_publish_time(const struct ox_entry *entry);
// Attaches a consumer as asked for.
struct ox_consumer *consumer_new(struct ox_subscription *s, const struct ox_subscribe *from);
// Takes it out of its subscription; the dispatcher knows.
void consumer_detach(struct ox_consumer *c);
// Frees one that is detached.
void consumer_free(struct ox_consumer *c);

#endif
