// errors_test.c - every error has a place in the protocol, and those that clients act on have the right one.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pulsar/session.h"

static void test_errors_all_have_an_answer(void **state)
{
    (void)state;
    for (int err = 1; err < OX_ERR_COUNT; err++)
        assert_true(server_error((enum ox_err)err) <= OXPB__SERVER_ERROR__ProducerFenced);
}

static void test_errors_that_clients_act_on(void **state)
{
    (void)state;
    assert_int_equal(server_error(OX_E_TOPIC_FENCED), OXPB__SERVER_ERROR__ServiceNotReady);
    assert_int_equal(server_error(OX_E_SHUTDOWN), OXPB__SERVER_ERROR__ServiceNotReady);
    assert_int_equal(server_error(OX_E_CHECKSUM), OXPB__SERVER_ERROR__ChecksumError);
    assert_int_equal(server_error(OX_E_NO_SPACE), OXPB__SERVER_ERROR__PersistenceError);
    assert_int_equal(server_error(OX_E_CONSUMER_BUSY), OXPB__SERVER_ERROR__ConsumerBusy);
    assert_int_equal(server_error(OX_E_PRODUCER_BUSY), OXPB__SERVER_ERROR__ProducerBusy);
    assert_int_equal(server_error(OX_E_TOPIC_TERMINATED), OXPB__SERVER_ERROR__TopicTerminatedError);
    assert_int_equal(server_error(OX_E_INVALID_TOPIC_NAME), OXPB__SERVER_ERROR__InvalidTopicName);
}

static void test_error_texts_name_the_thing(void **state)
{
    (void)state;
    char text[128];
    error_text(text, sizeof text, OX_E_TOPIC_NOT_FOUND, "persistent://a/b/c", NULL);
    assert_string_equal(text, "the topic does not exist: persistent://a/b/c");
    error_text(text, sizeof text, OX_E_UNSUPPORTED, NULL, "only this");
    assert_string_equal(text, "only this");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors_all_have_an_answer),
        cmocka_unit_test(test_errors_that_clients_act_on),
        cmocka_unit_test(test_error_texts_name_the_thing),
    };
    return cmocka_run_group_tests_name("pulsar.errors", tests, NULL, NULL);
}
