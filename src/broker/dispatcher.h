// dispatcher.h - what decides which consumer gets which entry: one body per kind of subscription.
#ifndef BROKER_DISPATCHER_H
#define BROKER_DISPATCHER_H

#include "broker/consumer.h"

struct ox_dispatcher;

// What a kind of subscription supplies.
struct ox_dispatcher_body {
    enum ox_sub_type type;
    // May this consumer attach beside those that are there? OK, or CONSUMER_BUSY / CONSUMER_ASSIGN with the consumer in the way (to be probed) in *ret_holder, and a sentence in o->why.
    enum ox_err (*admit)(struct ox_dispatcher *d, struct ox_subscribe *o, struct ox_consumer **ret_holder);
    // It has been attached (it is in subscription->consumers); o is what it asked for.
    void (*attached)(struct ox_dispatcher *d, struct ox_consumer *c, const struct ox_subscribe *o);
    // It is leaving (it is still in subscription->consumers).
    void (*detached)(struct ox_dispatcher *d, struct ox_consumer *c);
    // It can take more: permits or the connection.
    void (*more)(struct ox_dispatcher *d, struct ox_consumer *c);
    // The client wants what it did not acknowledge again: these positions, or everything (count 0).
    void (*redeliver)(struct ox_dispatcher *d, struct ox_consumer *c, const struct ox_pos *positions, size_t count);
    // An entry is acknowledged as a whole by c, or in part (whole false; `left` messages of it are still to be delivered). NULL: it does not care.
    void (*acked)(struct ox_dispatcher *d, struct ox_consumer *c, struct ox_pos pos, bool whole, uint32_t left);
    // The mark-delete position moved by other means than its consumers' acks (expiry, skip, clear): forget what lies before it, wake who waits. NULL: nothing to forget.
    void (*skipped)(struct ox_dispatcher *d);
    // The cursor has been moved: forget what was read.
    void (*restart)(struct ox_dispatcher *d);
    // Policies or rates changed: look whether to go on.
    void (*kick)(struct ox_dispatcher *d);
    // Stop reading; finishes op when no read is in flight. No consumer is attached.
    void (*stop)(struct ox_dispatcher *d, struct ox_op *op);
    // Frees it; it is stopped or never read.
    void (*free)(struct ox_dispatcher *d);
};

// Bodies embed it first.
struct ox_dispatcher {
    const struct ox_dispatcher_body *body;
    struct ox_subscription *subscription;
};

// One active consumer, all entries in order: Exclusive, and Failover, where others wait.
struct ox_dispatcher *ox_dispatcher_single_new(struct ox_subscription *s, enum ox_sub_type type);
// Many consumers: Shared, and Key_Shared, where a selector says which.
struct ox_dispatcher *ox_dispatcher_shared_new(struct ox_subscription *s, enum ox_sub_type type);
// The dispatcher of a type.
struct ox_dispatcher *ox_dispatcher_new(struct ox_subscription *s, enum ox_sub_type type);

#endif
