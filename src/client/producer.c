// producer.c - a producer: batches, a bounded window of messages without a receipt, and sending those again after a loss.
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/varint.h"
#include "client/client_int.h"
#include "wire/compress.h"
#include "wire/message_build.h"

#define PRODUCER_PENDING_MAX 1000
#define PRODUCER_PENDING_BYTES (16u << 20)
#define PRODUCER_BATCH_BYTES (128u << 10)
#define PRODUCER_TICK_NS (OX_SEC / 4)

// One Send frame: a message, or a batch.
struct parcel {
    struct ox_link link;
    struct ox_list sends; // struct ox_client_send, in order
    uint64_t first, last; // sequence ids
    struct ox_str batch;  // the payload while it is being filled
    struct ox_buf frame;  // once closed
    uint64_t deadline_ns;
};

struct ox_client_producer {
    struct attach attach;
    struct ox_client_producer_config config; // topic and name: NULL
    char *name;
    bool name_given;
    int64_t last_sequence; // as first told
    uint64_t next_sequence;
    struct ox_list parcels; // closed ones without a receipt, in order
    struct parcel *filling; // or NULL
    uint32_t pending;
    size_t pending_bytes;
    struct ox_timer batch_timer, timeout_timer;
    struct ox_turn_hook turn_end;
    struct ox_client_producer_open *open;
    struct ox_op *close;
    enum ox_err failed; // OK: not
};

static struct ox_client_producer *producer_of(struct attach *a)
{
    return CONTAINER_OF(a, struct ox_client_producer, attach);
}

const char *ox_client_producer_name(const struct ox_client_producer *p)
{
    return p->name;
}

int64_t ox_client_producer_last_sequence(const struct ox_client_producer *p)
{
    return p->last_sequence;
}

const char *ox_client_producer_text(const struct ox_client_producer *p)
{
    return p->attach.text;
}

uint32_t ox_client_producer_pending(const struct ox_client_producer *p)
{
    return p->pending;
}

// Ends all sends of a parcel and frees it.
static void parcel_finish(struct ox_client_producer *p, struct parcel *parcel, enum ox_err err,
                          const struct ox_message_id *id)
{
    struct ox_link *link;
    int32_t count = (int32_t)parcel->sends.count, index = 0;
    while ((link = ox_list_pop_front(&parcel->sends))) {
        struct ox_op *op = CONTAINER_OF(link, struct ox_op, link);
        struct ox_client_send *send = CONTAINER_OF(op, struct ox_client_send, op);
        if (id) {
            send->id = *id;
            send->id.batch_index = p->config.batch_messages > 1 ? index++ : -1;
            send->id.batch_size = p->config.batch_messages > 1 ? count : 0;
        }
        p->pending--;
        p->pending_bytes -= send->bytes;
        ox_op_finish(&send->op, err);
    }
    ox_str_fini(&parcel->batch);
    ox_buf_unref(&parcel->frame);
    ox_free(parcel);
}

static void producer_fail_parcels(struct ox_client_producer *p, enum ox_err err)
{
    struct ox_link *link;
    while ((link = ox_list_pop_front(&p->parcels)))
        parcel_finish(p, CONTAINER_OF(link, struct parcel, link), err, NULL);
    if (p->filling)
        parcel_finish(p, p->filling, err, NULL);
    p->filling = NULL;
}

static void producer_transmit(struct ox_client_producer *p, const struct parcel *parcel)
{
    struct conn *conn = attach_conn(&p->attach);
    if (p->attach.state == ATTACH_ON && conn)
        ox_client_conn_write(conn, ox_buf_ref(parcel->frame));
}

static size_t producer_message_bytes_max(const struct ox_client_producer *p)
{
    const struct conn *conn = attach_conn(&p->attach);
    return conn ? conn->message_bytes_max : OX_MESSAGE_BYTES_MAX;
}

// Builds the frame around a payload; false if it is too big for the server.
static bool parcel_build(struct ox_client_producer *p, struct parcel *parcel, Oxpb__MessageMetadata *metadata,
                         const void *payload, size_t len)
{
    struct ox_buf packed = ox_buf_static(payload, len);
    metadata->producer_name = p->name;
    metadata->sequence_id = parcel->first;
    metadata->publish_time = ox_wall_ms(p->attach.client->loop);
    if (p->config.compression != OX_COMPRESSION_NONE) {
        if (ox_compress(p->config.compression, payload, len, &packed) != OX_OK)
            return false;
        metadata->has_compression = 1;
        metadata->compression = (Oxpb__CompressionType)p->config.compression;
        metadata->has_uncompressed_size = 1;
        metadata->uncompressed_size = (uint32_t)len;
    }
    Oxpb__CommandSend send = OXPB__COMMAND_SEND__INIT;
    send.producer_id = p->attach.id;
    send.sequence_id = parcel->first;
    send.has_num_messages = p->config.batch_messages > 1;
    send.num_messages = (int32_t)parcel->sends.count;
    send.has_highest_sequence_id = metadata->has_highest_sequence_id = p->config.batch_messages > 1;
    send.highest_sequence_id = metadata->highest_sequence_id = parcel->last;
    bool fits = packed.len <= producer_message_bytes_max(p);
    if (fits)
        parcel->frame = ox_send_build(&send, metadata, packed.data, packed.len);
    ox_buf_unref(&packed);
    return fits;
}

// A closed parcel joins the window and goes out.
static void producer_post(struct ox_client_producer *p, struct parcel *parcel, bool built)
{
    if (!built) {
        parcel_finish(p, parcel, OX_E_TOO_BIG, NULL);
        return;
    }
    parcel->deadline_ns = ox_now_ns(p->attach.client->loop) + p->config.send_timeout_ns;
    ox_list_push_back(&p->parcels, &parcel->link);
    producer_transmit(p, parcel);
    if (p->config.send_timeout_ns && !ox_timer_started(&p->timeout_timer))
        ox_timer_start(&p->timeout_timer, PRODUCER_TICK_NS);
}

void ox_client_producer_flush(struct ox_client_producer *p)
{
    struct parcel *parcel = p->filling;
    if (!parcel)
        return;
    p->filling = NULL;
    ox_timer_stop(&p->batch_timer);
    Oxpb__MessageMetadata metadata = OXPB__MESSAGE_METADATA__INIT;
    metadata.has_num_messages_in_batch = 1;
    metadata.num_messages_in_batch = (int32_t)parcel->sends.count;
    bool built = parcel_build(p, parcel, &metadata, parcel->batch.data, parcel->batch.len);
    ox_str_fini(&parcel->batch);
    producer_post(p, parcel, built);
}

// Properties as protobuf wants them: an array of pointers into an array; `pairs` and `pointers` have room for all.
struct producer_pairs {
    Oxpb__KeyValue *pairs;
    Oxpb__KeyValue **pointers;
};

static struct producer_pairs producer_pairs(const struct ox_kv *properties)
{
    struct producer_pairs list = {0};
    size_t count = properties ? properties->count : 0;
    if (count == 0)
        return list;
    list.pairs = ox_calloc(count, sizeof *list.pairs);
    list.pointers = ox_calloc(count, sizeof *list.pointers);
    for (size_t i = 0; i < count; i++) {
        oxpb__key_value__init(&list.pairs[i]);
        list.pairs[i].key = properties->pairs[i].key;
        list.pairs[i].value = properties->pairs[i].value;
        list.pointers[i] = &list.pairs[i];
    }
    return list;
}

static void producer_pairs_fini(struct producer_pairs *list)
{
    ox_free(list->pairs);
    ox_free(list->pointers);
}

static char *producer_key(const struct ox_client_send *op)
{
    return (char *)(uintptr_t)op->key; // protobuf-c's structs hold char pointers; it only reads them
}

static struct parcel *parcel_new(struct ox_client_producer *p, struct ox_client_send *op)
{
    struct parcel *parcel = ox_malloc(sizeof *parcel);
    (void)p;
    ox_list_init(&parcel->sends);
    parcel->first = op->sequence_id;
    return parcel;
}

static void parcel_take(struct parcel *parcel, struct ox_client_send *op)
{
    parcel->last = op->sequence_id;
    ox_list_push_back(&parcel->sends, &op->op.link);
}

static void producer_send_single(struct ox_client_producer *p, struct ox_client_send *op)
{
    struct parcel *parcel = parcel_new(p, op);
    parcel_take(parcel, op);
    struct producer_pairs pairs = producer_pairs(op->properties);
    Oxpb__MessageMetadata metadata = OXPB__MESSAGE_METADATA__INIT;
    metadata.partition_key = producer_key(op);
    metadata.properties = pairs.pointers;
    metadata.n_properties = pairs.pairs ? op->properties->count : 0;
    metadata.has_event_time = op->event_time_ms != 0;
    metadata.event_time = op->event_time_ms;
    metadata.has_deliver_at_time = op->deliver_at_ms != 0;
    metadata.deliver_at_time = (int64_t)op->deliver_at_ms;
    bool built = parcel_build(p, parcel, &metadata, op->payload.data, op->payload.len);
    producer_pairs_fini(&pairs);
    producer_post(p, parcel, built);
}

static void producer_arm_batch(struct ox_client_producer *p)
{
    if (p->config.batch_delay_ns)
        ox_timer_start(&p->batch_timer, p->config.batch_delay_ns);
    else
        ox_turn_end(p->attach.client->loop, &p->turn_end);
}

static void producer_send_batched(struct ox_client_producer *p, struct ox_client_send *op)
{
    if (p->filling && p->filling->batch.len + op->payload.len > p->config.batch_bytes)
        ox_client_producer_flush(p);
    if (!p->filling) {
        p->filling = parcel_new(p, op);
        producer_arm_batch(p);
    }
    parcel_take(p->filling, op);
    struct producer_pairs pairs = producer_pairs(op->properties);
    Oxpb__SingleMessageMetadata metadata = OXPB__SINGLE_MESSAGE_METADATA__INIT;
    metadata.partition_key = producer_key(op);
    metadata.properties = pairs.pointers;
    metadata.n_properties = pairs.pairs ? op->properties->count : 0;
    metadata.has_event_time = op->event_time_ms != 0;
    metadata.event_time = op->event_time_ms;
    metadata.has_sequence_id = 1;
    metadata.sequence_id = op->sequence_id;
    ox_batch_add(&p->filling->batch, &metadata, op->payload.data, op->payload.len);
    producer_pairs_fini(&pairs);
    if (p->filling->sends.count >= p->config.batch_messages || p->filling->batch.len >= p->config.batch_bytes)
        ox_client_producer_flush(p);
}

static enum ox_err producer_refusal(const struct ox_client_producer *p, const struct ox_client_send *op)
{
    if (p->close)
        return OX_E_CLOSED;
    if (p->failed != OX_OK)
        return p->failed;
    if (p->pending >= p->config.pending_max)
        return OX_E_LIMIT;
    if (p->pending && p->pending_bytes + op->payload.len > p->config.pending_bytes_max)
        return OX_E_LIMIT;
    return op->payload.len > INT32_MAX ? OX_E_TOO_BIG : OX_OK;
}

void ox_client_producer_send(struct ox_client_producer *p, struct ox_client_send *op)
{
    ox_op_begin(&op->op);
    op->id = OX_MESSAGE_ID_NONE;
    enum ox_err err = producer_refusal(p, op);
    if (err != OX_OK) {
        ox_op_finish(&op->op, err);
        return;
    }
    op->sequence_id = p->next_sequence++;
    op->bytes = op->payload.len;
    p->pending++;
    p->pending_bytes += op->bytes;
    if (p->config.batch_messages > 1 && !op->deliver_at_ms) {
        producer_send_batched(p, op);
        return;
    }
    ox_client_producer_flush(p);
    producer_send_single(p, op);
}

static void producer_batch_due(struct ox_timer *timer)
{
    ox_client_producer_flush(CONTAINER_OF(timer, struct ox_client_producer, batch_timer));
}

static void producer_turn_end(struct ox_turn_hook *hook)
{
    ox_client_producer_flush(CONTAINER_OF(hook, struct ox_client_producer, turn_end));
}

static void producer_time_out(struct ox_timer *timer)
{
    struct ox_client_producer *p = CONTAINER_OF(timer, struct ox_client_producer, timeout_timer);
    uint64_t now = ox_now_ns(timer->loop);
    struct ox_link *link;
    while ((link = ox_list_first(&p->parcels))) {
        struct parcel *parcel = CONTAINER_OF(link, struct parcel, link);
        if (parcel->deadline_ns > now)
            break;
        ox_list_remove(&p->parcels, link);
        parcel_finish(p, parcel, OX_E_TIMEOUT, NULL);
    }
    if (link)
        ox_timer_start(timer, PRODUCER_TICK_NS);
}

// ---- the server's side

static struct ox_buf producer_command(struct attach *a, uint64_t request_id)
{
    struct ox_client_producer *p = producer_of(a);
    Oxpb__CommandProducer create = OXPB__COMMAND_PRODUCER__INIT;
    create.topic = a->topic;
    create.producer_id = a->id;
    create.request_id = request_id;
    create.producer_name = p->name;
    create.has_user_provided_producer_name = 1;
    create.user_provided_producer_name = p->name_given;
    create.has_epoch = 1;
    create.epoch = a->times;
    return ox_command_pack_sub(OXPB__BASE_COMMAND__TYPE__PRODUCER, &create.base);
}

static void producer_finish_open(struct ox_client_producer *p, enum ox_err err)
{
    struct ox_client_producer_open *open = p->open;
    if (!open)
        return;
    p->open = NULL;
    ox_client_text(open->call.text, err == OX_OK ? "" : p->attach.text);
    open->producer = err == OX_OK ? p : NULL;
    ox_op_finish(&open->call.op, err);
}

static void producer_on(struct attach *a, void *message)
{
    struct ox_client_producer *p = producer_of(a);
    const Oxpb__CommandProducerSuccess *m = message;
    if (a->times == 1) {
        ox_free(p->name);
        p->name = ox_strdup(m->producer_name);
        p->last_sequence = m->last_sequence_id;
        p->next_sequence = (uint64_t)(m->last_sequence_id + 1);
    }
    OX_LIST_EACH(&p->parcels, link)
        producer_transmit(p, CONTAINER_OF(link, struct parcel, link));
    producer_finish_open(p, OX_OK);
}

static void producer_off(struct attach *a)
{
    (void)a; // what is without a receipt waits
}

static void producer_failed(struct attach *a, enum ox_err err)
{
    struct ox_client_producer *p = producer_of(a);
    p->failed = err;
    producer_fail_parcels(p, err);
    if (p->open)
        ox_client_attach_close(a); // was never there: nothing for the caller to close
}

static void producer_closed(struct attach *a)
{
    struct ox_client_producer *p = producer_of(a);
    struct ox_op *close = p->close;
    producer_fail_parcels(p, OX_E_CLOSED);
    ox_timer_stop(&p->batch_timer);
    ox_timer_stop(&p->timeout_timer);
    ox_turn_end_cancel(a->client->loop, &p->turn_end);
    producer_finish_open(p, p->failed != OX_OK ? p->failed : OX_E_CANCELED);
    ox_client_attach_fini(a);
    ox_free(p->name);
    ox_free(p);
    if (close)
        ox_op_finish(close, OX_OK);
}

static bool producer_read(struct ox_buf sub, Oxpb__CommandSendError **ret_error, struct ox_arena *arena)
{
    return ox_proto_unpack(&oxpb__command_send_error__descriptor, arena, sub.data, sub.len, ret_error) == OX_OK;
}

// Sequence id and message id of a receipt; false if it is damaged.
static bool producer_read_receipt(struct ox_buf sub, uint64_t *ret_sequence, struct ox_message_id *ret_id)
{
    const uint8_t *at = sub.data, *end = sub.data + sub.len;
    struct ox_pb_field f;
    int more;
    *ret_id = OX_MESSAGE_ID_NONE;
    while ((more = ox_pb_next(&at, end, &f)) == 1) {
        if (f.number == 2 && f.wire_type == 0)
            *ret_sequence = f.value;
        else if (f.number == 3 && f.wire_type == 2 && ox_message_id_decode(f.data, f.len, ret_id) != OX_OK)
            return false;
    }
    return more == 0;
}

static struct parcel *producer_first(struct ox_client_producer *p)
{
    struct ox_link *link = ox_list_first(&p->parcels);
    return link ? CONTAINER_OF(link, struct parcel, link) : NULL;
}

static void producer_receipt(struct ox_client_producer *p, struct ox_buf sub)
{
    uint64_t sequence = 0;
    struct ox_message_id id;
    struct parcel *first = producer_first(p);
    if (!producer_read_receipt(sub, &sequence, &id)) {
        ox_client_conn_break(attach_conn(&p->attach), OX_E_MALFORMED);
    } else if (first && sequence == first->first) {
        ox_list_remove(&p->parcels, &first->link);
        parcel_finish(p, first, OX_OK, &id);
    } else if (first && sequence > first->first) {
        ox_client_conn_break(attach_conn(&p->attach), OX_E_MALFORMED); // a receipt was lost: all of them come again
    }
}

// What can only be wrong with this message fails it; anything else may be over after attaching again.
static void producer_send_error(struct ox_client_producer *p, const Oxpb__CommandSendError *error)
{
    enum ox_err err = ox_client_err_of_server(error->error);
    struct parcel *first = producer_first(p);
    ox_client_text(p->attach.text, error->message);
    enum ox_err_class class = ox_err_class(err);
    if (class == OX_CLASS_FENCED || err == OX_E_TOPIC_TERMINATED) {
        p->failed = err;
        producer_fail_parcels(p, err);
    } else if (class == OX_CLASS_CLIENT && first && first->first == error->sequence_id) {
        ox_list_remove(&p->parcels, &first->link);
        parcel_finish(p, first, err, NULL);
    } else if (class != OX_CLASS_CLIENT) {
        ox_client_conn_break(attach_conn(&p->attach), err);
    }
}

static void producer_event(struct attach *a, uint32_t type, struct ox_buf sub, struct ox_buf body)
{
    struct ox_client_producer *p = producer_of(a);
    (void)body;
    if (type == OXPB__BASE_COMMAND__TYPE__SEND_RECEIPT) {
        producer_receipt(p, sub);
        return;
    }
    struct conn *conn = attach_conn(a);
    Oxpb__CommandSendError *error;
    if (producer_read(sub, &error, &conn->arena))
        producer_send_error(p, error);
    else
        ox_client_conn_break(conn, OX_E_MALFORMED);
}

static const struct attach_body producer_body = {
    .command = producer_command,
    .on = producer_on,
    .off = producer_off,
    .failed = producer_failed,
    .closed = producer_closed,
    .event = producer_event,
    .close_type = OXPB__BASE_COMMAND__TYPE__CLOSE_PRODUCER,
    .made_type = OXPB__BASE_COMMAND__TYPE__PRODUCER_SUCCESS,
};

static void producer_cancel_open(struct ox_op *op)
{
    struct ox_client_call *call = CONTAINER_OF(op, struct ox_client_call, op);
    struct ox_client_producer *p = CONTAINER_OF(call, struct ox_client_producer_open, call)->opening;
    if (!p->attach.closing)
        ox_client_attach_close(&p->attach);
}

void ox_client_producer_open(struct ox_client *client, struct ox_client_producer_open *op,
                             const struct ox_client_producer_config *config)
{
    ox_op_begin(&op->call.op);
    struct ox_client_producer *p = ox_malloc(sizeof *p);
    ox_client_attach_init(&p->attach, &producer_body, client, config->topic, false);
    p->config = *config;
    p->config.topic = p->config.name = NULL;
    p->config.pending_max = config->pending_max ? config->pending_max : PRODUCER_PENDING_MAX;
    p->config.pending_bytes_max = config->pending_bytes_max ? config->pending_bytes_max : PRODUCER_PENDING_BYTES;
    p->config.batch_bytes = config->batch_bytes ? config->batch_bytes : PRODUCER_BATCH_BYTES;
    p->name = config->name ? ox_strdup(config->name) : NULL;
    p->name_given = config->name != NULL;
    ox_list_init(&p->parcels);
    ox_timer_init(&p->batch_timer, client->loop, producer_batch_due);
    ox_timer_init(&p->timeout_timer, client->loop, producer_time_out);
    p->turn_end.run = producer_turn_end;
    p->open = op;
    op->opening = p;
    op->call.op.cancel = producer_cancel_open;
    ox_client_attach_start(&p->attach);
}

void ox_client_producer_close(struct ox_client_producer *p, struct ox_op *op)
{
    ox_op_begin(op);
    p->close = op;
    producer_fail_parcels(p, OX_E_CLOSED);
    ox_client_attach_close(&p->attach);
}
