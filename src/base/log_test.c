// log_test.c - log lines.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/str.h"

static void log_keep(void *ctx, const char *line, unsigned len)
{
    ox_str_add(ctx, line, len);
}

static uint64_t log_time(void *ctx)
{
    (void)ctx;
    return UINT64_C(1700000000123);
}

static void test_log_writes_time_level_event_and_pairs(void **state)
{
    (void)state;
    struct ox_str out = {0};
    struct ox_log log = {OX_LOG_INFO, log_keep, log_time, &out, NULL, false};
    ox_debug(&log, "not.written", "a=%d", 1);
    ox_info(&log, "store.segment.sealed", "segment=%d reason=" OX_LOG_Q, 3, "it is full");
    assert_string_equal(out.data,
                        "2023-11-14T22:13:20.123Z INFO store.segment.sealed segment=3 reason=\"it is full\"\n");
    ox_info((struct ox_log *)NULL, "nobody", "a=%d", 1);
    ox_str_fini(&out);
}

static void test_log_value_cannot_begin_a_line_of_its_own(void **state)
{
    (void)state;
    struct ox_str out = {0}, quoted = {0};
    struct ox_log log = {OX_LOG_DEBUG, log_keep, log_time, &out, NULL, false};
    ox_log_quote(&quoted, "x\"\\\n\x01");
    ox_error(&log, "bad.name", "name=%s", quoted.data);
    assert_string_equal(out.data, "2023-11-14T22:13:20.123Z ERROR bad.name name=\"x\\\"\\\\\\n\\x01\"\n");
    ox_str_fini(&out);
    ox_str_fini(&quoted);
}

static void test_log_ring_keeps_the_last_lines_of_every_level(void **state)
{
    (void)state;
    struct ox_str out = {0};
    struct ox_log_ring *ring = calloc(1, sizeof *ring);
    struct ox_log log = {OX_LOG_INFO, log_keep, log_time, &out, ring, false};
    char *wide = calloc(1, 1000);
    memset(wide, 'x', 999);
    ox_debug(&log, "quiet.one", "a=%d", 1);
    assert_int_equal(out.len, 0);
    assert_string_equal(ring->lines[0], "2023-11-14T22:13:20.123Z DEBUG quiet.one a=1\n");
    ox_debug(&log, "wide.one", "a=%s", wide);
    assert_int_equal(strlen(ring->lines[1]), OX_LOG_RING_BYTES - 1);
    assert_int_equal(ring->lines[1][OX_LOG_RING_BYTES - 2], '\n');
    for (int i = 2; i <= (int)OX_LOG_RING_LINES; i++)
        ox_debug(&log, "more.lines", "a=%d", i);
    assert_int_equal(ring->count, OX_LOG_RING_LINES + 1);
    assert_string_equal(ring->lines[0], "2023-11-14T22:13:20.123Z DEBUG more.lines a=128\n"); // the oldest is gone
    free(wide);
    free(ring);
    ox_str_fini(&out);
}

static void test_log_priorities_go_before_the_line_and_not_into_the_ring(void **state)
{
    (void)state;
    struct ox_str out = {0};
    struct ox_log_ring *ring = calloc(1, sizeof *ring);
    struct ox_log log = {OX_LOG_DEBUG, log_keep, log_time, &out, ring, true};
    ox_debug(&log, "one", "a=%d", 1);
    ox_info(&log, "two", "a=%d", 2);
    ox_warn(&log, "three", "a=%d", 3);
    ox_error(&log, "four", "a=%d", 4);
    assert_string_equal(out.data,
                        "<7>2023-11-14T22:13:20.123Z DEBUG one a=1\n<6>2023-11-14T22:13:20.123Z INFO two a=2\n"
                        "<4>2023-11-14T22:13:20.123Z WARN three a=3\n<3>2023-11-14T22:13:20.123Z ERROR four a=4\n");
    assert_string_equal(ring->lines[0], "2023-11-14T22:13:20.123Z DEBUG one a=1\n");
    free(ring);
    ox_str_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log_writes_time_level_event_and_pairs),
        cmocka_unit_test(test_log_value_cannot_begin_a_line_of_its_own),
        cmocka_unit_test(test_log_ring_keeps_the_last_lines_of_every_level),
        cmocka_unit_test(test_log_priorities_go_before_the_line_and_not_into_the_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
