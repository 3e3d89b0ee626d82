// node.c - a node: its processes one after another, their loop bodies and lanes, crashes and crash points.
#include <string.h>

#include "base/assert.h"
#include "sim/sim_int.h"

#define SIM_WALL_START_MS UINT64_C(1767225600000) // 2026-01-01
#define SIM_SLOW_NS OX_SEC

static uint64_t process_now(struct ox_loop *loop)
{
    return sim_process_of(loop)->sim->now_ns;
}

static uint64_t process_wall(struct ox_loop *loop)
{
    return SIM_WALL_START_MS + (uint64_t)sim_process_of(loop)->sim->wall_step_ms + process_now(loop) / OX_MS;
}

void ox_sim_step_clock(struct ox_sim *sim, int64_t ms)
{
    sim->wall_step_ms += ms;
}

static uint64_t process_random(struct ox_loop *loop)
{
    return ox_random_next(&sim_process_of(loop)->random);
}

static void task_fired(struct ox_timer *timer)
{
    struct sim_task *t = CONTAINER_OF(timer, struct sim_task, event);
    struct ox_op *op = t->op;
    ox_list_remove(&t->process->tasks, &t->link);
    enum ox_err err = t->run(t);
    sim_hash(t->process->sim, t->process->node, op->name, (uint64_t)err);
    t->end(t);
    ox_op_finish(op, err);
}

void sim_task_start(struct sim_task *t, struct sim_process *p, enum ox_lane lane, uint64_t time_ns)
{
    struct sim_lane *l = &p->lanes[lane];
    int thread = l->threads > 1 && l->free_at[1] < l->free_at[0] ? 1 : 0;
    t->process = p;
    t->start_ns = OX_MAX(l->free_at[thread], p->sim->now_ns);
    l->free_at[thread] = t->start_ns + time_ns;
    ox_timer_init(&t->event, &p->sim->world, task_fired);
    ox_timer_start(&t->event, l->free_at[thread] - p->sim->now_ns);
    ox_list_push_back(&p->tasks, &t->link);
}

struct job_task {
    struct sim_task task;
    struct ox_job *job;
};

static enum ox_err job_task_run(struct sim_task *t)
{
    struct ox_job *job = CONTAINER_OF(t, struct job_task, task)->job;
    job->run(job);
    return OX_OK;
}

static void job_task_cut(struct sim_task *t)
{
    if (ox_random_below(&t->process->sim->random, 2))
        (void)job_task_run(t);
}

static void job_task_end(struct sim_task *t)
{
    ox_free(CONTAINER_OF(t, struct job_task, task));
}

static void process_submit(struct ox_loop *loop, struct ox_job *job)
{
    struct sim_process *p = sim_process_of(loop);
    struct job_task *t = ox_malloc(sizeof(*t));
    t->job = job;
    t->task = (struct sim_task){.op = &job->op, .run = job_task_run, .cut = job_task_cut, .end = job_task_end};
    uint64_t time = sim_between(p->sim, 1000, p->sim->job_max_ns);
    if (sim_chance(p->sim, p->sim->faults.slow_job))
        time += sim_between(p->sim, 0, SIM_SLOW_NS);
    sim_task_start(&t->task, p, job->lane, time);
}

static void process_crash_point(struct ox_loop *loop, const char *name)
{
    struct ox_sim_node *node = sim_process_of(loop)->node;
    if (loop->dead || !node->armed_nth || (node->armed_name && strcmp(node->armed_name, name) != 0))
        return;
    if (--node->armed_nth > 0)
        return;
    ox_info(node->sim->log, "sim.crash_point", "node=%s name=%s", node->name, name);
    sim_hash(node->sim, node, name, 0);
    ox_sim_node_crash(node, node->armed_how);
}

static const struct ox_loop_body process_body = {.now_ns = process_now,
                                                 .wall_ms = process_wall,
                                                 .random = process_random,
                                                 .submit = process_submit,
                                                 .crash_point = process_crash_point};

static struct sim_process *process_new(struct ox_sim_node *node)
{
    struct ox_sim *sim = node->sim;
    struct sim_process *p = ox_malloc(sizeof(*p));
    ox_loop_init(&p->loop, &process_body, sim->log);
    p->sim = sim;
    p->node = node;
    p->loop.crash_armed = node->armed_nth > 0;
    p->fs = (struct ox_fs){.body = &sim_fs_body, .loop = &p->loop};
    p->net = (struct ox_net){.body = &sim_net_body, .loop = &p->loop};
    ox_random_seed(&p->random, ox_random_next(&sim->random));
    for (int i = 0; i < OX_LANES; i++)
        p->lanes[i].threads = i == OX_LANE_POOL ? 2 : 1;
    ox_list_init(&p->tasks);
    ox_list_init(&p->ends);
    ox_list_init(&p->listeners);
    ox_list_init(&p->connects);
    ox_list_push_back(&sim->processes, &p->link);
    return p;
}

struct ox_sim_node *ox_sim_node_new(struct ox_sim *sim, const char *name)
{
    struct ox_sim_node *node = ox_malloc(sizeof(*node));
    node->sim = sim;
    node->name = ox_strdup(name);
    node->id = (uint32_t)sim->nodes.count + 1;
    node->powered = true;
    ox_list_push_back(&sim->nodes, &node->link);
    node->disk = sim_disk_new(node);
    node->process = process_new(node);
    return node;
}

const char *ox_sim_node_name(const struct ox_sim_node *node)
{
    return node->name;
}

struct ox_loop *ox_sim_loop(struct ox_sim_node *node)
{
    return &node->process->loop;
}

struct ox_fs *ox_sim_fs(struct ox_sim_node *node)
{
    return &node->process->fs;
}

struct ox_net *ox_sim_net(struct ox_sim_node *node)
{
    return &node->process->net;
}

bool ox_sim_node_alive(const struct ox_sim_node *node)
{
    return !node->process->loop.dead;
}

static void process_cut_tasks(struct sim_process *p)
{
    for (struct ox_link *link; (link = ox_list_pop_front(&p->tasks));) {
        struct sim_task *t = CONTAINER_OF(link, struct sim_task, link);
        struct ox_op *op = t->op;
        ox_timer_stop(&t->event);
        if (t->start_ns <= p->sim->now_ns && t->cut)
            t->cut(t);
        t->end(t);
        ox_op_finish(op, OX_E_SHUTDOWN);
    }
}

void ox_sim_node_crash(struct ox_sim_node *node, enum ox_sim_crash how)
{
    struct sim_process *p = node->process;
    if (p->loop.dead)
        return;
    ox_debug(node->sim->log, "sim.crash", "node=%s how=%d", node->name, (int)how);
    sim_hash(node->sim, node, "crash", (uint64_t)how);
    p->loop.dead = true;
    p->loop.crash_armed = false;
    node->powered = how == OX_SIM_CRASH_PROCESS;
    process_cut_tasks(p);
    sim_net_crash(p, how);
    if (how == OX_SIM_CRASH_MACHINE)
        sim_disk_crash(node->disk);
}

void ox_sim_node_restart(struct ox_sim_node *node)
{
    ox_sim_node_crash(node, OX_SIM_CRASH_PROCESS);
    sim_hash(node->sim, node, "restart", 0);
    node->powered = true;
    node->process = process_new(node);
}

void ox_sim_arm(struct ox_sim_node *node, const char *name, uint32_t nth, enum ox_sim_crash how)
{
    ox_free(node->armed_name);
    node->armed_name = name ? ox_strdup(name) : NULL;
    node->armed_nth = nth;
    node->armed_how = how;
    node->process->loop.crash_armed = nth > 0 && !node->process->loop.dead;
}

bool ox_sim_armed(const struct ox_sim_node *node)
{
    return node->armed_nth > 0;
}
