// fixture.c - the world of this folder's tests.
#include "mledger/fixture.h"
#include "mledger/places.h"

#include <stdio.h>
#include <string.h>

static void world_choose_place(struct ox_sim_place_faults *f, enum ox_sim_place_call call, int64_t ledger,
                               int64_t entry, struct ox_sim_place_fault *fault)
{
    struct world *w = CONTAINER_OF(f, struct world, place_faults);
    if (w->on_place)
        w->on_place(w, call, ledger, entry, fault);
}

static void world_choose_meta(struct ox_meta_memory_faults *f, bool write, const char *path, struct ox_meta_fault *fault)
{
    struct world *w = CONTAINER_OF(f, struct world, meta_faults);
    if (w->on_meta)
        w->on_meta(w, write, path, fault);
}

static int world_state_named(const char *text)
{
    for (int s = OX_ML_OPENING; s <= OX_ML_CLOSED; s++) {
        const char *name = ml_state_name((enum ox_ml_state)s);
        size_t n = strlen(name);
        if (strncmp(text, name, n) == 0 && (text[n] == ' ' || text[n] == '\n'))
            return s;
    }
    fail_msg("no state in %s", text);
    return 0;
}

static void world_log_write(void *ctx, const char *line, unsigned len)
{
    struct world *w = ctx;
    char text[512];
    if (getenv("OX_LOG"))
        fwrite(line, 1, len, stderr);
    snprintf(text, sizeof text, "%.*s", (int)len, line);
    if (strstr(text, "mledger.state")) {
        int from = world_state_named(strstr(text, "from=") + 5), to = world_state_named(strstr(text, "to=") + 3);
        w->edges[from] |= 1u << to;
    }
    w->lost_lines += strstr(text, ".lost_") != NULL || strstr(text, "_lost ") != NULL;
    if (strstr(text, "WARN") || strstr(text, "warn"))
        memcpy(w->last_warning, text, sizeof text);
}

static uint64_t world_log_time(void *ctx)
{
    (void)ctx;
    return 0;
}

bool world_took(const struct world *w, enum ox_ml_state from, enum ox_ml_state to)
{
    return w->edges[from] & (1u << to);
}

void world_op(struct world *w, struct ox_op *op)
{
    ox_op_init(op, w->loop, ox_sim_done, "test");
}

enum ox_err world_wait(struct world *w, struct ox_op *op)
{
    return ox_sim_wait(w->sim, op);
}

void world_sleep(struct world *w, uint64_t ns)
{
    ox_sim_run_for(w->sim, ns);
}

void world_settle(struct world *w)
{
    world_sleep(w, OX_SEC);
}

// Opens the embedded store; a process that dies meanwhile is started again.
static struct ox_place *world_open_store(struct world *w)
{
    struct ox_store_config config;
    ox_store_config_init(&config, "store");
    config.segment_bytes = 256 * 1024;
    config.batch_bytes_max = 16 * 1024;
    config.reserve_bytes = 1024 * 1024;
    config.index_cache_bytes = 16 * 1024;
    config.table = ox_memory_table_source(w->table);
    struct ox_place *place = NULL;
    struct ox_op op;
    world_op(w, &op);
    ox_store_open(w->loop, ox_sim_fs(w->node), &op, &config, &place);
    assert_string_equal(ox_err_name(world_wait(w, &op)), "OK");
    return place;
}

void world_start(struct world *w)
{
    w->loop = ox_sim_loop(w->node);
    w->meta = ox_meta_memory_new(w->loop, w->tree, &w->meta_faults);
    ox_router_init(&w->router, w->loop);
    ox_router_add(&w->router,
                  w->table ? world_open_store(w) : ox_sim_place_new(w->loop, w->store, "default", &w->place_faults));
    if (w->other_store && w->other_away)
        ox_router_reserve(&w->router, "other", OX_E_PLACE_CLOSED);
    else if (w->other_store)
        ox_router_add(&w->router, ox_sim_place_new(w->loop, w->other_store, "other", &w->place_faults));
    ox_metrics_init(&w->metrics);
    w->factory = (struct ox_ml_factory){.loop = w->loop,
                                        .log = &w->log,
                                        .meta = w->meta,
                                        .router = &w->router,
                                        .metrics = &w->metrics,
                                        .settings = w->settings,
                                        .instance = "i-1"};
    ox_ml_factory_init(&w->factory, 1 << 20);
}

void world_stop(struct world *w)
{
    struct ox_op op;
    world_op(w, &op);
    ox_router_close(&w->router, &op);
    world_wait(w, &op);
    ox_ml_factory_fini(&w->factory);
    world_op(w, &op);
    ox_meta_close(w->meta, &op);
    world_wait(w, &op);
}

static void world_make(struct world *w, uint64_t seed)
{
    *w = (struct world){.place_faults.choose = world_choose_place, .meta_faults.choose = world_choose_meta};
    w->log = (struct ox_log){.level = OX_LOG_DEBUG, .write = world_log_write, .wall_ms = world_log_time, .ctx = w};
    w->sim = ox_sim_new(seed, NULL);
    w->node = ox_sim_node_new(w->sim, "a");
    w->tree = ox_meta_memory_tree_new();
    w->store = ox_sim_store_new(1);
    ox_ml_settings_init(&w->settings);
    w->settings.rollover_ns_min = 0;
}

void world_init(struct world *w, uint64_t seed)
{
    world_make(w, seed);
    world_start(w);
}

void world_init_two(struct world *w, uint64_t seed)
{
    world_make(w, seed);
    w->other_store = ox_sim_store_new(2);
    w->settings.stamps = true;
    world_start(w);
}

void world_other_close(struct world *w)
{
    struct ox_op op;
    world_op(w, &op);
    ox_router_detach(&w->router, &op, 1, OX_E_PLACE_CLOSED);
    assert_string_equal(ox_err_name(world_wait(w, &op)), "OK");
    w->other_away = true;
}

void world_other_open(struct world *w)
{
    ox_router_attach(&w->router, 1, ox_sim_place_new(w->loop, w->other_store, "other", &w->place_faults));
    w->other_away = false;
}

void world_init_embedded(struct world *w, uint64_t seed)
{
    world_make(w, seed);
    w->table = ox_memory_table_new();
    world_start(w);
}

void world_fini(struct world *w)
{
    w->on_place = NULL;
    w->on_meta = NULL;
    world_stop(w);
    ox_meta_memory_tree_free(w->tree);
    ox_sim_store_free(w->store);
    if (w->other_store)
        ox_sim_store_free(w->other_store);
    ox_sim_free(w->sim);
    if (w->table)
        ox_memory_table_free(w->table);
}

void world_kill(struct world *w)
{
    ox_sim_node_crash(w->node, OX_SIM_CRASH_PROCESS);
}

void world_power_cut(struct world *w)
{
    ox_sim_node_crash(w->node, OX_SIM_CRASH_MACHINE);
}

void world_crash(struct world *w, struct ox_mledger *ml)
{
    world_kill(w);
    if (ml)
        world_close(w, ml);
    world_settle(w);
    world_stop(w);
    ox_sim_node_restart(w->node);
    world_start(w);
}

// ---- logs ------------------------------------------------------------------------------------------------------------

enum ox_err world_open_err(struct world *w, const char *name, bool create)
{
    struct ox_ml_open op = {0};
    world_op(w, &op.op);
    ox_mledger_open(&w->factory, &op, name, create);
    enum ox_err err = world_wait(w, &op.op);
    w->ctx = err == OX_OK ? op.ml : w->ctx;
    return err;
}

struct ox_mledger *world_open(struct world *w, const char *name)
{
    struct ox_ml_open op = {0};
    world_op(w, &op.op);
    ox_mledger_open(&w->factory, &op, name, true);
    assert_string_equal(ox_err_name(world_wait(w, &op.op)), "OK");
    assert_non_null(op.ml);
    return op.ml;
}

enum ox_err world_close(struct world *w, struct ox_mledger *ml)
{
    struct ox_op op;
    world_op(w, &op);
    ox_mledger_close(ml, &op);
    return world_wait(w, &op);
}

struct ox_ml_append *world_append_start(struct world *w, struct ox_mledger *ml, const char *text)
{
    struct ox_ml_append *a = ox_malloc(sizeof *a);
    world_op(w, &a->op);
    a->body = ox_buf_copy(text, strlen(text));
    a->messages = 1;
    struct ox_buf mine = a->body;
    ox_mledger_append(ml, a);
    ox_buf_unref(&mine);
    return a;
}

enum ox_err world_append(struct world *w, struct ox_mledger *ml, const char *text, struct ox_pos *ret_pos)
{
    struct ox_ml_append *a = world_append_start(w, ml, text);
    enum ox_err err = world_wait(w, &a->op);
    if (ret_pos)
        *ret_pos = a->pos;
    ox_free(a);
    return err;
}

void world_fill(struct world *w, struct ox_mledger *ml, int first, int count)
{
    for (int i = first; i < first + count; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        assert_int_equal(world_append(w, ml, text, NULL), OX_OK);
    }
}

enum ox_err world_roll(struct world *w, struct ox_mledger *ml)
{
    struct ox_op op;
    world_op(w, &op);
    ox_mledger_roll(ml, &op);
    return world_wait(w, &op);
}

char *world_read_all(struct world *w, struct ox_mledger *ml, struct ox_pos from)
{
    struct ox_str out = {0};
    for (;;) {
        struct ox_ml_read r = {.from = from, .entries_max = 7, .bytes_max = 1000};
        world_op(w, &r.op);
        ox_mledger_read(ml, &r);
        enum ox_err err = world_wait(w, &r.op);
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

struct ox_cursor *world_cursor(struct world *w, struct ox_mledger *ml, const char *name, struct ox_pos start)
{
    struct ox_cursor_open op = {0};
    world_op(w, &op.op);
    ox_cursor_open(ml, &op, name, true, start, NULL);
    assert_int_equal(world_wait(w, &op.op), OX_OK);
    return op.cursor;
}

enum ox_err world_ack_upto(struct world *w, struct ox_cursor *c, struct ox_pos p)
{
    struct ox_cursor_ack ack = {0};
    world_op(w, &ack.op);
    ox_cursor_mark_delete(c, &ack, p);
    return world_wait(w, &ack.op);
}

// ---- copies ----------------------------------------------------------------------------------------------------------

static void world_copy_entry(struct world *w, struct ox_ledger *from, struct ox_ledger *to, int64_t entry)
{
    struct ox_read read = {.first = entry, .last = entry, .bytes_max = 1};
    world_op(w, &read.op);
    ox_ledger_read(from, &read);
    assert_int_equal(world_wait(w, &read.op), OX_OK);
    struct ox_append append = {.entry = entry, .parts = {read.entries[0]}, .part_count = 1};
    world_op(w, &append.op);
    ox_ledger_append(to, &append);
    assert_int_equal(world_wait(w, &append.op), OX_OK);
    ox_read_fini(&read);
}

struct ox_location world_copy(struct world *w, const char *log, struct ox_location from, uint32_t place)
{
    struct ox_kv owner = {0};
    struct ox_ledger_open open = {0};
    struct ox_router_create create = {0};
    struct ox_ledger_close close = {0};
    ox_ml_owner(&w->factory, log, NULL, &owner);
    world_op(w, &open.op);
    ox_router_open(&w->router, &open, from, OX_OPEN_READ_ONLY, &owner);
    assert_int_equal(world_wait(w, &open.op), OX_OK);
    ox_kv_set(&owner, OX_COPY_OF, "somewhere");
    world_op(w, &create.op);
    ox_router_create_copy(&w->router, &create, place, from.id, &owner);
    assert_int_equal(world_wait(w, &create.op), OX_OK);
    for (int64_t i = 0; i <= open.ledger->info.last_entry; i++)
        world_copy_entry(w, open.ledger, create.ledger, i);
    world_op(w, &close.op);
    ox_ledger_close(create.ledger, &close);
    assert_int_equal(world_wait(w, &close.op), OX_OK);
    ox_ledger_release(create.ledger);
    ox_ledger_release(open.ledger);
    ox_kv_fini(&owner);
    return create.location;
}

// ---- nodes -----------------------------------------------------------------------------------------------------------

struct ox_buf world_node(struct world *w, const char *path, int64_t *ret_version)
{
    struct ox_meta_get get;
    world_op(w, &get.op);
    ox_meta_get(w->meta, &get, path);
    if (world_wait(w, &get.op) != OX_OK)
        return ox_buf_empty();
    if (ret_version)
        *ret_version = get.stat.version;
    return get.value;
}

void world_node_put(struct world *w, const char *path, const void *data, size_t len)
{
    struct ox_meta_put put;
    struct ox_buf value = ox_buf_copy(data, len);
    world_op(w, &put.op);
    ox_meta_put(w->meta, &put, path, value, OX_META_ANY, 0);
    assert_int_equal(world_wait(w, &put.op), OX_OK);
    ox_free(put.path);
    ox_buf_unref(&value);
}

// A close time is a varint of six bytes behind the tag 0x20 of a ledger's record.
char *world_node_hex(struct world *w, const char *path)
{
    struct ox_buf value = world_node(w, path, NULL);
    struct ox_str out = {0};
    for (size_t i = 0; i < value.len; i++) {
        bool time = value.data[i] == 0x20 && i + 6 < value.len && value.data[i + 1] >= 0x80;
        if (time)
            ox_str_adds(&out, "20T");
        else
            ox_str_addf(&out, "%02x", value.data[i]);
        i += time ? 6 : 0;
    }
    ox_buf_unref(&value);
    return ox_str_take(&out);
}
