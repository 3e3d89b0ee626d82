// loop_test.c - what timers, turn-end hooks and jobs promise.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "io/loop_rig_test.h"

struct tick {
    struct ox_timer timer;
    uint64_t fired_at;
    int count;
    bool again;
    uint64_t *order;
    uint64_t place;
};

static void tick_fire(struct ox_timer *timer)
{
    struct tick *k = CONTAINER_OF(timer, struct tick, timer);
    k->fired_at = ox_now_ns(timer->loop);
    k->count++;
    if (k->order)
        k->place = ++*k->order;
    if (k->again)
        ox_timer_start(timer, 0);
}

static void test_timers_fire_in_order_of_due_time_then_start(void **state)
{
    (void)state;
    struct test_loop t;
    test_loop_init(&t);
    struct ox_random r;
    ox_random_seed(&r, 7);
    uint64_t order = 0;
    static const size_t n = 200;
    struct tick *ticks = ox_calloc(n, sizeof(*ticks));
    for (size_t i = 0; i < n; i++) {
        ticks[i].order = &order;
        ox_timer_init(&ticks[i].timer, &t.loop, tick_fire);
        ox_timer_start(&ticks[i].timer, ox_random_below(&r, 50));
    }
    for (size_t i = 0; i < n; i += 3)
        ox_timer_stop(&ticks[i].timer);
    for (uint64_t due; (due = ox_loop_turn(&t.loop)) != UINT64_MAX;)
        t.now_ns = due;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(ticks[i].count, i % 3 ? 1 : 0);
        for (size_t j = 0; j < n; j++) {
            if (i % 3 && j % 3 &&
                (ticks[i].timer.due_ns < ticks[j].timer.due_ns || (ticks[i].timer.due_ns == ticks[j].timer.due_ns && i < j)))
                assert_true(ticks[i].place < ticks[j].place);
        }
    }
    ox_free(ticks);
    ox_loop_fini(&t.loop);
}

static void test_timer_restarted_with_no_delay_does_not_hold_the_turn(void **state)
{
    (void)state;
    struct test_loop t;
    test_loop_init(&t);
    struct tick k = {.again = true};
    ox_timer_init(&k.timer, &t.loop, tick_fire);
    ox_timer_start(&k.timer, 0);
    assert_int_equal(ox_loop_turn(&t.loop), 0);
    assert_int_equal(k.count, 1);
    assert_true(ox_timer_started(&k.timer));
    ox_timer_stop(&k.timer);
    assert_int_equal(ox_loop_turn(&t.loop), UINT64_MAX);
    ox_loop_fini(&t.loop);
}

static void test_timer_with_a_huge_delay_never_wraps(void **state)
{
    (void)state;
    struct test_loop t;
    test_loop_init(&t);
    t.now_ns = 1000;
    struct tick k = {0};
    ox_timer_init(&k.timer, &t.loop, tick_fire);
    ox_timer_start(&k.timer, UINT64_MAX);
    assert_int_equal(ox_loop_turn(&t.loop), UINT64_MAX - 1);
    assert_int_equal(k.count, 0);
    ox_timer_stop(&k.timer);
    ox_loop_fini(&t.loop);
}

struct batch {
    struct ox_turn_hook hook;
    struct ox_op op;
    struct ox_loop *loop;
    int added, cut, done;
};

static void batch_cut(struct ox_turn_hook *hook)
{
    struct batch *b = CONTAINER_OF(hook, struct batch, hook);
    b->cut++;
    assert_int_equal(b->added, 2);
}

static void batch_done(struct ox_op *op)
{
    struct batch *b = CONTAINER_OF(op, struct batch, op);
    b->added++;
    ox_turn_end(b->loop, &b->hook);
    if (b->added < 2) {
        ox_op_begin(op);
        ox_op_finish(op, OX_OK);
    }
}

static void test_turn_end_hook_runs_once_behind_everything_ready(void **state)
{
    (void)state;
    struct test_loop t;
    test_loop_init(&t);
    struct batch b = {.hook = {.run = batch_cut}, .loop = &t.loop};
    ox_op_init(&b.op, &t.loop, batch_done, "batch");
    ox_op_begin(&b.op);
    ox_op_finish(&b.op, OX_OK);
    ox_loop_turn(&t.loop);
    assert_int_equal(b.cut, 1);
    ox_turn_end(&t.loop, &b.hook);
    ox_turn_end_cancel(&t.loop, &b.hook);
    ox_loop_turn(&t.loop);
    assert_int_equal(b.cut, 1);
    ox_loop_fini(&t.loop);
}

struct sum {
    struct ox_job job;
    int result;
};

static void sum_run(struct ox_job *job)
{
    CONTAINER_OF(job, struct sum, job)->result = 42;
}

static void sum_done(struct ox_op *op)
{
    (void)op;
}

static void test_job_on_a_dead_loop_does_not_run(void **state)
{
    (void)state;
    struct test_loop t;
    test_loop_init(&t);
    struct sum s = {.job = {.run = sum_run, .lane = OX_LANE_POOL}};
    ox_op_init(&s.job.op, &t.loop, sum_done, "sum");
    t.loop.dead = true;
    ox_job_submit(&t.loop, &s.job);
    ox_loop_turn(&t.loop);
    assert_int_equal(s.job.op.err, OX_E_SHUTDOWN);
    assert_int_equal(s.result, 0);
    t.loop.dead = false;
    ox_job_submit(&t.loop, &s.job);
    ox_loop_turn(&t.loop);
    assert_int_equal(s.job.op.err, OX_OK);
    assert_int_equal(s.result, 42);
    ox_loop_fini(&t.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timers_fire_in_order_of_due_time_then_start),
        cmocka_unit_test(test_timer_restarted_with_no_delay_does_not_hold_the_turn),
        cmocka_unit_test(test_timer_with_a_huge_delay_never_wraps),
        cmocka_unit_test(test_turn_end_hook_runs_once_behind_everything_ready),
        cmocka_unit_test(test_job_on_a_dead_loop_does_not_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
