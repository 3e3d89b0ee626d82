// dispatcher.h - what decides which consumer gets which entry: one body per kind of subscription.
#ifndef BROKER_DISPATCHER_H
#define BROKER_DISPATCHER_H

#include "broker/consumer.h"

struct ox_dispatcher;

// What a kind of subscription supplies.
struct ox_dispatcher_body {
    enum ox_sub_type type;
    // May this consumer attach beside those that are there? OK, or CONSUMER_BUSY with the consumer in the way (to be probed) in *ret_holder.
    enum ox_err (*admit)(struct ox_dispatcher *d, struct ox_consumer **ret_holder);
    // It has been attached (it is in subscription->consumers).
    void (*attached)(struct ox_dispatcher *d, struct ox_consumer *c);
    // It is leaving (it is still in subscription->consumers).
    void (*detached)(struct ox_dispatcher *d, struct ox_consumer *c);
    // It can take more: permits or the connection.
    void (*more)(struct ox_dispatcher *d, struct ox_consumer *c);
    // The client wants what it did not acknowledge again.
    void (*redeliver)(struct ox_dispatcher *d, struct ox_consumer *c, const struct ox_pos *positions, size_t count);
    // The cursor has been moved: forget what was read.
    void (*restart)(struct ox_dispatcher *d);
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

// One active consumer, all entries in order.
struct ox_dispatcher *ox_dispatcher_exclusive_new(struct ox_subscription *s);
// The dispatcher of a type. Errors: UNSUPPORTED.
enum ox_err ox_dispatcher_new(struct ox_subscription *s, enum ox_sub_type type, struct ox_dispatcher **ret) OX_CHECKED;

#endif
