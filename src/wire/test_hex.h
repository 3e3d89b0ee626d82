// test_hex.h - what the tests of this folder share: hex text, exact copies, comparisons.
#ifndef WIRE_TEST_HEX_H
#define WIRE_TEST_HEX_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"

static inline int hex_value(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

// The bytes of a text of hex digits and spaces; "quoted" parts stand for themselves. The caller owns one reference.
static inline struct ox_buf hex(const char *text)
{
    uint8_t bytes[4096];
    size_t n = 0;
    bool is_quoted = false;
    for (; *text; text++) {
        assert_true(n < sizeof bytes);
        if (*text == '"')
            is_quoted = !is_quoted;
        else if (is_quoted)
            bytes[n++] = (uint8_t)*text;
        else if (*text != ' ') {
            bytes[n++] = (uint8_t)(hex_value(text[0]) << 4 | hex_value(text[1]));
            text++;
        }
    }
    return ox_buf_copy(bytes, n);
}

// The first len bytes in a block of exactly that size, so that a sanitizer sees every step beyond.
static inline struct ox_buf exact(struct ox_buf buf, size_t len)
{
    return ox_buf_copy(buf.data, len);
}

// Compares and gives both back.
static inline void assert_same(struct ox_buf give_a, struct ox_buf give_b)
{
    assert_int_equal(give_a.len, give_b.len);
    if (give_a.len)
        assert_memory_equal(give_a.data, give_b.data, give_a.len);
    ox_buf_unref(&give_a);
    ox_buf_unref(&give_b);
}

#endif
