// args_test.c - reading the command line by the table, and what is said about mistakes.
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

static bool parse(struct ctl *ctl, char *const *words)
{
    int count = 0;
    while (words[count])
        count++;
    *ctl = (struct ctl){0};
    return ctl_parse(ctl, count, words);
}

// A command line that is wrong, and words of what is said about it.
static void refused(char *const *words, const char *said)
{
    struct ctl ctl;
    struct capture c;
    capture_begin(&c, &stderr);
    bool good = parse(&ctl, words);
    capture_end(&c);
    ctl_fini(&ctl);
    if (good || !strstr(c.text, said))
        fail_msg("%s: '%s' is not said, but: %s", words[0] ? words[0] : "nothing", said, c.text);
    free(c.text);
}

static void test_options_stand_anywhere(void **state)
{
    (void)state;
    struct ctl ctl;
    assert_true(parse(&ctl, ARGS("-o", "json", "topics", "--request-timeout=5", "create-subscription", "-s", "a b", "orders",
                                 "--url", "http://x", "-p", "k=v", "--property=l=w", "--admin-url", "http://y")));
    assert_true(ctl.json);
    assert_string_equal(ctl.url, "http://y");
    assert_int_equal(ctl.timeout_ms, 5000);
    assert_string_equal(ctl.row->verb, "create-subscription");
    assert_string_equal(ctl_text(&ctl, "TOPIC"), "persistent://public/default/orders");
    assert_string_equal(ctl_text(&ctl, "--subscription"), "a b");
    assert_string_equal(ctl_text(&ctl, "-s"), "a b");
    assert_int_equal(json_object_size(ctl_value(&ctl, "--property")), 2);
    assert_null(ctl_value(&ctl, "--nothing"));
    ctl_fini(&ctl);
}

static void test_words_behind_two_dashes_are_no_options(void **state)
{
    (void)state;
    struct ctl ctl;
    assert_true(parse(&ctl, ARGS("bookie-clusters", "get", "--", "-a")));
    assert_string_equal(ctl_text(&ctl, "NAME"), "-a");
    ctl_fini(&ctl);
    assert_true(parse(&ctl, ARGS("bookie-clusters", "get", "--name=b")));
    assert_string_equal(ctl_text(&ctl, "NAME"), "b");
    assert_string_equal(json_string_value(json_object_get(ctl.names, "name")), "b");
    ctl_fini(&ctl);
}

static void test_a_noun_can_be_the_whole_command(void **state)
{
    (void)state;
    struct ctl ctl;
    assert_true(parse(&ctl, ARGS("produce", "orders", "-m", "-1", "-m", "b", "--batch", "3")));
    assert_int_equal(json_array_size(ctl_value(&ctl, "-m")), 2);
    assert_int_equal(ctl_integer(&ctl, "--batch"), 3);
    assert_string_equal(ctl_text(&ctl, "--compression"), "none");
    OX_CLEANUP(ox_free_ptr)
    char *subject = ctl_subject(&ctl);
    assert_string_equal(subject, "persistent://public/default/orders");
    ctl_fini(&ctl);
}

static void test_the_url_comes_from_the_environment(void **state)
{
    (void)state;
    struct ctl ctl;
    setenv("OXBOWCTL_URL", "http://other:1", 1);
    assert_true(parse(&ctl, ARGS("brokers", "health")));
    assert_string_equal(ctl.url, "http://other:1");
    OX_CLEANUP(ox_free_ptr)
    char *subject = ctl_subject(&ctl);
    assert_string_equal(subject, "brokers health");
    ctl_fini(&ctl);
    assert_true(parse(&ctl, ARGS("brokers", "health", "--url=http://this")));
    assert_string_equal(ctl.url, "http://this");
    ctl_fini(&ctl);
    unsetenv("OXBOWCTL_URL");
}

static void test_help_needs_nothing_else(void **state)
{
    (void)state;
    struct ctl ctl;
    assert_true(parse(&ctl, ARGS("--help")));
    assert_true(ctl.help && !ctl.noun);
    ctl_fini(&ctl);
    assert_true(parse(&ctl, ARGS("topics", "-h")));
    assert_true(ctl.help && ctl.noun && !ctl.row);
    ctl_fini(&ctl);
    assert_true(parse(&ctl, ARGS("help", "topics", "reset-cursor")));
    assert_true(ctl.help && ctl.row);
    ctl_fini(&ctl);
    assert_true(parse(&ctl, ARGS("--version")));
    assert_true(ctl.version);
    ctl_fini(&ctl);
}

static void test_mistakes_are_named(void **state)
{
    (void)state;
    refused(ARGS(NULL), "a command is missing");
    refused(ARGS("topcs"), "there is no command 'topcs' (did you mean 'topics'?)");
    refused(ARGS("zzzzzz"), "there is no command 'zzzzzz'\n");
    refused(ARGS("topics"), "topics needs a verb");
    refused(ARGS("topics", "unlod", "t"), "topics has no verb 'unlod' (did you mean 'unload'?)");
    refused(ARGS("topics", "set-retentio", "t"), "(did you mean 'set-retention'?)");
    refused(ARGS("topics", "delete", "t", "--forse"), "unknown option --forse (did you mean '--force'?)");
    refused(ARGS("topics", "delete", "t", "--force=1"), "no value is wanted after --force=1");
    refused(ARGS("--urll", "x"), "unknown option --urll (did you mean '--url'?)");
    refused(ARGS("topics", "unload"), "TOPIC is missing");
    refused(ARGS("topics", "unload", ""), "TOPIC is missing");
    refused(ARGS("topics", "unload", "a/b"), "TOPIC wants NAME, TENANT/NAMESPACE/NAME");
    refused(ARGS("topics", "unload", "a", "b"), "too many words: b");
    refused(ARGS("topics", "unsubscribe", "a"), "--subscription is missing: the subscription");
    refused(ARGS("topics", "unsubscribe", "a", "-s"), "a value is missing after -s");
    refused(ARGS("topics", "unload", "a", "-o", "xml"), "-o wants table or json, not 'xml'");
    refused(ARGS("topics", "unload", "a", "--request-timeout", "0"), "--request-timeout wants seconds");
    refused(ARGS("topics", "unload", "\xff"), "TOPIC wants valid UTF-8");
    refused(ARGS("topics", "reset-cursor", "a", "-s", "s"), "one must be given of: --time --messageId");
    refused(ARGS("topics", "reset-cursor", "a", "-s", "s", "-t", "1h", "-m", "1:2"), "only one can be given of");
    refused(ARGS("bookie-clusters", "throttle"), "one or more must be given of: --bytes --ops");
    refused(ARGS("bookie-clusters", "throttle", "--bytes", "-5"), "--bytes wants a size such as 50M");
    refused(ARGS("bookie-clusters", "throttle", "--ops", "many"), "--ops wants a whole number");
    refused(ARGS("bookie-clusters", "get", "a", "--name", "b"), "NAME is given twice: 'a' and 'b'");
    refused(ARGS("bookie-clusters", "register", "a"), "--metadata-service-uri is missing: where it is");
    refused(ARGS("bookie-clusters", "set-read-mode", "x"), "MODE wants one of DUAL_READ, OLD_CLUSTER_ONLY");
    refused(ARGS("produce", "t", "--compression", "rar"), "--compression wants one of none, lz4");
    refused(ARGS("brokers", "health", "x"), "too many words: x");
    refused(ARGS("topics", "unsubscribe", "t", "-s", ""), "--subscription is missing");
    refused(ARGS("clusters", "get", "a", "--name="), "CLUSTER");
    refused(ARGS("consume"), "usage: oxbowctl consume TOPIC [--subscription-name NAME]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_options_stand_anywhere),
                                       cmocka_unit_test(test_words_behind_two_dashes_are_no_options),
                                       cmocka_unit_test(test_a_noun_can_be_the_whole_command),
                                       cmocka_unit_test(test_the_url_comes_from_the_environment),
                                       cmocka_unit_test(test_help_needs_nothing_else),
                                       cmocka_unit_test(test_mistakes_are_named)};
    unsetenv("OXBOWCTL_URL");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
