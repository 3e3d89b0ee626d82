// mldata.c - records of managed ledgers: the outer form, then protobuf.
#include "wire/mldata.h"

#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/limits.h"
#include "base/varint.h"
#include "wire/compress.h"

#define RECORD_HEAD_BYTES 6

// The two fields of a record's header.
struct record_head {
    uint64_t type, size;
};

static enum ox_err record_head_read(const uint8_t *p, size_t len, struct record_head *ret)
{
    const uint8_t *end = p + len;
    struct ox_pb_field f;
    uint32_t seen = 0;
    int more;
    while ((more = ox_pb_next(&p, end, &f)) > 0) {
        if (f.number > 2)
            continue;
        if (f.wire_type != 0)
            return OX_E_CORRUPT;
        seen |= f.number;
        *(f.number == 1 ? &ret->type : &ret->size) = f.value;
    }
    return more < 0 || seen != 3 || ret->size > INT32_MAX || ret->type > INT32_MAX ? OX_E_CORRUPT : OX_OK;
}

static enum ox_err record_guarded(struct ox_buf record, size_t from, size_t size, struct ox_buf *ret)
{
    if (record.len - from != size)
        return OX_E_CORRUPT;
    *ret = ox_buf_sub(record, from, size);
    return OX_OK;
}

enum ox_err ox_record_open(struct ox_buf record, size_t bytes_max, struct ox_buf *ret_plain, enum ox_record_form *ret_form)
{
    *ret_form = OX_RECORD_PLAIN;
    if (record.len < 2 || ox_get_be16(record.data) != OX_RECORD_MAGIC) {
        if (record.len > bytes_max)
            return OX_E_TOO_BIG;
        *ret_plain = ox_buf_ref(record);
        return OX_OK;
    }
    size_t head_len = record.len < RECORD_HEAD_BYTES ? SIZE_MAX : ox_get_be32(record.data + 2);
    if (record.len < RECORD_HEAD_BYTES || head_len > record.len - RECORD_HEAD_BYTES)
        return OX_E_CORRUPT;
    struct record_head head = {0};
    enum ox_err err = record_head_read(record.data + RECORD_HEAD_BYTES, head_len, &head);
    if (!err && head.size > bytes_max)
        err = OX_E_TOO_BIG;
    if (err)
        return err;
    size_t from = RECORD_HEAD_BYTES + head_len;
    *ret_form = head.type == OX_RECORD_TYPE_GUARDED ? OX_RECORD_GUARDED : OX_RECORD_COMPRESSED;
    if (*ret_form == OX_RECORD_GUARDED)
        return record_guarded(record, from, head.size, ret_plain);
    err = ox_decompress((uint32_t)head.type, record.data + from, record.len - from, head.size, bytes_max, ret_plain);
    return err == OX_E_MALFORMED ? OX_E_CORRUPT : err;
}

struct ox_buf ox_record_close(struct ox_buf plain, enum ox_record_form form)
{
    OX_ASSERT(form != OX_RECORD_COMPRESSED && plain.len <= INT32_MAX);
    if (form == OX_RECORD_PLAIN)
        return ox_buf_ref(plain);
    uint8_t head[RECORD_HEAD_BYTES + 2 * (1 + OX_VARINT_BYTES_MAX)], *at = head + RECORD_HEAD_BYTES;
    *at++ = 1 << 3;
    at += ox_varint_put(at, OX_RECORD_TYPE_GUARDED);
    *at++ = 2 << 3;
    at += ox_varint_put(at, plain.len);
    ox_put_be16(head, OX_RECORD_MAGIC);
    ox_put_be32(head + 2, (uint32_t)(at - head - RECORD_HEAD_BYTES));
    struct ox_buf parts[] = {ox_buf_static(head, (size_t)(at - head)), plain};
    return ox_buf_join(parts, 2);
}

static enum ox_err record_decode(const ProtobufCMessageDescriptor *type, struct ox_arena *arena, struct ox_buf record,
                                 void *ret, enum ox_record_form *ret_form)
{
    struct ox_buf plain;
    enum ox_record_form form;
    enum ox_err err = ox_record_open(record, OX_NODE_VALUE_BYTES_MAX, &plain, &form);
    if (err)
        return err;
    err = ox_proto_unpack(type, arena, plain.data, plain.len, ret);
    ox_buf_unref(&plain);
    if (!err && ret_form)
        *ret_form = form;
    return err == OX_E_MALFORMED ? OX_E_CORRUPT : err;
}

enum ox_err ox_ledgers_decode(struct ox_arena *arena, struct ox_buf node, Mldata__ManagedLedgerInfo **ret,
                              enum ox_record_form *ret_form)
{
    return record_decode(&mldata__managed_ledger_info__descriptor, arena, node, ret, ret_form);
}

enum ox_err ox_cursor_decode(struct ox_arena *arena, struct ox_buf node, Mldata__ManagedCursorInfo **ret,
                             enum ox_record_form *ret_form)
{
    return record_decode(&mldata__managed_cursor_info__descriptor, arena, node, ret, ret_form);
}

enum ox_err ox_position_decode(struct ox_arena *arena, struct ox_buf entry, Mldata__PositionInfo **ret)
{
    enum ox_err err = ox_proto_unpack(&mldata__position_info__descriptor, arena, entry.data, entry.len, ret);
    return err == OX_E_MALFORMED ? OX_E_CORRUPT : err;
}

static struct ox_buf record_encode(const ProtobufCMessage *message, enum ox_record_form form)
{
    struct ox_buf plain = ox_proto_pack(message);
    struct ox_buf record = ox_record_close(plain, form);
    ox_buf_unref(&plain);
    return record;
}

struct ox_buf ox_ledgers_encode(const Mldata__ManagedLedgerInfo *info, enum ox_record_form form)
{
    return record_encode(&info->base, form);
}

struct ox_buf ox_cursor_encode(const Mldata__ManagedCursorInfo *info, enum ox_record_form form)
{
    return record_encode(&info->base, form);
}

struct ox_buf ox_position_encode(const Mldata__PositionInfo *info)
{
    return ox_proto_pack(&info->base);
}
