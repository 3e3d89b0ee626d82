// sim_int.h - what the files of this folder share: the world, its nodes and processes, tasks in lanes.
#ifndef SIM_SIM_INT_H
#define SIM_SIM_INT_H

#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "sim/sim.h"

struct sim_disk;
struct sim_net_world;

struct ox_sim {
    struct ox_loop world; // its timer heap holds the events that belong to no process
    struct ox_log *log;
    struct ox_random random;
    struct ox_sim_faults faults;
    struct ox_list nodes, processes;
    uint64_t now_ns, hash, steps;
    int64_t wall_step_ms;  // what the wall clocks are ahead
    uint64_t steps_at_now; // to notice a world in which no time passes
    uint64_t disk_min_ns, disk_max_ns, job_max_ns;
    struct sim_net_world *net;
};

// The threads of one lane.
struct sim_lane {
    uint64_t free_at[2];
    int threads;
};

// One life of a node's process. Kept until the world ends: its owner may tear down late.
struct sim_process {
    struct ox_loop loop;
    struct ox_sim *sim;
    struct ox_sim_node *node;
    struct ox_fs fs;
    struct ox_net net;
    struct ox_random random;
    struct sim_lane lanes[OX_LANES];
    struct ox_list tasks;                     // pending, in order of submission
    struct ox_list ends, listeners, connects; // the network's
    struct ox_link link;
};

struct ox_sim_node {
    struct ox_sim *sim;
    char *name;
    uint32_t id;
    struct sim_process *process;
    struct sim_disk *disk;
    char *armed_name; // NULL: any
    uint32_t armed_nth;
    enum ox_sim_crash armed_how;
    bool powered; // false between a power cut and the restart
    struct ox_link link;
};

// Something that a lane's thread does: an event with an operation.
struct sim_task {
    struct ox_timer event;
    struct sim_process *process;
    struct ox_op *op;
    uint64_t start_ns;                      // when a thread takes it up
    enum ox_err (*run)(struct sim_task *t); // its effect, at the end of its time
    void (*cut)(struct sim_task *t);        // the process has crashed while it was under way
    void (*end)(struct sim_task *t);        // frees it
    struct ox_link link;
};

// True with a chance of ppm in a million.
bool sim_chance(struct ox_sim *sim, uint32_t ppm);
// A number in min..max.
uint64_t sim_between(struct ox_sim *sim, uint64_t min, uint64_t max);
// Adds an event to the hash.
void sim_hash(struct ox_sim *sim, const struct ox_sim_node *node, const char *kind, uint64_t value);

// Begins t->op (unless the caller has) and lets a thread of the lane do the task, which takes time_ns once a thread is free.
void sim_task_start(struct sim_task *t, struct sim_process *p, enum ox_lane lane, uint64_t time_ns);

static inline struct sim_process *sim_process_of(struct ox_loop *loop)
{
    return CONTAINER_OF(loop, struct sim_process, loop);
}

extern const struct ox_fs_body sim_fs_body;
struct sim_disk *sim_disk_new(struct ox_sim_node *node);
void sim_disk_free(struct sim_disk *d);
// Decides what survives a power cut.
void sim_disk_crash(struct sim_disk *d);

extern const struct ox_net_body sim_net_body;
struct sim_net_world *sim_net_new(struct ox_sim *sim);
void sim_net_free(struct sim_net_world *w);
// Ends the streams, listeners and connects of a crashed process.
void sim_net_crash(struct sim_process *p, enum ox_sim_crash how);

#endif
