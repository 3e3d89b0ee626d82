// world.h - one simulated world: a broker node with its disk, metadata service and faults, and a client node. The broker is the real composition of oxbowd.
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include "ledger/store/table_memory.h"
#include "metastore/memory.h"
#include "oxbowd/broker.h"
#include "sim/sim.h"

#define WORLD_URL "pulsar://broker:6650"

// What a seed has chosen.
struct world_plan {
    bool crashes, machine_crashes, crash_points, disk_faults, net_faults, meta_faults, full_disk, unloads,
        clean_restarts, seeks;
    bool rebirths, unsubscribes, readers, deletions, breaks, storms, full_restarts, clock_steps, small_windows, slow,
        meta_outages;
    bool early_trim; // with retention: what was sent long ago is not recognised any more when it is sent again, so that ledgers go soon
    bool retention;                            // acknowledged messages are dropped at once; else everything is kept
    bool broker_metadata;                      // entries carry broker entry metadata
    uint32_t topics, subscriptions, producers; // per topic the latter two
    uint32_t messages;                         // per producer
    uint32_t meta_fault_rate;                  // of calls to the metadata service, in a thousand
    uint64_t chaos_ns;                         // length of the random phase
    bool moves;                                // an operator moves the storage
    bool absences;                             // directories of bookie clusters cannot be read for a while
    bool move_points;                          // crashes at the named points of moves
    bool slow_moves;                           // disks that are often slow
    uint32_t groups;                           // subscriptions with several consumers, per topic
    bool liars;                                // some of those consumers lie
    bool delays;                               // some messages are not to be delivered at once
    bool few_unacked;                          // consumers may hold few messages only
    uint32_t places;                           // bookie clusters that the operator knows
};

// One life of the broker's process.
struct incarnation {
    struct world *world;
    struct oxbowd broker;
    struct ox_meta *meta;
    uint64_t session; // of the metadata store
    bool stopping, ended;
    struct ox_link link; // in world->graves once it has crashed
};

#define WORLD_PLACES_MAX 4

// The directory of a bookie cluster: its ledger table, which outlives processes.
struct world_store {
    char *dir;
    struct ox_memory_table *table;
    uint64_t back_ns; // until then it cannot be read
};

struct world_operator;

struct world {
    uint64_t seed;
    struct world_plan plan;
    struct ox_log *log;           // or NULL: of the caller
    struct ox_log watch;          // what the broker logs: lines that must not be
    struct ox_random random;      // of the plan and the chaos
    struct ox_random move_random; // of what has to do with moves
    struct ox_sim *sim;
    struct ox_sim_node *broker_node, *client_node;
    struct ox_meta_memory_tree *tree;
    struct world_store stores[WORLD_PLACES_MAX];
    uint32_t store_count;
    struct world_operator *oper; // or NULL
    struct ox_meta_memory_faults meta_faults;
    struct ox_config config;
    struct incarnation *now; // the process that lives, or NULL between two
    struct ox_list graves;   // processes that crashed and are being torn down
    uint64_t restart_ns;     // when the next process is started
    uint32_t lives;          // processes started
    bool healed;             // no more faults
    bool unswept; // the sweep at a start was cut short: what it has not come to outlives its topic, if that is deleted before the next start
    uint64_t meta_back_ns; // when the metadata service answers again
    char violation[512];   // the first broken promise; "" = none
};

// Makes a world and starts its broker; nothing runs before the simulator's steps.
struct world *world_new(uint64_t seed, struct ox_log *log);
// Ends it: the broker must have been stopped.
void world_free(struct world *w);
// True with a chance of n in a thousand.
bool world_chance(struct world *w, uint32_t per_mille);
// One tick of chaos: perhaps a fault; restarts a broker that is down; buries dead processes. Called every WORLD_TICK_NS of virtual time.
#define WORLD_TICK_NS (50 * OX_MS)
void world_tick(struct world *w);
// Ends all faults for good.
void world_heal(struct world *w);
// Starts the clean end of the broker; world_stopped tells when it is over.
void world_stop(struct world *w);
bool world_stopped(const struct world *w);
// Notes a broken promise (the first one counts).
void world_violation(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
