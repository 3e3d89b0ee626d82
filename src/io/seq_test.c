// seq_test.c - what sequences promise.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "io/loop_rig_test.h"
#include "io/seq.h"

struct work {
    struct ox_seq seq;
    struct ox_op wait;
    char trace[16];
    enum ox_err err;
    int done_count;
};

static void work_note(struct work *w, char c)
{
    size_t n = strlen(w->trace);
    w->trace[n] = c;
}

static ox_step work_last(struct ox_seq *s)
{
    struct work *w = CONTAINER_OF(s, struct work, seq);
    work_note(w, 'c');
    return OX_FINISH(s, s->err);
}

static ox_step work_middle(struct ox_seq *s)
{
    struct work *w = CONTAINER_OF(s, struct work, seq);
    work_note(w, 'b');
    ox_seq_bind(s, &w->wait, "middle");
    ox_op_begin(&w->wait);
    return OX_WAIT(s, work_last);
}

static ox_step work_first(struct ox_seq *s)
{
    work_note(CONTAINER_OF(s, struct work, seq), 'a');
    return OX_GOTO(s, work_middle);
}

static void work_done(struct ox_seq *s, enum ox_err err)
{
    struct work *w = CONTAINER_OF(s, struct work, seq);
    w->done_count++;
    w->err = err;
}

static void test_seq_steps_run_in_order_and_see_the_outcome(void **state)
{
    (void)state;
    struct test_loop t;
    test_loop_init(&t);
    struct work w = {0};
    ox_seq_start(&w.seq, &t.loop, "work", work_first, work_done);
    assert_string_equal(w.trace, "");
    ox_loop_turn(&t.loop);
    assert_string_equal(w.trace, "ab");
    assert_string_equal(w.seq.step, "work_last");
    assert_true(w.seq.active);
    ox_op_finish(&w.wait, OX_E_NO_SPACE);
    ox_loop_turn(&t.loop);
    assert_string_equal(w.trace, "abc");
    assert_int_equal(w.done_count, 1);
    assert_int_equal(w.err, OX_E_NO_SPACE);
    assert_false(w.seq.active);
    ox_loop_fini(&t.loop);
}

static ox_step work_by_hand(struct ox_seq *s)
{
    return OX_WAIT(s, work_last);
}

static void test_seq_resume_by_hand_goes_through_the_loop(void **state)
{
    (void)state;
    struct test_loop t;
    test_loop_init(&t);
    struct work w = {0};
    ox_seq_start(&w.seq, &t.loop, "work", work_by_hand, work_done);
    ox_loop_turn(&t.loop);
    ox_seq_resume(&w.seq, OX_E_BUSY);
    assert_int_equal(w.done_count, 0);
    ox_loop_turn(&t.loop);
    assert_int_equal(w.err, OX_E_BUSY);
    assert_int_equal(w.done_count, 1);
    ox_loop_fini(&t.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seq_steps_run_in_order_and_see_the_outcome),
        cmocka_unit_test(test_seq_resume_by_hand_goes_through_the_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
