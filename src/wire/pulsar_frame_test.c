// pulsar_frame_test.c - frames out of streams cut anywhere, and entries taken apart.
#include "wire/pulsar_frame.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/str.h"
#include "wire/test_hex.h"

#define FRAME_MAX (300u * 1024)
#define COMMAND_MAX 1000u

static void put_frame(struct ox_str *stream, uint32_t command, uint32_t body, uint8_t fill)
{
    uint8_t head[8];
    ox_put_be32(head, 4 + command + body);
    ox_put_be32(head + 4, command);
    ox_str_add(stream, head, 8);
    memset(ox_str_reserve(stream, command + body), fill, command + body);
    ox_str_grew(stream, command + body);
}

// Lets the reader take up to `max` of what is left of a stream.
static void feed(struct ox_frame_reader *r, const struct ox_str *stream, size_t *at, size_t max)
{
    uint8_t *to;
    size_t room;
    ox_frame_reader_space(r, &to, &room);
    assert_true(room > 0);
    size_t n = OX_MIN(OX_MIN(room, max), stream->len - *at);
    memcpy(to, stream->data + *at, n);
    ox_frame_reader_filled(r, n);
    *at += n;
}

static void check_frame(struct ox_buf frame, size_t number)
{
    struct ox_buf command = {0}, body = {0};
    assert_int_equal(ox_frame_split(frame, &command, &body), OX_OK);
    assert_int_equal(command.len + body.len + 4, frame.len);
    for (size_t i = 4; i < frame.len; i += 997)
        assert_int_equal(frame.data[i], (uint8_t)number);
}

static void test_frame_reader_cuts_frames_whatever_the_reads(void **state)
{
    (void)state;
    struct ox_random random;
    ox_random_seed(&random, 11);
    for (int round = 0; round < 20; round++) {
        struct ox_str stream = {0};
        size_t frames = 60, at = 0, got = 0;
        for (size_t i = 0; i < frames; i++) {
            uint32_t body = (uint32_t)ox_random_below(&random, i % 7 ? 3000 : FRAME_MAX - COMMAND_MAX - 4);
            put_frame(&stream, (uint32_t)ox_random_below(&random, COMMAND_MAX), body, (uint8_t)i);
        }
        struct ox_frame_reader r;
        struct ox_buf kept[3] = {0}, frame;
        ox_frame_reader_init(&r, FRAME_MAX, COMMAND_MAX);
        while (at < stream.len) {
            feed(&r, &stream, &at, 1 + ox_random_below(&random, round % 2 ? 100000 : 2000));
            while (ox_frame_reader_next(&r, &frame) == OX_OK && frame.len) {
                check_frame(frame, got);
                ox_buf_unref(&kept[got % 3]);
                kept[got++ % 3] = frame; // so that slabs are sometimes held by others
            }
        }
        assert_int_equal(got, frames);
        ox_frame_reader_idle(&r);
        assert_null(r.slab);
        for (int i = 0; i < 3; i++)
            ox_buf_unref(&kept[i]);
        ox_frame_reader_fini(&r);
        ox_str_fini(&stream);
    }
}

static void test_frame_reader_shares_its_slab_and_uses_it_again(void **state)
{
    (void)state;
    struct ox_frame_reader r;
    struct ox_str stream = {0};
    struct ox_buf frames[2], none;
    size_t at = 0;
    put_frame(&stream, 10, 0, 1);
    put_frame(&stream, 10, 20, 2);
    ox_frame_reader_init(&r, FRAME_MAX, COMMAND_MAX);
    feed(&r, &stream, &at, SIZE_MAX);
    assert_int_equal(ox_frame_reader_next(&r, &frames[0]), OX_OK);
    assert_int_equal(ox_frame_reader_next(&r, &frames[1]), OX_OK);
    assert_int_equal(ox_frame_reader_next(&r, &none), OX_OK);
    assert_int_equal(none.len, 0);
    assert_ptr_equal(frames[0].slab, frames[1].slab);
    assert_int_equal(r.slab->refs, 3);
    ox_buf_unref(&frames[0]);
    ox_buf_unref(&frames[1]);
    struct ox_slab *slab = r.slab;
    at = 0;
    feed(&r, &stream, &at, SIZE_MAX);
    assert_ptr_equal(r.slab, slab);
    assert_int_equal(r.start, 0);
    ox_frame_reader_fini(&r);
    ox_str_fini(&stream);
}

static enum ox_err first_error(const char *bytes)
{
    struct ox_buf buf = hex(bytes), frame;
    struct ox_str stream = {0};
    size_t at = 0;
    ox_str_add(&stream, buf.data, buf.len);
    ox_buf_unref(&buf);
    struct ox_frame_reader r;
    ox_frame_reader_init(&r, FRAME_MAX, COMMAND_MAX);
    feed(&r, &stream, &at, SIZE_MAX);
    enum ox_err err = ox_frame_reader_next(&r, &frame);
    assert_int_equal(frame.len, 0);
    ox_frame_reader_fini(&r);
    ox_str_fini(&stream);
    return err;
}

static void test_frame_reader_judges_a_frame_by_its_head(void **state)
{
    (void)state;
    assert_int_equal(first_error("00 00 00"), OX_OK);
    assert_int_equal(first_error("00000003"), OX_E_MALFORMED);
    assert_int_equal(first_error("00000000"), OX_E_MALFORMED);
    assert_int_equal(first_error("ffffffff"), OX_E_TOO_BIG);
    assert_int_equal(first_error("\"GET \""), OX_E_TOO_BIG);
    assert_int_equal(first_error("00000010 0000000d"), OX_E_MALFORMED);
    assert_int_equal(first_error("00000010 0000000c"), OX_OK);
    assert_int_equal(first_error("00010000 000003e9"), OX_E_TOO_BIG);
    assert_int_equal(first_error("00010000 ffffffff"), OX_E_MALFORMED);
}

static void test_frame_split_refuses_what_does_not_add_up(void **state)
{
    (void)state;
    struct ox_buf command = {0}, body = {0}, good = hex("00000002 aabb cc");
    assert_int_equal(ox_frame_split(good, &command, &body), OX_OK);
    assert_true(command.len == 2 && body.len == 1 && body.data[0] == 0xcc);
    for (size_t len = 0; len < 6; len++) {
        struct ox_buf cut = exact(good, len);
        assert_int_equal(ox_frame_split(cut, &command, &body), OX_E_MALFORMED);
        ox_buf_unref(&cut);
    }
    ox_buf_unref(&good);
}

// As a real broker stored it, with both interceptors on.
#define GOLDEN_ENTRY \
    "0e02 00000009 08 b782c8d0a234 10 00 0e01 152b7385 0000000f 0a04 \"raw1\" 10 00 18 b682c8d0a234 \"abc0\""

static void test_message_parse_reads_an_entry_of_a_real_broker(void **state)
{
    (void)state;
    struct ox_buf entry = hex(GOLDEN_ENTRY);
    struct ox_message_view v;
    assert_int_equal(ox_message_parse(entry, true, &v), OX_OK);
    assert_true(v.has_broker_entry && v.has_checksum && v.checksum == 0x152b7385);
    assert_true(v.broker_entry.has_index && v.broker_entry.index == 0);
    assert_true(v.broker_entry.has_timestamp && v.broker_entry.timestamp_ms == 1796002152759);
    assert_int_equal(v.metadata.len, 15);
    assert_int_equal(v.payload.len, 4);
    assert_memory_equal(v.payload.data, "abc0", 4);
    assert_int_equal(v.entry.len, entry.len - 15);
    assert_int_equal(v.plain.len, v.entry.len - 6);
    ox_buf_unref(&entry);
}

static void test_broker_entry_is_written_as_it_was_read(void **state)
{
    (void)state;
    struct ox_buf entry = hex(GOLDEN_ENTRY);
    struct ox_message_view v;
    uint8_t bytes[OX_BROKER_ENTRY_BYTES_MAX];
    assert_int_equal(ox_message_parse(entry, false, &v), OX_OK);
    assert_int_equal(ox_broker_entry_put(bytes, &v.broker_entry), 15);
    assert_memory_equal(bytes, entry.data, 15);
    struct ox_broker_entry biggest = {true, true, UINT64_MAX, UINT64_MAX};
    assert_int_equal(ox_broker_entry_put(bytes, &biggest), OX_BROKER_ENTRY_BYTES_MAX);
    ox_buf_unref(&entry);
}

static void test_message_parse_finds_every_flipped_bit_behind_the_checksum(void **state)
{
    (void)state;
    struct ox_buf entry = hex(GOLDEN_ENTRY);
    struct ox_message_view v;
    uint8_t *bytes = (uint8_t *)(uintptr_t)entry.data;
    for (size_t bit = 17 * 8; bit < entry.len * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(ox_message_parse(entry, true, &v), OX_E_CHECKSUM);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_int_equal(ox_message_parse(entry, true, &v), OX_OK);
    ox_buf_unref(&entry);
}

static void test_message_parse_survives_every_truncation(void **state)
{
    (void)state;
    struct ox_buf entry = hex(GOLDEN_ENTRY);
    struct ox_message_view v;
    for (size_t len = 0; len < entry.len; len++) {
        struct ox_buf cut = exact(entry, len);
        assert_int_not_equal(ox_message_parse(cut, true, &v), OX_OK);
        enum ox_err err = ox_message_parse(cut, false, &v);
        assert_int_equal(err, len < entry.len - 4 ? OX_E_MALFORMED : OX_OK);
        ox_buf_unref(&cut);
    }
    ox_buf_unref(&entry);
}

static void test_message_parse_takes_entries_without_checksum(void **state)
{
    (void)state;
    struct ox_buf entry = hex("00000002 aabb ccdd");
    struct ox_message_view v;
    assert_int_equal(ox_message_parse(entry, true, &v), OX_OK);
    assert_true(!v.has_checksum && !v.has_broker_entry && v.metadata.len == 2 && v.payload.len == 2);
    assert_int_equal(v.entry.len, entry.len);
    ox_buf_unref(&entry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frame_reader_cuts_frames_whatever_the_reads),
        cmocka_unit_test(test_frame_reader_shares_its_slab_and_uses_it_again),
        cmocka_unit_test(test_frame_reader_judges_a_frame_by_its_head),
        cmocka_unit_test(test_frame_split_refuses_what_does_not_add_up),
        cmocka_unit_test(test_message_parse_reads_an_entry_of_a_real_broker),
        cmocka_unit_test(test_broker_entry_is_written_as_it_was_read),
        cmocka_unit_test(test_message_parse_finds_every_flipped_bit_behind_the_checksum),
        cmocka_unit_test(test_message_parse_survives_every_truncation),
        cmocka_unit_test(test_message_parse_takes_entries_without_checksum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
