// loop.h - the loop port: clock, randomness, ready queue, timers, jobs on helper threads, crash points. One loop thread decides everything.
#ifndef IO_LOOP_H
#define IO_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/log.h"
#include "io/op.h"

#define OX_MS UINT64_C(1000000)     // nanoseconds in a millisecond
#define OX_SEC UINT64_C(1000000000) // nanoseconds in a second

#define OX_TURN_SLOW_NS (5 * OX_MS) // a turn should take no longer

struct ox_job;
struct ox_loop;

// What a body of the port (io/posix on libuv, sim) supplies.
struct ox_loop_body {
    uint64_t (*now_ns)(struct ox_loop *loop);  // monotonic
    uint64_t (*wall_ms)(struct ox_loop *loop); // since 1970
    uint64_t (*random)(struct ox_loop *loop);  // 64 random bits
    void (*submit)(struct ox_loop *loop, struct ox_job *job); // run job->run on its lane, then ox_op_finish(&job->op, OX_OK) on the loop
    void (*crash_point)(struct ox_loop *loop,
                        const char *name); // stop the process (or the simulated one) if armed; NULL: nothing is armed
};

// The shared part of every loop: ready queue and timers. Bodies embed it first.
struct ox_loop {
    const struct ox_loop_body *body; // read-only
    struct ox_log *log;              // read-only
    struct ox_list ready;            // private: finished operations, in order
    struct ox_timer **heap;          // private: timers by due time, then by start order
    size_t heap_count, heap_cap;     // private
    uint64_t timer_seq;              // private
    bool crash_armed;                // private: a crash point may be armed
    bool dead; // read-only: this (simulated) process has crashed: every port answers SHUTDOWN and does nothing
    struct ox_list turn_end; // private: hooks to run when the ready queue has run dry
    uint64_t turn_longest_ns; // how long the longest turn kept everybody else waiting since somebody set this to 0; 0 in a simulation
    uint64_t turns_slow; // read-only: turns longer than OX_TURN_SLOW_NS
};

// Prepares the shared part; called by bodies.
void ox_loop_init(struct ox_loop *loop, const struct ox_loop_body *body, struct ox_log *log);
// Gives the shared part's memory back; called by bodies.
void ox_loop_fini(struct ox_loop *loop);
// Runs finished operations and due timers until nothing is ready now, then the turn-end hooks; returns the next timer's due time (ns), UINT64_MAX if none, or 0 if more is ready already. Called by bodies.
uint64_t ox_loop_turn(struct ox_loop *loop);

// Monotonic time in ns.
static inline uint64_t ox_now_ns(struct ox_loop *loop)
{
    return loop->body->now_ns(loop);
}
// Wall time in ms since 1970; a body may answer every question of one turn alike.
static inline uint64_t ox_wall_ms(struct ox_loop *loop)
{
    return loop->body->wall_ms(loop);
}
// 64 random bits.
static inline uint64_t ox_loop_random(struct ox_loop *loop)
{
    return loop->body->random(loop);
}

// A timer, embedded in its owner.
struct ox_timer {
    struct ox_loop *loop;             // read-only
    void (*fire)(struct ox_timer *t); // read-only
    uint64_t due_ns;                  // read-only while started
    uint64_t seq;                     // private
    size_t index;                     // private: place in the heap + 1, 0 = stopped
};
// Prepares a timer.
void ox_timer_init(struct ox_timer *t, struct ox_loop *loop, void (*fire)(struct ox_timer *t));
// (Re)starts it: fires once, from the loop, after delay_ns or later.
void ox_timer_start(struct ox_timer *t, uint64_t delay_ns);
// Stops it; no effect if it isn't started.
void ox_timer_stop(struct ox_timer *t);
// True between start and fire or stop.
static inline bool ox_timer_started(const struct ox_timer *t)
{
    return t->index != 0;
}

// A hook that runs once when the current turn has nothing ready any more: where batches are cut and sockets flushed.
struct ox_turn_hook {
    void (*run)(struct ox_turn_hook *h); // public
    struct ox_link link;                 // private
};
// Arms the hook for the end of this turn; no effect if it is armed already.
void ox_turn_end(struct ox_loop *loop, struct ox_turn_hook *hook);
// Disarms it.
void ox_turn_end_cancel(struct ox_loop *loop, struct ox_turn_hook *hook);

// Jobs: one function that blocks or burns a core, run to its end on a helper thread. It decides nothing and touches only what the job holds.
enum ox_lane {
    OX_LANE_JOURNAL,   // one thread: journal writes and syncs, in order of submission
    OX_LANE_META,      // one thread: LMDB of the metadata store and of ledger tables, in order
    OX_LANE_POOL,      // two threads: reads, compaction copies, zero-filling, compression
    OX_LANE_JOURNAL_2, // like the first, for further places: a slow disk under one does not hold up the others. One thread each, made with its first job
    OX_LANE_JOURNAL_3,
    OX_LANE_JOURNAL_4,
    OX_LANES // how many there are
};
struct ox_job {
    struct ox_op op; // done on the loop; err is always OX_OK (or SHUTDOWN): results are in the job's own struct
    void (*run)(struct ox_job *job); // public
    enum ox_lane lane;               // public
    void *body;                      // private to the loop's body
};
// Starts a job; job->op must be initialised, run and lane set.
void ox_job_submit(struct ox_loop *loop, struct ox_job *job);

// A named crash point: one per arrow of each multi-step job. Armed in the real process by the environment (OXBOW_CRASH_POINT=name[:nth]), in the simulator by the seed or a test.
#define OX_CRASHPOINT(loop, name)                      \
    do {                                               \
        if (__builtin_expect((loop)->crash_armed, 0))  \
            (loop)->body->crash_point((loop), (name)); \
    } while (0)

#endif
