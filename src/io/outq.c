// outq.c - a ring of slices that is filled at one end and consumed by the byte at the other.
#include "io/outq.h"

#include "base/assert.h"
#include "base/mem.h"

static struct ox_buf *outq_at(const struct ox_outq *q, size_t i)
{
    return &q->bufs[(q->head + i) & (q->cap - 1)];
}

static void outq_grow(struct ox_outq *q)
{
    size_t cap = q->cap ? q->cap * 2 : 16;
    struct ox_buf *bufs = ox_calloc(cap, sizeof(*bufs));
    for (size_t i = 0; i < q->count; i++)
        bufs[i] = *outq_at(q, i);
    ox_free(q->bufs);
    q->bufs = bufs;
    q->cap = cap;
    q->head = 0;
}

void ox_outq_add(struct ox_outq *q, const struct ox_buf *bufs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!bufs[i].len)
            continue;
        if (q->count == q->cap)
            outq_grow(q);
        *outq_at(q, q->count++) = ox_buf_ref(bufs[i]);
        q->bytes += bufs[i].len;
    }
}

size_t ox_outq_peek(const struct ox_outq *q, struct iovec *iov, size_t max)
{
    size_t n = OX_MIN(q->count, max);
    for (size_t i = 0; i < n; i++) {
        const struct ox_buf *buf = outq_at(q, i);
        iov[i] = (struct iovec){.iov_base = (void *)(uintptr_t)buf->data, .iov_len = buf->len};
    }
    return n;
}

void ox_outq_consume(struct ox_outq *q, size_t n)
{
    OX_ASSERT(n <= q->bytes);
    q->bytes -= n;
    while (n > 0) {
        struct ox_buf *buf = outq_at(q, 0);
        if (n < buf->len) {
            buf->data += n;
            buf->len -= n;
            return;
        }
        n -= buf->len;
        ox_buf_unref(buf);
        q->head = (q->head + 1) & (q->cap - 1);
        q->count--;
    }
}

void ox_outq_fini(struct ox_outq *q)
{
    ox_outq_consume(q, q->bytes);
    ox_free(q->bufs);
    *q = (struct ox_outq){0};
}
