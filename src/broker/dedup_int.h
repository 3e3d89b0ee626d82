// dedup_int.h - deduplication, for this folder's own eyes.
#ifndef BROKER_DEDUP_INT_H
#define BROKER_DEDUP_INT_H

#include "broker/dedup.h"
#include "mledger/cursor.h"

#define DEDUP_NONE INT64_MIN // no sequence id yet

#define DEDUP_STATES(X)                                                    \
    X(OFF)     /* nothing is noted or recognised */                        \
    X(OPENING) /* the cursor is being opened; what is stored is noted */   \
    X(READING) /* likewise, and the log behind the cursor is being read */ \
    X(ON)      /* duplicates are recognised */                             \
    X(ENDING)  /* the cursor is being removed */
enum dedup_state {
#define OX_X(name) DEDUP_##name,
    DEDUP_STATES(OX_X)
#undef OX_X
};

struct ox_dedup {
    struct ox_topic *topic;
    enum dedup_state state;
    bool wanted;              // what the policy says now; followed when the present step is over
    struct ox_map names;      // of struct dedup_name
    struct ox_list order;     // of them, the longest idle first
    struct ox_cursor *cursor; // NULL: not open
    struct ox_pos stored;     // the newest entry that is noted
    uint64_t noted;           // entries since the last snapshot
    struct ox_timer snapshot_timer;
    struct ox_cursor_ack snapshot; // pending while one is being stored
    struct ox_cursor_open open;
    struct ox_ml_read read;
    struct ox_pos at, end; // READING: the next entry, the last one
    uint32_t step;         // READING: entries of one read
    uint64_t damaged;      // READING: entries that could not be read
    struct ox_op remove;
    struct ox_list waiters; // of struct ox_op: those who wait for ON
};

// Changes the state; the edge is asserted.
void dedup_set_state(struct ox_dedup *d, enum dedup_state to, const char *why);
// Notes what the log holds.
void dedup_note(struct dedup_name *n, int64_t last);
// Forgets what is known; names with references stay.
void dedup_forget(struct ox_dedup *d);
// Begins to write a snapshot with the position of the newest entry, unless one is being written or there is nothing new.
void dedup_snapshot(struct ox_dedup *d);
// A new one, OFF, in t->dedup.
struct ox_dedup *dedup_new(struct ox_topic *t);
// Goes where d->wanted says, if no step is under way.
void dedup_follow(struct ox_dedup *d);

#endif
