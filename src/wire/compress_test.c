// compress_test.c - the codecs: there and back, limits, damage.
#include "wire/compress.h"

#include "base/random.h"
#include "wire/test_hex.h"

static struct ox_buf sample(size_t len, uint64_t seed)
{
    struct ox_random random;
    uint8_t *to;
    struct ox_buf buf = ox_buf_new(len, &to);
    ox_random_seed(&random, seed);
    for (size_t i = 0; i < len; i++)
        to[i] = (uint8_t)ox_random_below(&random, seed % 2 ? 4 : 256);
    return buf;
}

static void test_compress_there_and_back(void **state)
{
    (void)state;
    static const size_t lens[] = {0, 1, 100, 100000};
    for (uint32_t type = OX_COMPRESSION_NONE; type <= OX_COMPRESSION_SNAPPY; type++)
        for (size_t i = 0; i < OX_COUNT(lens); i++) {
            struct ox_buf plain = sample(lens[i], i), packed, back;
            assert_int_equal(ox_compress(type, plain.data, plain.len, &packed), OX_OK);
            assert_int_equal(ox_decompress(type, packed.data, packed.len, plain.len, 1 << 20, &back), OX_OK);
            assert_same(back, plain);
            ox_buf_unref(&packed);
        }
}

static void test_decompress_takes_the_limit_before_it_allocates(void **state)
{
    (void)state;
    struct ox_buf back;
    for (uint32_t type = OX_COMPRESSION_NONE; type <= OX_COMPRESSION_SNAPPY; type++)
        assert_int_equal(ox_decompress(type, "x", 1, SIZE_MAX / 2, 1000, &back), OX_E_TOO_BIG);
    assert_int_equal(ox_decompress(5, "x", 1, 1, 1000, &back), OX_E_UNSUPPORTED);
    assert_int_equal(ox_compress(5, "x", 1, &back), OX_E_UNSUPPORTED);
}

static void test_decompress_refuses_wrong_sizes_cuts_and_noise(void **state)
{
    (void)state;
    struct ox_buf plain = sample(3000, 1), noise = sample(500, 2), packed, back;
    for (uint32_t type = OX_COMPRESSION_NONE; type <= OX_COMPRESSION_SNAPPY; type++) {
        assert_int_equal(ox_compress(type, plain.data, plain.len, &packed), OX_OK);
        assert_int_equal(ox_decompress(type, packed.data, packed.len, plain.len - 1, 1 << 20, &back), OX_E_MALFORMED);
        assert_int_equal(ox_decompress(type, packed.data, packed.len, plain.len + 1, 1 << 20, &back), OX_E_MALFORMED);
        for (size_t len = 0; len < packed.len; len += 1 + len / 8) {
            struct ox_buf cut = exact(packed, len);
            assert_int_equal(ox_decompress(type, cut.data, cut.len, plain.len, 1 << 20, &back), OX_E_MALFORMED);
            ox_buf_unref(&cut);
        }
        assert_int_equal(ox_decompress(type, noise.data, noise.len, 3000, 1 << 20, &back), OX_E_MALFORMED);
        ox_buf_unref(&packed);
    }
    ox_buf_unref(&plain);
    ox_buf_unref(&noise);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compress_there_and_back),
        cmocka_unit_test(test_decompress_takes_the_limit_before_it_allocates),
        cmocka_unit_test(test_decompress_refuses_wrong_sizes_cuts_and_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
