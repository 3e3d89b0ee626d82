// ranges_test.c - sets of intervals against a plain array.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/ranges.h"

#define MODEL 200

static void check(const struct ox_ranges *r, const bool *model)
{
    for (int64_t v = 0; v < MODEL; v++)
        assert_int_equal(ox_ranges_has(r, v), model[v]);
    for (size_t i = 0; i < r->count; i++) {
        assert_true(r->items[i].first <= r->items[i].last);
        assert_true(i == 0 || r->items[i - 1].last + 1 < r->items[i].first);
    }
}

// Sets first..last of the model to `to`; returns how many changed.
static uint64_t model_set(bool *model, int64_t first, int64_t last, bool to)
{
    uint64_t changed = 0;
    for (int64_t v = first; v <= last; v++) {
        changed += model[v] != to;
        model[v] = to;
    }
    return changed;
}

static void check_queries(const struct ox_ranges *r, const bool *model, int64_t first, int64_t last)
{
    uint64_t count = 0;
    for (int64_t v = first; v <= last; v++)
        count += model[v];
    assert_true(ox_ranges_count_in(r, first, last) == count);
    const struct ox_range *at = ox_ranges_at_or_after(r, first);
    int64_t next = first;
    while (next < MODEL && !model[next])
        next++;
    assert_int_equal(at != NULL, next < MODEL);
    if (at)
        assert_true(at->first <= next && at->last >= next && (at->first >= first || model[first]));
}

static void test_ranges_follow_a_model_through_random_changes(void **state)
{
    (void)state;
    struct ox_random random;
    ox_random_seed(&random, 42);
    for (int round = 0; round < 50; round++) {
        struct ox_ranges r = {0};
        bool model[MODEL] = {0};
        for (int step = 0; step < 200; step++) {
            int64_t first = (int64_t)ox_random_below(&random, MODEL);
            int64_t width = 1 + (int64_t)ox_random_below(&random, step % 10 ? 8 : 100);
            int64_t last = first + width > MODEL ? MODEL - 1 : first + width - 1;
            bool add = ox_random_below(&random, 3) > 0;
            uint64_t changed = add ? ox_ranges_add(&r, first, last) : ox_ranges_remove(&r, first, last);
            assert_true(changed == model_set(model, first, last, add));
            check(&r, model);
            check_queries(&r, model, first, last);
        }
        ox_ranges_fini(&r);
    }
}

static void test_ranges_appending_joins_into_one(void **state)
{
    (void)state;
    struct ox_ranges r = {0};
    for (int64_t v = 0; v < 10000; v++)
        assert_int_equal(ox_ranges_add(&r, v, v), 1);
    assert_int_equal(r.count, 1);
    assert_int_equal(ox_ranges_remove(&r, 5000, 5000), 1);
    assert_int_equal(r.count, 2);
    assert_int_equal(ox_ranges_add(&r, 0, 9999), 1);
    assert_int_equal(r.count, 1);
    ox_ranges_fini(&r);
}

static void test_ranges_reach_the_ends_of_64_bits(void **state)
{
    (void)state;
    struct ox_ranges r = {0};
    ox_ranges_add(&r, INT64_MAX - 1, INT64_MAX);
    ox_ranges_add(&r, INT64_MIN, INT64_MIN);
    ox_ranges_add(&r, INT64_MIN, INT64_MIN + 1);
    assert_int_equal(r.count, 2);
    assert_true(ox_ranges_has(&r, INT64_MAX));
    assert_true(ox_ranges_has(&r, INT64_MIN));
    assert_int_equal(ox_ranges_remove(&r, INT64_MIN, INT64_MAX), 4);
    assert_int_equal(r.count, 0);
    ox_ranges_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges_follow_a_model_through_random_changes),
        cmocka_unit_test(test_ranges_appending_joins_into_one),
        cmocka_unit_test(test_ranges_reach_the_ends_of_64_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
