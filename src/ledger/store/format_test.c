// format_test.c - round trips of every structure on disk, and what is refused.
#include "ledger/store/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "ledger/store/index.h"

#define SALT 77u

static void test_segment_header_round_trip_and_damage(void **state)
{
    (void)state;
    uint8_t block[OX_SEG_BLOCK];
    struct ox_segment_header h = {.number = 9, .file_bytes = 1 << 20, .made_ms = 5, .identity = "11111111-2222-4333-8444-555555555555"},
                             got;
    ox_segment_header_encode(block, &h);
    assert_int_equal(ox_segment_header_decode(block, sizeof block, &got), OX_OK);
    assert_int_equal(got.number, 9);
    assert_string_equal(got.identity, h.identity);
    assert_int_equal(ox_segment_header_decode(block, 100, &got), OX_E_CORRUPT);
    for (size_t i = 0; i < 128; i++) {
        block[i] ^= 4;
        assert_int_not_equal(ox_segment_header_decode(block, sizeof block, &got), OX_OK);
        block[i] ^= 4;
    }
}

static void test_record_refuses_every_flipped_bit(void **state)
{
    (void)state;
    uint8_t bytes[64];
    struct ox_buf payload = ox_buf_static("payload!", 8);
    struct ox_segment_record r = {.type = OX_REC_ENTRY, .length = 8, .number = 3, .ledger = 4, .entry = 5, .arg = 6}, got;
    ox_segment_record_header_encode(bytes, SALT, &r, &(struct ox_record_payload){.parts = &payload, .count = 1});
    memcpy(bytes + OX_RECORD_HEADER_BYTES, "payload!", 8);
    assert_int_equal(ox_segment_record_decode(bytes, 56, SALT, 3, &got), OX_OK);
    assert_int_equal(got.entry, 5);
    assert_int_equal(ox_segment_record_decode(bytes, 55, SALT, 3, &got), OX_E_CORRUPT);     // cut off
    assert_int_equal(ox_segment_record_decode(bytes, 56, SALT, 4, &got), OX_E_CORRUPT);     // of another segment
    assert_int_equal(ox_segment_record_decode(bytes, 56, SALT + 1, 3, &got), OX_E_CORRUPT); // of another store
    for (size_t bit = 0; bit < 56 * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(ox_segment_record_decode(bytes, 56, SALT, 3, &got), OX_E_CORRUPT);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static void test_custom_metadata_round_trip_and_malformed(void **state)
{
    (void)state;
    struct ox_kv kv = {0}, got = {0};
    struct ox_str s = {0};
    ox_kv_set(&kv, "application", "pulsar");
    ox_kv_set(&kv, "empty", "");
    ox_custom_encode(&s, &kv);
    assert_int_equal(ox_custom_decode((const uint8_t *)s.data, s.len, &got), OX_OK);
    assert_true(ox_kv_contains(&got, &kv) && got.count == 2);
    ox_kv_fini(&got);
    for (size_t cut = 0; cut < s.len; cut++) {
        assert_int_equal(ox_custom_decode((const uint8_t *)s.data, cut, &got), OX_E_CORRUPT);
        assert_int_equal(got.count, 0);
    }
    memset(s.data, 0xff, 12); // absurd counts and lengths allocate nothing
    assert_int_equal(ox_custom_decode((const uint8_t *)s.data, s.len, &got), OX_E_CORRUPT);
    ox_str_fini(&s);
    ox_kv_fini(&kv);
}

static void test_index_finds_runs_and_replaced_items(void **state)
{
    (void)state;
    struct ox_index x = {0};
    uint32_t more;
    for (int64_t e = 10; e < 20; e++)
        ox_index_add(&x, 1, e, (struct ox_item){(uint32_t)e * 8, 1});
    for (int64_t e = 0; e < 10; e++) // moved here later, in front
        ox_index_add(&x, 1, e, (struct ox_item){(uint32_t)e * 8, 2});
    ox_index_add(&x, 1, 12, (struct ox_item){4096, 3});
    for (int64_t e = 0; e < 20; e++)
        assert_non_null(ox_index_find(&x, 1, e, &more));
    assert_int_equal(ox_index_find(&x, 1, 12, &more)->offset, 4096);
    assert_null(ox_index_find(&x, 1, 20, &more));
    assert_null(ox_index_find(&x, 2, 0, &more));
    ox_index_drop(&x, 1);
    assert_null(ox_index_find(&x, 1, 12, &more));
    ox_index_fini(&x);
}

static void test_footer_holds_items_and_runs(void **state)
{
    (void)state;
    struct ox_index x = {0};
    struct ox_footer_header h, got;
    const struct ox_item **items;
    size_t count;
    for (int64_t l = 1; l <= 150; l++) {
        for (int64_t e = 0; e < 10; e++)
            ox_index_add(&x, 151 - l, e, (struct ox_item){(uint32_t)(l * 100 + e), 5});
    }
    struct ox_run *runs = ox_index_runs(&x, &count, &items);
    assert_int_equal(count, 150);
    uint8_t *footer = ox_index_footer(runs, items, count, SALT, 7, 8192, &h);
    assert_int_equal(h.items, 1500);
    assert_true(ox_footer_header_decode(footer, h.bytes, SALT, 7, 8192, &got));
    assert_false(ox_footer_header_decode(footer, h.bytes, SALT, 8, 8192, &got));
    assert_false(ox_footer_header_decode(footer, h.bytes, SALT, 7, 4096, &got));
    for (size_t r = 0; r < count; r++) {
        assert_int_equal(runs[r].ledger, r + 1);
        for (uint32_t i = 0; i < runs[r].count; i++) {
            uint32_t at = runs[r].first_item + i;
            const uint8_t *block = footer + OX_SEG_BLOCK * (1 + at / OX_ITEMS_PER_BLOCK);
            assert_int_equal(ox_index_block_check(block, SALT, 7, at / OX_ITEMS_PER_BLOCK), OX_OK);
            assert_int_equal(ox_item_get(block, at % OX_ITEMS_PER_BLOCK).offset, (150 - r) * 100 + i);
        }
    }
    footer[OX_SEG_BLOCK + 17] ^= 1;
    assert_int_equal(ox_index_block_check(footer + OX_SEG_BLOCK, SALT, 7, 0), OX_E_CORRUPT);
    ox_free(footer);
    ox_free(runs);
    ox_free(items);
    ox_index_fini(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_segment_header_round_trip_and_damage),
        cmocka_unit_test(test_record_refuses_every_flipped_bit),
        cmocka_unit_test(test_custom_metadata_round_trip_and_malformed),
        cmocka_unit_test(test_index_finds_runs_and_replaced_items),
        cmocka_unit_test(test_footer_holds_items_and_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
