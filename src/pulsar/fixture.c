// fixture.c - the door's world and its raw clients.
#include "pulsar/fixture.h"

#include <stdio.h>
#include <string.h>

#include "wire/message_build.h"

static void door_start(struct door *d)
{
    d->pulsar = (struct ox_pulsar){.shard = &d->rig.shard, .net = ox_sim_net(d->rig.node)};
    ox_pulsar_config_init(&d->pulsar.config);
    d->pulsar.config.port = DOOR_PORT;
    assert_int_equal(ox_pulsar_listen(&d->pulsar), OX_OK);
}

static void door_stop(struct door *d)
{
    struct ox_op op;
    ox_pulsar_unlisten(&d->pulsar);
    rig_stop_shard(&d->rig);
    rig_op(&d->rig, &op);
    ox_pulsar_close(&d->pulsar, &op);
    rig_wait(&d->rig, &op);
    ox_pulsar_fini(&d->pulsar);
}

void door_init(struct door *d)
{
    rig_init(&d->rig);
    d->clients = ox_sim_node_new(d->rig.sim, "clients");
    door_start(d);
}

void door_fini(struct door *d)
{
    door_stop(d);
    rig_fini(&d->rig);
}

void door_crash(struct door *d)
{
    ox_sim_node_crash(d->rig.node, OX_SIM_CRASH_PROCESS);
    rig_settle(&d->rig);
    door_stop(d);
    rig_restart(&d->rig);
    door_start(d);
}

// ---- the client's stream

static void peer_take(struct peer *p, struct ox_buf frame)
{
    struct ox_buf command = {0}, body = {0};
    Oxpb__BaseCommand *c;
    assert_int_equal(ox_frame_split(frame, &command, &body), OX_OK);
    assert_int_equal(ox_proto_unpack(&oxpb__base_command__descriptor, &p->arena, command.data, command.len, &c), OX_OK);
    if (c->type == OXPB__BASE_COMMAND__TYPE__PING && !p->silent) {
        Oxpb__CommandPong pong = OXPB__COMMAND_PONG__INIT;
        peer_command(p, OXPB__BASE_COMMAND__TYPE__PONG, &pong.base);
        ox_buf_unref(&frame);
        return;
    }
    assert_true(p->count < PEER_FRAMES_MAX);
    p->frames[p->count].command = c;
    p->frames[p->count].body = body;
    p->frames[p->count++].frame = frame;
}

static void peer_space(struct ox_stream *s, uint8_t **ret_data, size_t *ret_len)
{
    struct peer *p = s->owner;
    *ret_len = 0;
    if (!p->deaf)
        ox_frame_reader_space(&p->reader, ret_data, ret_len);
}

static void peer_filled(struct ox_stream *s, size_t n)
{
    struct peer *p = s->owner;
    struct ox_buf frame;
    ox_frame_reader_filled(&p->reader, n);
    for (;;) {
        assert_int_equal(ox_frame_reader_next(&p->reader, &frame), OX_OK);
        if (!frame.len)
            return;
        peer_take(p, frame);
    }
}

static void peer_writable(struct ox_stream *s)
{
    (void)s;
}

static void peer_closed(struct ox_stream *s, enum ox_err err)
{
    struct peer *p = s->owner;
    (void)err;
    p->stream = NULL;
}

static const struct ox_stream_events peer_events = {
    .space = peer_space, .filled = peer_filled, .writable = peer_writable, .closed = peer_closed};

struct peer_opening {
    struct ox_op op;
    struct peer *peer;
};

static void peer_opened(struct ox_op *op)
{
    struct peer *p = CONTAINER_OF(op, struct peer_opening, op)->peer;
    if (op->err)
        return;
    p->stream->owner = p;
    p->stream->events = &peer_events;
}

void peer_open(struct door *d, struct peer *p)
{
    struct peer_opening o = {.peer = p};
    *p = (struct peer){.door = d};
    ox_arena_init(&p->arena, 64u << 20);
    ox_frame_reader_init(&p->reader, 6u << 20, 1u << 20);
    ox_op_init(&o.op, ox_sim_loop(d->clients), peer_opened, "connect");
    ox_net_connect(ox_sim_net(d->clients), &o.op, "broker", DOOR_PORT, &p->stream);
    assert_int_equal(ox_sim_wait(d->rig.sim, &o.op), OX_OK);
}

static bool peer_is_closed(void *ctx)
{
    return !((struct peer *)ctx)->stream;
}

void peer_fini(struct peer *p)
{
    if (p->stream)
        ox_stream_abort(p->stream, OX_E_DISCONNECTED);
    assert_true(ox_sim_run(p->door->rig.sim, peer_is_closed, p, 10 * OX_SEC));
    for (size_t i = 0; i < p->count; i++)
        ox_buf_unref(&p->frames[i].frame);
    ox_frame_reader_fini(&p->reader);
    ox_arena_fini(&p->arena);
}

void peer_frame(struct peer *p, struct ox_buf give_frame)
{
    if (p->stream)
        ox_stream_write(p->stream, &give_frame, 1);
    ox_buf_unref(&give_frame);
}

void peer_bytes(struct peer *p, const void *data, size_t len)
{
    peer_frame(p, ox_buf_copy(data, len));
}

void peer_command(struct peer *p, Oxpb__BaseCommand__Type type, const ProtobufCMessage *sub)
{
    peer_frame(p, ox_command_pack_sub(type, sub));
}

static bool peer_has_frame(void *ctx)
{
    struct peer *p = ctx;
    return p->taken < p->count;
}

Oxpb__BaseCommand *peer_next(struct peer *p, Oxpb__BaseCommand__Type type)
{
    if (!ox_sim_run(p->door->rig.sim, peer_has_frame, p, 10 * OX_SEC))
        fail_msg("no frame came where one of type %d was expected (connection %s)", (int)type, p->stream ? "open" : "closed");
    Oxpb__BaseCommand *c = p->frames[p->taken++].command;
    if (c->type != type)
        fail_msg("a frame of type %d came, not %d; %s", (int)c->type, (int)type, c->error ? c->error->message : "");
    return c;
}

struct ox_buf peer_body(const struct peer *p)
{
    return p->frames[p->taken - 1].body;
}

void peer_expect_nothing(struct peer *p)
{
    rig_settle(&p->door->rig);
    if (p->taken < p->count)
        fail_msg("a frame of type %d came where none was expected", (int)p->frames[p->taken].command->type);
}

void peer_expect_end(struct peer *p)
{
    assert_true(ox_sim_run(p->door->rig.sim, peer_is_closed, p, 10 * OX_SEC));
}

void peer_expect_error(struct peer *p, uint64_t request_id, Oxpb__ServerError error)
{
    Oxpb__BaseCommand *c = peer_next(p, OXPB__BASE_COMMAND__TYPE__ERROR);
    assert_int_equal(c->error->request_id, request_id);
    assert_int_equal(c->error->error, error);
    assert_true(strlen(c->error->message) > 5);
}

// ---- commands

void peer_connect(struct door *d, struct peer *p)
{
    Oxpb__CommandConnect c = OXPB__COMMAND_CONNECT__INIT;
    char version[] = "raw test client";
    peer_open(d, p);
    c.client_version = version;
    c.has_protocol_version = 1;
    c.protocol_version = 19;
    peer_command(p, OXPB__BASE_COMMAND__TYPE__CONNECT, &c.base);
    Oxpb__BaseCommand *answer = peer_next(p, OXPB__BASE_COMMAND__TYPE__CONNECTED);
    assert_int_equal(answer->connected->protocol_version, 19);
    assert_true(answer->connected->feature_flags->supports_topic_watchers);
    assert_true(answer->connected->feature_flags->supports_get_partitioned_metadata_without_auto_creation);
}

void peer_producer(struct peer *p, uint64_t producer_id, const char *topic, const char *name, uint64_t epoch)
{
    Oxpb__CommandProducer c = OXPB__COMMAND_PRODUCER__INIT;
    c.topic = (char *)(uintptr_t)topic;
    c.producer_id = producer_id;
    c.request_id = 1000 + producer_id;
    c.producer_name = (char *)(uintptr_t)name;
    c.has_epoch = epoch > 0;
    c.epoch = epoch;
    peer_command(p, OXPB__BASE_COMMAND__TYPE__PRODUCER, &c.base);
}

void peer_open_producer(struct peer *p, uint64_t producer_id, const char *topic)
{
    peer_producer(p, producer_id, topic, NULL, 0);
    Oxpb__BaseCommand *c = peer_next(p, OXPB__BASE_COMMAND__TYPE__PRODUCER_SUCCESS);
    assert_int_equal(c->producer_success->request_id, 1000 + producer_id);
    assert_int_equal(c->producer_success->last_sequence_id, -1);
    assert_true(c->producer_success->producer_ready);
}

struct ox_buf peer_send_frame(uint64_t producer_id, uint64_t sequence_id, const char *payload)
{
    Oxpb__CommandSend c = OXPB__COMMAND_SEND__INIT;
    c.producer_id = producer_id;
    c.sequence_id = sequence_id;
    struct ox_buf entry = rig_entry("raw", sequence_id, payload, 0);
    struct ox_buf frame = ox_send_wrap(&c, entry);
    ox_buf_unref(&entry);
    return frame;
}

void peer_subscribe(struct peer *p, uint64_t consumer_id, const char *topic, const char *subscription)
{
    Oxpb__CommandSubscribe c = OXPB__COMMAND_SUBSCRIBE__INIT;
    c.topic = (char *)(uintptr_t)topic;
    c.subscription = (char *)(uintptr_t)subscription;
    c.consumer_id = consumer_id;
    c.request_id = 2000 + consumer_id;
    c.has_initial_position = 1;
    c.initial_position = OXPB__COMMAND_SUBSCRIBE__INITIAL_POSITION__Earliest;
    peer_command(p, OXPB__BASE_COMMAND__TYPE__SUBSCRIBE, &c.base);
}

void peer_open_consumer(struct peer *p, uint64_t consumer_id, const char *topic, const char *subscription)
{
    peer_subscribe(p, consumer_id, topic, subscription);
    Oxpb__BaseCommand *c = peer_next(p, OXPB__BASE_COMMAND__TYPE__SUCCESS);
    assert_int_equal(c->success->request_id, 2000 + consumer_id);
}

void peer_flow(struct peer *p, uint64_t consumer_id, uint32_t permits)
{
    struct ox_encoder e = {0};
    peer_frame(p, ox_encode_flow(&e, consumer_id, permits));
    ox_encoder_fini(&e);
}

struct ox_message_id peer_expect_message(struct peer *p, const char *payload)
{
    struct ox_message_view view;
    Oxpb__BaseCommand *c = peer_next(p, OXPB__BASE_COMMAND__TYPE__MESSAGE);
    assert_int_equal(ox_message_parse(peer_body(p), true, &view), OX_OK);
    assert_int_equal(view.payload.len, strlen(payload));
    assert_memory_equal(view.payload.data, payload, view.payload.len);
    struct ox_message_id id = OX_MESSAGE_ID_NONE;
    id.ledger = (int64_t)c->message->message_id->ledger_id;
    id.entry = (int64_t)c->message->message_id->entry_id;
    id.partition = c->message->message_id->partition;
    return id;
}

void peer_ack(struct peer *p, uint64_t consumer_id, struct ox_message_id id, bool cumulative, uint64_t request_id)
{
    Oxpb__CommandAck c = OXPB__COMMAND_ACK__INIT;
    Oxpb__MessageIdData data = OXPB__MESSAGE_ID_DATA__INIT, *ids[] = {&data};
    data.ledger_id = (uint64_t)id.ledger;
    data.entry_id = (uint64_t)id.entry;
    c.consumer_id = consumer_id;
    c.ack_type = cumulative ? OXPB__COMMAND_ACK__ACK_TYPE__Cumulative : OXPB__COMMAND_ACK__ACK_TYPE__Individual;
    c.n_message_id = 1;
    c.message_id = ids;
    c.has_request_id = request_id > 0;
    c.request_id = request_id;
    peer_command(p, OXPB__BASE_COMMAND__TYPE__ACK, &c.base);
}
