// config_test.c - defaults, where values come from, and what is said about mistakes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "oxbowd/config.h"

static void test_config_defaults_are_in_range(void **state)
{
    (void)state;
    struct ox_config c;
    ox_config_init(&c);
    assert_int_equal(c.brokerServicePort, 6650);
    assert_string_equal(c.clusterName, "standalone");
    assert_int_equal(c.storeSyncPolicy, OX_CONFIG_STORE_SYNC_POLICY_SYNC);
    ox_config_fini(&c);
}

static void expect_error(const char *text, const char *wanted)
{
    struct ox_config c;
    struct ox_str error = {0};
    ox_config_init(&c);
    assert_int_equal(ox_config_parse(&c, "broker.conf", text, &error), OX_E_INVALID);
    if (!strstr(ox_str_get(&error), wanted))
        fail_msg("\"%s\" does not say \"%s\"", ox_str_get(&error), wanted);
    ox_str_fini(&error);
    ox_config_fini(&c);
}

static void test_config_unknown_key_names_line_and_nearest(void **state)
{
    (void)state;
    expect_error("# ours\n\nbrokerServicePrt=1\n",
                 "broker.conf:3: unknown key \"brokerServicePrt\"; did you mean brokerServicePort?");
    expect_error("brokerserviceport=1", "did you mean brokerServicePort?");
}

static void test_config_bad_values_name_what_is_allowed(void **state)
{
    (void)state;
    expect_error("brokerServicePort=70000", "a whole number from 0 to 65535");
    expect_error("allowAutoTopicCreation=yes", "true or false");
    expect_error("storeSegmentSizeMB=1025", "a whole number from 8 to 1024"); // more than the store takes
    expect_error("storeSyncPolicy=always", "one of sync, sync-interval, none");
    expect_error("managedLedgerDefaultMarkDeleteRateLimit=1x", "a number from 0 to 1000");
    expect_error("just words", "is not KEY=VALUE");
}

static void test_config_environment_ignores_case_and_underscores(void **state)
{
    (void)state;
    struct ox_config c;
    struct ox_str error = {0};
    ox_config_init(&c);
    char *good[] = {"HOME=/", "OXBOW_BROKER_SERVICE_PORT=7650", "OXBOW_webServicePort=0", "OXBOW_CRASH_POINT=x", NULL};
    assert_int_equal(ox_config_environment(&c, good, &error), OX_OK);
    assert_int_equal(c.brokerServicePort, 7650);
    assert_int_equal(c.webServicePort, 0);
    char *dotted[] = {"OXBOW_BOOKIE_CLUSTER_SWITCH_MIGRATION_CONCURRENCY=4",
                      "OXBOW_bookieClusterSwitchDualReadTimeoutDays=3", NULL};
    assert_int_equal(ox_config_environment(&c, dotted, &error), OX_OK);
    assert_int_equal(c.bookieClusterSwitch_migrationConcurrency, 4);
    assert_int_equal(c.bookieClusterSwitch_dualReadTimeoutDays, 3);
    assert_int_equal(ox_config_set_pair(&c, "bookieClusterSwitch.configPath = /elsewhere", &error), OX_OK);
    assert_string_equal(c.bookieClusterSwitch_configPath, "/elsewhere");
    char *bad[] = {"OXBOW_BROKER_PORT_SERVICE=1", NULL};
    assert_int_equal(ox_config_environment(&c, bad, &error), OX_E_INVALID);
    assert_non_null(strstr(ox_str_get(&error), "OXBOW_BROKER_PORT_SERVICE"));
    ox_str_fini(&error);
    ox_config_fini(&c);
}

static void test_config_describe_lists_every_key(void **state)
{
    (void)state;
    struct ox_str out = {0};
    ox_config_describe(&out);
    for (size_t i = 0; i < OX_CONFIG_KEY_COUNT; i++)
        assert_non_null(strstr(ox_str_get(&out), ox_config_keys[i].name));
    ox_str_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config_defaults_are_in_range),
        cmocka_unit_test(test_config_unknown_key_names_line_and_nearest),
        cmocka_unit_test(test_config_bad_values_name_what_is_allowed),
        cmocka_unit_test(test_config_environment_ignores_case_and_underscores),
        cmocka_unit_test(test_config_describe_lists_every_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
