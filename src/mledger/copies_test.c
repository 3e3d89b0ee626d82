// copies_test.c - the text of a ledger's copies, and what edits of them do to a record's bytes.
#include "mledger/fixture.h"

#include <string.h>

static void assert_round(const char *text)
{
    struct ox_copies c = {0};
    assert_int_equal(ox_copies_parse(&c, text), OX_OK);
    OX_CLEANUP(ox_free_ptr)
    char *again = ox_copies_text(&c);
    assert_string_equal(again, text);
    ox_copies_fini(&c);
}

static void test_copies_text_is_read_and_written(void **state)
{
    (void)state;
    struct ox_copies c = {0};
    assert_round("a:1:2");
    assert_round("a:1:2,a:2:3,b_-.9:9223372036854775807:0");
    assert_int_equal(ox_copies_parse(&c, NULL), OX_OK);
    assert_int_equal(c.count, 0);
    assert_null(ox_copies_text(&c));
    assert_int_equal(ox_copies_parse(&c, "a:1:2,b:3:4,a:1:9"), OX_OK); // said twice
    assert_int_equal(c.count, 2);
    assert_int_equal(ox_copies_find(&c, "a", 1)->since_ms, 2);
    assert_null(ox_copies_find(&c, "b", 1));
    ox_copies_fini(&c);
}

static void test_copies_text_that_is_none_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",       "a",     "a:1",     ":1:2", "a:1:2,", ",a:1:2", "a:1:2,,b:1:2", "a:-1:2",
        "a:1:-2", "a:x:2", "a:1:2:3", "a:1:", "a::2",   "a: 1:2", "a:1:2 ",       "a:99999999999999999999:1"};
    struct ox_copies c = {0};
    for (size_t i = 0; i < OX_COUNT(bad); i++) {
        ox_copies_add(&c, "left", 1, 1);
        assert_int_equal(ox_copies_parse(&c, bad[i]), OX_E_CORRUPT);
        assert_int_equal(c.count, 0);
    }
}

static void test_copies_have_a_limit(void **state)
{
    (void)state;
    struct ox_str text = {0};
    struct ox_copies c = {0};
    for (unsigned i = 0; i < OX_COPIES_MAX; i++)
        ox_str_addf(&text, "%sa:%u:1", i ? "," : "", i);
    assert_int_equal(ox_copies_parse(&c, ox_str_get(&text)), OX_OK);
    ox_str_adds(&text, ",b:1:1");
    assert_int_equal(ox_copies_parse(&c, ox_str_get(&text)), OX_E_CORRUPT);
    ox_str_fini(&text);
    ox_copies_fini(&c);
}

static void test_copies_are_added_and_taken_out(void **state)
{
    (void)state;
    struct ox_copies c = {0};
    ox_copies_add(&c, "a", 1, 10);
    ox_copies_add(&c, "b", 1, 20);
    ox_copies_add(&c, "a", 2, 30);
    assert_false(ox_copies_remove(&c, "b", 2));
    assert_true(ox_copies_remove(&c, "b", 1));
    OX_CLEANUP(ox_free_ptr)
    char *text = ox_copies_text(&c);
    assert_string_equal(text, "a:1:10,a:2:30");
    ox_copies_fini(&c);
}

static struct ox_buf encoded(const struct ox_record *r)
{
    return ox_record_encode(r, true, "default");
}

static bool names(const struct ox_record *r, const char *place, int64_t physical)
{
    bool named;
    assert_int_equal(ox_record_names(r, "default", place, physical, &named), OX_OK);
    return named;
}

// Out and home again: what is left is the explicit stamp, and bytes that Pulsar reads.
static void test_copies_of_a_record_come_and_go(void **state)
{
    (void)state;
    static const uint8_t unknown[] = {0x0a, 0x07, 0x08, 0x0c, 0x10, 0x05,
                                      0xf8, 0x07, 0x01, 0xf8, 0x07, 0x02}; // fields 127 of a ledger and of the log
    struct ox_record *r = ox_record_new();
    struct ox_copies c = {0};
    assert_int_equal(ox_record_decode(r, ox_buf_static(unknown, sizeof unknown)), OX_OK);
    struct ox_buf before = encoded(r);
    assert_int_equal(before.len, sizeof unknown);
    assert_memory_equal(before.data, unknown, sizeof unknown);
    ox_buf_unref(&before);
    assert_true(names(r, "default", 12));
    ox_copies_add(&c, "default", 12, 77);
    ox_record_stamp(r, (struct ox_location){1, 12, 40}, "other");
    ox_record_set_copies(r, 12, &c);
    assert_true(ox_record_is_foreign(r, "default"));
    assert_true(names(r, "other", 40));
    assert_true(names(r, "default", 12));
    assert_false(names(r, "other", 12));
    assert_false(names(r, "default", 40));
    ox_copies_remove(&c, "default", 12);
    ox_copies_add(&c, "other", 40, 78);
    ox_record_stamp(r, (struct ox_location){0, 12, 12}, "default");
    ox_record_set_copies(r, 12, &c);
    assert_false(ox_record_is_foreign(r, "default")); // a copy elsewhere does not guard
    assert_string_equal(ox_record_get(r, 0).place, "default");
    assert_string_equal(ox_record_get(r, 0).copies, "other:40:78");
    assert_int_equal(ox_record_get(r, 0).physical, 12);
    ox_copies_fini(&c);
    ox_record_set_copies(r, 12, &c);
    ox_record_unset_ledger_property(r, 12, OX_STAMP_PLACE);
    struct ox_buf after = encoded(r);
    assert_int_equal(after.len, sizeof unknown);
    assert_memory_equal(after.data, unknown, sizeof unknown);
    ox_buf_unref(&after);
    ox_record_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies_text_is_read_and_written),
        cmocka_unit_test(test_copies_text_that_is_none_is_refused),
        cmocka_unit_test(test_copies_have_a_limit),
        cmocka_unit_test(test_copies_are_added_and_taken_out),
        cmocka_unit_test(test_copies_of_a_record_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
