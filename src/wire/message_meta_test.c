// message_meta_test.c - the scanners against protobuf's packing of the same.
#include "wire/message_meta.h"

#include "base/bytes.h"
#include "base/str.h"
#include "wire/compress.h"
#include "wire/message_build.h"
#include "wire/test_hex.h"

static char *text(const char *s)
{
    return (char *)(uintptr_t)s;
}

static ProtobufCBinaryData binary(const char *s)
{
    return (ProtobufCBinaryData){strlen(s), (uint8_t *)(uintptr_t)s};
}

static bool span_is(struct ox_span span, const char *s)
{
    return span.data && span.len == strlen(s) && memcmp(span.data, s, span.len) == 0;
}

#define SET(message, field, to) ((message).has_##field = true, (message).field = (to))

static Oxpb__MessageMetadata full_metadata(void)
{
    Oxpb__MessageMetadata m = OXPB__MESSAGE_METADATA__INIT;
    m.producer_name = text("prod");
    m.sequence_id = 7;
    m.publish_time = 1000;
    m.replicated_from = text("west");
    m.partition_key = text("key");
    SET(m, compression, OXPB__COMPRESSION_TYPE__ZSTD);
    SET(m, uncompressed_size, 99);
    SET(m, num_messages_in_batch, 3);
    SET(m, event_time, 5);
    SET(m, schema_version, binary("v"));
    SET(m, partition_key_b64_encoded, true);
    SET(m, ordering_key, binary("order"));
    SET(m, deliver_at_time, -4);
    SET(m, marker_type, 21);
    SET(m, txnid_least_bits, 31);
    SET(m, txnid_most_bits, 32);
    SET(m, highest_sequence_id, 9);
    SET(m, null_value, true);
    m.uuid = text("u-1");
    SET(m, num_chunks_from_msg, 2);
    SET(m, total_chunk_msg_size, 1234);
    SET(m, chunk_id, 1);
    SET(m, null_partition_key, true);
    return m;
}

// What the broker asks of each send and the whole scan judge alike.
static bool count_agrees(struct ox_buf bytes)
{
    struct ox_message_meta m;
    uint32_t messages = 77;
    enum ox_err scanned = ox_message_meta_scan(bytes.data, bytes.len, &m);
    enum ox_err counted = ox_message_meta_count(bytes.data, bytes.len, &messages);
    return scanned == counted && messages == (counted == OX_OK ? (uint32_t)m.num_messages : 77);
}

static void test_meta_count_judges_as_the_scan_does(void **state)
{
    (void)state;
    Oxpb__MessageMetadata full = full_metadata();
    struct ox_buf bytes = ox_proto_pack(&full.base);
    for (size_t len = 0; len <= bytes.len; len++) {
        struct ox_buf cut = exact(bytes, len);
        assert_true(count_agrees(cut));
        ox_buf_unref(&cut);
    }
    for (size_t at = 0; at < bytes.len; at++) // every tag, length and value becomes another one
        for (int bit = 0; bit < 8; bit++) {
            struct ox_buf wrong = exact(bytes, bytes.len);
            ((uint8_t *)(uintptr_t)wrong.data)[at] ^= (uint8_t)(1 << bit);
            assert_true(count_agrees(wrong));
            ox_buf_unref(&wrong);
        }
    ox_buf_unref(&bytes);
}

static void test_meta_scan_takes_every_field(void **state)
{
    (void)state;
    Oxpb__MessageMetadata full = full_metadata();
    struct ox_buf bytes = ox_proto_pack(&full.base);
    struct ox_message_meta m;
    assert_int_equal(ox_message_meta_scan(bytes.data, bytes.len, &m), OX_OK);
    assert_true(span_is(m.producer_name, "prod") && span_is(m.partition_key, "key") && span_is(m.ordering_key, "order"));
    assert_true(span_is(m.replicated_from, "west") && span_is(m.uuid, "u-1") && span_is(m.schema_version, "v"));
    assert_true(m.sequence_id == 7 && m.has_highest && m.highest_sequence_id == 9 && ox_message_meta_last_sequence(&m) == 9);
    assert_true(m.publish_time_ms == 1000 && m.event_time_ms == 5 && m.has_deliver_at && m.deliver_at_ms == -4);
    assert_true(m.has_txn && m.txn_least == 31 && m.txn_most == 32 && m.has_marker && m.marker_type == 21);
    assert_true(m.compression == OX_COMPRESSION_ZSTD && m.uncompressed_size == 99 && m.has_num_messages &&
                m.num_messages == 3);
    assert_true(m.is_chunk && m.num_chunks == 2 && m.chunk_id == 1 && m.total_chunk_bytes == 1234);
    assert_true(m.is_null_value && m.is_null_key && m.is_key_base64 && !m.is_encrypted);
    for (size_t len = 0; len < bytes.len; len++) {
        struct ox_buf cut = exact(bytes, len);
        (void)!ox_message_meta_scan(cut.data, cut.len, &m);
        ox_buf_unref(&cut);
    }
    ox_buf_unref(&bytes);
}

static void test_meta_scan_gives_defaults_for_absent_fields(void **state)
{
    (void)state;
    struct ox_buf bytes = hex("0a04 \"raw1\" 1000 18b682c8d0a234 6a00");
    struct ox_message_meta m;
    assert_int_equal(ox_message_meta_scan(bytes.data, bytes.len, &m), OX_OK);
    assert_true(m.num_messages == 1 && !m.has_num_messages && !m.has_txn && !m.is_chunk && m.is_encrypted &&
                m.partition_key.data == NULL);
    assert_true(ox_message_meta_last_sequence(&m) == 0);
    ox_buf_unref(&bytes);
}

static void test_meta_scan_refuses_damage(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "0a01 \"p\" 1000",
        "1000 1801",
        "0801 1000 1801",
        "0a01 \"p\" 1000 1801 5800",
        "0a01 \"p\" 1000 1801 58ffffffffffffffffff01",
        "0a01 \"p\" 1000 1801 3205 \"key\"",
        "0a01 \"p\" 1000 1801 3001",
        "0a01 \"p\" 1000 1801 c80c",
        "0a01 \"p\" 1000 1801 db0c",
    };
    struct ox_message_meta m;
    for (size_t i = 0; i < OX_COUNT(bad); i++) {
        struct ox_buf bytes = hex(bad[i]);
        assert_int_equal(ox_message_meta_scan(bytes.data, bytes.len, &m), OX_E_MALFORMED);
        ox_buf_unref(&bytes);
    }
}

static void test_meta_scan_skips_fields_of_later_versions(void **state)
{
    (void)state;
    struct ox_buf bytes = hex("0a01 \"p\" 1000 1801 f80105 820201 \"x\" c00c07");
    struct ox_message_meta m;
    assert_int_equal(ox_message_meta_scan(bytes.data, bytes.len, &m), OX_OK);
    ox_buf_unref(&bytes);
}

static void test_properties_walk_and_stop_at_damage(void **state)
{
    (void)state;
    struct ox_buf good = hex("0a01 \"p\" 2206 0a01 \"a\" 1201 \"1\" 1000 2205 0a01 \"b\" 1200 1801"),
                  bad = hex("2203 0a01 \"a\"");
    struct ox_property_iter it = ox_property_iter(good.data, good.len, OX_PROPERTIES_OF_MESSAGE);
    struct ox_span key, value;
    assert_true(ox_property_next(&it, &key, &value));
    assert_true(span_is(key, "a") && span_is(value, "1"));
    assert_true(ox_property_next(&it, &key, &value));
    assert_true(span_is(key, "b") && value.len == 0);
    assert_false(ox_property_next(&it, &key, &value));
    it = ox_property_iter(bad.data, bad.len, OX_PROPERTIES_OF_MESSAGE);
    assert_false(ox_property_next(&it, &key, &value));
    assert_false(ox_property_next(&it, &key, &value));
    ox_buf_unref(&good);
    ox_buf_unref(&bad);
}

static struct ox_str make_batch(int n)
{
    struct ox_str batch = {0};
    for (int i = 0; i < n; i++) {
        Oxpb__SingleMessageMetadata m = OXPB__SINGLE_MESSAGE_METADATA__INIT;
        SET(m, sequence_id, (uint64_t)i);
        m.partition_key = text("k");
        SET(m, null_value, i == 1);
        ox_batch_add(&batch, &m, "payload", (size_t)i);
    }
    return batch;
}

static void test_batch_walks_message_by_message(void **state)
{
    (void)state;
    struct ox_str batch = make_batch(5);
    size_t at = 0;
    struct ox_batch_message m;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(ox_batch_next(batch.data, batch.len, &at, &m), OX_OK);
        assert_true(m.has_sequence && m.sequence_id == (uint64_t)i && span_is(m.partition_key, "k") &&
                    m.is_null_value == (i == 1));
        assert_int_equal(m.payload.len, i);
        assert_memory_equal(m.payload.data, "payload", (size_t)i);
    }
    assert_int_equal(ox_batch_next(batch.data, batch.len, &at, &m), OX_E_END_OF_FILE);
    ox_str_fini(&batch);
}

static void test_batch_refuses_every_truncation_inside_a_message(void **state)
{
    (void)state;
    struct ox_str batch = make_batch(1);
    struct ox_batch_message m;
    struct ox_buf whole = ox_buf_static(batch.data, batch.len);
    for (size_t len = 1; len < batch.len; len++) {
        struct ox_buf cut = exact(whole, len);
        size_t at = 0;
        assert_int_equal(ox_batch_next(cut.data, cut.len, &at, &m), OX_E_MALFORMED);
        assert_int_equal(at, 0);
        ox_buf_unref(&cut);
    }
    static const char *const bad[] = {"00000000", "00000002 1805", "0000000b 18ffffffffffffffffff01", "00000003 1a0100"};
    for (size_t i = 0; i < OX_COUNT(bad); i++) {
        struct ox_buf bytes = hex(bad[i]);
        size_t at = 0;
        assert_int_equal(ox_batch_next(bytes.data, bytes.len, &at, &m), OX_E_MALFORMED);
        ox_buf_unref(&bytes);
    }
    ox_str_fini(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meta_scan_takes_every_field),
        cmocka_unit_test(test_meta_count_judges_as_the_scan_does),
        cmocka_unit_test(test_meta_scan_gives_defaults_for_absent_fields),
        cmocka_unit_test(test_meta_scan_refuses_damage),
        cmocka_unit_test(test_meta_scan_skips_fields_of_later_versions),
        cmocka_unit_test(test_properties_walk_and_stop_at_damage),
        cmocka_unit_test(test_batch_walks_message_by_message),
        cmocka_unit_test(test_batch_refuses_every_truncation_inside_a_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
