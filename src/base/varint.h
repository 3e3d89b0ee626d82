// varint.h - protobuf's variable-length integers and a field walker that trusts nothing.
#ifndef BASE_VARINT_H
#define BASE_VARINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OX_VARINT_BYTES_MAX 10

// Writes v at p (room for OX_VARINT_BYTES_MAX); returns the bytes written.
static inline size_t ox_varint_put(uint8_t *p, uint64_t v)
{
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        p[n++] = (uint8_t)(v | 0x80);
    p[n++] = (uint8_t)v;
    return n;
}
// How many bytes v takes.
size_t ox_varint_size(uint64_t v);
// ox_varint_get where the first byte does not end it, eight bytes at once if there are so many.
size_t ox_varint_get_long(const uint8_t *p, const uint8_t *end, uint64_t *ret_v);
// Reads at p, not beyond end; returns the bytes read, 0 if truncated or longer than ten bytes.
static inline size_t ox_varint_get(const uint8_t *p, const uint8_t *end, uint64_t *ret_v)
{
    if (p < end && *p < 0x80) {
        *ret_v = *p;
        return 1;
    }
    return ox_varint_get_long(p, end, ret_v);
}

// One field of a protobuf message.
struct ox_pb_field {
    uint32_t number;     // field number
    uint32_t wire_type;  // 0 varint, 1 fixed64, 2 bytes, 5 fixed32
    uint64_t value;      // of wire types 0, 1, 5
    const uint8_t *data; // of wire type 2
    size_t len;          // of wire type 2
};

// Reads the field at *p and moves *p behind it. 1 = a field, 0 = the end, -1 = malformed (groups included).
int ox_pb_next(const uint8_t **p, const uint8_t *end, struct ox_pb_field *ret_field);

// ox_pb_next for hot paths: inline for integers and bytes with a number below 16 and a length below 128. `data` of an integer and `value` of bytes are not set.
static inline int ox_pb_step(const uint8_t **p, const uint8_t *end, struct ox_pb_field *ret_field)
{
    const uint8_t *at = *p;
    if (end - at < 2 || (at[0] & 0x85) || at[0] < 8)
        return ox_pb_next(p, end, ret_field);
    ret_field->number = at[0] >> 3;
    ret_field->wire_type = at[0] & 7;
    if (ret_field->wire_type == 0) {
        size_t n = ox_varint_get(at + 1, end, &ret_field->value);
        *p = at + 1 + n;
        return n ? 1 : -1;
    }
    if (at[1] >= 0x80 || at[1] > end - at - 2)
        return ox_pb_next(p, end, ret_field);
    ret_field->data = at + 2;
    ret_field->len = at[1];
    *p = at + 2 + at[1];
    return 1;
}

#endif
