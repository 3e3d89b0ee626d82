// key_hash_test.c - murmur3's published values, and what a broker takes for the key of an entry.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "broker/key_hash.h"

static uint32_t hash_of(const char *text, uint32_t seed)
{
    return ox_murmur3(text, strlen(text), seed);
}

static void test_key_hash_murmur3_published_values(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t seed, hash;
    } rows[] = {
        {"", 0, 0},
        {"", 1, 0x514e28b7},
        {"", 0xffffffff, 0x81f16f39},
        {"test", 0, 0xba6bd213},
        {"test", 0x9747b28c, 0x704b81dc},
        {"aaa", 0x9747b28c, 0x283e0130},
        {"Hello, world!", 0, 0xc0363e43},
        {"Hello, world!", 0x9747b28c, 0x24884cba},
        {"The quick brown fox jumps over the lazy dog", 0, 0x2e4ff723},
        {"The quick brown fox jumps over the lazy dog", 0x9747b28c, 0x2fa826cd},
    };
    for (size_t i = 0; i < OX_COUNT(rows); i++)
        assert_int_equal(hash_of(rows[i].text, rows[i].seed), rows[i].hash);
}

static struct ox_span span(const char *text)
{
    return (struct ox_span){(const uint8_t *)text, strlen(text)};
}

static uint32_t plain(const char *key)
{
    struct ox_message_meta m = {.producer_name = span("p"), .partition_key = span(key)};
    return ox_key_hash(&m);
}

// Found with the keys' owners of a real broker: sticky ranges of one hash each.
static void test_key_hash_of_known_keys(void **state)
{
    (void)state;
    assert_int_equal(plain("k27353"), 1);
    assert_int_equal(plain("k35981"), 65535);
    assert_int_equal(plain("k179888"), 1); // its murmur3 % 65536 is 0
}

static void test_key_hash_ordering_key_goes_first(void **state)
{
    (void)state;
    struct ox_message_meta m = {.producer_name = span("p"), .ordering_key = span("order"), .partition_key = span("part")};
    assert_int_equal(ox_key_hash(&m), plain("order"));
    m.ordering_key = (struct ox_span){0};
    assert_int_equal(ox_key_hash(&m), plain("part"));
    m.ordering_key = (struct ox_span){(const uint8_t *)"", 0};
    assert_int_equal(ox_key_hash(&m), plain(""));
}

static void test_key_hash_without_key_each_message_has_its_own(void **state)
{
    (void)state;
    struct ox_message_meta m = {.producer_name = span("standalone-0-1"), .sequence_id = 12345};
    assert_int_equal(ox_key_hash(&m), plain("standalone-0-1-12345"));
    m.sequence_id = UINT64_MAX;
    assert_int_equal(ox_key_hash(&m), plain("standalone-0-1--1"));
}

static uint32_t encoded(const char *base64)
{
    struct ox_message_meta m = {.producer_name = span("p"), .partition_key = span(base64), .is_key_base64 = true};
    return ox_key_hash(&m);
}

static void test_key_hash_decodes_base64(void **state)
{
    (void)state;
    assert_int_equal(encoded("aGVsbG8="), plain("hello"));
    assert_int_equal(encoded("aGVsbG8"), plain("hello"));
    assert_int_equal(encoded("aGVsbG8h"), plain("hello!"));
    assert_int_equal(encoded("aGVsbG8hIQ=="), plain("hello!!"));
    assert_int_equal(encoded("fn5+"), plain("~~~"));
    assert_int_equal(encoded(""), plain(""));
}

static void test_key_hash_of_what_is_no_base64(void **state)
{
    (void)state;
    static const char *const bad[] = {"a", "aGVsb", "aGVsbG8==", "aGVs=", "a b=", "aG=s", "====", "\xff\xff\xff\xff"};
    for (size_t i = 0; i < OX_COUNT(bad); i++)
        assert_int_equal(encoded(bad[i]), plain("NONE_KEY"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key_hash_murmur3_published_values),
        cmocka_unit_test(test_key_hash_of_known_keys),
        cmocka_unit_test(test_key_hash_ordering_key_goes_first),
        cmocka_unit_test(test_key_hash_without_key_each_message_has_its_own),
        cmocka_unit_test(test_key_hash_decodes_base64),
        cmocka_unit_test(test_key_hash_of_what_is_no_base64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
