// names.c - the encodings of names in paths, and UTF-8.
#include <string.h>

#include "base/str.h"

static bool name_plain(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr(".-*_", c));
}

void ox_name_encode(struct ox_str *out, const char *name)
{
    for (const char *p = name; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (name_plain(c))
            ox_str_add(out, p, 1);
        else if (c == ' ')
            ox_str_add(out, "+", 1);
        else
            ox_str_addf(out, "%%%02X", c);
    }
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

// The byte behind a '%' at p[0]; -1 if it is broken or zero.
static int percent_byte(const char *p, const char *end)
{
    if (end - p < 3)
        return -1;
    int high = hex_digit(p[1]), low = hex_digit(p[2]);
    int byte = high * 16 + low;
    return high < 0 || low < 0 || byte == 0 ? -1 : byte;
}

static enum ox_err name_unescape(struct ox_str *out, const char *p, size_t len, char plus)
{
    size_t before = out->len;
    for (const char *end = p + len; p < end; p++) {
        char c = *p == '+' ? plus : *p;
        if (*p == '%') {
            int byte = percent_byte(p, end);
            if (byte < 0) {
                ox_str_truncate(out, before);
                return OX_E_INVALID;
            }
            c = (char)byte;
            p += 2;
        }
        ox_str_add(out, &c, 1);
    }
    return OX_OK;
}

enum ox_err ox_name_decode(struct ox_str *out, const char *encoded)
{
    return name_unescape(out, encoded, strlen(encoded), ' ');
}

enum ox_err ox_percent_decode(struct ox_str *out, const char *encoded, size_t len)
{
    return memchr(encoded, 0, len) ? OX_E_INVALID : name_unescape(out, encoded, len, '+');
}

// Bytes of the sequence that a first byte opens, and the smallest code point it may encode; 0 if it cannot open one.
static size_t utf8_opens(unsigned char c, uint32_t *ret_least, uint32_t *ret_bits)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
    *ret_least = least[n];
    *ret_bits = n == 1 ? c : c & (0x7fu >> n);
    return n;
}

bool ox_utf8_valid(const char *s, size_t len)
{
    for (size_t i = 0; i < len;) {
        uint32_t least, point;
        size_t n = utf8_opens((unsigned char)s[i], &least, &point);
        if (n == 0 || n > len - i)
            return false;
        for (size_t k = 1; k < n; k++) {
            unsigned char c = (unsigned char)s[i + k];
            if ((c & 0xc0) != 0x80)
                return false;
            point = point << 6 | (c & 0x3f);
        }
        if (point < least || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
            return false;
        i += n;
    }
    return true;
}
