// subscription.h - a subscription: its cursor, its consumers, the batches that are partly acknowledged.
#ifndef BROKER_SUBSCRIPTION_H
#define BROKER_SUBSCRIPTION_H

#include "broker/consumer.h"
#include "broker/dispatcher.h"

#define OX_SUB_STATES(X)                                                                              \
    X(OPENING)  /* its cursor is being opened; users wait */                                          \
    X(OPEN)     /* serves */                                                                          \
    X(SEEKING)  /* the cursor is being moved, or the dispatcher replaced; consumers wait to attach */ \
    X(REMOVING) /* the cursor is being removed or closed */                                           \
    X(GONE)
enum ox_sub_state {
#define OX_X(name) OX_SUBSCRIPTION_##name,
    OX_SUB_STATES(OX_X)
#undef OX_X
};

// Members are read-only outside this folder.
struct ox_subscription {
    uint32_t magic;
    struct ox_topic *topic;
    char *name;
    enum ox_sub_state state;
    enum ox_sub_type type; // of its consumers; Exclusive until there was one
    bool durable;
    bool is_system;           // only brokers use it
    struct ox_cursor *cursor; // NULL while OPENING
    struct ox_list consumers; // of struct ox_consumer, link
    struct ox_dispatcher *dispatcher;
    struct ox_rate out;             // of all consumers, past ones too
    uint32_t unacked;               // messages delivered and not acknowledged (Shared and Key_Shared)
    struct dispatch_limits *limits; // private: of its own deliveries; NULL: none
    struct ox_throttled {
        uint64_t messages, bytes;   // how often there was no room in the rate
    } throttled, throttled_topic;   // deliveries that waited for its own rate, for the topic's
    uint64_t hashes_cleared;        // Key_Shared: hashes that others waited for and whose holder has none left
    bool held_back;                 // too many unacknowledged messages: nobody gets more now
    uint64_t delayed;               // messages that are not due yet
    uint64_t expired, expired_mark; // messages that went by TTL; at the interval's start
    double expired_per_s;           // over the last whole interval
    uint64_t last_consumed_ms, last_acked_ms, last_flow_ms, last_expired_ms;
    uint64_t seen_ms;           // private: when it was loaded, or a round last found consumers attached (inactive.c)
    struct ox_map_node by_name; // private: in topic->subscriptions
    struct ox_list waiters;     // private: ox_subscribe waiting for OPEN
    struct ox_seq seq;          // private: removing a non-durable one
    struct ox_op step;          // private
    struct ox_timer linger;     // private: a sought reader's subscription waits for its client to come back
};

// The subscription of a name, or NULL.
struct ox_subscription *ox_subscription_find(struct ox_topic *t, const char *name);

// The figures of a subscription.
struct ox_subscription_stats {
    uint64_t backlog_entries, backlog_bytes; // not acknowledged
    uint64_t unacked;               // messages (Shared, Key_Shared), else entries, delivered and not acknowledged
    uint64_t waiting;               // entries that were read and wait to be delivered (Shared, Key_Shared)
    double acks_per_s, again_per_s; // of its consumers, as they count them
    size_t consumers;
    struct ox_pos mark_delete, read;
};
void ox_subscription_stats(const struct ox_subscription *s, struct ox_subscription_stats *ret);
// Who gets which keys; NULL if it is no Key_Shared one or nobody has attached yet. *ret_out_of_order: keys need not wait for a former consumer. Borrowed.
const struct ox_selector *ox_subscription_selector(const struct ox_subscription *s, bool *ret_out_of_order);
// Of a Key_Shared subscription in order: calls fn for each hash whose entries are with a consumer that it does not belong to any more.
void ox_subscription_draining(const struct ox_subscription *s,
                              void (*fn)(void *ctx, const struct ox_consumer *holder, uint32_t hash, uint32_t entries,
                                         uint32_t refused),
                              void *ctx);
// True if entries that wait are being read again (Shared, Key_Shared).
bool ox_subscription_rereads(const struct ox_subscription *s);
// What could not be delivered, of a non-persistent topic's subscription that has had a consumer; else NULL.
const struct ox_rate *ox_subscription_dropped(const struct ox_subscription *s);
#define OX_REPLICATED_PROPERTY "pulsar.replicated.subscription" // kept with the position
// True if its state is to be replicated.
bool ox_subscription_is_replicated(const struct ox_subscription *s);
// "Exclusive", "Shared", "Failover", "Key_Shared".
const char *ox_sub_type_name(enum ox_sub_type type);
// The state's name.
const char *ox_sub_state_name(enum ox_sub_state state);

#endif
