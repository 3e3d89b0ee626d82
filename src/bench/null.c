// null.c - a server that answers everything at once and stores nothing: the client's ceiling.
#include "base/limits.h"
#include "base/mem.h"
#include "base/varint.h"
#include "bench/bench.h"
#include "wire/pulsar_command.h"
#include "wire/pulsar_frame.h"

struct bench_null {
    struct ox_listener *listener;
    char *url;
    int64_t next_entry;
};

struct null_conn {
    struct bench_null *n;
    struct ox_stream *stream;
    struct ox_frame_reader reader;
    struct ox_encoder encoder;
    bool paused, broken;
};

static void null_write(struct null_conn *c, struct ox_buf give_frame)
{
    ox_stream_write(c->stream, &give_frame, 1);
    ox_buf_unref(&give_frame);
}

// The value of an integer field of a command; 0 if it is not there.
static uint64_t null_number(struct ox_buf sub, uint32_t number)
{
    const uint8_t *at = sub.data, *end = sub.data + sub.len;
    struct ox_pb_field f;
    while (sub.len && ox_pb_next(&at, end, &f) == 1)
        if (f.number == number && f.wire_type == 0)
            return f.value;
    return 0;
}

static void null_connected(struct null_conn *c)
{
    char version[] = "oxbow-bench-null";
    Oxpb__CommandConnected answer = OXPB__COMMAND_CONNECTED__INIT;
    answer.server_version = version;
    answer.has_protocol_version = 1;
    answer.protocol_version = 21;
    answer.has_max_message_size = 1;
    answer.max_message_size = (int32_t)OX_MESSAGE_BYTES_MAX;
    null_write(c, ox_command_pack_sub(OXPB__BASE_COMMAND__TYPE__CONNECTED, &answer.base));
}

static void null_partitions(struct null_conn *c, uint64_t request_id)
{
    Oxpb__CommandPartitionedTopicMetadataResponse answer = OXPB__COMMAND_PARTITIONED_TOPIC_METADATA_RESPONSE__INIT;
    answer.request_id = request_id;
    answer.has_partitions = answer.has_response = 1;
    answer.response = OXPB__COMMAND_PARTITIONED_TOPIC_METADATA_RESPONSE__LOOKUP_TYPE__Success;
    null_write(c, ox_command_pack_sub(OXPB__BASE_COMMAND__TYPE__PARTITIONED_METADATA_RESPONSE, &answer.base));
}

static void null_lookup(struct null_conn *c, uint64_t request_id)
{
    Oxpb__CommandLookupTopicResponse answer = OXPB__COMMAND_LOOKUP_TOPIC_RESPONSE__INIT;
    answer.request_id = request_id;
    answer.broker_service_url = c->n->url;
    answer.has_response = answer.has_authoritative = answer.authoritative = 1;
    answer.response = OXPB__COMMAND_LOOKUP_TOPIC_RESPONSE__LOOKUP_TYPE__Connect;
    null_write(c, ox_command_pack_sub(OXPB__BASE_COMMAND__TYPE__LOOKUP_RESPONSE, &answer.base));
}

static void null_producer(struct null_conn *c, uint64_t request_id)
{
    char name[] = "null";
    Oxpb__CommandProducerSuccess answer = OXPB__COMMAND_PRODUCER_SUCCESS__INIT;
    answer.request_id = request_id;
    answer.producer_name = name;
    null_write(c, ox_command_pack_sub(OXPB__BASE_COMMAND__TYPE__PRODUCER_SUCCESS, &answer.base));
}

static enum ox_err null_send(struct null_conn *c, struct ox_buf sub)
{
    struct ox_command_send send;
    enum ox_err err = ox_command_send_decode(sub, &send);
    if (err != OX_OK)
        return err;
    struct ox_message_id id = OX_MESSAGE_ID_NONE;
    id.ledger = 1;
    id.entry = c->n->next_entry++;
    null_write(c, ox_encode_send_receipt(&c->encoder, send.producer_id, send.sequence_id,
                                         send.has_highest ? send.highest_sequence_id : 0, &id));
    return OX_OK;
}

static void null_acked(struct null_conn *c, struct ox_buf sub)
{
    struct ox_command_ack ack;
    if (ox_command_ack_decode(sub, &ack) != OX_OK || !ack.has_request_id)
        return;
    struct ox_ack_answer answer = {.consumer_id = ack.consumer_id, .request_id = ack.request_id};
    null_write(c, ox_encode_ack_response(&c->encoder, &answer));
}

static enum ox_err null_command(struct null_conn *c, uint32_t type, struct ox_buf sub)
{
    switch (type) {
    case OXPB__BASE_COMMAND__TYPE__SEND: return null_send(c, sub);
    case OXPB__BASE_COMMAND__TYPE__CONNECT: null_connected(c); break;
    case OXPB__BASE_COMMAND__TYPE__PARTITIONED_METADATA: null_partitions(c, null_number(sub, 2)); break;
    case OXPB__BASE_COMMAND__TYPE__LOOKUP: null_lookup(c, null_number(sub, 2)); break;
    case OXPB__BASE_COMMAND__TYPE__PRODUCER: null_producer(c, null_number(sub, 3)); break;
    case OXPB__BASE_COMMAND__TYPE__SUBSCRIBE: null_write(c, ox_encode_success(&c->encoder, null_number(sub, 5))); break;
    case OXPB__BASE_COMMAND__TYPE__CLOSE_PRODUCER:
    case OXPB__BASE_COMMAND__TYPE__CLOSE_CONSUMER:
    case OXPB__BASE_COMMAND__TYPE__UNSUBSCRIBE:
        null_write(c, ox_encode_success(&c->encoder, null_number(sub, 2)));
        break;
    case OXPB__BASE_COMMAND__TYPE__ACK: null_acked(c, sub); break;
    case OXPB__BASE_COMMAND__TYPE__PING: null_write(c, ox_encode_pong(&c->encoder)); break;
    default: // a flow, a pong: nothing to say
        break;
    }
    return OX_OK;
}

static enum ox_err null_frame(struct null_conn *c, struct ox_buf frame)
{
    struct ox_buf command, body, sub;
    uint32_t type;
    enum ox_err err = ox_frame_split(frame, &command, &body);
    if (err == OX_OK)
        err = ox_command_peek(command, &type, &sub);
    return err == OX_OK ? null_command(c, type, sub) : err;
}

static void null_space(struct ox_stream *s, uint8_t **ret_data, size_t *ret_len)
{
    struct null_conn *c = s->owner;
    ox_frame_reader_space(&c->reader, ret_data, ret_len);
}

static void null_filled(struct ox_stream *s, size_t n)
{
    struct null_conn *c = s->owner;
    ox_frame_reader_filled(&c->reader, n);
    while (!c->broken) {
        struct ox_buf frame;
        enum ox_err err = ox_frame_reader_next(&c->reader, &frame);
        if (err == OX_OK && frame.len == 0)
            break;
        if (err == OX_OK) {
            err = null_frame(c, frame);
            ox_buf_unref(&frame);
        }
        if (err != OX_OK) {
            c->broken = true;
            ox_stream_abort(s, err);
        }
    }
    if (s->above_high && !c->paused && !c->broken) {
        c->paused = true;
        ox_stream_pause(s);
    }
}

static void null_writable(struct ox_stream *s)
{
    struct null_conn *c = s->owner;
    if (c->paused)
        ox_stream_resume(s);
    c->paused = false;
}

static void null_closed(struct ox_stream *s, enum ox_err err)
{
    struct null_conn *c = s->owner;
    (void)err;
    ox_frame_reader_fini(&c->reader);
    ox_encoder_fini(&c->encoder);
    ox_free(c);
}

static const struct ox_stream_events null_events = {
    .space = null_space, .filled = null_filled, .writable = null_writable, .closed = null_closed};

static void null_accept(struct ox_listener *l, struct ox_stream *s)
{
    struct null_conn *c = ox_malloc(sizeof *c);
    c->n = l->owner;
    c->stream = s;
    ox_frame_reader_init(&c->reader, OX_MESSAGE_BYTES_MAX + OX_FRAME_SLACK_BYTES, OX_COMMAND_BYTES_MAX);
    s->events = &null_events;
    s->owner = c;
}

enum ox_err bench_null_open(struct ox_net *net, const char *host, uint16_t port, const char *url, struct bench_null **ret)
{
    struct bench_null *n = ox_malloc(sizeof *n);
    enum ox_err err = ox_net_listen(net, host, port, &n->listener);
    if (err != OX_OK) {
        ox_free(n);
        return err;
    }
    n->listener->accept = null_accept;
    n->listener->owner = n;
    n->url = ox_strdup(url);
    *ret = n;
    return OX_OK;
}

void bench_null_close(struct bench_null *n)
{
    ox_net_unlisten(n->listener);
    ox_free(n->url);
    ox_free(n);
}
