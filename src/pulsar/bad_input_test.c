// bad_input_test.c - what broken or hostile clients send: a precise error, at most that connection closed, nothing lost, others unharmed.
#include "pulsar/fixture.h"

#include <string.h>

#include "base/bytes.h"
#include "wire/message_build.h"

#define T "persistent://public/default/t"

// A broker, a client that behaves, and one that does not.
struct scene {
    struct door d;
    struct peer good, bad;
};

static int scene_init(void **state)
{
    struct scene *s = ox_malloc(sizeof *s);
    door_init(&s->d);
    peer_connect(&s->d, &s->good);
    peer_connect(&s->d, &s->bad);
    peer_open_producer(&s->good, 1, T);
    peer_open_producer(&s->bad, 2, T);
    *state = s;
    return 0;
}

// The good client goes on as if nothing had been.
static int scene_fini(void **state)
{
    struct scene *s = *state;
    peer_frame(&s->good, peer_send_frame(1, 0, "good"));
    peer_next(&s->good, OXPB__BASE_COMMAND__TYPE__SEND_RECEIPT);
    peer_open_consumer(&s->good, 1, T, "check");
    peer_flow(&s->good, 1, 10);
    peer_expect_message(&s->good, "good");
    peer_expect_nothing(&s->good);
    peer_fini(&s->good);
    peer_fini(&s->bad);
    door_fini(&s->d);
    ox_free(s);
    return 0;
}

static void test_length_zero_closes(void **state)
{
    struct scene *s = *state;
    peer_bytes(&s->bad, "\0\0\0\0\0\0\0\0", 8);
    peer_expect_end(&s->bad);
}

static void test_impossible_length_closes(void **state)
{
    struct scene *s = *state;
    peer_bytes(&s->bad, "\xff\xff\xff\xff\0\0\0\2", 8);
    peer_expect_end(&s->bad);
}

static void test_frame_above_the_limit_closes_as_soon_as_its_length_is_read(void **state)
{
    struct scene *s = *state;
    uint8_t head[8];
    ox_put_be32(head, OX_MESSAGE_BYTES_MAX + OX_FRAME_SLACK_BYTES + 1);
    ox_put_be32(head + 4, 10);
    peer_bytes(&s->bad, head, sizeof head);
    peer_expect_end(&s->bad);
}

static void test_command_longer_than_its_frame_closes(void **state)
{
    struct scene *s = *state;
    peer_bytes(&s->bad,
               "\0\0\0\x0a\0\0\0\x20"
               "abcdef",
               14);
    peer_expect_end(&s->bad);
}

static void test_garbage_command_closes(void **state)
{
    struct scene *s = *state;
    peer_bytes(&s->bad, "\0\0\0\x0a\0\0\0\x06\xff\xff\xff\xff\xff\xff", 14);
    peer_expect_end(&s->bad);
}

static void test_unknown_command_type_closes(void **state)
{
    struct scene *s = *state;
    peer_bytes(&s->bad, "\0\0\0\x06\0\0\0\x02\x08\x63", 10);
    peer_expect_end(&s->bad);
}

static void test_command_without_its_required_fields_closes(void **state)
{
    struct scene *s = *state;
    peer_bytes(&s->bad, "\0\0\0\x06\0\0\0\x02\x08\x05", 10);
    peer_expect_end(&s->bad);
}

static void test_command_meant_for_clients_closes(void **state)
{
    struct scene *s = *state;
    struct ox_encoder e = {0};
    peer_frame(&s->bad, ox_encode_success(&e, 1));
    ox_encoder_fini(&e);
    peer_expect_end(&s->bad);
}

static void test_second_connect_closes(void **state)
{
    struct scene *s = *state;
    Oxpb__CommandConnect c = OXPB__COMMAND_CONNECT__INIT;
    char version[] = "again";
    c.client_version = version;
    peer_command(&s->bad, OXPB__BASE_COMMAND__TYPE__CONNECT, &c.base);
    peer_expect_end(&s->bad);
}

static void test_command_before_connect_closes(void **state)
{
    struct scene *s = *state;
    struct peer early;
    peer_open(&s->d, &early);
    peer_producer(&early, 1, T, NULL, 0);
    peer_expect_end(&early);
    assert_int_equal(early.count, 0);
    peer_fini(&early);
}

static void test_other_protocol_closes(void **state)
{
    struct scene *s = *state;
    struct peer web;
    static const char get[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    peer_open(&s->d, &web);
    peer_bytes(&web, get, sizeof get - 1);
    peer_expect_end(&web);
    peer_fini(&web);
}

static void test_connection_without_connect_is_closed_in_time(void **state)
{
    struct scene *s = *state;
    struct peer idle;
    peer_open(&s->d, &idle);
    ox_sim_run_for(s->d.rig.sim, 31 * OX_SEC);
    peer_expect_end(&idle);
    peer_fini(&idle);
}

static void test_wrong_checksum_is_refused_and_not_stored(void **state)
{
    struct scene *s = *state;
    struct ox_buf frame = peer_send_frame(2, 7, "damaged");
    uint8_t *copy = ox_memdup(frame.data, frame.len);
    copy[frame.len - 1] ^= 1;
    peer_bytes(&s->bad, copy, frame.len);
    ox_free(copy);
    ox_buf_unref(&frame);
    Oxpb__BaseCommand *c = peer_next(&s->bad, OXPB__BASE_COMMAND__TYPE__SEND_ERROR);
    assert_int_equal(c->send_error->sequence_id, 7);
    assert_int_equal(c->send_error->error, OXPB__SERVER_ERROR__ChecksumError);
    assert_non_null(s->bad.stream);
}

static void test_broken_metadata_is_refused_and_not_stored(void **state)
{
    struct scene *s = *state;
    Oxpb__CommandSend send = OXPB__COMMAND_SEND__INIT;
    send.producer_id = 2;
    send.sequence_id = 8;
    struct ox_buf entry = ox_buf_static("\0\0\0\x03\xff\xff\xff"
                                        "payload",
                                        14);
    peer_frame(&s->bad, ox_send_wrap(&send, entry));
    assert_int_equal(peer_next(&s->bad, OXPB__BASE_COMMAND__TYPE__SEND_ERROR)->send_error->sequence_id, 8);
    entry = ox_buf_static("\0\0\xff\xff"
                          "short",
                          9);
    peer_frame(&s->bad, ox_send_wrap(&send, entry));
    peer_next(&s->bad, OXPB__BASE_COMMAND__TYPE__SEND_ERROR);
    assert_non_null(s->bad.stream);
}

static void test_send_without_a_message_closes(void **state)
{
    struct scene *s = *state;
    Oxpb__CommandSend send = OXPB__COMMAND_SEND__INIT;
    send.producer_id = 2;
    peer_command(&s->bad, OXPB__BASE_COMMAND__TYPE__SEND, &send.base);
    peer_expect_end(&s->bad);
}

static void test_send_for_an_unknown_producer_closes(void **state)
{
    struct scene *s = *state;
    peer_frame(&s->bad, peer_send_frame(99, 0, "nobody's"));
    peer_expect_end(&s->bad);
}

static void test_flow_of_nothing_closes(void **state)
{
    struct scene *s = *state;
    peer_open_consumer(&s->bad, 1, T, "other");
    peer_flow(&s->bad, 1, 0);
    peer_expect_end(&s->bad);
}

static void test_unknown_topic_domain_is_told(void **state)
{
    struct scene *s = *state;
    peer_producer(&s->bad, 3, "file://public/default/t", NULL, 0);
    peer_expect_error(&s->bad, 1003, OXPB__SERVER_ERROR__InvalidTopicName);
    peer_subscribe(&s->bad, 3, "file://public/default/t", "s");
    peer_expect_error(&s->bad, 2003, OXPB__SERVER_ERROR__InvalidTopicName);
    assert_non_null(s->bad.stream);
}

static void test_second_exclusive_consumer_is_told(void **state)
{
    struct scene *s = *state;
    peer_open_consumer(&s->good, 5, T, "mine");
    peer_subscribe(&s->bad, 5, T, "mine");
    peer_expect_error(&s->bad, 2005, OXPB__SERVER_ERROR__ConsumerBusy);
    assert_non_null(s->bad.stream);
}

static void test_message_in_a_transaction_is_refused(void **state)
{
    struct scene *s = *state;
    Oxpb__CommandSend send = OXPB__COMMAND_SEND__INIT;
    send.producer_id = 2;
    send.has_txnid_least_bits = send.has_txnid_most_bits = 1;
    send.txnid_least_bits = 1;
    struct ox_buf entry = rig_entry("raw", 0, "transaction", 0);
    peer_frame(&s->bad, ox_send_wrap(&send, entry));
    ox_buf_unref(&entry);
    assert_int_equal(peer_next(&s->bad, OXPB__BASE_COMMAND__TYPE__SEND_ERROR)->send_error->error,
                     OXPB__SERVER_ERROR__NotAllowedError);
}

static void test_largest_message_passes(void **state)
{
    struct scene *s = *state;
    char *payload = ox_malloc(OX_MESSAGE_BYTES_MAX + 1);
    memset(payload, 'x', OX_MESSAGE_BYTES_MAX);
    struct peer p;
    peer_connect(&s->d, &p);
    peer_open_producer(&p, 1, T "-big");
    peer_open_consumer(&p, 1, T "-big", "s");
    peer_frame(&p, peer_send_frame(1, 0, payload));
    peer_next(&p, OXPB__BASE_COMMAND__TYPE__SEND_RECEIPT);
    peer_flow(&p, 1, 1);
    peer_expect_message(&p, payload);
    peer_fini(&p);
    ox_free(payload);
}

static void test_bytes_one_by_one_are_served(void **state)
{
    struct scene *s = *state;
    struct ox_buf frame = peer_send_frame(2, 0, "slow");
    struct peer p;
    peer_connect(&s->d, &p);
    peer_open_producer(&p, 2, T "-slow");
    for (size_t i = 0; i < frame.len; i++) {
        peer_bytes(&p, frame.data + i, 1);
        ox_sim_run_for(s->d.rig.sim, OX_MS);
    }
    ox_buf_unref(&frame);
    peer_next(&p, OXPB__BASE_COMMAND__TYPE__SEND_RECEIPT);
    peer_fini(&p);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, scene_init, scene_fini)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_length_zero_closes),
        CASE(test_impossible_length_closes),
        CASE(test_frame_above_the_limit_closes_as_soon_as_its_length_is_read),
        CASE(test_command_longer_than_its_frame_closes),
        CASE(test_garbage_command_closes),
        CASE(test_unknown_command_type_closes),
        CASE(test_command_without_its_required_fields_closes),
        CASE(test_command_meant_for_clients_closes),
        CASE(test_second_connect_closes),
        CASE(test_command_before_connect_closes),
        CASE(test_other_protocol_closes),
        CASE(test_connection_without_connect_is_closed_in_time),
        CASE(test_wrong_checksum_is_refused_and_not_stored),
        CASE(test_broken_metadata_is_refused_and_not_stored),
        CASE(test_send_without_a_message_closes),
        CASE(test_send_for_an_unknown_producer_closes),
        CASE(test_flow_of_nothing_closes),
        CASE(test_unknown_topic_domain_is_told),
        CASE(test_second_exclusive_consumer_is_told),
        CASE(test_message_in_a_transaction_is_refused),
        CASE(test_largest_message_passes),
        CASE(test_bytes_one_by_one_are_served),
    };
    return cmocka_run_group_tests_name("pulsar.bad_input", tests, NULL, NULL);
}
