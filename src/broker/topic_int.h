// topic_int.h - topics for this folder's own eyes: life cycle, pins, attached things.
#ifndef BROKER_TOPIC_INT_H
#define BROKER_TOPIC_INT_H

#include "broker/namespaces.h"
#include "broker/policy_scope.h"
#include "broker/resend.h"
#include "broker/topic.h"
#include "broker/topic_room.h"

struct ox_topic_policies_update;

#define TOPIC_MAGIC OX_MAGIC('T', 'o', 'p', 'c')

// What only a topic on its way in or out needs.
struct topic_impl {
    struct ox_topic *topic;
    uint64_t since_ns; // when it began to load
    struct ox_seq seq;
    struct ox_op op;
    struct ox_namespace_get ns;
    struct scope_get scope;
    struct ox_topic_room room;
    uint32_t partitions;
    struct ox_meta_get get;
    struct ox_ml_open open;
    struct ox_resend_scan scan;
    bool create, explicit_create, marked;            // what its users asked for
    bool tried_create, tried_explicit, tried_marked; // what the load was done with
    const char *why;                                 // of a load that failed
    struct ox_list closers;                          // operations that wait for the close
    bool close_wanted;                               // close as soon as it is loaded
    bool waiting;                                    // the closing sequence waits for appends and pins
    enum ox_err close_why;                           // what clients are told
    enum ox_err close_err;
    struct ox_topic_policies_update *forget; // removes the policies of a topic that is deleted
};

// Durable cursors that are not subscriptions: deduplication, compaction, replication (the name, encoded or not).
bool cursor_is_internal(const char *name);
// Changes the state; the edge is asserted.
void topic_set_state(struct ox_topic *t, enum ox_topic_state to, const char *why);
// Begins to load a topic that has been put into the map.
void topic_load(struct ox_topic *t);
// Begins to close a topic (no effect but waiting if it closes already); op may be NULL. why is what clients are told.
void topic_close(struct ox_topic *t, struct ox_op *op, enum ox_err why);
// Closes and deletes it.
void topic_delete(struct ox_topic *t, struct ox_op *op);
// The log cannot go on (append failed, fenced): close it, so that the next user loads it anew.
void topic_fail(struct ox_topic *t, enum ox_err err);
// Takes it out of the map and serves those who wait: with err (a failed load), or by loading it anew (OK).
void topic_gone(struct ox_topic *t, enum ox_err err);
// An operation uses the log: closing waits for its end.
void topic_pin(struct ox_topic *t);
void topic_unpin(struct ox_topic *t);
// An append or a pin has ended: does the closing sequence wait for it?
void topic_quieter(struct ox_topic *t);
// Answers a user.
void topic_get_finish(struct ox_topic_get *g, struct ox_topic *t, enum ox_err err, const char *why);
// The log is open: which compacted ledger is in use; what a crash left of others goes.
void compaction_load(struct ox_topic *t);
// The log is about to close; nobody reads any more.
void compaction_unload(struct ox_topic *t);
// Of a shard: runs of compaction and the timer that looks at thresholds.
struct compactions *compactions_new(struct ox_shard *sh);
void compactions_start(struct compactions *all);
void compactions_stop(struct compactions *all);
void compactions_follow(struct compactions *all, const struct ox_broker_config *before);
void compactions_free(struct compactions *all);
// Something that the end of the shard waits for may be over.
void shard_quieter(struct ox_shard *sh);
// The time, asked for once a turn: of what is counted for each message.
static inline uint64_t shard_turn_ns(struct ox_shard *sh)
{
    if (!sh->turn_ns) {
        sh->turn_ns = ox_now_ns(sh->loop);
        ox_turn_end(sh->loop, &sh->turn_over);
    }
    return sh->turn_ns;
}
// It is about to leave the map: whatever goes over the topics passes it; so do walks for metrics (gauges.c).
void shard_topic_gone(struct ox_topic *t);
void gauges_topic_gone(struct ox_topic *t);
// Ends a statistics interval.
void topic_tick(struct ox_topic *t, double seconds);
// Rates of the broker's settings (publish_limits.c).
void publish_limits_init(struct ox_shard *sh);
void publish_limits_follow(struct ox_shard *sh);
// Frees recycled publish operations.
void publish_pool_free(struct ox_shard *sh);
// Serves producers that wait for appends of the topic to end (producer.c).
void producers_drained(struct ox_topic *t);
// Tells all producers that the topic goes, and frees them.
void producers_close(struct ox_topic *t, enum ox_err why);
// Likewise where the topic stays: they may come back and send again (terminated, quota exceeded, fenced by another one).
void producers_disconnect(struct ox_topic *t, enum ox_err why);
// t->quota_exceeded has been set: while it is, nobody stays connected and producer opens are refused.
void producers_quota(struct ox_topic *t);
// t->policies has changed: rates, sizes, deduplication.
void producers_policies(struct ox_topic *t);
// The log is open: reads the topic's epoch; with deduplication on, learns who sent what. op errors: deduplication could not begin; it is tried again, and producers are put off until then.
void producers_load(struct ox_topic *t, struct ox_op *op);
// The log is about to close: what deduplication knows is put into its cursor.
void producers_save(struct ox_topic *t);
// The topic is freed: so is what was kept for its producers.
void producers_gone(struct ox_topic *t);

#endif
