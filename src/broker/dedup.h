// dedup.h - deduplication: which sequence id of each producer of a topic was stored last, kept in the cursor pulsar.dedup and learned anew from the log behind it.
//
// What is known is what the log holds: an id counts as stored when its append has been acknowledged, or when it was read from the log. The cursor's position
// carries the ids as long properties (Pulsar's format), so that everything up to the position is in them and only what lies behind it is read at the next load.
#ifndef BROKER_DEDUP_H
#define BROKER_DEDUP_H

#include "broker/topic.h"

#define OX_DEDUP_CURSOR "pulsar.dedup"

// What is known of one producer's name. Referenced by connected producers and sends in flight; without references it goes after a time.
struct dedup_name {
    struct ox_map_node by_name; // private: in ox_dedup.names
    struct ox_link link;        // private: in ox_dedup.order, the longest idle first
    int64_t pushed;             // read-only: highest sequence id that was handed to the log; -1: none
    int64_t stored;             // read-only: highest one that is in the log
    uint32_t refs;              // read-only
    uint64_t left_ns;           // private: when the last reference went
    char name[];                // read-only
};

enum dedup_answer {
    DEDUP_NEW,     // not seen: store it
    DEDUP_STORED,  // it is in the log
    DEDUP_PENDING, // it is being stored: its fate is the original's
    DEDUP_PARTLY,  // a batch that begins with what was seen and goes on with what was not
};

// One send, as deduplication sees it.
struct dedup_send {
    uint64_t first, last; // sequence ids of its first and last message
    bool open_chunk;      // a part of a chunked message, not the last one: the message's id counts with the last
};

// Begins deduplication of an open (or loading) topic: opens the cursor and reads the log behind it. op may be NULL. No effect where it is on. Errors: TOPIC_FENCED,
// those of the log (damaged entries are passed, with a warning).
void ox_dedup_start(struct ox_topic *t, struct ox_op *op);
// Ends it; the cursor goes, so that nothing is kept for it. Also where it was never on but the log has the cursor.
void ox_dedup_stop(struct ox_topic *t);
// True if duplicates are recognised now.
bool ox_dedup_is_on(const struct ox_topic *t);
// Writes what is known with the position of the newest entry, before the log closes.
void ox_dedup_save(struct ox_topic *t);
// Frees everything; no reference is left.
void ox_dedup_free(struct ox_topic *t);

// What is known of a name, made if it is not there; with a reference. The topic's dedup must not be NULL.
struct dedup_name *ox_dedup_name(struct ox_topic *t, const void *name, size_t len);
// Gives a reference back.
void ox_dedup_unref(struct ox_topic *t, struct dedup_name *n);
// Looks at a send; DEDUP_NEW: it counts as handed to the log.
enum dedup_answer ox_dedup_check(const struct ox_topic *t, struct dedup_name *n, const struct dedup_send *send);
// It has been stored at pos; sends are told in the order of the log.
void ox_dedup_stored(struct ox_topic *t, struct dedup_name *n, const struct dedup_send *send, struct ox_pos pos);

#endif
