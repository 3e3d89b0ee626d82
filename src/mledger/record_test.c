// record_test.c - edits of a log's record keep what they do not mean to change; the bytes are Pulsar's.
#include "mledger/fixture.h"

#include <stdio.h>
#include <string.h>

static struct ox_buf unhex(const char *hex)
{
    uint8_t bytes[256];
    size_t n = 0;
    for (; *hex; hex++) {
        if (*hex == ' ')
            continue;
        unsigned v;
        assert_int_equal(sscanf(hex, "%2x", &v), 1);
        bytes[n++] = (uint8_t)v;
        hex++;
    }
    return ox_buf_copy(bytes, n);
}

static struct ox_record *decoded(const char *hex)
{
    struct ox_record *r = ox_record_new();
    struct ox_buf bytes = unhex(hex);
    assert_int_equal(ox_record_decode(r, bytes), OX_OK);
    ox_buf_unref(&bytes);
    return r;
}

static void assert_record(const struct ox_record *r, const char *hex)
{
    struct ox_buf want = unhex(hex), got = ox_record_encode(r, true, "default");
    assert_int_equal(got.len, want.len);
    assert_memory_equal(got.data, want.data, want.len);
    ox_buf_unref(&want);
    ox_buf_unref(&got);
}

static void test_record_of_a_fresh_log_is_pulsars(void **state)
{
    (void)state;
    struct ox_record *r = decoded("");
    assert_record(r, "");
    ox_record_append_open(r, 12);
    assert_record(r, "0a04080c2000");
    ox_record_set_property(r, OX_PROPERTY_INDEX, "-1");
    assert_record(r, "0a04080c2000 1a0b0a05696e64657812022d31");
    ox_record_free(r);
}

static void test_record_seal_append_drop_are_pulsars(void **state)
{
    (void)state;
    struct ox_record *r = decoded("0a0408242000");
    ox_record_seal(r, 0x24, 10, 290, 0);
    ox_record_append_open(r, 0x28);
    assert_record(r, "0a090824100a18a2022000 0a0408282000");
    assert_true(ox_record_drop(r, 0x24));
    assert_false(ox_record_drop(r, 0x24));
    assert_record(r, "0a0408282000");
    ox_record_free(r);
}

// fault: E2 G5
static void test_record_seal_keeps_stamp_and_unknown_fields(void **state)
{
    (void)state;
    // ledger 1 with property a=b (field 6) and an unknown field 15 = 7; field 15 at the top too
    struct ox_record *r = decoded("0a0e 0801 2000 3206 0a0161 120162 7807 7809");
    ox_record_seal(r, 1, 2, 3, 4);
    ox_record_append_open(r, 2);
    assert_record(r, "0a12 0801 1002 1803 2004 3206 0a0161 120162 7807 0a04 0802 2000 7809");
    struct ox_record *copy = ox_record_new();
    ox_record_copy(copy, r);
    assert_record(copy, "0a12 0801 1002 1803 2004 3206 0a0161 120162 7807 0a04 0802 2000 7809");
    ox_record_free(copy);
    ox_record_free(r);
}

static bool is_guarded(const struct ox_record *r, bool guard)
{
    struct ox_buf bytes = ox_record_encode(r, guard, "default");
    bool magic = bytes.len > 2 && bytes.data[0] == 0x47 && bytes.data[1] == 0x78;
    if (magic) { // a guarded record reads back as the same record
        struct ox_record *again = ox_record_new();
        assert_int_equal(ox_record_decode(again, bytes), OX_OK);
        assert_int_equal(ox_record_count(again), ox_record_count(r));
        ox_record_free(again);
    }
    ox_buf_unref(&bytes);
    return magic;
}

static void test_record_is_guarded_while_it_names_what_pulsar_would_misread(void **state)
{
    (void)state;
    struct ox_record *r = ox_record_new();
    ox_record_append_open(r, 5);
    ox_record_stamp(r, (struct ox_location){0, 5, 5}, "default");
    assert_false(is_guarded(r, true)); // Pulsar's own place
    ox_record_append_open(r, 6);
    ox_record_stamp(r, (struct ox_location){1, 6, 6}, "other");
    assert_true(is_guarded(r, true));
    assert_false(is_guarded(r, false)); // pulsarCompatibleRecords=plain
    ox_record_drop(r, 6);
    assert_false(is_guarded(r, true));
    ox_record_append_open(r, 7);
    ox_record_stamp(r, (struct ox_location){0, 7, 77}, "default");
    assert_int_equal(ox_record_get(r, 1).physical, 77);
    assert_true(is_guarded(r, true));
    ox_record_drop(r, 7);
    ox_record_set_ledger_property(r, 5, OX_STAMP_TRUNCATED, "3");
    assert_true(is_guarded(r, true));
    ox_record_free(r);
}

static void test_record_with_ids_out_of_order_is_corrupt(void **state)
{
    (void)state;
    struct ox_record *r = ox_record_new();
    struct ox_buf bytes = unhex("0a0408052000 0a0408042000"), cut = unhex("0a0408");
    assert_int_equal(ox_record_decode(r, bytes), OX_E_CORRUPT);
    assert_int_equal(ox_record_decode(r, cut), OX_E_CORRUPT);
    ox_buf_unref(&bytes);
    ox_buf_unref(&cut);
    ox_record_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_record_of_a_fresh_log_is_pulsars),
        cmocka_unit_test(test_record_seal_append_drop_are_pulsars),
        cmocka_unit_test(test_record_seal_keeps_stamp_and_unknown_fields),
        cmocka_unit_test(test_record_is_guarded_while_it_names_what_pulsar_would_misread),
        cmocka_unit_test(test_record_with_ids_out_of_order_is_corrupt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
