// sim.c - the world: which event is next, how time passes, what the hash holds.
#include <stdio.h>

#include "base/assert.h"
#include "sim/sim_int.h"

#define SIM_WAIT_NS (3600 * OX_SEC)
#define SIM_STEPS_AT_ONE_TIME_MAX UINT64_C(2000000)

static uint64_t world_now(struct ox_loop *loop)
{
    return CONTAINER_OF(loop, struct ox_sim, world)->now_ns;
}

static const struct ox_loop_body world_body = {.now_ns = world_now};

struct ox_sim *ox_sim_new(uint64_t seed, struct ox_log *log)
{
    struct ox_sim *sim = ox_malloc(sizeof(*sim));
    ox_loop_init(&sim->world, &world_body, log);
    sim->log = log;
    ox_random_seed(&sim->random, seed);
    ox_list_init(&sim->nodes);
    ox_list_init(&sim->processes);
    sim->hash = UINT64_C(0x9e3779b97f4a7c15);
    sim->disk_min_ns = sim_between(sim, 10, 50) * 1000;
    sim->disk_max_ns = sim->disk_min_ns + sim_between(sim, 20, 2000) * 1000;
    sim->job_max_ns = sim_between(sim, 10, 500) * 1000;
    sim->net = sim_net_new(sim);
    return sim;
}

static void process_free(struct sim_process *p)
{
    for (struct ox_link *link; (link = ox_list_pop_front(&p->tasks));) {
        struct sim_task *t = CONTAINER_OF(link, struct sim_task, link);
        ox_timer_stop(&t->event);
        t->end(t);
    }
    ox_loop_fini(&p->loop);
    ox_free(p);
}

void ox_sim_free(struct ox_sim *sim)
{
    sim_net_free(sim->net);
    for (struct ox_link *link; (link = ox_list_pop_front(&sim->processes));)
        process_free(CONTAINER_OF(link, struct sim_process, link));
    for (struct ox_link *link; (link = ox_list_pop_front(&sim->nodes));) {
        struct ox_sim_node *node = CONTAINER_OF(link, struct ox_sim_node, link);
        sim_disk_free(node->disk);
        ox_free(node->armed_name);
        ox_free(node->name);
        ox_free(node);
    }
    ox_loop_fini(&sim->world);
    ox_free(sim);
}

struct ox_sim_faults *ox_sim_faults(struct ox_sim *sim)
{
    return &sim->faults;
}

struct ox_random *ox_sim_random(struct ox_sim *sim)
{
    return &sim->random;
}

uint64_t ox_sim_now(const struct ox_sim *sim)
{
    return sim->now_ns;
}

uint64_t ox_sim_hash(const struct ox_sim *sim)
{
    return sim->hash;
}

uint64_t ox_sim_steps(const struct ox_sim *sim)
{
    return sim->steps;
}

bool sim_chance(struct ox_sim *sim, uint32_t ppm)
{
    return ppm && ox_random_below(&sim->random, 1000000) < ppm;
}

uint64_t sim_between(struct ox_sim *sim, uint64_t min, uint64_t max)
{
    return min + ox_random_below(&sim->random, max - min + 1);
}

static void hash_add(struct ox_sim *sim, uint64_t value)
{
    uint64_t h = (sim->hash ^ value) * UINT64_C(0xff51afd7ed558ccd);
    sim->hash = h ^ h >> 32;
}

void sim_hash(struct ox_sim *sim, const struct ox_sim_node *node, const char *kind, uint64_t value)
{
    hash_add(sim, sim->now_ns);
    hash_add(sim, node ? node->id : 0);
    for (; *kind; kind++)
        hash_add(sim, (uint64_t)(unsigned char)*kind);
    hash_add(sim, value);
}

void ox_sim_note(struct ox_sim *sim, const char *kind, uint64_t value)
{
    sim_hash(sim, NULL, kind, value);
}

static struct sim_process *sim_ready_process(struct ox_sim *sim)
{
    OX_LIST_EACH(&sim->processes, link) {
        struct sim_process *p = CONTAINER_OF(link, struct sim_process, link);
        if (!ox_list_empty(&p->loop.ready) || !ox_list_empty(&p->loop.turn_end))
            return p;
    }
    return NULL;
}

// The loop whose timer is due first: the world's own, or a process's. NULL if there is no timer.
static struct ox_loop *sim_next_loop(struct ox_sim *sim)
{
    struct ox_loop *next = sim->world.heap_count ? &sim->world : NULL;
    OX_LIST_EACH(&sim->processes, link) {
        struct ox_loop *loop = &CONTAINER_OF(link, struct sim_process, link)->loop;
        if (loop->heap_count && (!next || loop->heap[0]->due_ns < next->heap[0]->due_ns))
            next = loop;
    }
    return next;
}

static void sim_advance(struct ox_sim *sim, uint64_t to_ns)
{
    if (to_ns > sim->now_ns) {
        sim->now_ns = to_ns;
        sim->steps_at_now = 0;
    }
}

// One step that does not go beyond limit_ns; false if there is none.
static bool sim_step_until(struct ox_sim *sim, uint64_t limit_ns)
{
    struct sim_process *ready = sim_ready_process(sim);
    struct ox_loop *next = ready ? &ready->loop : sim_next_loop(sim);
    if (!next || (!ready && next->heap[0]->due_ns > limit_ns))
        return false;
    if (!ready)
        sim_advance(sim, next->heap[0]->due_ns);
    sim->steps++;
    OX_ASSERT(++sim->steps_at_now < SIM_STEPS_AT_ONE_TIME_MAX);
    if (next == &sim->world) {
        struct ox_timer *t = next->heap[0];
        ox_timer_stop(t);
        t->fire(t);
    } else {
        (void)ox_loop_turn(next);
    }
    return true;
}

bool ox_sim_step(struct ox_sim *sim)
{
    return sim_step_until(sim, UINT64_MAX);
}

bool ox_sim_run(struct ox_sim *sim, bool (*condition)(void *ctx), void *ctx, uint64_t limit_ns)
{
    uint64_t limit = limit_ns > UINT64_MAX - sim->now_ns ? UINT64_MAX : sim->now_ns + limit_ns;
    while (!condition || !condition(ctx)) {
        if (sim_step_until(sim, limit))
            continue;
        if (limit != UINT64_MAX)
            sim_advance(sim, limit);
        return condition && condition(ctx);
    }
    return true;
}

void ox_sim_run_for(struct ox_sim *sim, uint64_t ns)
{
    (void)ox_sim_run(sim, NULL, NULL, ns);
}

enum ox_err ox_sim_wait(struct ox_sim *sim, struct ox_op *op)
{
    uint64_t limit = sim->now_ns + SIM_WAIT_NS;
    while (ox_op_pending(op)) {
        if (!sim_step_until(sim, limit)) {
            fprintf(stderr, "sim: the operation '%s' never finishes\n", op->name);
            OX_ASSERT(!ox_op_pending(op));
        }
    }
    return op->err;
}

void ox_sim_done(struct ox_op *op)
{
    (void)op;
}
