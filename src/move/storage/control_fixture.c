// control_fixture.c - the world of the tests of the half that decides.
#include "move/storage/control_fixture.h"

#include <stdio.h>
#include <string.h>

// ---- hooks -----------------------------------------------------------------------------------------------------------

static void cluster_choose_meta(struct ox_meta_memory_faults *f, bool write, const char *path, struct ox_meta_fault *fault)
{
    struct cluster *c = CONTAINER_OF(f, struct broker, meta_faults)->cluster;
    if (c->on_meta)
        c->on_meta(c, write, path, fault);
}

static void cluster_choose_place(struct ox_sim_place_faults *f, enum ox_sim_place_call call, int64_t ledger,
                                 int64_t entry, struct ox_sim_place_fault *fault)
{
    (void)entry;
    struct cluster *c = CONTAINER_OF(f, struct broker, place_faults)->cluster;
    if (c->on_place)
        c->on_place(c, call, ledger, fault);
}

static void cluster_log_write(void *ctx, const char *line, unsigned len)
{
    struct cluster *c = ctx;
    if (getenv("OX_LOG"))
        fwrite(line, 1, len, stderr);
    ox_str_add(&c->lines, line, len);
}

static uint64_t cluster_log_time(void *ctx)
{
    (void)ctx;
    return 0;
}

void cluster_forget(struct cluster *c)
{
    ox_str_truncate(&c->lines, 0);
}

bool cluster_logged(const struct cluster *c, const char *text)
{
    return strstr(ox_str_get(&c->lines), text) != NULL;
}

// ---- opener ----------------------------------------------------------------------------------------------------------

// "sim:a", and "sim:alias-a" for the same store.
static int opener_store(const char *uri)
{
    const char *at = strncmp(uri, "sim:", 4) ? "" : uri + 4;
    if (!strncmp(at, "alias-", 6))
        at += 6;
    return *at >= 'a' && *at < 'a' + CLUSTER_STORES && !at[1] ? *at - 'a' : -1;
}

static void room_capacity(struct ox_place *p, struct ox_capacity *ret)
{
    const struct broker *b = CONTAINER_OF(p->body, struct broker, room_body);
    *ret = b->cluster->room[opener_store(p->uri)];
}

static void opener_open(struct ox_place_opener *o, struct ox_op *op, const char *name, const char *uri, bool existing,
                        struct ox_place **ret)
{
    (void)existing;
    struct broker *b = CONTAINER_OF(o, struct broker, opener);
    int store = opener_store(uri);
    ox_op_begin(op);
    if (store < 0 || b->cluster->away[store]) {
        ox_op_finish(op, store < 0 ? OX_E_INVALID : OX_E_CONNECTION_REFUSED);
        return;
    }
    struct ox_place *p = ox_sim_place_new(b->loop, b->cluster->stores[store], name, &b->place_faults);
    ox_free(p->uri);
    p->uri = ox_strdup(uri);
    if (b->cluster->room[store].total > 0) {
        b->room_body = *p->body;
        b->room_body.capacity = room_capacity;
        p->body = &b->room_body;
    }
    *ret = p;
    ox_op_finish(op, OX_OK);
}

static char *opener_canonical(struct ox_place_opener *o, const char *uri, const char **why)
{
    (void)o;
    const char *at = strncmp(uri, "sim:", 4) ? NULL : uri + 4;
    while (at && *at == '/')
        at++;
    if (at && *at)
        return ox_asprintf("sim:%s", at);
    *why = "an address begins with sim:";
    return NULL;
}

// ---- brokers ---------------------------------------------------------------------------------------------------------

static void broker_op(struct broker *b, struct ox_op *op)
{
    ox_op_init(op, b->loop, ox_sim_done, "test");
}

static enum ox_err broker_wait(struct broker *b, struct ox_op *op)
{
    return ox_sim_wait(b->cluster->sim, op);
}

static void broker_factory(struct broker *b)
{
    b->factory = (struct ox_ml_factory){.loop = b->loop,
                                        .log = &b->cluster->log,
                                        .meta = b->meta,
                                        .router = &b->router,
                                        .metrics = &b->metrics,
                                        .settings = b->settings,
                                        .instance = "i-1"};
    b->factory.settings.stamps = ox_storage_activated(b->st);
    ox_ml_factory_init(&b->factory, 1 << 20);
}

static void broker_close(struct broker *b)
{
    struct ox_op op;
    broker_op(b, &op);
    ox_router_close(&b->router, &op);
    broker_wait(b, &op);
    broker_op(b, &op);
    ox_meta_close(b->meta, &op);
    broker_wait(b, &op);
    b->up = false;
}

enum ox_err broker_start(struct cluster *c, int i)
{
    struct broker *b = &c->brokers[i];
    struct ox_op op;
    if (!ox_sim_node_alive(b->node))
        ox_sim_node_restart(b->node);
    b->loop = ox_sim_loop(b->node);
    b->meta = ox_meta_memory_new(b->loop, c->tree, &b->meta_faults);
    ox_router_init(&b->router, b->loop);
    ox_metrics_init(&b->metrics);
    struct ox_storage_ports ports = {.loop = b->loop,
                                     .log = &c->log,
                                     .meta = b->meta,
                                     .router = &b->router,
                                     .metrics = &b->metrics,
                                     .opener = &b->opener,
                                     .config = b->config};
    ox_str_truncate(&b->trouble, 0);
    b->st = NULL;
    broker_op(b, &op);
    ox_storage_resolve(&ports, &op, &b->trouble, &b->st);
    enum ox_err err = broker_wait(b, &op);
    if (err != OX_OK) {
        assert_null(b->st);
        broker_close(b);
        return err;
    }
    broker_factory(b);
    ox_storage_start(b->st, &b->factory);
    b->up = true;
    return OX_OK;
}

static void broker_close_logs(struct broker *b)
{
    OX_MAP_EACH(&b->factory.open, node)
        broker_log_close(b, CONTAINER_OF(node, struct ox_mledger, by_name));
}

void broker_stop(struct cluster *c, int i)
{
    struct broker *b = &c->brokers[i];
    struct ox_op op;
    if (!b->up)
        return;
    uint64_t session = b->meta->session_id;
    broker_op(b, &op);
    if (!b->stopped) {
        ox_storage_stop(b->st, &op);
        broker_wait(b, &op);
    }
    b->stopped = false;
    broker_close_logs(b);
    broker_op(b, &op);
    ox_ml_factory_drain(&b->factory, &op);
    broker_wait(b, &op);
    ox_ml_factory_fini(&b->factory);
    ox_storage_free(b->st);
    b->st = NULL;
    broker_close(b);
    if (b->loop->dead)
        ox_meta_memory_expire(c->tree, session);
}

void broker_kill(struct cluster *c, int i)
{
    ox_sim_node_crash(c->brokers[i].node, OX_SIM_CRASH_PROCESS);
    broker_stop(c, i);
}

void broker_restart(struct cluster *c, int i)
{
    broker_stop(c, i);
    enum ox_err err = broker_start(c, i);
    if (err != OX_OK)
        fail_msg("%s: %s", ox_err_name(err), ox_str_get(&c->brokers[i].trouble));
}

static void broker_make(struct cluster *c, int i)
{
    struct broker *b = &c->brokers[i];
    b->cluster = c;
    snprintf(b->name, sizeof b->name, "broker-%d:8080", i);
    b->node = ox_sim_node_new(c->sim, i ? "two" : "one");
    ox_storage_config_init(&b->config);
    b->config.broker = b->name;
    b->config.default_uri = "sim:a";
    ox_ml_settings_init(&b->settings);
    b->settings.rollover_ns_min = 0;
    b->settings.retention_ms = b->settings.retention_bytes = -1; // what is consumed stays
    b->opener = (struct ox_place_opener){.open = opener_open, .canonical = opener_canonical};
    b->place_faults.choose = cluster_choose_place;
    b->meta_faults.choose = cluster_choose_meta;
}

void cluster_init(struct cluster *c)
{
    *c = (struct cluster){0};
    c->log = (struct ox_log){.level = OX_LOG_INFO, .write = cluster_log_write, .wall_ms = cluster_log_time, .ctx = c};
    c->sim = ox_sim_new(7, NULL);
    c->tree = ox_meta_memory_tree_new();
    for (uint32_t i = 0; i < CLUSTER_STORES; i++)
        c->stores[i] = ox_sim_store_new(i + 1);
    broker_make(c, 0);
    broker_make(c, 1);
    assert_int_equal(broker_start(c, 0), OX_OK);
}

void cluster_fini(struct cluster *c)
{
    c->on_meta = NULL;
    c->on_place = NULL;
    for (int i = 0; i < 2; i++) {
        broker_stop(c, i);
        ox_str_fini(&c->brokers[i].trouble);
    }
    ox_meta_memory_tree_free(c->tree);
    for (int i = 0; i < CLUSTER_STORES; i++)
        ox_sim_store_free(c->stores[i]);
    ox_sim_free(c->sim);
    ox_str_fini(&c->lines);
}

// ---- verbs -----------------------------------------------------------------------------------------------------------

static enum ox_err broker_answered(struct broker *b, struct ox_storage_call *call)
{
    enum ox_err err = broker_wait(b, &call->op);
    ox_str_truncate(&b->trouble, 0);
    char *text = err == OX_OK && call->answer ? json_dumps(call->answer, JSON_COMPACT) : NULL;
    ox_str_adds(&b->trouble, err == OX_OK ? (text ? text : "") : ox_str_get(&call->why));
    if (err != OX_OK && err != OX_E_SHUTDOWN)
        assert_true(call->why.len > 0);
    free(text);
    ox_storage_call_fini(call);
    return err;
}

enum ox_err broker_register(struct broker *b, const char *name, const char *uri)
{
    struct ox_storage_call call = {0};
    broker_op(b, &call.op);
    ox_storage_register(b->st, &call, name, uri, NULL);
    return broker_answered(b, &call);
}

enum ox_err broker_unregister(struct broker *b, const char *name)
{
    struct ox_storage_call call = {0};
    broker_op(b, &call.op);
    ox_storage_unregister(b->st, &call, name);
    return broker_answered(b, &call);
}

enum ox_err broker_switch(struct broker *b, const char *target, bool supersede)
{
    struct ox_storage_call call = {0};
    broker_op(b, &call.op);
    ox_storage_switch(b->st, &call, target, supersede);
    return broker_answered(b, &call);
}

enum ox_err broker_precheck(struct broker *b, const char *target)
{
    struct ox_storage_call call = {0};
    broker_op(b, &call.op);
    ox_storage_precheck(b->st, &call, target);
    return broker_answered(b, &call);
}

enum ox_err broker_call(struct broker *b, void (*verb)(struct ox_storage *st, struct ox_storage_call *c))
{
    struct ox_storage_call call = {0};
    broker_op(b, &call.op);
    verb(b->st, &call);
    return broker_answered(b, &call);
}

static bool broker_over(void *ctx)
{
    struct broker *b = ctx;
    return b->loop->dead || b->st->state == STORAGE_DONE || b->st->state == STORAGE_DONE_WITH_FAILURES;
}

enum storage_state broker_wait_over(struct broker *b)
{
    assert_true(ox_sim_run(b->cluster->sim, broker_over, b, 120 * OX_SEC));
    return b->st->state;
}

const char *broker_active(struct broker *b)
{
    return storage_active(b->st);
}

bool broker_says(struct broker *b, const char *text)
{
    if (strstr(ox_str_get(&b->trouble), text))
        return true;
    fprintf(stderr, "\"%s\" is not in: %s\n", text, ox_str_get(&b->trouble));
    return false;
}

// ---- nodes -----------------------------------------------------------------------------------------------------------

char *cluster_node(struct cluster *c, int i, const char *path)
{
    struct broker *b = &c->brokers[i];
    struct ox_meta_get get = {0};
    broker_op(b, &get.op);
    ox_meta_get(b->meta, &get, path);
    if (broker_wait(b, &get.op) != OX_OK)
        return NULL;
    char *text = ox_strndup((const char *)get.value.data, get.value.len);
    ox_buf_unref(&get.value);
    return text;
}

bool cluster_node_has(struct cluster *c, int i, const char *path, const char *text)
{
    char *node = cluster_node(c, i, path);
    bool has = node && strstr(node, text);
    if (!has)
        fprintf(stderr, "%s: \"%s\" is not in: %s\n", path, text, node ? node : "(no node)");
    ox_free(node);
    return has;
}

void cluster_put(struct cluster *c, int i, const char *path, const char *text)
{
    struct broker *b = &c->brokers[i];
    struct ox_meta_put put = {0};
    struct ox_buf value = ox_buf_copy(text, strlen(text));
    broker_op(b, &put.op);
    ox_meta_put(b->meta, &put, path, value, OX_META_ANY, 0);
    ox_buf_unref(&value);
    assert_int_equal(broker_wait(b, &put.op), OX_OK);
    ox_free(put.path);
}

void cluster_delete(struct cluster *c, int i, const char *path)
{
    struct broker *b = &c->brokers[i];
    struct ox_meta_del del = {0};
    broker_op(b, &del.op);
    ox_meta_del(b->meta, &del, path, OX_META_ANY);
    assert_int_equal(broker_wait(b, &del.op), OX_OK);
}

static void cluster_tree_add(struct cluster *c, int i, const char *path, struct ox_str *out)
{
    struct broker *b = &c->brokers[i];
    struct ox_meta_children children = {0};
    char *value = cluster_node(c, i, path);
    if (value)
        ox_str_addf(out, "%s %s\n", path, value);
    ox_free(value);
    broker_op(b, &children.op);
    ox_meta_children(b->meta, &children, path);
    if (broker_wait(b, &children.op) != OX_OK)
        return;
    for (size_t k = 0; k < children.count; k++) {
        char *child = ox_asprintf("%s/%s", path, children.names[k]);
        cluster_tree_add(c, i, child, out);
        ox_free(child);
    }
    ox_meta_names_free(children.names, children.count);
}

char *cluster_tree(struct cluster *c, int i, const char *path)
{
    struct ox_str out = {0};
    cluster_tree_add(c, i, path, &out);
    return ox_str_take(&out);
}

void cluster_sleep(struct cluster *c, uint64_t ns)
{
    ox_sim_run_for(c->sim, ns);
}

// ---- logs ------------------------------------------------------------------------------------------------------------

struct ox_mledger *broker_log(struct broker *b, const char *name)
{
    struct ox_ml_open op = {0};
    broker_op(b, &op.op);
    ox_mledger_open(&b->factory, &op, name, true);
    assert_string_equal(ox_err_name(broker_wait(b, &op.op)), "OK");
    return op.ml;
}

void broker_append(struct broker *b, struct ox_mledger *ml, const char *text)
{
    struct ox_ml_append a = {0};
    broker_op(b, &a.op);
    a.body = ox_buf_copy(text, strlen(text));
    a.messages = 1;
    struct ox_buf mine = a.body;
    ox_mledger_append(ml, &a);
    ox_buf_unref(&mine);
    assert_string_equal(ox_err_name(broker_wait(b, &a.op)), "OK");
}

char *broker_read(struct broker *b, struct ox_mledger *ml)
{
    struct ox_str out = {0};
    struct ox_pos from = OX_POS_EARLIEST;
    for (;;) {
        struct ox_ml_read r = {.from = from, .entries_max = 7, .bytes_max = 1000};
        broker_op(b, &r.op);
        ox_mledger_read(ml, &r);
        enum ox_err err = broker_wait(b, &r.op);
        if (err != OX_OK && err != OX_E_NO_ENTRY)
            ox_str_addf(&out, "<%s>", ox_err_name(err));
        for (size_t i = 0; i < r.count; i++)
            ox_str_addf(&out, "%s%.*s", out.len ? " " : "", (int)r.entries[i].data.len, (const char *)r.entries[i].data.data);
        ox_ml_read_fini(&r);
        if (err != OX_OK)
            return ox_str_take(&out);
        from = r.next;
    }
}

void broker_log_close(struct broker *b, struct ox_mledger *ml)
{
    struct ox_op op;
    broker_op(b, &op);
    ox_mledger_close(ml, &op);
    broker_wait(b, &op);
}
