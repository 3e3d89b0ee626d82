// value_test.c - what is sent for what was typed.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "oxbowctl/ctl.h"

struct sent {
    struct ctl_word word;
    const char *typed;
    const char *json; // as sent; NULL: it is refused
};

static void expect(const struct sent *s)
{
    char *wants;
    json_t *value = ctl_value_read(&s->word, &s->typed, 1, &wants);
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    if (!s->json)
        assert_true(!value && wants && *wants);
    else if (!text || strcmp(text, s->json) != 0)
        fail_msg("'%s' is sent as %s, not %s", s->typed, text ? text : wants, s->json);
    free(text);
    ox_free(wants);
    json_decref(value);
}

#define EXPECT(table)                               \
    for (size_t i_ = 0; i_ < OX_COUNT(table); i_++) \
    expect(&(table)[i_])

static void test_numbers_and_words(void **state)
{
    (void)state;
    const struct ctl_word count = {.type = CTL_INT, .has_min = true, .min = 1}, any = {.type = CTL_INT},
                          choice = {.type = CTL_ENUM, .values = "first_one|SECOND"};
    const struct sent table[] = {
        {count, "7", "7"},
        {count, "0", NULL},
        {count, "7x", NULL},
        {any, "-1", "-1"},
        {any, "9223372036854775808", NULL},
        {{.type = CTL_INT, .has_min = true, .has_max = true, .min = 0, .max = 9}, "10", NULL},
        {{.type = CTL_NUMBER}, "0.5", "0.5"},
        {{.type = CTL_NUMBER}, "nan", NULL},
        {{.type = CTL_NUMBER}, "", NULL},
        {{.type = CTL_BOOL}, "True", "true"},
        {{.type = CTL_BOOL}, "false", "false"},
        {{.type = CTL_BOOL}, "yes", NULL},
        {{.type = CTL_TEXT}, "a\"b", "\"a\\\"b\""},
        {{.type = CTL_TEXT}, "\xff", NULL},
        {choice, "FIRST_ONE", "\"first_one\""},
        {choice, "SECOND", "\"SECOND\""},
        {choice, "SECON", NULL},
        {{.type = CTL_FLAG}, "true", "true"},
        {{.type = CTL_FLAG}, "false", "false"},
        {{.type = CTL_FLAG}, "{}", "{}"},
        {{.type = CTL_JSON}, "{\"a\":[1]}", "{\"a\":[1]}"},
        {{.type = CTL_JSON}, "{a}", NULL},
    };
    EXPECT(table);
}

static void test_times_and_sizes_in_their_unit(void **state)
{
    (void)state;
    const struct ctl_word min = {.type = CTL_TIME, .unit = "min"}, s = {.type = CTL_TIME, .unit = "s"},
                          ms = {.type = CTL_TIME, .unit = "ms"}, h = {.type = CTL_TIME, .unit = "h"},
                          mb = {.type = CTL_SIZE, .unit = "MB"}, b = {.type = CTL_SIZE, .unit = "B"},
                          limit = {.type = CTL_SIZE, .unit = "B", .has_min = true};
    const struct sent table[] = {
        {min, "3h", "180"},
        {min, "120", "2"},
        {min, "-1", "-1"},
        {min, "0", "0"},
        {min, "30s", NULL},
        {min, "1w", "10080"},
        {min, "-1h", NULL},
        {min, "h", NULL},
        {min, "-2", NULL},
        {min, "9223372036854775807d", NULL},
        {s, "2d", "172800"},
        {s, "1y", "31536000"},
        {ms, "5", "5000"},
        {ms, "9223372036854775807", NULL},
        {h, "90m", "1"},
        {h, "59m", NULL},
        {mb, "10G", "10240"},
        {mb, "4096", NULL},
        {mb, "-1", "-1"},
        {mb, "0", "0"},
        {b, "10m", "10485760"},
        {b, "1.5M", NULL},
        {b, "9223372036854775807T", NULL},
        {limit, "-1", NULL},
        {limit, "1k", "1024"},
    };
    EXPECT(table);
}

static void test_ids_lists_and_maps(void **state)
{
    (void)state;
    const struct ctl_word id = {.type = CTL_ID}, list = {.type = CTL_LIST}, map = {.type = CTL_MAP};
    const struct sent table[] = {
        {id, "12:4", "{\"partitionIndex\":-1,\"ledgerId\":12,\"entryId\":4}"},
        {id, "12:4:2:7", "{\"partitionIndex\":2,\"ledgerId\":12,\"entryId\":4,\"batchIndex\":7}"},
        {id, "earliest", "{\"ledgerId\":-1,\"entryId\":-1,\"partitionIndex\":-1}"},
        {id, "latest", "{\"ledgerId\":9223372036854775807,\"entryId\":9223372036854775807,\"partitionIndex\":-1}"},
        {id, "12", NULL},
        {id, "12:", NULL},
        {id, "12:4:1:1:1", NULL},
        {id, "12:x", NULL},
        {list, "a,b,,c", "[\"a\",\"b\",\"c\"]"},
        {list, "", "[]"},
        {{.type = CTL_LIST, .values = "Shared|Exclusive"}, "shared,Exclusive", "[\"Shared\",\"Exclusive\"]"},
        {{.type = CTL_LIST, .values = "Shared|Exclusive"}, "Shared,Some", NULL},
        {map, "a=1,b=2", "{\"a\":\"1\",\"b\":\"2\"}"},
        {map, "a=1,2,b=x=y", "{\"a\":\"1,2\",\"b\":\"x=y\"}"},
        {map, "a=", "{\"a\":\"\"}"},
        {map, "a", NULL},
        {map, "=a", NULL},
        {map, "a=\xff", NULL},
    };
    EXPECT(table);
}

static void test_lists_go_on_where_they_are_given_again(void **state)
{
    (void)state;
    const char *texts[] = {"a,b", "c"};
    const struct ctl_word list = {.type = CTL_LIST}, many = {.type = CTL_TEXT, .many = true};
    char *wants;
    json_t *value = ctl_value_read(&list, texts, 2, &wants);
    assert_int_equal(json_array_size(value), 3);
    json_decref(value);
    value = ctl_value_read(&many, texts, 2, &wants);
    assert_int_equal(json_array_size(value), 2);
    assert_string_equal(json_string_value(json_array_get(value, 0)), "a,b");
    json_decref(value);
}

static void test_ago_is_a_point_in_time(void **state)
{
    (void)state;
    const struct ctl_word ago = {.type = CTL_AGO};
    const char *typed = "2h";
    char *wants;
    int64_t before = (int64_t)time(NULL);
    json_t *value = ctl_value_read(&ago, &typed, 1, &wants);
    int64_t then = json_integer_value(value) / 1000 + 7200;
    assert_true(then >= before && then <= (int64_t)time(NULL));
    json_decref(value);
    EXPECT(((const struct sent[]){{ago, "-1", NULL}, {ago, "soon", NULL}, {ago, "3000y", NULL}}));
}

static void test_places_fill_names(void **state)
{
    (void)state;
    const struct sent table[] = {
        {{.type = CTL_TOPIC}, "t", "\"persistent://public/default/t\""},
        {{.type = CTL_TOPIC}, "a/b", NULL},
        {{.type = CTL_NAMESPACE}, "a/b", "\"a/b\""},
        {{.type = CTL_NAMESPACE}, "a/b/c", NULL},
        {{.type = CTL_PLACE}, "a/b", "\"a/b\""},
        {{.type = CTL_PLACE}, "a/", NULL},
        {{.type = CTL_PLACE}, "a/b/c", "\"persistent://a/b/c\""},
    };
    EXPECT(table);
    json_t *names = json_object(), *topic = json_string("non-persistent://a/b/c/d"), *space = json_string("x/y");
    ctl_value_names(topic, CTL_PLACE, names);
    assert_string_equal(json_string_value(json_object_get(names, "domain")), "non-persistent");
    assert_string_equal(json_string_value(json_object_get(names, "topic")), "c/d");
    ctl_value_names(space, CTL_NAMESPACE, names);
    assert_string_equal(json_string_value(json_object_get(names, "namespace")), "y");
    json_decref(names);
    json_decref(topic);
    json_decref(space);
}

static void test_files_hold_json(void **state)
{
    (void)state;
    char path[] = "/tmp/oxbowctl-value-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "{\"a\":1}", 7), 7);
    close(fd);
    expect(&(struct sent){{.type = CTL_FILE}, path, "{\"a\":1}"});
    unlink(path);
    expect(&(struct sent){{.type = CTL_FILE}, path, NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_and_words),      cmocka_unit_test(test_times_and_sizes_in_their_unit),
        cmocka_unit_test(test_ids_lists_and_maps),     cmocka_unit_test(test_lists_go_on_where_they_are_given_again),
        cmocka_unit_test(test_ago_is_a_point_in_time), cmocka_unit_test(test_places_fill_names),
        cmocka_unit_test(test_files_hold_json)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
