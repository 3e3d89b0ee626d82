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
    struct ox_log log = {OX_LOG_INFO, log_keep, log_time, &out};
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
    struct ox_log log = {OX_LOG_DEBUG, log_keep, log_time, &out};
    ox_log_quote(&quoted, "x\"\\\n\x01");
    ox_error(&log, "bad.name", "name=%s", quoted.data);
    assert_string_equal(out.data, "2023-11-14T22:13:20.123Z ERROR bad.name name=\"x\\\"\\\\\\n\\x01\"\n");
    ox_str_fini(&out);
    ox_str_fini(&quoted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log_writes_time_level_event_and_pairs),
        cmocka_unit_test(test_log_value_cannot_begin_a_line_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
