// pulsar_command_test.c - commands by hand against protobuf's reading and writing of the same.
#include "wire/pulsar_command.h"

#include "base/bytes.h"
#include "wire/pulsar_frame.h"
#include "wire/test_hex.h"

// What frames are unpacked into; made anew for each test.
static struct ox_arena arena;

static int setup(void **state)
{
    (void)state;
    ox_arena_init(&arena, 1 << 20);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ox_arena_fini(&arena);
    return 0;
}

// Unpacks a whole frame through protobuf; gives the frame back. *ret_body_bytes: what the sizes promise behind the command.
static Oxpb__BaseCommand *unpack_frame(struct ox_buf give_frame, size_t *ret_body_bytes)
{
    Oxpb__BaseCommand *command;
    size_t total = ox_get_be32(give_frame.data), len = ox_get_be32(give_frame.data + 4);
    assert_int_equal(give_frame.len, 8 + len);
    *ret_body_bytes = total - 4 - len;
    assert_int_equal(ox_proto_unpack(&oxpb__base_command__descriptor, &arena, give_frame.data + 8, len, &command), OX_OK);
    ox_buf_unref(&give_frame);
    return command;
}

static Oxpb__BaseCommand *unpack_plain(struct ox_buf give_frame)
{
    size_t body;
    Oxpb__BaseCommand *command = unpack_frame(give_frame, &body);
    assert_int_equal(body, 0);
    return command;
}

static void test_encode_receipt_reads_back(void **state)
{
    (void)state;
    struct ox_encoder e = {0};
    struct ox_message_id id = OX_MESSAGE_ID_NONE;
    id.ledger = 12;
    id.entry = 345;
    Oxpb__BaseCommand *c = unpack_plain(ox_encode_send_receipt(&e, 7, UINT64_MAX, 0, &id));
    assert_int_equal(c->type, OXPB__BASE_COMMAND__TYPE__SEND_RECEIPT);
    assert_true(c->send_receipt->producer_id == 7 && c->send_receipt->sequence_id == UINT64_MAX);
    assert_true(c->send_receipt->message_id->ledger_id == 12 && c->send_receipt->message_id->entry_id == 345);
    assert_false(c->send_receipt->message_id->has_partition || c->send_receipt->has_highest_sequence_id);
    c = unpack_plain(ox_encode_send_receipt(&e, 7, 1, 9, &OX_MESSAGE_ID_NONE));
    assert_true(c->send_receipt->message_id->ledger_id == UINT64_MAX && c->send_receipt->highest_sequence_id == 9);
    ox_encoder_fini(&e);
}

static void test_encode_message_head_reads_back(void **state)
{
    (void)state;
    struct ox_encoder e = {0};
    uint64_t words[OX_ACK_SET_WORDS_MAX];
    memset(words, 0xff, sizeof words);
    struct ox_delivery d = {.consumer_id = 3,
                            .id = {.ledger = 1, .entry = 2, .partition = 4, .batch_index = 0, .batch_size = 10},
                            .redelivery_count = 5,
                            .ack_set = words,
                            .ack_set_words = OX_ACK_SET_WORDS_MAX,
                            .has_epoch = true,
                            .consumer_epoch = 6};
    size_t body;
    Oxpb__CommandMessage *m = unpack_frame(ox_encode_message_head(&e, &d, 1000), &body)->message;
    assert_int_equal(body, 1000);
    assert_true(m->consumer_id == 3 && m->redelivery_count == 5 && m->consumer_epoch == 6);
    assert_true(m->message_id->partition == 4 && m->message_id->has_batch_index && m->message_id->batch_index == 0);
    assert_int_equal(m->message_id->batch_size, 10);
    assert_true(m->n_ack_set == OX_ACK_SET_WORDS_MAX && m->ack_set[OX_ACK_SET_WORDS_MAX - 1] == -1);
    ox_encoder_fini(&e);
}

static void test_encode_small_answers_read_back(void **state)
{
    (void)state;
    struct ox_encoder e = {0};
    assert_true(unpack_plain(ox_encode_success(&e, 8))->success->request_id == 8);
    assert_non_null(unpack_plain(ox_encode_ping(&e))->ping);
    assert_non_null(unpack_plain(ox_encode_pong(&e))->pong);
    Oxpb__CommandError *error = unpack_plain(ox_encode_error(&e, 9, OXPB__SERVER_ERROR__TopicNotFound, "no"))->error;
    assert_true(error->request_id == 9 && error->error == OXPB__SERVER_ERROR__TopicNotFound);
    assert_string_equal(error->message, "no");
    Oxpb__CommandSendError *send =
        unpack_plain(ox_encode_send_error(&e, 1, 2, OXPB__SERVER_ERROR__ChecksumError, "bad"))->send_error;
    assert_true(send->producer_id == 1 && send->sequence_id == 2 && send->error == OXPB__SERVER_ERROR__ChecksumError);
    Oxpb__CommandFlow *flow = unpack_plain(ox_encode_flow(&e, 4, 1000))->flow;
    assert_true(flow->consumer_id == 4 && flow->message_permits == 1000);
    struct ox_ack_answer answer = {
        .consumer_id = 1, .request_id = 2, .has_error = true, .error = OXPB__SERVER_ERROR__MetadataError, .message = "x"};
    Oxpb__CommandAckResponse *ack = unpack_plain(ox_encode_ack_response(&e, &answer))->ack_response;
    assert_true(ack->consumer_id == 1 && ack->request_id == 2 && ack->error == OXPB__SERVER_ERROR__MetadataError &&
                !ack->has_txnid_most_bits);
    ox_encoder_fini(&e);
}

static void test_encode_cuts_long_texts_between_characters(void **state)
{
    (void)state;
    struct ox_encoder e = {0};
    char text[2001];
    text[0] = 'a';
    for (int i = 0; i < 999; i++)
        memcpy(text + 1 + 2 * i, "\xc3\xa9", 3);
    Oxpb__CommandError *error = unpack_plain(ox_encode_error(&e, 9, 0, text))->error;
    assert_int_equal(strlen(error->message), 999);
    ox_encoder_fini(&e);
}

static void test_encoded_frames_touch_and_slabs_are_used_again(void **state)
{
    (void)state;
    struct ox_encoder e = {0};
    struct ox_buf all = ox_encode_ping(&e), next = ox_encode_success(&e, 1);
    assert_true(ox_buf_extend(&all, next));
    for (int i = 0; i < 10000; i++) {
        struct ox_buf frame = ox_encode_success(&e, (uint64_t)i);
        ox_buf_unref(&frame);
    }
    assert_ptr_not_equal(e.slab, all.slab);
    struct ox_slab *slab = e.slab;
    ox_buf_unref(&all);
    struct ox_buf frame = ox_encode_pong(&e);
    assert_ptr_equal(frame.slab, slab);
    assert_ptr_equal(frame.data, slab->data);
    ox_buf_unref(&frame);
    ox_encoder_fini(&e);
}

static void test_pack_sub_equals_pack(void **state)
{
    (void)state;
    Oxpb__CommandConnected connected = OXPB__COMMAND_CONNECTED__INIT;
    connected.server_version = (char *)(uintptr_t) "Oxbow";
    connected.has_protocol_version = true;
    connected.protocol_version = 21;
    Oxpb__BaseCommand command = OXPB__BASE_COMMAND__INIT;
    command.type = OXPB__BASE_COMMAND__TYPE__CONNECTED;
    command.connected = &connected;
    assert_same(ox_command_pack_sub(command.type, &connected.base), ox_command_pack(&command));
    Oxpb__CommandTopicMigrated migrated = OXPB__COMMAND_TOPIC_MIGRATED__INIT;
    Oxpb__BaseCommand other = OXPB__BASE_COMMAND__INIT;
    other.type = OXPB__BASE_COMMAND__TYPE__TOPIC_MIGRATED;
    other.topic_migrated = &migrated;
    assert_same(ox_command_pack_sub(other.type, &migrated.base), ox_command_pack(&other));
}

static void test_every_command_has_the_number_of_its_type(void **state)
{
    (void)state;
    const ProtobufCMessageDescriptor *base = &oxpb__base_command__descriptor;
    const ProtobufCEnumDescriptor *types = &oxpb__base_command__type__descriptor;
    assert_int_equal(base->n_fields, types->n_values + 1);
    for (unsigned i = 0; i < types->n_values; i++)
        assert_non_null(protobuf_c_message_descriptor_get_field(base, (unsigned)types->values[i].value));
}

static enum ox_err peek(const char *bytes, uint32_t *type, size_t *sub_len)
{
    struct ox_buf command = hex(bytes), sub;
    enum ox_err err = ox_command_peek(command, type, &sub);
    *sub_len = err ? 0 : sub.len;
    ox_buf_unref(&command);
    return err;
}

static void test_peek_finds_type_and_sub_message(void **state)
{
    (void)state;
    uint32_t type;
    size_t len;
    assert_int_equal(peek("0806 3204 08011002", &type, &len), OX_OK);
    assert_true(type == 6 && len == 4);
    assert_int_equal(peek("3204 08011002 0806", &type, &len), OX_OK);
    assert_true(type == 6 && len == 4);
    assert_int_equal(peek("0812", &type, &len), OX_OK);
    assert_true(type == 18 && len == 0);
    assert_int_equal(peek("08ff7f", &type, &len), OX_OK);
    assert_true(type == 16383 && len == 0);
    assert_int_equal(peek("0806 3a04 08011002", &type, &len), OX_OK);
    assert_true(type == 6 && len == 0);
    assert_int_equal(peek("0806 3204 08011002 f87f05", &type, &len), OX_OK); // a field that we don't know
    assert_true(type == 6 && len == 4);
}

// With an unknown field behind it, a command is read field by field: the outcome is that of the short way.
static void test_peek_reads_plain_commands_as_others(void **state)
{
    (void)state;
    for (uint32_t type = 2; type < 20; type++)
        for (uint8_t len = 0; len < 0x80; len++) {
            uint8_t bytes[4 + 0x80 + 4] = {1 << 3, (uint8_t)type, (uint8_t)(type << 3 | 2), len};
            size_t head = 4;
            if (type > 15) { // its tag takes two bytes
                bytes[2] = (uint8_t)(0x80 | (type << 3 | 2));
                bytes[3] = (uint8_t)(type >> 4);
                bytes[4] = len;
                head = 5;
            }
            memcpy(bytes + head + len, "\xf8\x7f\x05", 3);
            uint32_t plain_type, type_too;
            struct ox_buf plain, sub;
            assert_int_equal(ox_command_peek(ox_buf_static(bytes, head + len), &plain_type, &plain), OX_OK);
            assert_int_equal(ox_command_peek(ox_buf_static(bytes, head + len + 3), &type_too, &sub), OX_OK);
            assert_true(plain_type == type && type_too == type && plain.len == len && sub.len == len);
            assert_true(plain.data == bytes + head && sub.data == bytes + head);
            for (size_t cut = 3; cut < head + len; cut++)
                assert_int_equal(ox_command_peek(ox_buf_static(bytes, cut), &plain_type, &plain), OX_E_MALFORMED);
        }
}

static void test_peek_refuses_damaged_envelopes(void **state)
{
    (void)state;
    static const char *const bad[] = {"",          "3204 08011002", "0806 3205 08011002", "0806 30", "0a0106",
                                      "0806 3001", "0800",          "08ffffffffff7f"};
    uint32_t type;
    size_t len;
    for (size_t i = 0; i < OX_COUNT(bad); i++)
        assert_int_equal(peek(bad[i], &type, &len), OX_E_MALFORMED);
}

static void test_send_decodes(void **state)
{
    (void)state;
    struct ox_command_send c;
    struct ox_buf sub = hex("0803 1009 1804 2001 2802 3011 3801 4a04 08051006");
    assert_int_equal(ox_command_send_decode(sub, &c), OX_OK);
    assert_true(c.producer_id == 3 && c.sequence_id == 9 && c.num_messages == 4 && c.has_txn && c.txn_least == 1 &&
                c.txn_most == 2);
    assert_true(c.has_highest && c.highest_sequence_id == 17 && c.is_chunk && !c.is_marker && c.has_message_id &&
                c.message_id.ledger == 5);
    ox_buf_unref(&sub);
    sub = hex("0803 1009");
    assert_int_equal(ox_command_send_decode(sub, &c), OX_OK);
    assert_true(c.num_messages == 1 && !c.has_txn && !c.has_highest && !c.has_message_id);
    ox_buf_unref(&sub);
    assert_int_equal(ox_command_send_decode(ox_buf_empty(), &c), OX_E_MALFORMED);
}

static void test_ack_decodes_any_number_of_ids(void **state)
{
    (void)state;
    struct ox_buf sub = hex("0801 1000 1a06 0805 1006 1801 1a13 0805 1007 28ffffffffffffffffff01 2801 3002 4005"),
                  none = hex("0801 1001");
    struct ox_command_ack c;
    struct ox_message_id id;
    uint64_t words[4];
    size_t at = 0;
    assert_int_equal(ox_command_ack_decode(sub, &c), OX_OK);
    assert_true(c.consumer_id == 1 && !c.is_cumulative && c.id_count == 2 && c.has_request_id && c.request_id == 5 &&
                c.validation_error == -1);
    assert_true(ox_command_ack_next(&c, &at, &id));
    assert_true(id.ledger == 5 && id.entry == 6 && id.partition == 1 && id.ack_set_words == 0);
    assert_true(ox_command_ack_next(&c, &at, &id));
    assert_true(id.entry == 7 && id.ack_set_words == 2 && id.batch_size == 2 && id.batch_index == -1);
    assert_int_equal(ox_message_id_ack_set(&id, words, 4), 2);
    assert_true(words[0] == UINT64_MAX && words[1] == 1);
    assert_int_equal(ox_message_id_ack_set(&id, words, 1), 1);
    assert_false(ox_command_ack_next(&c, &at, &id));
    assert_int_equal(ox_command_ack_decode(none, &c), OX_OK);
    assert_true(c.is_cumulative && c.id_count == 0 && !c.has_request_id);
    ox_buf_unref(&none);
    ox_buf_unref(&sub);
}

static void test_message_id_reads_packed_ack_sets(void **state)
{
    (void)state;
    struct ox_buf bytes = hex("08ffffffffffffffffff01 1000 2a03 01 8001"), bad = hex("0801 1000 2a02 0180");
    struct ox_message_id id;
    uint64_t words[4];
    assert_int_equal(ox_message_id_decode(bytes.data, bytes.len, &id), OX_OK);
    assert_true(id.ledger == -1 && id.ack_set_words == 2);
    assert_int_equal(ox_message_id_ack_set(&id, words, 4), 2);
    assert_true(words[0] == 1 && words[1] == 128);
    assert_int_equal(ox_message_id_decode(bad.data, bad.len, &id), OX_E_MALFORMED);
    ox_buf_unref(&bytes);
    ox_buf_unref(&bad);
}

static void test_decoders_survive_every_truncation(void **state)
{
    (void)state;
    static const char *const subs[] = {
        "0803 1009 1804 2001 2802 3011 3801 4a04 08051006",
        "0801 1000 1a06 0805 1006 1801 1a13 0805 1007 28ffffffffffffffffff01 2801 3002 4005",
        "0801 10e807",
    };
    for (size_t i = 0; i < OX_COUNT(subs); i++) {
        struct ox_buf whole = hex(subs[i]);
        for (size_t len = 0; len <= whole.len; len++) {
            struct ox_buf cut = exact(whole, len), sub;
            uint32_t type;
            struct ox_command_send send;
            struct ox_command_ack ack;
            struct ox_command_flow flow;
            int ok = ox_command_send_decode(cut, &send) == OX_OK;
            ok += ox_command_ack_decode(cut, &ack) == OX_OK;
            ok += ox_command_flow_decode(cut, &flow) == OX_OK;
            ok += ox_command_peek(cut, &type, &sub) == OX_OK;
            assert_true(len > 0 || ok == 0);
            ox_buf_unref(&cut);
        }
        ox_buf_unref(&whole);
    }
}

static void test_decoders_refuse_foreign_wire_types(void **state)
{
    (void)state;
    static const char *const bad[] = {"0a0103 1009", "0803 12011e", "0d00000000 1009", "0803 1009 4801", "0803 1009 1a0101"};
    for (size_t i = 0; i < OX_COUNT(bad); i++) {
        struct ox_buf sub = hex(bad[i]);
        struct ox_command_send send;
        assert_int_equal(ox_command_send_decode(sub, &send), OX_E_MALFORMED);
        ox_buf_unref(&sub);
    }
    struct ox_buf ack = hex("0801 1002"), flow = hex("0801 1201 05");
    struct ox_command_ack a;
    struct ox_command_flow f;
    assert_int_equal(ox_command_ack_decode(ack, &a), OX_E_MALFORMED);
    assert_int_equal(ox_command_flow_decode(flow, &f), OX_E_MALFORMED);
    ox_buf_unref(&ack);
    ox_buf_unref(&flow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_encode_receipt_reads_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_encode_message_head_reads_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_encode_small_answers_read_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_encode_cuts_long_texts_between_characters, setup, teardown),
        cmocka_unit_test(test_encoded_frames_touch_and_slabs_are_used_again),
        cmocka_unit_test(test_pack_sub_equals_pack),
        cmocka_unit_test(test_every_command_has_the_number_of_its_type),
        cmocka_unit_test(test_peek_finds_type_and_sub_message),
        cmocka_unit_test(test_peek_reads_plain_commands_as_others),
        cmocka_unit_test(test_peek_refuses_damaged_envelopes),
        cmocka_unit_test(test_send_decodes),
        cmocka_unit_test(test_ack_decodes_any_number_of_ids),
        cmocka_unit_test(test_message_id_reads_packed_ack_sets),
        cmocka_unit_test(test_decoders_survive_every_truncation),
        cmocka_unit_test(test_decoders_refuse_foreign_wire_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
