// resend_test.c - the table of what may be sent again: byte identity, no false positives, growth.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "broker/resend.h"

static struct ox_resend_key key_of(const char *name, uint64_t sequence_id, uint32_t crc, size_t len)
{
    return (struct ox_resend_key){name, strlen(name), sequence_id, crc, len};
}

static void test_resend_finds_what_was_stored(void **state)
{
    (void)state;
    struct ox_resend *r = ox_resend_new();
    struct ox_resend_key k = key_of("p", 5, 0xabc, 100);
    struct ox_pos pos;
    assert_false(ox_resend_find(r, &k, &pos));
    ox_resend_add(r, &k, (struct ox_pos){1, 2});
    assert_true(ox_resend_find(r, &k, &pos));
    assert_int_equal(pos.ledger, 1);
    assert_int_equal(pos.entry, 2);
    ox_resend_free(r);
}

static void test_resend_differs_in_any_part(void **state)
{
    (void)state;
    struct ox_resend *r = ox_resend_new();
    struct ox_resend_key k = key_of("p", 5, 0xabc, 100);
    struct ox_pos pos;
    ox_resend_add(r, &k, (struct ox_pos){1, 2});
    const struct ox_resend_key other[] = {key_of("q", 5, 0xabc, 100), key_of("p", 6, 0xabc, 100),
                                          key_of("p", 5, 0xabd, 100), key_of("p", 5, 0xabc, 101)};
    for (size_t i = 0; i < OX_COUNT(other); i++)
        assert_false(ox_resend_find(r, &other[i], &pos));
    ox_resend_free(r);
}

static void test_resend_grows_and_keeps_all(void **state)
{
    (void)state;
    struct ox_resend *r = ox_resend_new();
    struct ox_pos pos;
    for (uint64_t i = 0; i < 10000; i++) {
        struct ox_resend_key k = key_of("producer", i, (uint32_t)(i * 7), 64);
        ox_resend_add(r, &k, (struct ox_pos){1, (int64_t)i});
    }
    assert_int_equal(ox_resend_count(r), 10000);
    for (uint64_t i = 0; i < 10000; i++) {
        struct ox_resend_key k = key_of("producer", i, (uint32_t)(i * 7), 64);
        assert_true(ox_resend_find(r, &k, &pos));
        assert_int_equal(pos.entry, i);
    }
    ox_resend_free(r);
}

static void test_resend_equal_keys_newest_wins(void **state)
{
    (void)state;
    struct ox_resend *r = ox_resend_new();
    struct ox_resend_key k = key_of("p", 0, 1, 1);
    struct ox_pos pos;
    ox_resend_add(r, &k, (struct ox_pos){1, 0});
    ox_resend_add(r, &k, (struct ox_pos){1, 9});
    assert_int_equal(ox_resend_count(r), 1);
    assert_true(ox_resend_find(r, &k, &pos));
    assert_int_equal(pos.entry, 9);
    ox_resend_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resend_finds_what_was_stored),
        cmocka_unit_test(test_resend_differs_in_any_part),
        cmocka_unit_test(test_resend_grows_and_keeps_all),
        cmocka_unit_test(test_resend_equal_keys_newest_wins),
    };
    return cmocka_run_group_tests_name("broker.resend", tests, NULL, NULL);
}
