// opener_test.c - the one form of a directory and of a URI.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "oxbowd/opener.h"

static void expect_absolute(const char *cwd, const char *dir, const char *wanted)
{
    OX_CLEANUP(ox_free_ptr)
    char *got = opener_absolute(cwd, dir);
    assert_string_equal(got, wanted);
}

static void test_opener_absolute_has_one_form(void **state)
{
    (void)state;
    expect_absolute("/home/ox", "data/store", "/home/ox/data/store");
    expect_absolute("/home/ox", "./data//store/", "/home/ox/data/store");
    expect_absolute("/home/ox", "../data/./x/../store", "/home/data/store");
    expect_absolute("/home/ox", "/mnt/two", "/mnt/two");
    expect_absolute("/home/ox", "/mnt/two/..", "/mnt");
    expect_absolute("/", "data", "/data");
    expect_absolute("/home", "../../..", "/");
    expect_absolute("/home", "...", "/home/...");
}

static void test_opener_canonical_says_what_is_wrong(void **state)
{
    (void)state;
    struct opener o = {.cwd = "/w"};
    const char *why = NULL;
    opener_init(&o);
    OX_CLEANUP(ox_free_ptr)
    char *uri = o.opener.canonical(&o.opener, "embedded:d/../e", &why);
    assert_string_equal(uri, "embedded:/w/e");
    assert_null(o.opener.canonical(&o.opener, "embedded:", &why));
    assert_non_null(strstr(why, "directory is missing"));
    assert_null(o.opener.canonical(&o.opener, "zk://h:2181/ledgers", &why));
    assert_non_null(strstr(why, "BookKeeper support"));
    assert_null(o.opener.canonical(&o.opener, "zk+hierarchical://h/l", &why));
    assert_non_null(strstr(why, "BookKeeper support"));
    assert_null(o.opener.canonical(&o.opener, "http://h", &why));
    assert_non_null(strstr(why, "embedded:DIR"));
    static const char *const around[] = {"embedded:data", "embedded:/w", "embedded:/", "embedded:data/../data/."};
    o.data = "/w/data";
    for (size_t i = 0; i < OX_COUNT(around); i++) {
        assert_null(o.opener.canonical(&o.opener, around[i], &why));
        assert_non_null(strstr(why, "data folder is in it"));
    }
    OX_CLEANUP(ox_free_ptr)
    char *beside = o.opener.canonical(&o.opener, "embedded:data2", &why),
         *within = o.opener.canonical(&o.opener, "embedded:data/two", &why);
    assert_string_equal(beside, "embedded:/w/data2");
    assert_string_equal(within, "embedded:/w/data/two");
    assert_null(o.opener.canonical(&o.opener, "embedded:/w/a\nb", &why));
    assert_non_null(strstr(why, "control character"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opener_absolute_has_one_form),
        cmocka_unit_test(test_opener_canonical_says_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
