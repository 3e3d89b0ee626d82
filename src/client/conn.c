// conn.c - one connection to a broker: handshake, keep-alive, requests by id, commands to producers and consumers.
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/varint.h"
#include "client/client_int.h"

#define CONN_TICK_NS (1 * OX_SEC)
#define CONN_PING_NS (30 * OX_SEC)
#define CONN_SILENCE_NS (60 * OX_SEC)
#define CONN_PROTOCOL_VERSION 21
#define CONN_ARENA_BYTES (4u << 20)

static bool conn_is(const struct conn *conn, const char *host, uint16_t port)
{
    return conn->port == port && strcmp(conn->host, host) == 0;
}

static struct conn *conn_lookup(struct ox_client *client, const char *host, uint16_t port)
{
    OX_LIST_EACH(&client->conns, link) {
        struct conn *conn = CONTAINER_OF(link, struct conn, link);
        if (conn_is(conn, host, port) && conn->state != CONN_CLOSED && !conn->broken)
            return conn;
    }
    return NULL;
}

struct conn *ox_client_conn_find(struct ox_client *client, const char *host, uint16_t port)
{
    struct conn *conn = conn_lookup(client, host, port);
    return conn && conn->state == CONN_READY ? conn : NULL;
}

static void conn_set_state(struct conn *conn, enum conn_state state)
{
    OX_ASSERT(state > conn->state);
    conn->state = state;
}

static void conn_wake_waiters(struct conn *conn, enum ox_err err)
{
    struct ox_link *link;
    while ((link = ox_list_pop_front(&conn->waiters)))
        ox_op_finish(CONTAINER_OF(link, struct ox_op, link), err);
}

void ox_client_conn_request_drop(struct client_request *r)
{
    if (!r->conn)
        return;
    ox_map_remove(&r->conn->requests, &r->node);
    ox_list_remove(&r->conn->by_age, &r->link);
    r->conn = NULL;
}

static void conn_fail_requests(struct conn *conn, enum ox_err err)
{
    struct ox_link *link;
    while ((link = ox_list_first(&conn->by_age))) {
        struct client_request *r = CONTAINER_OF(link, struct client_request, link);
        ox_client_conn_request_drop(r);
        r->done(r, err, 0, NULL, conn->text);
    }
}

void ox_client_conn_add_peer(struct conn *conn, struct conn_peer *peer, uint64_t id)
{
    peer->conn = conn;
    ox_map_put_u64(peer->consumer ? &conn->consumers : &conn->producers, &peer->node, id);
}

void ox_client_conn_remove_peer(struct conn_peer *peer)
{
    if (!peer->conn)
        return;
    ox_map_remove(peer->consumer ? &peer->conn->consumers : &peer->conn->producers, &peer->node);
    peer->conn = NULL;
}

static void conn_fail_peers(struct ox_map *peers, enum ox_err err)
{
    struct ox_map_node *node;
    while ((node = ox_map_first(peers))) {
        struct conn_peer *peer = CONTAINER_OF(node, struct conn_peer, node);
        ox_client_conn_remove_peer(peer);
        peer->lost(peer, err);
    }
}

// The end of a connection: everything on it learns why, then it is freed.
static void conn_end(struct conn *conn, enum ox_err err)
{
    struct ox_client *client = conn->client;
    if (conn->why != OX_OK)
        err = conn->why;
    if (err == OX_OK || err == OX_E_END_OF_FILE)
        err = OX_E_DISCONNECTED;
    conn_set_state(conn, CONN_CLOSED);
    ox_list_remove(&client->conns, &conn->link);
    ox_timer_stop(&conn->timer);
    conn_wake_waiters(conn, err);
    conn_fail_requests(conn, err);
    conn_fail_peers(&conn->producers, err);
    conn_fail_peers(&conn->consumers, err);
    ox_frame_reader_fini(&conn->reader);
    ox_encoder_fini(&conn->encoder);
    ox_arena_fini(&conn->arena);
    ox_free(conn->host);
    ox_free(conn);
    ox_client_conn_gone(client);
}

void ox_client_conn_break(struct conn *conn, enum ox_err err)
{
    if (conn->broken)
        return;
    conn->broken = true;
    conn->why = err;
    if (conn->stream)
        ox_stream_abort(conn->stream, err);
    else
        ox_op_cancel(&conn->connect);
}

void ox_client_conn_write(struct conn *conn, struct ox_buf give_frame)
{
    if (!conn->broken)
        ox_stream_write(conn->stream, &give_frame, 1);
    ox_buf_unref(&give_frame);
}

void ox_client_conn_request(struct conn *conn, struct client_request *r, uint64_t id, struct ox_buf give_frame)
{
    r->conn = conn;
    r->deadline_ns = ox_now_ns(conn->client->loop) + conn->client->timeout_ns;
    ox_map_put_u64(&conn->requests, &r->node, id);
    ox_list_push_back(&conn->by_age, &r->link);
    ox_client_conn_write(conn, give_frame);
}

static void conn_expire_requests(struct conn *conn, uint64_t now)
{
    struct ox_link *link;
    while ((link = ox_list_first(&conn->by_age))) {
        struct client_request *r = CONTAINER_OF(link, struct client_request, link);
        if (r->deadline_ns > now)
            return;
        ox_client_conn_request_drop(r);
        r->done(r, OX_E_TIMEOUT, 0, NULL, "the server did not answer in time");
    }
}

static void conn_tick(struct ox_timer *timer)
{
    struct conn *conn = CONTAINER_OF(timer, struct conn, timer);
    uint64_t now = ox_now_ns(timer->loop), silent = now - conn->last_in_ns;
    ox_timer_start(timer, CONN_TICK_NS);
    if (conn->state != CONN_READY) {
        if (now - conn->started_ns > conn->client->timeout_ns)
            ox_client_conn_break(conn, OX_E_TIMEOUT);
        return;
    }
    if (silent > CONN_SILENCE_NS)
        ox_client_conn_break(conn, OX_E_TIMEOUT);
    else if (silent > CONN_PING_NS && silent <= CONN_PING_NS + CONN_TICK_NS)
        ox_client_conn_write(conn, ox_encode_ping(&conn->encoder));
    conn_expire_requests(conn, now);
}

static void conn_send_connect(struct conn *conn)
{
    Oxpb__FeatureFlags flags = OXPB__FEATURE_FLAGS__INIT;
    flags.has_supports_broker_entry_metadata = flags.supports_broker_entry_metadata = 1;
    Oxpb__CommandConnect connect = OXPB__COMMAND_CONNECT__INIT;
    char version[] = "oxbow-client";
    connect.client_version = version;
    connect.has_protocol_version = 1;
    connect.protocol_version = CONN_PROTOCOL_VERSION;
    connect.feature_flags = &flags;
    ox_client_conn_write(conn, ox_command_pack_sub(OXPB__BASE_COMMAND__TYPE__CONNECT, &connect.base));
}

static enum ox_err conn_handshake(struct conn *conn, uint32_t type, struct ox_buf sub)
{
    if (type == OXPB__BASE_COMMAND__TYPE__ERROR) {
        Oxpb__CommandError *error;
        enum ox_err err = ox_proto_unpack(&oxpb__command_error__descriptor, &conn->arena, sub.data, sub.len, &error);
        if (err != OX_OK)
            return err;
        ox_client_text(conn->text, error->message);
        return ox_client_err_of_server(error->error);
    }
    if (type != OXPB__BASE_COMMAND__TYPE__CONNECTED)
        return OX_E_MALFORMED;
    Oxpb__CommandConnected *connected;
    enum ox_err err = ox_proto_unpack(&oxpb__command_connected__descriptor, &conn->arena, sub.data, sub.len, &connected);
    if (err != OX_OK)
        return err;
    if (connected->has_max_message_size && connected->max_message_size > 0)
        conn->message_bytes_max = (size_t)connected->max_message_size;
    conn_set_state(conn, CONN_READY);
    conn_wake_waiters(conn, OX_OK);
    return OX_OK;
}

// The answers to requests.
static const ProtobufCMessageDescriptor *conn_answer_type(uint32_t type)
{
    switch (type) {
    case OXPB__BASE_COMMAND__TYPE__SUCCESS: return &oxpb__command_success__descriptor;
    case OXPB__BASE_COMMAND__TYPE__ERROR: return &oxpb__command_error__descriptor;
    case OXPB__BASE_COMMAND__TYPE__PRODUCER_SUCCESS: return &oxpb__command_producer_success__descriptor;
    case OXPB__BASE_COMMAND__TYPE__PARTITIONED_METADATA_RESPONSE:
        return &oxpb__command_partitioned_topic_metadata_response__descriptor;
    case OXPB__BASE_COMMAND__TYPE__LOOKUP_RESPONSE: return &oxpb__command_lookup_topic_response__descriptor;
    case OXPB__BASE_COMMAND__TYPE__GET_LAST_MESSAGE_ID_RESPONSE:
        return &oxpb__command_get_last_message_id_response__descriptor;
    case OXPB__BASE_COMMAND__TYPE__ACK_RESPONSE: return &oxpb__command_ack_response__descriptor;
    default: return NULL;
    }
}

static void conn_answer(struct client_request *r, uint32_t type, void *message)
{
    if (type != OXPB__BASE_COMMAND__TYPE__ERROR) {
        r->done(r, OX_OK, type, message, "");
        return;
    }
    const Oxpb__CommandError *error = message;
    r->done(r, ox_client_err_of_server(error->error), type, NULL, error->message);
}

static enum ox_err conn_answered(struct conn *conn, const ProtobufCMessageDescriptor *descriptor, uint32_t type,
                                 struct ox_buf sub)
{
    void *message;
    enum ox_err err = ox_proto_unpack(descriptor, &conn->arena, sub.data, sub.len, &message);
    if (err != OX_OK)
        return err;
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field_by_name(descriptor, "request_id");
    uint64_t id;
    memcpy(&id, (const char *)message + field->offset, sizeof id);
    struct ox_map_node *node = ox_map_find_u64(&conn->requests, id);
    if (!node)
        return OX_OK; // too late: it was given up
    struct client_request *r = CONTAINER_OF(node, struct client_request, node);
    ox_client_conn_request_drop(r);
    conn_answer(r, type, message);
    return OX_OK;
}

// The first field of each command for a producer or consumer is its id.
static enum ox_err conn_to_peer(struct ox_map *peers, uint32_t type, struct ox_buf sub, struct ox_buf body)
{
    const uint8_t *at = sub.data, *end = sub.data + sub.len;
    struct ox_pb_field field;
    while (sub.len && ox_pb_next(&at, end, &field) == 1) {
        if (field.number != 1 || field.wire_type != 0)
            continue;
        struct ox_map_node *node = ox_map_find_u64(peers, field.value);
        if (node) {
            struct conn_peer *peer = CONTAINER_OF(node, struct conn_peer, node);
            peer->command(peer, type, sub, body);
        }
        return OX_OK;
    }
    return OX_E_MALFORMED;
}

static enum ox_err conn_command(struct conn *conn, uint32_t type, struct ox_buf sub, struct ox_buf body)
{
    const ProtobufCMessageDescriptor *answer = conn_answer_type(type);
    if (answer)
        return conn_answered(conn, answer, type, sub);
    switch (type) {
    case OXPB__BASE_COMMAND__TYPE__PING: ox_client_conn_write(conn, ox_encode_pong(&conn->encoder)); return OX_OK;
    case OXPB__BASE_COMMAND__TYPE__SEND_RECEIPT:
    case OXPB__BASE_COMMAND__TYPE__SEND_ERROR:
    case OXPB__BASE_COMMAND__TYPE__CLOSE_PRODUCER: return conn_to_peer(&conn->producers, type, sub, body);
    case OXPB__BASE_COMMAND__TYPE__MESSAGE:
    case OXPB__BASE_COMMAND__TYPE__CLOSE_CONSUMER:
    case OXPB__BASE_COMMAND__TYPE__REACHED_END_OF_TOPIC:
    case OXPB__BASE_COMMAND__TYPE__ACTIVE_CONSUMER_CHANGE: return conn_to_peer(&conn->consumers, type, sub, body);
    default: // a pong, or what this client did not ask for
        return OX_OK;
    }
}

static enum ox_err conn_frame(struct conn *conn, struct ox_buf frame)
{
    struct ox_buf command, body, sub;
    uint32_t type;
    enum ox_err err = ox_frame_split(frame, &command, &body);
    if (err == OX_OK)
        err = ox_command_peek(command, &type, &sub);
    if (err != OX_OK)
        return err;
    err = conn->state == CONN_HANDSHAKE ? conn_handshake(conn, type, sub) : conn_command(conn, type, sub, body);
    ox_arena_reset(&conn->arena);
    return err;
}

static void conn_space(struct ox_stream *s, uint8_t **ret_data, size_t *ret_len)
{
    struct conn *conn = s->owner;
    ox_frame_reader_space(&conn->reader, ret_data, ret_len);
}

static void conn_filled(struct ox_stream *s, size_t n)
{
    struct conn *conn = s->owner;
    conn->last_in_ns = ox_now_ns(conn->client->loop);
    ox_frame_reader_filled(&conn->reader, n);
    while (!conn->broken) {
        struct ox_buf frame;
        enum ox_err err = ox_frame_reader_next(&conn->reader, &frame);
        if (err == OX_OK && frame.len == 0)
            return;
        if (err == OX_OK) {
            err = conn_frame(conn, frame);
            ox_buf_unref(&frame);
        }
        if (err != OX_OK)
            ox_client_conn_break(conn, err);
    }
}

static void conn_writable(struct ox_stream *s)
{
    (void)s; // what is written is bounded by the producers' windows
}

static void conn_closed(struct ox_stream *s, enum ox_err err)
{
    conn_end(s->owner, err);
}

static const struct ox_stream_events conn_events = {
    .space = conn_space, .filled = conn_filled, .writable = conn_writable, .closed = conn_closed};

static void conn_connected(struct ox_op *op)
{
    struct conn *conn = CONTAINER_OF(op, struct conn, connect);
    if (op->err != OX_OK) {
        conn_end(conn, op->err);
        return;
    }
    conn->stream->events = &conn_events;
    conn->stream->owner = conn;
    if (conn->broken) {
        ox_stream_abort(conn->stream, conn->why);
        return;
    }
    conn_set_state(conn, CONN_HANDSHAKE);
    conn->last_in_ns = ox_now_ns(op->loop);
    conn_send_connect(conn);
}

static struct conn *conn_open(struct ox_client *client, const char *host, uint16_t port)
{
    struct conn *conn = ox_malloc(sizeof *conn);
    conn->client = client;
    conn->host = ox_strdup(host);
    conn->port = port;
    conn->message_bytes_max = OX_MESSAGE_BYTES_MAX;
    conn->started_ns = conn->last_in_ns = ox_now_ns(client->loop);
    ox_list_init(&conn->waiters);
    ox_list_init(&conn->by_age);
    ox_list_push_back(&client->conns, &conn->link);
    ox_frame_reader_init(&conn->reader, 2 * OX_MESSAGE_BYTES_MAX + OX_FRAME_SLACK_BYTES, OX_COMMAND_BYTES_MAX);
    ox_arena_init(&conn->arena, CONN_ARENA_BYTES);
    ox_timer_init(&conn->timer, client->loop, conn_tick);
    ox_timer_start(&conn->timer, CONN_TICK_NS);
    ox_op_init(&conn->connect, client->loop, conn_connected, "client.connect");
    ox_net_connect(client->net, &conn->connect, host, port, &conn->stream);
    return conn;
}

void ox_client_conn_get(struct ox_client *client, struct ox_op *op, const char *host, uint16_t port)
{
    ox_op_begin(op);
    struct conn *conn = conn_lookup(client, host, port);
    if (conn && conn->state == CONN_READY) {
        ox_op_finish(op, OX_OK);
        return;
    }
    if (!conn)
        conn = conn_open(client, host, port);
    ox_list_push_back(&conn->waiters, &op->link);
}
