// metastore_test.c - what is checked before any store sees a call.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "metastore/metastore.h"

static void test_path_rules(void **state)
{
    (void)state;
    const char *good[] = {"/", "/a", "/a/b", "/...", "/.a", "/a b/%2F+", "/\xe6\xbc\xa2", "/a\n"};
    const char *bad[] = {"",    "a",      "/a/",     "//",    "/a//b",     "/.",
                         "/..", "/a/./b", "/a/../b", "/\x80", "/\xc0\xaf", "/\xed\xa0\x80"};
    for (size_t i = 0; i < OX_COUNT(good); i++)
        assert_true(ox_meta_path_valid(good[i]));
    for (size_t i = 0; i < OX_COUNT(bad); i++)
        assert_false(ox_meta_path_valid(bad[i]));
}

static void test_path_segment_limit(void **state)
{
    (void)state;
    char path[OX_NODE_NAME_BYTES_MAX + 3] = "/";
    memset(path + 1, 'a', OX_NODE_NAME_BYTES_MAX);
    assert_true(ox_meta_path_valid(path));
    path[OX_NODE_NAME_BYTES_MAX + 1] = 'a';
    assert_false(ox_meta_path_valid(path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_path_rules), cmocka_unit_test(test_path_segment_limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
