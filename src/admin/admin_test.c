// admin_test.c - the HTTP server over a real loopback: bad bytes in requests, several requests at once, a drain.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

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
    rig_expect(&rig, "GET /admin/v2/persistent/a/b/c%00d/stats HTTP/1.1\r\nHost: a\r\n\r\n",
               "is not properly percent-encoded\"}");
    rig_expect(&rig, "\xc3\x28 /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "the method holds a character that is not allowed");
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
    rig_expect(&rig, "GET /admin/v2/persistent/a/b/c/colour HTTP/1.1\r\nHost: a\r\n\r\n", "no such resource on this broker");
    rig_expect(&rig, "PUT /admin/v2/persistent/a/b/c/retention HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}",
               "PUT is not a method of");
    rig_expect(&rig, "GET /admin/v2/namespaces/a/b/colour HTTP/1.1\r\nHost: a\r\n\r\n", "GET is not a method of");
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

static void rig_start_limited(struct rig *rig, struct ox_admin_limits limits)
{
    *rig = (struct rig){.loop = ox_posix_loop_new(NULL), .limits = limits};
    rig->shard.loop = rig->loop;
    rig_serve(rig, NULL);
    rig_connect(rig);
}

static void test_a_request_that_does_not_come_as_a_whole_is_timed_out(void **state)
{
    (void)state;
    struct rig rig;
    rig_start_limited(&rig, (struct ox_admin_limits){.request_ns = 50 * OX_MS});
    rig_expect(&rig, "GET /metrics HTTP/1.1\r\nHost:", "within httpRequestTimeoutSeconds\"}");
    assert_non_null(strstr(ox_str_get(&rig.got), " 408 "));
    rig_end(&rig);
    rig_start_limited(&rig, (struct ox_admin_limits){.request_ns = 50 * OX_MS});
    rig_expect(&rig, "PUT /admin/v2/clusters/a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n{}", " 408 ");
    rig_end(&rig);
}

static void test_a_silent_connection_ends(void **state)
{
    (void)state;
    struct rig rig;
    rig_start_limited(&rig, (struct ox_admin_limits){.idle_ns = 50 * OX_MS});
    rig_run(&rig); // until it is closed
    assert_null(rig.client);
    rig_end(&rig);
}

static void test_a_new_connection_takes_the_place_of_a_silent_one(void **state)
{
    (void)state;
    struct rig rig;
    rig_start_limited(&rig, (struct ox_admin_limits){.connections = 1});
    rig.shard.config.web_url = "http://here";
    struct ox_stream *silent = rig.client;
    rig_connect(&rig);
    struct ox_stream *second = rig.client;
    rig_run(&rig); // until the silent one, after a second, is closed
    assert_null(rig.client);
    rig.client = second;
    assert_ptr_not_equal(silent, second);
    rig_expect(&rig, "GET /admin/v2/brokers HTTP/1.1\r\nHost: a\r\n\r\n", "[\"here\"]");
    assert_int_equal(rig.admin->evicted.value, 1);
    rig_end(&rig);
}

static void test_heads_and_bodies_are_bounded(void **state)
{
    (void)state;
    static const struct {
        const char *begin, *want;
    } cases[] = {
        {"GET /", " 414 "},
        {"GET / HTTP/1.1\r\nX: ", " 431 "},
        {"PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n", " 413 "},
        {"PUT /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n0", " 408 "},
        {"PUT /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffff\r\n0", " 413 "},
    };
    for (size_t i = 0; i < OX_COUNT(cases); i++) {
        struct rig rig;
        struct ox_str text = {0};
        rig_start_limited(&rig, (struct ox_admin_limits){.request_ns = 200 * OX_MS, .head_bytes = 300});
        ox_str_adds(&text, cases[i].begin);
        for (int n = 0; n < 400; n++)
            ox_str_adds(&text, "x");
        rig_expect(&rig, ox_str_get(&text), cases[i].want);
        rig_end(&rig);
        ox_str_fini(&text);
    }
}

static void rig_drained(struct ox_op *op)
{
    ox_posix_stop(op->loop);
}

static void rig_end_drained(struct rig *rig)
{
    ox_op_init(&rig->op, rig->loop, rig_drained, "drain");
    rig->want = NULL;
    ox_admin_drain(rig->admin, &rig->op);
    rig_run(rig);
    rig_end(rig);
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

// A connection that the kernel makes and keeps, with a request on it, without the loop.
static int client_send(const struct rig *rig, const char *request)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(ox_admin_port(rig->admin))};
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    assert_int_equal(write(fd, request, strlen(request)), strlen(request));
    return fd;
}

#define WALK_REQUEST "GET /admin/v2/broker-stats/topics HTTP/1.1\r\nHost: a\r\n\r\n"

static void test_walks_of_clients_that_have_hung_up_hold_nobody_up(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    for (int i = 0; i < 40; i++)
        assert_int_equal(close(client_send(&rig, WALK_REQUEST)), 0);
    while (rig.admin->walks.count < 40) // ask for something else until all of them wait
        rig_expect(&rig, "GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n", " 404 ");
    rig_expect(&rig, WALK_REQUEST, "{}");
    assert_true(rig.admin->walks.count > 30);
    rig_end_drained(&rig);
}

static void test_a_client_that_has_ended_its_side_gets_its_walk(void **state)
{
    (void)state;
    struct rig rig;
    char got[512] = "";
    int fds[3];
    rig_start(&rig);
    for (size_t i = 0; i < OX_COUNT(fds); i++) {
        fds[i] = client_send(&rig, WALK_REQUEST);
        assert_int_equal(shutdown(fds[i], SHUT_WR), 0);
    }
    while (rig.admin->requests_total.value < (int64_t)OX_COUNT(fds) || rig.admin->walks.count)
        rig_expect(&rig, "GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n", " 404 ");
    for (size_t i = 0; i < OX_COUNT(fds); i++) {
        assert_true(read(fds[i], got, sizeof got - 1) > 0);
        assert_non_null(strstr(got, " 200 "));
        assert_int_equal(close(fds[i]), 0);
    }
    rig_end(&rig);
}

static void test_drain_waits_for_an_answer_that_is_being_taken(void **state)
{
    (void)state;
    struct rig rig;
    struct ox_str url = {0};
    rig_start(&rig);
    while (url.len < 16u * 1024 * 1024)
        ox_str_adds(&url, "a long name of a broker ");
    rig.shard.config.web_url = url.data;
    rig_expect(&rig, "GET /admin/v2/brokers HTTP/1.1\r\nHost: a\r\n\r\n", " 200 ");
    rig.want = NULL;
    ox_op_init(&rig.op, rig.loop, rig_drained, "drain");
    ox_admin_drain(rig.admin, &rig.op);
    rig_run(&rig);
    ox_admin_close(rig.admin);
    while (rig.client)
        rig_run(&rig);
    assert_true(rig.got.len > url.len);
    ox_posix_loop_free(rig.loop);
    ox_str_fini(&rig.got);
    ox_str_fini(&url);
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
        cmocka_unit_test(test_a_request_that_does_not_come_as_a_whole_is_timed_out),
        cmocka_unit_test(test_a_silent_connection_ends),
        cmocka_unit_test(test_a_new_connection_takes_the_place_of_a_silent_one),
        cmocka_unit_test(test_heads_and_bodies_are_bounded),
        cmocka_unit_test(test_drain_refuses_new_requests),
        cmocka_unit_test(test_drain_waits_for_an_answer_that_is_being_taken),
        cmocka_unit_test(test_walks_of_clients_that_have_hung_up_hold_nobody_up),
        cmocka_unit_test(test_a_client_that_has_ended_its_side_gets_its_walk),
        cmocka_unit_test(test_without_storage_bookie_clusters_are_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
