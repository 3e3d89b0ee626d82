// varint.h - protobuf's variable-length integers and a field walker that trusts nothing.
#ifndef BASE_VARINT_H
#define BASE_VARINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OX_VARINT_BYTES_MAX 10

// Writes v at p (room for OX_VARINT_BYTES_MAX); returns the bytes written.
size_t ox_varint_put(uint8_t *p, uint64_t v);
// How many bytes v takes.
size_t ox_varint_size(uint64_t v);
// Reads at p, not beyond end; returns the bytes read, 0 if truncated or longer than ten bytes.
size_t ox_varint_get(const uint8_t *p, const uint8_t *end, uint64_t *ret_v);

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

#endif
