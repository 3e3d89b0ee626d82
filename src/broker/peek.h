// peek.h - looking at single entries of a topic, for administrators: nothing is consumed.
#ifndef BROKER_PEEK_H
#define BROKER_PEEK_H

#include "broker/subscription.h"

// Reads the entry at a position. Errors: NO_ENTRY (there is none, or none any more; a topic without a log), TOPIC_FENCED, those of the log.
struct ox_peek {
    struct ox_op op;
    struct ox_pos pos;      // in
    struct ox_entry entry;  // result: the caller's, entry.data to be given back
    struct ox_topic *topic; // private
    struct ox_ml_read read; // private
};
void ox_topic_peek(struct ox_topic *t, struct ox_peek *op);
// The position of a topic's nth entry (from 1), counted from its first or back from its last one; the nearest that there is. {-1, -1}: there is none.
struct ox_pos ox_topic_nth(const struct ox_topic *t, bool from_last, uint64_t n);
// The position of the nth entry (from 1) that a subscription has not acknowledged; {-1, -1}: there are fewer.
struct ox_pos ox_subscription_nth(const struct ox_subscription *s, uint64_t n);

// Finds the first entry that was published at or after a time; where there is none, the position that the next one will have. Errors: NO_ENTRY (a topic without a log),
// TOPIC_FENCED, those of the log.
struct ox_time_find {
    struct ox_op op;
    uint64_t time_ms;       // in
    struct ox_pos pos;      // result
    struct ox_topic *topic; // private
    struct ox_ml_find find; // private
};
void ox_topic_find_time(struct ox_topic *t, struct ox_time_find *op);

#endif
