// session_fuzz.c - a broker in the simulator whose client sends the input: once as it is, once behind a proper beginning.
#include "fuzz.h"

#include "metastore/memory.h"
#include "pulsar/pulsar.h"
#include "sim/place/sim_place.h"
#include "sim/sim.h"
#include "wire/pulsar_command.h"

#define PORT 6650
#define TOPIC "persistent://public/default/t"

struct world {
    struct ox_sim *sim;
    struct ox_sim_node *broker, *client;
    struct ox_meta_memory_tree *tree;
    struct ox_sim_store *store;
    struct ox_meta *meta;
    struct ox_router router;
    struct ox_metrics metrics;
    struct ox_ml_factory factory;
    struct ox_shard shard;
    struct ox_pulsar pulsar;
    struct ox_stream *stream; // the client's
    uint8_t sink[4096];
};

static void world_op(struct ox_op *op, struct ox_loop *loop)
{
    ox_op_init(op, loop, ox_sim_done, "fuzz");
}

static void world_start(struct world *w)
{
    struct ox_loop *loop = ox_sim_loop(w->broker);
    struct ox_op op;
    w->meta = ox_meta_memory_new(loop, w->tree, NULL);
    ox_router_init(&w->router, loop);
    ox_router_add(&w->router, ox_sim_place_new(loop, w->store, "default", NULL));
    ox_metrics_init(&w->metrics);
    w->factory =
        (struct ox_ml_factory){.loop = loop, .meta = w->meta, .router = &w->router, .metrics = &w->metrics, .instance = "i"};
    ox_ml_settings_init(&w->factory.settings);
    ox_ml_factory_init(&w->factory, 1 << 20);
    w->shard = (struct ox_shard){
        .loop = loop, .metrics = &w->metrics, .meta = w->meta, .router = &w->router, .mledgers = &w->factory};
    ox_broker_config_init(&w->shard.config);
    ox_shard_init(&w->shard);
    world_op(&op, loop);
    ox_shard_start(&w->shard, &op);
    OX_ASSERT(ox_sim_wait(w->sim, &op) == OX_OK);
    w->pulsar = (struct ox_pulsar){.shard = &w->shard, .net = ox_sim_net(w->broker)};
    ox_pulsar_config_init(&w->pulsar.config);
    w->pulsar.config.port = PORT;
    OX_ASSERT(ox_pulsar_listen(&w->pulsar) == OX_OK);
}

static void world_stop(struct world *w)
{
    struct ox_loop *loop = ox_sim_loop(w->broker);
    struct ox_op op;
    world_op(&op, loop);
    ox_shard_stop(&w->shard, &op);
    OX_ASSERT(ox_sim_wait(w->sim, &op) == OX_OK);
    world_op(&op, loop);
    ox_pulsar_close(&w->pulsar, &op);
    OX_ASSERT(ox_sim_wait(w->sim, &op) == OX_OK);
    ox_sim_run_for(w->sim, OX_SEC);
    ox_pulsar_fini(&w->pulsar);
    ox_shard_fini(&w->shard);
    world_op(&op, loop);
    ox_router_close(&w->router, &op);
    OX_ASSERT(ox_sim_wait(w->sim, &op) == OX_OK);
    ox_ml_factory_fini(&w->factory);
    world_op(&op, loop);
    ox_meta_close(w->meta, &op);
    OX_ASSERT(ox_sim_wait(w->sim, &op) == OX_OK);
}

// ---- the client: it sends, and throws away what it gets

static void client_space(struct ox_stream *s, uint8_t **ret_data, size_t *ret_len)
{
    struct world *w = s->owner;
    *ret_data = w->sink;
    *ret_len = sizeof w->sink;
}

static void client_filled(struct ox_stream *s, size_t n)
{
    (void)s;
    (void)n;
}

static void client_writable(struct ox_stream *s)
{
    (void)s;
}

static void client_closed(struct ox_stream *s, enum ox_err err)
{
    (void)err;
    ((struct world *)s->owner)->stream = NULL;
}

static const struct ox_stream_events client_events = {
    .space = client_space, .filled = client_filled, .writable = client_writable, .closed = client_closed};

struct opening {
    struct ox_op op;
    struct world *world;
};

static void client_opened(struct ox_op *op)
{
    struct world *w = CONTAINER_OF(op, struct opening, op)->world;
    OX_ASSERT(op->err == OX_OK);
    w->stream->owner = w;
    w->stream->events = &client_events;
}

static void client_write(struct world *w, struct ox_buf give_bytes)
{
    if (w->stream)
        ox_stream_write(w->stream, &give_bytes, 1);
    ox_buf_unref(&give_bytes);
    ox_sim_run_for(w->sim, 20 * OX_MS);
}

// CONNECT, a producer 1, a consumer 1 with permits.
static void client_begin(struct world *w)
{
    Oxpb__CommandConnect connect = OXPB__COMMAND_CONNECT__INIT;
    Oxpb__CommandProducer producer = OXPB__COMMAND_PRODUCER__INIT;
    Oxpb__CommandSubscribe subscribe = OXPB__COMMAND_SUBSCRIBE__INIT;
    Oxpb__CommandFlow flow = OXPB__COMMAND_FLOW__INIT;
    char text[] = TOPIC;
    connect.client_version = producer.topic = subscribe.topic = subscribe.subscription = text;
    connect.has_protocol_version = 1;
    connect.protocol_version = 21;
    producer.producer_id = subscribe.consumer_id = flow.consumer_id = 1;
    flow.message_permits = 100;
    client_write(w, ox_command_pack_sub(OXPB__BASE_COMMAND__TYPE__CONNECT, &connect.base));
    client_write(w, ox_command_pack_sub(OXPB__BASE_COMMAND__TYPE__PRODUCER, &producer.base));
    client_write(w, ox_command_pack_sub(OXPB__BASE_COMMAND__TYPE__SUBSCRIBE, &subscribe.base));
    client_write(w, ox_command_pack_sub(OXPB__BASE_COMMAND__TYPE__FLOW, &flow.base));
}

static void client_run(struct world *w, bool begun, const uint8_t *data, size_t size)
{
    struct opening o = {.world = w};
    ox_op_init(&o.op, ox_sim_loop(w->client), client_opened, "connect");
    ox_net_connect(ox_sim_net(w->client), &o.op, "broker", PORT, &w->stream);
    OX_ASSERT(ox_sim_wait(w->sim, &o.op) == OX_OK);
    if (begun)
        client_begin(w);
    client_write(w, ox_buf_copy(data, size));
    ox_sim_run_for(w->sim, OX_SEC);
    if (w->stream)
        ox_stream_abort(w->stream, OX_E_DISCONNECTED);
    ox_sim_run_for(w->sim, OX_SEC);
    OX_ASSERT(!w->stream && w->pulsar.connections.value == 0);
    OX_ASSERT(w->shard.producers_count.value == 0 && w->shard.consumers_count.value == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world w = {.sim = ox_sim_new(1, NULL), .tree = ox_meta_memory_tree_new(), .store = ox_sim_store_new(1)};
    w.broker = ox_sim_node_new(w.sim, "broker");
    w.client = ox_sim_node_new(w.sim, "client");
    world_start(&w);
    client_run(&w, true, data, size);
    client_run(&w, false, data, size);
    world_stop(&w);
    ox_meta_memory_tree_free(w.tree);
    ox_sim_store_free(w.store);
    ox_sim_free(w.sim);
    return 0;
}
