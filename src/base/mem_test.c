// mem_test.c - allocation.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

static void test_mem_is_zeroed_and_never_null(void **state)
{
    (void)state;
    unsigned char *p = ox_malloc(1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(p[i], 0);
    p = ox_realloc(p, 2, 1000);
    assert_int_equal(p[999], 0);
    ox_free(p);
    void *nothing = ox_malloc(0);
    assert_non_null(nothing);
    ox_free(nothing);
}

static void test_mem_strings_are_copies(void **state)
{
    (void)state;
    OX_CLEANUP(ox_free_ptr)
    char *a = ox_strdup("abc");
    OX_CLEANUP(ox_free_ptr)
    char *b = ox_strndup("abcdef", 2);
    OX_CLEANUP(ox_free_ptr)
    char *c = ox_asprintf("%s-%d", a, 7);
    OX_CLEANUP(ox_free_ptr)
    char *d = ox_memdup("xyz", 4);
    assert_string_equal(a, "abc");
    assert_string_equal(b, "ab");
    assert_string_equal(c, "abc-7");
    assert_string_equal(d, "xyz");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mem_is_zeroed_and_never_null),
        cmocka_unit_test(test_mem_strings_are_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
