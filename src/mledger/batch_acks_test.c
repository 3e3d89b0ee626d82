// batch_acks_test.c - partly acknowledged batches.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "mledger/batch_acks.h"

static const struct ox_pos at = {3, 7};

static void test_batch_acks_join_until_nothing_is_left(void **state)
{
    (void)state;
    struct ox_batch_acks b = {0};
    uint64_t first = 0xe, second = 0xc, third = 0x3;
    assert_false(ox_batch_acks_and(&b, at, &first, 1));
    assert_false(ox_batch_acks_and(&b, at, &second, 1));
    assert_int_equal(ox_batch_acks_find(&b, at)->bits[0], 0xc);
    assert_true(ox_batch_acks_and(&b, at, &third, 1));
    assert_null(ox_batch_acks_find(&b, at));
}

static void test_batch_acks_all_at_once(void **state)
{
    (void)state;
    struct ox_batch_acks b = {0};
    uint64_t none[2] = {0, 0};
    assert_true(ox_batch_acks_and(&b, at, none, 2));
    assert_null(ox_batch_acks_find(&b, at));
}

// Trailing zero words are left out on the wire: a shorter set has no bits beyond its end.
static void test_batch_acks_shorter_set_ends_the_rest(void **state)
{
    (void)state;
    struct ox_batch_acks b = {0};
    uint64_t two[2] = {1, 1}, one = 1;
    assert_false(ox_batch_acks_and(&b, at, two, 2));
    assert_false(ox_batch_acks_and(&b, at, &one, 1));
    assert_int_equal(ox_batch_acks_find(&b, at)->words, 1);
    ox_batch_acks_fini(&b);
}

static void test_batch_acks_forget_upto_keeps_later_ones(void **state)
{
    (void)state;
    struct ox_batch_acks b = {0};
    uint64_t bits = 1;
    struct ox_pos later = {3, 8};
    assert_false(ox_batch_acks_and(&b, at, &bits, 1));
    assert_false(ox_batch_acks_and(&b, later, &bits, 1));
    ox_batch_acks_forget_upto(&b, at);
    assert_null(ox_batch_acks_find(&b, at));
    assert_non_null(ox_batch_acks_find(&b, later));
    ox_batch_acks_fini(&b);
}

static void test_batch_acks_are_bounded(void **state)
{
    (void)state;
    struct ox_batch_acks b = {0};
    uint64_t bits = 1;
    for (int64_t i = 0; i < OX_BATCH_ACKS_MAX + 10; i++)
        assert_false(ox_batch_acks_and(&b, (struct ox_pos){1, i}, &bits, 1));
    assert_int_equal(ox_map_count(&b.map), OX_BATCH_ACKS_MAX);
    assert_false(ox_batch_acks_and(&b, at, &bits, OX_BATCH_WORDS_MAX + 1));
    ox_batch_acks_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batch_acks_join_until_nothing_is_left),
        cmocka_unit_test(test_batch_acks_all_at_once),
        cmocka_unit_test(test_batch_acks_shorter_set_ends_the_rest),
        cmocka_unit_test(test_batch_acks_forget_upto_keeps_later_ones),
        cmocka_unit_test(test_batch_acks_are_bounded),
    };
    return cmocka_run_group_tests_name("broker.batch_acks", tests, NULL, NULL);
}
