// progress_test.c - how a stage is drawn, and what a status means for somebody who waits.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "oxbowctl/bookie_clusters.h"

#define MIB (1024.0 * 1024)

static void expect_line(const struct ctl_stage *stage, size_t width, const char *want)
{
    struct ox_str out = {0};
    ctl_stage_draw(&out, stage, width);
    assert_string_equal(ox_str_get(&out), want);
    ox_str_fini(&out);
}

static struct ctl_stage data_stage(void)
{
    return (struct ctl_stage){.name = "DATA_MOVED",
                              .known = true,
                              .asked = true,
                              .in_bytes = true,
                              .done = 120 * MIB,
                              .total = 300 * MIB,
                              .rate = 50 * MIB,
                              .left_seconds = 3.6};
}

static void test_a_bar_has_share_amount_rate_and_time_left(void **state)
{
    (void)state;
    struct ctl_stage data = data_stage();
    expect_line(&data, 90, "DATA_MOVED     [########............]  40 % 120.0/300.0 MiB   50.0 MiB/s   4 s left");
    expect_line(&data, 69, "DATA_MOVED      40 % 120.0/300.0 MiB   50.0 MiB/s   4 s left"); // too narrow for a bar
    struct ctl_stage cursors = {
        .name = "METADATA_MOVED", .known = true, .asked = true, .done = 12, .total = 27, .rate = 3.25, .left_seconds = 200};
    expect_line(&cursors, 79, "METADATA_MOVED [###......]  44 % 12/27             3.2/s        3 min 20 s left");
    cursors.failures = 2;
    expect_line(&cursors, 79, "METADATA_MOVED [###......]  44 % 12/27             3.2/s        2 failed, 3 min");
    expect_line(&cursors, 0, "METADATA_MOVED 44 % 12/27 3.2/s 2 failed, 3 min 20 s left");
}

static void test_a_bar_never_leaves_its_width_or_ascii(void **state)
{
    (void)state;
    struct ctl_stage stage = data_stage();
    stage.failures = 1234567;
    for (size_t width = 1; width < 300; width++) {
        struct ox_str out = {0};
        ctl_stage_draw(&out, &stage, width);
        assert_true(out.len <= width);
        for (size_t i = 0; i < out.len; i++)
            assert_true(out.data[i] >= ' ' && out.data[i] < 127);
        ox_str_fini(&out);
    }
}

static void test_a_bar_is_full_only_when_over(void **state)
{
    (void)state;
    struct ctl_stage stage = {
        .name = "SWAPPED", .known = true, .asked = true, .done = 1000000, .total = 1000000, .left_seconds = -1};
    expect_line(&stage, 0, "SWAPPED 99 % 1000000/1000000");
    stage.over = true;
    expect_line(&stage, 0, "SWAPPED 100 % 1000000/1000000");
    stage.done = stage.total = 0; // there was nothing to do
    expect_line(&stage, 0, "SWAPPED 100 % 0/0");
    stage.over = false;
    expect_line(&stage, 0, "SWAPPED 0 % 0/0");
}

static void test_stages_that_nobody_works_on_say_so(void **state)
{
    (void)state;
    struct ctl_stage stage = data_stage();
    stage.asked = false;
    expect_line(&stage, 0, "DATA_MOVED not asked for ('oxbowctl bookie-clusters move-data' does it)");
    stage.known = false;
    expect_line(&stage, 0, "DATA_MOVED not begun");
}

static json_t *status_load(const char *text)
{
    json_t *status = json_loads(text, 0, NULL);
    assert_non_null(status);
    return status;
}

static void test_stages_are_read(void **state)
{
    (void)state;
    json_t *status = status_load(
        "{\"switch\":{\"moveData\":true,\"stages\":[{\"name\":\"DATA_MOVED\",\"over\":false,\"done\":1,\"total\":3,"
        "\"bytes\":5,\"bytesTotal\":10,\"bytesPerSecond\":2,\"etaSeconds\":2.5,\"failures\":1},"
        "{\"name\":\"SWAPPED\",\"over\":true,\"done\":2,\"total\":2,\"bytesTotal\":0,\"etaSeconds\":0}]}}");
    struct ctl_stage data = ctl_stage_read(status, "DATA_MOVED"), swapped = ctl_stage_read(status, "SWAPPED"),
                     none = ctl_stage_read(status, "WRITES_MOVED");
    assert_true(data.known && data.asked && data.in_bytes && !data.over);
    assert_true(data.done == 5 && data.total == 10 && data.rate == 2 && data.left_seconds == 2.5 && data.failures == 1);
    assert_true(swapped.known && swapped.over && !swapped.in_bytes && swapped.done == 2 && swapped.left_seconds < 0);
    assert_false(none.known || none.over);
    json_decref(status);
}

static void expect_verdict(const char *state, bool over, const char *until, const char *id, enum ctl_verdict want)
{
    OX_CLEANUP(ox_free_ptr)
    char *text = ox_asprintf("{\"active\":\"b\",\"switch\":{\"switchId\":\"s1\",\"state\":\"%s\",\"stages\":[{\"name\":"
                             "\"METADATA_MOVED\",\"over\":%s}]}}",
                             state, over ? "true" : "false");
    json_t *status = status_load(text);
    assert_int_equal(ctl_progress_judge(status, until, id), want);
    json_decref(status);
}

static void test_waiting_ends_when_it_should(void **state)
{
    (void)state;
    expect_verdict("RUNNING", false, "METADATA_MOVED", "s1", CTL_VERDICT_GO_ON);
    expect_verdict("PAUSED", false, "METADATA_MOVED", "s1", CTL_VERDICT_GO_ON);
    expect_verdict("RUNNING", true, "METADATA_MOVED", "s1", CTL_VERDICT_OVER); // data may move on
    expect_verdict("RUNNING", true, NULL, NULL, CTL_VERDICT_GO_ON);
    expect_verdict("DONE", true, NULL, NULL, CTL_VERDICT_OVER);
    expect_verdict("DONE_WITH_FAILURES", false, "METADATA_MOVED", "s1", CTL_VERDICT_FAILED);
    expect_verdict("ABORTED", false, "METADATA_MOVED", "s1", CTL_VERDICT_ABORTED);
    expect_verdict("RUNNING", true, "METADATA_MOVED", "s0", CTL_VERDICT_REPLACED);
    json_t *none = status_load("{\"active\":\"default\",\"switch\":null}");
    assert_int_equal(ctl_progress_judge(none, NULL, NULL), CTL_VERDICT_NOTHING);
    json_decref(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_bar_has_share_amount_rate_and_time_left),
        cmocka_unit_test(test_a_bar_never_leaves_its_width_or_ascii),
        cmocka_unit_test(test_a_bar_is_full_only_when_over),
        cmocka_unit_test(test_stages_that_nobody_works_on_say_so),
        cmocka_unit_test(test_stages_are_read),
        cmocka_unit_test(test_waiting_ends_when_it_should),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
