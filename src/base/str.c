// str.c - growing strings, and the small parsers that configuration and paths need.
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

void ox_str_fini(struct ox_str *s)
{
    ox_free(s->data);
    *s = (struct ox_str){0};
}

char *ox_str_reserve(struct ox_str *s, size_t n)
{
    OX_ASSERT(n < SIZE_MAX / 4 - s->len);
    if (s->len + n + 1 > s->cap) {
        s->cap = OX_MAX(OX_MAX(s->len + n + 1, s->cap * 2), 32);
        s->data = (char *)ox_realloc(s->data, s->cap, 1);
        s->data[s->len] = 0;
    }
    return s->data + s->len;
}

void ox_str_grew(struct ox_str *s, size_t n)
{
    OX_ASSERT(n == 0 || s->len + n < s->cap);
    s->len += n;
    if (s->data)
        s->data[s->len] = 0;
}

void ox_str_add(struct ox_str *s, const void *data, size_t n)
{
    if (n == 0)
        return;
    memcpy(ox_str_reserve(s, n), data, n);
    ox_str_grew(s, n);
}

void ox_str_adds(struct ox_str *s, const char *text)
{
    ox_str_add(s, text, strlen(text));
}

void ox_str_addf(struct ox_str *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    ox_str_addv(s, format, args);
    va_end(args);
}

void ox_str_addv(struct ox_str *s, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    char *to = ox_str_reserve(s, 63);
    size_t room = s->cap - s->len;
    int n = vsnprintf(to, room, format, args);
    OX_ASSERT(n >= 0);
    if ((size_t)n >= room)
        vsnprintf(ox_str_reserve(s, (size_t)n), (size_t)n + 1, format, again);
    va_end(again);
    ox_str_grew(s, (size_t)n);
}

void ox_str_truncate(struct ox_str *s, size_t n)
{
    OX_ASSERT(n <= s->len);
    s->len = n;
    if (s->data)
        s->data[n] = 0;
}

const char *ox_str_get(const struct ox_str *s)
{
    return s->data ? s->data : "";
}

char *ox_str_take(struct ox_str *s)
{
    char *text = s->data ? s->data : ox_strdup("");
    *s = (struct ox_str){0};
    return text;
}

enum ox_err ox_parse_i64(const char *s, int64_t min, int64_t max, int64_t *ret)
{
    const char *digits = *s == '-' ? s + 1 : s;
    if (*digits < '0' || *digits > '9')
        return OX_E_INVALID;
    char *end;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (errno || *end || v < min || v > max)
        return OX_E_INVALID;
    *ret = v;
    return OX_OK;
}

// Digits at the start of s; the rest is left in *ret_unit.
static enum ox_err parse_count(const char *s, uint64_t *ret, const char **ret_unit)
{
    if (*s < '0' || *s > '9')
        return OX_E_INVALID;
    char *end;
    errno = 0;
    *ret = strtoull(s, &end, 10);
    *ret_unit = end;
    return errno ? OX_E_INVALID : OX_OK;
}

struct parse_unit {
    const char *name;
    uint64_t factor;
};

static enum ox_err parse_with_units(const char *s, const struct parse_unit *units, size_t n, uint64_t *ret)
{
    uint64_t count;
    const char *unit;
    enum ox_err err = parse_count(s, &count, &unit);
    for (size_t i = 0; i < n && !err; i++)
        if (strcasecmp(unit, units[i].name) == 0)
            return __builtin_mul_overflow(count, units[i].factor, ret) ? OX_E_INVALID : OX_OK;
    return OX_E_INVALID;
}

enum ox_err ox_parse_bytes(const char *s, uint64_t *ret)
{
    static const struct parse_unit units[] = {
        {"", 1}, {"k", UINT64_C(1) << 10}, {"m", UINT64_C(1) << 20}, {"g", UINT64_C(1) << 30}, {"t", UINT64_C(1) << 40},
    };
    return parse_with_units(s, units, OX_COUNT(units), ret);
}

enum ox_err ox_parse_duration(const char *s, uint64_t *ret_ns)
{
    static const struct parse_unit units[] = {
        {"", 1000000},
        {"ns", 1},
        {"us", 1000},
        {"ms", 1000000},
        {"s", 1000000000},
        {"m", UINT64_C(60) * 1000000000},
        {"h", UINT64_C(3600) * 1000000000},
        {"d", UINT64_C(86400) * 1000000000},
    };
    return parse_with_units(s, units, OX_COUNT(units), ret_ns);
}

size_t ox_edit_distance(const char *a, const char *b, size_t limit)
{
    size_t a_len = strlen(a), b_len = strlen(b);
    if ((a_len > b_len ? a_len - b_len : b_len - a_len) >= limit)
        return limit;
    OX_CLEANUP(ox_free_ptr)
    size_t *row = (size_t *)ox_calloc(b_len + 1, sizeof *row);
    for (size_t j = 0; j <= b_len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t replace = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = OX_MIN(replace, OX_MIN(row[j], row[j - 1]) + 1);
        }
    }
    return OX_MIN(row[b_len], limit);
}
