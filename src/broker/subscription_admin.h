// subscription_admin.h - what an administrator does to a subscription beside seeking and removing it.
#ifndef BROKER_SUBSCRIPTION_ADMIN_H
#define BROKER_SUBSCRIPTION_ADMIN_H

#include "broker/subscription.h"
#include "io/seq.h"

// Makes a durable subscription without a consumer. Errors: EXISTS, INVALID (the name is empty), NOT_ALLOWED (a name that the broker keeps for itself,
// a policy's limit of subscriptions, or a topic without a log), TOPIC_FENCED, those of the log.
struct ox_subscription_create {
    struct ox_op op;
    const char *name;               // in: borrowed until done
    struct ox_pos from;             // in: the first entry to be delivered; OX_POS_EARLIEST, OX_POS_LATEST allowed
    const struct ox_kv *properties; // in: borrowed until done; may be NULL
    struct ox_subscription *sub;    // private
    struct ox_cursor_open open;     // private
};
void ox_subscription_create(struct ox_topic *t, struct ox_subscription_create *op);

// Acknowledges the next messages that are not, for everybody. Errors: BUSY (it is being moved or removed), NOT_ALLOWED (a topic without a log), TOPIC_FENCED, those of the log.
struct ox_subscription_skip {
    struct ox_op op;
    uint64_t count;              // in: entries; UINT64_MAX: all there are now
    bool to_position;            // in: everything up to `upto` instead
    struct ox_pos upto;          // in
    struct ox_subscription *sub; // private
    struct ox_cursor_ack ack;    // private
};
void ox_subscription_skip(struct ox_subscription *s, struct ox_subscription_skip *op);

// Replaces the subscription's properties. Errors: as ox_subscription_skip.
struct ox_subscription_properties {
    struct ox_op op;
    const struct ox_kv *properties; // in: borrowed for the call
    struct ox_topic *topic;         // private
    struct ox_op step;              // private
};
void ox_subscription_set_properties(struct ox_subscription *s, struct ox_subscription_properties *op);

// Marks a subscription as one whose state is to be replicated, or takes the mark away: kept with its position. Errors: as ox_subscription_skip.
struct ox_subscription_replicate {
    struct ox_op op;
    bool replicated;           // in
    struct ox_topic *topic;    // private
    struct ox_cursor_ack step; // private
};
void ox_subscription_replicate(struct ox_subscription *s, struct ox_subscription_replicate *op);

// Looks through what a subscription has not acknowledged, from a position on, and counts it; nothing is consumed. Portions are read one after another, the loop has turns between
// them. Errors: SUBSCRIPTION_NOT_FOUND (it went meanwhile), NOT_ALLOWED (a topic without a log), TOPIC_FENCED, those of the log.
struct ox_backlog_analysis {
    struct ox_op op;
    const char *name;          // in: of the subscription; borrowed until done
    bool has_from;             // in: false: from the first entry that is not acknowledged on
    struct ox_pos from;        // in: the first entry, acknowledged or not; behind the end: nothing is counted
    uint64_t entries_max;      // in: it stops there
    uint64_t time_max_ms;      // in: or when so much time has passed
    uint64_t entries;          // result
    uint64_t messages;         // result: in them
    struct ox_pos first, last; // result: the first and the last entry counted; entry -1: none
    bool aborted;              // result: it stopped early
    uint64_t began_ns;         // private
    struct ox_pos next;        // private
    struct ox_topic *topic;    // private
    struct ox_ml_read read;    // private
    struct ox_timer rest;      // private: between two portions
    struct ox_seq seq;         // private
};
void ox_backlog_analyze(struct ox_topic *t, struct ox_backlog_analysis *op);

// Empties a topic: every durable subscription acknowledges all there is now, then the log trims itself. Errors: TOPIC_FENCED, NOT_ALLOWED (a topic without a log), BUSY
// (a subscription is being moved or removed), those of the log.
struct ox_topic_truncate {
    struct ox_op op;
    struct ox_topic *topic;           // private
    char **names;                     // private: of its subscriptions when it began
    size_t count, at;                 // private
    struct ox_subscription_skip skip; // private
    struct ox_op step;                // private
    struct ox_seq seq;                // private
};
void ox_topic_truncate(struct ox_topic *t, struct ox_topic_truncate *op);

#endif
