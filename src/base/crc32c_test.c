// crc32c_test.c - known checksums, and both bodies against each other.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "base/random.h"

static void test_crc32c_known_vectors(void **state)
{
    (void)state;
    uint8_t bytes[32];
    assert_int_equal(ox_crc32c(0, "", 0), 0);
    assert_int_equal(ox_crc32c(0, "123456789", 9), 0xe3069283u);
    memset(bytes, 0, 32);
    assert_int_equal(ox_crc32c(0, bytes, 32), 0x8a9136aau);
    memset(bytes, 0xff, 32);
    assert_int_equal(ox_crc32c(0, bytes, 32), 0x62a8ab43u);
    for (uint8_t i = 0; i < 32; i++)
        bytes[i] = i;
    assert_int_equal(ox_crc32c(0, bytes, 32), 0x46dd794eu);
}

static void test_crc32c_fast_and_portable_agree_at_every_split(void **state)
{
    (void)state;
    enum { LEN = 5000 };
    static const size_t lens[] = {1, 7, 8, 9, 255, 256, 767, 768, 769, 1535, 1536, 1537, 2304, 4096, LEN - 3};
    struct ox_random random;
    ox_random_seed(&random, 1);
    uint8_t *bytes = malloc(LEN);
    assert_non_null(bytes);
    for (size_t i = 0; i < LEN; i++)
        bytes[i] = (uint8_t)ox_random_next(&random);
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++)
        for (size_t from = 0; from < 3; from++) {
            uint32_t whole = ox_crc32c_portable(0, bytes + from, lens[i]);
            assert_int_equal(ox_crc32c(0, bytes + from, lens[i]), whole);
            assert_int_equal(ox_crc32c(0x5eed, bytes + from, lens[i]), ox_crc32c_portable(0x5eed, bytes + from, lens[i]));
            size_t half = lens[i] / 2;
            uint32_t two = ox_crc32c(ox_crc32c(0, bytes + from, half), bytes + from + half, lens[i] - half);
            assert_int_equal(two, whole);
        }
    free(bytes);
}

static void test_crc32c_agrees_at_every_length(void **state)
{
    (void)state;
    enum { LEN = 1400 };
    struct ox_random random;
    ox_random_seed(&random, 3);
    uint8_t *bytes = malloc(LEN);
    assert_non_null(bytes);
    for (size_t i = 0; i < LEN; i++)
        bytes[i] = (uint8_t)ox_random_next(&random);
    for (size_t len = 0; len <= LEN; len++) {
        // at the end of the allocation: a read beyond it is a sanitizer's finding
        uint32_t plain = ox_crc32c_portable(1, bytes + LEN - len, len);
        assert_int_equal(ox_crc32c(1, bytes + LEN - len, len), plain);
        assert_int_equal(ox_crc32c_join(plain, 0x1234567, len), ox_crc32c_join_portable(plain, 0x1234567, len));
    }
    free(bytes);
}

static void test_crc32c_joined_is_that_of_both(void **state)
{
    (void)state;
    enum { LEN = 140000 };
    static const size_t lens[] = {0, 1, 2, 3, 4, 5, 7, 8, 31, 1023, 1024, 1077, 65535, 65536, 131071, LEN};
    struct ox_random random;
    ox_random_seed(&random, 2);
    uint8_t *bytes = malloc(LEN + 100);
    assert_non_null(bytes);
    for (size_t i = 0; i < LEN + 100; i++)
        bytes[i] = (uint8_t)ox_random_next(&random);
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++)
        for (uint32_t start = 0; start < 2; start++) {
            uint32_t a = ox_crc32c(start * 77, bytes, 100), b = ox_crc32c(0, bytes + 100, lens[i]);
            uint32_t both = ox_crc32c(start * 77, bytes, 100 + lens[i]);
            assert_int_equal(ox_crc32c_join(a, b, lens[i]), both);
            assert_int_equal(ox_crc32c_join_portable(a, b, lens[i]), both);
        }
    free(bytes);
}

static void test_crc32_is_zlibs(void **state)
{
    (void)state;
    assert_int_equal(ox_crc32(0, "123456789", 9), 0xcbf43926u);
    assert_int_equal(ox_crc32(ox_crc32(0, "1234", 4), "56789", 5), 0xcbf43926u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc32c_known_vectors),
        cmocka_unit_test(test_crc32c_fast_and_portable_agree_at_every_split),
        cmocka_unit_test(test_crc32c_agrees_at_every_length),
        cmocka_unit_test(test_crc32c_joined_is_that_of_both),
        cmocka_unit_test(test_crc32_is_zlibs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
