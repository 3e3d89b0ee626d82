// request_test.c - what is asked of the broker, and what is said when it does not answer as wanted.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "oxbowctl/capture_test.h"
#include "oxbowctl/ctl.h"

#define ARGS(...) ((char *[]){__VA_ARGS__, NULL})

static void parse(struct ctl *ctl, char *const *words)
{
    int count = 0;
    while (words[count])
        count++;
    *ctl = (struct ctl){0};
    assert_true(ctl_parse(ctl, count, words));
}

// A command line, and the requests that it makes.
static void asks(char *const *words, const char *requests)
{
    struct ctl ctl;
    struct capture c;
    parse(&ctl, words);
    ctl.print_request = true;
    capture_begin(&c, &stdout);
    int status = ctl_row_run(&ctl);
    capture_end(&c);
    assert_int_equal(status, CTL_DONE);
    assert_string_equal(c.text, requests);
    free(c.text);
    ctl_fini(&ctl);
}

static void test_paths_are_encoded_segment_by_segment(void **state)
{
    (void)state;
    asks(ARGS("topics", "unload", "non-persistent://a/b/c/d e%"),
         "PUT /admin/v2/non-persistent/a/b/c%2Fd%20e%25/unload\n");
    asks(ARGS("topics", "unsubscribe", "t", "-s", "a b/c+", "-f"),
         "DELETE /admin/v2/persistent/public/default/t/subscription/a%2520b%252Fc%252B?force=true\n");
    asks(ARGS("bookie-clusters", "get", "a/b"), "GET /admin/v2/bookie-clusters/a%2Fb\n");
}

static void test_the_first_route_that_can_be_filled_is_taken(void **state)
{
    (void)state;
    asks(ARGS("bookie-clusters", "get-target", "a/b"), "GET /admin/v2/bookie-clusters/namespaces/a/b/target\n");
    asks(ARGS("bookie-clusters", "get-target", "a/b/c"), "GET /admin/v2/bookie-clusters/topics/a/b/c/target\n");
    asks(ARGS("topics", "expire-messages", "t", "-s", "s", "-t", "2m"),
         "POST /admin/v2/persistent/public/default/t/subscription/s/expireMessages/120\n");
    asks(ARGS("topics", "expire-messages", "t", "-s", "s", "-p", "3:4", "-e"),
         "POST /admin/v2/persistent/public/default/t/subscription/s/expireMessages\n"
         "{\"partitionIndex\":-1,\"ledgerId\":3,\"entryId\":4,\"excluded\":true}\n");
}

static void test_queries_and_bodies(void **state)
{
    (void)state;
    asks(ARGS("bookie-clusters", "plan", "a&b", "--rate", "1k"),
         "GET /admin/v2/bookie-clusters/plan?target=a%26b&bytesPerSecond=1024\n");
    asks(ARGS("bookie-clusters", "throttle", "--ops", "7"),
         "PUT /admin/v2/bookie-clusters/throttle\n{\"opsPerSecond\":7}\n");
    asks(ARGS("bookie-clusters", "cleanup", "--dry-run"),
         "POST /admin/v2/bookie-clusters/cleanup\n{\"dryRun\":true,\"maxDeletions\":0,\"force\":false}\n");
    asks(ARGS("bookie-clusters", "switch", "b", "--wait"),
         "POST /admin/v2/bookie-clusters/switch\n{\"target\":\"b\",\"supersede\":false}\n");
    asks(ARGS("namespaces", "set-retention", "a/b", "-t", "-1", "-s", "10G"),
         "POST /admin/v2/namespaces/a/b/retention\n{\"retentionTimeInMinutes\":-1,\"retentionSizeInMB\":10240}\n");
    asks(ARGS("topics", "create-subscription", "t", "-s", "s", "-p", "a=b"),
         "PUT /admin/v2/persistent/public/default/t/subscription/s?replicated=false\n"
         "{\"ledgerId\":9223372036854775807,\"entryId\":9223372036854775807,\"partitionIndex\":-1,\"properties\":{"
         "\"a\":\"b\"}}\n");
}

static void test_verbs_of_several_requests(void **state)
{
    (void)state;
    asks(ARGS("topics", "list", "a/b"), "GET /admin/v2/non-persistent/a/b\nGET /admin/v2/persistent/a/b\n");
    asks(ARGS("topics", "list", "a/b", "-td", "NON_PERSISTENT", "-ist"),
         "GET /admin/v2/non-persistent/a/b?includeSystemTopic=true\n");
    asks(ARGS("topics", "create-partitioned-topic", "t", "-p", "4"),
         "PUT /admin/v2/persistent/public/default/t/partitions\n4\n");
    asks(ARGS("topics", "create-partitioned-topic", "t", "-p", "4", "-m", "a=b"),
         "PUT /admin/v2/persistent/public/default/t/partitions\n{\"partitions\":4,\"properties\":{\"a\":\"b\"}}\n");
    asks(ARGS("bookie-clusters", "unregister", "b"), "DELETE /admin/v2/bookie-clusters/b\n");
}

// ---- what is said -----------------------------------------------------------------------------------------------------

static void says(char *const *words, long status, const char *body, const char *wanted)
{
    struct ctl ctl;
    struct ctl_answer answer = {.status = status};
    struct capture c;
    parse(&ctl, words);
    ox_str_adds(&answer.body, body);
    OX_CLEANUP(ox_free_ptr)
    char *what = ctl_subject(&ctl);
    capture_begin(&c, &stderr);
    assert_int_equal(ctl_answer_failed(&ctl, &answer, what), CTL_FAILED);
    capture_end(&c);
    assert_string_equal(c.text, wanted);
    free(c.text);
    ctl_answer_fini(&answer);
    ctl_fini(&ctl);
}

static void test_failures_say_what_to_do(void **state)
{
    (void)state;
    says(ARGS("topics", "unload", "t"), 404,
         "{\"reason\":\"Topic persistent://public/default/t not found\"}", "oxbowctl: Topic persistent://public/default/t not found; 'oxbowctl topics list public/default' shows which there are\n");
    says(ARGS("topics", "unsubscribe", "t", "-s", "x"), 404, "{\"reason\":\"Subscription x not found.\"}",
         "oxbowctl: persistent://public/default/t: Subscription x not found; 'oxbowctl topics subscriptions "
         "persistent://public/default/t' shows which there are\n");
    says(ARGS("topics", "delete", "t"), 412,
         "{\"reason\":\"Topic has 1 connected producers/consumers\"}", "oxbowctl: persistent://public/default/t: Topic has 1 connected producers/consumers; --force does it all the same\n");
    says(ARGS("topics", "delete", "t", "-f"), 412, "{\"reason\":\"no\"}", "oxbowctl: persistent://public/default/t: no\n");
    says(ARGS("brokers", "health"), 503, "oops",
         "oxbowctl: brokers health: the broker answered 503 oops; try again in a moment\n");
    says(ARGS("brokers", "health"), 401, "",
         "oxbowctl: brokers health: the broker answered 401 ; the broker wants to know who asks, and oxbowctl has no "
         "way to say "
         "it yet\n");
}

static void test_nobody_listens(void **state)
{
    (void)state;
    struct ctl ctl;
    struct capture c;
    const char *wanted =
        "oxbowctl: no broker answers at http://127.0.0.1:1: is it running? (--url names another one)\n";
    char *const *const commands[] = {
        ARGS("brokers", "health", "--url", "http://127.0.0.1:1"),
        ARGS("topics", "stats", "t", "--url", "http://127.0.0.1:1"),
        ARGS("topics", "list", "a/b", "--url", "http://127.0.0.1:1"),
        ARGS("topics", "get-message-by-id", "t", "-l", "1", "-e", "0", "--url", "http://127.0.0.1:1"),
        ARGS("bookie-clusters", "unregister", "b", "--url", "http://127.0.0.1:1"),
        ARGS("bookie-clusters", "watch", "--url", "http://127.0.0.1:1"),
        ARGS("bookie-clusters", "switch", "b", "--wait", "--url", "http://127.0.0.1:1")};
    for (size_t i = 0; i < OX_COUNT(commands); i++) {
        parse(&ctl, commands[i]);
        capture_begin(&c, &stderr);
        int status = ctl_row_run(&ctl);
        capture_end(&c);
        assert_int_equal(status, CTL_FAILED);
        assert_string_equal(c.text, wanted);
        free(c.text);
        ctl_fini(&ctl);
    }
}

static void test_headers_of_an_answer(void **state)
{
    (void)state;
    struct ctl_answer answer = {0};
    ox_str_adds(&answer.headers, "HTTP/1.1 200 OK\r\nX-Pulsar-Message-ID:  1:2\r\nX-Pulsar-Message-IDs: 9\r\n\r\n");
    OX_CLEANUP(ox_free_ptr)
    char *id = ctl_answer_header(&answer, "x-pulsar-message-id");
    assert_string_equal(id, "1:2");
    assert_null(ctl_answer_header(&answer, "X-Pulsar"));
    ctl_answer_fini(&answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_paths_are_encoded_segment_by_segment),
                                       cmocka_unit_test(test_the_first_route_that_can_be_filled_is_taken),
                                       cmocka_unit_test(test_queries_and_bodies),
                                       cmocka_unit_test(test_verbs_of_several_requests),
                                       cmocka_unit_test(test_failures_say_what_to_do),
                                       cmocka_unit_test(test_nobody_listens),
                                       cmocka_unit_test(test_headers_of_an_answer)};
    unsetenv("OXBOWCTL_URL");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
