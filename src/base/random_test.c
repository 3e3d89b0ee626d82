// random_test.c - the generator repeats itself and is even.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"

static void test_random_same_seed_same_sequence(void **state)
{
    (void)state;
    struct ox_random a, b, c;
    ox_random_seed(&a, 7);
    ox_random_seed(&b, 7);
    ox_random_seed(&c, 8);
    bool differs = false;
    for (int i = 0; i < 100; i++) {
        uint64_t v = ox_random_next(&a);
        assert_true(v == ox_random_next(&b));
        differs |= v != ox_random_next(&c);
    }
    assert_true(differs);
}

static void test_random_below_is_even(void **state)
{
    (void)state;
    struct ox_random r;
    ox_random_seed(&r, 3);
    int counts[6] = {0};
    for (int i = 0; i < 60000; i++)
        counts[ox_random_below(&r, 6)]++;
    for (int i = 0; i < 6; i++)
        assert_in_range(counts[i], 9500, 10500);
    assert_true(ox_random_below(&r, 1) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_same_seed_same_sequence),
        cmocka_unit_test(test_random_below_is_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
