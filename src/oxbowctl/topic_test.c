// topic_test.c - topic names as typed, their REST paths, JSON strings.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "oxbowctl/ctl.h"

static void test_topic_forms(void **state)
{
    (void)state;
    const char *good[][2] = {{"t", "persistent://public/default/t"},
                             {"a/b/c", "persistent://a/b/c"},
                             {"persistent://a/b/c/d", "persistent://a/b/c/d"},
                             {"a b%", "persistent://public/default/a b%"}};
    const char *bad[] = {"", "a/b", "/a/b", "a//b", "persistent://t", "persistent://a/b/", "http://a/b/c"};
    struct ctl_topic t;
    assert_non_null(freopen("/dev/null", "w", stderr));
    for (size_t i = 0; i < OX_COUNT(good); i++) {
        assert_true(ctl_topic_parse(good[i][0], &t));
        assert_string_equal(t.full, good[i][1]);
        ctl_topic_fini(&t);
    }
    for (size_t i = 0; i < OX_COUNT(bad); i++)
        assert_false(ctl_topic_parse(bad[i], &t));
}

static void test_topic_path_is_encoded(void **state)
{
    (void)state;
    struct ctl_topic t;
    assert_true(ctl_topic_parse("a/b/c/d e%", &t));
    OX_CLEANUP(ox_free_ptr)
    char *path = ctl_topic_path(&t, "/stats");
    assert_string_equal(path, "/admin/v2/persistent/a/b/c%2Fd%20e%25/stats");
    ctl_topic_fini(&t);
}

static void test_json_strings(void **state)
{
    (void)state;
    struct ox_str out = {0};
    ctl_json_string(&out, "a\"\\\n\x01\xc3\xa9\xff|\xe2\x82", 11);
    assert_string_equal(out.data, "\"a\\\"\\\\\\n\\u0001\xc3\xa9\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd\"");
    ox_str_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_topic_forms), cmocka_unit_test(test_topic_path_is_encoded),
                                       cmocka_unit_test(test_json_strings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
