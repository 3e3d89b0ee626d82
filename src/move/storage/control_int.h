// control_int.h - private state of the half that decides: registry, directive, stages. Not for data.c and its kin.
#ifndef MOVE_STORAGE_CONTROL_INT_H
#define MOVE_STORAGE_CONTROL_INT_H

#include "move/storage/records.h"

// ---- put.c: a write whose outcome is always known in the end

// A put at an expected version (or OX_META_ABSENT). OK: the node holds these bytes (also if it did already), `version` is its version. An unknown outcome is
// re-read, a store that cannot be reached is tried again once a second for half a minute (not while stopping). BAD_VERSION: the node holds something else.
struct storage_put {
    struct ox_op op;
    int64_t version; // result
    // private
    struct ox_storage *st;
    char *path;
    struct ox_buf value;
    int64_t expected;
    enum ox_err err;
    uint32_t tries;
    struct ox_seq seq;
    struct ox_meta_put put;
    struct ox_meta_get get;
    struct ox_timer timer;
};
// Starts it; p->op must be initialised. path is copied, give_value taken over.
void storage_put(struct ox_storage *st, struct storage_put *p, const char *path, struct ox_buf give_value, int64_t expected);
// A path below <root>, printf-like, to be freed.
char *storage_path(const struct ox_storage *st, const char *format, ...) __attribute__((format(printf, 2, 3)));

// ---- opening.c: a place is opened and shown to be the one that was registered

struct storage_opening {
    struct ox_op op; // OK: place is set. PLACE_CHANGED: it is another storage. Errors of the opener; of the metadata store (meta_failed)
    struct ox_place *place; // result: the caller's
    bool recorded;          // result: /oxbow/places/<name> holds its identity
    bool meta_failed;       // result: the error is the metadata store's
    struct ox_str why;      // result on errors: the sentence; the caller's to free
    // private
    const struct ox_storage_ports *ports;
    char *name, *uri;
    char identity[OX_IDENTITY_BYTES];
    enum ox_err err;
    struct ox_seq seq;
    struct ox_op op_open;
    struct ox_meta_get get;
};
// Starts it; o is zeroed but for its initialised op. identity "": not known yet. Strings are copied.
void storage_opening_start(const struct ox_storage_ports *ports, struct storage_opening *o, const char *name,
                           const char *uri, const char *identity);
// The path of a place's identity, to be freed (mledger/open_node.c writes and checks it too).
char *storage_identity_path(const char *name);

// ---- ids.c: the largest id in use, and generators that are pushed above it

struct storage_ids {
    struct ox_op op;     // Errors: those of the places (push); place says which
    int64_t largest;     // result: no id above it has been given out anywhere
    int64_t target_next; // result: what the target's generator gave before it was pushed; -1: no target
    int64_t source_next; // result: what the active place's generator gave; -1: it is not open
    uint32_t place;      // result on errors
    // private
    struct ox_storage *st;
    struct ox_place *extra;
    uint32_t target, at;
    struct ox_seq seq;
    struct ox_next_id next;
    struct ox_op push;
};
#define STORAGE_NO_INDEX UINT32_MAX
// Asks every open place (and `extra`, one that is not in the router yet, or NULL) and pushes those of them that lag; target: index of the place that the
// switch would make active, or STORAGE_NO_INDEX. A place other than extra and target that fails is passed over.
void storage_ids_push(struct ox_storage *st, struct storage_ids *ids, struct ox_place *extra, uint32_t target);

// ---- brokers.c: which brokers are there, and which of them have acknowledged an epoch

struct storage_brokers {
    struct ox_op op; // Errors: those of the metadata store
    json_t *acked;   // result: array of names; the caller's
    json_t *missing; // result: array of names; the caller's
    // private
    struct ox_storage *st;
    char *acks_path;
    struct ox_seq seq;
    struct ox_meta_children children;
};
void storage_brokers_ask(struct ox_storage *st, struct storage_brokers *b);
void storage_brokers_fini(struct storage_brokers *b);
// An answer becomes what the status and the metrics say.
void storage_brokers_note(struct ox_storage *st, const struct storage_brokers *b);

// ---- precheck.c

struct storage_precheck {
    struct ox_op op;   // Errors: those of the metadata store, SHUTDOWN
    bool ready;        // result
    json_t *report;    // result: the caller's
    struct ox_str why; // result: the sentences of what failed; the caller's
    // private
    struct ox_storage *st;
    char *target;
    bool supersede;
    struct ox_seq seq;
    struct storage_ids ids;
    struct storage_brokers brokers;
    struct ox_meta_get get;
    struct storage_opening opening;
    struct ox_op close_place;
    struct ox_next_id next;
    struct ox_ledger_create create;
    struct ox_ledger_open reopen;
    struct ox_ledger_close close;
    struct ox_ledger_delete del;
    struct ox_append append;
    struct ox_read read;
    struct ox_ledger *writer, *reader;
    struct ox_ml_walk walk;
    bool walking;
    int64_t canary;
    uint64_t begun_ns, bytes;
    struct ox_kv custom;
    struct ox_str trouble;
};
// Starts it; k is zeroed but for its initialised op.
void storage_precheck_run(struct ox_storage *st, struct storage_precheck *k, const char *target, bool supersede);
void storage_precheck_fini(struct storage_precheck *k);

// ---- targets.c

// Reads all records of targets; what differs from what is known is taken over, and open logs follow.
struct storage_targets_load {
    struct ox_op op; // Errors: those of the metadata store; CORRUPT, CONFLICT (nothing is taken over then, why says which record)
    struct ox_str why; // result; the caller's
    // private
    struct ox_storage *st;
    uint64_t changes;
    struct ox_seq seq;
    struct ox_meta_children children;
    struct ox_meta_get get;
    size_t at;
    struct ox_map fresh;
};
// Starts it; l is zeroed at first, but for its initialised op.
void storage_targets_load(struct ox_storage *st, struct storage_targets_load *l);
void storage_targets_fini(struct ox_storage *st);

// ---- the control half's state

// The loop that keeps the directive followed: watch.c.
struct storage_watch {
    struct ox_seq seq;
    struct ox_storage *st;
    bool again;   // something has happened meanwhile: once more
    bool running; // started and not stopped
    struct ox_timer timer;
    struct ox_meta_watch watch;
    struct ox_meta_listener listener;
    struct ox_meta_get get;
    struct ox_meta_put put;
    struct ox_meta_del del;
    struct ox_meta_children children;
    struct storage_put save;
    struct storage_opening opening;
    struct storage_brokers brokers;
    struct storage_targets_load targets;
    char **names; // entries being looked at
    size_t name_count, name_at;
    uint32_t place_at;
    struct storage_directive next;              // read, about to be followed
    uint64_t opened_ns;                         // last time at which closed places were tried
    int64_t acked, acking, acked_before, asked; // epochs; -1: none
    char *opening_name;
    struct ox_op close;
    bool moved; // the entry of the bootstrap place is to be corrected
    bool deleted_alarm, bootstrap_alarm, follow_alarm, stale_alarm, corrupt_alarm, target_alarm; // said already
};

// Writes the header and the failures, the last state wins: header.c.
struct storage_saver {
    struct ox_seq seq;
    struct ox_storage *st;
    bool wanted, failed_once;
    bool failures_noted; // the node of failures is not empty
    struct storage_put put;
    struct ox_meta_get get;
    struct ox_timer timer;
    char *switch_id;        // of what is being written
    struct ox_list waiting; // ops of storage_header_wait
    json_t *raw;            // what the header's node held, or NULL
};

// ---- census.c: what is where

struct storage_count {
    int64_t guarded;   // logs whose records Pulsar refuses
    int64_t elsewhere; // ledgers and copies outside the active place
    int64_t unstamped; // ledgers that have lost their stamp
    char *log;         // private: the last guarded one
};
void storage_count_begin(struct storage_count *c);
// True for a ledger that was made after the bootstrap and whose record does not say where it is: it may be in any place, and must not be deleted from any.
bool storage_lost_stamp(const struct ox_storage *st, const struct ox_ml_found *f);
void storage_count_add(const struct ox_storage *st, struct storage_count *c, const struct ox_ml_walk *walk,
                       const struct ox_ml_found *f);
// whole: everything was seen, the figures become those of the status.
void storage_count_end(struct ox_storage *st, struct storage_count *c, bool whole);

// A walk that only counts.
struct storage_census {
    struct ox_seq seq;
    struct ox_storage *st;
    struct ox_ml_walk walk;
    struct storage_count count;
};
// Starts it if none is under way.
void storage_census_start(struct ox_storage *st);

// ---- cursors.c: the metadata stage

// Walks over all logs and brings every cursor out of places other than the active one, in passes: until none is left, or until only failures are. Counts what is
// where on the way.
struct storage_cursors {
    struct ox_op op; // OK: over; CANCELED: the switch is paused, aborted, superseded, or the broker stops. Errors: those of the metadata store
    // private
    struct ox_storage *st;
    int64_t epoch;
    struct ox_seq seq;
    struct ox_timer timer;
    struct ox_ml_walk walk;
    bool walking;
    size_t at;                                  // in walk.found
    uint32_t in_flight;                         // moves
    bool waiting;                               // for one of them
    uint64_t found, moved, later, failed, base; // in this pass; base: done before it
    uint32_t failed_passes;                     // in a row in which nothing but failures was left
    struct storage_count count;
};
void storage_cursors_run(struct ox_storage *st, struct storage_cursors *c);
// Ends its pause, so that it sees that it has to stop.
void storage_cursors_wake(struct storage_cursors *c);

// The stages of the present switch: orchestrate.c.
struct storage_stages {
    struct ox_seq seq;
    struct ox_storage *st;
    bool again;
    int64_t epoch; // that it works for
    char *switch_id;
    uint64_t lease_session; // that holds the lease; 0: none
    struct ox_timer timer;
    struct ox_meta_put put;
    struct ox_meta_get get;
    struct storage_brokers brokers;
    struct storage_cursors cursors;
    struct ox_op op;
};

struct storage_control {
    const char *busy; // the verb that changes registry or directive now, or NULL
    struct storage_bootstrap bootstrap;
    struct storage_watch watch;
    struct storage_saver saver;
    struct storage_stages stages;
    struct storage_census census;
    bool interrupted; // entries without a bootstrap record: a registration was cut off
    bool restore;     // the directive was not there, it was found again by the orchestrator's header: to be written
    json_t *acked, *missing;    // brokers, as last asked; NULL: not yet
    int64_t guarded, elsewhere; // as counted by the last walk; -1: not yet
    bool swapped;
    struct ox_metric epoch, lag, duration, alarms;
    struct ox_metric switch_ok, switch_refused, switch_lost;
    struct ox_metric items[3][3]; // stage (writes, metadata, data) by state (done, left, failed)
};

// ---- storage.c
// Tells the factory whether records are stamped, and from which id on that is certain.
void storage_stamp(struct ox_storage *st);
// Finishes the stop if nothing is in work any more.
void storage_settle(struct ox_storage *st);
// A place of ours; the caller sets index. uri may be NULL. Strings are copied.
struct storage_place *storage_place_new(struct ox_storage *st, const char *name, const char *uri, const char *identity);
void storage_place_free(struct ox_storage *st, struct storage_place *p);
// Takes what its node says over into a place (uri and identity only where they are not known); the entry is taken over.
void storage_place_take(struct storage_place *p, struct storage_entry *take_entry, int64_t version);
// Metrics and read mode as the present active place has it.
void storage_refresh(struct ox_storage *st);
// Takes the verb's turn; false (and answered CONFLICT) if another one is at work.
bool storage_turn_take(struct ox_storage *st, struct ox_storage_call *c, const char *verb);
void storage_turn_give(struct ox_storage *st);

// ---- registry.c
json_t *storage_place_json(const struct ox_storage *st, const struct storage_place *p);
// What a place's status should be: ACTIVE, STANDBY, DEPRECATED (it was active before). Static.
const char *storage_status(const struct ox_storage *st, const struct storage_place *p);
// Puts an opened place into the router (a new index, or that of its name).
void storage_place_attach(struct ox_storage *st, struct storage_place *p, struct ox_place *take_place);

// ---- watch.c
void storage_watch_start(struct ox_storage *st);
void storage_watch_stop(struct ox_storage *st);
// Looks at everything again, soon.
void storage_watch_kick(struct ox_storage *st);
// The directive has changed (written here, or read): makes its target active, which must be open here, and starts what follows from it. d is copied.
void storage_adopt(struct ox_storage *st, const struct storage_directive *d);

// ---- header.c
// Finishes op when the header as the members say now is written (or given up while stopping): OK or SHUTDOWN.
void storage_header_wait(struct ox_storage *st, struct ox_op *op);
// Takes a header's members over (state, moveData, times, throttle).
void storage_header_take(struct ox_storage *st, const struct storage_header *h);
void storage_saver_stop(struct ox_storage *st);
void storage_saver_fini(struct ox_storage *st);

// ---- orchestrate.c
// Ends its pauses, so that it sees that it has to stop or to begin anew.
void storage_stages_stop(struct ox_storage *st);

// ---- failures.c
void storage_failures_clear(struct ox_storage *st);
json_t *storage_failures_json(const struct ox_storage *st);
// How many are noted, those beyond the list's end too.
uint64_t storage_failures_count(const struct ox_storage *st);

#endif
