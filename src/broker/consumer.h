// consumer.h - a consumer: subscribing, permits, deliveries, acknowledgements, redelivery, seeking, unsubscribing.
#ifndef BROKER_CONSUMER_H
#define BROKER_CONSUMER_H

#include "base/kv.h"
#include "broker/selector.h"
#include "broker/topic.h"
#include "mledger/cursor.h"

struct ox_consumer;
struct ox_subscription;

enum ox_sub_type { OX_SUB_EXCLUSIVE, OX_SUB_SHARED, OX_SUB_FAILOVER, OX_SUB_KEY_SHARED };

// An entry on its way to a consumer. `entry` is borrowed for the call: take a reference to keep it.
struct ox_dispatch {
    struct ox_pos pos;
    struct ox_buf entry; // as stored, without the broker entry metadata: [checksum] metadata size, metadata, payload
    struct ox_buf broker_metadata; // "0e02 size BrokerEntryMetadata" of the same entry, or empty
    uint32_t messages;
    uint32_t redelivery_count;
    const uint64_t *ack_set; // batch bits (1 = still to be delivered), NULL: all
    size_t ack_words;
    uint64_t consumer_epoch; // of the consumer's last redelivery request
};

// The owner's side. All are called from the loop.
struct ox_consumer_events {
    // An entry for the client.
    void (*deliver)(struct ox_consumer *c, const struct ox_dispatch *d);
    // May more be delivered? False: call ox_consumer_writable when it may again.
    bool (*ready)(struct ox_consumer *c);
    // The broker closes the consumer (OK: its client unsubscribed; topic unloaded: TOPIC_FENCED; sought: CANCELED; unsubscribed by somebody else: SUBSCRIPTION_NOT_FOUND; deleted: TOPIC_NOT_FOUND): tell the client. The consumer is freed when this returns.
    void (*closed)(struct ox_consumer *c, enum ox_err err);
    // Somebody wants the subscription: is the client alive? As ox_producer_events.probe.
    void (*probe)(struct ox_consumer *c, struct ox_op *op);
    // Failover: this consumer is (not) the one that gets messages. Once after attaching, then at each change.
    void (*active)(struct ox_consumer *c, bool is_active);
    // The topic was terminated and everything in it is acknowledged: nothing more will come. Once.
    void (*end_of_topic)(struct ox_consumer *c);
};

// Members are read-only outside this folder.
struct ox_consumer {
    uint32_t magic;
    struct ox_subscription *subscription;
    struct ox_topic *topic;
    char *name;
    uint64_t id;            // the connection's number for it: public, the owner's
    const void *connection; // identity of the connection: public, the owner's
    char peer[64];
    char client_version[64]; // what the client calls itself
    int32_t priority;
    uint64_t connected_ms;
    struct ox_kv metadata;
    int64_t permits; // messages that may be sent; below 0 after a batch larger than what was left
    uint64_t epoch;  // of the last redelivery request
    bool blocked;    // the connection takes no more now
    struct ox_rate out;
    uint32_t unacked;        // messages delivered and not acknowledged (Shared and Key_Shared)
    uint64_t hashes_cleared; // Key_Shared: hashes of its that others waited for and of which it has none left
    bool held_back;          // too many unacknowledged messages: gets no more now
    void *pending;           // private: the dispatcher's table of what this consumer holds, or NULL
    bool read_compacted;     // it wants only the last message of each key
    bool is_active;          // private: Failover
    bool told_end;           // private: it knows that the topic has ended
    struct ox_rate acks;     // acknowledged: messages (Shared, Key_Shared), else ids
    struct ox_rate again;    // messages asked for again (Shared, Key_Shared)
    uint64_t last_acked_ms, last_consumed_ms, last_flow_ms;
    const struct ox_consumer_events *events;
    void *owner;         // public
    struct ox_link link; // private: in subscription->consumers
};

// Attaches a consumer, making the subscription if it isn't there. What is given by pointer is copied, and must live until the operation is over. Errors: CONSUMER_BUSY, CONSUMER_ASSIGN (key ranges), NOT_ALLOWED (the type or more subscriptions are forbidden by policy), SUBSCRIPTION_NOT_FOUND (automatic creation off), TOPIC_FENCED, INVALID, those of the log.
struct ox_subscribe {
    struct ox_op op;
    const char *subscription;  // in
    const char *name;          // in: the consumer's
    enum ox_sub_type type;     // in
    bool durable;              // in: false for readers
    bool from_earliest;        // in: initial position of a new subscription (default: the end)
    bool has_start;            // in: start_id is given (non-durable subscriptions only)
    struct ox_pos start;       // in: its entry is the first one delivered; OX_POS_EARLIEST, OX_POS_LATEST allowed
    uint64_t rollback_ms;      // in: start so long before now; 0: not asked
    int32_t priority;          // in: lower goes first
    struct ox_key_shared keys; // in: of Key_Shared; its ranges are copied
    bool read_compacted; // in: only the last message of each key, as of the last compaction (Exclusive, Failover and readers)
    bool replicated; // in: the subscription's state is to be replicated: a mark kept with a durable one's position; no consumer takes it away
    const uint64_t *start_set;               // in: bits of the start entry still to be delivered; copied; may be NULL
    size_t start_words;                      // in
    uint64_t epoch;                          // in
    uint64_t id;                             // in
    const void *connection;                  // in
    const char *peer;                        // in: may be NULL
    const char *client_version;              // in: may be NULL
    const struct ox_kv *metadata;            // in: may be NULL
    const struct ox_kv *properties;          // in: of a new subscription; may be NULL
    const struct ox_consumer_events *events; // in
    void *owner;                             // in
    struct ox_consumer *consumer;            // result
    const char *why;                         // result on errors: static sentence or NULL
    struct ox_topic *topic;                  // private
    struct ox_subscription *sub;             // private
    struct ox_cursor_open open;              // private
    struct ox_ml_find find;                  // private
    struct ox_op wait;                       // private
    struct ox_cursor_ack marked;             // private
    struct ox_seq seq;                       // private
    struct ox_link link;                     // private
    char *own_subscription;                  // private
    struct ox_kv own_properties;             // private
    uint64_t before_ms;                      // private
    bool probed;                             // private
    int32_t *own_ranges;                     // private
    uint64_t *own_set;                       // private
};
void ox_subscribe(struct ox_topic *t, struct ox_subscribe *op);
// Detaches and frees it; no event comes any more. What it had and did not acknowledge is delivered again to the next one. A non-durable subscription goes with it.
void ox_consumer_close(struct ox_consumer *c);

// Adds permits (messages). Errors: INVALID (0).
enum ox_err ox_consumer_flow(struct ox_consumer *c, uint32_t permits) OX_CHECKED;
// The connection takes more again.
void ox_consumer_writable(struct ox_consumer *c);

// One acknowledged id. set: bits still to be delivered, NULL or empty: the whole entry.
struct ox_ack_id {
    struct ox_pos pos;
    const uint64_t *set;
    size_t words;
};
// Acknowledges entries one by one, or (cumulative, one id) everything up to it. ack may be NULL: nobody waits. Else its op finishes when the store holds it; an id beyond the log's end has no effect.
void ox_consumer_ack(struct ox_consumer *c, struct ox_cursor_ack *ack, bool cumulative, const struct ox_ack_id *ids,
                     size_t count);
// Delivers again what is not acknowledged: the positions (Shared, Key_Shared; those this consumer holds), or everything (count 0, Exclusive, Failover). epoch: the request's, carried by later deliveries; an older one than the last has no effect.
void ox_consumer_redeliver(struct ox_consumer *c, bool has_epoch, uint64_t epoch, const struct ox_pos *positions,
                           size_t count);

// Moves a subscription: to an id (its own entry is the next one delivered; ack_set: the bits of it that are) or to the first message published at or after a time. All consumers of the subscription are closed first (CANCELED). Errors: TOPIC_FENCED, BUSY (another seek runs), those of the log.
struct ox_seek {
    struct ox_op op;
    bool by_time;                // in
    uint64_t time_ms;            // in: publish time
    struct ox_pos pos;           // in
    const uint64_t *ack_set;     // in: copied; may be NULL
    size_t ack_words;            // in
    struct ox_subscription *sub; // private
    uint64_t *own_set;           // private
    struct ox_ml_find find;      // private
    struct ox_seq seq;           // private
    struct ox_op step;           // private
};
void ox_subscription_seek(struct ox_subscription *s, struct ox_seek *op);

// Removes a subscription. Errors: SUBSCRIPTION_BUSY (consumers other than `self` are attached and force is false), TOPIC_FENCED, those of the log.
struct ox_unsubscribe {
    struct ox_op op;
    bool force;                  // in: other consumers are closed
    struct ox_subscription *sub; // private
    struct ox_seq seq;           // private
    struct ox_op step;           // private
};
// self (may be NULL): the consumer whose client asks; it is closed too, with OK.
void ox_subscription_unsubscribe(struct ox_subscription *s, struct ox_unsubscribe *op, struct ox_consumer *self);

#endif
