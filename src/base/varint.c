// varint.c - reading of protobuf's basic types, as far as it is not inline.
#include "base/varint.h"

#include "base/bytes.h"

size_t ox_varint_size(uint64_t v)
{
    return (size_t)(63 - __builtin_clzll(v | 1)) / 7 + 1;
}

// Joins the seven-bit groups of eight bytes.
static uint64_t varint_pack(uint64_t w)
{
    w = (w & UINT64_C(0x7f007f007f007f00)) >> 1 | (w & UINT64_C(0x007f007f007f007f));
    w = (w & UINT64_C(0x3fff00003fff0000)) >> 2 | (w & UINT64_C(0x00003fff00003fff));
    return (w & UINT64_C(0x0fffffff00000000)) >> 4 | (w & UINT64_C(0x000000000fffffff));
}

// Up to eight bytes as a little-endian number: four or more are read in two loads that overlap.
static uint64_t varint_load(const uint8_t *p, size_t left)
{
    if (left >= 8)
        return ox_get_le64(p);
    return ox_get_le32(p) | (uint64_t)ox_get_le32(p + left - 4) << (8 * (left - 4));
}

// The rest of a varint from its byte i on, one after another.
static size_t varint_get_rest(const uint8_t *p, size_t left, size_t i, uint64_t v, uint64_t *ret_v)
{
    for (; i < OX_VARINT_BYTES_MAX && i < left; i++) {
        v |= (uint64_t)(p[i] & 0x7f) << (7 * i);
        if (p[i] < 0x80) {
            *ret_v = v;
            return i + 1;
        }
    }
    return 0;
}

size_t ox_varint_get_long(const uint8_t *p, const uint8_t *end, uint64_t *ret_v)
{
    size_t left = p < end ? (size_t)(end - p) : 0;
    if (left < 4)
        return varint_get_rest(p, left, 0, 0, ret_v);
    uint64_t w = varint_load(p, left), ends = ~w & UINT64_C(0x8080808080808080);
    if (!ends)
        return varint_get_rest(p, left, 8, varint_pack(w), ret_v);
    size_t n = (size_t)__builtin_ctzll(ends) / 8 + 1;
    if (n > left)
        return 0;
    *ret_v = varint_pack(w & (ends ^ (ends - 1)));
    return n;
}

static inline int pb_varint(const uint8_t **p, const uint8_t *end, uint64_t *ret_v)
{
    const uint8_t *at = *p;
    if (at < end && *at < 0x80) {
        *ret_v = *at;
        *p = at + 1;
        return 1;
    }
    size_t n = ox_varint_get(*p, end, ret_v);
    *p += n;
    return n ? 1 : -1;
}

static int pb_fixed(const uint8_t **p, const uint8_t *end, size_t bytes, uint64_t *ret_v)
{
    if ((size_t)(end - *p) < bytes)
        return -1;
    *ret_v = bytes == 8 ? ox_get_le64(*p) : ox_get_le32(*p);
    *p += bytes;
    return 1;
}

static int pb_bytes(const uint8_t **p, const uint8_t *end, struct ox_pb_field *f)
{
    uint64_t len;
    if (pb_varint(p, end, &len) < 0 || len > (size_t)(end - *p))
        return -1;
    f->data = *p;
    f->len = (size_t)len;
    *p += len;
    return 1;
}

int ox_pb_next(const uint8_t **p, const uint8_t *end, struct ox_pb_field *ret_field)
{
    if (*p == end)
        return 0;
    uint64_t tag;
    if (pb_varint(p, end, &tag) < 0 || tag > UINT32_MAX || tag >> 3 == 0)
        return -1;
    *ret_field = (struct ox_pb_field){.number = (uint32_t)(tag >> 3), .wire_type = (uint32_t)(tag & 7)};
    switch (ret_field->wire_type) {
    case 0: return pb_varint(p, end, &ret_field->value);
    case 1: return pb_fixed(p, end, 8, &ret_field->value);
    case 2: return pb_bytes(p, end, ret_field);
    case 5: return pb_fixed(p, end, 4, &ret_field->value);
    default: return -1;
    }
}
