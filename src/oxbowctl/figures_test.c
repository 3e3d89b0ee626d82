// figures_test.c - sizes, times, dates and tables as people read them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "oxbowctl/bookie_clusters.h"

static void expect_size(double bytes, const char *want)
{
    struct ox_str out = {0};
    ctl_add_size(&out, bytes);
    assert_string_equal(ox_str_get(&out), want);
    ox_str_fini(&out);
}

static void expect_time(double seconds, const char *want)
{
    struct ox_str out = {0};
    ctl_add_time(&out, seconds);
    assert_string_equal(ox_str_get(&out), want);
    ox_str_fini(&out);
}

static void test_sizes_have_units(void **state)
{
    (void)state;
    expect_size(0, "0 B");
    expect_size(1023, "1023 B");
    expect_size(1024, "1.0 KiB");
    expect_size(1536, "1.5 KiB");
    expect_size(1024.0 * 1024 - 1, "1.0 MiB");
    expect_size(20.0 * 1024 * 1024 * 1024, "20.0 GiB");
    expect_size(3e18, "2664.5 PiB");
}

static void test_times_have_units(void **state)
{
    (void)state;
    expect_time(0, "0.0 s");
    expect_time(0.44, "0.4 s");
    expect_time(0.97, "1 s");
    expect_time(59.4, "59 s");
    expect_time(59.6, "1 min 0 s");
    expect_time(200, "3 min 20 s");
    expect_time(7500, "2 h 5 min");
    expect_time(3 * 86400 + 4 * 3600, "3 d 4 h");
    expect_time(1e18, "years");
}

static void test_dates(void **state)
{
    (void)state;
    struct ox_str out = {0};
    ctl_add_date(&out, 0);
    ctl_add_date(&out, 1769860800123);
    assert_string_equal(ox_str_get(&out), "-2026-01-31 12:00:00 UTC");
    ox_str_fini(&out);
}

static void test_tables_are_aligned(void **state)
{
    (void)state;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    struct ctl_table t = {.columns = 3, .right = 1u << 1};
    ctl_table_add(&t, "NAME");
    ctl_table_add(&t, "N");
    ctl_table_add(&t, "WHY");
    ctl_table_add(&t, "%s", "caf\xc3\xa9s");
    ctl_table_add(&t, "%d", 12345);
    ctl_table_add(&t, "a long reason");
    ctl_table_print(&t, out);
    fclose(out);
    assert_string_equal(text, "NAME       N  WHY\ncaf\xc3\xa9s  12345  a long reason\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_have_units),
        cmocka_unit_test(test_times_have_units),
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_tables_are_aligned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
