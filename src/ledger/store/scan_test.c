// scan_test.c - the scan tells the end from damage: only what no later mark covers may be the end.
#include "ledger/store/scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "base/mem.h"

#define SALT 5u
#define SEGMENT 9u

struct build {
    uint8_t bytes[20 * OX_SEG_BLOCK];
    uint32_t at;
    uint64_t sequence;
};

// One batch of one block with `count` entries of 100 bytes, written as of segment `number`.
static void build_batch(struct build *b, uint64_t number, uint64_t mark, int64_t first, uint32_t count)
{
    uint8_t *p = b->bytes + b->at;
    uint8_t payload[100];
    struct ox_batch_header h = {.number = number,
                                .offset = b->at,
                                .bytes = OX_SEG_BLOCK,
                                .records = count,
                                .mark = {number, mark},
                                .sequence = b->sequence++};
    struct ox_segment_record records[16];
    uint32_t offsets[16], at = OX_BATCH_HEADER_BYTES;
    for (uint32_t i = 0; i < count; i++) {
        memset(payload, (int)(first + i), sizeof payload);
        struct ox_buf part = ox_buf_static(payload, sizeof payload);
        records[i] = (struct ox_segment_record){
            .type = OX_REC_ENTRY, .length = sizeof payload, .number = number, .ledger = 1, .entry = first + i, .arg = 1};
        offsets[i] = at;
        ox_segment_record_header_encode(p + at, SALT, &records[i], &(struct ox_record_payload){.parts = &part, .count = 1});
        memcpy(p + at + OX_RECORD_HEADER_BYTES, payload, sizeof payload);
        at += ox_align8(OX_RECORD_HEADER_BYTES + sizeof payload);
    }
    h.directory = at;
    for (uint32_t i = 0; i < count; i++)
        ox_dir_item_encode(p + at + i * OX_DIR_ITEM_BYTES, offsets[i], &records[i]);
    h.directory_crc = ox_crc32c(SALT, p + at, (size_t)count * OX_DIR_ITEM_BYTES);
    ox_batch_header_encode(p, SALT, &h);
    b->at += OX_SEG_BLOCK;
}

// Three batches of four entries; each knows that what stood before it was durable.
static struct build *build_three(void)
{
    struct build *b = ox_malloc(sizeof *b);
    b->at = OX_SEG_BLOCK;
    for (int64_t i = 0; i < 3; i++)
        build_batch(b, SEGMENT, b->at, i * 4, 4);
    return b;
}

static void scan(struct build *b, uint32_t durable, struct ox_scan *s)
{
    ox_scan_segment(b->bytes, sizeof b->bytes, SALT, SEGMENT, durable, s);
}

static bool scan_has(const struct ox_scan *s, int64_t entry, bool damaged)
{
    for (size_t i = 0; i < s->record_count; i++) {
        if (s->records[i].record.entry == entry && s->records[i].damaged == damaged)
            return true;
    }
    return false;
}

static void test_scan_finds_all_batches_and_the_end(void **state)
{
    (void)state;
    struct ox_scan s;
    struct build *b = build_three();
    scan(b, 0, &s);
    assert_int_equal(s.batch_count, 3);
    assert_int_equal(s.record_count, 12);
    assert_int_equal(s.end, 4 * OX_SEG_BLOCK);
    assert_false(s.sealed);
    for (size_t i = 0; i < 3; i++)
        assert_true(s.batches[i].intact);
    ox_scan_fini(&s);
    ox_free(b);
}

static void test_scan_batch_of_another_segment_is_the_end(void **state)
{
    (void)state;
    struct ox_scan s;
    struct build *b = build_three();
    build_batch(b, SEGMENT - 1, b->at, 12, 4); // what a recycled file still holds: whole, at the right place, in sequence
    scan(b, 0, &s);
    assert_int_equal(s.batch_count, 3);
    assert_int_equal(s.end, 4 * OX_SEG_BLOCK);
    ox_scan_fini(&s);
    ox_free(b);
}

static void test_scan_damaged_payload_is_that_entry_only(void **state)
{
    (void)state;
    struct ox_scan s;
    struct build *b = build_three();
    b->bytes[OX_SEG_BLOCK + OX_BATCH_HEADER_BYTES + 60] ^= 1; // in the first entry's payload
    scan(b, 0, &s);
    assert_int_equal(s.record_count, 12);
    assert_true(scan_has(&s, 0, true));
    for (int64_t e = 1; e < 12; e++)
        assert_true(scan_has(&s, e, false));
    assert_false(s.batches[0].intact);
    ox_scan_fini(&s);
    ox_free(b);
}

static void test_scan_damaged_record_header_is_named_by_the_directory(void **state)
{
    (void)state;
    struct ox_scan s;
    struct build *b = build_three();
    b->bytes[OX_SEG_BLOCK + OX_BATCH_HEADER_BYTES + 4] ^= 0x40; // the first record's length
    scan(b, 0, &s);
    assert_int_equal(s.record_count, 12);
    assert_true(scan_has(&s, 0, true));
    ox_scan_fini(&s);
    ox_free(b);
}

static void test_scan_damaged_batch_header_below_a_mark_is_not_the_end(void **state)
{
    (void)state;
    struct ox_scan s;
    struct build *b = build_three();
    b->bytes[2 * OX_SEG_BLOCK + 21] ^= 1; // the second batch's size
    scan(b, 0, &s);
    assert_int_equal(s.batch_count, 3);
    assert_true(s.batches[1].salvaged);
    for (int64_t e = 0; e < 12; e++)
        assert_true(scan_has(&s, e, false)); // its records are found one by one
    ox_scan_fini(&s);
    ox_free(b);
}

static void test_scan_damaged_directory_is_walked_by_records(void **state)
{
    (void)state;
    struct ox_scan s;
    struct build *b = build_three();
    b->bytes[OX_SEG_BLOCK + OX_BATCH_HEADER_BYTES + 4 * 152 + 9] ^= 1;
    scan(b, 0, &s);
    for (int64_t e = 0; e < 12; e++)
        assert_true(scan_has(&s, e, false));
    ox_scan_fini(&s);
    ox_free(b);
}

static void test_scan_damaged_last_header_is_the_end_unless_known_durable(void **state)
{
    (void)state;
    struct ox_scan s;
    struct build *b = build_three();
    b->bytes[3 * OX_SEG_BLOCK + 9] ^= 1;
    scan(b, 0, &s);
    assert_int_equal(s.end, 3 * OX_SEG_BLOCK);
    assert_int_equal(s.record_count, 8);
    ox_scan_fini(&s);
    scan(b, 4 * OX_SEG_BLOCK, &s); // a later segment says that all this was durable
    assert_int_equal(s.end, 4 * OX_SEG_BLOCK);
    assert_int_equal(s.record_count, 12);
    ox_scan_fini(&s);
    ox_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scan_finds_all_batches_and_the_end),
        cmocka_unit_test(test_scan_batch_of_another_segment_is_the_end),
        cmocka_unit_test(test_scan_damaged_payload_is_that_entry_only),
        cmocka_unit_test(test_scan_damaged_record_header_is_named_by_the_directory),
        cmocka_unit_test(test_scan_damaged_batch_header_below_a_mark_is_not_the_end),
        cmocka_unit_test(test_scan_damaged_directory_is_walked_by_records),
        cmocka_unit_test(test_scan_damaged_last_header_is_the_end_unless_known_durable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
