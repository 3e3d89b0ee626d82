// topic_int.h - topics for this folder's own eyes: life cycle, pins, attached things.
#ifndef BROKER_TOPIC_INT_H
#define BROKER_TOPIC_INT_H

#include "broker/namespaces.h"
#include "broker/resend.h"
#include "broker/topic.h"

#define TOPIC_MAGIC OX_MAGIC('T', 'o', 'p', 'c')

// What only a topic on its way in or out needs.
struct topic_impl {
    struct ox_topic *topic;
    struct ox_seq seq;
    struct ox_op op;
    struct ox_namespace_get ns;
    struct ox_meta_get get;
    struct ox_ml_open open;
    struct ox_resend_scan scan;
    bool create, explicit_create;      // what its users asked for
    bool tried_create, tried_explicit; // what the load was done with
    const char *why;                   // of a load that failed
    struct ox_list closers;            // operations that wait for the close
    bool close_wanted;                 // close as soon as it is loaded
    bool waiting;                      // the closing sequence waits for appends and pins
    enum ox_err close_why;             // what clients are told
    enum ox_err close_err;
};

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
// Ends a statistics interval.
void topic_tick(struct ox_topic *t, double seconds);
// Frees recycled publish operations.
void publish_pool_free(struct ox_shard *sh);
// Serves producers that wait for appends of the topic to end (producer.c).
void producers_drained(struct ox_topic *t);
// Tells all producers that the topic goes, and frees them.
void producers_close(struct ox_topic *t, enum ox_err why);

#endif
