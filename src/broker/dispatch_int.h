// dispatch_int.h - what all dispatchers do with an entry: taking it apart, counting it.
#ifndef BROKER_DISPATCH_INT_H
#define BROKER_DISPATCH_INT_H

#include "broker/subscription_int.h"
#include "wire/message_meta.h"

// Waiting times after reads that failed one after another.
#define DISPATCH_RETRY_NS_MIN OX_SEC
#define DISPATCH_RETRY_NS_MAX (60 * OX_SEC)

// An entry taken apart. All is borrowed from the entry and the cursor.
struct dispatch_view {
    struct ox_dispatch out;      // without redelivery count and epoch
    struct ox_buf metadata;      // the serialized MessageMetadata; empty if it cannot be told
    struct ox_message_meta meta; // valid if metadata is not empty
};

// Takes an entry apart for deliveries of a subscription; false if nobody is to see it: a broker's marker, or nothing of it is left. What cannot be parsed counts as one message.
bool dispatch_fill(const struct ox_subscription *s, const struct ox_entry *entry, struct dispatch_view *ret);
// Counts a delivery: permits and rates.
void dispatch_count(struct ox_consumer *c, const struct ox_dispatch *dispatch);
// A read failed: the topic ends if the log cannot go on; true if it is to be tried again after *delay_ns (the last delay in, 0 after a read that worked; the next one out).
bool dispatch_retries(struct ox_subscription *s, enum ox_err err, uint64_t *delay_ns);

#endif
