// records.h - the JSON of the nodes below <root>: pure functions from bytes to structs and back. Unknown fields are kept; reading never trusts a field's type.
#ifndef MOVE_STORAGE_RECORDS_H
#define MOVE_STORAGE_RECORDS_H

#include "move/storage/storage_int.h"

// <root>/<name>: {name, metadataServiceUri, status, identity}. Written by real Pulsar tools too, then without identity.
struct storage_entry {
    char *name, *uri; // name may be NULL
    char *identity;   // or NULL: not known
    char *status;     // or NULL
    json_t *raw;
};
// Fills ret (to be freed with storage_entry_fini). Errors: CORRUPT (no object, no metadataServiceUri, a field of a wrong type).
enum ox_err storage_entry_read(struct ox_buf value, struct storage_entry *ret) OX_CHECKED;
void storage_entry_fini(struct storage_entry *e);
// The bytes of a place's node: the fields of p over what p->raw held. The caller owns the slice.
struct ox_buf storage_entry_text(const struct storage_place *p);

// <root>/bootstrap: {bootstrapClusterName, identity, recordedAt, maxLedgerId}.
struct storage_bootstrap {
    char *name;
    char *identity; // or NULL: not known
    uint64_t recorded_ms;
    int64_t max_ledger; // largest id given out then; -1: not known
};
// Errors: CORRUPT.
enum ox_err storage_bootstrap_read(struct ox_buf value, struct storage_bootstrap *ret) OX_CHECKED;
void storage_bootstrap_fini(struct storage_bootstrap *b);
struct ox_buf storage_bootstrap_text(const struct storage_bootstrap *b);

// <root>/switch-target: {target, origin, epoch, ts, switchId, previous}; or the text of the proposal's first revision: the name, newline, "origin=" URL.
// `version` is the node's: where the record holds no epoch, that is one more than it. Errors: CORRUPT (neither form, or a target that cannot be a name).
enum ox_err storage_directive_read(struct ox_buf value, int64_t version, struct storage_directive *ret) OX_CHECKED;
void storage_directive_fini(struct storage_directive *d);
// Makes `to` (freed first) a copy of `from`.
void storage_directive_copy(struct storage_directive *to, const struct storage_directive *from);
struct ox_buf storage_directive_text(const struct storage_directive *d);

// <root>/orchestrator/<switchId>/header: {switchId, epoch, to, from, state, moveData, startedAt, finishedAt, throttle: {bytesPerSecond, opsPerSecond}, counters: {moved, failures}}.
struct storage_header {
    char *switch_id, *to;
    char *from; // or NULL
    int64_t epoch;
    enum storage_state state;
    bool move_data;
    uint64_t started_ms, finished_ms;
    int64_t bytes_per_s, ops_per_s; // -1: not in it
    uint64_t failures;
};
// Errors: CORRUPT.
enum ox_err storage_header_read(struct ox_buf value, struct storage_header *ret) OX_CHECKED;
void storage_header_fini(struct storage_header *h);
// `raw`: what the node held, or NULL: its unknown fields stay.
struct ox_buf storage_header_text(const struct storage_header *h, const json_t *raw);

// <root>/orchestrator/<switchId>/failures: an array of {topic, cursor, place, ledger, entry, reason, tries, at}.
json_t *storage_failure_json(const struct storage_failure *f);
// Appends what a node holds to a list of struct storage_failure (to be freed with storage_failure_free); at most STORAGE_FAILURES_MAX. Errors: CORRUPT.
enum ox_err storage_failures_read(struct ox_buf value, struct ox_list *list) OX_CHECKED;
void storage_failure_free(struct storage_failure *f);

// "RUNNING" and so on; NONE is "NONE".
const char *storage_state_name(enum storage_state state);

// ---- names.c
// True if a place may be called so: [A-Za-z0-9._-]{1,64}, and no word that has a meaning beside it in the store or in the REST paths. Else *ret_why says why (static).
bool storage_name_valid(const char *name, const char **ret_why);

#endif
