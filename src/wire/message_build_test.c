// message_build_test.c - what the builders write, the readers read.
#include "wire/message_build.h"

#include "wire/message_meta.h"
#include "wire/pulsar_command.h"
#include "wire/pulsar_frame.h"
#include "wire/test_hex.h"

static Oxpb__MessageMetadata golden_metadata(void)
{
    Oxpb__MessageMetadata m = OXPB__MESSAGE_METADATA__INIT;
    m.producer_name = (char *)(uintptr_t) "raw1";
    m.publish_time = 1796002152758;
    return m;
}

static void test_entry_equals_the_one_a_real_broker_stored(void **state)
{
    (void)state;
    Oxpb__MessageMetadata m = golden_metadata();
    assert_same(ox_entry_build(&m, "abc0", 4),
                hex("0e01 152b7385 0000000f 0a04 \"raw1\" 10 00 18 b682c8d0a234 \"abc0\""));
}

static void test_send_frame_reads_back(void **state)
{
    (void)state;
    Oxpb__MessageMetadata m = golden_metadata();
    Oxpb__CommandSend send = OXPB__COMMAND_SEND__INIT;
    send.producer_id = 3;
    send.sequence_id = 4;
    struct ox_buf frame = ox_send_build(&send, &m, "abc0", 4), entry = ox_entry_build(&m, "abc0", 4), command, body, sub;
    assert_int_equal(ox_frame_split((struct ox_buf){NULL, frame.data + 4, frame.len - 4}, &command, &body), OX_OK);
    uint32_t type;
    struct ox_command_send c;
    struct ox_message_view v;
    assert_int_equal(ox_command_peek(command, &type, &sub), OX_OK);
    assert_int_equal(type, OXPB__BASE_COMMAND__TYPE__SEND);
    assert_int_equal(ox_command_send_decode(sub, &c), OX_OK);
    assert_true(c.producer_id == 3 && c.sequence_id == 4);
    assert_int_equal(ox_message_parse(body, true, &v), OX_OK);
    assert_true(ox_buf_equal(body, entry));
    assert_same(ox_send_wrap(&send, entry), frame);
    ox_buf_unref(&entry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entry_equals_the_one_a_real_broker_stored),
        cmocka_unit_test(test_send_frame_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
