// direct_test.c - memory is aligned and as large as it says; a copy of any length and alignment is the same bytes and nothing more.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/random.h"
#include "io/direct.h"

static void test_direct_memory_is_aligned_and_whole(void **state)
{
    (void)state;
    static const size_t sizes[] = {
        1, OX_DIRECT_ALIGN, OX_DIRECT_ALIGN + 1, OX_DIRECT_LARGE - 1, OX_DIRECT_LARGE, OX_DIRECT_PAGE + 1};
    for (size_t i = 0; i < OX_COUNT(sizes); i++) {
        size_t bytes = 0, align = sizes[i] < OX_DIRECT_LARGE ? OX_DIRECT_ALIGN : OX_DIRECT_PAGE;
        uint8_t *p = ox_direct_alloc(sizes[i], &bytes);
        assert_true(bytes >= sizes[i] && bytes - sizes[i] < align && bytes % align == 0);
        assert_int_equal((uintptr_t)p % align, 0);
        memset(p, 7, bytes); // all of it is there
        ox_free(p);
    }
}

static void test_direct_copy_is_exact_at_any_length_and_alignment(void **state)
{
    (void)state;
    enum { BYTES = 70000, EDGE = 64 };
    struct ox_random r;
    ox_random_seed(&r, 11);
    uint8_t *from = ox_malloc_raw(BYTES + 2 * EDGE), *to = ox_malloc_raw(BYTES + 2 * EDGE);
    for (size_t i = 0; i < BYTES + 2 * EDGE; i++)
        from[i] = (uint8_t)(ox_random_below(&r, 255) + 1);
    for (int round = 0; round < 300; round++) {
        size_t n = (size_t)ox_random_below(&r, round % 3 ? BYTES : 200), at = (size_t)ox_random_below(&r, EDGE),
               source = (size_t)ox_random_below(&r, EDGE);
        memset(to, 0, BYTES + 2 * EDGE);
        ox_direct_copy(to + at, from + source, n);
        assert_memory_equal(to + at, from + source, n);
        assert_true((at == 0 || to[at - 1] == 0) && to[at + n] == 0);
    }
    ox_free(from);
    ox_free(to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_direct_memory_is_aligned_and_whole),
        cmocka_unit_test(test_direct_copy_is_exact_at_any_length_and_alignment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
