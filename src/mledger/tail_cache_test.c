// tail_cache_test.c - the cache holds the newest entries within its bytes, and counts what it keeps alive.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mledger/tail_cache.h"

static void put(struct ox_tail_cache *c, int64_t ledger, int64_t entry, struct ox_buf take_bytes)
{
    ox_tail_cache_put(c, (struct ox_pos){ledger, entry}, &take_bytes, 1);
    ox_buf_unref(&take_bytes);
}

static bool has(struct ox_tail_cache *c, int64_t ledger, int64_t entry)
{
    struct ox_buf got;
    bool found = ox_tail_cache_get(c, (struct ox_pos){ledger, entry}, &got);
    ox_buf_unref(&got);
    return found;
}

static void test_tail_cache_drops_the_oldest_first(void **state)
{
    (void)state;
    struct ox_tail_cache c;
    ox_tail_cache_init(&c, 256 * 1024);
    for (int i = 0; i < 400; i++) {
        char bytes[1024];
        memset(bytes, i % 100, sizeof bytes);
        put(&c, 1, i, ox_buf_copy(bytes, sizeof bytes));
        assert_true(c.bytes <= c.bytes_max);
    }
    assert_false(has(&c, 1, 0));
    assert_true(has(&c, 1, 399));
    struct ox_buf got;
    assert_true(ox_tail_cache_get(&c, (struct ox_pos){1, 398}, &got));
    assert_int_equal(got.len, 1024);
    assert_int_equal(got.data[77], 98);
    ox_tail_cache_fini(&c);
    assert_int_equal(got.data[77], 98); // a reader's reference outlives the cache
    ox_buf_unref(&got);
    assert_int_equal(c.bytes, 0);
}

static void test_tail_cache_counts_a_shared_slab_once(void **state)
{
    (void)state;
    struct ox_tail_cache c;
    uint8_t *data;
    struct ox_buf whole = ox_buf_new(OX_SLAB_BYTES, &data);
    memset(data, 7, OX_SLAB_BYTES);
    ox_tail_cache_init(&c, 1 << 20);
    put(&c, 1, 0, ox_buf_sub(whole, 0, OX_SLAB_BYTES / 2)); // big enough to keep the slab
    uint64_t one = c.bytes;
    assert_true(one >= OX_SLAB_BYTES);
    put(&c, 1, 1, ox_buf_sub(whole, OX_SLAB_BYTES / 2, OX_SLAB_BYTES / 4)); // the slab is kept anyway
    assert_in_range(c.bytes - one, 1, 1000);
    ox_buf_unref(&whole);
    ox_tail_cache_fini(&c);
}

static void test_tail_cache_small_entries_are_packed_together(void **state)
{
    (void)state;
    struct ox_tail_cache c;
    ox_tail_cache_init(&c, 1 << 20);
    for (int i = 0; i < 100; i++) { // each alone in a slab of its own
        uint8_t *data;
        struct ox_buf whole = ox_buf_new(OX_SLAB_BYTES, &data);
        memset(data, i, OX_SLAB_BYTES);
        put(&c, 1, i, ox_buf_sub(whole, 0, 100));
        ox_buf_unref(&whole);
    }
    assert_true(c.bytes < 2 * OX_SLAB_BYTES);
    struct ox_buf got;
    assert_true(ox_tail_cache_get(&c, (struct ox_pos){1, 42}, &got));
    assert_int_equal(got.data[99], 42);
    ox_buf_unref(&got);
    ox_tail_cache_fini(&c);
    assert_int_equal(c.bytes, 0);
}

static void test_tail_cache_counts_on_behind_a_gap(void **state)
{
    (void)state;
    struct ox_tail_cache c;
    ox_tail_cache_init(&c, 1 << 20);
    for (int ledger = 1; ledger <= 3; ledger++)
        for (int i = 0; i < 20; i++)
            put(&c, ledger, i, ox_buf_copy(&(char){(char)i}, 1));
    put(&c, 2, 30, ox_buf_copy("x", 1));
    assert_false(has(&c, 2, 19));
    assert_true(has(&c, 2, 30) && has(&c, 1, 19) && has(&c, 3, 0));
    put(&c, 2, 5, ox_buf_copy("y", 1)); // out of order
    assert_false(has(&c, 2, 5));
    ox_tail_cache_drop_ledger(&c, 1);
    assert_true(has(&c, 3, 19) && !has(&c, 1, 0));
    ox_tail_cache_fini(&c);
    assert_int_equal(c.bytes, 0);
}

static void test_tail_cache_drops_a_ledger_and_ignores_what_is_too_big(void **state)
{
    (void)state;
    struct ox_tail_cache c;
    ox_tail_cache_init(&c, 100000);
    put(&c, 1, 0, ox_buf_copy("a", 1));
    put(&c, 2, 0, ox_buf_copy("b", 1));
    put(&c, 2, 0, ox_buf_copy("x", 1)); // the first one stays
    static const char big[100001];
    put(&c, 3, 0, ox_buf_copy(big, sizeof big));
    assert_false(has(&c, 3, 0));
    ox_tail_cache_drop_ledger(&c, 1);
    assert_false(has(&c, 1, 0));
    struct ox_buf got;
    assert_true(ox_tail_cache_get(&c, (struct ox_pos){2, 0}, &got));
    assert_memory_equal(got.data, "b", 1);
    ox_buf_unref(&got);
    assert_int_equal(c.hits, 1);
    assert_int_equal(c.misses, 2);
    ox_tail_cache_fini(&c);
}

static void test_tail_cache_a_new_limit_takes_the_oldest(void **state)
{
    (void)state;
    struct ox_tail_cache c;
    ox_tail_cache_init(&c, 1 << 20);
    for (int i = 0; i < 400; i++) {
        char bytes[1024] = {0};
        put(&c, 1, i, ox_buf_copy(bytes, sizeof bytes));
    }
    assert_true(has(&c, 1, 0));
    ox_tail_cache_limit(&c, 256 * 1024);
    assert_true(c.bytes <= 256 * 1024);
    assert_false(has(&c, 1, 0));
    assert_true(has(&c, 1, 399));
    ox_tail_cache_limit(&c, 1 << 20);
    put(&c, 1, 400, ox_buf_copy("x", 1));
    assert_true(has(&c, 1, 399) && has(&c, 1, 400));
    ox_tail_cache_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tail_cache_drops_the_oldest_first),
        cmocka_unit_test(test_tail_cache_counts_a_shared_slab_once),
        cmocka_unit_test(test_tail_cache_small_entries_are_packed_together),
        cmocka_unit_test(test_tail_cache_counts_on_behind_a_gap),
        cmocka_unit_test(test_tail_cache_drops_a_ledger_and_ignores_what_is_too_big),
        cmocka_unit_test(test_tail_cache_a_new_limit_takes_the_oldest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
