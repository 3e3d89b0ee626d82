// message_view.c - taking entries apart: the broker's part, checksum, metadata, payload.
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/varint.h"
#include "wire/pulsar_frame.h"

size_t ox_broker_entry_put(uint8_t *p, const struct ox_broker_entry *e)
{
    uint8_t *at = p + 6;
    if (e->has_timestamp) {
        *at++ = 1 << 3;
        at += ox_varint_put(at, e->timestamp_ms);
    }
    if (e->has_index) {
        *at++ = 2 << 3;
        at += ox_varint_put(at, e->index);
    }
    ox_put_be16(p, OX_MAGIC_BROKER_ENTRY);
    ox_put_be32(p + 2, (uint32_t)(at - p - 6));
    return (size_t)(at - p);
}

static enum ox_err broker_entry_read(const uint8_t *p, const uint8_t *end, struct ox_broker_entry *ret)
{
    struct ox_pb_field f;
    int more;
    while ((more = ox_pb_next(&p, end, &f)) > 0) {
        if ((f.number == 1 || f.number == 2) && f.wire_type != 0)
            return OX_E_MALFORMED;
        if (f.number == 1) {
            ret->has_timestamp = true;
            ret->timestamp_ms = f.value;
        } else if (f.number == 2) {
            ret->has_index = true;
            ret->index = f.value;
        }
    }
    return more < 0 ? OX_E_MALFORMED : OX_OK;
}

static struct ox_buf view_from(struct ox_buf buf, size_t from)
{
    return (struct ox_buf){buf.slab, buf.data + from, buf.len - from};
}

static bool view_has_magic(struct ox_buf buf, uint16_t magic)
{
    return buf.len >= 2 && ox_get_be16(buf.data) == magic;
}

// Reads the broker's part at the front of *rest and moves *rest behind it.
static enum ox_err view_broker_entry(struct ox_buf *rest, struct ox_message_view *v)
{
    v->has_broker_entry = true;
    size_t len = rest->len < 6 ? SIZE_MAX : ox_get_be32(rest->data + 2);
    if (rest->len < 6 || len > rest->len - 6)
        return OX_E_MALFORMED;
    enum ox_err err = broker_entry_read(rest->data + 6, rest->data + 6 + len, &v->broker_entry);
    *rest = view_from(*rest, 6 + len);
    return err;
}

static enum ox_err view_checksum(struct ox_buf *rest, bool verify, struct ox_message_view *v)
{
    v->has_checksum = view_has_magic(*rest, OX_MAGIC_CHECKSUM);
    v->checksum = 0;
    if (!v->has_checksum)
        return OX_OK;
    if (rest->len < OX_CHECKSUM_HEAD_BYTES)
        return OX_E_MALFORMED;
    v->checksum = ox_get_be32(rest->data + 2);
    *rest = view_from(*rest, OX_CHECKSUM_HEAD_BYTES);
    return verify && ox_crc32c(0, rest->data, rest->len) != v->checksum ? OX_E_CHECKSUM : OX_OK;
}

enum ox_err ox_message_parse(struct ox_buf body, bool verify, struct ox_message_view *ret_view)
{
    struct ox_message_view v;
    struct ox_buf rest = body;
    v.has_broker_entry = false;
    v.broker_entry = (struct ox_broker_entry){0};
    enum ox_err err = view_has_magic(rest, OX_MAGIC_BROKER_ENTRY) ? view_broker_entry(&rest, &v) : OX_OK;
    v.entry = rest;
    if (!err)
        err = view_checksum(&rest, verify, &v);
    v.plain = rest;
    if (err)
        return err;
    size_t len = rest.len < 4 ? SIZE_MAX : ox_get_be32(rest.data);
    if (rest.len < 4 || len > rest.len - 4)
        return OX_E_MALFORMED;
    v.metadata = (struct ox_buf){rest.slab, rest.data + 4, len};
    v.payload = view_from(rest, 4 + len);
    *ret_view = v;
    return OX_OK;
}
