// storage_int.h - what the files of this folder share.
#ifndef MOVE_STORAGE_STORAGE_INT_H
#define MOVE_STORAGE_STORAGE_INT_H

#include "mledger/places.h"
#include "move/storage/storage.h"

#define STORAGE_NAME_MAX 64
#define STORAGE_REREAD_NS (10 * OX_SEC) // a watch is a hint: the directive is read again so often
#define STORAGE_RETRY_NS (1 * OX_SEC)   // after something that may pass
#define STORAGE_KEEP_FREE \
    (512u * 1024u * 1024u)        // of a place that copies go to (a quarter of a smaller one): for clients
#define STORAGE_FAILURES_MAX 1000 // kept with their reasons; the others are counted

// One registered place.
struct storage_place {
    char *name, *uri; // uri is canonical
    char identity[OX_IDENTITY_BYTES];
    char *status; // as its node says; a view, never read to decide anything
    json_t *raw; // its node with the fields that are unknown here; NULL: not recorded yet (the bootstrap place before activation)
    int64_t version; // of its node; -1: not recorded
    uint32_t index;  // in the router
    bool opened; // was open in this process: if it is not now, somebody closed it (close_client); a switch to it opens it again
    struct ox_metric active;                       // bookie_cluster_active
    struct ox_metric data_ledgers, cursor_ledgers; // bookie_cluster_ledgers, as the last inventory has found
    struct ox_map_node by_name;
};

// The directive as last read or written. version -1: there is none.
struct storage_directive {
    int64_t version, epoch;
    char *target, *previous, *origin, *switch_id; // previous NULL: not known
    uint64_t ts_ms;
    bool partial; // epoch or switchId were not in the record (another program's): it is to be written again with them
    json_t *raw;  // the record with the fields that are unknown here
};

// The place that a namespace or a topic has for itself.
struct storage_target {
    char *key;       // "tenant/namespace", or the log's name
    char *name;      // as users write it
    uint32_t place;  // index in the router
    int64_t version; // of its node
    struct ox_map_node by_key;
};

enum storage_state {
    STORAGE_NONE,
    STORAGE_RUNNING,
    STORAGE_PAUSED,
    STORAGE_ABORTED,
    STORAGE_DONE,
    STORAGE_DONE_WITH_FAILURES
};

// Something that could not be moved.
struct storage_failure {
    char *topic, *cursor, *place; // cursor NULL: data
    int64_t ledger, entry;        // entry -1: none in particular
    char *reason;
    uint32_t tries;
    uint64_t at_ms;
    struct ox_link link; // in st->failures
};

// How far a stage is. Derived; a restart counts anew.
struct storage_progress {
    uint64_t done, total, failures;
    uint64_t bytes, bytes_total;
    uint64_t begun_ns, bytes_per_s;
    bool over;
};

struct storage_data;    // data.c and copy.c
struct storage_control; // control_int.h

struct ox_storage {
    struct ox_storage_ports p;
    struct ox_ml_factory *factory; // NULL until started
    struct ox_map places;          // struct storage_place by name
    struct ox_map targets;         // struct storage_target by key
    uint64_t targets_changes;      // counts them
    char *bootstrap;               // name; "default" before activation
    bool activated;
    struct storage_directive directive;
    enum storage_state state; // of the present switch
    bool move_data;           // its data stage was asked for
    const char *read_mode;    // static name
    uint64_t started_ms, finished_ms;
    int64_t header_version; // of the orchestrator's header; -1: none
    uint64_t bytes_per_s, ops_per_s;
    struct storage_progress writes, metadata, data;
    struct ox_list failures; // struct storage_failure, oldest first
    uint64_t failures_dropped;
    bool stopping;
    struct ox_op *stop_op;
    uint32_t calls;                  // in work
    struct storage_data *moving;     // data.c; NULL until first used
    struct ox_metric conflicts;      // migration_ledger_id_conflict_total: count each id that the target refused
    struct storage_control *control; // control half's private state (control_int.h)
};

// ---- calls: how a verb is run, shared by both halves
// Begins c (answer and why empty); false (and answered) while the storage is not started yet, and when it is stopping.
bool storage_call_begin(struct ox_storage *st, struct ox_storage_call *c);
// Answers c with OK; take_answer may be NULL. storage_call_fail: with an error, whose sentence is formatted into c->why. c is the caller's again when its op is done.
void storage_call_answer(struct ox_storage *st, struct ox_storage_call *c, json_t *take_answer);
void storage_call_fail(struct ox_storage *st, struct ox_storage_call *c, enum ox_err err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// ---- registry.c
struct storage_place *storage_place_find(const struct ox_storage *st, const char *name);
// The name of the active place.
const char *storage_active(const struct ox_storage *st);

// ---- targets.c
// The place where a log's ledgers and cursors belong: its target, or the active one. Index in the router, always valid.
uint32_t storage_home(const struct ox_storage *st, const char *log);
// The same if another place were active.
uint32_t storage_home_if(const struct ox_storage *st, const char *log, uint32_t active);
const char *storage_home_name(const struct ox_storage *st, const char *log);
// ox_ml_factory.target; ctx is the storage.
uint32_t storage_home_hook(void *ctx, const char *log);
// The name of a namespace or topic whose target a place is, or NULL.
const char *storage_target_user(const struct ox_storage *st, uint32_t place);
// True if something belongs in a place: it is active, or somebody's target.
bool storage_is_home(const struct ox_storage *st, uint32_t place);

// Bytes of a place that copies leave free for clients: some, and never less than what the place itself keeps.
static inline uint64_t storage_keep_free(const struct ox_capacity *has)
{
    return OX_MAX(OX_MIN(has->total / 4, (uint64_t)STORAGE_KEEP_FREE), has->reserve);
}

// ---- orchestrate.c: the stages of the present switch, one job
// Goes through the stages again if st->state is RUNNING (which the caller has set): after a new directive, a resume, a restart, a move_data. While they are
// being gone through already: once more afterwards.
void storage_orchestrate(struct ox_storage *st);
// Writes the orchestrator's header as the members say now (queued, last one wins); a failure is logged and tried again.
void storage_header_save(struct ox_storage *st);
// True while background work may go on: RUNNING, not superseded, not stopping.
bool storage_may_work(const struct ox_storage *st);

// ---- failures.c
// Notes (or counts once more) something that could not be moved; forgets it again when it could.
void storage_failure_note(struct ox_storage *st, const char *topic, const char *cursor, const char *place,
                          int64_t ledger, int64_t entry, const char *reason);
void storage_failure_clear(struct ox_storage *st, const char *topic, const char *cursor, int64_t ledger);

// ---- data.c: the data stage, run by orchestrate.c when st->move_data
// Copies every sealed data ledger that is elsewhere into the active place, verifies, relocates; several passes until none is left but failures. op finishes
// OK when nothing is left that could be moved now (st->data is filled, failures are noted), CANCELED when storage_may_work became false.
void storage_data_run(struct ox_storage *st, struct ox_op *op);
// Frees st->moving.
void storage_data_fini(struct ox_storage *st);

#endif
