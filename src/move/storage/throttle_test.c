// throttle_test.c - rates are exact in virtual time, without bursts, and change at once.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "move/storage/throttle.h"
#include "sim/sim.h"

#define WINDOWS 200

// Somebody who takes all he can.
struct taker {
    struct throttle *t;
    struct throttle_wait wait;
    uint64_t bytes, ops; // of one take
    uint64_t taken, count;
    uint64_t windows[WINDOWS]; // bytes by tenths of a second
};

static void taker_go(struct ox_op *op)
{
    struct taker *k = CONTAINER_OF(op, struct taker, wait.op);
    while (throttle_take(k->t, k->bytes, k->ops)) {
        k->taken += k->bytes;
        k->count += k->ops;
        uint64_t window = ox_now_ns(op->loop) / (100 * OX_MS);
        if (window < WINDOWS)
            k->windows[window] += k->bytes;
        if (k->taken > UINT64_C(1) << 40)
            return; // no limit any more
    }
    throttle_wait(k->t, &k->wait);
}

struct rig {
    struct ox_sim *sim;
    struct throttle t;
    struct taker takers[3];
};

static void rig_init(struct rig *r, uint64_t bytes_per_s, uint64_t ops_per_s)
{
    *r = (struct rig){.sim = ox_sim_new(1, NULL)};
    struct ox_loop *loop = ox_sim_loop(ox_sim_node_new(r->sim, "a"));
    throttle_init(&r->t, loop);
    throttle_set(&r->t, bytes_per_s, ops_per_s);
    for (size_t i = 0; i < 3; i++) {
        r->takers[i] = (struct taker){.t = &r->t, .bytes = 5000 + 9000 * i, .ops = 1};
        ox_op_init(&r->takers[i].wait.op, loop, taker_go, "take");
        taker_go(&r->takers[i].wait.op);
    }
}

static uint64_t rig_taken(const struct rig *r)
{
    return r->takers[0].taken + r->takers[1].taken + r->takers[2].taken;
}

static void rig_fini(struct rig *r)
{
    for (size_t i = 0; i < 3; i++)
        r->takers[i].bytes = UINT64_C(1) << 41;
    throttle_set(&r->t, 0, 0);
    ox_sim_run_for(r->sim, OX_SEC);
    throttle_fini(&r->t);
    ox_sim_free(r->sim);
}

// fault: F14
static void test_throttle_keeps_the_rate_without_bursts(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r, 1000000, 0);
    ox_sim_run_for(r.sim, 5 * OX_SEC);
    assert_in_range(rig_taken(&r), 4950000, 5050000);
    for (size_t w = 0; w < 50; w++) // a tenth of a second's worth is 100,000; no more than 50 ms' worth on top
        assert_in_range(r.takers[0].windows[w] + r.takers[1].windows[w] + r.takers[2].windows[w], 50000, 150000);
    rig_fini(&r);
}

// fault: F14
static void test_throttle_changes_at_once(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r, 100000, 0);
    ox_sim_run_for(r.sim, OX_SEC);
    uint64_t before = rig_taken(&r);
    assert_in_range(before, 90000, 125000);
    throttle_set(&r.t, 10000000, 0);
    ox_sim_run_for(r.sim, OX_SEC);
    assert_in_range(rig_taken(&r) - before, 9700000, 10300000);
    before = rig_taken(&r);
    throttle_set(&r.t, 100000, 0);
    ox_sim_run_for(r.sim, 5 * OX_SEC);
    assert_in_range(rig_taken(&r) - before, 200000, 520000); // what was booked at the higher rate is paid first
    rig_fini(&r);
}

static void test_throttle_limits_operations(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r, 0, 500);
    ox_sim_run_for(r.sim, 4 * OX_SEC);
    assert_in_range(r.takers[0].count + r.takers[1].count + r.takers[2].count, 1980, 2040);
    rig_fini(&r);
}

// The lower rank takes all that it can use.
static void test_throttle_serves_ranks_in_order(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r, 1000000, 0);
    r.takers[0].wait.rank = 3; // from its next wait on
    r.takers[1].wait.rank = 2;
    r.takers[2].wait.rank = 1;
    ox_sim_run_for(r.sim, OX_SEC);
    assert_true(r.takers[2].taken > 900000);
    assert_true(r.takers[0].taken + r.takers[1].taken < 100000);
    rig_fini(&r);
}

// What was asked for and not used is given back; what was used beyond it is paid.
static void test_throttle_settles_what_was_used(void **state)
{
    (void)state;
    struct ox_sim *sim = ox_sim_new(1, NULL);
    struct throttle t;
    throttle_init(&t, ox_sim_loop(ox_sim_node_new(sim, "a")));
    throttle_set(&t, 1000, 0);
    assert_true(throttle_take(&t, 1000, 1));
    assert_false(throttle_take(&t, 1, 1));
    throttle_settle(&t, 1000, 1, 0, 0);
    assert_true(throttle_take(&t, 1, 1));
    throttle_settle(&t, 1, 1, 10000, 1);
    ox_sim_run_for(sim, 9 * OX_SEC);
    assert_false(throttle_take(&t, 1, 1));
    ox_sim_run_for(sim, OX_SEC);
    assert_true(throttle_take(&t, 1, 1));
    assert_int_equal(t.taken, 10001);
    throttle_fini(&t);
    ox_sim_free(sim);
}

static void test_throttle_slices_follow_the_rate(void **state)
{
    (void)state;
    struct ox_sim *sim = ox_sim_new(1, NULL);
    struct throttle t;
    throttle_init(&t, ox_sim_loop(ox_sim_node_new(sim, "a")));
    assert_int_equal(throttle_bytes_slice(&t, 1 << 20), 1 << 20);
    assert_int_equal(throttle_ops_slice(&t, 4096), 4096);
    throttle_set(&t, 4000000, 400);
    assert_int_equal(throttle_bytes_slice(&t, 1 << 20), 12012);
    assert_int_equal(throttle_ops_slice(&t, 4096), 1);
    throttle_set(&t, 10, 1);
    assert_int_equal(throttle_bytes_slice(&t, 1 << 20), 4096);
    assert_int_equal(throttle_ops_slice(&t, 4096), 1);
    throttle_fini(&t);
    ox_sim_free(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_throttle_keeps_the_rate_without_bursts),
        cmocka_unit_test(test_throttle_changes_at_once),
        cmocka_unit_test(test_throttle_limits_operations),
        cmocka_unit_test(test_throttle_serves_ranks_in_order),
        cmocka_unit_test(test_throttle_settles_what_was_used),
        cmocka_unit_test(test_throttle_slices_follow_the_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
