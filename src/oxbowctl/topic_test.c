// topic_test.c - topic names and namespaces as typed, segments of paths, JSON strings.
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
                             {"non-persistent://a/b/c", "non-persistent://a/b/c"},
                             {"a b%", "persistent://public/default/a b%"}};
    const char *bad[] = {"",
                         "a/b",
                         "/a/b",
                         "a//b",
                         "persistent://t",
                         "persistent://a/b/",
                         "http://a/b/c",
                         "persistent://",
                         "persisten://a/b/c"};
    struct ctl_topic t;
    for (size_t i = 0; i < OX_COUNT(good); i++) {
        assert_true(ctl_topic_parse(good[i][0], &t));
        assert_string_equal(t.full, good[i][1]);
        ctl_topic_fini(&t);
    }
    for (size_t i = 0; i < OX_COUNT(bad); i++)
        assert_false(ctl_topic_parse(bad[i], &t));
}

static void test_namespace_forms(void **state)
{
    (void)state;
    const char *bad[] = {"", "a", "/a", "a/", "a/b/c", "persistent://a"};
    char *tenant, *namespace;
    assert_true(ctl_namespace_parse("a/b", &tenant, &namespace));
    assert_string_equal(tenant, "a");
    assert_string_equal(namespace, "b");
    ox_free(tenant);
    ox_free(namespace);
    for (size_t i = 0; i < OX_COUNT(bad); i++)
        assert_false(ctl_namespace_parse(bad[i], &tenant, &namespace));
}

static void test_segments_are_encoded(void **state)
{
    (void)state;
    struct ox_str path = {0};
    ctl_path_add(&path, "c/d e%+\xc3\xa9?#~-._");
    assert_string_equal(path.data, "/c%2Fd%20e%25%2B%C3%A9%3F%23~-._");
    ox_str_fini(&path);
}

static void test_keys_hash_as_in_java(void **state)
{
    (void)state;
    assert_int_equal(ctl_java_hash(""), 0);
    assert_int_equal(ctl_java_hash("hello"), 99162322);
    assert_int_equal(ctl_java_hash("polygenelubricants"), 0x80000000);
    assert_int_equal(ctl_java_hash("\xc3\xa9"), 0xE9);                         // U+00E9
    assert_int_equal(ctl_java_hash("a\xe2\x98\x83"), 31 * 97 + 0x2603);        // U+2603
    assert_int_equal(ctl_java_hash("\xf0\x9f\x98\x80"), 31 * 0xD83D + 0xDE00); // U+1F600: two units
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_topic_forms), cmocka_unit_test(test_namespace_forms),
                                       cmocka_unit_test(test_segments_are_encoded),
                                       cmocka_unit_test(test_keys_hash_as_in_java), cmocka_unit_test(test_json_strings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
