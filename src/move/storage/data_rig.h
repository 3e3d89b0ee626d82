// data_rig.h - a world for the tests of the data half: two places, logs with sealed ledgers, and a storage whose stages the test runs by hand.
#ifndef MOVE_STORAGE_DATA_RIG_H
#define MOVE_STORAGE_DATA_RIG_H

#include "mledger/fixture.h"
#include "move/storage/control_int.h"
#include "move/storage/data_int.h"

struct rig {
    struct world w;
    struct ox_storage st;
    struct storage_control control; // of nothing but header.c's wish to write
    unsigned appends, creates;      // asked of the places since rig_count
    uint64_t slow_ns;               // each append to a place takes so long
    uint64_t each_ns;               // and so much longer for each entry before it
    uint64_t delete_ns;             // each delete takes so long
    uint64_t open_ns;               // each opening takes so long
    bool full;                      // places refuse creates and appends
    bool garble;                    // places store other bytes than they are given
    struct ox_op run;
};

// Two places, "default" and "other"; logs keep everything.
void rig_init(struct rig *r);
void rig_fini(struct rig *r);
// The process dies (or has) and starts anew.
void rig_crash(struct rig *r);
// A log with so many sealed ledgers of so many small entries; closed again, its last ledger is empty and not sealed. ids gets the sealed ones', if not NULL.
void rig_log(struct rig *r, const char *name, int ledgers, int entries, int64_t *ids);
// Appends one entry of len bytes (their values from seed).
void rig_append(struct rig *r, struct ox_mledger *ml, size_t len, uint8_t seed);
// All entries of a log, "length:checksum" each; to be freed.
char *rig_content(struct rig *r, const char *name);
// Makes a place active and starts the stage; waits for it.
void rig_run_start(struct rig *r, uint32_t target);
enum ox_err rig_run(struct rig *r, uint32_t target);
// With (from the start) or without a switch: without one the half that decides does nothing.
void rig_switch(struct rig *r, bool on);
// Forgets what the places were asked for.
void rig_count(struct rig *r);
// How many ledgers a place's store has.
size_t rig_ledgers(const struct rig *r, uint32_t place);
// What a log's record says of a ledger: place, or "-" if it is not there. copies: how many. Borrowed static text.
const char *rig_where(struct rig *r, const char *log, int64_t ledger, size_t *ret_copies, int64_t *ret_physical);
// The failure noted for a ledger, or NULL.
const struct storage_failure *rig_failure(const struct rig *r, const char *log, int64_t ledger);
// Waits for a call; its outcome.
enum ox_err rig_wait(struct rig *r, struct ox_storage_call *c);
struct ox_storage_call *rig_call(struct rig *r, struct ox_storage_call *c);
// A number of an answer.
int64_t rig_number(const struct ox_storage_call *c, const char *key);

#endif
