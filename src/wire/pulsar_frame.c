// pulsar_frame.c - the incremental frame reader.
#include "wire/pulsar_frame.h"

#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/mem.h"

// With less room than this behind the bytes of an unknown frame a new slab is begun, so that reads do not become tiny.
#define FRAME_ROOM_MIN 1024u

void ox_frame_reader_init(struct ox_frame_reader *r, size_t frame_bytes_max, size_t command_bytes_max)
{
    *r = (struct ox_frame_reader){.frame_bytes_max = frame_bytes_max, .command_bytes_max = command_bytes_max};
}

static void reader_drop(struct ox_frame_reader *r)
{
    if (r->slab)
        ox_slab_unref(r->slab);
    r->slab = NULL;
    r->start = r->end = 0;
}

void ox_frame_reader_fini(struct ox_frame_reader *r)
{
    reader_drop(r);
}

void ox_frame_reader_idle(struct ox_frame_reader *r)
{
    if (r->start == r->end)
        reader_drop(r);
}

// Bytes that the frame in hand takes with its `total`; that of a head if it is not known yet or above the limit.
static size_t reader_need(const struct ox_frame_reader *r)
{
    if (r->end - r->start < 4)
        return OX_FRAME_HEAD_BYTES;
    size_t total = ox_get_be32(r->slab->data + r->start);
    return total > r->frame_bytes_max ? OX_FRAME_HEAD_BYTES : total + 4;
}

static bool reader_has_room(const struct ox_frame_reader *r, size_t need)
{
    if (r->slab == NULL || r->end == r->slab->size || r->start + need > r->slab->size)
        return false;
    return r->end - r->start >= 4 || r->slab->size - r->end >= FRAME_ROOM_MIN;
}

// Moves the bytes in hand to the front of a slab in which the frame fits: the same one if nobody else holds it.
static void reader_move(struct ox_frame_reader *r, size_t need)
{
    size_t pending = r->end - r->start;
    size_t size = OX_MAX((size_t)OX_SLAB_BYTES, OX_MAX(need, pending + FRAME_ROOM_MIN));
    if (r->slab && r->slab->refs == 1 && r->slab->size == size) {
        memmove(r->slab->data, r->slab->data + r->start, pending);
    } else {
        struct ox_slab *slab = ox_slab_new(size);
        if (pending)
            memcpy(slab->data, r->slab->data + r->start, pending);
        reader_drop(r);
        r->slab = slab;
    }
    r->start = 0;
    r->end = pending;
}

void ox_frame_reader_space(struct ox_frame_reader *r, uint8_t **ret_data, size_t *ret_len)
{
    size_t need = reader_need(r);
    bool is_fresh = r->start == r->end && r->start > 0 && r->slab->refs == 1;
    if (is_fresh || !reader_has_room(r, need))
        reader_move(r, need);
    *ret_data = r->slab->data + r->end;
    *ret_len = r->slab->size - r->end;
}

void ox_frame_reader_filled(struct ox_frame_reader *r, size_t n)
{
    OX_ASSERT(r->slab && n <= r->slab->size - r->end);
    r->end += n;
}

// Judges a frame by as much of its head as is there.
static enum ox_err reader_check(const struct ox_frame_reader *r, size_t total)
{
    if (total < 4)
        return OX_E_MALFORMED;
    if (total > r->frame_bytes_max)
        return OX_E_TOO_BIG;
    if (r->end - r->start < OX_FRAME_HEAD_BYTES)
        return OX_OK;
    size_t command = ox_get_be32(r->slab->data + r->start + 4);
    if (command > total - 4)
        return OX_E_MALFORMED;
    return command > r->command_bytes_max ? OX_E_TOO_BIG : OX_OK;
}

enum ox_err ox_frame_reader_next(struct ox_frame_reader *r, struct ox_buf *ret_frame)
{
    size_t there = r->end - r->start;
    *ret_frame = ox_buf_empty();
    if (there < 4)
        return OX_OK;
    size_t total = ox_get_be32(r->slab->data + r->start);
    enum ox_err err = reader_check(r, total);
    if (err || there < total + 4)
        return err;
    *ret_frame = (struct ox_buf){ox_slab_ref(r->slab), r->slab->data + r->start + 4, total};
    r->start += total + 4;
    return OX_OK;
}
