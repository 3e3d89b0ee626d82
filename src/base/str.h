// str.h - growing strings, and the name encodings that paths use.
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

// A growing byte string, always zero-terminated behind len. Zeroed memory is an empty string (data NULL until something is added).
struct ox_str {
    char *data; // read-only
    size_t len; // read-only: bytes without the terminator
    size_t cap; // private
};

// Frees the memory; the string is empty then.
void ox_str_fini(struct ox_str *s);
// Appends n bytes.
void ox_str_add(struct ox_str *s, const void *data, size_t n);
// Appends a zero-terminated string.
void ox_str_adds(struct ox_str *s, const char *text);
// Appends like printf.
void ox_str_addf(struct ox_str *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Appends like vprintf.
void ox_str_addv(struct ox_str *s, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
// Makes room for n more bytes and returns where they go; follow with ox_str_grew.
char *ox_str_reserve(struct ox_str *s, size_t n);
// n bytes were written at what ox_str_reserve returned.
void ox_str_grew(struct ox_str *s, size_t n);
// Cuts to n bytes.
void ox_str_truncate(struct ox_str *s, size_t n);
// The text, "" if empty. Borrowed.
const char *ox_str_get(const struct ox_str *s);
// Takes the text out (never NULL, to be given to ox_free); the string is empty then.
char *ox_str_take(struct ox_str *s);

// Pulsar's encoding of topic and cursor names in paths (facts: as Java's URLEncoder): letters, digits, '.', '-', '*', '_' stay, space becomes '+', every other byte %XX. Appends to `out`.
void ox_name_encode(struct ox_str *out, const char *name);
// The reverse. Errors: INVALID (a broken %XX, or a zero byte).
enum ox_err ox_name_decode(struct ox_str *out, const char *encoded) OX_CHECKED;
// RFC 3986 percent-decoding ('+' stays '+'). Errors: INVALID.
enum ox_err ox_percent_decode(struct ox_str *out, const char *encoded, size_t len) OX_CHECKED;
// True if the bytes are well-formed UTF-8.
bool ox_utf8_valid(const char *s, size_t len);
// A whole decimal number within min..max. Errors: INVALID.
enum ox_err ox_parse_i64(const char *s, int64_t min, int64_t max, int64_t *ret) OX_CHECKED;
// A size such as "64M", "1g", "4096" in bytes (k, m, g, t: powers of 1024). Errors: INVALID.
enum ox_err ox_parse_bytes(const char *s, uint64_t *ret) OX_CHECKED;
// A duration such as "10ms", "5s", "2m", "1h" in nanoseconds (a bare number: milliseconds). Errors: INVALID.
enum ox_err ox_parse_duration(const char *s, uint64_t *ret_ns) OX_CHECKED;
// The edit distance of two words (to name the nearest known key), at most `limit`.
size_t ox_edit_distance(const char *a, const char *b, size_t limit);

#endif
