// admin_test.c - the HTTP server over a real loopback: bad bytes in requests, several requests at once, a drain.
#include "admin/rig_test.h"

static void test_bytes_that_are_no_utf8_get_an_answer(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    rig_expect(&rig, "GET /admin/v2/persistent/%ff/x HTTP/1.1\r\nHost: a\r\n\r\n",
               "{\"reason\":\"namespace ?/x: the name is not valid\"}");
    rig_expect(&rig, "PUT /admin/v2/persistent/a/b/%C3%28 HTTP/1.1\r\nHost: a\r\n\r\n",
               "{\"reason\":\"Topic name is not valid: persistent://a/b/?(\"}");
    rig_expect(&rig, "\xc3\x28 /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "is not a method of this resource\"}");
    rig_expect(&rig, "GET /admin/v2/persistent/a/b/c%00d/stats HTTP/1.1\r\nHost: a\r\n\r\n",
               "is not properly percent-encoded\"}");
    rig_end(&rig);
}

static void test_an_answer_that_is_no_utf8_is_an_error(void **state)
{
    (void)state;
    struct rig rig;
    char url[] = "\xff";
    rig_start(&rig);
    rig.shard.config.web_url = url;
    rig_expect(&rig, "GET /admin/v2/brokers/leaderBroker HTTP/1.1\r\nHost: a\r\n\r\n",
               "{\"reason\":\"the answer holds text that is not valid UTF-8\"}");
    rig_end(&rig);
}

static void test_several_requests_at_once_are_answered_in_order(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    rig.shard.config.web_url = "http://here";
    rig_expect(&rig,
               "HEAD /admin/v2/brokers HTTP/1.1\r\nHost: a\r\n\r\nGET /nothing HTTP/1.1\r\nHost: a\r\n\r\n"
               "DELETE /metrics HTTP/1.1\r\nHost: a\r\n\r\nGET /admin/v2/brokers HTTP/1.1\r\nHost: a\r\n\r\n",
               "[\"here\"]");
    const char *ok = strstr(ox_str_get(&rig.got), " 200 "), *missing = strstr(ox_str_get(&rig.got), " 404 "),
               *refused = strstr(ox_str_get(&rig.got), " 405 ");
    assert_true(ok && missing && refused && ok < missing && missing < refused);
    rig_end(&rig);
}

static void test_paths_methods_and_names_are_told_apart(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    rig_expect(&rig, "POST /admin/v2/persistent/a/b/c/stats HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
               "POST is not a method of");
    rig_expect(&rig, "GET /admin/v2/ephemeral/a/b/c/stats HTTP/1.1\r\nHost: a\r\n\r\n", "no such resource");
    rig_expect(&rig, "GET /admin/v2/persistent/a/b/c/colour HTTP/1.1\r\nHost: a\r\n\r\n", "there is no \\\"colour\\\"");
    rig_expect(&rig, "PUT /admin/v2/persistent/a/b/c/retention HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}",
               "PUT is not a method of retention");
    rig_expect(&rig, "GET /admin/v2/namespaces/a/b/colour HTTP/1.1\r\nHost: a\r\n\r\n", "there is no \\\"colour\\\"");
    rig_expect(&rig, "GET /admin/v2/namespaces/a%20b/c/retention HTTP/1.1\r\nHost: a\r\n\r\n",
               "namespace a b/c: the name is not valid");
    rig_expect(&rig, "POST /admin/v2/persistent/a/b/c/maxProducers HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n-1",
               "maxProducers must be 0 or more");
    rig_expect(&rig, "POST /admin/v2/persistent/a/b/c/retention HTTP/1.1\r\nHost: a\r\nContent-Length: 30\r\n\r\n{\"retentionTimeInMinutes\":\"x\"}",
               "\\\"retentionTimeInMinutes\\\" has a value of a wrong kind");
    rig_expect(&rig, "POST /admin/v2/persistent/a/b/c/subscription/s/skip/ten HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
               "\\\"ten\\\" is no whole number");
    rig_end(&rig);
}

static void test_deletion_by_force_is_a_setting(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    rig_expect(
        &rig, "DELETE /admin/v2/namespaces/a/b?force=true HTTP/1.1\r\nHost: a\r\n\r\n",
        "{\"reason\":\"Broker doesn't allow forced deletion of namespaces: forceDeleteNamespaceAllowed is false\"}");
    assert_non_null(strstr(ox_str_get(&rig.got), " 405 "));
    rig_expect(&rig, "DELETE /admin/v2/tenants/a?force=true HTTP/1.1\r\nHost: a\r\n\r\n",
               "{\"reason\":\"Broker doesn't allow forced deletion of tenants: forceDeleteTenantAllowed is false\"}");
    assert_non_null(strstr(ox_str_get(&rig.got), " 405 "));
    rig_end(&rig);
}

static void rig_drained(struct ox_op *op)
{
    ox_posix_stop(op->loop);
}

static void test_drain_refuses_new_requests(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    ox_op_init(&rig.op, rig.loop, rig_drained, "drain");
    ox_admin_drain(rig.admin, &rig.op);
    rig_run(&rig);
    rig_expect(&rig, "GET /admin/v2/brokers/version HTTP/1.1\r\nHost: a\r\n\r\n",
               "{\"reason\":\"the broker is shutting down\"}");
    rig_end(&rig);
}

// fault: F11
static void test_without_storage_bookie_clusters_are_off(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    rig_expect(&rig, "GET /admin/v2/bookie-clusters HTTP/1.1\r\nHost: a\r\n\r\n", "the feature is off");
    assert_non_null(strstr(ox_str_get(&rig.got), " 404 "));
    rig_expect(&rig, "POST /admin/v2/bookie-clusters/switch HTTP/1.1\r\nHost: a\r\nContent-Length: 14\r\n\r\n{\"target\":\"x\"}",
               "the feature is off");
    assert_non_null(strstr(ox_str_get(&rig.got), " 404 "));
    rig_end(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_that_are_no_utf8_get_an_answer),
        cmocka_unit_test(test_an_answer_that_is_no_utf8_is_an_error),
        cmocka_unit_test(test_several_requests_at_once_are_answered_in_order),
        cmocka_unit_test(test_paths_methods_and_names_are_told_apart),
        cmocka_unit_test(test_deletion_by_force_is_a_setting),
        cmocka_unit_test(test_drain_refuses_new_requests),
        cmocka_unit_test(test_without_storage_bookie_clusters_are_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
