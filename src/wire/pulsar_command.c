// pulsar_command.c - reading commands by hand: the envelope, Send, Flow, Ack and message ids.
#include "wire/pulsar_command.h"

#include "base/bytes.h"
#include "base/varint.h"

#define COMMAND_SEEN(number) (1u << (number))

// As every client writes it: the type, then that type's message and nothing else. False: read it field by field.
static bool command_is_plain(struct ox_buf command, uint32_t *ret_type, struct ox_buf *ret_sub)
{
    const uint8_t *p = command.data;
    if (command.len < 4 || p[0] != (1 << 3) || p[1] < 2 || p[1] > 15 || p[2] != (p[1] << 3 | 2) ||
        p[3] != command.len - 4 || p[3] >= 0x80)
        return false;
    *ret_type = p[1];
    *ret_sub = (struct ox_buf){command.slab, p + 4, p[3]};
    return true;
}

enum ox_err ox_command_peek(struct ox_buf command, uint32_t *ret_type, struct ox_buf *ret_sub)
{
    if (command_is_plain(command, ret_type, ret_sub))
        return OX_OK;
    const uint8_t *p = command.data, *end = ox_bytes_end(p, command.len);
    uint64_t type = 0;
    struct ox_pb_field f, sub = {0};
    int more;
    while ((more = ox_pb_next(&p, end, &f)) > 0) {
        if (f.number == 1 && f.wire_type == 0)
            type = f.value;
        else if (f.number == 1 || (f.number == type && f.wire_type != 2))
            return OX_E_MALFORMED;
        else if (f.wire_type == 2 && (f.number == type || sub.data == NULL))
            sub = f; // fields of other kinds are unknown: skipped
    }
    if (more < 0 || type == 0 || type > INT32_MAX)
        return OX_E_MALFORMED;
    *ret_type = (uint32_t)type;
    bool is_found = sub.number == type;
    *ret_sub = is_found ? (struct ox_buf){command.slab, sub.data, sub.len} : ox_buf_empty();
    return OX_OK;
}

static int32_t command_i32(uint64_t value)
{
    return (int32_t)(uint32_t)value;
}

// Counts the words of one ack-set field, packed or not; false if it is damaged.
static bool ack_set_count(const struct ox_pb_field *f, size_t *count)
{
    if (f->wire_type == 0) {
        (*count)++;
        return true;
    }
    uint64_t word;
    for (size_t at = 0, n; at < f->len; at += n, (*count)++)
        if ((n = ox_varint_get(f->data + at, f->data + f->len, &word)) == 0)
            return false;
    return f->wire_type == 2;
}

static bool message_id_field(const struct ox_pb_field *f, struct ox_message_id *id)
{
    if (f->number == 5)
        return ack_set_count(f, &id->ack_set_words);
    if (f->number == 7)
        return f->wire_type == 2;
    if (f->number < 7 && f->wire_type != 0)
        return false;
    switch (f->number) {
    case 1: id->ledger = (int64_t)f->value; break;
    case 2: id->entry = (int64_t)f->value; break;
    case 3: id->partition = command_i32(f->value); break;
    case 4: id->batch_index = command_i32(f->value); break;
    case 6: id->batch_size = command_i32(f->value); break;
    default: break;
    }
    return true;
}

enum ox_err ox_message_id_decode(const void *data, size_t len, struct ox_message_id *ret)
{
    const uint8_t *p = (const uint8_t *)data, *end = ox_bytes_end(p, len);
    struct ox_message_id id = OX_MESSAGE_ID_NONE;
    id.ack_set = p;
    id.ack_set_len = len;
    uint32_t seen = 0;
    struct ox_pb_field f;
    int more;
    while ((more = ox_pb_step(&p, end, &f)) > 0) {
        if (!message_id_field(&f, &id))
            return OX_E_MALFORMED;
        seen |= f.number < 3 ? COMMAND_SEEN(f.number) : 0;
    }
    if (more < 0 || seen != (COMMAND_SEEN(1) | COMMAND_SEEN(2)))
        return OX_E_MALFORMED;
    *ret = id;
    return OX_OK;
}

size_t ox_message_id_ack_set(const struct ox_message_id *id, uint64_t *words, size_t max)
{
    const uint8_t *p = id->ack_set, *end = ox_bytes_end(p, id->ack_set_len);
    size_t count = 0;
    struct ox_pb_field f;
    while (count < max && ox_pb_next(&p, end, &f) > 0) {
        if (f.number != 5)
            continue;
        if (f.wire_type == 0)
            words[count++] = f.value;
        for (size_t at = 0, n = 1; at < f.len && n && count < max; at += n)
            if ((n = ox_varint_get(f.data + at, f.data + f.len, &words[count])) > 0)
                count++;
    }
    return count;
}

// Values by field number, so that the struct is written once.
enum ox_err ox_command_send_decode(struct ox_buf sub, struct ox_command_send *ret)
{
    const uint8_t *p = sub.data, *end = ox_bytes_end(p, sub.len);
    uint64_t value[9] = {[3] = 1};
    struct ox_message_id id = OX_MESSAGE_ID_NONE;
    uint32_t seen = 0;
    struct ox_pb_field f;
    int more;
    while ((more = ox_pb_step(&p, end, &f)) > 0) {
        if (f.number > 9)
            continue;
        if (f.wire_type != (f.number == 9 ? 2u : 0u))
            return OX_E_MALFORMED;
        seen |= COMMAND_SEEN(f.number);
        if (f.number < 9)
            value[f.number] = f.value;
        else if (ox_message_id_decode(f.data, f.len, &id) != OX_OK)
            return OX_E_MALFORMED;
    }
    if (more < 0 || (~seen & (COMMAND_SEEN(1) | COMMAND_SEEN(2))))
        return OX_E_MALFORMED;
    *ret = (struct ox_command_send){.producer_id = value[1],
                                    .sequence_id = value[2],
                                    .num_messages = command_i32(value[3]),
                                    .txn_least = value[4],
                                    .txn_most = value[5],
                                    .has_txn = (seen & COMMAND_SEEN(4)) && (seen & COMMAND_SEEN(5)),
                                    .highest_sequence_id = value[6],
                                    .has_highest = seen & COMMAND_SEEN(6),
                                    .is_chunk = value[7] != 0,
                                    .is_marker = value[8] != 0,
                                    .has_message_id = seen & COMMAND_SEEN(9),
                                    .message_id = id};
    return OX_OK;
}

enum ox_err ox_command_flow_decode(struct ox_buf sub, struct ox_command_flow *ret)
{
    const uint8_t *p = sub.data, *end = ox_bytes_end(p, sub.len);
    uint64_t value[3] = {0};
    uint32_t seen = 0;
    struct ox_pb_field f;
    int more;
    while ((more = ox_pb_next(&p, end, &f)) > 0) {
        if (f.number > 2)
            continue;
        if (f.wire_type != 0)
            return OX_E_MALFORMED;
        value[f.number] = f.value;
        seen |= COMMAND_SEEN(f.number);
    }
    if (more < 0 || seen != (COMMAND_SEEN(1) | COMMAND_SEEN(2)))
        return OX_E_MALFORMED;
    *ret = (struct ox_command_flow){value[1], (uint32_t)value[2]};
    return OX_OK;
}

static bool ack_field(const struct ox_pb_field *f, struct ox_command_ack *c)
{
    struct ox_message_id id;
    if (f->number == 3) {
        c->id_count++;
        return f->wire_type == 2 && ox_message_id_decode(f->data, f->len, &id) == OX_OK;
    }
    if (f->number < 9 && f->wire_type != (f->number == 5 ? 2 : 0))
        return false;
    switch (f->number) {
    case 1: c->consumer_id = f->value; break;
    case 2: c->is_cumulative = f->value == 1; return f->value <= 1;
    case 4: c->validation_error = command_i32(f->value); break;
    case 6: c->txn_least = f->value; break;
    case 7: c->txn_most = f->value; break;
    case 8: c->request_id = f->value; break;
    default: break;
    }
    return true;
}

enum ox_err ox_command_ack_decode(struct ox_buf sub, struct ox_command_ack *ret)
{
    const uint8_t *p = sub.data, *end = ox_bytes_end(p, sub.len);
    struct ox_command_ack c = {.validation_error = -1, .sub = sub};
    uint32_t seen = 0;
    struct ox_pb_field f;
    int more;
    while ((more = ox_pb_next(&p, end, &f)) > 0) {
        if (!ack_field(&f, &c))
            return OX_E_MALFORMED;
        seen |= f.number < 9 ? COMMAND_SEEN(f.number) : 0;
    }
    if (more < 0 || (~seen & (COMMAND_SEEN(1) | COMMAND_SEEN(2))))
        return OX_E_MALFORMED;
    c.has_request_id = seen & COMMAND_SEEN(8);
    c.has_txn = (seen & COMMAND_SEEN(6)) && (seen & COMMAND_SEEN(7));
    *ret = c;
    return OX_OK;
}

bool ox_command_ack_next(const struct ox_command_ack *ack, size_t *at, struct ox_message_id *ret)
{
    const uint8_t *p = ox_bytes_end(ack->sub.data, *at), *end = ox_bytes_end(ack->sub.data, ack->sub.len);
    struct ox_pb_field f;
    while (ox_pb_next(&p, end, &f) > 0) {
        *at = (size_t)(p - ack->sub.data);
        if (f.number == 3)
            return ox_message_id_decode(f.data, f.len, ret) == OX_OK;
    }
    return false;
}
