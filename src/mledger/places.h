// places.h - what a move of storage asks of managed ledgers: where everything is, and to bring it elsewhere. Works on logs that are loaded (through their owner
// in this process) and on those that are not (by compare-and-set on their nodes, without loading them).
#ifndef MLEDGER_PLACES_H
#define MLEDGER_PLACES_H

#include "mledger/factory.h"

// Custom metadata of a ledger that is a copy of another one, beside its owner's. Only a ledger that carries them is taken for a copy; the sweep for orphans
// leaves it alone: whoever moves storage adopts or deletes it.
#define OX_COPY_OF "oxbow/copy-of"         // "place:physical id" of what it was copied from
#define OX_COPY_SWITCH "oxbow/copy-switch" // id of the switch that it was made for
#define OX_COPY_ENTRIES \
    "oxbow/copy-entries" // how many entries it is to have; with fewer, or not closed, it is unfinished

// ---- following the active place

// Every open log whose current ledger, and every open cursor whose ledger, is not in its target (ox_ml_target: the active place, or one of its own) rolls over (make before break), at most
// settings.follow_max at once; what fails is tried again after a pause, until nothing is left. A log or cursor that is opened or recorded later and finds
// itself elsewhere does so by itself. Called when a target has changed; calling it again is harmless.
void ox_ml_follow(struct ox_ml_factory *f);
// Stops starting new rollovers (on), or goes on.
void ox_ml_follow_pause(struct ox_ml_factory *f, bool on);
struct ox_ml_left {
    uint32_t logs, cursors; // open ones that still write elsewhere
    uint32_t failing;       // of them, those whose last rollover failed
    enum ox_err err;        // of the last failure
    char log[256];          // where that was
};
// How much is left to follow. O(open logs and cursors).
void ox_ml_follow_left(const struct ox_ml_factory *f, struct ox_ml_left *ret);

// ---- where everything is

enum ox_ml_kind { OX_ML_KIND_DATA, OX_ML_KIND_CURSOR, OX_ML_KIND_COMPACTED };
// Another complete location of a ledger.
struct ox_ml_copy {
    const char *place; // name, borrowed
    int64_t physical;
    uint64_t since_ms; // wall time at which it stopped being the primary
};
struct ox_ml_found {
    enum ox_ml_kind kind;
    const char *cursor;       // the cursor's name as the client gave it; NULL for data
    const char *place;        // name of the place that its record means; borrowed from the walk
    bool stamped;             // the record says so itself; else it is taken for one of the bootstrap place
    bool known;               // that name is registered: where.place is valid
    struct ox_location where; // logical and physical id
    int64_t entries;          // data: on record, 0 while open
    uint64_t bytes;           // data: on record, 0 while open
    bool open;                // data: not sealed yet (the last one of a log that is loaded, or was not closed)
    const char *digest;       // data: digest on record, or NULL
    const struct ox_ml_copy *copies;
    size_t copy_count;
};
// A walk over all logs of the instance. Bounded memory: names of one level of the tree at a time, at most WALK_ITEMS items a step.
#define OX_ML_WALK_ITEMS 256u
struct ox_ml_walk {
    struct ox_op op; // of each step. Errors: those of the metadata store
    const char *log; // result: name of the log ("public/default/persistent/t"), NULL at the end of the walk
    struct ox_ml_found *found; // result: ledgers of the log, its compacted ones, then cursors that have a ledger; valid until the next step
    size_t count; // result: may be 0
    bool loaded;  // result: the log is open in this process
    enum ox_err log_err; // result: not OK: the log's record (or, with `cursor` set, that cursor's) cannot be understood; count is 0 then
    const char *cursor; // result: see log_err
    void *private_;     // private
};
// Prepares a walk: without cursors it reads the logs' own records only. End it with ox_ml_walk_end, whatever happened.
void ox_ml_walk_begin(struct ox_ml_factory *f, struct ox_ml_walk *w, bool cursors);
// The next portion; a log with many cursors takes several steps (log is the same then).
void ox_ml_walk_next(struct ox_ml_walk *w);
// Frees a walk; no step may be pending.
void ox_ml_walk_end(struct ox_ml_walk *w);
// What a log's (cursor NULL) or a cursor's ledgers carry as custom metadata: for opening, copying and deleting them. Fills ret, the caller frees it.
void ox_ml_owner(const struct ox_ml_factory *f, const char *log, const char *cursor, struct ox_kv *ret);

// ---- bringing it elsewhere

// Brings a cursor's position out of a ledger that is not in its log's target: by a rollover if its log is loaded; else it reads the last position there and
// writes it into the node, where it fits, or into a new ledger there, by one compare-and-set, without loading the log. The ledger that is not
// needed any more is discarded. op OK also if nothing was left to do (already). Errors: NOT_FOUND (log or cursor), CONFLICT (`expected` names another
// ledger), BUSY (the log is being opened or closed: again later), those of the places (nothing has changed then; NO_LEDGER: never taken for an empty cursor).
struct ox_ml_cursor_move {
    struct ox_op op;
    const char *log, *cursor; // in, borrowed until done
    int64_t expected;         // in: the cursor ledger (logical id) that the caller knows; -1: any
    bool already;             // result
    void *private_;           // private
};
void ox_ml_cursor_move(struct ox_ml_factory *f, struct ox_ml_cursor_move *m);

// Whether a log's record names a data location, as primary or copy, when it is asked now: for somebody who could not read what he saw in a walk. A record that
// can't be understood may name it. OK, and not named, if there is no such log any more. Errors: those of the metadata store.
struct ox_ml_named {
    struct ox_op op;
    bool named;                    // result
    const char *log;               // in, borrowed until done
    struct ox_location where;      // in
    struct ox_ml_factory *factory; // private
    struct ox_meta_get get;        // private
};
void ox_ml_named(struct ox_ml_factory *f, struct ox_ml_named *n);

// Makes `to` the primary location of a sealed ledger, by one compare-and-set; what was primary becomes a copy with this moment's time, and `to` stops being
// one. The caller has seen that both hold the same entries. Reads in flight end where they began, later ones use `to`. digest (or NULL) is noted in the record.
// Errors: NOT_FOUND (the log or ledger is gone), CONFLICT (its primary is not `from`, it is not sealed, or `to` is not closed or holds less), BUSY (the log is
// being opened or closed), NO_LEDGER and others of to's place (looked at first: it is not there), UNKNOWN_OUTCOME (ask again: done is CONFLICT then).
struct ox_ml_relocate {
    struct ox_op op;
    const char *log;             // in, borrowed until done
    int64_t ledger;              // in: logical id
    struct ox_location from, to; // in
    const char *digest;          // in, borrowed until done
    void *private_;              // private
};
void ox_ml_relocate(struct ox_ml_factory *f, struct ox_ml_relocate *r);

// Takes a copy out of a ledger's record by one compare-and-set, then deletes it, owner checked. An intent (/oxbow/deletes) is written before: op is OK also
// if the delete is left to that. Errors, nothing was deleted then: NOT_FOUND (log, ledger or copy is not on record; the intent stays), CONFLICT (it is the
// primary now), BUSY.
struct ox_ml_drop_copy {
    struct ox_op op;
    enum ox_err left;  // result: OK, or why the copy could not be deleted yet: the intent waits
    const char *log;   // in, borrowed until done
    int64_t ledger;    // in: logical id
    const char *place; // in: name, borrowed until done
    int64_t physical;  // in
    void *private_;    // private
};
void ox_ml_drop_copy(struct ox_ml_factory *f, struct ox_ml_drop_copy *d);

// Deletes that wait because their place could not be reached, kept as nodes under /oxbow/deletes/<place>/: tries those of one place (which must be open) again;
// owner checked; "no such ledger" from the right place counts as done. op: the first error.
void ox_ml_deletes_retry(struct ox_ml_factory *f, struct ox_op *op, uint32_t place);
// How many of them wait for a place, by its name; deletes that are being tried, or pause before another try, count too.
struct ox_ml_deletes_count {
    struct ox_op op;
    const char *place;                // in, borrowed until done
    size_t count;                     // result
    size_t trying;                    // private
    struct ox_meta_children children; // private
};
void ox_ml_deletes_count(struct ox_ml_factory *f, struct ox_ml_deletes_count *c);

#endif
