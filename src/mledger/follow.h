// follow.h - logs and cursors that write elsewhere than in the active place, brought there a few at a time (for this folder only; places.h is the door).
#ifndef MLEDGER_FOLLOW_H
#define MLEDGER_FOLLOW_H

#include "mledger/factory.h"

#define ML_FOLLOW_SLICE 256              // followers looked at in one turn of the loop
#define ML_FOLLOW_YIELD_NS (OX_MS / 5)   // between two slices, so that others have their turn
#define ML_FOLLOW_RETRY_NS (1 * OX_SEC)  // after a rollover has failed, until that one is tried again
#define ML_FOLLOW_PROBE_NS (100 * OX_MS) // while nothing but failures is seen: one rollover, then so long a pause

// Where a follower is.
enum ml_follow_state {
    ML_FOLLOW_IDLE, // writes where it should, or cannot be rolled over now: what it is busy with looks again at its end
    ML_FOLLOW_QUEUED,  // waits for its turn
    ML_FOLLOW_RUNNING, // its rollover runs
    ML_FOLLOW_PAUSED,  // has failed, waits for another try
};

// What can follow: embedded in each log and each durable cursor.
struct ml_follower {
    struct ox_link all;     // in ml_follow.all
    struct ox_link turn;    // in ml_follow.queue or .paused
    struct ox_op op;        // of the rollover
    struct ox_list waiting; // operations (of whoever asked for this one) that wait for the end of the rollover
    struct ox_ml_factory *factory;
    enum ml_follow_state state;
    bool is_cursor;
    bool warned;       // its failure has been logged since it last worked
    enum ox_err err;   // of the last try; OK: it has not failed
    uint64_t again_ns; // while PAUSED
};

// Of a factory.
struct ml_follow {
    struct ox_ml_factory *factory;
    struct ox_list all;             // every follower, in order of opening
    struct ox_list queue;           // those whose turn comes
    struct ox_list paused;          // those that have failed, the longest ago first
    struct ox_link *scan;           // the next in `all` to be looked at; NULL: all have been
    struct ox_timer slice, again;   // the next slice of the scan; the next try
    uint32_t running;               // rollovers
    uint32_t failures;              // one after another, without one that worked
    uint64_t probe_ns;              // while nothing works: no start before
    bool held;                      // ox_ml_follow_pause
    const struct ml_follower *last; // whose failure was the last one, while it is there
    struct ox_metric rolled, failed;
    struct ox_list moves;  // struct ox_ml_cursor_move that wait for others to end, by op.link
    uint32_t moves_active; // of logs that are not open
};

// Of the factory's life; at its end no log is open.
void ml_follow_init(struct ox_ml_factory *f);
void ml_follow_fini(struct ox_ml_factory *f);

// Of a log's or durable cursor's life. At its end no rollover may be running (asserted); whoever waits for one is answered `err`.
void ml_follower_init(struct ml_follower *w, struct ox_ml_factory *f, bool is_cursor);
void ml_follower_fini(struct ml_follower *w, enum ox_err err);
// Whatever may have left it elsewhere, or kept it from following, is over: queues it if it writes elsewhere. O(1).
void ml_follower_check(struct ml_follower *w);
// Its rollover runs now, whatever the others do; op ends with it. OK if there was nothing to do, BUSY if it can't be rolled over now.
void ml_follower_now(struct ml_follower *w, struct ox_op *op);

#endif
