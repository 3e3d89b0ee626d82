// varint_test.c - varints and the field walker stay inside their bounds.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/varint.h"

static void test_varint_round_trips_at_every_size(void **state)
{
    (void)state;
    for (int shift = 0; shift < 64; shift++)
        for (int less = 0; less < 2; less++) {
            uint64_t v = (UINT64_C(1) << shift) - (uint64_t)less, back;
            uint8_t bytes[OX_VARINT_BYTES_MAX];
            size_t n = ox_varint_put(bytes, v);
            assert_int_equal(n, ox_varint_size(v));
            assert_int_equal(ox_varint_get(bytes, bytes + n, &back), n);
            assert_true(back == v);
            assert_int_equal(ox_varint_get(bytes, bytes + n - 1, &back), 0);
        }
}

static void test_varint_reads_the_same_whatever_follows(void **state)
{
    (void)state;
    for (int shift = 0; shift < 64; shift++)
        for (size_t behind = 0; behind < 12; behind++) {
            uint64_t v = UINT64_C(0xa5a5a5a5a5a5a5a5) >> shift, back = 0;
            uint8_t bytes[OX_VARINT_BYTES_MAX];
            size_t n = ox_varint_put(bytes, v);
            uint8_t *exact = ox_malloc_raw(n + behind); // a read beyond its end is a sanitizer's finding
            memcpy(exact, bytes, n);
            memset(exact + n, behind % 2 ? 0xff : 0, behind);
            assert_int_equal(ox_varint_get(exact, exact + n + behind, &back), n);
            assert_true(back == v);
            for (size_t cut = 0; cut < n; cut++)
                assert_int_equal(ox_varint_get(exact, exact + cut, &back), 0);
            ox_free(exact);
        }
}

// The inline reader of fields and the plain one agree on every input of a few bytes out of a small alphabet.
static void test_pb_step_reads_as_pb_next(void **state)
{
    (void)state;
    static const uint8_t alphabet[] = {0x00, 0x01, 0x02, 0x08, 0x0a, 0x0d, 0x10, 0x78, 0x7a, 0x80, 0x82, 0xff};
    enum { LEN = 4, LETTERS = sizeof alphabet };
    for (int i = 0; i < LETTERS * LETTERS * LETTERS * LETTERS; i++) {
        int letter[LEN] = {i % LETTERS, i / LETTERS % LETTERS, i / LETTERS / LETTERS % LETTERS,
                           i / LETTERS / LETTERS / LETTERS};
        uint8_t *bytes = ox_malloc_raw(LEN);
        for (int k = 0; k < LEN; k++)
            bytes[k] = alphabet[letter[k]];
        const uint8_t *a = bytes, *b = bytes, *end = bytes + LEN;
        struct ox_pb_field f = {0}, g = {0};
        int more;
        do {
            more = ox_pb_next(&a, end, &f);
            assert_int_equal(ox_pb_step(&b, end, &g), more);
            if (more != 1)
                break;
            assert_ptr_equal(a, b);
            assert_int_equal(f.number, g.number);
            assert_int_equal(f.wire_type, g.wire_type);
            if (f.wire_type == 2)
                assert_true(f.data == g.data && f.len == g.len);
            else
                assert_true(f.value == g.value);
        } while (true);
        ox_free(bytes);
    }
}

static void test_varint_longer_than_ten_bytes_is_refused(void **state)
{
    (void)state;
    uint64_t v;
    uint8_t bytes[12];
    memset(bytes, 0x80, sizeof bytes);
    assert_int_equal(ox_varint_get(bytes, bytes + sizeof bytes, &v), 0);
}

static void test_pb_walker_reads_every_wire_type(void **state)
{
    (void)state;
    const uint8_t bytes[] = {0x08, 0x96, 0x01, 0x11, 1, 0, 0, 0, 0, 0, 0, 0, 0x1a, 2, 'h', 'i', 0x25, 5, 0, 0, 0};
    const uint8_t *p = bytes, *end = bytes + sizeof bytes;
    struct ox_pb_field f;
    assert_int_equal(ox_pb_next(&p, end, &f), 1);
    assert_true(f.number == 1 && f.wire_type == 0 && f.value == 150);
    assert_int_equal(ox_pb_next(&p, end, &f), 1);
    assert_true(f.number == 2 && f.wire_type == 1 && f.value == 1);
    assert_int_equal(ox_pb_next(&p, end, &f), 1);
    assert_true(f.number == 3 && f.wire_type == 2 && f.len == 2 && memcmp(f.data, "hi", 2) == 0);
    assert_int_equal(ox_pb_next(&p, end, &f), 1);
    assert_true(f.number == 4 && f.wire_type == 5 && f.value == 5);
    assert_int_equal(ox_pb_next(&p, end, &f), 0);
}

static void test_pb_walker_refuses_cuts_groups_and_number_zero(void **state)
{
    (void)state;
    static const struct {
        uint8_t bytes[8];
        size_t len;
    } bad[] = {
        {{0x08}, 1},
        {{0x80}, 1},
        {{0x11, 1, 2}, 3},
        {{0x1a, 3, 'h', 'i'}, 4},
        {{0x25, 1}, 2},
        {{0x0b}, 1},
        {{0x0c}, 1},
        {{0x00, 1}, 2},
        {{0x1a, 0xff, 0xff, 0xff, 0xff, 0x0f}, 6},
        {{0x0f}, 1},
    };
    for (size_t i = 0; i < OX_COUNT(bad); i++) {
        uint8_t *exact = ox_memdup(bad[i].bytes, bad[i].len);
        const uint8_t *p = exact;
        struct ox_pb_field f;
        assert_int_equal(ox_pb_next(&p, exact + bad[i].len, &f), -1);
        ox_free(exact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_varint_round_trips_at_every_size),
        cmocka_unit_test(test_varint_reads_the_same_whatever_follows),
        cmocka_unit_test(test_pb_step_reads_as_pb_next),
        cmocka_unit_test(test_varint_longer_than_ten_bytes_is_refused),
        cmocka_unit_test(test_pb_walker_reads_every_wire_type),
        cmocka_unit_test(test_pb_walker_refuses_cuts_groups_and_number_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
