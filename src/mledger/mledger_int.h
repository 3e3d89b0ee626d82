// mledger_int.h - what the files of a managed ledger share; cursor*.c use it for nothing but the state.
#ifndef MLEDGER_MLEDGER_INT_H
#define MLEDGER_MLEDGER_INT_H

#include "mledger/cursor_int.h"
#include "mledger/follow.h"
#include "mledger/mledger.h"
#include "mledger/record.h"

#define ML_MAGIC OX_MAGIC('M', 'L', 'O', 'G')

#define ML_ROLL_HOLD_NS (100 * OX_MS)     // appends wait at most so long for the next ledger of a full one
#define ML_ROLL_PAUSE_NS (1 * OX_SEC)     // after a next ledger could not be made
#define ML_ROLL_RECORD_NS (30 * OX_SEC)   // a record that can't be written for so long fails the log
#define ML_RETRY_NS (100 * OX_MS)         // between two tries of a metadata operation
#define ML_WRITE_TRIES 20                 // of one compare-and-set that turns out to have had no effect
#define ML_READ_ENTRIES_MAX 1024          // asked of a ledger at once
#define ML_ROLL_TRIES 3                   // next ledgers made for one rollover
#define ML_TRIM_CHECK_NS (120 * OX_SEC)   // retention is looked at so often
#define ML_TRIM_SOON_NS (100 * OX_MS)     // after the opening: who has opened it may hold it until then
#define ML_HANDLE_IDLE_NS (60 * OX_SEC)   // a handle that nobody read through for so long is closed
#define ML_LATE_MAX 8                     // reads of one ledger that are over and still without an answer
#define ML_HANDLES_MAX 100                // open ones, all logs together
#define ML_DISCARD_TRIES 3                // deletes of one ledger
#define ML_DISCARD_PAUSE_NS (60 * OX_SEC) // between them
#define ML_INDEX_PROBES 64                // entries looked at, from the end, for the last index

// Where an append is.
enum ml_stage {
    ML_PARKED,  // waits to be handed to a ledger
    ML_SENT,    // its ledger has it
    ML_STORED,  // its ledger holds it
    ML_UNSURE,  // its ledger failed during a rollover: the ledger's true end decides
    ML_REFUSED, // ends with `result`
};

// A change of the record: apply edits a copy of it, one compare-and-set writes that.
struct ml_edit {
    struct ox_op op; // OK: the node holds it. FENCED: somebody else wrote, the log is fenced. Others: certainly no effect
    void (*apply)(struct ml_edit *e, struct ox_record *draft);
    struct ox_mledger *ml; // private
};

// Writes edits one after another.
struct ml_writer {
    struct ox_seq seq;
    struct ox_list queue; // of struct ml_edit, by op.link
    struct ml_edit *edit; // being written
    struct ox_record *draft;
    struct ox_buf value;
    struct ox_meta_put put;
    struct ox_meta_get get;
    struct ox_timer pause;
    int tries; // of the edit being written
};

// What a rollover asks of places.
struct ml_roll_io {
    struct ox_router_create create;
    struct ox_ledger_close close;
    struct ox_ledger_open open;
};

// Replaces the current ledger.
struct ml_roll {
    struct ox_seq seq;
    struct ox_op *op; // of ox_mledger_roll, or NULL
    struct ox_ml_ledger *old;
    struct ml_roll_io *io; // while seq runs
    struct ml_edit edit;
    struct ox_timer hold, pause;
    int64_t old_entries; // at its true end
    uint64_t old_bytes;
    uint64_t closed_ms;
    uint64_t give_up_ns;
    bool in_doubt;   // the node may name the next ledger: its record was written, and the outcome never learned
    bool old_broken; // an append to the old ledger failed: there is no way back to it
    struct ox_ml_ledger *wait_for; // the sequence goes on when no append is with this ledger any more
    bool next_broken;              // an append to the next ledger failed before that was recorded
    int tries;
    uint64_t not_before_ns; // no rollover by itself before
    bool warned;            // no next ledger could be made, and that was logged; until one can
};

// Drops ledgers that nobody needs.
struct ml_trim {
    struct ox_seq seq;
    struct ml_edit edit;
    int64_t upto; // ledgers up to this id go
    struct ox_timer timer;
};

// Ends the log for good.
struct ml_term {
    struct mledger_impl *impl;
    struct ox_seq seq;
    struct ox_list ops; // of whoever asked, by op.link
    bool waiting;       // for the appends in flight
    struct ox_ledger_close close;
    struct ox_ledger_open open;
    struct ml_edit edit;
    struct ox_timer pause;
    uint64_t closed_ms;
    uint64_t give_up_ns;
};

struct ml_intent; // deletes.h

// Ends the log.
struct ml_ending {
    struct mledger_impl *impl;
    struct ox_seq seq;
    struct ox_op *op;
    bool remove;
    bool waiting;      // for the log to be quiet
    enum ox_err first; // first error on the way
    struct ox_op step;
    struct ox_ledger_close close;
    struct ox_ledger_delete del;
    struct ox_meta_del del_node;
    struct ox_timer pause;
    struct ml_edit edit;
    int tries;
    size_t compacted;         // of the compacted ledgers on record, the next one
    size_t ledger, target;    // of the list; which of its locations
    struct ml_intent *intent; // being written
};

struct mledger_impl {
    struct ox_mledger *ml;
    struct ox_record *record; // as the node holds it
    struct ox_kv owner;       // custom metadata of the log's data ledgers
    struct ox_ml_ledger *current, *next;
    struct ox_list pending; // appends handed to a ledger, and refused ones, in order of the calls
    struct ox_list parked;  // those behind them that wait for a ledger
    bool hold;              // appends are parked
    enum ox_err fail_err;   // not OK: no append is taken any more
    bool broken;            // an append has failed: all behind it fail too
    int64_t acked_index;    // index of the last acknowledged message; -1: none
    uint64_t age_share;     // drawn, 0 to 1023: which part of 5 % more than the greatest age its ledgers get
    uint32_t reads;         // in flight
    uint32_t moves;         // relocations and changes of properties in flight
    bool own_retention;     // else the settings' is in force
    int64_t retention_ms, retention_bytes;
    int64_t entries_trimmed; // entries of ledgers that left the list, for numbers that last
    struct ox_op wake;       // wakes waiters
    struct ox_timer age;     // the current ledger's greatest age; while it is `young`, its least
    bool young;              // the current ledger is full, and too young to be replaced
    struct ml_writer writer;
    struct ml_roll roll;
    struct ml_trim trim;
    struct ml_term *term;     // from when it was asked for: no append is taken any more
    struct ml_ending *ending; // from when the log began to end
    struct ml_follower follower;
};

// The hidden half, checked.
struct mledger_impl *ml_impl(const struct ox_mledger *ml);

// state.c
// A log in state OPENING, mapped in the factory; nothing is read yet.
struct ox_mledger *ml_new(struct ox_ml_factory *f, const char *name);
// Releases handles, frees everything. Nothing may be pending (asserted).
void ml_free(struct ox_mledger *ml);
// The one setter: asserts the edge, logs it.
void ml_set_state(struct ox_mledger *ml, enum ox_ml_state state, const char *why);
// True if the table of transitions has an edge.
bool ml_state_allows(enum ox_ml_state from, enum ox_ml_state to);
// The name of a state.
const char *ml_state_name(enum ox_ml_state state);
// The log takes no more appends: FENCED if err is FENCED or SESSION_EXPIRED, else FAILED. What waits ends with err, in order.
void ml_fail(struct ox_mledger *ml, enum ox_err err, const char *why);
// The closing sequence looks again whether the log is quiet.
void ml_poke(struct ox_mledger *ml);
// The greatest age of the log's ledgers, by the settings in force.
uint64_t ml_age_max_ns(const struct mledger_impl *impl);
// True while the log works: OPEN or ROLLING.
bool ml_is_open(const struct ox_mledger *ml);

// list.c
// A ledger at the end of the list.
struct ox_ml_ledger *ml_list_add(struct ox_mledger *ml, struct ox_location where);
// Takes a ledger that is in no list any more out of memory.
void ml_ledger_free(struct ox_ml_ledger *l);
// A sealed ledger is somewhere else from now on: later reads open it there, those in flight end with the handle that they have. Returns what stands for it now.
struct ox_ml_ledger *ml_list_relocate(struct ox_mledger *ml, struct ox_ml_ledger *l, struct ox_location to);
// Takes a ledger out of the list; it is freed with its last pin.
void ml_list_remove(struct ox_mledger *ml, struct ox_ml_ledger *l);
// Index of the first ledger with an id at or above `id`; ledger_count if there is none.
size_t ml_list_at(const struct ox_mledger *ml, int64_t id);
// Counts before each ledger and totals, after any change of the list or of sealed counts.
void ml_list_count(struct ox_mledger *ml);
// The largest id in the list, or -1.
int64_t ml_list_max(const struct ox_mledger *ml);
// The number of an entry (entries before it, trimmed ones included), and back.
int64_t ml_number_of(const struct ox_mledger *ml, struct ox_pos p);
struct ox_pos ml_position_of(const struct ox_mledger *ml, int64_t number);
// True if reads pass a ledger.
bool ml_is_skipped(const struct ox_mledger *ml, const struct ox_ml_ledger *l);

// handles.c
// Keeps a handle to read through; closed when it has been unused for long. Taken over.
void ml_handle_keep(struct ox_ml_ledger *l, struct ox_ledger *take_handle);
// A read begins or ends to use a ledger. unpin may free it.
void ml_handle_pin(struct ox_ml_ledger *l);
void ml_handle_unpin(struct ox_ml_ledger *l);
// The factory's timer: closes what is unused.
void ml_handles_tick(struct ox_timer *t);
// Releases the handle, if there is one.
void ml_handle_release(struct ox_ml_ledger *l);

// writer.c
void ml_writer_init(struct ox_mledger *ml);
void ml_writer_fini(struct ox_mledger *ml);
// Queues an edit; e->apply must be set, e->op initialised.
void ml_edit_start(struct ox_mledger *ml, struct ml_edit *e);
// For apply functions: appends an open ledger, stamped where stamps are on; and notes the last index given out to acknowledged messages.
void ml_edit_append(struct ox_mledger *ml, struct ox_record *draft, struct ox_location where);
void ml_edit_index(struct ox_mledger *ml, struct ox_record *draft);

// append.c
// Hands parked appends to their ledger unless they are held; finishes what is decided.
void ml_append_flow(struct ox_mledger *ml);
// What the true end of the old ledger decides: entries below are stored. Returns true if some append has to go to another ledger.
bool ml_append_settle(struct ox_mledger *ml, const struct ox_ml_ledger *old, int64_t entries);
// Parks, in order, everything that isn't stored in `old`; nothing of it may be with a ledger any more.
void ml_append_park(struct ox_mledger *ml, const struct ox_ml_ledger *old);

// roll.c
void ml_roll_init(struct ox_mledger *ml);
void ml_roll_fini(struct ox_mledger *ml);
// Starts a rollover if the current ledger is full or old.
void ml_roll_check(struct ox_mledger *ml);
// True if ml_roll_check may have something to do at an append; it spares that a look at the clock, for the age has a timer.
bool ml_roll_is_due(const struct mledger_impl *impl);
// Goes on if the sequence waits for appends to a ledger to be over.
void ml_roll_drained(struct ox_mledger *ml);

// trim.c
void ml_trim_init(struct ox_mledger *ml);
// Looks a little later what may be trimmed.
void ml_trim_soon(struct ox_mledger *ml);
void ml_trim_fini(struct ox_mledger *ml);

// terminate.c
// Goes on if it waits for the log to be quiet.
void ml_term_poke(struct ox_mledger *ml);

// waiter.c
// Wakes waiters that have something to see, from the loop.
void ml_wake(struct ox_mledger *ml);
void ml_wake_done(struct ox_op *op);

// discard.c
// Deletes a ledger that no record names any more, in the background, owner checked, several tries; if its place isn't open, or they are used up, a node
// under /oxbow/deletes keeps the intent. `owner` is copied.
void ml_discard(struct ox_ml_factory *f, struct ox_location where, const struct ox_kv *owner);
// Likewise a copy of the ledger with the logical id `id`; its place may be one that is not registered any more.
void ml_discard_copy(struct ox_ml_factory *f, const struct ox_copy *copy, int64_t id, const struct ox_kv *owner);
// Likewise all of them.
void ml_discard_copies(struct ox_ml_factory *f, const struct ox_copies *copies, int64_t id, const struct ox_kv *owner);
// True while such a delete is being tried or pauses before another try.
bool ml_is_discarded(const struct ox_ml_factory *f, struct ox_location where);
// How many deletes in a place, by its name, are being tried or pause before another try.
size_t ml_discard_count(const struct ox_ml_factory *f, const char *place);
// Forgets what waits for another try; the next start's sweep deletes it.
void ml_discard_fini(struct ox_ml_factory *f);

// header.c
// Writes the broker entry metadata of an append at `out`; returns its length.
size_t ml_header_put(uint8_t out[48], uint64_t wall_ms, uint64_t index);
// The index in an entry's header; false if it has none.
bool ml_header_index(struct ox_buf entry, uint64_t *ret_index);

#endif
