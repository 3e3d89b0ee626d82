// topic.h - a topic: loading on first use, its log, its producers and subscriptions, unloading and deleting.
#ifndef BROKER_TOPIC_H
#define BROKER_TOPIC_H

#include "broker/policies.h"
#include "broker/rate.h"
#include "broker/shard.h"
#include "broker/topic_name.h"
#include "mledger/mledger.h"

#define OX_TOPIC_STATES(X)                                                                               \
    X(LOADING)  /* policies are checked, the log and its cursors are opened */                           \
    X(OPEN)     /* serves */                                                                             \
    X(CLOSING)  /* clients are told, appends drain, the log closes; then a waiting user loads it anew */ \
    X(DELETING) /* likewise, and the log goes */                                                         \
    X(GONE)     /* out of the shard's map; freed with its last hold */
enum ox_topic_state {
#define OX_X(name) OX_TOPIC_##name,
    OX_TOPIC_STATES(OX_X)
#undef OX_X
};

struct ox_compaction;
struct ox_dedup;
struct publish_hist;
struct ox_resend;

// What the last look at the backlog quota found.
enum ox_quota_state { OX_QUOTA_OK, OX_QUOTA_HELD, OX_QUOTA_REFUSED };

// Members are read-only outside this folder.
struct ox_topic {
    uint32_t magic;
    struct ox_shard *shard;
    struct ox_topic_name name;
    struct ox_map_node by_name;      // in shard->topics
    struct ox_link in_nonpersistent; // in shard->nonpersistent, if it is one
    enum ox_topic_state state;
    struct ox_mledger *ml;              // NULL until it is open, and for a non-persistent topic
    struct ox_policies policies;        // in force now
    struct json_t *own_policies;        // the topic's own, NULL if it has none; borrowed until they change
    struct ox_list producers;           // of struct ox_producer, link
    struct ox_map subscriptions;        // of struct ox_subscription, by_name
    uint64_t inflight_bytes;            // appends in flight
    uint32_t inflight;                  // how many
    bool is_system;                     // only brokers use it
    bool failed;                        // an append failed: it is being closed, so that it is loaded anew
    uint64_t loaded_ms;                 // wall time
    uint64_t loaded_ns;                 // likewise by the loop's clock
    struct ox_rate in, out;             // messages published, delivered
    struct ox_rate read, read_store;    // entries read from the log, those of them that the cache did not have
    struct publish_hist *hist;          // its entries by latency and size; NULL while it is idle
    uint64_t publish_waits;             // how often a producer had to wait because of a rate
    uint64_t evictions[2];              // how often the backlog was cut down because of its size, its age
    uint64_t resent;                    // re-sent messages that were answered without storing them twice
    enum ox_quota_state quota_exceeded; // set it, then producers_quota
    int64_t epoch; // of its exclusive producers, in the log's property pulsar.topic.epoch; -1: there was none

    uint32_t holds;                 // private
    uint32_t pins;                  // private: operations that use the log; closing waits for them
    uint64_t appends, appends_done; // private: started, ended
    struct ox_list waiters;         // private: ox_topic_get waiting for OPEN or GONE
    struct ox_list drain_waiters;   // private: producers being opened that wait for what their name has in flight
    struct ox_producer *exclusive;  // private: the producer that is alone here
    struct ox_list joining;         // private: producers being opened whose access mode has been granted
    struct ox_list queued;          // private: those that wait to be alone
    struct dispatch_limits *dispatch_limits;   // private: of deliveries; NULL: none
    struct subscribe_limits *subscribe_limits; // private: who subscribed lately; NULL: nobody is counted
    struct publish_limits *limits;             // private: of sends; NULL: none
    bool looks;                                // private: a policy looks at each send
    struct ox_dedup *dedup;           // private: highest sequence ids by producer; NULL: deduplication was never on
    struct ox_compaction *compaction; // private: its compacted ledger and run; NULL: it never was compacted
    struct ox_resend *resend;         // private: what a reconnecting producer may re-send; NULL when there is none
    struct policy_scope *scope;       // read-only: where its policies come from; NULL before they are known
    struct ox_link in_scope;          // private
    struct ox_link in_policing;       // private: in shard->policing->topics while it is open
    uint64_t active_ns;               // private: when somebody was last seen to use it
    bool expiring;                    // private: an expiry of all subscriptions is under way
    bool terminating;                 // private: sends are dropped: their producers will be told to go
    bool is_backlog_old;              // private: the backlog's oldest message is beyond the quota, as of the last look
    bool offload_failed;              // an administrator wanted its ledgers offloaded: nobody here can
    void *impl;                       // private: struct topic_impl, only while loading, closing or deleting
};

// Finds a topic, loading it (and creating it where allowed) if it is not loaded. The topic comes with a hold, to be given back with ox_topic_put.
// Errors: UNSUPPORTED (it is partitioned), NOT_ALLOWED (topics of this domain are switched off), NAMESPACE_NOT_FOUND, TOPIC_NOT_FOUND, SHUTDOWN, CORRUPT, BUSY, those of the stores; `why` says more where there is more.
struct ox_topic_get {
    struct ox_op op;
    bool create;          // in: may be made, if settings allow automatic creation
    bool explicit_create; // in: made whatever settings say (an administrator asks)
    bool marked;          // in: also where its namespace or partitioned topic is marked as deleted (for who deletes it)
    struct ox_topic *topic;    // result
    const char *why;           // result on errors: static sentence or NULL
    struct ox_shard *shard;    // private
    struct ox_topic_name name; // private
    struct ox_link link;       // private
};
// The name is copied.
void ox_topic_get(struct ox_shard *sh, struct ox_topic_get *op, const struct ox_topic_name *name);
// A loaded topic, or NULL; no hold is taken.
struct ox_topic *ox_topic_find(struct ox_shard *sh, const char *full_name);
// One more hold.
void ox_topic_hold(struct ox_topic *t);
// Gives a hold back.
void ox_topic_put(struct ox_topic *t);

// Closes a loaded topic (clients are told to reconnect); the next user loads it anew. Errors: TOPIC_NOT_FOUND (not loaded), those of the log's close.
void ox_topic_unload(struct ox_shard *sh, struct ox_op *op, const char *full_name);
// Deletes a topic with its subscriptions. Errors: TOPIC_NOT_FOUND, BUSY (producers or consumers are connected and force is false), those of the stores.
struct ox_topic_delete {
    struct ox_op op;
    bool force;              // in: connected clients are closed
    bool marked;             // in: as in ox_topic_get
    bool absent;             // in: it should not be there: one that is, is left as it is, BUSY
    struct ox_topic_get get; // private
    struct ox_op close;      // private
};
void ox_topic_delete(struct ox_shard *sh, struct ox_topic_delete *op, const struct ox_topic_name *name);
// True if producers or consumers are connected.
bool ox_topic_is_used(const struct ox_topic *t);

// Ends a topic for good: nothing is published any more; producers are told to go, consumers get what is left and then learn that the end is reached. Again: OK, with the same id.
// Errors: UNSUPPORTED (non-persistent), TOPIC_FENCED, those of the log.
struct ox_topic_terminate {
    struct ox_op op;
    struct ox_pos last;     // result: of the last message; entry -1: there never was one in the last ledger
    struct ox_topic *topic; // private
    struct ox_op step;      // private
};
void ox_topic_terminate(struct ox_topic *t, struct ox_topic_terminate *op);

// The last message's id: of what the log holds, or of what those can expect who read compacted. Errors: TOPIC_FENCED, UNSUPPORTED (non-persistent), those of the log.
struct ox_last_id {
    struct ox_op op;
    bool read_compacted;    // in
    struct ox_pos pos;      // result: {-1, -1} if the topic holds nothing
    int32_t batch_index;    // result: of the last message in a batch, else -1
    struct ox_topic *topic; // private
    struct ox_ml_read read; // private
    struct ox_op compacted; // private
};
void ox_topic_last_id(struct ox_topic *t, struct ox_last_id *op);

// The figures of a topic; lists of producers and subscriptions are walked by their links (producer.h, subscription.h).
struct ox_topic_stats {
    uint64_t storage_bytes, entries;
    uint64_t backlog_entries, backlog_bytes; // of the slowest durable subscription
    size_t producers, consumers, subscriptions;
    uint64_t inflight_bytes;
    double mean_message_bytes;
};
void ox_topic_stats(const struct ox_topic *t, struct ox_topic_stats *ret);
// The state's name.
const char *ox_topic_state_name(enum ox_topic_state state);

#endif
