// audit.h - what metadata and places really hold, read past the broker: which ledgers are named where, and which are there.
#ifndef TESTS_SIM_AUDIT_H
#define TESTS_SIM_AUDIT_H

#include "world.h"

#define AUDIT_NAME_BYTES 160

// A ledger that a node names.
struct audit_ref {
    char log[AUDIT_NAME_BYTES];    // "public/default/persistent/t0"
    char cursor[AUDIT_NAME_BYTES]; // encoded name, "" for data
    char place[65];
    int64_t id, physical;
    int64_t entries; // on record; -1: it is open, or a cursor's
    bool copy;       // another complete location
    bool last;       // the log's last ledger, or a cursor's
};
// A ledger that is in a place.
struct audit_ledger {
    char place[65];
    int64_t id; // physical
    int64_t last_entry;
    bool open, found;                                     // found: a node names it
    char log[AUDIT_NAME_BYTES], cursor[AUDIT_NAME_BYTES]; // of its owner
    char copy_of[80];                                     // "" if it is no copy
};
struct audit {
    struct audit_ref *refs;
    size_t ref_count;
    struct audit_ledger *ledgers;
    size_t ledger_count;
};

// Reads everything; the broker must be running and the world healed. False: the broker went away meanwhile, or a violation was noted.
bool audit_read(struct world *w, struct audit *ret);
void audit_fini(struct audit *a);
// Every reference has its ledger in the place that it names, with all entries on record? If not, says which. What is being trimmed meanwhile may look so for a moment.
bool audit_resolve(struct audit *a, struct ox_str *problem);
// References to a place (NULL: to any other than `target`), with copies or without. *ret: one of them.
size_t audit_count(const struct audit *a, const char *place, const char *target, bool copies, const struct audit_ref **ret);
// Open ledgers (logs' last ones and cursors') that are not in `target`.
size_t audit_astray(const struct audit *a, const char *target, const struct audit_ref **ret);

#endif
