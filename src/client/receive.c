// receive.c - takes delivered entries apart into messages: checksum, compression, batches.
#include "base/limits.h"
#include "base/varint.h"
#include "client/client_int.h"
#include "wire/compress.h"

#define RECEIVE_BATCHED_BYTES_MIN \
    6u // a message of a batch: its metadata's length, and in it at least the payload's size

static bool delivery_field(struct client_delivery *d, const struct ox_pb_field *f)
{
    if (f->number == 2 && f->wire_type == 2)
        return ox_message_id_decode(f->data, f->len, &d->id) == OX_OK;
    if (f->wire_type != 0)
        return true;
    if (f->number == 3)
        d->redelivery_count = (uint32_t)f->value;
    else if (f->number == 4 && d->words < OX_ACK_SET_WORDS_MAX)
        d->ack_set[d->words++] = f->value;
    else if (f->number == 5) {
        d->has_epoch = true;
        d->epoch = f->value;
    }
    return true;
}

bool ox_client_delivery_read(struct ox_buf sub, struct client_delivery *d)
{
    const uint8_t *at = sub.data, *end = sub.data + sub.len;
    struct ox_pb_field f;
    int more;
    d->id = OX_MESSAGE_ID_NONE;
    d->words = d->redelivery_count = 0;
    d->has_epoch = false;
    while ((more = ox_pb_next(&at, end, &f)) == 1)
        if (!delivery_field(d, &f))
            return false;
    return more == 0;
}

// An entry with all that its messages share.
struct receive {
    struct receive_sink *sink;
    struct ox_message_id id;
    uint32_t redelivery_count;
    const uint64_t *outstanding;
    size_t words;
    struct ox_message_view view;
    struct ox_message_meta meta;
    struct ox_buf plain; // payload, decompressed: a reference
};

static bool receive_is_outstanding(const struct receive *r, int32_t index)
{
    if (r->words == 0)
        return true;
    size_t word = (size_t)index / 64;
    return word < r->words && r->outstanding[word] >> index % 64 & 1;
}

static struct ox_received receive_common(const struct receive *r)
{
    return (struct ox_received){
        .id = r->id, .redelivery_count = r->redelivery_count, .meta = &r->meta, .broker_entry = &r->view.broker_entry};
}

static void receive_single(struct receive *r)
{
    struct ox_received m = receive_common(r);
    m.payload = r->plain;
    m.key = r->meta.partition_key;
    m.sequence_id = r->meta.sequence_id;
    m.event_time_ms = r->meta.event_time_ms;
    m.properties = ox_property_iter(r->view.metadata.data, r->view.metadata.len, OX_PROPERTIES_OF_MESSAGE);
    r->sink->one(r->sink, &m);
}

static void receive_batched(struct receive *r, const struct ox_batch_message *b, int32_t index)
{
    struct ox_received m = receive_common(r);
    m.id.batch_index = index;
    m.id.batch_size = r->meta.num_messages;
    m.payload = (struct ox_buf){r->plain.slab, b->payload.data, b->payload.len};
    m.key = b->partition_key;
    m.sequence_id = b->has_sequence ? b->sequence_id : r->meta.sequence_id + (uint64_t)index;
    m.event_time_ms = b->event_time_ms;
    m.properties = ox_property_iter(b->metadata.data, b->metadata.len, OX_PROPERTIES_OF_SINGLE);
    r->sink->one(r->sink, &m);
}

static enum ox_err receive_batch(struct receive *r)
{
    size_t at = 0;
    if ((size_t)r->meta.num_messages > r->plain.len / RECEIVE_BATCHED_BYTES_MIN) // before anybody keeps books of so many
        return OX_E_MALFORMED;
    for (int32_t i = 0; i < r->meta.num_messages; i++) {
        struct ox_batch_message b;
        enum ox_err err = ox_batch_next(r->plain.data, r->plain.len, &at, &b);
        if (err != OX_OK)
            return OX_E_MALFORMED;
        if (receive_is_outstanding(r, i) && !b.is_compacted_out)
            receive_batched(r, &b, i);
    }
    return OX_OK;
}

static enum ox_err receive_open(struct receive *r, struct ox_buf body)
{
    enum ox_err err = ox_message_parse(body, true, &r->view);
    if (err == OX_OK)
        err = ox_message_meta_scan(r->view.metadata.data, r->view.metadata.len, &r->meta);
    if (err != OX_OK)
        return err;
    if (r->meta.compression == OX_COMPRESSION_NONE || r->meta.is_encrypted) {
        r->plain = ox_buf_ref(r->view.payload);
        return OX_OK;
    }
    return ox_decompress(r->meta.compression, r->view.payload.data, r->view.payload.len, r->meta.uncompressed_size,
                         2 * OX_MESSAGE_BYTES_MAX, &r->plain);
}

uint32_t ox_client_receive(struct receive_sink *sink, const struct ox_message_id *id, uint32_t redelivery_count,
                           const uint64_t *outstanding, size_t words, struct ox_buf body)
{
    struct receive r = {
        .sink = sink, .id = *id, .redelivery_count = redelivery_count, .outstanding = outstanding, .words = words};
    r.meta.num_messages = 1;
    r.id.batch_index = -1;
    r.id.batch_size = 0;
    enum ox_err err = receive_open(&r, body);
    if (err == OX_OK && r.meta.has_num_messages && !r.meta.is_encrypted)
        err = receive_batch(&r);
    else if (err == OX_OK)
        receive_single(&r);
    if (err != OX_OK)
        sink->damaged(sink, id, err);
    ox_buf_unref(&r.plain);
    return r.meta.num_messages > 0 ? (uint32_t)r.meta.num_messages : 1;
}
