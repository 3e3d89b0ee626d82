// varint.c - reading and writing of protobuf's basic types.
#include "base/varint.h"

#include "base/bytes.h"

size_t ox_varint_put(uint8_t *p, uint64_t v)
{
    size_t n = 0;
    while (v >= 0x80) {
        p[n++] = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    p[n++] = (uint8_t)v;
    return n;
}

size_t ox_varint_size(uint64_t v)
{
    return (size_t)(63 - __builtin_clzll(v | 1)) / 7 + 1;
}

size_t ox_varint_get(const uint8_t *p, const uint8_t *end, uint64_t *ret_v)
{
    if (p < end && *p < 0x80) {
        *ret_v = *p;
        return 1;
    }
    uint64_t v = 0;
    for (size_t i = 0; i < OX_VARINT_BYTES_MAX && p + i < end; i++) {
        v |= (uint64_t)(p[i] & 0x7f) << (7 * i);
        if (p[i] < 0x80) {
            *ret_v = v;
            return i + 1;
        }
    }
    return 0;
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
