// expire.h - messages that nobody acknowledged in time count as acknowledged.
#ifndef BROKER_EXPIRE_H
#define BROKER_EXPIRE_H

#include "broker/topic.h"

// Acknowledges what was published before a time, in one subscription or in all; who waits for room goes on. Errors: UNSUPPORTED (non-persistent),
// SUBSCRIPTION_NOT_FOUND, TOPIC_FENCED, those of the log. Nothing that old, or nothing left to acknowledge: OK. The new positions are durable within the interval
// of acknowledgements that nobody waits for: after a crash the messages may be there once more, until the next time.
struct ox_topic_expire {
    struct ox_op op;
    const char *subscription; // in: NULL: all; copied
    uint64_t before_ms; // in: wall time; compared with the broker's timestamp of an entry where it has one, else with the publish time
    uint64_t expired;       // result: entries, of all subscriptions together
    struct ox_topic *topic; // private
    char *own_subscription; // private
    struct ox_ml_read read; // private
    struct ox_ml_find find; // private
    struct ox_seq seq;      // private
};
void ox_topic_expire(struct ox_topic *t, struct ox_topic_expire *e);

#endif
