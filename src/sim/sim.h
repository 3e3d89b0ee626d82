// sim.h - a simulated world: virtual time, nodes (machines that run one process each), crashes, all decided by one seed.
//
// A unit test that only wants virtual time and a disk:
//
//     struct ox_sim *sim = ox_sim_new(1, NULL);
//     struct ox_sim_node *node = ox_sim_node_new(sim, "a");
//     ox_fs_mkdir(ox_sim_fs(node), &op, "data");
//     assert_int_equal(ox_sim_wait(sim, &op), OX_OK);
//     ...
//     ox_sim_free(sim);
//
// Nothing happens by itself: time passes and operations finish only inside ox_sim_step, _run, _run_for and _wait. Equal seeds and equal calls give equal runs
// (ox_sim_hash). All faults are off until the caller turns them on.
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/stream.h"

struct ox_sim;
struct ox_sim_node;

// How a node stops.
enum ox_sim_crash {
    OX_SIM_CRASH_PROCESS, // kill -9: the page cache survives
    OX_SIM_CRASH_MACHINE, // power cut: what was not synced is lost, kept or torn, by seed
};

// Chances in parts per million, looked at for each operation; all 0 at start. The caller sets them from its seed and clears them to heal the world.
struct ox_sim_faults {
    uint32_t write_fail; // a write fails with IO after some of its bytes
    uint32_t sync_fail;  // a sync fails with IO and drops the dirty pages: the next one succeeds without them
    uint32_t read_fail;  // a read fails with IO
    uint32_t flip;       // one bit of what a write stores is wrong
    uint32_t slow_disk;  // an operation takes up to a second
    uint32_t slow_job;   // a job takes up to a second
    uint32_t net_reset;  // a connection breaks at a delivery
    uint32_t net_chop;   // a delivery is cut into small pieces
    uint32_t net_slow;   // a delivery takes up to a second
    uint32_t net_refuse; // a connect is refused
};

// A new world. The log may be NULL; it is the caller's and must outlive the world.
struct ox_sim *ox_sim_new(uint64_t seed, struct ox_log *log);
// Ends it. Files and streams must be closed and no operation pending, else their memory is lost.
void ox_sim_free(struct ox_sim *sim);

// The faults, to be changed in place at any time.
struct ox_sim_faults *ox_sim_faults(struct ox_sim *sim);
// The world's generator, for workloads: its state is part of the run.
struct ox_random *ox_sim_random(struct ox_sim *sim);
// Virtual time since the start, ns.
uint64_t ox_sim_now(const struct ox_sim *sim);
// The hash over all events so far (time, node, kind, size): equal for equal runs.
uint64_t ox_sim_hash(const struct ox_sim *sim);
// Moves every node's wall clock by so many ms, forward or back; virtual time goes on as it did.
void ox_sim_step_clock(struct ox_sim *sim, int64_t ms);
// Steps taken so far.
uint64_t ox_sim_steps(const struct ox_sim *sim);
// Adds an event of the caller's (a metadata answer, an acknowledged entry) to the hash; kind is a short static text.
void ox_sim_note(struct ox_sim *sim, const char *kind, uint64_t value);

// A new node, switched on, with an empty disk. The name (copied) is its host name too. It lives until ox_sim_free.
struct ox_sim_node *ox_sim_node_new(struct ox_sim *sim, const char *name);
// The node's name. Borrowed.
const char *ox_sim_node_name(const struct ox_sim_node *node);
// The ports of the node's current process; after a restart these are others. The old ones live on (dead) until ox_sim_free, so that the owner can tear its objects down.
struct ox_loop *ox_sim_loop(struct ox_sim_node *node);
struct ox_fs *ox_sim_fs(struct ox_sim_node *node);
struct ox_net *ox_sim_net(struct ox_sim_node *node);
// True until the node's process has crashed, and again after a restart.
bool ox_sim_node_alive(const struct ox_sim_node *node);
// Stops the node's process. At once loop->dead is true; every pending port operation finishes with SHUTDOWN (started file writes may have happened in part, started
// jobs may have run), streams end with SHUTDOWN here and are cut at their peers; later port calls finish with SHUTDOWN and do nothing. Timers go on firing.
// The owner then tears its objects down through their ordinary paths. May be called from inside the node's own code. No effect on a dead node.
void ox_sim_node_crash(struct ox_sim_node *node, enum ox_sim_crash how);
// Starts a fresh process on the node's disk. A live one is ended first as by kill -9.
void ox_sim_node_restart(struct ox_sim_node *node);
// Arms a crash point: the node crashes right at the nth pass (1 = the next) of OX_CRASHPOINT(loop, name); name NULL: of any. Stays armed over restarts until it has
// fired. One is armed at a time; nth 0 disarms.
void ox_sim_arm(struct ox_sim_node *node, const char *name, uint32_t nth, enum ox_sim_crash how);
// True while a crash point is armed that has not fired.
bool ox_sim_armed(const struct ox_sim_node *node);

// The next thing that happens: a turn of one process, or one event. False if nothing will ever happen.
bool ox_sim_step(struct ox_sim *sim);
// Steps until condition(ctx) is true or `limit_ns` of virtual time have passed; returns the condition (NULL: never true) at the end. Time never jumps beyond the limit.
bool ox_sim_run(struct ox_sim *sim, bool (*condition)(void *ctx), void *ctx, uint64_t limit_ns);
// Steps for a span of virtual time; time has advanced by exactly that.
void ox_sim_run_for(struct ox_sim *sim, uint64_t ns);
// Steps until the operation is over (its done has run); returns its outcome. Asserts that this happens within an hour of virtual time.
enum ox_err ox_sim_wait(struct ox_sim *sim, struct ox_op *op);
// A `done` that does nothing, for operations that a test waits for: ox_op_init(&op, loop, ox_sim_done, "open").
void ox_sim_done(struct ox_op *op);

#endif
