// pending_test.c - the table of entries that are not acknowledged.
#include "broker/pending.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define POS(l, e) ((struct ox_pos){(l), (e)})

static void test_finds_what_was_added_and_not_what_was_removed(void **state)
{
    (void)state;
    struct pending_table t = {0};
    assert_null(pending_find(&t, POS(1, 1)));
    for (int64_t i = 0; i < 5000; i++)
        pending_add(&t, POS(3 + i % 7, i))->messages = (uint32_t)i;
    for (int64_t i = 0; i < 5000; i += 2)
        pending_remove(&t, pending_find(&t, POS(3 + i % 7, i)));
    assert_int_equal(t.count, 2500);
    for (int64_t i = 0; i < 5000; i++) {
        struct pending *p = pending_find(&t, POS(3 + i % 7, i));
        assert_int_equal(p != NULL, i % 2);
        assert_true(!p || p->messages == (uint32_t)i);
    }
    pending_clear(&t);
    assert_int_equal(t.count, 0);
}

static void test_a_removed_node_comes_back_clean(void **state)
{
    (void)state;
    struct pending_table t = {0};
    struct pending *p = pending_add(&t, POS(1, 1));
    p->redeliveries = 3;
    pending_remove(&t, p);
    p = pending_add(&t, POS(1, 2));
    assert_int_equal(p->redeliveries, 0);
    assert_null(p->holder);
    pending_clear(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_finds_what_was_added_and_not_what_was_removed),
                                       cmocka_unit_test(test_a_removed_node_comes_back_clean)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
