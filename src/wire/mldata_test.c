// mldata_test.c - nodes and cursor entries, byte for byte as real Pulsar 4.0.7 wrote them (times replaced by one).
#include "wire/mldata.h"

#include "base/bytes.h"
#include "base/limits.h"
#include "wire/compress.h"
#include "wire/test_hex.h"

#define T "b782c8d0a234 "
#define T_MS 1796002152759
#define MINUS_ONE "ffffffffffffffffff01 "

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

static const char *const ledger_nodes[] = {
    "",
    "0a04 080c 2000",
    "0a0e 080c 101a 18ce05 20" T "0a0e 0815 1005 188c01 20" T "0a04 0818 2000",
    "0a04 0864 2000 1a0b 0a05 \"index\" 1202 \"-1\"",
};

static const char *const cursor_nodes[] = {
    "08" MINUS_ONE "1057 18" MINUS_ONE "30" T,
    "0858 1057 18" MINUS_ONE "30" T,
    "08" MINUS_ONE "1057 1802 220c 0a04 0857 1003 1204 0857 1004 220c 0a04 0857 1005 1204 0857 1006 30" T,
};

static const char *const positions[] = {
    "085d 10" MINUS_ONE,
    "085d 1000",
    "085d 1001 1a0c 0a04 085d 1003 1204 085d 1004 1a0c 0a04 085d 1005 1204 085d 1006",
};

static void test_golden_nodes_come_out_as_they_went_in(void **state)
{
    (void)state;
    enum ox_record_form form;
    for (size_t i = 0; i < OX_COUNT(ledger_nodes); i++) {
        struct ox_buf bytes = hex(ledger_nodes[i]);
        Mldata__ManagedLedgerInfo *info;
        assert_int_equal(ox_ledgers_decode(&arena, bytes, &info, &form), OX_OK);
        assert_int_equal(form, OX_RECORD_PLAIN);
        assert_same(ox_ledgers_encode(info, OX_RECORD_PLAIN), bytes);
    }
    for (size_t i = 0; i < OX_COUNT(cursor_nodes); i++) {
        struct ox_buf bytes = hex(cursor_nodes[i]);
        Mldata__ManagedCursorInfo *info;
        assert_int_equal(ox_cursor_decode(&arena, bytes, &info, NULL), OX_OK);
        assert_same(ox_cursor_encode(info, OX_RECORD_PLAIN), bytes);
    }
    for (size_t i = 0; i < OX_COUNT(positions); i++) {
        struct ox_buf bytes = hex(positions[i]);
        Mldata__PositionInfo *info;
        assert_int_equal(ox_position_decode(&arena, bytes, &info), OX_OK);
        assert_same(ox_position_encode(info), bytes);
    }
}

static void test_golden_topic_node_from_its_fields(void **state)
{
    (void)state;
    Mldata__ManagedLedgerInfo__LedgerInfo closed = MLDATA__MANAGED_LEDGER_INFO__LEDGER_INFO__INIT, open = closed;
    closed.ledger_id = 12;
    closed.has_entries = closed.has_size = closed.has_timestamp = true;
    closed.entries = 26;
    closed.size = 718;
    closed.timestamp = T_MS;
    open.ledger_id = 24;
    open.has_timestamp = true;
    Mldata__ManagedLedgerInfo__LedgerInfo *list[] = {&closed, &open};
    Mldata__ManagedLedgerInfo info = MLDATA__MANAGED_LEDGER_INFO__INIT;
    info.n_ledger_info = 2;
    info.ledger_info = list;
    assert_same(ox_ledgers_encode(&info, OX_RECORD_PLAIN), hex("0a0e 080c 101a 18ce05 20" T "0a04 0818 2000"));
}

static void test_golden_cursor_reads_as_documented(void **state)
{
    (void)state;
    struct ox_buf bytes = hex(cursor_nodes[2]);
    Mldata__ManagedCursorInfo *info;
    assert_int_equal(ox_cursor_decode(&arena, bytes, &info, NULL), OX_OK);
    assert_true(info->cursors_ledger_id == -1 && info->mark_delete_ledger_id == 87 && info->mark_delete_entry_id == 2);
    assert_int_equal(info->n_individual_deleted_messages, 2);
    assert_true(info->individual_deleted_messages[1]->lower_endpoint->entry_id == 5);
    assert_true(info->individual_deleted_messages[1]->upper_endpoint->entry_id == 6);
    assert_true(info->has_last_active && info->last_active == T_MS);
    ox_buf_unref(&bytes);
}

static void test_unknown_fields_are_kept_at_every_level(void **state)
{
    (void)state;
    // field 15 in a LedgerInfo, at the top, and a stamp in field 6
    struct ox_buf bytes = hex("0a0c 080c 2000 3203 0a0131 7a0101 7a02 abcd"), again;
    struct ox_buf good = hex("0a11 080c 2000 3208 0a01 \"a\" 1203 \"b c\" 7a01 01 7a02 abcd");
    Mldata__ManagedLedgerInfo *info;
    assert_int_equal(ox_ledgers_decode(&arena, bytes, &info, NULL), OX_E_CORRUPT);
    ox_buf_unref(&bytes);
    assert_int_equal(ox_ledgers_decode(&arena, good, &info, NULL), OX_OK);
    assert_string_equal(info->ledger_info[0]->properties[0]->value, "b c");
    info->ledger_info[0]->has_entries = true; // modified, not rebuilt
    info->ledger_info[0]->entries = 5;
    again = ox_ledgers_encode(info, OX_RECORD_PLAIN);
    ox_buf_unref(&good);
    assert_same(again, hex("0a13 080c 1005 2000 3208 0a01 \"a\" 1203 \"b c\" 7a01 01 7a02 abcd"));
}

static void test_guarded_record_is_plain_bytes_behind_a_foreign_type(void **state)
{
    (void)state;
    struct ox_buf plain = hex(ledger_nodes[1]), guarded;
    Mldata__ManagedLedgerInfo *info;
    enum ox_record_form form;
    assert_int_equal(ox_ledgers_decode(&arena, plain, &info, NULL), OX_OK);
    guarded = ox_ledgers_encode(info, OX_RECORD_GUARDED);
    assert_int_equal(ox_ledgers_decode(&arena, guarded, &info, &form), OX_OK);
    assert_int_equal(form, OX_RECORD_GUARDED);
    assert_same(ox_ledgers_encode(info, OX_RECORD_PLAIN), plain);
    assert_same(guarded, hex("4778 00000004 084f 1006 0a04 080c 2000"));
}

static struct ox_buf compressed_record(uint32_t type, struct ox_buf plain, uint8_t told)
{
    struct ox_buf packed;
    assert_int_equal(ox_compress(type, plain.data, plain.len, &packed), OX_OK);
    uint8_t head[] = {0x47, 0x78, 0, 0, 0, 4, 0x08, (uint8_t)type, 0x10, told};
    struct ox_buf parts[] = {ox_buf_static(head, sizeof head), packed}, record = ox_buf_join(parts, 2);
    ox_buf_unref(&packed);
    return record;
}

static void test_compressed_records_of_real_brokers_are_read(void **state)
{
    (void)state;
    struct ox_buf plain = hex(cursor_nodes[2]);
    for (uint32_t type = 0; type <= 4; type++) {
        struct ox_buf record = compressed_record(type, plain, (uint8_t)plain.len);
        Mldata__ManagedCursorInfo *info;
        enum ox_record_form form;
        assert_int_equal(ox_cursor_decode(&arena, record, &info, &form), OX_OK);
        assert_int_equal(form, OX_RECORD_COMPRESSED);
        assert_same(ox_cursor_encode(info, OX_RECORD_PLAIN), ox_buf_ref(plain));
        ox_buf_unref(&record);
        record = compressed_record(type, plain, (uint8_t)(plain.len + 1));
        assert_int_equal(ox_cursor_decode(&arena, record, &info, &form), OX_E_CORRUPT);
        ox_buf_unref(&record);
    }
    ox_buf_unref(&plain);
}

static enum ox_err open_error(const char *text)
{
    struct ox_buf record = hex(text), plain;
    enum ox_record_form form;
    enum ox_err err = ox_record_open(record, 1000, &plain, &form);
    if (!err)
        ox_buf_unref(&plain);
    ox_buf_unref(&record);
    return err;
}

static void test_damaged_records_are_errors(void **state)
{
    (void)state;
    assert_int_equal(open_error("4778"), OX_E_CORRUPT);
    assert_int_equal(open_error("4778 00000005 084f 1000"), OX_E_CORRUPT);
    assert_int_equal(open_error("4778 ffffffff 084f 1000"), OX_E_CORRUPT);
    assert_int_equal(open_error("4778 00000002 084f"), OX_E_CORRUPT);
    assert_int_equal(open_error("4778 00000004 084f 1001"), OX_E_CORRUPT);
    assert_int_equal(open_error("4778 00000004 084f 1000"), OX_OK);
    assert_int_equal(open_error("4778 00000005 084f 10e90b"), OX_E_TOO_BIG);
    assert_int_equal(open_error("4778 00000004 0805 1000"), OX_E_UNSUPPORTED);
    assert_int_equal(open_error("4778 00000004 0a01 4f10 00"), OX_E_CORRUPT);
}

static void test_nodes_survive_every_truncation(void **state)
{
    (void)state;
    for (size_t i = 0; i < OX_COUNT(cursor_nodes); i++) {
        struct ox_buf whole = hex(cursor_nodes[i]);
        for (size_t len = 0; len < whole.len; len++) {
            struct ox_buf cut = exact(whole, len);
            Mldata__ManagedCursorInfo *info;
            Mldata__ManagedLedgerInfo *ledgers;
            enum ox_err err = ox_cursor_decode(&arena, cut, &info, NULL);
            assert_true(err == OX_OK || err == OX_E_CORRUPT);
            err = ox_ledgers_decode(&arena, cut, &ledgers, NULL);
            assert_true(err == OX_OK || err == OX_E_CORRUPT);
            ox_arena_reset(&arena);
            ox_buf_unref(&cut);
        }
        ox_buf_unref(&whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_golden_nodes_come_out_as_they_went_in, setup, teardown),
        cmocka_unit_test(test_golden_topic_node_from_its_fields),
        cmocka_unit_test_setup_teardown(test_golden_cursor_reads_as_documented, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unknown_fields_are_kept_at_every_level, setup, teardown),
        cmocka_unit_test_setup_teardown(test_guarded_record_is_plain_bytes_behind_a_foreign_type, setup, teardown),
        cmocka_unit_test_setup_teardown(test_compressed_records_of_real_brokers_are_read, setup, teardown),
        cmocka_unit_test(test_damaged_records_are_errors),
        cmocka_unit_test_setup_teardown(test_nodes_survive_every_truncation, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
