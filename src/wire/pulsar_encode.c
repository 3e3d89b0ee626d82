// pulsar_encode.c - writing frames: frequent answers by hand into shared slabs, the rest through protobuf.
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "base/varint.h"
#include "wire/pulsar_command.h"
#include "wire/pulsar_frame.h"

#define ENCODE_SLAB_BYTES (8u * 1024u)
#define ENCODE_TEXT_BYTES_MAX 1000u
// Room for an envelope: sizes, type, tag and length of the sub-message.
#define ENCODE_ENVELOPE_BYTES (OX_FRAME_HEAD_BYTES + 2 + 2 + 5)
#define ENCODE_VARINT_FIELD_BYTES (1 + OX_VARINT_BYTES_MAX)
#define ENCODE_ID_BYTES (6 * ENCODE_VARINT_FIELD_BYTES)

void ox_encoder_fini(struct ox_encoder *e)
{
    if (e->slab)
        ox_slab_unref(e->slab);
    e->slab = NULL;
}

// Where the next `room` bytes go.
static uint8_t *encoder_room(struct ox_encoder *e, size_t room)
{
    if (e->slab && e->slab->refs == 1)
        e->slab->used = 0;
    if (e->slab == NULL || e->slab->size - e->slab->used < room) {
        ox_encoder_fini(e);
        e->slab = ox_slab_new(OX_MAX((size_t)ENCODE_SLAB_BYTES, room));
    }
    return e->slab->data + e->slab->used;
}

static inline uint8_t *put_varint(uint8_t *p, uint32_t number, uint64_t value)
{
    p += ox_varint_put(p, number << 3);
    return p + ox_varint_put(p, value);
}

static uint8_t *put_bytes(uint8_t *p, uint32_t number, const void *data, size_t len)
{
    p += ox_varint_put(p, number << 3 | 2);
    p += ox_varint_put(p, len);
    if (len)
        memcpy(p, data, len);
    return p + len;
}

static uint8_t *put_text(uint8_t *p, uint32_t number, const char *text)
{
    size_t len = strnlen(text, ENCODE_TEXT_BYTES_MAX);
    while (len && text[len] && ((unsigned char)text[len] & 0xc0) == 0x80)
        len--; // not within a UTF-8 sequence
    return put_bytes(p, number, text, len);
}

static uint8_t *put_id_fields(uint8_t *at, const struct ox_message_id *id)
{
    at = put_varint(at, 1, (uint64_t)id->ledger);
    at = put_varint(at, 2, (uint64_t)id->entry);
    if (id->partition != -1)
        at = put_varint(at, 3, (uint64_t)(int64_t)id->partition);
    if (id->batch_index != -1)
        at = put_varint(at, 4, (uint64_t)(int64_t)id->batch_index);
    if (id->batch_size != 0)
        at = put_varint(at, 6, (uint64_t)(int64_t)id->batch_size);
    return at;
}

static uint8_t *put_id(uint8_t *p, uint32_t number, const struct ox_message_id *id)
{
    uint8_t bytes[ENCODE_ID_BYTES];
    return put_bytes(p, number, bytes, (size_t)(put_id_fields(bytes, id) - bytes));
}

// Writes sizes, type and the head of the sub-message at p; returns where the sub-message goes.
static uint8_t *put_envelope(uint8_t *p, uint32_t type, size_t sub_len, size_t body_len)
{
    uint8_t *at = p + OX_FRAME_HEAD_BYTES;
    at = put_varint(at, 1, type);
    at += ox_varint_put(at, type << 3 | 2);
    at += ox_varint_put(at, sub_len);
    size_t command = (size_t)(at - p) - OX_FRAME_HEAD_BYTES + sub_len;
    OX_ASSERT(4 + command + body_len <= UINT32_MAX);
    ox_put_be32(p, (uint32_t)(4 + command + body_len));
    ox_put_be32(p + 4, (uint32_t)command);
    return at;
}

static struct ox_buf encoder_emit(struct ox_encoder *e, uint32_t type, const uint8_t *sub, const uint8_t *sub_end,
                                  size_t body_len)
{
    size_t sub_len = (size_t)(sub_end - sub);
    uint8_t *from = encoder_room(e, ENCODE_ENVELOPE_BYTES + sub_len);
    uint8_t *at = put_envelope(from, type, sub_len, body_len);
    memcpy(at, sub, sub_len);
    size_t len = (size_t)(at - from) + sub_len;
    e->slab->used += (uint32_t)len;
    return (struct ox_buf){ox_slab_ref(e->slab), from, len};
}

struct ox_buf ox_encode_success(struct ox_encoder *e, uint64_t request_id)
{
    uint8_t sub[ENCODE_VARINT_FIELD_BYTES];
    return encoder_emit(e, OXPB__BASE_COMMAND__TYPE__SUCCESS, sub, put_varint(sub, 1, request_id), 0);
}

struct ox_buf ox_encode_ping(struct ox_encoder *e)
{
    const uint8_t sub[1] = {0};
    return encoder_emit(e, OXPB__BASE_COMMAND__TYPE__PING, sub, sub, 0);
}

struct ox_buf ox_encode_pong(struct ox_encoder *e)
{
    const uint8_t sub[1] = {0};
    return encoder_emit(e, OXPB__BASE_COMMAND__TYPE__PONG, sub, sub, 0);
}

struct ox_buf ox_encode_error(struct ox_encoder *e, uint64_t request_id, Oxpb__ServerError error, const char *message)
{
    uint8_t sub[3 * ENCODE_VARINT_FIELD_BYTES + ENCODE_TEXT_BYTES_MAX], *at = sub;
    at = put_varint(at, 1, request_id);
    at = put_varint(at, 2, error);
    at = put_text(at, 3, message);
    return encoder_emit(e, OXPB__BASE_COMMAND__TYPE__ERROR, sub, at, 0);
}

struct ox_buf ox_encode_send_error(struct ox_encoder *e, uint64_t producer_id, uint64_t sequence_id,
                                   Oxpb__ServerError error, const char *message)
{
    uint8_t sub[4 * ENCODE_VARINT_FIELD_BYTES + ENCODE_TEXT_BYTES_MAX], *at = sub;
    at = put_varint(at, 1, producer_id);
    at = put_varint(at, 2, sequence_id);
    at = put_varint(at, 3, error);
    at = put_text(at, 4, message);
    return encoder_emit(e, OXPB__BASE_COMMAND__TYPE__SEND_ERROR, sub, at, 0);
}

// Written in place, once for each message: both lengths are below 128, one byte each that is filled in behind.
struct ox_buf ox_encode_send_receipt(struct ox_encoder *e, uint64_t producer_id, uint64_t sequence_id,
                                     uint64_t highest_sequence_id, const struct ox_message_id *id)
{
    _Static_assert(4 * ENCODE_VARINT_FIELD_BYTES + ENCODE_ID_BYTES < 128, "lengths of one byte");
    const uint32_t type = OXPB__BASE_COMMAND__TYPE__SEND_RECEIPT;
    uint8_t *from = encoder_room(e, ENCODE_ENVELOPE_BYTES + 128), *command = from + OX_FRAME_HEAD_BYTES;
    command[0] = 1 << 3;
    command[1] = (uint8_t)type;
    command[2] = (uint8_t)(type << 3 | 2);
    uint8_t *sub = command + 4, *at = put_varint(sub, 1, producer_id);
    at = put_varint(at, 2, sequence_id);
    *at++ = 3 << 3 | 2;
    uint8_t *inner = at + 1;
    at = put_id_fields(inner, id);
    inner[-1] = (uint8_t)(at - inner);
    if (highest_sequence_id)
        at = put_varint(at, 4, highest_sequence_id);
    sub[-1] = (uint8_t)(at - sub);
    size_t len = (size_t)(at - command);
    ox_put_be32(from, (uint32_t)(4 + len));
    ox_put_be32(from + 4, (uint32_t)len);
    e->slab->used += (uint32_t)(OX_FRAME_HEAD_BYTES + len);
    return (struct ox_buf){ox_slab_ref(e->slab), from, OX_FRAME_HEAD_BYTES + len};
}

struct ox_buf ox_encode_ack_response(struct ox_encoder *e, const struct ox_ack_answer *answer)
{
    uint8_t sub[6 * ENCODE_VARINT_FIELD_BYTES + ENCODE_TEXT_BYTES_MAX], *at = sub;
    at = put_varint(at, 1, answer->consumer_id);
    if (answer->txn_least || answer->txn_most) {
        at = put_varint(at, 2, answer->txn_least);
        at = put_varint(at, 3, answer->txn_most);
    }
    if (answer->has_error)
        at = put_varint(at, 4, answer->error);
    if (answer->message)
        at = put_text(at, 5, answer->message);
    at = put_varint(at, 6, answer->request_id);
    return encoder_emit(e, OXPB__BASE_COMMAND__TYPE__ACK_RESPONSE, sub, at, 0);
}

struct ox_buf ox_encode_flow(struct ox_encoder *e, uint64_t consumer_id, uint32_t permits)
{
    uint8_t sub[2 * ENCODE_VARINT_FIELD_BYTES], *at = sub;
    at = put_varint(at, 1, consumer_id);
    at = put_varint(at, 2, permits);
    return encoder_emit(e, OXPB__BASE_COMMAND__TYPE__FLOW, sub, at, 0);
}

struct ox_buf ox_encode_message_head(struct ox_encoder *e, const struct ox_delivery *d, size_t entry_bytes)
{
    uint8_t sub[4 * ENCODE_VARINT_FIELD_BYTES + ENCODE_ID_BYTES + OX_ACK_SET_WORDS_MAX * ENCODE_VARINT_FIELD_BYTES];
    uint8_t *at = sub;
    OX_ASSERT(d->ack_set_words <= OX_ACK_SET_WORDS_MAX);
    at = put_varint(at, 1, d->consumer_id);
    at = put_id(at, 2, &d->id);
    if (d->redelivery_count)
        at = put_varint(at, 3, d->redelivery_count);
    for (size_t i = 0; d->ack_set && i < d->ack_set_words; i++)
        at = put_varint(at, 4, d->ack_set[i]);
    if (d->has_epoch)
        at = put_varint(at, 5, d->consumer_epoch);
    return encoder_emit(e, OXPB__BASE_COMMAND__TYPE__MESSAGE, sub, at, entry_bytes);
}

struct ox_buf ox_command_pack_sub(Oxpb__BaseCommand__Type type, const ProtobufCMessage *sub)
{
    uint8_t head[ENCODE_ENVELOPE_BYTES], *to;
    size_t sub_len = protobuf_c_message_get_packed_size(sub);
    size_t head_len = (size_t)(put_envelope(head, (uint32_t)type, sub_len, 0) - head);
    struct ox_buf frame = ox_buf_new(head_len + sub_len, &to);
    memcpy(to, head, head_len);
    OX_ASSERT(protobuf_c_message_pack(sub, to + head_len) == sub_len);
    return frame;
}

struct ox_buf ox_command_pack(const Oxpb__BaseCommand *command)
{
    uint8_t *to;
    size_t len = protobuf_c_message_get_packed_size(&command->base);
    OX_ASSERT(len <= UINT32_MAX - 4);
    struct ox_buf frame = ox_buf_new(OX_FRAME_HEAD_BYTES + len, &to);
    ox_put_be32(to, (uint32_t)(4 + len));
    ox_put_be32(to + 4, (uint32_t)len);
    OX_ASSERT(protobuf_c_message_pack(&command->base, to + OX_FRAME_HEAD_BYTES) == len);
    return frame;
}
