// kv_test.c - lists of string pairs.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/kv.h"

static void test_kv_sets_replaces_removes_in_order(void **state)
{
    (void)state;
    struct ox_kv kv = {0}, copy = {0};
    ox_kv_set(&kv, "a", "1");
    ox_kv_set(&kv, "b", "2");
    ox_kv_set(&kv, "c", "3");
    ox_kv_set(&kv, "a", "one");
    assert_int_equal(kv.count, 3);
    assert_string_equal(kv.pairs[0].value, "one");
    ox_kv_copy(&copy, &kv);
    assert_true(ox_kv_remove(&kv, "b"));
    assert_false(ox_kv_remove(&kv, "b"));
    assert_string_equal(kv.pairs[1].key, "c");
    assert_null(ox_kv_find(&kv, "b"));
    assert_string_equal(ox_kv_find(&copy, "b"), "2");
    assert_true(ox_kv_contains(&copy, &kv));
    assert_false(ox_kv_contains(&kv, &copy));
    ox_kv_set(&kv, "a", "two");
    assert_false(ox_kv_contains(&copy, &kv));
    ox_kv_fini(&kv);
    ox_kv_fini(&copy);
    assert_int_equal(kv.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kv_sets_replaces_removes_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
