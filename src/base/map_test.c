// map_test.c - hash maps find, forget and keep order.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/map.h"
#include "base/mem.h"

struct thing {
    struct ox_map_node node;
    int value;
};

static void test_map_finds_strings_numbers_and_bytes(void **state)
{
    (void)state;
    struct ox_map map = {0};
    struct thing a = {.value = 1}, b = {.value = 2}, c = {.value = 3};
    ox_map_put_str(&map, &a.node, "alpha");
    ox_map_put_u64(&map, &b.node, 42);
    ox_map_put(&map, &c.node, "x\0y", 3);
    assert_int_equal(ox_map_count(&map), 3);
    assert_ptr_equal(ox_map_find_str(&map, "alpha"), &a.node);
    assert_ptr_equal(ox_map_find_u64(&map, 42), &b.node);
    assert_ptr_equal(ox_map_find(&map, "x\0y", 3), &c.node);
    assert_null(ox_map_find(&map, "x\0z", 3));
    assert_null(ox_map_find_str(&map, "beta"));
    OX_MAP_EACH(&map, node)
        ox_map_remove(&map, node);
    assert_int_equal(ox_map_count(&map), 0);
    assert_null(ox_map_find_str(&map, "alpha"));
}

static void test_map_iterates_in_insertion_order_while_removing(void **state)
{
    (void)state;
    struct ox_map map = {0};
    for (int i = 0; i < 1000; i++) {
        struct thing *t = ox_malloc(sizeof *t);
        t->value = i;
        ox_map_put_u64(&map, &t->node, (uint64_t)(i * 7919 % 1000));
    }
    int expected = 0;
    OX_MAP_EACH(&map, node) {
        struct thing *t = CONTAINER_OF(node, struct thing, node);
        assert_int_equal(t->value, expected++);
        ox_map_remove(&map, node);
        ox_free(t);
    }
    assert_int_equal(expected, 1000);
    assert_null(ox_map_first(&map));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map_finds_strings_numbers_and_bytes),
        cmocka_unit_test(test_map_iterates_in_insertion_order_while_removing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
