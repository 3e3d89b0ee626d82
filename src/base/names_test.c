// names_test.c - names in paths, as Pulsar encodes them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"

static const struct {
    const char *name, *encoded;
} pairs[] = {
    {"a b", "a+b"},   {"sub/1", "sub%2F1"}, {"\xc3\xa9", "%C3%A9"}, {"a.b-c*d_e", "a.b-c*d_e"},
    {"~", "%7E"},     {"a+b", "a%2Bb"},     {"50%", "50%25"},       {"", ""},
    {"x:y", "x%3Ay"},
};

static void test_name_encoding_is_pulsars_and_reversible(void **state)
{
    (void)state;
    for (size_t i = 0; i < OX_COUNT(pairs); i++) {
        struct ox_str encoded = {0}, decoded = {0};
        ox_name_encode(&encoded, pairs[i].name);
        assert_string_equal(ox_str_get(&encoded), pairs[i].encoded);
        assert_int_equal(ox_name_decode(&decoded, pairs[i].encoded), OX_OK);
        assert_string_equal(ox_str_get(&decoded), pairs[i].name);
        ox_str_fini(&encoded);
        ox_str_fini(&decoded);
    }
}

static void test_name_decoding_refuses_broken_escapes_and_leaves_the_output(void **state)
{
    (void)state;
    const char *bad[] = {"%", "a%2", "%zz", "x%00y", "%g0"};
    struct ox_str out = {0};
    ox_str_adds(&out, "kept");
    for (size_t i = 0; i < OX_COUNT(bad); i++) {
        assert_int_equal(ox_name_decode(&out, bad[i]), OX_E_INVALID);
        assert_int_equal(ox_percent_decode(&out, bad[i], strlen(bad[i])), OX_E_INVALID);
        assert_string_equal(ox_str_get(&out), "kept");
    }
    ox_str_fini(&out);
}

static void test_percent_decoding_keeps_plus_and_knows_small_letters(void **state)
{
    (void)state;
    struct ox_str out = {0};
    assert_int_equal(ox_percent_decode(&out, "a+b%2fcXX", 7), OX_OK);
    assert_string_equal(ox_str_get(&out), "a+b/c");
    assert_int_equal(ox_percent_decode(&out, "a\0b", 3), OX_E_INVALID);
    ox_str_fini(&out);
}

static void test_utf8_knows_good_from_bad(void **state)
{
    (void)state;
    const char *good[] = {
        "", "abc", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"};
    const char *bad[] = {"\x80", "\xc3",   "\xc0\xaf",    "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                         "\xff", "a\xc3z", "\xf0\x9f\x98"};
    for (size_t i = 0; i < OX_COUNT(good); i++)
        assert_true(ox_utf8_valid(good[i], strlen(good[i])));
    for (size_t i = 0; i < OX_COUNT(bad); i++)
        assert_false(ox_utf8_valid(bad[i], strlen(bad[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_name_encoding_is_pulsars_and_reversible),
        cmocka_unit_test(test_name_decoding_refuses_broken_escapes_and_leaves_the_output),
        cmocka_unit_test(test_percent_decoding_keeps_plus_and_knows_small_letters),
        cmocka_unit_test(test_utf8_knows_good_from_bad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
