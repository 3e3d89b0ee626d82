// limits_test.c - budgets.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"

static void test_budget_refuses_beyond_max_but_lets_one_oversized_pass(void **state)
{
    (void)state;
    struct ox_budget b = {.max = 100};
    assert_true(ox_budget_take(&b, 60));
    assert_false(ox_budget_take(&b, 41));
    assert_true(ox_budget_take(&b, 40));
    ox_budget_give(&b, 100);
    assert_true(ox_budget_take(&b, 1000));
    assert_false(ox_budget_take(&b, 1));
    ox_budget_give(&b, 1000);
    assert_int_equal(b.used, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budget_refuses_beyond_max_but_lets_one_oversized_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
