// op_test.c - what operations promise.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/loop_rig_test.h"

struct probe {
    struct ox_op op;
    int done_count;
    bool restart;
};

static void probe_done(struct ox_op *op)
{
    struct probe *p = CONTAINER_OF(op, struct probe, op);
    p->done_count++;
    if (p->restart) {
        p->restart = false;
        ox_op_begin(op);
        ox_op_finish(op, OX_E_IO);
    }
}

static void test_op_done_comes_from_the_loop_once(void **state)
{
    (void)state;
    struct test_loop t;
    test_loop_init(&t);
    struct probe p = {0};
    ox_op_init(&p.op, &t.loop, probe_done, "probe");
    ox_op_begin(&p.op);
    assert_true(ox_op_pending(&p.op));
    ox_op_finish(&p.op, OX_E_TIMEOUT);
    assert_int_equal(p.done_count, 0);
    assert_true(ox_op_pending(&p.op));
    ox_loop_turn(&t.loop);
    ox_loop_turn(&t.loop);
    assert_int_equal(p.done_count, 1);
    assert_int_equal(p.op.err, OX_E_TIMEOUT);
    assert_false(ox_op_pending(&p.op));
    ox_loop_fini(&t.loop);
}

static void test_op_done_may_start_it_again(void **state)
{
    (void)state;
    struct test_loop t;
    test_loop_init(&t);
    struct probe p = {.restart = true};
    ox_op_init(&p.op, &t.loop, probe_done, "probe");
    ox_op_begin(&p.op);
    ox_op_finish(&p.op, OX_OK);
    ox_loop_turn(&t.loop);
    assert_int_equal(p.done_count, 2);
    assert_int_equal(p.op.err, OX_E_IO);
    ox_loop_fini(&t.loop);
}

static void probe_cancel(struct ox_op *op)
{
    ox_op_finish(op, OX_E_CANCELED);
}

static void test_op_cancel_is_a_request(void **state)
{
    (void)state;
    struct test_loop t;
    test_loop_init(&t);
    struct probe p = {0};
    ox_op_init(&p.op, &t.loop, probe_done, "probe");
    ox_op_cancel(&p.op);
    ox_op_begin(&p.op);
    ox_op_cancel(&p.op);
    assert_int_equal(p.op.state, OX_OP_PENDING);
    p.op.cancel = probe_cancel;
    ox_op_cancel(&p.op);
    ox_op_cancel(&p.op);
    ox_loop_turn(&t.loop);
    assert_int_equal(p.done_count, 1);
    assert_int_equal(p.op.err, OX_E_CANCELED);
    ox_loop_fini(&t.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_op_done_comes_from_the_loop_once),
        cmocka_unit_test(test_op_done_may_start_it_again),
        cmocka_unit_test(test_op_cancel_is_a_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
