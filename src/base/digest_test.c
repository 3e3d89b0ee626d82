// digest_test.c - known digests, pieces, and the names of entries.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/digest.h"

static void assert_digest(const char *const *pieces, size_t count, const char *expected)
{
    struct ox_digest d;
    char text[OX_DIGEST_TEXT_BYTES];
    ox_digest_init(&d);
    for (size_t i = 0; i < count; i++)
        ox_digest_add(&d, pieces[i], strlen(pieces[i]));
    ox_digest_text(&d, text);
    assert_string_equal(text, expected);
    ox_digest_fini(&d);
}

static void test_digest_known_vectors(void **state)
{
    (void)state;
    assert_digest(NULL, 0, "xxh3:99aa06d3014798d86001c324468d497f");
    assert_digest((const char *[]){"a"}, 1, "xxh3:a96faf705af16834e6c632b61e964e1f");
    assert_digest((const char *[]){"xxhash"}, 1, "xxh3:9c8b437c78cac00a376072e24bfdf4d2");
}

static void test_digest_does_not_depend_on_the_pieces(void **state)
{
    (void)state;
    assert_digest((const char *[]){"xx", "", "ha", "sh"}, 4, "xxh3:9c8b437c78cac00a376072e24bfdf4d2");
}

// The same bytes cut into entries otherwise, or under other ids, are another list of entries.
static void test_digest_of_entries_knows_ids_and_lengths(void **state)
{
    (void)state;
    static const struct {
        int64_t first_id;
        size_t first, second;
    } lists[] = {{0, 3, 3}, {0, 2, 4}, {0, 6, 0}, {0, 0, 6}, {1, 3, 3}};
    char texts[5][OX_DIGEST_TEXT_BYTES];
    for (size_t i = 0; i < 5; i++) {
        struct ox_digest d;
        ox_digest_init(&d);
        ox_digest_add_entry(&d, lists[i].first_id, "abcdef", lists[i].first);
        ox_digest_add_entry(&d, lists[i].first_id + 1, &"abcdef"[lists[i].first], lists[i].second);
        ox_digest_text(&d, texts[i]);
        ox_digest_fini(&d);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(texts[i], texts[j]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digest_known_vectors),
        cmocka_unit_test(test_digest_does_not_depend_on_the_pieces),
        cmocka_unit_test(test_digest_of_entries_knows_ids_and_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
