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
    struct ox_config_trouble trouble = {0};
    ox_config_init(&c);
    assert_int_equal(ox_config_parse(&c, "broker.conf", text, &trouble), OX_E_INVALID);
    if (!strstr(ox_str_get(&trouble.errors), wanted))
        fail_msg("\"%s\" does not say \"%s\"", ox_str_get(&trouble.errors), wanted);
    ox_config_trouble_fini(&trouble);
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

static void test_config_everything_wrong_is_said_at_once(void **state)
{
    (void)state;
    struct ox_config c;
    struct ox_config_trouble trouble = {0};
    const char *text =
        "zookeeperServers=a\nmaxTopicPerNamespace=1\nwebServicePort=x\nnumIOThreads=\nmaxProducersPerTopic=3\n";
    ox_config_init(&c);
    assert_int_equal(ox_config_parse(&c, "f", text, &trouble), OX_E_INVALID);
    assert_string_equal(
        ox_str_get(&trouble.errors),
        "f:2: unknown key \"maxTopicPerNamespace\"; did you mean maxTopicsPerNamespace? (oxbowd --help-config lists "
        "all keys)\n"
        "f:3: webServicePort: \"x\" is not a whole number from 0 to 65535; port of REST and metrics; 0: any free one\n"
        "f: 2 keys of Pulsar's that Oxbow does not have: zookeeperServers, numIOThreads; take them out, or pass over "
        "them with --lenient");
    assert_int_equal(c.maxProducersPerTopic, 3);
    ox_config_trouble_fini(&trouble);
    ox_config_fini(&c);
}

static void test_config_lenient_passes_over_pulsars_keys_but_no_slips_and_no_protection(void **state)
{
    (void)state;
    struct ox_config c;
    struct ox_config_trouble good = {.lenient = true}, bad = {.lenient = true};
    ox_config_init(&c);
    assert_int_equal(
        ox_config_parse(&c, "f",
                        "zookeeperServers=a\nauthenticationEnabled=false\nwebServicePortTls=\nqqqqqqqqqqqqqq=1", &good),
        OX_OK);
    assert_string_equal(
        ox_str_get(&good.warnings),
        "f:4: unknown key \"qqqqqqqqqqqqqq\" (oxbowd --help-config lists all keys)\n"
        "f: 3 keys of Pulsar's do nothing here: zookeeperServers, authenticationEnabled, webServicePortTls");
    assert_int_equal(ox_config_parse(&c, "f", "maxTopicPerNamespace=1\nauthenticationEnabled=true", &bad), OX_E_INVALID);
    assert_string_equal(ox_str_get(&bad.errors),
                        "f:1: unknown key \"maxTopicPerNamespace\"; did you mean maxTopicsPerNamespace? (oxbowd "
                        "--help-config lists all keys)\n"
                        "f:2: authenticationEnabled: this version has neither TLS nor authentication; take the line "
                        "out, and let only trusted hosts reach the broker");
    ox_config_trouble_fini(&good);
    ox_config_trouble_fini(&bad);
    ox_config_fini(&c);
}

static void test_config_an_empty_value_is_the_default(void **state)
{
    (void)state;
    struct ox_config c;
    struct ox_config_trouble trouble = {0};
    ox_config_init(&c);
    assert_int_equal(
        ox_config_parse(&c, "f", "webServicePort=1\nclusterName=x\nwebServicePort=\nclusterName=\nlogLevel=", &trouble),
        OX_OK);
    assert_int_equal(c.webServicePort, 8080);
    assert_string_equal(c.clusterName, "standalone");
    ox_config_fini(&c);
}

// A value goes into text and back unchanged, and one key is taken over alone.
static void test_config_values_as_text_and_one_by_one(void **state)
{
    (void)state;
    struct ox_config a, b;
    struct ox_str error = {0};
    ox_config_init(&a);
    ox_config_init(&b);
    for (size_t i = 0; i < OX_CONFIG_KEY_COUNT; i++) {
        const struct ox_config_key *key = &ox_config_keys[i];
        struct ox_str text = {0};
        ox_config_text(&a, key, &text);
        assert_int_equal(ox_config_set(&b, key->name, ox_str_get(&text), &error), OX_OK);
        assert_true(ox_config_same(&a, &b, key));
        ox_str_fini(&text);
    }
    const struct ox_config_key *name = ox_config_find("clusterName"), *port = ox_config_find("webServicePort");
    assert_int_equal(ox_config_set(&a, "clusterName", "other", &error), OX_OK);
    a.webServicePort = 1;
    assert_false(ox_config_same(&a, &b, name));
    ox_config_take(&b, &a, name);
    assert_string_equal(b.clusterName, "other");
    assert_false(ox_config_same(&a, &b, port));
    ox_config_fini(&a);
    ox_config_fini(&b);
}

static void test_config_environment_ignores_case_and_underscores(void **state)
{
    (void)state;
    struct ox_config c;
    struct ox_str error = {0};
    struct ox_config_trouble trouble = {0};
    ox_config_init(&c);
    char *good[] = {"HOME=/", "OXBOW_BROKER_SERVICE_PORT=7650", "OXBOW_webServicePort=0", "OXBOW_CRASH_POINT=x", NULL};
    assert_int_equal(ox_config_environment(&c, good, &trouble), OX_OK);
    assert_int_equal(c.brokerServicePort, 7650);
    assert_int_equal(c.webServicePort, 0);
    char *dotted[] = {"OXBOW_BOOKIE_CLUSTER_SWITCH_MIGRATION_CONCURRENCY=4",
                      "OXBOW_bookieClusterSwitchDualReadTimeoutDays=3", NULL};
    assert_int_equal(ox_config_environment(&c, dotted, &trouble), OX_OK);
    assert_int_equal(c.bookieClusterSwitch_migrationConcurrency, 4);
    assert_int_equal(c.bookieClusterSwitch_dualReadTimeoutDays, 3);
    assert_int_equal(ox_config_set_pair(&c, "bookieClusterSwitch.configPath = /elsewhere", &error), OX_OK);
    assert_string_equal(c.bookieClusterSwitch_configPath, "/elsewhere");
    char *bad[] = {"OXBOW_BROKER_PORT_SERVICE=1", NULL};
    assert_int_equal(ox_config_environment(&c, bad, &trouble), OX_E_INVALID);
    assert_non_null(strstr(ox_str_get(&trouble.errors), "OXBOW_BROKER_PORT_SERVICE"));
    ox_config_trouble_fini(&trouble);
    ox_str_fini(&error);
    ox_config_fini(&c);
}

static void test_config_environment_of_kubernetes_is_not_about_settings(void **state)
{
    (void)state;
    struct ox_config c;
    struct ox_config_trouble trouble = {0};
    ox_config_init(&c);
    char *services[] = {"KUBERNETES_SERVICE_HOST=10.0.0.1",  "OXBOW_SERVICE_HOST=10.0.0.2",
                        "OXBOW_SERVICE_PORT=6650",           "OXBOW_SERVICE_PORT_HTTP=8080",
                        "OXBOW_PORT=tcp://10.0.0.2:6650",    "OXBOW_PORT_6650_TCP=tcp://10.0.0.2:6650",
                        "OXBOW_PORT_6650_TCP_ADDR=10.0.0.2", "OXBOW_BROKER_SERVICE_HOST=10.0.0.3",
                        "OXBOW_BROKER_SERVICE_PORT=7650",    NULL};
    assert_int_equal(ox_config_environment(&c, services + 1, &trouble), OX_E_INVALID); // anywhere else it is a mistake
    assert_int_equal(ox_config_environment(&c, services, &trouble), OX_OK);
    assert_int_equal(c.brokerServicePort, 7650); // a key stays a key
    char *bad[] = {"KUBERNETES_SERVICE_HOST=10.0.0.1", "OXBOW_WEB_SERVICE_PORT=x", "OXBOW_MAX_MESAGE_SIZE=1", NULL};
    ox_config_trouble_fini(&trouble);
    assert_int_equal(ox_config_environment(&c, bad, &trouble), OX_E_INVALID);
    assert_non_null(strstr(ox_str_get(&trouble.errors), "OXBOW_WEB_SERVICE_PORT"));
    assert_non_null(strstr(ox_str_get(&trouble.errors), "OXBOW_MAX_MESAGE_SIZE"));
    ox_config_trouble_fini(&trouble);
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
        cmocka_unit_test(test_config_everything_wrong_is_said_at_once),
        cmocka_unit_test(test_config_lenient_passes_over_pulsars_keys_but_no_slips_and_no_protection),
        cmocka_unit_test(test_config_an_empty_value_is_the_default),
        cmocka_unit_test(test_config_values_as_text_and_one_by_one),
        cmocka_unit_test(test_config_environment_ignores_case_and_underscores),
        cmocka_unit_test(test_config_environment_of_kubernetes_is_not_about_settings),
        cmocka_unit_test(test_config_describe_lists_every_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
