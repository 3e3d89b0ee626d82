// handle_send.c - SEND: checks the entry and publishes it as it is.
#include "base/crc32c.h"
#include "pulsar/handlers.h"
#include "wire/message_meta.h"

// What is wrong with an entry, or OK with what the broker needs of it. meta: where its metadata is put if that is needed.
static enum ox_err send_check(const struct ox_producer *p, struct ox_buf body, bool chunk, struct ox_message_meta *meta,
                              struct ox_send *ret)
{
    struct ox_message_view view;
    enum ox_err err = ox_message_parse(body, true, &view);
    bool looks = ox_producer_looks(p, chunk);
    if (!err && looks)
        err = ox_message_meta_scan(view.metadata.data, view.metadata.len, meta);
    else if (!err)
        err = ox_message_meta_count(view.metadata.data, view.metadata.len, &ret->messages);
    if (err)
        return err;
    if (looks) {
        ret->meta = meta;
        ret->messages = (uint32_t)meta->num_messages;
    }
    ret->entry = view.entry;
    ret->plain_len = view.plain.len;
    ret->crc = view.checksum;
    ret->crc_known = view.has_checksum;
    if (p->resending && !view.has_checksum)
        ret->crc = ox_crc32c(0, view.plain.data, view.plain.len);
    return OX_OK;
}

enum ox_err handle_send(struct session *s, struct ox_buf sub, struct ox_buf body)
{
    struct ox_command_send c;
    enum ox_err err = ox_command_send_decode(sub, &c);
    if (err || body.len == 0)
        return err ? err : OX_E_MALFORMED;
    struct session_producer *sp = session_find_sender(s, c.producer_id);
    if (!sp || !sp->producer)
        return session_unknown_producer(s, c.producer_id);
    struct ox_message_meta meta;
    struct ox_send send = {.sequence_id = c.sequence_id, .highest_sequence_id = c.has_highest ? c.highest_sequence_id : 0};
    err = c.has_txn ? OX_E_UNSUPPORTED : send_check(sp->producer, body, c.is_chunk, &meta, &send);
    if (err) {
        ox_producer_refuse(sp->producer, err, send.sequence_id, send.highest_sequence_id);
        return OX_OK;
    }
    if (!ox_producer_publish(sp->producer, &send)) {
        s->blocked += !sp->waiting;
        sp->waiting = true;
        session_throttle(s);
    }
    return OX_OK;
}
