// fake_broker.c - for tests of the client: one topic and its subscription in memory behind a real listener, with faults on demand.
#include "client/fake_broker.h"

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"

struct fake_session {
    struct ox_link link;
    struct fake_broker *b;
    struct ox_stream *stream;
    struct ox_frame_reader reader;
    struct ox_encoder encoder;
    struct ox_arena arena;
    bool has_producer, has_consumer;
    uint64_t producer_id, consumer_id;
    int64_t permits;
    size_t next; // entry to deliver
    bool cut;
};

static void session_write(struct fake_session *s, struct ox_buf give)
{
    if (!s->cut)
        ox_stream_write(s->stream, &give, 1);
    ox_buf_unref(&give);
}

static void session_cut(struct fake_session *s)
{
    if (!s->cut)
        ox_stream_abort(s->stream, OX_E_DISCONNECTED);
    s->cut = true;
}

static void session_deliver(struct fake_session *s)
{
    struct fake_broker *b = s->b;
    for (; s->has_consumer && s->permits > 0 && s->next < b->count; s->next++) {
        if (b->acked[s->next])
            continue;
        struct ox_delivery d = {.consumer_id = s->consumer_id, .id = OX_MESSAGE_ID_NONE};
        d.id.ledger = FAKE_LEDGER;
        d.id.entry = (int64_t)s->next;
        d.ack_set = &b->outstanding;
        d.ack_set_words = b->outstanding != 0;
        session_write(s, ox_encode_message_head(&s->encoder, &d, b->entries[s->next].len));
        session_write(s, ox_buf_ref(b->entries[s->next]));
        s->permits -= b->messages[s->next];
    }
}

static void broker_deliver(struct fake_broker *b)
{
    OX_LIST_EACH(&b->sessions, link)
        session_deliver(CONTAINER_OF(link, struct fake_session, link));
}

static void *session_unpack(struct fake_session *s, const ProtobufCMessageDescriptor *type, struct ox_buf sub)
{
    void *message = NULL;
    enum ox_err err = ox_proto_unpack(type, &s->arena, sub.data, sub.len, &message);
    OX_ASSERT(err == OX_OK);
    return message;
}

static void session_connect(struct fake_session *s)
{
    char version[] = "fake";
    Oxpb__CommandConnected answer = OXPB__COMMAND_CONNECTED__INIT;
    answer.server_version = version;
    answer.has_max_message_size = s->b->message_bytes_max != 0;
    answer.max_message_size = (int32_t)s->b->message_bytes_max;
    s->b->connects++;
    session_write(s, ox_command_pack_sub(OXPB__BASE_COMMAND__TYPE__CONNECTED, &answer.base));
}

static void session_lookup(struct fake_session *s, struct ox_buf sub)
{
    const Oxpb__CommandLookupTopic *ask = session_unpack(s, &oxpb__command_lookup_topic__descriptor, sub);
    char url[64] = "pulsar://broker:6650";
    Oxpb__CommandLookupTopicResponse answer = OXPB__COMMAND_LOOKUP_TOPIC_RESPONSE__INIT;
    s->b->lookups++;
    if (s->b->garbage) {
        session_write(s, ox_buf_static("\0\0\0\x04\x7f\xff\xff\xff", 8));
        return;
    }
    if (s->b->redirect)
        strcpy(url, s->b->redirect);
    answer.request_id = ask->request_id;
    answer.broker_service_url = url;
    answer.has_response = 1;
    answer.response = s->b->redirect ? OXPB__COMMAND_LOOKUP_TOPIC_RESPONSE__LOOKUP_TYPE__Redirect
                                     : OXPB__COMMAND_LOOKUP_TOPIC_RESPONSE__LOOKUP_TYPE__Connect;
    session_write(s, ox_command_pack_sub(OXPB__BASE_COMMAND__TYPE__LOOKUP_RESPONSE, &answer.base));
}

static void session_partitions(struct fake_session *s, struct ox_buf sub)
{
    const Oxpb__CommandPartitionedTopicMetadata *ask =
        session_unpack(s, &oxpb__command_partitioned_topic_metadata__descriptor, sub);
    Oxpb__CommandPartitionedTopicMetadataResponse answer = OXPB__COMMAND_PARTITIONED_TOPIC_METADATA_RESPONSE__INIT;
    answer.request_id = ask->request_id;
    answer.has_partitions = 1;
    answer.partitions = s->b->partitions;
    session_write(s, ox_command_pack_sub(OXPB__BASE_COMMAND__TYPE__PARTITIONED_METADATA_RESPONSE, &answer.base));
}

static bool session_refuse(struct fake_session *s, uint64_t request_id)
{
    if (s->b->create_errors == 0)
        return false;
    s->b->create_errors--;
    session_write(s, ox_encode_error(&s->encoder, request_id, s->b->create_error, "refused for the test"));
    return true;
}

static void session_producer(struct fake_session *s, struct ox_buf sub)
{
    const Oxpb__CommandProducer *ask = session_unpack(s, &oxpb__command_producer__descriptor, sub);
    char name[64] = "made-up-name";
    Oxpb__CommandProducerSuccess answer = OXPB__COMMAND_PRODUCER_SUCCESS__INIT;
    s->b->producers++;
    if (session_refuse(s, ask->request_id))
        return;
    if (s->b->wrong_answers) {
        session_write(s, ox_encode_success(&s->encoder, ask->request_id));
        return;
    }
    if (ask->producer_name)
        strncpy(name, ask->producer_name, sizeof name - 1);
    s->has_producer = true;
    s->producer_id = ask->producer_id;
    answer.request_id = ask->request_id;
    answer.producer_name = name;
    answer.has_last_sequence_id = 1;
    answer.last_sequence_id = s->b->last_sequence;
    session_write(s, ox_command_pack_sub(OXPB__BASE_COMMAND__TYPE__PRODUCER_SUCCESS, &answer.base));
}

void fake_broker_add(struct fake_broker *b, struct ox_buf give_entry, uint32_t messages)
{
    OX_ASSERT(b->count < FAKE_ENTRIES_MAX);
    b->entries[b->count] = give_entry;
    b->messages[b->count++] = messages;
    broker_deliver(b);
}

static void session_send(struct fake_session *s, struct ox_buf sub, struct ox_buf body)
{
    struct fake_broker *b = s->b;
    struct ox_command_send send;
    struct ox_message_id id = OX_MESSAGE_ID_NONE;
    OX_ASSERT(ox_command_send_decode(sub, &send) == OX_OK);
    int64_t last = (int64_t)(send.has_highest ? send.highest_sequence_id : send.sequence_id);
    if (b->has_send_error) {
        b->has_send_error = false;
        session_write(s, ox_encode_send_error(&s->encoder, send.producer_id, send.sequence_id, b->send_error, "not this one"));
        return;
    }
    if (!b->deduplicate || last > b->last_sequence) {
        id.ledger = FAKE_LEDGER;
        id.entry = (int64_t)b->count;
        b->last_sequence = last;
        fake_broker_add(b, ox_buf_copy(body.data, body.len), (uint32_t)OX_MAX(send.num_messages, 1));
    }
    if (b->receipts_before_cut == 0) {
        b->receipts_before_cut = -1;
        session_cut(s);
        return;
    }
    if (b->receipts_before_cut > 0)
        b->receipts_before_cut--;
    session_write(s, ox_encode_send_receipt(&s->encoder, send.producer_id, send.sequence_id, send.highest_sequence_id, &id));
}

static void session_subscribe(struct fake_session *s, struct ox_buf sub)
{
    const Oxpb__CommandSubscribe *ask = session_unpack(s, &oxpb__command_subscribe__descriptor, sub);
    s->b->subscribes++;
    if (session_refuse(s, ask->request_id))
        return;
    s->has_consumer = true;
    s->consumer_id = ask->consumer_id;
    s->permits = 0;
    s->next = (size_t)s->b->read_from;
    if (ask->start_message_id && (int64_t)ask->start_message_id->ledger_id == FAKE_LEDGER)
        s->next = (size_t)ask->start_message_id->entry_id;
    session_write(s, ox_encode_success(&s->encoder, ask->request_id));
}

static void session_ack(struct fake_session *s, struct ox_buf sub)
{
    struct ox_command_ack ack;
    struct ox_message_id id;
    size_t at = 0;
    OX_ASSERT(ox_command_ack_decode(sub, &ack) == OX_OK);
    while (ox_command_ack_next(&ack, &at, &id)) {
        s->b->acks++;
        s->b->ack_words = id.ack_set_words;
        for (int64_t i = ack.is_cumulative ? 0 : id.entry; i <= id.entry && i < (int64_t)s->b->count; i++)
            s->b->acked[i] = s->b->acked[i] || i < id.entry || id.ack_set_words == 0;
    }
    struct ox_ack_answer answer = {.consumer_id = ack.consumer_id, .request_id = ack.request_id};
    if (ack.has_request_id)
        session_write(s, ox_encode_ack_response(&s->encoder, &answer));
}

static void session_close_consumer(struct fake_session *s)
{
    Oxpb__CommandCloseConsumer close = OXPB__COMMAND_CLOSE_CONSUMER__INIT;
    close.consumer_id = s->consumer_id;
    close.request_id = UINT64_MAX;
    s->has_consumer = false;
    session_write(s, ox_command_pack_sub(OXPB__BASE_COMMAND__TYPE__CLOSE_CONSUMER, &close.base));
}

static void session_seek(struct fake_session *s, struct ox_buf sub)
{
    const Oxpb__CommandSeek *ask = session_unpack(s, &oxpb__command_seek__descriptor, sub);
    int64_t to = ask->message_id ? (int64_t)ask->message_id->entry_id : 0;
    for (size_t i = 0; i < s->b->count; i++)
        s->b->acked[i] = (int64_t)i < to;
    uint64_t request_id = ask->request_id;
    session_close_consumer(s);
    session_write(s, ox_encode_success(&s->encoder, request_id));
}

static void session_last_id(struct fake_session *s, struct ox_buf sub)
{
    const Oxpb__CommandGetLastMessageId *ask = session_unpack(s, &oxpb__command_get_last_message_id__descriptor, sub);
    Oxpb__MessageIdData id = OXPB__MESSAGE_ID_DATA__INIT;
    id.ledger_id = FAKE_LEDGER;
    id.entry_id = s->b->count - 1;
    Oxpb__CommandGetLastMessageIdResponse answer = OXPB__COMMAND_GET_LAST_MESSAGE_ID_RESPONSE__INIT;
    answer.last_message_id = &id;
    answer.request_id = ask->request_id;
    session_write(s, ox_command_pack_sub(OXPB__BASE_COMMAND__TYPE__GET_LAST_MESSAGE_ID_RESPONSE, &answer.base));
}

// Commands that are answered with Success, all of which have their request id in field 2.
static void session_succeed(struct fake_session *s, struct ox_buf sub)
{
    const Oxpb__CommandUnsubscribe *ask = session_unpack(s, &oxpb__command_unsubscribe__descriptor, sub);
    session_write(s, ox_encode_success(&s->encoder, ask->request_id));
}

static void session_flow(struct fake_session *s, struct ox_buf sub)
{
    struct ox_command_flow flow;
    OX_ASSERT(ox_command_flow_decode(sub, &flow) == OX_OK);
    s->permits += flow.permits;
    s->b->permits_given += flow.permits;
    session_deliver(s);
}

static void session_command(struct fake_session *s, uint32_t type, struct ox_buf sub, struct ox_buf body)
{
    if (s->b->silent && type != OXPB__BASE_COMMAND__TYPE__CONNECT)
        return;
    switch (type) {
    case OXPB__BASE_COMMAND__TYPE__CONNECT: session_connect(s); break;
    case OXPB__BASE_COMMAND__TYPE__LOOKUP: session_lookup(s, sub); break;
    case OXPB__BASE_COMMAND__TYPE__PARTITIONED_METADATA: session_partitions(s, sub); break;
    case OXPB__BASE_COMMAND__TYPE__PRODUCER: session_producer(s, sub); break;
    case OXPB__BASE_COMMAND__TYPE__SEND: session_send(s, sub, body); break;
    case OXPB__BASE_COMMAND__TYPE__SUBSCRIBE: session_subscribe(s, sub); break;
    case OXPB__BASE_COMMAND__TYPE__FLOW: session_flow(s, sub); break;
    case OXPB__BASE_COMMAND__TYPE__ACK: session_ack(s, sub); break;
    case OXPB__BASE_COMMAND__TYPE__SEEK: session_seek(s, sub); break;
    case OXPB__BASE_COMMAND__TYPE__GET_LAST_MESSAGE_ID: session_last_id(s, sub); break;
    case OXPB__BASE_COMMAND__TYPE__REDELIVER_UNACKNOWLEDGED_MESSAGES:
        s->next = 0;
        session_deliver(s);
        break;
    case OXPB__BASE_COMMAND__TYPE__CLOSE_CONSUMER:
        s->has_consumer = false;
        session_succeed(s, sub);
        break;
    case OXPB__BASE_COMMAND__TYPE__CLOSE_PRODUCER:
        s->has_producer = false;
        session_succeed(s, sub);
        break;
    case OXPB__BASE_COMMAND__TYPE__UNSUBSCRIBE: session_succeed(s, sub); break;
    case OXPB__BASE_COMMAND__TYPE__PING: session_write(s, ox_encode_pong(&s->encoder)); break;
    default: break;
    }
}

static void session_space(struct ox_stream *stream, uint8_t **ret_data, size_t *ret_len)
{
    struct fake_session *s = stream->owner;
    ox_frame_reader_space(&s->reader, ret_data, ret_len);
}

static void session_filled(struct ox_stream *stream, size_t n)
{
    struct fake_session *s = stream->owner;
    struct ox_buf frame, command, body, sub;
    uint32_t type;
    ox_frame_reader_filled(&s->reader, n);
    while (!s->cut && ox_frame_reader_next(&s->reader, &frame) == OX_OK && frame.len) {
        OX_ASSERT(ox_frame_split(frame, &command, &body) == OX_OK);
        OX_ASSERT(ox_command_peek(command, &type, &sub) == OX_OK);
        session_command(s, type, sub, body);
        ox_arena_reset(&s->arena);
        ox_buf_unref(&frame);
    }
}

static void session_writable(struct ox_stream *stream)
{
    (void)stream;
}

static void session_closed(struct ox_stream *stream, enum ox_err err)
{
    struct fake_session *s = stream->owner;
    (void)err;
    ox_list_remove(&s->b->sessions, &s->link);
    ox_frame_reader_fini(&s->reader);
    ox_encoder_fini(&s->encoder);
    ox_arena_fini(&s->arena);
    ox_free(s);
}

static const struct ox_stream_events session_events = {
    .space = session_space, .filled = session_filled, .writable = session_writable, .closed = session_closed};

static void broker_accept(struct ox_listener *l, struct ox_stream *stream)
{
    struct fake_broker *b = l->owner;
    struct fake_session *s = ox_malloc(sizeof *s);
    s->b = b;
    s->stream = stream;
    ox_frame_reader_init(&s->reader, OX_MESSAGE_BYTES_MAX + OX_FRAME_SLACK_BYTES, OX_COMMAND_BYTES_MAX);
    ox_arena_init(&s->arena, 1u << 20);
    ox_list_push_back(&b->sessions, &s->link);
    stream->events = &session_events;
    stream->owner = s;
}

void fake_broker_start(struct fake_broker *b, struct ox_net *net)
{
    ox_list_init(&b->sessions);
    b->receipts_before_cut = -1;
    b->last_sequence = -1;
    OX_ASSERT(ox_net_listen(net, "0.0.0.0", FAKE_PORT, &b->listener) == OX_OK);
    b->listener->accept = broker_accept;
    b->listener->owner = b;
}

void fake_broker_cut(struct fake_broker *b)
{
    OX_LIST_EACH(&b->sessions, link)
        session_cut(CONTAINER_OF(link, struct fake_session, link));
}

void fake_broker_unload(struct fake_broker *b)
{
    OX_LIST_EACH(&b->sessions, link) {
        struct fake_session *s = CONTAINER_OF(link, struct fake_session, link);
        Oxpb__CommandCloseProducer close = OXPB__COMMAND_CLOSE_PRODUCER__INIT;
        close.producer_id = s->producer_id;
        close.request_id = UINT64_MAX;
        if (s->has_consumer)
            session_close_consumer(s);
        if (s->has_producer)
            session_write(s, ox_command_pack_sub(OXPB__BASE_COMMAND__TYPE__CLOSE_PRODUCER, &close.base));
        s->has_producer = false;
    }
}

void fake_broker_stop(struct fake_broker *b)
{
    fake_broker_cut(b);
    ox_net_unlisten(b->listener);
    for (size_t i = 0; i < b->count; i++)
        ox_buf_unref(&b->entries[i]);
    b->count = 0;
}
