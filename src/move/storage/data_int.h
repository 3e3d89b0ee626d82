// data_int.h - what the files of the data half share: where ledgers are copied, verified and deleted.
#ifndef MOVE_STORAGE_DATA_INT_H
#define MOVE_STORAGE_DATA_INT_H

#include "base/digest.h"
#include "base/limits.h"
#include "mledger/mledger.h"
#include "move/storage/storage_int.h"
#include "move/storage/throttle.h"

#define DATA_RANGE_BYTES (1024u * 1024u)        // read at once
#define DATA_RANGE_ENTRIES 4096u                // likewise
#define DATA_SCAN_BYTES (8u * 1024u * 1024u)    // of one ledger: read and not yet stored or compared
#define DATA_FLYING_BYTES (32u * 1024u * 1024u) // of all ledgers
#define DATA_ENTRY_COST 512u                    // what an entry on the fly takes beside its bytes
#define DATA_HASH_INLINE (32u * 1024u)          // up to here a digest is computed at once, beyond it on the pool
#define DATA_TICK_NS (100 * OX_MS)              // looks at clients' latency and at the rate
#define DATA_YIELD_MIN (1024u * 1024u)          // bytes a second that copying keeps while it yields
#define DATA_BLOCKED_NS (10 * OX_SEC)           // until the next look at a place that takes no copies
#define DATA_TRIES 3                            // passes in which a failed ledger is tried
#define DATA_BUSY_TRIES 20                      // of a record whose log is being opened or closed
#define DATA_BUSY_NS (250 * OX_MS)              // between them
#define DATA_FAILED_MAX 20000u                  // failed ledgers that a run remembers
#define DATA_LIST_PAGE 256u                     // ledgers of a place listed at once
#define DATA_WINDOW 8192u                       // copies compared with the records in one walk
#define DATA_ITEMS_MAX 10000u                   // items of one answer

struct data_run;

// A counter with labels, made when it is first counted.
struct data_metric {
    struct ox_metric metric;
    struct ox_link link;
};

// The half's own state: lives from first use until storage_data_fini.
struct storage_data {
    struct ox_storage *st;
    struct throttle copy, verify; // each with the whole rate: what is compared was copied at it
    struct ox_budget flying;
    struct ox_list parked; // struct data_scan that wait for room in it
    struct data_run *run;  // the data stage, or NULL
    uint32_t sweeps;       // searches for unfinished copies; none while the stage runs and the reverse
    // pace.c
    struct ox_timer tick;
    uint32_t paced;               // by so many jobs
    uint64_t yield;               // bytes a second while clients' appends take long; 0: as configured
    uint64_t yield_from;          // the rate at which yielding began
    uint64_t rate;                // bytes a second, measured
    uint64_t seen_bytes, seen_ns; // at the last tick
    int64_t seen_appends;
    uint64_t ticks;          // since pacing began
    uint64_t ranks;          // copies begun
    struct ox_list labelled; // struct data_metric
    struct ox_metric m_entries, m_throttle, m_eta;
};

// pace.c
// The half's state, made at the first call.
struct storage_data *data_get(struct ox_storage *st);
// Applies st->bytes_per_s and ops_per_s.
void data_throttle_apply(struct storage_data *d);
// Begins, or ends, the tick.
void data_pace_start(struct storage_data *d);
void data_pace_stop(struct storage_data *d);
// Counts n under a name (static) and labels.
void data_count(struct storage_data *d, const char *name, const char *help, const char *labels, int64_t n);
// The same for a gauge: sets it.
void data_gauge(struct storage_data *d, const char *name, const char *help, const char *labels, int64_t value);
// Counts a ledger that could not be copied.
void data_count_error(struct storage_data *d, enum ox_err reason);
// Seconds that bytes take at the rate that holds: configured, else measured; -1: not known.
int64_t data_seconds(const struct storage_data *d, uint64_t bytes, uint64_t bytes_per_s);

// ---- scan.c: reads all entries of a ledger in order and computes their digest
struct data_scan;
// Neighbouring entries on the fly. Held by the digest and by the sink.
struct data_range {
    struct data_scan *scan;
    int64_t first;
    struct ox_buf *entries;
    size_t count;
    uint64_t bytes;   // of entries
    uint64_t charged; // of the budget
    uint32_t refs;
    struct ox_job job;
    struct ox_link link; // in scan->hashing
};
struct data_scan {
    struct ox_op op; // Errors: those of reads (NO_ENTRY: an entry is missing), CANCELED (go_on said no), and what data_scan_fail said
    struct storage_data *d;                                  // in
    struct ox_ledger *ledger;                                // in
    int64_t count;                                           // in: entries 0..count-1 are read
    struct throttle *throttle;                               // in
    bool (*go_on)(void *ctx);                                // in
    void *ctx;                                               // in
    void (*sink)(struct data_scan *s, struct data_range *r); // in, or NULL: gets each range, in order, with a reference
    int64_t entry;                                           // result: on an error the entry at fault, else count
    uint64_t bytes;                                          // result: of all entries
    char digest[OX_DIGEST_TEXT_BYTES];                       // result
    char where[160];                                         // result on CORRUPT
    struct ox_seq seq;                                       // private
    struct ox_digest hash;                                   // private
    struct ox_read read;                                     // private
    struct throttle_wait wait;                               // private; its rank is in
    int64_t next;                                            // private
    uint64_t asked, asked_ops;                               // private: of the throttle and, with costs, of the budget
    uint64_t flying;                                         // private: charged by this scan
    uint32_t ranges;                                         // private: alive
    struct ox_list hashing; // private: ranges that wait for the digest, the first one is with the pool
    enum ox_err err;        // private
    bool single, parked;    // private
    struct ox_link link;    // private: in d->parked
};
// Starts; op must be initialised.
void data_scan_start(struct data_scan *s);
// The sink can't go on: the scan ends with err when nothing of it is on the fly any more.
void data_scan_fail(struct data_scan *s, enum ox_err err);
// Gives a reference on a range back.
void data_range_unref(struct data_range *r);

// ---- copy.c: one ledger from one place to another
struct data_copy {
    struct ox_op op;                    // OK: a complete, closed copy that holds the same entries
    struct storage_data *d;             // in
    const char *log;                    // in, borrowed until done
    struct ox_location from;            // in
    uint32_t to;                        // in: place
    int64_t physical;                   // in: id under which an earlier run may have left it; -1: the logical id
    int64_t entries;                    // in: on record
    const char *expected;               // in: digest on record, or NULL; borrowed until done
    bool (*go_on)(void *ctx);           // in
    void *ctx;                          // in
    struct ox_location made;            // result
    int64_t real_entries;               // result: as the place has them
    uint64_t bytes;                     // result: copied (0 if adopted)
    char digest[OX_DIGEST_TEXT_BYTES];  // result
    bool adopted;                       // result: an earlier run had made it
    bool at_target;                     // result on error: the target is what failed
    int64_t bad_entry;                  // result on error: the entry at fault; -1: none in particular
    struct ox_str why;                  // result on error: sentence; freed by data_copy_fini
    struct ox_seq seq;                  // private
    struct ox_kv custom;                // private: owner and marker
    struct ox_kv owner;                 // private
    struct ox_ledger *source, *target;  // private
    struct ox_ledger_open open;         // private
    struct ox_router_create create;     // private
    struct ox_ledger_close close;       // private
    struct ox_ledger_delete del;        // private
    struct data_scan scan;              // private
    struct ox_op scan_done, close_done; // private
    uint64_t rank;                      // private: among copies
    int64_t appended;                   // private: entries handed to the target
    uint32_t joins;                     // private: of scan and close, those not over
    enum ox_err close_err, err;         // private
    bool have_target, recover;          // private
};
// Starts; op must be initialised.
void data_copy_start(struct data_copy *c);
// Frees the result.
void data_copy_fini(struct data_copy *c);
// Deletes what a copy has made (made, owner and marker): for one that no record will name. op of the caller's.
void data_copy_delete(struct data_copy *c, struct ox_ledger_delete *del);

// What tells a copy of `from` apart: owner's metadata and the marker. entries < 0: without their number (for opening and deleting).
void data_marker(const struct ox_storage *st, struct ox_kv *kv, const char *log, struct ox_location from, int64_t entries);
// Reads a ledger's marker. False: it is no copy of this instance's. *ret_complete: closed, with all the entries it is to have. *ret_id: the id of what it was copied from.
bool data_marker_read(const struct ox_storage *st, const struct ox_ledger_info *info, bool *ret_complete, int64_t *ret_id);

// ---- walk.c: one walk over everything
struct data_walk {
    struct ox_op op; // Errors: those of the metadata store, SHUTDOWN
    struct ox_storage *st;
    void (*visit)(void *ctx, const struct ox_ml_walk *w); // in: a step's result
    void *ctx;                                            // in
    struct ox_ml_walk walk;                               // private
    struct ox_seq seq;                                    // private
};
// Starts; op must be initialised. Ends with SHUTDOWN when the storage is stopping.
void data_walk_start(struct data_walk *w, bool cursors);

// ---- leftovers.c: copies that no record names
// One finished copy under another id than its source's, for somebody who makes the same copy again.
struct data_remapped {
    struct ox_map_node node; // by `of`
    char *of;                // "place:physical id"
    int64_t physical;
};
// Goes through the ledgers of a place: unfinished copies are deleted, finished ones under other ids than their source's are noted in `remapped` (NULL: not
// wanted). Only while no copy is being made. Errors: those of listing; a delete that fails is logged.
struct data_leftovers {
    struct ox_op op;
    struct ox_storage *st;
    uint32_t place;
    struct ox_map *remapped;
    struct ox_seq seq;           // private
    struct ox_ledger_list list;  // private
    size_t at;                   // private
    struct ox_ledger_delete del; // private
};
// Starts; op must be initialised.
void data_leftovers_start(struct data_leftovers *l);
// Frees what was noted.
void data_remapped_fini(struct ox_map *remapped);

// ---- data_job.c: one ledger of the data stage
enum data_outcome {
    DATA_MOVED,    // its primary is in the target
    DATA_GONE,     // its log or it was deleted meanwhile
    DATA_LATER,    // its log is busy
    DATA_LOST,     // its place does not know it: only the next pass tells if the record still does
    DATA_BLOCKED,  // the target takes nothing now
    DATA_FAILED,   // may work another time
    DATA_REFUSED,  // its bytes are damaged or missing: trying again is no use
    DATA_CANCELED, // the run is ending
};
struct data_job {
    struct ox_op op;                // always OK: see outcome
    struct data_run *run;           // in
    char *log;                      // in, owned
    struct ox_location from;        // in
    int64_t entries;                // in: on record
    uint64_t bytes;                 // in: on record
    char *digest;                   // in, owned: on record, or NULL
    bool flip;                      // in: `to` is a complete copy on record
    bool compacted;                 // in: a compacted ledger: its topic makes another one
    bool seal;                      // in: the log's last ledger is to be sealed, nothing else
    struct ox_location to;          // in: place, and with flip the ids
    int64_t physical;               // in: as data_copy
    enum data_outcome outcome;      // result
    enum ox_err err;                // result
    int64_t bad_entry;              // result
    struct ox_str why;              // result
    struct ox_seq seq;              // private
    struct data_copy copy;          // private
    struct ox_ledger_open open;     // private
    struct ox_ml_relocate relocate; // private
    struct ox_ledger_delete del;    // private
    struct ox_ml_open log_open;     // private
    struct ox_op log_close;         // private
    struct ox_timer pause;          // private
    int tries;                      // private
    bool copied;                    // private
};
// Starts; op must be initialised.
void data_job_start(struct data_job *j, struct storage_data *d);
// Frees job and result.
void data_job_free(struct data_job *j);
// True while the run goes on.
bool data_run_goes_on(void *run);

#endif
