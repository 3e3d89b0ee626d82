// show_test.c - answers as people see them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "oxbowctl/capture_test.h"
#include "oxbowctl/ctl.h"

static void shown_by(void (*show)(const json_t *answer), const char *json, const char *text)
{
    struct capture c;
    json_t *answer = json_loads(json, JSON_DECODE_ANY, NULL);
    assert_non_null(answer);
    capture_begin(&c, &stdout);
    show(answer);
    capture_end(&c);
    assert_string_equal(c.text, text);
    free(c.text);
    json_decref(answer);
}

static void shown(const char *json, const char *text)
{
    shown_by(ctl_show_auto, json, text);
}

static void test_plain_values(void **state)
{
    (void)state;
    shown("\"ok\"", "ok\n");
    shown("\"two\\nlines\\n\"", "two\nlines\n");
    shown("7", "7\n");
    shown("0.1", "0.1\n");
    shown("true", "true\n");
    shown("\"\"", "-\n");
}

static void test_names_stand_one_a_line(void **state)
{
    (void)state;
    shown("[\"b\",\"a\"]", "b\na\n");
    shown("[]", "");
}

static void test_objects_are_lines_of_name_and_value(void **state)
{
    (void)state;
    shown("{\"time\":60,\"size\":-1}", "time  60\nsize  -1\n");
    shown("{\"a\":{\"b\":{\"c\":1},\"roles\":[\"x\",\"y\"]},\"none\":null,\"empty\":[],\"nothing\":{}}",
          "a.b.c    1\na.roles  x, y\nnone     -\nempty    -\nnothing  -\n");
    shown("{\"list\":[{\"a\":1},{\"a\":2}]}", "list.0.a  1\nlist.1.a  2\n");
}

static void test_objects_of_one_kind_are_a_table(void **state)
{
    (void)state;
    shown("[{\"name\":\"a\",\"count\":1},{\"name\":\"bcd\",\"count\":20,\"more\":true}]",
          "name  count  more\na         1  -\nbcd      20  true\n");
    shown("{\"x\":{\"limit\":10,\"kind\":\"k\"},\"yy\":{\"limit\":5,\"kind\":\"l\"}}",
          "NAME  limit  kind\nx        10  k\nyy        5  l\n");
}

static void test_cells_stay_on_their_line(void **state)
{
    (void)state;
    shown("{\"payload\":\"a\\nb\\t\\u001b[31m\\u007f\"}", "payload  a\\nb\\x09\\x1b[31m\\x7f\n");
    shown("[{\"a\":\"x\\r\\ny\"}]", "a\nx\\x0d\\ny\n");
}

static void test_wide_or_deep_objects_are_lines(void **state)
{
    (void)state;
    shown("{\"x\":{\"a\":1,\"b\":{\"c\":2}}}", "x.a    1\nx.b.c  2\n");
    shown("[{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8,\"i\":9,\"j\":10}]",
          "0.a  1\n0.b  2\n0.c  3\n0.d  4\n0.e  5\n0.f  6\n0.g  7\n0.h  8\n0.i  9\n0.j  10\n");
    shown("[[1,2],[3]]", "0  1, 2\n1  3\n");
    shown("[{}]", "0  -\n");
    shown("{}", "");
}

static void test_partitions_stand_below_their_sums(void **state)
{
    (void)state;
    shown_by(
        ctl_show_topic_stats,
        "{\"msgInCounter\":5,\"storageSize\":70,\"metadata\":{\"partitions\":2},\"subscriptions\":{},\"partitions\":{"
        "\"t-partition-0\":{\"msgRateIn\":1.5,\"msgInCounter\":2,\"storageSize\":30,\"publishers\":[{}]},"
        "\"t-partition-1\":{\"msgInCounter\":3,\"storageSize\":40,\"backlogSize\":40}}}",
        "in                0.0 messages/s              0 bytes/s              5 messages\n"
        "out               0.0 messages/s              0 bytes/s              0 messages\n"
        "stored             70 bytes, backlog 0 bytes\n"
        "clients             0 producers\n"
        "topic               2 partitions\n"
        "\n"
        "SUBSCRIPTION  TYPE  BACKLOG  UNACKED  CONSUMERS  OUT MSG/S  MARK DELETE\n"
        "\n"
        "PARTITION      IN MSG/S  OUT MSG/S  IN MESSAGES  STORED BYTES  BACKLOG BYTES  PRODUCERS\n"
        "t-partition-0       1.5        0.0            2            30              0          1\n"
        "t-partition-1       0.0        0.0            3            40             40          0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain_values),
                                       cmocka_unit_test(test_names_stand_one_a_line),
                                       cmocka_unit_test(test_objects_are_lines_of_name_and_value),
                                       cmocka_unit_test(test_objects_of_one_kind_are_a_table),
                                       cmocka_unit_test(test_wide_or_deep_objects_are_lines),
                                       cmocka_unit_test(test_cells_stay_on_their_line),
                                       cmocka_unit_test(test_partitions_stand_below_their_sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
