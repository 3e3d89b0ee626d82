// topic_name_test.c - names of topics.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "broker/topic_name.h"

static void expect_name(const char *text, const char *full, const char *ns, int32_t partition)
{
    struct ox_topic_name n;
    assert_int_equal(ox_topic_name_parse(&n, text), OX_OK);
    assert_string_equal(n.full, full);
    assert_string_equal(n.ns, ns);
    assert_int_equal(n.partition, partition);
    ox_topic_name_fini(&n);
}

static void test_topic_name_every_form(void **state)
{
    (void)state;
    expect_name("t", "persistent://public/default/t", "public/default", -1);
    expect_name("a/b/t", "persistent://a/b/t", "a/b", -1);
    expect_name("persistent://a/b/t", "persistent://a/b/t", "a/b", -1);
    expect_name("non-persistent://a/b/t", "non-persistent://a/b/t", "a/b", -1);
    expect_name("persistent://a/c/b/t", "persistent://a/c/b/t", "a/c/b", -1);
    expect_name("persistent://pulsar/c/127.0.0.1:8080/healthcheck", "persistent://pulsar/c/127.0.0.1:8080/healthcheck",
                "pulsar/c/127.0.0.1:8080", -1);
    expect_name("t-partition-3", "persistent://public/default/t-partition-3", "public/default", 3);
    expect_name("t-partition-03", "persistent://public/default/t-partition-03", "public/default", -1);
    expect_name("t-partition-1-partition-2", "persistent://public/default/t-partition-1-partition-2", "public/default", 2);
}

static void test_topic_name_refuses_bad_ones(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "a/t",
                                      "persistent://t",
                                      "persistent://a/t",
                                      "persistent:///b/t",
                                      "persistent://a//t",
                                      "persistent://a/b/",
                                      "file://a/b/t",
                                      "://a/b/t",
                                      "persistent://a b/c/t",
                                      "persistent://../c/t",
                                      "a/b/c/t",
                                      "t\xff"};
    struct ox_topic_name n;
    for (size_t i = 0; i < OX_COUNT(bad); i++)
        assert_int_equal(ox_topic_name_parse(&n, bad[i]), OX_E_INVALID_TOPIC_NAME);
    char *longest = ox_malloc(OX_TOPIC_NAME_BYTES_MAX + 2);
    memset(longest, 'x', OX_TOPIC_NAME_BYTES_MAX + 1);
    assert_int_equal(ox_topic_name_parse(&n, longest), OX_E_INVALID_TOPIC_NAME);
    ox_free(longest);
}

static void test_topic_name_storage_is_encoded_once(void **state)
{
    (void)state;
    struct ox_topic_name n;
    assert_int_equal(ox_topic_name_parse(&n, "persistent://public/default/a b%41-partition-2"), OX_OK);
    char *storage = ox_topic_name_storage(&n), *path = ox_topic_name_partitions_path(&n), *base = ox_topic_name_base(&n);
    assert_string_equal(storage, "public/default/persistent/a+b%2541-partition-2");
    assert_string_equal(path, "/admin/partitioned-topics/public/default/persistent/a+b%2541");
    assert_string_equal(base, "persistent://public/default/a b%41");
    ox_free(storage);
    ox_free(path);
    ox_free(base);
    ox_topic_name_fini(&n);
}

static void test_bundles_cover_the_ring(void **state)
{
    (void)state;
    char name[32];
    ox_bundle_name(0, 4, name);
    assert_string_equal(name, "0x00000000_0x40000000");
    ox_bundle_name(0x40000000, 4, name);
    assert_string_equal(name, "0x40000000_0x80000000");
    ox_bundle_name(UINT32_MAX, 4, name);
    assert_string_equal(name, "0xc0000000_0xffffffff");
    ox_bundle_name(UINT32_MAX, 3, name);
    assert_string_equal(name, "0xaaaaaaaa_0xffffffff");
}

static void test_namespace_names(void **state)
{
    (void)state;
    assert_true(ox_namespace_valid("public/default"));
    assert_true(ox_namespace_valid("a/c/b"));
    assert_false(ox_namespace_valid("public"));
    assert_false(ox_namespace_valid("public/"));
    assert_false(ox_namespace_valid("a/b/c/d"));
    assert_false(ox_namespace_valid("a/../b"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_topic_name_every_form),
        cmocka_unit_test(test_topic_name_refuses_bad_ones),
        cmocka_unit_test(test_topic_name_storage_is_encoded_once),
        cmocka_unit_test(test_bundles_cover_the_ring),
        cmocka_unit_test(test_namespace_names),
    };
    return cmocka_run_group_tests_name("broker.topic_name", tests, NULL, NULL);
}
