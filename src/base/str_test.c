// str_test.c - growing strings and the small parsers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"

static void test_str_grows_and_stays_terminated(void **state)
{
    (void)state;
    struct ox_str s = {0};
    assert_string_equal(ox_str_get(&s), "");
    for (int i = 0; i < 1000; i++)
        ox_str_addf(&s, "%d,", i);
    assert_int_equal(strlen(s.data), s.len);
    assert_memory_equal(s.data + s.len - 4, "999,", 5);
    ox_str_truncate(&s, 2);
    assert_string_equal(s.data, "0,");
    OX_CLEANUP(ox_free_ptr)
    char *text = ox_str_take(&s);
    assert_string_equal(text, "0,");
    assert_null(s.data);
    OX_CLEANUP(ox_free_ptr)
    char *empty = ox_str_take(&s);
    assert_string_equal(empty, "");
}

static void test_str_formats_longer_than_its_room(void **state)
{
    (void)state;
    struct ox_str s = {0};
    ox_str_addf(&s, "%0500d", 1);
    assert_int_equal(s.len, 500);
    assert_int_equal(s.data[499], '1');
    ox_str_fini(&s);
}

static void test_parse_numbers_whole_and_in_range_only(void **state)
{
    (void)state;
    int64_t v = 0;
    assert_int_equal(ox_parse_i64("-12", -20, 20, &v), OX_OK);
    assert_int_equal(v, -12);
    assert_int_equal(ox_parse_i64("9223372036854775807", INT64_MIN, INT64_MAX, &v), OX_OK);
    const char *bad[] = {"", " 1", "+1", "1 ", "1x", "-", "0x10", "9223372036854775808", "21", "-21"};
    for (size_t i = 0; i < OX_COUNT(bad); i++)
        assert_int_equal(ox_parse_i64(bad[i], -20, i == 7 ? INT64_MAX : 20, &v), OX_E_INVALID);
}

static void test_parse_bytes_and_durations_with_units(void **state)
{
    (void)state;
    uint64_t v = 0;
    assert_int_equal(ox_parse_bytes("64M", &v), OX_OK);
    assert_true(v == UINT64_C(64) << 20);
    assert_int_equal(ox_parse_bytes("1g", &v), OX_OK);
    assert_true(v == UINT64_C(1) << 30);
    assert_int_equal(ox_parse_bytes("4096", &v), OX_OK);
    assert_true(v == 4096);
    assert_int_equal(ox_parse_duration("250", &v), OX_OK);
    assert_true(v == UINT64_C(250000000));
    assert_int_equal(ox_parse_duration("5s", &v), OX_OK);
    assert_true(v == UINT64_C(5000000000));
    assert_int_equal(ox_parse_duration("1h", &v), OX_OK);
    assert_true(v == UINT64_C(3600000000000));
    const char *bad[] = {"", "M", "-1", "1x", "1 M", "99999999999999999999", "18446744073709551615t"};
    for (size_t i = 0; i < OX_COUNT(bad); i++)
        assert_int_equal(ox_parse_bytes(bad[i], &v), OX_E_INVALID);
    assert_int_equal(ox_parse_duration("99999999999d", &v), OX_E_INVALID);
}

static void test_edit_distance_names_the_nearest(void **state)
{
    (void)state;
    assert_int_equal(ox_edit_distance("kitten", "sitting", 10), 3);
    assert_int_equal(ox_edit_distance("same", "same", 10), 0);
    assert_int_equal(ox_edit_distance("", "abc", 10), 3);
    assert_int_equal(ox_edit_distance("abc", "xyz", 2), 2);
    assert_int_equal(ox_edit_distance("a", "abcdefgh", 3), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_str_grows_and_stays_terminated),
        cmocka_unit_test(test_str_formats_longer_than_its_room),
        cmocka_unit_test(test_parse_numbers_whole_and_in_range_only),
        cmocka_unit_test(test_parse_bytes_and_durations_with_units),
        cmocka_unit_test(test_edit_distance_names_the_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
