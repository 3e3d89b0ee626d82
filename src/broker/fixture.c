// fixture.c - the world of the broker's tests.
#include "broker/fixture.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"
#include "wire/message_build.h"
#include "wire/message_meta.h"
#include "wire/pulsar_frame.h"

static void rig_choose(struct ox_sim_place_faults *f, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                       struct ox_sim_place_fault *fault)
{
    struct rig *r = CONTAINER_OF(f, struct rig, faults);
    if (r->on_place)
        r->on_place(r, call, ledger, entry, fault);
}

static void rig_choose_meta(struct ox_meta_memory_faults *f, bool write, const char *path, struct ox_meta_fault *fault)
{
    struct rig *r = CONTAINER_OF(f, struct rig, meta_faults);
    (void)write;
    if (r->fails && r->fails(path))
        fault->outcome = OX_META_FAIL_BEFORE;
}

bool rig_took(const struct rig *r, const char *edge)
{
    for (size_t i = 0; i < r->edge_count; i++)
        if (!strcmp(r->edges[i], edge))
            return true;
    return false;
}

// Notes lines such as "... topic.state topic=t from=LOADING to=OPEN why=loaded".
static void rig_note_edge(struct rig *r, const char *line)
{
    static const char *const kinds[] = {"topic", "subscription", "shard"};
    char edge[32], from[12], to[12], event[32];
    const char *at = strstr(line, "from=");
    if (!at || sscanf(at, "from=%11s to=%11s", from, to) != 2)
        return;
    for (size_t i = 0; i < OX_COUNT(kinds); i++) {
        snprintf(event, sizeof event, " %s.state ", kinds[i]);
        snprintf(edge, sizeof edge, "%s %s %s", kinds[i], from, to);
        if (strstr(line, event) && !rig_took(r, edge) && r->edge_count < OX_COUNT(r->edges))
            memcpy(r->edges[r->edge_count++], edge, sizeof edge);
    }
}

static void rig_log(void *ctx, const char *line, unsigned len)
{
    char text[512];
    if (getenv("OX_LOG"))
        fwrite(line, 1, len, stderr);
    snprintf(text, sizeof text, "%.*s", (int)len, line);
    rig_note_edge(ctx, text);
}

static uint64_t rig_log_time(void *ctx)
{
    (void)ctx;
    return 0;
}

void rig_op(struct rig *r, struct ox_op *op)
{
    ox_op_init(op, r->loop, ox_sim_done, "test");
}

enum ox_err rig_wait(struct rig *r, struct ox_op *op)
{
    return ox_sim_wait(r->sim, op);
}

void rig_settle(struct rig *r)
{
    ox_sim_run_for(r->sim, OX_SEC);
}

static void rig_start(struct rig *r)
{
    struct ox_op op;
    r->loop = ox_sim_loop(r->node);
    r->meta = ox_meta_memory_new(r->loop, r->tree, &r->meta_faults);
    ox_router_init(&r->router, r->loop);
    ox_router_add(&r->router, ox_sim_place_new(r->loop, r->store, "default", &r->faults));
    ox_metrics_init(&r->metrics);
    r->factory = (struct ox_ml_factory){.loop = r->loop,
                                        .log = &r->log,
                                        .meta = r->meta,
                                        .router = &r->router,
                                        .metrics = &r->metrics,
                                        .settings = r->settings,
                                        .instance = "i-1"};
    ox_ml_factory_init(&r->factory, 1 << 20);
    r->shard = (struct ox_shard){.loop = r->loop,
                                 .log = &r->log,
                                 .metrics = &r->metrics,
                                 .meta = r->meta,
                                 .router = &r->router,
                                 .mledgers = &r->factory,
                                 .config = r->config};
    ox_shard_init(&r->shard);
    rig_op(r, &op);
    ox_shard_start(&r->shard, &op);
    assert_int_equal(rig_wait(r, &op), OX_OK);
}

void rig_stop_shard(struct rig *r)
{
    struct ox_op op;
    if (r->shard.state != OX_SHARD_RUNNING)
        return;
    rig_op(r, &op);
    ox_shard_stop(&r->shard, &op);
    rig_wait(r, &op);
}

static void rig_stop(struct rig *r)
{
    struct ox_op op;
    rig_stop_shard(r);
    rig_settle(r);
    ox_shard_fini(&r->shard);
    rig_op(r, &op);
    ox_router_close(&r->router, &op);
    rig_wait(r, &op);
    ox_ml_factory_fini(&r->factory);
    rig_op(r, &op);
    ox_meta_close(r->meta, &op);
    rig_wait(r, &op);
}

void rig_restart(struct rig *r)
{
    rig_stop(r);
    ox_sim_node_restart(r->node);
    rig_start(r);
}

void rig_crash(struct rig *r)
{
    ox_sim_node_crash(r->node, OX_SIM_CRASH_PROCESS);
    rig_settle(r);
    rig_restart(r);
}

void rig_init(struct rig *r)
{
    *r = (struct rig){.faults.choose = rig_choose, .meta_faults.choose = rig_choose_meta};
    r->log = (struct ox_log){.level = OX_LOG_DEBUG, .write = rig_log, .wall_ms = rig_log_time, .ctx = r};
    r->sim = ox_sim_new(7, NULL);
    r->node = ox_sim_node_new(r->sim, "broker");
    r->tree = ox_meta_memory_tree_new();
    r->store = ox_sim_store_new(1);
    ox_ml_settings_init(&r->settings);
    ox_broker_config_init(&r->config);
    r->config.policies.inactive_delete = false; // tests let time pass without using their topics
    rig_start(r);
}

void rig_fini(struct rig *r)
{
    r->on_place = NULL;
    r->fails = NULL;
    rig_stop(r);
    ox_meta_memory_tree_free(r->tree);
    ox_sim_store_free(r->store);
    ox_sim_free(r->sim);
}

void rig_policies(struct rig *r, const char *json)
{
    static const char path[] = "/admin/policies/public/default";
    struct ox_meta_get get;
    struct ox_meta_put put;
    rig_op(r, &get.op);
    ox_meta_get(r->meta, &get, path);
    assert_int_equal(rig_wait(r, &get.op), OX_OK);
    json_t *policies = json_loadb((const char *)get.value.data, get.value.len, 0, NULL), *more = json_loads(json, 0, NULL);
    ox_buf_unref(&get.value);
    assert_int_equal(json_object_update(policies, more), 0);
    char *text = json_dumps(policies, JSON_COMPACT);
    rig_op(r, &put.op);
    ox_meta_put(r->meta, &put, path, ox_buf_static(text, strlen(text)), get.stat.version, 0);
    assert_int_equal(rig_wait(r, &put.op), OX_OK);
    ox_free(put.path);
    free(text);
    json_decref(policies);
    json_decref(more);
    rig_settle(r);
}

static enum ox_err rig_get(struct rig *r, const char *name, bool create, struct ox_topic **ret)
{
    struct ox_topic_name parsed;
    struct ox_topic_get get = {.create = create};
    enum ox_err err = ox_topic_name_parse(&parsed, name);
    if (err)
        return err;
    rig_op(r, &get.op);
    ox_topic_get(&r->shard, &get, &parsed);
    ox_topic_name_fini(&parsed);
    err = rig_wait(r, &get.op);
    *ret = get.topic;
    return err;
}

struct ox_topic *rig_topic(struct rig *r, const char *name)
{
    struct ox_topic *t;
    assert_int_equal(rig_get(r, name, true, &t), OX_OK);
    return t;
}

enum ox_err rig_topic_err(struct rig *r, const char *name, bool create)
{
    struct ox_topic *t;
    enum ox_err err = rig_get(r, name, create, &t);
    if (!err)
        ox_topic_put(t);
    return err;
}

// ---- producers

static void rig_receipt(struct ox_producer *p, const struct ox_receipt *receipt)
{
    struct rig_producer *rp = p->owner;
    assert_true(rp->receipt_count < OX_COUNT(rp->receipts));
    rp->receipts[rp->receipt_count++] = *receipt;
}

static void rig_unblocked(struct ox_producer *p)
{
    ((struct rig_producer *)p->owner)->unblocked++;
}

static void rig_producer_closed(struct ox_producer *p, enum ox_err err)
{
    struct rig_producer *rp = p->owner;
    (void)err;
    rp->closed++;
    rp->producer = NULL;
}

static void rig_producer_probe(struct ox_producer *p, struct ox_op *op)
{
    struct rig_producer *rp = p->owner;
    ox_op_begin(op);
    if (rp->dead) {
        ox_producer_close(p);
        rp->producer = NULL;
    }
    ox_op_finish(op, rp->dead ? OX_E_DISCONNECTED : OX_OK);
}

static const struct ox_producer_events rig_producer_events = {
    .receipt = rig_receipt, .unblocked = rig_unblocked, .closed = rig_producer_closed, .probe = rig_producer_probe};

enum ox_err rig_produce(struct rig *r, struct rig_producer *p, struct ox_topic *t, const char *name, bool reconnect)
{
    struct ox_producer_open open = {.name = name,
                                    .user_named = name,
                                    .reconnect = reconnect,
                                    .connection = p,
                                    .topic_epoch = -1,
                                    .events = &rig_producer_events,
                                    .owner = p};
    *p = (struct rig_producer){.rig = r};
    rig_op(r, &open.op);
    ox_producer_open(t, &open);
    enum ox_err err = rig_wait(r, &open.op);
    p->producer = open.producer;
    return err;
}

struct ox_buf rig_entry(const char *name, uint64_t sequence_id, const char *payload, int32_t batch)
{
    Oxpb__MessageMetadata meta = OXPB__MESSAGE_METADATA__INIT;
    meta.producer_name = (char *)(uintptr_t)name;
    meta.sequence_id = sequence_id;
    meta.publish_time = 1000 + sequence_id * 10;
    meta.has_num_messages_in_batch = batch > 0;
    meta.num_messages_in_batch = batch;
    return ox_entry_build(&meta, payload, strlen(payload));
}

static bool rig_publish(struct rig_producer *p, uint64_t sequence_id, struct ox_buf give_entry)
{
    struct ox_message_view view;
    assert_int_equal(ox_message_parse(give_entry, true, &view), OX_OK);
    struct ox_send send = {
        .entry = view.entry, .plain_len = view.plain.len, .crc = view.checksum, .messages = 1, .sequence_id = sequence_id};
    bool more = ox_producer_publish(p->producer, &send);
    ox_buf_unref(&give_entry);
    return more;
}

uint64_t rig_number(struct ox_buf payload)
{
    uint64_t number = 0;
    for (size_t i = 1; i < payload.len && payload.data[i] >= '0' && payload.data[i] <= '9'; i++)
        number = number * 10 + (uint64_t)(payload.data[i] - '0');
    return number;
}

bool rig_send(struct rig_producer *p, uint64_t sequence_id, const char *payload)
{
    return rig_publish(p, sequence_id, rig_entry(p->producer->name, sequence_id, payload, 0));
}

bool rig_send_keyed(struct rig_producer *p, uint64_t sequence_id, const char *payload, const char *key, uint64_t deliver_at_ms)
{
    Oxpb__MessageMetadata meta = OXPB__MESSAGE_METADATA__INIT;
    meta.producer_name = p->producer->name;
    meta.sequence_id = sequence_id;
    meta.publish_time = 1000 + sequence_id * 10;
    meta.partition_key = (char *)(uintptr_t)key;
    meta.has_deliver_at_time = deliver_at_ms != 0;
    meta.deliver_at_time = (int64_t)deliver_at_ms;
    return rig_publish(p, sequence_id, ox_entry_build(&meta, payload, strlen(payload)));
}

// ---- consumers

static void rig_deliver(struct ox_consumer *c, const struct ox_dispatch *d)
{
    struct rig_consumer *rc = c->owner;
    struct ox_message_view view;
    assert_true(rc->got_count < OX_COUNT(rc->got));
    assert_int_equal(ox_message_parse(d->entry, true, &view), OX_OK);
    size_t i = rc->got_count++;
    rc->got[i].pos = d->pos;
    rc->got[i].epoch = d->consumer_epoch;
    rc->got[i].redeliveries = d->redelivery_count;
    rc->got[i].has_set = d->ack_set;
    rc->got[i].ack_set = d->ack_set ? d->ack_set[0] : 0;
    snprintf(rc->got[i].payload, sizeof rc->got[i].payload, "%.*s", (int)view.payload.len, (const char *)view.payload.data);
}

static bool rig_ready(struct ox_consumer *c)
{
    const struct rig_consumer *rc = c->owner;
    return !rc->full && (!rc->full_after || rc->got_count < rc->full_after);
}

static void rig_consumer_closed(struct ox_consumer *c, enum ox_err err)
{
    struct rig_consumer *rc = c->owner;
    rc->closed++;
    rc->why = err;
    rc->consumer = NULL;
}

static void rig_consumer_probe(struct ox_consumer *c, struct ox_op *op)
{
    struct rig_consumer *rc = c->owner;
    ox_op_begin(op);
    if (rc->dead) {
        ox_consumer_close(c);
        rc->consumer = NULL;
    }
    ox_op_finish(op, rc->dead ? OX_E_DISCONNECTED : OX_OK);
}

static void rig_active(struct ox_consumer *c, bool is_active)
{
    struct rig_consumer *rc = c->owner;
    rc->active = is_active;
    rc->active_told++;
}

static void rig_end_of_topic(struct ox_consumer *c)
{
    ((struct rig_consumer *)c->owner)->ends++;
}

static const struct ox_consumer_events rig_consumer_events = {.active = rig_active,
                                                              .end_of_topic = rig_end_of_topic,
                                                              .deliver = rig_deliver,
                                                              .ready = rig_ready,
                                                              .closed = rig_consumer_closed,
                                                              .probe = rig_consumer_probe};

struct ox_subscribe rig_subscribe_op(struct rig_consumer *c, const char *subscription)
{
    return (struct ox_subscribe){
        .subscription = subscription, .name = "c", .durable = true, .connection = c, .events = &rig_consumer_events, .owner = c};
}

enum ox_err rig_subscribe(struct rig *r, struct rig_consumer *c, struct ox_topic *t, const char *subscription,
                          bool from_earliest)
{
    *c = (struct rig_consumer){.rig = r};
    struct ox_subscribe o = rig_subscribe_op(c, subscription);
    o.from_earliest = from_earliest;
    rig_op(r, &o.op);
    ox_subscribe(t, &o);
    enum ox_err err = rig_wait(r, &o.op);
    c->consumer = o.consumer;
    return err;
}

enum ox_err rig_ack(struct rig_consumer *c, bool cumulative, struct ox_pos pos, uint64_t set, bool has_set)
{
    struct ox_cursor_ack ack = {0};
    struct ox_ack_id id = {.pos = pos, .set = has_set ? &set : NULL, .words = has_set};
    rig_op(c->rig, &ack.op);
    ox_consumer_ack(c->consumer, &ack, cumulative, &id, 1);
    return rig_wait(c->rig, &ack.op);
}
