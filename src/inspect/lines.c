// lines.c - the pieces that output lines are made of.
#include <string.h>

#include "inspect/inspect_int.h"

// Bytes of the UTF-8 character at s, 0 if it is broken.
static size_t line_char_bytes(const char *s)
{
    size_t max = strlen(s);
    for (size_t n = 1; n <= 4 && n <= max; n++)
        if (ox_utf8_valid(s, n))
            return n;
    return 0;
}

void line_string(struct ox_str *out, const char *text)
{
    ox_str_adds(out, "\"");
    while (*text) {
        size_t n = line_char_bytes(text);
        if (n == 0)
            ox_str_adds(out, "\xEF\xBF\xBD");
        else if (*text == '"' || *text == '\\')
            ox_str_addf(out, "\\%c", *text);
        else if ((unsigned char)*text < 0x20 || *text == 0x7F)
            ox_str_addf(out, "\\u%04x", (unsigned char)*text);
        else
            ox_str_add(out, text, n);
        text += n ? n : 1;
    }
    ox_str_adds(out, "\"");
}

void line_hex(struct ox_str *out, struct ox_buf bytes)
{
    static const char digits[] = "0123456789abcdef";
    ox_str_adds(out, "\"");
    char *to = ox_str_reserve(out, 2 * bytes.len);
    for (size_t i = 0; i < bytes.len; i++) {
        to[2 * i] = digits[bytes.data[i] >> 4];
        to[2 * i + 1] = digits[bytes.data[i] & 15];
    }
    ox_str_grew(out, 2 * bytes.len);
    ox_str_adds(out, "\"");
}

void line_kv(struct ox_str *out, const struct ox_kv *kv)
{
    ox_str_adds(out, "{");
    for (size_t i = 0; i < kv->count; i++) {
        ox_str_adds(out, i ? "," : "");
        line_string(out, kv->pairs[i].key);
        ox_str_adds(out, ":");
        line_string(out, kv->pairs[i].value);
    }
    ox_str_adds(out, "}");
}

void line_emit(struct inspect *i, struct ox_str *line)
{
    ox_str_adds(line, "\n");
    i->line(i, ox_str_get(line), line->len);
    ox_str_truncate(line, 0);
}
