// buf.h - reference-counted slices of memory: bytes are read from a socket once and shared from then on.
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"

#define OX_SLAB_BYTES (64u * 1024u)

// A block of memory that slices share. Belongs to the loop thread; jobs may read bytes of slices they were given.
struct ox_slab {
    uint32_t refs;   // private
    uint32_t used;   // bytes handed out from the start by ox_slab users that fill it front to back; theirs to keep
    size_t size;     // read-only: bytes of data
    uint32_t cached; // for a cache of slices: how many of them it holds; theirs to keep
    uint8_t data[];  // the bytes
};

// A new slab of `size` bytes with one reference.
struct ox_slab *ox_slab_new(size_t size);
// Frees a slab that nobody holds (asserted).
void ox_slab_free(struct ox_slab *slab);
// One more reference.
static inline struct ox_slab *ox_slab_ref(struct ox_slab *slab)
{
    OX_ASSERT(slab->refs > 0 && slab->refs < UINT32_MAX);
    slab->refs++;
    return slab;
}
// One reference less; the last one frees.
static inline void ox_slab_unref(struct ox_slab *slab)
{
    OX_ASSERT(slab->refs > 0);
    if (--slab->refs == 0)
        ox_slab_free(slab);
}

// A slice. A value: copy it freely, but each copy that outlives its source needs its own reference (ox_buf_ref). The empty slice has slab NULL.
struct ox_buf {
    struct ox_slab *slab; // NULL: empty, or bytes that outlive everybody (ox_buf_static)
    const uint8_t *data;
    size_t len; // bytes
};

// The empty slice.
static inline struct ox_buf ox_buf_empty(void)
{
    return (struct ox_buf){0};
}
// A slice of bytes that outlive it; not counted.
static inline struct ox_buf ox_buf_static(const void *data, size_t len)
{
    return (struct ox_buf){NULL, (const uint8_t *)data, len};
}
// A slice with its own copy of the bytes; the caller owns one reference.
struct ox_buf ox_buf_copy(const void *data, size_t len);
// A new slice of len bytes, not initialised; *ret_data is where to write them. The caller owns one reference.
struct ox_buf ox_buf_new(size_t len, uint8_t **ret_data);
// The same slice with one more reference.
static inline struct ox_buf ox_buf_ref(struct ox_buf buf)
{
    if (buf.slab)
        ox_slab_ref(buf.slab);
    return buf;
}
// Gives the slice's reference back and makes it empty.
static inline void ox_buf_unref(struct ox_buf *buf)
{
    if (buf->slab)
        ox_slab_unref(buf->slab);
    *buf = ox_buf_empty();
}
// Bytes from..from+len of a slice, with a reference of its own. The range must lie inside (asserted).
struct ox_buf ox_buf_sub(struct ox_buf buf, size_t from, size_t len);
// True if both hold the same bytes.
bool ox_buf_equal(struct ox_buf a, struct ox_buf b);
// The slice itself where it uses at least a quarter of its slab, else a copy. Takes the caller's reference and returns one.
struct ox_buf ox_buf_compact(struct ox_buf give_buf);
// If `next` begins where *last ends in the same slab: makes *last cover both, gives next's reference back and returns true.
static inline bool ox_buf_extend(struct ox_buf *last, struct ox_buf next)
{
    if (last->slab == NULL || last->slab != next.slab || last->data + last->len != next.data)
        return false;
    last->len += next.len;
    ox_slab_unref(next.slab);
    return true;
}
// One slice with the bytes of n slices one after another (no copy if n is 1). References of the parts stay the caller's.
struct ox_buf ox_buf_join(const struct ox_buf *parts, size_t n);

#endif
