// oxsim.c - whole brokers under a simulated clock, disk, network and metadata service: many seeds, each with its own topology, workload and faults.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "operator.h"
#include "workload.h"

#define CONVERGE_NS (300 * OX_SEC) // virtual time in which a healed world must have settled

struct options {
    uint64_t first, last;
    unsigned jobs;
    bool twice, verbose, keep_going;
};

static const char usage[] = "usage: oxsim [--seeds FIRST-LAST] [--jobs N] [--once] [--verbose] [--keep-going]\n"
                            "  Each seed is run twice and must give the same event hash (--once: no). A broken promise "
                            "prints its seed; exit status 1.\n";

static void log_stderr(void *ctx, const char *line, unsigned len)
{
    (void)ctx;
    fwrite(line, 1, len, stderr);
}

static uint64_t log_virtual_ms(void *ctx)
{
    const struct ox_sim *const *sim = (const struct ox_sim *const *)ctx;
    return *sim ? ox_sim_now(*sim) / OX_MS : 0;
}

// Runs the world with chaos ticks until the condition holds or the time is over.
static bool run_until(struct world *w, struct workload *load, bool (*condition)(const struct workload *load), uint64_t limit_ns)
{
    uint64_t end = ox_sim_now(w->sim) + limit_ns;
    while (ox_sim_now(w->sim) < end && !w->violation[0] && !condition(load)) {
        ox_sim_run_for(w->sim, WORLD_TICK_NS);
        world_tick(w);
        workload_look(load);
    }
    return condition(load);
}

static bool never(const struct workload *load)
{
    (void)load;
    return false;
}

static void check_settled(struct world *w, struct workload *load, bool (*condition)(const struct workload *load),
                          const char *what)
{
    char missing[256];
    if (w->violation[0] || run_until(w, load, condition, CONVERGE_NS) || w->violation[0])
        return;
    workload_describe(load, missing, sizeof missing);
    world_violation(w, "not %s after %llu s without faults: %s", what, (unsigned long long)(CONVERGE_NS / OX_SEC), missing);
}

static bool is_closed(const struct workload *load)
{
    return load->closed;
}

// Ends clients and broker in order, so that nothing leaks; only in a world whose promises held.
static bool wind_up(struct world *w, struct workload *load)
{
    workload_close(load);
    check_settled(w, load, is_closed, "closed");
    if (w->violation[0])
        return false;
    workload_free(load);
    world_stop(w);
    for (int i = 0; i < 10000 && !(world_stopped(w) && ox_list_empty(&w->graves)); i++) {
        ox_sim_run_for(w->sim, WORLD_TICK_NS);
        if (!world_stopped(w))
            world_tick(w);
        if (!w->now || !w->now->stopping)
            world_stop(w);
    }
    if (!world_stopped(w)) {
        world_violation(w, "the broker does not stop");
        return false;
    }
    ox_free(w->now);
    w->now = NULL;
    world_free(w);
    return true;
}

// Runs one seed; true if all promises held.
static bool run_seed(uint64_t seed, bool verbose, uint64_t *ret_hash)
{
    struct ox_sim *sim_for_log = NULL;
    struct ox_log log = {.level = OX_LOG_DEBUG, .write = log_stderr, .wall_ms = log_virtual_ms, .ctx = &sim_for_log};
    struct world *w = world_new(seed, verbose ? &log : NULL);
    sim_for_log = w->sim;
    struct workload *load = workload_new(w);
    run_until(w, load, never, w->plan.chaos_ns);
    world_heal(w);
    if (w->oper)
        operator_restore(w->oper);
    check_settled(w, load, workload_is_drained, "drained");
    if (!w->violation[0] && w->oper)
        operator_settle(w->oper);
    if (!w->violation[0]) {
        workload_reattach(load);
        check_settled(w, load, workload_is_acked, "delivered again");
    }
    if (!w->violation[0] && w->oper)
        operator_finale(w->oper);
    if (!w->violation[0]) {
        workload_reread(load);
        check_settled(w, load, workload_is_reread, "read from the start");
        if (!w->violation[0])
            workload_check(load);
    }
    *ret_hash = ox_sim_hash(w->sim);
    if (verbose)
        fprintf(stderr, "seed %llu: %u lives, %.1f virtual s, %llu steps\n", (unsigned long long)seed, w->lives,
                (double)ox_sim_now(w->sim) / 1e9, (unsigned long long)ox_sim_steps(w->sim));
    if (!w->violation[0] && wind_up(w, load))
        return true;
    printf("seed %llu: %s\n", (unsigned long long)seed, w->violation);
    return false; // what is left of the world stays where it is, for a debugger
}

static bool run_seed_twice(uint64_t seed, const struct options *o)
{
    uint64_t first = 0, second = 0;
    if (!run_seed(seed, o->verbose, &first))
        return false;
    if (!o->twice)
        return true;
    bool held = run_seed(seed, false, &second);
    if (held && first != second)
        printf("seed %llu: two runs differ (event hash %016llx, %016llx)\n", (unsigned long long)seed,
               (unsigned long long)first, (unsigned long long)second);
    return held && first == second;
}

// Every jobs-th seed from `offset` on.
static int run_share(const struct options *o, unsigned offset)
{
    int failed = 0;
    for (uint64_t seed = o->first + offset; seed <= o->last; seed += o->jobs) {
        bool held = run_seed_twice(seed, o);
        fflush(stdout);
        failed |= !held;
        if (!held && !o->keep_going)
            break;
    }
    return failed;
}

static int run_all(const struct options *o)
{
    int failed = 0, status;
    if (o->jobs == 1)
        return run_share(o, 0);
    for (unsigned i = 0; i < o->jobs; i++) {
        pid_t pid = fork();
        if (pid == 0)
            exit(run_share(o, i));
        failed |= pid < 0;
    }
    while (wait(&status) > 0)
        failed |= status != 0;
    return failed;
}

static bool parse_seeds(const char *text, struct options *o)
{
    char *end;
    o->first = o->last = strtoull(text, &end, 10);
    if (*end == '-')
        o->last = strtoull(end + 1, &end, 10);
    return *text && *end == 0 && o->first <= o->last;
}

static bool parse(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--seeds") == 0 && i + 1 < argc && parse_seeds(argv[i + 1], o))
            i++;
        else if (strcmp(argv[i], "--jobs") == 0 && i + 1 < argc && atoi(argv[i + 1]) > 0)
            o->jobs = (unsigned)atoi(argv[++i]);
        else if (strcmp(argv[i], "--once") == 0)
            o->twice = false;
        else if (strcmp(argv[i], "--verbose") == 0)
            o->verbose = true;
        else if (strcmp(argv[i], "--keep-going") == 0)
            o->keep_going = true;
        else
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct options o = {.first = 1, .last = 20, .jobs = 1, .twice = true};
    if (!parse(argc, argv, &o)) {
        fputs(usage, stderr);
        return 2;
    }
    return run_all(&o);
}
