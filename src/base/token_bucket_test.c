// token_bucket_test.c - rates hold over time, whole entries pass, idle time gathers no more than the burst.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/token_bucket.h"

#define MS 1000000ull
#define SEC (1000 * MS)

static void test_token_bucket_zeroed_is_without_limit(void **state)
{
    (void)state;
    struct ox_token_bucket b = {0};
    ox_token_bucket_take(&b, 1e12, 1);
    assert_true(ox_token_bucket_ready(&b, 1));
    assert_int_equal(ox_token_bucket_wait_ns(&b, 1), 0);
    ox_token_bucket_set(&b, 10, 0, 1);
    ox_token_bucket_take(&b, 100, 1);
    assert_false(ox_token_bucket_ready(&b, 1));
    ox_token_bucket_set(&b, -1, 0, 1);
    assert_true(ox_token_bucket_ready(&b, 1));
}

static void test_token_bucket_large_entry_goes_and_is_waited_for(void **state)
{
    (void)state;
    struct ox_token_bucket b;
    ox_token_bucket_set(&b, 1000, 0, SEC);
    assert_true(ox_token_bucket_ready(&b, SEC));
    ox_token_bucket_take(&b, 3000, SEC);
    uint64_t wait = ox_token_bucket_wait_ns(&b, SEC);
    assert_in_range(wait, 2 * SEC, 2 * SEC + MS);
    assert_false(ox_token_bucket_ready(&b, SEC + 2 * SEC - MS));
    assert_true(ox_token_bucket_ready(&b, SEC + wait));
}

static void test_token_bucket_idle_time_gathers_the_burst_only(void **state)
{
    (void)state;
    struct ox_token_bucket b;
    ox_token_bucket_set(&b, 100, 250, 0);
    assert_true(ox_token_bucket_ready(&b, 3600 * SEC));
    ox_token_bucket_take(&b, 250, 3600 * SEC);
    assert_false(ox_token_bucket_ready(&b, 3600 * SEC));
    assert_in_range(ox_token_bucket_wait_ns(&b, 3600 * SEC), 1, MS);
}

static void test_token_bucket_clock_that_goes_back_takes_nothing(void **state)
{
    (void)state;
    struct ox_token_bucket b;
    ox_token_bucket_set(&b, 100, 0, 10 * SEC);
    ox_token_bucket_take(&b, 150, 10 * SEC);
    assert_false(ox_token_bucket_ready(&b, 2 * SEC));
    assert_true(ox_token_bucket_ready(&b, 10 * SEC + 501 * MS));
}

static void test_token_bucket_holds_its_rate_over_a_minute(void **state)
{
    (void)state;
    struct ox_token_bucket b;
    ox_token_bucket_set(&b, 5000, 0, 0);
    double taken = 0;
    for (uint64_t now = 0; now < 60 * SEC;) {
        uint64_t wait = ox_token_bucket_wait_ns(&b, now);
        now += wait;
        if (wait)
            continue;
        ox_token_bucket_take(&b, 700, now);
        taken += 700;
    }
    assert_in_range((uint64_t)taken, 60 * 5000, 61 * 5000 + 700);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_token_bucket_zeroed_is_without_limit),
        cmocka_unit_test(test_token_bucket_large_entry_goes_and_is_waited_for),
        cmocka_unit_test(test_token_bucket_idle_time_gathers_the_burst_only),
        cmocka_unit_test(test_token_bucket_clock_that_goes_back_takes_nothing),
        cmocka_unit_test(test_token_bucket_holds_its_rate_over_a_minute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
