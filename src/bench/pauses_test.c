// pauses_test.c - longest gaps by windows.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "bench/bench.h"

static void test_pauses_by_window(void **state)
{
    (void)state;
    struct bench_pauses p;
    bench_pauses_init(&p, 100, 1000);
    uint64_t acks[] = {1010, 1050, 1090, 1110, 1290, 1299};
    for (size_t i = 0; i < OX_COUNT(acks); i++)
        bench_pauses_note(&p, acks[i]);
    bench_pauses_end(&p, 1300);
    assert_int_equal(p.count, 3);
    assert_int_equal(bench_pauses_max(&p), 180);
    assert_int_equal(bench_pauses_median(&p), 40);
    bench_pauses_fini(&p);
}

static void test_pauses_without_any_ack(void **state)
{
    (void)state;
    struct bench_pauses p;
    bench_pauses_init(&p, 100, 1000);
    bench_pauses_note(&p, 1050);
    bench_pauses_end(&p, 1400);
    assert_int_equal(p.count, 4);
    assert_int_equal(bench_pauses_max(&p), 350);
    bench_pauses_fini(&p);
    bench_pauses_init(&p, 100, 1000);
    bench_pauses_end(&p, 1000);
    assert_int_equal(bench_pauses_max(&p), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pauses_by_window),
                                       cmocka_unit_test(test_pauses_without_any_ack)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
