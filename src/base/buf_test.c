// buf_test.c - slices count their references.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"

static void test_buf_slices_share_and_count(void **state)
{
    (void)state;
    struct ox_buf a = ox_buf_copy("hello world", 11);
    struct ox_buf b = ox_buf_sub(a, 6, 5);
    assert_ptr_equal(a.slab, b.slab);
    assert_int_equal(a.slab->refs, 2);
    ox_buf_unref(&a);
    assert_null(a.slab);
    assert_memory_equal(b.data, "world", 5);
    struct ox_buf c = ox_buf_ref(b);
    assert_true(ox_buf_equal(b, c));
    ox_buf_unref(&b);
    ox_buf_unref(&c);
}

static void test_buf_compact_copies_only_small_parts(void **state)
{
    (void)state;
    uint8_t *to;
    struct ox_buf whole = ox_buf_new(1000, &to);
    memset(to, 7, 1000);
    struct ox_buf quarter = ox_buf_compact(ox_buf_sub(whole, 0, 250));
    assert_ptr_equal(quarter.slab, whole.slab);
    struct ox_buf less = ox_buf_compact(ox_buf_sub(whole, 0, 249));
    assert_ptr_not_equal(less.slab, whole.slab);
    assert_int_equal(less.len, 249);
    assert_memory_equal(less.data, whole.data, 249);
    ox_buf_unref(&less);
    ox_buf_unref(&quarter);
    assert_int_equal(whole.slab->refs, 1);
    ox_buf_unref(&whole);
}

static void test_buf_join_concatenates(void **state)
{
    (void)state;
    struct ox_buf parts[] = {ox_buf_static("ab", 2), ox_buf_empty(), ox_buf_static("cde", 3)};
    struct ox_buf joined = ox_buf_join(parts, 3);
    assert_int_equal(joined.len, 5);
    assert_memory_equal(joined.data, "abcde", 5);
    struct ox_buf same = ox_buf_join(&joined, 1);
    assert_ptr_equal(same.data, joined.data);
    ox_buf_unref(&same);
    ox_buf_unref(&joined);
    struct ox_buf none = ox_buf_join(parts + 1, 1);
    assert_int_equal(none.len, 0);
}

static void test_buf_extend_joins_neighbours(void **state)
{
    (void)state;
    struct ox_buf whole = ox_buf_copy("abcdef", 6);
    struct ox_buf a = ox_buf_sub(whole, 0, 2), b = ox_buf_sub(whole, 2, 2), c = ox_buf_sub(whole, 5, 1);
    assert_true(ox_buf_extend(&a, b));
    assert_int_equal(a.len, 4);
    assert_false(ox_buf_extend(&a, c));
    ox_buf_unref(&a);
    ox_buf_unref(&c);
    assert_int_equal(whole.slab->refs, 1);
    ox_buf_unref(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buf_slices_share_and_count),
        cmocka_unit_test(test_buf_compact_copies_only_small_parts),
        cmocka_unit_test(test_buf_join_concatenates),
        cmocka_unit_test(test_buf_extend_joins_neighbours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
