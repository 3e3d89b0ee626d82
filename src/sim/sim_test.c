// sim_test.c - virtual time, lanes, crashes and crash points of the simulated world, and that a seed decides everything.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "sim/sim.h"
#include "sim/sim_disk.h"

struct tick {
    struct ox_timer timer;
    int count;
};

static void tick_fire(struct ox_timer *timer)
{
    struct tick *k = CONTAINER_OF(timer, struct tick, timer);
    if (++k->count < 10)
        ox_timer_start(timer, OX_SEC);
}

static void test_sim_time_is_virtual_and_stops_at_the_limit(void **state)
{
    (void)state;
    struct ox_sim *sim = ox_sim_new(1, NULL);
    struct ox_loop *loop = ox_sim_loop(ox_sim_node_new(sim, "a"));
    struct tick k = {0};
    uint64_t wall = ox_wall_ms(loop);
    ox_timer_init(&k.timer, loop, tick_fire);
    ox_timer_start(&k.timer, OX_SEC);
    ox_sim_run_for(sim, 5 * OX_SEC + 1);
    assert_int_equal(k.count, 5);
    assert_int_equal(ox_sim_now(sim), 5 * OX_SEC + 1);
    ox_sim_run_for(sim, 3600 * OX_SEC);
    assert_int_equal(k.count, 10);
    assert_int_equal(ox_wall_ms(loop) - wall, 3605000);
    assert_false(ox_sim_step(sim));
    ox_sim_free(sim);
}

struct step {
    struct ox_job job;
    int *order;
    int place;
};

static void step_run(struct ox_job *job)
{
    struct step *s = CONTAINER_OF(job, struct step, job);
    s->place = ++*s->order;
}

static void test_sim_jobs_of_a_lane_run_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct ox_sim *sim = ox_sim_new(seed, NULL);
        struct ox_loop *loop = ox_sim_loop(ox_sim_node_new(sim, "a"));
        struct step steps[8] = {0};
        int order = 0;
        for (int i = 0; i < 8; i++) {
            steps[i].job = (struct ox_job){.run = step_run, .lane = OX_LANE_META};
            steps[i].order = &order;
            ox_op_init(&steps[i].job.op, loop, ox_sim_done, "step");
            ox_job_submit(loop, &steps[i].job);
        }
        assert_int_equal(ox_sim_wait(sim, &steps[7].job.op), OX_OK);
        for (int i = 0; i < 8; i++)
            assert_int_equal(steps[i].place, i + 1);
        assert_true(ox_sim_now(sim) > 0);
        ox_sim_free(sim);
    }
}

static void test_sim_crash_ends_pending_jobs_and_refuses_new_ones(void **state)
{
    (void)state;
    struct ox_sim *sim = ox_sim_new(3, NULL);
    struct ox_sim_node *node = ox_sim_node_new(sim, "a");
    struct ox_loop *loop = ox_sim_loop(node);
    int order = 0;
    struct step late = {.job = {.run = step_run, .lane = OX_LANE_META}, .order = &order}, queued = late;
    ox_op_init(&late.job.op, loop, ox_sim_done, "late");
    ox_op_init(&queued.job.op, loop, ox_sim_done, "queued");
    ox_job_submit(loop, &late.job);
    ox_job_submit(loop, &queued.job);
    ox_sim_node_crash(node, OX_SIM_CRASH_PROCESS);
    assert_false(ox_sim_node_alive(node));
    assert_int_equal(ox_sim_wait(sim, &late.job.op), OX_E_SHUTDOWN);
    assert_int_equal(ox_sim_wait(sim, &queued.job.op), OX_E_SHUTDOWN);
    assert_int_equal(queued.place, 0);
    ox_job_submit(loop, &queued.job);
    assert_int_equal(ox_sim_wait(sim, &queued.job.op), OX_E_SHUTDOWN);
    assert_int_equal(queued.place, 0);
    ox_sim_node_restart(node);
    assert_true(ox_sim_node_alive(node));
    assert_ptr_not_equal(ox_sim_loop(node), loop);
    ox_sim_free(sim);
}

static void test_sim_crash_point_fires_at_its_nth_pass_only(void **state)
{
    (void)state;
    struct ox_sim *sim = ox_sim_new(4, NULL);
    struct ox_sim_node *node = ox_sim_node_new(sim, "a");
    struct ox_loop *loop = ox_sim_loop(node);
    OX_CRASHPOINT(loop, "test.here");
    ox_sim_arm(node, "test.here", 2, OX_SIM_CRASH_PROCESS);
    OX_CRASHPOINT(loop, "test.there");
    OX_CRASHPOINT(loop, "test.here");
    assert_true(ox_sim_node_alive(node));
    ox_sim_node_restart(node);
    loop = ox_sim_loop(node);
    assert_true(ox_sim_armed(node));
    OX_CRASHPOINT(loop, "test.here");
    assert_false(ox_sim_node_alive(node));
    assert_false(ox_sim_armed(node));
    ox_sim_node_restart(node);
    loop = ox_sim_loop(node);
    OX_CRASHPOINT(loop, "test.here");
    assert_true(ox_sim_node_alive(node));
    ox_sim_arm(node, NULL, 1, OX_SIM_CRASH_MACHINE);
    OX_CRASHPOINT(loop, "test.anything");
    assert_false(ox_sim_node_alive(node));
    ox_sim_free(sim);
}

// A run with some of everything; its hash.
static uint64_t scripted_hash(uint64_t seed)
{
    struct ox_sim *sim = ox_sim_new(seed, NULL);
    struct ox_sim_node *node = ox_sim_node_new(sim, "a");
    struct ox_op op;
    struct ox_file *f;
    ox_sim_faults(sim)->write_fail = 200000;
    ox_op_init(&op, ox_sim_loop(node), ox_sim_done, "open");
    ox_file_open(ox_sim_fs(node), &op, OX_LANE_JOURNAL, "f", OX_OPEN_WRITE | OX_OPEN_CREATE, &f, NULL);
    assert_int_equal(ox_sim_wait(sim, &op), OX_OK);
    for (uint64_t i = 0; i < 50; i++) {
        char data[700];
        memset(data, (int)i, sizeof(data));
        struct iovec iov = {data, sizeof(data)};
        ox_file_write(f, &op, &iov, 1, ox_random_below(ox_sim_random(sim), 20000), true);
        (void)ox_sim_wait(sim, &op);
    }
    ox_sim_node_crash(node, OX_SIM_CRASH_MACHINE);
    ox_file_close(f);
    uint64_t hash = ox_sim_hash(sim);
    ox_sim_free(sim);
    return hash;
}

static void test_sim_same_seed_gives_the_same_hash(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 10; seed++)
        assert_int_equal(scripted_hash(seed), scripted_hash(seed));
    assert_int_not_equal(scripted_hash(1), scripted_hash(2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sim_time_is_virtual_and_stops_at_the_limit),
        cmocka_unit_test(test_sim_jobs_of_a_lane_run_in_order),
        cmocka_unit_test(test_sim_crash_ends_pending_jobs_and_refuses_new_ones),
        cmocka_unit_test(test_sim_crash_point_fires_at_its_nth_pass_only),
        cmocka_unit_test(test_sim_same_seed_gives_the_same_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
