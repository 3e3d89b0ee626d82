// fixture.h - a world for this folder's tests: simulated loop, memory metadata, simulated place, a factory; processes that crash and start again.
#ifndef MLEDGER_FIXTURE_H
#define MLEDGER_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ledger/store/store.h"
#include "ledger/store/table_memory.h"
#include "metastore/memory.h"
#include "mledger/mledger_int.h"
#include "sim/place/sim_place.h"
#include "sim/sim.h"

struct world {
    struct ox_sim *sim;
    struct ox_sim_node *node;
    struct ox_log log;
    struct ox_meta_memory_tree *tree;
    struct ox_sim_store *store, *other_store; // other_store: a second place, if it was wanted
    bool other_away;                          // the second place is registered, but not open
    struct ox_memory_table *table;            // not NULL: ledgers are in an embedded store on the node's disk instead
    // What hooks do; NULL: nothing special.
    void (*on_place)(struct world *w, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                     struct ox_sim_place_fault *fault);
    void (*on_meta)(struct world *w, bool write, const char *path, struct ox_meta_fault *fault);
    void *ctx;
    struct ox_sim_place_faults place_faults;
    struct ox_meta_memory_faults meta_faults;
    // The process.
    struct ox_loop *loop;
    struct ox_meta *meta;
    struct ox_router router;
    struct ox_metrics metrics;
    struct ox_ml_settings settings; // for the next start
    struct ox_ml_factory factory;
    // What was logged since the start.
    unsigned edges[8];   // by from-state: bits of to-states
    unsigned lost_lines; // "lost" events
    char last_warning[512];
};

// A world with one running process; seed 0 is fine.
void world_init(struct world *w, uint64_t seed);
// The same with the embedded store.
void world_init_embedded(struct world *w, uint64_t seed);
// A world with a second place, "other", and stamped records.
void world_init_two(struct world *w, uint64_t seed);
// The second place is closed (nobody may hold its ledgers); what needs it answers PLACE_CLOSED from now on, after restarts too.
void world_other_close(struct world *w);
// It is open again, and stays so.
void world_other_open(struct world *w);
// Ends process (cleanly, unless it is dead) and world.
void world_fini(struct world *w);
// Starts a process with w->settings. The former one must be stopped.
void world_start(struct world *w);
// Stops it; all logs must be closed.
void world_stop(struct world *w);
// Kills the process; w->loop is dead. Logs and pending operations are the test's to end.
void world_kill(struct world *w);
// Cuts the power: what was not synced may be lost.
void world_power_cut(struct world *w);
// Kills, closes a log (NULL: none), and starts anew.
void world_crash(struct world *w, struct ox_mledger *ml);
// Waits for an operation that was initialised with world_op.
void world_op(struct world *w, struct ox_op *op);
enum ox_err world_wait(struct world *w, struct ox_op *op);
// Lets virtual time pass.
void world_sleep(struct world *w, uint64_t ns);
// Lets everything finish that is on its way (a second of virtual time).
void world_settle(struct world *w);

// Opens a log; the outcome must be OK.
struct ox_mledger *world_open(struct world *w, const char *name);
// The outcome of an opening that isn't expected to work.
enum ox_err world_open_err(struct world *w, const char *name, bool create);
enum ox_err world_close(struct world *w, struct ox_mledger *ml);
// Appends one entry with this text.
enum ox_err world_append(struct world *w, struct ox_mledger *ml, const char *text, struct ox_pos *ret_pos);
// Appends entries "0", "1", ... first..first+count-1; all must be OK.
void world_fill(struct world *w, struct ox_mledger *ml, int first, int count);
// Starts an append; wait with world_wait(&a->op). Free with ox_free.
struct ox_ml_append *world_append_start(struct world *w, struct ox_mledger *ml, const char *text);
// All entries from a position on as text, separated by blanks; the caller frees it. An error ends the list with its name in <>.
char *world_read_all(struct world *w, struct ox_mledger *ml, struct ox_pos from);
enum ox_err world_roll(struct world *w, struct ox_mledger *ml);
// The plain bytes of a node in hex, times masked as in the golden files: "20T" for a close time. The caller frees it; NULL: no such node.
char *world_node_hex(struct world *w, const char *path);
struct ox_buf world_node(struct world *w, const char *path, int64_t *ret_version);
// Writes a node by hand.
void world_node_put(struct world *w, const char *path, const void *data, size_t len);
// Copies a sealed ledger of a log from where it is into a place (index), as whoever moves storage does; returns where it is there.
struct ox_location world_copy(struct world *w, const char *log, struct ox_location from, uint32_t place);
// Opens a durable cursor at a position.
struct ox_cursor *world_cursor(struct world *w, struct ox_mledger *ml, const char *name, struct ox_pos start);
enum ox_err world_ack_upto(struct world *w, struct ox_cursor *c, struct ox_pos p);
// True if the transition was logged.
bool world_took(const struct world *w, enum ox_ml_state from, enum ox_ml_state to);

#endif
