// header_test.c - broker entry metadata: Pulsar's bytes, and nothing believed that is malformed.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "mledger/mledger_int.h"

static void test_header_bytes_are_pulsars(void **state)
{
    (void)state;
    uint8_t out[48];
    static const uint8_t want[] = {0x0e, 0x02, 0, 0, 0, 9, 0x08, 0xf4, 0xd8, 0xe5, 0xf4, 0xa2, 0x34, 0x10, 0x06};
    uint64_t index;
    assert_int_equal(ml_header_put(out, UINT64_C(1796078136436), 6), sizeof want); // an entry that real Pulsar wrote
    assert_memory_equal(out, want, sizeof want);
    assert_true(ml_header_index(ox_buf_static(want, sizeof want), &index));
    assert_int_equal(index, 6);
}

static void test_header_of_the_largest_numbers_fits(void **state)
{
    (void)state;
    uint8_t out[48];
    uint64_t index;
    size_t n = ml_header_put(out, UINT64_MAX, UINT64_MAX);
    assert_in_range(n, 1, sizeof out);
    assert_true(ml_header_index(ox_buf_static(out, n), &index));
    assert_true(index == UINT64_MAX);
}

static void test_header_that_is_absent_cut_or_malformed_gives_no_index(void **state)
{
    (void)state;
    uint8_t out[48];
    uint64_t index;
    size_t n = ml_header_put(out, 12345, 6);
    for (size_t cut = 0; cut < n; cut++)
        assert_false(ml_header_index(ox_buf_static(out, cut), &index));
    assert_false(ml_header_index(ox_buf_static("\x0e\x01\0\0\0\0\0\0\0\0", 10), &index));
    assert_false(ml_header_index(ox_buf_static("\x0e\x02\xff\xff\xff\xff\x10\x01", 8), &index));
    assert_false(ml_header_index(ox_buf_static("\x0e\x02\0\0\0\x02\x10\xff\xff", 9), &index));
    assert_false(ml_header_index(ox_buf_static("\x0e\x02\0\0\0\x02\x08\x01", 8), &index)); // a time alone
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header_bytes_are_pulsars),
        cmocka_unit_test(test_header_of_the_largest_numbers_fits),
        cmocka_unit_test(test_header_that_is_absent_cut_or_malformed_gives_no_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
