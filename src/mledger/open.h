// open.h - the job of opening a log, shared by open.c (the order of things) and open_node.c (places, node, last ledger).
#ifndef MLEDGER_OPEN_H
#define MLEDGER_OPEN_H

#include "mledger/offline.h"

struct ml_opening {
    struct ox_seq seq;
    struct ox_ml_open *op;
    struct ox_mledger *ml;
    bool create;
    struct ml_claim claim; // waited for, if somebody works on the log's nodes
    uint32_t place;        // whose identity is being checked
    enum ox_err failed;    // why the log is taken down again
    struct ox_meta_get get;
    struct ox_meta_put put;
    struct ox_ledger_open open;
    struct ox_read read;
    struct ox_router_create making;
    struct ml_edit edit;
    struct ox_op step;
    struct ox_ml_ledger *last;  // of the list as the node had it, unless it holds nothing or is lost
    struct ox_location dropped; // last ledger without entries: leaves the list; id -1: none
    bool delete_dropped;
    bool sealed_now; // the last ledger gets its counts by this opening
    int64_t probe;   // entry whose header is looked at for the index
};

// Each ends with OX_WAIT, OX_GOTO to the next of open.c's steps, or fails the job.
struct ml_opening *opening_of(struct ox_seq *s);
ox_step opening_fail(struct ox_seq *s, enum ox_err err);

// open_node.c: checks places' identities, then reads or makes the node, then goes to opening_recover.
ox_step opening_places(struct ox_seq *s);
// open_last.c: recovers the last ledger, finds the last index, then goes to opening_extend.
ox_step opening_recover(struct ox_seq *s);
// open.c: makes the fresh ledger and records it, then cursors.
ox_step opening_extend(struct ox_seq *s);

#endif
