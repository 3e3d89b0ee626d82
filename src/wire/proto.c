// proto.c - unpacking that checks nesting and strings before it lets protobuf-c recurse.
#include "wire/proto.h"

#include <string.h>

#include "base/assert.h"
#include "base/str.h"
#include "base/varint.h"

static bool proto_string_valid(const struct ox_pb_field *f)
{
    return f->len == 0 || (memchr(f->data, 0, f->len) == NULL && ox_utf8_valid((const char *)f->data, f->len));
}

static bool proto_valid(const ProtobufCMessageDescriptor *type, const uint8_t *p, const uint8_t *end, int depth)
{
    struct ox_pb_field f;
    int more;
    while ((more = ox_pb_next(&p, end, &f)) > 0) {
        const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(type, f.number);
        if (field == NULL || f.wire_type != 2)
            continue;
        if (field->type == PROTOBUF_C_TYPE_STRING && !proto_string_valid(&f))
            return false;
        if (field->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        const ProtobufCMessageDescriptor *inner = (const ProtobufCMessageDescriptor *)field->descriptor;
        if (depth == OX_PROTO_DEPTH_MAX || !proto_valid(inner, f.data, f.data + f.len, depth + 1))
            return false;
    }
    return more == 0;
}

enum ox_err ox_proto_unpack(const ProtobufCMessageDescriptor *type, struct ox_arena *arena, const void *data,
                            size_t len, void *ret_message)
{
    static const uint8_t nothing[1];
    const uint8_t *p = len ? (const uint8_t *)data : nothing;
    if (!proto_valid(type, p, p + len, 1))
        return OX_E_MALFORMED;
    ProtobufCMessage *message = protobuf_c_message_unpack(type, &arena->allocator, len, p);
    if (message == NULL)
        return arena->over ? OX_E_TOO_BIG : OX_E_MALFORMED;
    memcpy(ret_message, &message, sizeof message);
    return OX_OK;
}

struct ox_buf ox_proto_pack(const ProtobufCMessage *message)
{
    uint8_t *to;
    size_t size = protobuf_c_message_get_packed_size(message);
    if (size == 0)
        return ox_buf_empty();
    struct ox_buf buf = ox_buf_new(size, &to);
    OX_ASSERT(protobuf_c_message_pack(message, to) == size);
    return buf;
}
