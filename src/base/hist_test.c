// hist_test.c - the histogram's error is bounded.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hist.h"
#include "base/mem.h"

static void test_hist_quantile_is_off_by_at_most_a_64th(void **state)
{
    (void)state;
    struct ox_hist *h = ox_malloc(sizeof *h);
    for (uint64_t v = 0; v < UINT64_C(1) << 40; v = v * 9 / 8 + 1) {
        memset(h, 0, sizeof *h);
        ox_hist_add(h, v);
        ox_hist_add(h, UINT64_C(1) << 40); // so that the maximum does not cap the answer
        uint64_t q = ox_hist_quantile(h, 0.5);
        assert_true(q >= v && q - v <= v / 64);
    }
    ox_free(h);
}

static void test_hist_quantiles_of_an_even_spread(void **state)
{
    (void)state;
    struct ox_hist *h = ox_malloc(sizeof *h), *other = ox_malloc(sizeof *other);
    assert_true(ox_hist_quantile(h, 0.5) == 0);
    for (uint64_t v = 1; v <= 1000; v++)
        ox_hist_add(v % 2 ? h : other, v);
    ox_hist_merge(h, other);
    assert_true(h->count == 1000 && h->max == 1000 && h->sum == 500500);
    assert_in_range(ox_hist_quantile(h, 0.5), 500, 508);
    assert_in_range(ox_hist_quantile(h, 0.99), 990, 1000);
    assert_true(ox_hist_quantile(h, 1) == 1000);
    assert_true(ox_hist_quantile(h, 0) == 1);
    ox_hist_add(h, UINT64_MAX);
    assert_true(ox_hist_quantile(h, 1) == UINT64_MAX);
    ox_free(h);
    ox_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hist_quantile_is_off_by_at_most_a_64th),
        cmocka_unit_test(test_hist_quantiles_of_an_even_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
