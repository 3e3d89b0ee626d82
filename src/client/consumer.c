// consumer.c - a consumer: permits, delivery to the owner's callback, acknowledgements, seeks.
#include <string.h>

#include "base/mem.h"
#include "base/pos.h"
#include "base/varint.h"
#include "client/client_int.h"

#define CONSUMER_QUEUE 1000

struct ox_client_consumer {
    struct attach attach;
    struct ox_client_consumer_config config; // strings: NULL
    char *subscription, *name;
    struct receive_sink sink;
    uint32_t used; // permits of messages received since the last flow
    bool paused;
    uint64_t since_ns;         // when it last asked to be attached
    uint64_t epoch;            // raised by each redelivery of everything
    bool seeking;              // what comes is from before the seek
    struct ox_message_id last; // the last message delivered; ledger -1: none
    struct batch_acks acks;
    struct ox_list calls; // struct consumer_call that are pending
    struct ox_client_consumer_open *open;
    struct ox_op *close;
    enum ox_err failed; // OK: not
};

// A request of the consumer with its call (NULL: nobody waits).
struct consumer_call {
    struct ox_link link;
    struct ox_client_consumer *c;
    struct client_request request;
    struct ox_client_call *call;
    struct ox_client_last_id *last_id; // or NULL
    bool seek;
    struct ox_message_id seek_to; // where a reader that attaches again goes on; ledger -1: earliest
};

static struct ox_client_consumer *consumer_of(struct attach *a)
{
    return CONTAINER_OF(a, struct ox_client_consumer, attach);
}

void *ox_client_consumer_owner(const struct ox_client_consumer *c)
{
    return c->config.owner;
}

uint64_t ox_client_consumer_since_ns(const struct ox_client_consumer *c)
{
    return c->since_ns;
}

// ---- permits

static void consumer_flow(struct ox_client_consumer *c, uint32_t permits)
{
    struct conn *conn = attach_conn(&c->attach);
    if (conn && permits)
        ox_client_conn_write(conn, ox_encode_flow(&conn->encoder, c->attach.id, permits));
}

static void consumer_give_permits(struct ox_client_consumer *c)
{
    if (c->paused || c->used < (c->config.receiver_queue + 1) / 2)
        return;
    uint32_t permits = c->used;
    c->used = 0;
    consumer_flow(c, permits);
}

void ox_client_consumer_pause(struct ox_client_consumer *c)
{
    c->paused = true;
}

void ox_client_consumer_resume(struct ox_client_consumer *c)
{
    c->paused = false;
    consumer_give_permits(c);
}

// ---- messages

static int consumer_id_cmp(const struct ox_message_id *a, const struct ox_message_id *b)
{
    int cmp = ox_pos_cmp((struct ox_pos){a->ledger, a->entry}, (struct ox_pos){b->ledger, b->entry});
    if (cmp != 0 || a->batch_index < 0 || b->batch_index < 0)
        return cmp;
    return (a->batch_index > b->batch_index) - (a->batch_index < b->batch_index);
}

// A reader is given its start itself, and after attaching again what it has seen: cut that off.
static bool consumer_is_wanted(const struct ox_client_consumer *c, const struct ox_message_id *id)
{
    if (!c->config.non_durable)
        return true;
    if (c->last.ledger >= 0)
        return consumer_id_cmp(id, &c->last) > 0;
    if (!c->config.has_start || c->config.start.ledger < 0)
        return true;
    int cmp = consumer_id_cmp(id, &c->config.start);
    return c->config.start_inclusive ? cmp >= 0 : cmp > 0;
}

static void consumer_one(struct receive_sink *sink, const struct ox_received *m)
{
    struct ox_client_consumer *c = CONTAINER_OF(sink, struct ox_client_consumer, sink);
    if (c->seeking || c->close || !consumer_is_wanted(c, &m->id))
        return;
    c->last = m->id;
    c->config.events->message(c, m);
}

static void consumer_damaged(struct receive_sink *sink, const struct ox_message_id *id, enum ox_err err)
{
    struct ox_client_consumer *c = CONTAINER_OF(sink, struct ox_client_consumer, sink);
    if (c->config.events->damaged && !c->close)
        c->config.events->damaged(c, id, err);
}

static void consumer_message(struct ox_client_consumer *c, struct ox_buf sub, struct ox_buf body)
{
    struct client_delivery d;
    if (!ox_client_delivery_read(sub, &d)) {
        ox_client_conn_break(attach_conn(&c->attach), OX_E_MALFORMED);
        return;
    }
    if (d.has_epoch && d.epoch < c->epoch) { // from before a redelivery of everything
        c->used++;
    } else {
        if (d.words)
            ox_client_acks_seed(&c->acks, &d.id, d.ack_set, d.words);
        c->used += ox_client_receive(&c->sink, &d.id, d.redelivery_count, d.ack_set, d.words, body);
    }
    consumer_give_permits(c);
}

static void consumer_is_active(struct ox_client_consumer *c, struct ox_buf sub)
{
    const uint8_t *at = sub.data, *end = sub.data + sub.len;
    struct ox_pb_field f;
    bool is_active = false;
    while (ox_pb_next(&at, end, &f) == 1)
        if (f.number == 2 && f.wire_type == 0)
            is_active = f.value != 0;
    c->config.events->active(c, is_active);
}

static void consumer_event(struct attach *a, uint32_t type, struct ox_buf sub, struct ox_buf body)
{
    struct ox_client_consumer *c = consumer_of(a);
    if (type == OXPB__BASE_COMMAND__TYPE__MESSAGE)
        consumer_message(c, sub, body);
    else if (type == OXPB__BASE_COMMAND__TYPE__REACHED_END_OF_TOPIC && c->config.events->end_of_topic)
        c->config.events->end_of_topic(c);
    else if (type == OXPB__BASE_COMMAND__TYPE__ACTIVE_CONSUMER_CHANGE && c->config.events->active && !c->close)
        consumer_is_active(c, sub);
}

// ---- requests

static void consumer_moved(struct ox_client_consumer *c, const struct ox_message_id *to)
{
    c->last = OX_MESSAGE_ID_NONE;
    c->config.has_start = c->config.start_inclusive = true;
    c->config.start = *to;
    ox_client_acks_clear(&c->acks);
}

static void call_finish(struct consumer_call *call, enum ox_err err, const char *text)
{
    struct ox_client_consumer *c = call->c;
    ox_list_remove(&c->calls, &call->link);
    if (call->call) {
        ox_client_text(call->call->text, text);
        ox_op_finish(&call->call->op, err);
    }
    if (call->seek) {
        c->seeking = false;
        if (err == OX_OK)
            consumer_moved(c, &call->seek_to);
        ox_client_attach_release(&c->attach);
    }
    ox_free(call);
}

static enum ox_err call_read_last_id(struct ox_client_last_id *op, const Oxpb__CommandGetLastMessageIdResponse *m)
{
    const Oxpb__MessageIdData *id = m->last_message_id, *mark = m->consumer_mark_delete_position;
    op->id = (struct ox_message_id){.ledger = (int64_t)id->ledger_id,
                                    .entry = (int64_t)id->entry_id,
                                    .partition = id->partition,
                                    .batch_index = id->batch_index,
                                    .batch_size = id->batch_size};
    op->has_mark_delete = mark != NULL;
    op->mark_delete = OX_MESSAGE_ID_NONE;
    if (mark) {
        op->mark_delete.ledger = (int64_t)mark->ledger_id;
        op->mark_delete.entry = (int64_t)mark->entry_id;
    }
    return OX_OK;
}

static void call_answered(struct client_request *r, enum ox_err err, uint32_t type, void *message, const char *text)
{
    struct consumer_call *call = CONTAINER_OF(r, struct consumer_call, request);
    if (err == OX_OK && type == OXPB__BASE_COMMAND__TYPE__ACK_RESPONSE) {
        const Oxpb__CommandAckResponse *m = message;
        err = m->has_error ? ox_client_err_of_server(m->error) : OX_OK;
        text = m->message ? m->message : "";
    } else if (err == OX_OK && call->last_id) {
        err = type == OXPB__BASE_COMMAND__TYPE__GET_LAST_MESSAGE_ID_RESPONSE ? call_read_last_id(call->last_id, message)
                                                                             : OX_E_MALFORMED;
    }
    call_finish(call, err, text);
}

// Begins a call; NULL if there is no connection: it is answered.
static struct consumer_call *call_new(struct ox_client_consumer *c, struct ox_client_call *waiting)
{
    if (waiting)
        ox_op_begin(&waiting->op);
    if (!attach_conn(&c->attach) || c->attach.state != ATTACH_ON) {
        if (waiting) {
            ox_client_text(waiting->text, "the consumer is not attached to a broker now");
            ox_op_finish(&waiting->op, OX_E_DISCONNECTED);
        }
        return NULL;
    }
    struct consumer_call *call = ox_malloc(sizeof *call);
    call->c = c;
    call->call = waiting;
    call->request.done = call_answered;
    ox_list_push_back(&c->calls, &call->link);
    return call;
}

static void call_send(struct consumer_call *call, uint64_t id, Oxpb__BaseCommand__Type type, const ProtobufCMessage *sub)
{
    ox_client_conn_request(attach_conn(&call->c->attach), &call->request, id, ox_command_pack_sub(type, sub));
}

static void consumer_id_to_proto(const struct ox_message_id *id, Oxpb__MessageIdData *to)
{
    oxpb__message_id_data__init(to);
    to->ledger_id = (uint64_t)id->ledger;
    to->entry_id = (uint64_t)id->entry;
    to->has_partition = id->partition >= 0;
    to->partition = id->partition;
    to->has_batch_index = id->batch_index >= 0;
    to->batch_index = id->batch_index;
}

// Writes an acknowledgement; words: what stays outstanding of the entry (count 0: nothing).
static void consumer_write_ack(struct ox_client_consumer *c, struct ox_client_call *waiting,
                               const struct ox_message_id *id, bool cumulative, const uint64_t *words, size_t count)
{
    Oxpb__MessageIdData data, *ids[1] = {&data};
    consumer_id_to_proto(id, &data);
    data.has_batch_index = 0;
    data.ack_set = (int64_t *)(uintptr_t)words; // protobuf-c only reads it
    data.n_ack_set = count;
    data.has_batch_size = count != 0;
    data.batch_size = id->batch_size;
    Oxpb__CommandAck ack = OXPB__COMMAND_ACK__INIT;
    ack.consumer_id = c->attach.id;
    ack.ack_type = cumulative ? OXPB__COMMAND_ACK__ACK_TYPE__Cumulative : OXPB__COMMAND_ACK__ACK_TYPE__Individual;
    ack.message_id = ids;
    ack.n_message_id = 1;
    if (!waiting) {
        if (attach_conn(&c->attach))
            ox_client_conn_write(attach_conn(&c->attach), ox_command_pack_sub(OXPB__BASE_COMMAND__TYPE__ACK, &ack.base));
        return;
    }
    struct consumer_call *call = call_new(c, waiting);
    if (!call)
        return;
    ack.has_request_id = 1;
    ack.request_id = ox_client_next_id(c->attach.client);
    call_send(call, ack.request_id, OXPB__BASE_COMMAND__TYPE__ACK, &ack.base);
}

static void consumer_ack_nothing(struct ox_client_call *waiting)
{
    if (!waiting)
        return;
    ox_op_begin(&waiting->op);
    waiting->text[0] = '\0';
    ox_op_finish(&waiting->op, OX_OK);
}

void ox_client_consumer_ack(struct ox_client_consumer *c, struct ox_client_call *call, const struct ox_message_id *id,
                            bool cumulative)
{
    const uint64_t *words = NULL;
    size_t count = 0;
    if (id->batch_index < 0 || id->batch_size <= 1 || ox_client_acks_note(&c->acks, id, cumulative, &words, &count)) {
        consumer_write_ack(c, call, id, cumulative, NULL, 0);
    } else if (c->config.batch_index_ack) {
        consumer_write_ack(c, call, id, cumulative, words, count);
    } else if (cumulative) { // the batch stays, what is before it goes; entry -1: the ledgers before
        struct ox_message_id before = *id;
        before.entry--;
        consumer_write_ack(c, call, &before, true, NULL, 0);
    } else {
        consumer_ack_nothing(call);
    }
}

void ox_client_consumer_ack_raw(struct ox_client_consumer *c, const struct ox_message_id *id, bool cumulative,
                                const uint64_t *words, size_t count)
{
    consumer_write_ack(c, NULL, id, cumulative, words, count);
}

void ox_client_consumer_flow_raw(struct ox_client_consumer *c, uint32_t permits)
{
    consumer_flow(c, permits);
}

void ox_client_consumer_redeliver(struct ox_client_consumer *c, const struct ox_message_id *ids, size_t count)
{
    struct conn *conn = attach_conn(&c->attach);
    if (!conn)
        return; // attaching again brings all of them
    Oxpb__CommandRedeliverUnacknowledgedMessages ask = OXPB__COMMAND_REDELIVER_UNACKNOWLEDGED_MESSAGES__INIT;
    Oxpb__MessageIdData *data = ox_calloc(count, sizeof *data), **pointers = ox_calloc(count, sizeof *pointers);
    for (size_t i = 0; i < count; i++) {
        consumer_id_to_proto(&ids[i], &data[i]);
        pointers[i] = &data[i];
    }
    ask.consumer_id = c->attach.id;
    ask.n_message_ids = count;
    ask.message_ids = pointers;
    if (count == 0) {
        ox_client_acks_clear(&c->acks);
        ask.has_consumer_epoch = 1;
        ask.consumer_epoch = ++c->epoch;
    }
    ox_client_conn_write(conn, ox_command_pack_sub(OXPB__BASE_COMMAND__TYPE__REDELIVER_UNACKNOWLEDGED_MESSAGES, &ask.base));
    ox_free(data);
    ox_free(pointers);
}

// The server closes the consumer and answers, in this order or the other: it is attached again when the answer is there.
static void consumer_send_seek(struct ox_client_consumer *c, struct ox_client_call *waiting, Oxpb__CommandSeek *seek,
                               const struct ox_message_id *to)
{
    struct consumer_call *call = call_new(c, waiting);
    if (!call)
        return;
    call->seek = true;
    call->seek_to = *to;
    c->seeking = c->attach.hold = true;
    seek->consumer_id = c->attach.id;
    seek->request_id = ox_client_next_id(c->attach.client);
    call_send(call, seek->request_id, OXPB__BASE_COMMAND__TYPE__SEEK, &seek->base);
}

void ox_client_consumer_seek(struct ox_client_consumer *c, struct ox_client_call *call, const struct ox_message_id *id)
{
    Oxpb__MessageIdData data;
    Oxpb__CommandSeek seek = OXPB__COMMAND_SEEK__INIT;
    consumer_id_to_proto(id, &data);
    seek.message_id = &data;
    consumer_send_seek(c, call, &seek, id);
}

void ox_client_consumer_seek_time(struct ox_client_consumer *c, struct ox_client_call *call, uint64_t publish_time_ms)
{
    Oxpb__CommandSeek seek = OXPB__COMMAND_SEEK__INIT;
    seek.has_message_publish_time = 1;
    seek.message_publish_time = publish_time_ms;
    consumer_send_seek(c, call, &seek, &OX_MESSAGE_ID_NONE);
}

void ox_client_consumer_last_id(struct ox_client_consumer *c, struct ox_client_last_id *op)
{
    struct consumer_call *call = call_new(c, &op->call);
    if (!call)
        return;
    call->last_id = op;
    Oxpb__CommandGetLastMessageId ask = OXPB__COMMAND_GET_LAST_MESSAGE_ID__INIT;
    ask.consumer_id = c->attach.id;
    ask.request_id = ox_client_next_id(c->attach.client);
    call_send(call, ask.request_id, OXPB__BASE_COMMAND__TYPE__GET_LAST_MESSAGE_ID, &ask.base);
}

void ox_client_consumer_unsubscribe(struct ox_client_consumer *c, struct ox_client_call *waiting)
{
    struct consumer_call *call = call_new(c, waiting);
    if (!call)
        return;
    Oxpb__CommandUnsubscribe ask = OXPB__COMMAND_UNSUBSCRIBE__INIT;
    ask.consumer_id = c->attach.id;
    ask.request_id = ox_client_next_id(c->attach.client);
    c->attach.hold = true; // the server closes it; nobody wants it to subscribe again
    call_send(call, ask.request_id, OXPB__BASE_COMMAND__TYPE__UNSUBSCRIBE, &ask.base);
}

// ---- the server's side

static void consumer_start_id(const struct ox_client_consumer *c, Oxpb__MessageIdData *data)
{
    struct ox_message_id id = OX_MESSAGE_ID_NONE;
    if (c->last.ledger >= 0)
        id = c->last;
    else if (c->config.has_start)
        id = c->config.start;
    else if (!c->config.earliest) {
        id.ledger = OX_POS_LATEST.ledger;
        id.entry = OX_POS_LATEST.entry;
    }
    consumer_id_to_proto(&id, data);
}

// CommandSubscribe.keySharedMeta; the ranges are to be freed after packing.
struct consumer_keys {
    Oxpb__KeySharedMeta meta;
    Oxpb__IntRange *ranges, **pointers;
};

static void consumer_keys_fill(const struct ox_client_consumer *c, struct consumer_keys *keys)
{
    size_t n = c->config.range_count;
    oxpb__key_shared_meta__init(&keys->meta);
    keys->ranges = ox_calloc(n, sizeof *keys->ranges);
    keys->pointers = ox_calloc(n, sizeof *keys->pointers);
    for (size_t i = 0; i < n; i++) {
        oxpb__int_range__init(&keys->ranges[i]);
        keys->ranges[i].start = c->config.ranges[2 * i];
        keys->ranges[i].end = c->config.ranges[2 * i + 1];
        keys->pointers[i] = &keys->ranges[i];
    }
    keys->meta.key_shared_mode = n ? OXPB__KEY_SHARED_MODE__STICKY : OXPB__KEY_SHARED_MODE__AUTO_SPLIT;
    keys->meta.n_hash_ranges = n;
    keys->meta.hash_ranges = keys->pointers;
    keys->meta.has_allow_out_of_order_delivery = keys->meta.allow_out_of_order_delivery = c->config.out_of_order;
}

static struct ox_buf consumer_command(struct attach *a, uint64_t request_id)
{
    struct ox_client_consumer *c = consumer_of(a);
    Oxpb__MessageIdData start;
    struct consumer_keys keys;
    Oxpb__CommandSubscribe ask = OXPB__COMMAND_SUBSCRIBE__INIT;
    c->since_ns = ox_now_ns(a->client->loop);
    ask.topic = a->topic;
    ask.subscription = c->subscription;
    ask.sub_type = c->config.type;
    ask.consumer_id = a->id;
    ask.request_id = request_id;
    ask.consumer_name = c->name;
    ask.has_durable = 1;
    ask.durable = !c->config.non_durable;
    ask.has_initial_position = 1;
    ask.initial_position = c->config.earliest ? OXPB__COMMAND_SUBSCRIBE__INITIAL_POSITION__Earliest
                                              : OXPB__COMMAND_SUBSCRIBE__INITIAL_POSITION__Latest;
    ask.has_read_compacted = c->config.read_compacted;
    ask.read_compacted = c->config.read_compacted;
    ask.has_consumer_epoch = c->epoch != 0;
    ask.consumer_epoch = c->epoch;
    if (c->config.non_durable) {
        consumer_start_id(c, &start);
        ask.start_message_id = &start;
    }
    ask.has_priority_level = c->config.priority != 0;
    ask.priority_level = c->config.priority;
    consumer_keys_fill(c, &keys);
    if (ask.sub_type == OXPB__COMMAND_SUBSCRIBE__SUB_TYPE__Key_Shared)
        ask.key_shared_meta = &keys.meta;
    struct ox_buf frame = ox_command_pack_sub(OXPB__BASE_COMMAND__TYPE__SUBSCRIBE, &ask.base);
    ox_free(keys.ranges);
    ox_free(keys.pointers);
    return frame;
}

static void consumer_finish_open(struct ox_client_consumer *c, enum ox_err err)
{
    struct ox_client_consumer_open *open = c->open;
    if (!open)
        return;
    c->open = NULL;
    ox_client_text(open->call.text, err == OX_OK ? "" : c->attach.text);
    open->consumer = err == OX_OK ? c : NULL;
    ox_op_finish(&open->call.op, err);
}

static void consumer_on(struct attach *a, void *message)
{
    struct ox_client_consumer *c = consumer_of(a);
    (void)message;
    c->used = 0;
    if (c->paused)
        c->used = c->config.receiver_queue;
    else
        consumer_flow(c, c->config.receiver_queue);
    if (a->times > 1 && c->config.events->attached)
        c->config.events->attached(c);
    consumer_finish_open(c, OX_OK);
}

static void consumer_off(struct attach *a)
{
    ox_client_acks_clear(&consumer_of(a)->acks);
}

static void consumer_failed(struct attach *a, enum ox_err err)
{
    struct ox_client_consumer *c = consumer_of(a);
    c->failed = err;
    if (c->open) {
        ox_client_attach_close(a); // was never there: nothing for the caller to close
    } else if (c->config.events->failed) {
        c->config.events->failed(c, err, a->text);
    }
}

static void consumer_fail_calls(struct ox_client_consumer *c)
{
    struct ox_link *link;
    while ((link = ox_list_first(&c->calls))) {
        struct consumer_call *call = CONTAINER_OF(link, struct consumer_call, link);
        ox_client_conn_request_drop(&call->request);
        call_finish(call, OX_E_CLOSED, "the consumer was closed");
    }
}

static void consumer_closed(struct attach *a)
{
    struct ox_client_consumer *c = consumer_of(a);
    struct ox_op *close = c->close;
    ox_client_acks_clear(&c->acks);
    consumer_finish_open(c, c->failed != OX_OK ? c->failed : OX_E_CANCELED);
    ox_client_attach_fini(a);
    ox_free(c->subscription);
    ox_free(c->name);
    ox_free(c);
    if (close)
        ox_op_finish(close, OX_OK);
}

static const struct attach_body consumer_body = {
    .command = consumer_command,
    .on = consumer_on,
    .off = consumer_off,
    .failed = consumer_failed,
    .closed = consumer_closed,
    .event = consumer_event,
    .close_type = OXPB__BASE_COMMAND__TYPE__CLOSE_CONSUMER,
    .made_type = OXPB__BASE_COMMAND__TYPE__SUCCESS,
};

static void consumer_cancel_open(struct ox_op *op)
{
    struct ox_client_call *call = CONTAINER_OF(op, struct ox_client_call, op);
    struct ox_client_consumer *c = CONTAINER_OF(call, struct ox_client_consumer_open, call)->opening;
    if (!c->attach.closing)
        ox_client_attach_close(&c->attach);
}

void ox_client_consumer_open(struct ox_client *client, struct ox_client_consumer_open *op,
                             const struct ox_client_consumer_config *config)
{
    ox_op_begin(&op->call.op);
    struct ox_client_consumer *c = ox_malloc(sizeof *c);
    ox_client_attach_init(&c->attach, &consumer_body, client, config->topic, true);
    c->config = *config;
    c->config.topic = c->config.subscription = c->config.name = NULL;
    c->config.receiver_queue = config->receiver_queue ? config->receiver_queue : CONSUMER_QUEUE;
    c->subscription = ox_strdup(config->subscription);
    c->name = config->name ? ox_strdup(config->name) : NULL;
    c->sink = (struct receive_sink){.one = consumer_one, .damaged = consumer_damaged};
    c->last = OX_MESSAGE_ID_NONE;
    ox_list_init(&c->calls);
    c->open = op;
    op->opening = c;
    op->call.op.cancel = consumer_cancel_open;
    ox_client_attach_start(&c->attach);
}

void ox_client_consumer_close(struct ox_client_consumer *c, struct ox_op *op)
{
    ox_op_begin(op);
    c->close = op;
    consumer_fail_calls(c);
    ox_client_attach_close(&c->attach);
}
