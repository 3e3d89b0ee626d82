// pos_set_test.c - ordered sets of positions.
#include "base/pos_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"

#define POS(l, e) ((struct ox_pos){(l), (e)})

static void test_walks_in_order_whatever_the_order_of_adding(void **state)
{
    (void)state;
    static const struct ox_pos in[] = {{7, 3}, {2, 900}, {7, 1}, {2, 0}, {9, 255}, {9, 256}, {2, 63}, {2, 64}};
    static const struct ox_pos out[] = {{2, 0}, {2, 63}, {2, 64}, {2, 900}, {7, 1}, {7, 3}, {9, 255}, {9, 256}};
    struct ox_pos_set s = {0};
    struct ox_pos p = OX_POS_EARLIEST;
    for (size_t i = 0; i < OX_COUNT(in); i++)
        assert_true(ox_pos_set_add(&s, in[i]));
    assert_false(ox_pos_set_add(&s, in[0]));
    assert_int_equal(s.count, OX_COUNT(in));
    for (size_t i = 0; i < OX_COUNT(out); i++) {
        assert_true(ox_pos_set_at_or_after(&s, p, &p));
        assert_true(ox_pos_equal(p, out[i]));
        p.entry++;
    }
    assert_false(ox_pos_set_at_or_after(&s, p, &p));
    ox_pos_set_fini(&s);
}

static void test_removed_positions_are_gone_and_others_stay(void **state)
{
    (void)state;
    struct ox_pos_set s = {0};
    struct ox_pos p;
    for (int64_t i = 0; i < 2000; i++)
        ox_pos_set_add(&s, POS(1 + i / 700, i));
    for (int64_t i = 0; i < 2000; i++)
        if (i % 3)
            assert_true(ox_pos_set_remove(&s, POS(1 + i / 700, i)));
    assert_false(ox_pos_set_remove(&s, POS(1, 1)));
    assert_false(ox_pos_set_remove(&s, POS(50, 1)));
    assert_int_equal(s.count, 667);
    assert_true(ox_pos_set_has(&s, POS(1, 3)));
    assert_false(ox_pos_set_has(&s, POS(1, 4)));
    assert_false(ox_pos_set_has(&s, POS(1, -1)));
    assert_true(ox_pos_set_at_or_after(&s, POS(1, 697), &p));
    assert_true(ox_pos_equal(p, POS(1, 699)));
    ox_pos_set_fini(&s);
    assert_false(ox_pos_set_at_or_after(&s, POS(-1, -1), &p));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_walks_in_order_whatever_the_order_of_adding),
                                       cmocka_unit_test(test_removed_positions_are_gone_and_others_stay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
