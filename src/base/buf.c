// buf.c - slabs and the slices that share them.
#include "base/buf.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

struct ox_slab *ox_slab_new(size_t size)
{
    struct ox_slab *slab = (struct ox_slab *)ox_malloc_raw(sizeof *slab + size);
    *slab = (struct ox_slab){.refs = 1, .size = size};
    return slab;
}

void ox_slab_free(struct ox_slab *slab)
{
    OX_ASSERT(slab->refs == 0);
    ox_free(slab);
}

struct ox_buf ox_buf_new(size_t len, uint8_t **ret_data)
{
    struct ox_slab *slab = ox_slab_new(len);
    *ret_data = slab->data;
    return (struct ox_buf){slab, slab->data, len};
}

struct ox_buf ox_buf_copy(const void *data, size_t len)
{
    if (len == 0)
        return ox_buf_empty();
    uint8_t *to;
    struct ox_buf buf = ox_buf_new(len, &to);
    memcpy(to, data, len);
    return buf;
}

struct ox_buf ox_buf_sub(struct ox_buf buf, size_t from, size_t len)
{
    OX_ASSERT(from <= buf.len && len <= buf.len - from);
    if (len == 0)
        return ox_buf_empty();
    return ox_buf_ref((struct ox_buf){buf.slab, buf.data + from, len});
}

bool ox_buf_equal(struct ox_buf a, struct ox_buf b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

struct ox_buf ox_buf_compact(struct ox_buf give_buf)
{
    if (give_buf.slab == NULL || give_buf.len >= give_buf.slab->size / 4)
        return give_buf;
    struct ox_buf copy = ox_buf_copy(give_buf.data, give_buf.len);
    ox_buf_unref(&give_buf);
    return copy;
}

struct ox_buf ox_buf_join(const struct ox_buf *parts, size_t n)
{
    if (n == 1)
        return ox_buf_ref(parts[0]);
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        len += parts[i].len;
    if (len == 0)
        return ox_buf_empty();
    uint8_t *to;
    struct ox_buf joined = ox_buf_new(len, &to);
    for (size_t i = 0; i < n; i++) {
        if (parts[i].len)
            memcpy(to, parts[i].data, parts[i].len);
        to += parts[i].len;
    }
    return joined;
}
