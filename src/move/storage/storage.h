// storage.h - moving a broker's storage while it runs: the registry of places (bookie clusters), which of them takes new ledgers, and emptying the others.
//
// Truth is one record, the directive at <root>/switch-target, written by compare-and-set: {target, origin, epoch, ts, switchId, previous}. Everything else
// (statuses, stages, progress) is derived from it and from where ledgers are, or is a note that may be lost. Without a directive the bootstrap place is active.
//
//   <root>/<name>                          a registered place: {name, metadataServiceUri, status, identity}
//   <root>/bootstrap                       {bootstrapClusterName, identity, recordedAt, maxLedgerId}: written once, when a second place is first registered
//   <root>/switch-target                   the directive
//   <root>/targets/<encoded name>          {name, target}: new ledgers of this namespace or topic go to a place of its own (key: "tenant/namespace" or the log's name)
//   <root>/acks/<epoch>/<broker>           ephemeral: this broker makes new ledgers in the directive's target
//   <root>/orchestrator/<switchId>/header  what the switch is doing: {switchId, epoch, to, state, moveData, startedAt, finishedAt, throttle, counters}
//   <root>/orchestrator/<switchId>/failures  what could not be moved, and why
//
// <root> is bookieClusterSwitch.configPath, /admin/bookie-clusters by default.
#ifndef MOVE_STORAGE_STORAGE_H
#define MOVE_STORAGE_STORAGE_H

#include <jansson.h>

#include "base/map.h"
#include "base/str.h"
#include "io/seq.h"
#include "ledger/router.h"
#include "metastore/metastore.h"
#include "mledger/factory.h"

// Opens the storage that a URI names; supplied by the program.
struct ox_place_opener {
    // *ret is set before op finishes with OK; its name is `name`. existing: it was registered before; where nothing of it is: NOT_FOUND, and nothing is made.
    // Errors: INVALID (a scheme or form that is not understood), LOCKED (in use), NO_SPACE, ...
    void (*open)(struct ox_place_opener *o, struct ox_op *op, const char *name, const char *uri, bool existing,
                 struct ox_place **ret);
    // The URI in its one canonical form (absolute, without "." and ".."), to be freed; NULL if it is not understood, *why says what is.
    char *(*canonical)(struct ox_place_opener *o, const char *uri, const char **why);
};

// Settings; the names in comments are the configuration keys (bookieClusterSwitch.*).
struct ox_storage_config {
    const char *root;     // configPath "/admin/bookie-clusters"
    const char *current;  // currentClusterName "": which registered place is active if there is no directive
    bool skip_idgen;      // skipIdgenPrecheck false
    uint64_t window_ms;   // dualReadTimeoutDays 15: copies that were left behind are kept so long
    uint32_t concurrency; // migrationConcurrency 16: ledgers being copied, cursors being moved at once
    uint64_t bytes_per_s; // moveDataBytesPerSecond 0: no limit; changeable live
    uint64_t ops_per_s;   // moveDataOpsPerSecond 0: entries a second, no limit; changeable live
    uint64_t latency_ns;  // moveDataYieldLatencyMs 20: copying slows down while clients' appends take longer; 0: never
    const char *broker;   // this broker's id ("127.0.0.1:8080")
    const char *default_uri;   // bookkeeperMetadataServiceUri (canonical): the bootstrap place's
    bool default_uri_explicit; // the operator has set it: a contradiction to the registry is refused
};
void ox_storage_config_init(struct ox_storage_config *c);

struct ox_storage;

// Takes new settings: skip_idgen, window_ms, concurrency and latency_ns; the others stay as they were. What is under way looks at them from its next step on.
void ox_storage_settings_changed(struct ox_storage *st, const struct ox_storage_config *config);

// Zeroed, set the public members, then ox_storage_resolve.
struct ox_storage_ports {
    struct ox_loop *loop;
    struct ox_log *log;
    struct ox_meta *meta;
    struct ox_router *router; // initialised, empty
    struct ox_metrics *metrics;
    struct ox_place_opener *opener;
    bool is_service;                 // of systemd, whose unit says where it may write
    struct ox_storage_config config; // strings borrowed for the life of it
};

// Start-up resolution: reads directive, registry and bootstrap record, opens every registered place and puts it into the router (the bootstrap place has
// index 0, open or not), activates the directive's target. Without any record the place of default_uri, named "default", is the only one. A place that cannot
// be opened, or whose identity is another one than registered, is reserved with its reason; if it is the active one the start is refused. `trouble` (the
// caller's) gets the sentence for the user. Errors: those of the metadata store and of the active place; CONFLICT (records that contradict each other or the
// configuration). *ret is set before op finishes with OK.
void ox_storage_resolve(const struct ox_storage_ports *ports, struct ox_op *op, struct ox_str *trouble,
                        struct ox_storage **ret);
// True if a second place was ever registered: records must be stamped (settings.stamps of the factory).
bool ox_storage_activated(const struct ox_storage *st);
// Goes on with what is unfinished: acknowledges the epoch, follows, moves. The factory is initialised. Watches the directive (and reads it every 10 s).
void ox_storage_start(struct ox_storage *st, struct ox_ml_factory *f);
// Ends all background work; op finishes when nothing of it is in flight. Later calls (and those before the start) are answered SHUTDOWN. Before the topics are closed.
void ox_storage_stop(struct ox_storage *st, struct ox_op *op);
// Frees it; it must have been stopped if it was started, no call may be pending. The router keeps its places.
void ox_storage_free(struct ox_storage *st);

// A question or an order of an operator. Errors (mapped to HTTP by admin): INVALID 400, NOT_FOUND and NO_PLACE 404, CONFLICT 409, others as everywhere.
struct ox_storage_call {
    struct ox_op op;
    json_t *answer;    // result, may be NULL (nothing to say): the caller's
    struct ox_str why; // result on error: the thing, the value and the way out; the caller's
    void *private_;    // private
};
// Frees the result.
void ox_storage_call_fini(struct ox_storage_call *c);

// ---- registry (answers: one place, or an array of them: {name, metadataServiceUri, status ACTIVE|STANDBY|DEPRECATED, identity, state, bytesTotal, bytesAvailable, bytesUsed})
void ox_storage_list(struct ox_storage *st, struct ox_storage_call *c);
void ox_storage_get(struct ox_storage *st, struct ox_storage_call *c, const char *name);
// Opens it, checks that it is not a registered one in other words (by identity), pushes its id generator, records it. The first time it activates: bootstrap
// record, and stamps before it. Again with the same content: OK (a place that is closed is opened). INVALID: bad or reserved name, bad URI, the same place as another; CONFLICT: other content.
void ox_storage_register(struct ox_storage *st, struct ox_storage_call *c, const char *name, const char *uri,
                         const char *status);
// Refused (CONFLICT, saying what) while it is active, or any ledger, copy or waiting delete is in it.
void ox_storage_unregister(struct ox_storage *st, struct ox_storage_call *c, const char *name);

// ---- switching
// {ready, idgenAdvancedBeyondSource, sourceClusterName, targetClusterName, sourceMaxHighOrderBit, targetMaxHighOrderBit, sourceMaxLedgerId, targetNextLedgerId, checks: [{name, result pass|warn|fail, detail}]}
void ox_storage_precheck(struct ox_storage *st, struct ox_storage_call *c, const char *target);
// {switchId, epoch, target, previous}. Runs the precheck; CONFLICT: precheck failed, an unfinished switch (without supersede), a lost compare-and-set. To the
// active place: OK, answer {..., noop: true}, what had failed is tried again.
void ox_storage_switch(struct ox_storage *st, struct ox_storage_call *c, const char *target, bool supersede);
// A switch to the previous place, superseding what is not finished. CONFLICT: no switch was made yet.
void ox_storage_rollback(struct ox_storage *st, struct ox_storage_call *c);
// {active, epoch, bootstrap, activated, previous, readMode, switch: null or {switchId, state RUNNING|PAUSED|ABORTED|DONE|DONE_WITH_FAILURES, startedAt, finishedAt, moveData,
// failures, throttle: {bytesPerSecond, opsPerSecond}, acks: [brokers], missing: [brokers], stages: [{name SWAPPED|WRITES_MOVED|METADATA_MOVED|DATA_MOVED|RELEASED, done, total,
// left, failures, over; but for the first and last: bytes, bytesTotal, bytesPerSecond, etaSeconds (null: not known)}]}, guarded: topics whose records Pulsar refuses (null:
// not counted yet, the question starts that), openElsewhere: {logs, cursors, failing, lastFailure: {log, reason}}: what still writes outside the active place}. Figures are
// those of the last look (acks: 10 s old at most; RELEASED, guarded: the last walk). DATA_MOVED is over only if it was asked for.
void ox_storage_status(struct ox_storage *st, struct ox_storage_call *c);
// DUAL_READ, OLD_CLUSTER_ONLY (nothing is read from the active place), NEW_CLUSTER_ONLY (only from it). INVALID otherwise. Of this broker's process: a restart
// begins with DUAL_READ.
void ox_storage_read_mode(struct ox_storage *st, struct ox_storage_call *c, const char *mode);
// No more rollovers, cursors and copies are begun, until it is resumed; kept over restarts. CONFLICT: there is nothing to pause.
void ox_storage_pause(struct ox_storage *st, struct ox_storage_call *c);
// Goes on with what was paused or aborted. CONFLICT: there is nothing to resume.
void ox_storage_resume(struct ox_storage *st, struct ox_storage_call *c);
// Ends the stages of the present switch; the directive stands, everything stays readable where it is.
void ox_storage_abort(struct ox_storage *st, struct ox_storage_call *c);
// One cursor, by its owner; topic as "persistent://tenant/ns/t" or the log's name; expected -1: any. NOT_FOUND, CONFLICT (another cursor ledger than expected, or
// target is not active here), BUSY (again later).
void ox_storage_promote_cursor(struct ox_storage *st, struct ox_storage_call *c, const char *topic, const char *cursor,
                               const char *target, int64_t expected);

// ---- places of their own: name is "tenant/namespace" or "persistent://tenant/namespace/topic" (which holds for its partitions, too). A topic's own target
// wins over its namespace's, that one over the active place; a switch does not change them. A place that is somebody's target is not unregistered or closed
// (CONFLICT, naming whose). Errors: INVALID (a name of another form).
// {name, target, source: topic|namespace|cluster}: which one holds now, and whose it is.
void ox_storage_target_get(struct ox_storage *st, struct ox_storage_call *c, const char *name);
// From now on new ledgers are made there; what is open follows at once, sealed ledgers with the next move_data. The answer is that of get. NO_PLACE, PLACE_CLOSED,
// CONFLICT (a lost compare-and-set; only one place is registered).
void ox_storage_target_set(struct ox_storage *st, struct ox_storage_call *c, const char *name, const char *place);
// NOT_FOUND: it has none of its own. CONFLICT: a lost compare-and-set.
void ox_storage_target_remove(struct ox_storage *st, struct ox_storage_call *c, const char *name);

// ---- data
// Starts bringing everything where it belongs: into the active place (which must be `target`, else CONFLICT), or its own target: {switchId, ledgers, bytes}. Running already: OK.
void ox_storage_move_data(struct ox_storage *st, struct ox_storage_call *c, const char *target);
// Bytes and entries a second, 0 = no limit; a negative one stays as it is. Takes effect at once and is kept for restarts. {bytesPerSecond, opsPerSecond}
void ox_storage_throttle(struct ox_storage *st, struct ox_storage_call *c, int64_t bytes_per_s, int64_t ops_per_s);
// What moving to target would do: {ledgers, cursors, bytes, seconds (at bytes_per_s, or the measured rate), conflicts: [...], bytesAvailable, fits, topics}
void ox_storage_plan(struct ox_storage *st, struct ox_storage_call *c, const char *target, int64_t bytes_per_s);
// {places: [{name, dataLedgers, cursorLedgers, copies, bytes, copyBytes, topics, pendingDeletes}], unknown: ledgers whose place is not registered}
void ox_storage_inventory(struct ox_storage *st, struct ox_storage_call *c);
// [{topic, cursor, ledger, entry, place, reason, tries, at}]
void ox_storage_failures(struct ox_storage *st, struct ox_storage_call *c);
// Reads every ledger that was moved and compares with the digest on record: {ledgers, entries, bytes, gone, bad: [{topic, ledger, physical, entry, reason}],
// badCount}. gone: trimmed or cleaned up while it was to be read.
void ox_storage_verify(struct ox_storage *st, struct ox_storage_call *c, const char *name);
// {safe, reasons: [...]}: true only if nothing names the place: no ledger, copy, waiting delete, open handle; and it is neither active nor a target.
void ox_storage_safe_to_release(struct ox_storage *st, struct ox_storage_call *c, const char *name);
// What cleanup would delete now: [{place, ledger, physical, topic, bytes, since, due}]. source NULL: all places.
void ox_storage_cleanup_targets(struct ox_storage *st, struct ox_storage_call *c, const char *source);
// Deletes copies that were left behind and whose window has ended (force: all of them), at most max (0: no limit); also unfinished copies that nobody will
// finish. dry_run: only says what. {dryRun, deleted, left, items: [...]} CONFLICT: the window is open and force was not asked for.
void ox_storage_cleanup(struct ox_storage *st, struct ox_storage_call *c, const char *source, bool dry_run, bool force,
                        int64_t max);
// Closes a place that nobody uses; CONFLICT with the holders' names while handles are open, or if it is active.
// It stays closed until it is registered again or a precheck or switch names it; what is in it answers PLACE_CLOSED meanwhile.
void ox_storage_close_client(struct ox_storage *st, struct ox_storage_call *c, const char *name);

#endif
