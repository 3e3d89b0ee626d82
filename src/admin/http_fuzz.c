// http_fuzz.c - heads and chunked bodies of any bytes, whole and in two pieces: both are read alike, and nothing is read behind them.
#include <string.h>

#include "admin/http.h"
#include "base/assert.h"
#include "base/mem.h"
#include "fuzz.h"

#define BODY_MAX 4096u

static void fuzz_head(const char *data, size_t len)
{
    struct http_head head;
    size_t scanned = 0, again = 0;
    size_t end = http_head_end(data, len, &scanned);
    if (len > 1)
        (void)http_head_end(data, len / 2, &again);
    OX_ASSERT(http_head_end(data, len, &again) == end || end <= len / 2);
    if (!end)
        return;
    char *text = (char *)ox_malloc_raw(end + 1);
    memcpy(text, data, end);
    text[end] = 0;
    http_head_parse(&head, text, end);
    OX_ASSERT((head.status == 0) == (head.why == NULL));
    if (head.status == 0) {
        size_t value_len;
        OX_ASSERT(head.method && (*head.path == '/' || strcmp(head.path, "*") == 0) && !(head.chunked && head.has_length));
        const char *value = http_query_find(head.query, "a", &value_len);
        OX_ASSERT(!value || strlen(value) >= value_len);
    }
    ox_free(text);
}

static enum http_part fuzz_chunks(const char *data, size_t len, size_t first, struct ox_str *body)
{
    struct http_chunks c = {0};
    size_t used;
    enum http_part part = http_chunks_take(&c, data, first, &used, body, BODY_MAX);
    if (part == HTTP_PART_MORE)
        part = http_chunks_take(&c, data + first, len - first, &used, body, BODY_MAX);
    OX_ASSERT(body->len <= BODY_MAX);
    return part;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ox_str whole = {0}, pieces = {0};
    const char *text = (const char *)data;
    fuzz_head(text, size);
    enum http_part part = fuzz_chunks(text, size, size, &whole);
    OX_ASSERT(fuzz_chunks(text, size, size / 2, &pieces) == part);
    if (part == HTTP_PART_MORE || part == HTTP_PART_DONE)
        OX_ASSERT(whole.len == pieces.len && (!whole.len || memcmp(whole.data, pieces.data, whole.len) == 0));
    ox_str_fini(&whole);
    ox_str_fini(&pieces);
    return 0;
}
