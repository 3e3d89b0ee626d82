// data_rig.c - the world of the data half's tests.
#include "move/storage/data_rig.h"

#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"

const struct storage_failure *rig_failure(const struct rig *r, const char *log, int64_t ledger)
{
    OX_LIST_EACH(&r->st.failures, link) {
        struct storage_failure *f = CONTAINER_OF(link, struct storage_failure, link);
        if (strcmp(f->topic, log) == 0 && f->ledger == ledger)
            return f;
    }
    return NULL;
}

// ---- the world

static void rig_place_call(struct world *w, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                           struct ox_sim_place_fault *fault)
{
    struct rig *r = CONTAINER_OF(w, struct rig, w);
    (void)ledger;
    r->appends += call == OX_SIM_CALL_APPEND;
    r->creates += call == OX_SIM_CALL_CREATE;
    if (call == OX_SIM_CALL_APPEND)
        fault->before_ns = r->slow_ns + (uint64_t)entry * r->each_ns;
    if (call == OX_SIM_CALL_DELETE)
        fault->before_ns = r->delete_ns;
    if (call == OX_SIM_CALL_OPEN)
        fault->before_ns = r->open_ns;
    fault->garble = r->garble && call == OX_SIM_CALL_APPEND;
    if (r->full && (call == OX_SIM_CALL_APPEND || call == OX_SIM_CALL_CREATE))
        fault->err = OX_E_NO_SPACE;
}

void rig_switch(struct rig *r, bool on)
{
    r->st.directive.switch_id = on ? (char *)(uintptr_t) "sw-1" : NULL;
}

static void rig_storage(struct rig *r)
{
    struct world *w = &r->w;
    r->st = (struct ox_storage){
        .p = {.loop = w->loop, .log = &w->log, .meta = w->meta, .router = &w->router, .metrics = &w->metrics},
        .factory = &w->factory,
        .activated = true,
        .state = STORAGE_RUNNING,
        .move_data = true};
    r->st.p.config.concurrency = 16;
    r->st.p.config.window_ms = 15 * UINT64_C(86400000);
    r->control = (struct storage_control){0};
    r->st.control = &r->control;
    rig_switch(r, true);
    ox_list_init(&r->st.failures);
}

void rig_init(struct rig *r)
{
    *r = (struct rig){0};
    world_init_two(&r->w, 7);
    r->w.settings.retention_ms = r->w.settings.retention_bytes = -1;
    r->w.factory.settings = r->w.settings;
    r->w.on_place = rig_place_call;
    rig_storage(r);
}

static void rig_storage_end(struct rig *r)
{
    storage_data_fini(&r->st);
    storage_failures_clear(&r->st);
}

void rig_fini(struct rig *r)
{
    rig_storage_end(r);
    world_settle(&r->w);
    world_fini(&r->w);
}

void rig_crash(struct rig *r)
{
    if (ox_sim_node_alive(r->w.node))
        world_kill(&r->w);
    if (ox_op_pending(&r->run))
        world_wait(&r->w, &r->run);
    world_settle(&r->w);
    rig_storage_end(r);
    uint32_t active = r->w.router.active;
    world_stop(&r->w);
    ox_sim_node_restart(r->w.node);
    world_start(&r->w);
    ox_router_activate(&r->w.router, active);
    rig_storage(r);
}

void rig_append(struct rig *r, struct ox_mledger *ml, size_t len, uint8_t seed)
{
    uint8_t *data = NULL;
    struct ox_ml_append a = {.messages = 1};
    a.body = ox_buf_new(len, &data);
    for (size_t i = 0; i < len; i++)
        data[i] = (uint8_t)(seed + i * 7);
    struct ox_buf mine = a.body;
    world_op(&r->w, &a.op);
    ox_mledger_append(ml, &a);
    assert_string_equal(ox_err_name(world_wait(&r->w, &a.op)), "OK");
    ox_buf_unref(&mine);
}

void rig_log(struct rig *r, const char *name, int ledgers, int entries, int64_t *ids)
{
    struct ox_mledger *ml = world_open(&r->w, name);
    for (int i = 0; i < ledgers; i++) {
        if (ids)
            ids[i] = ml->ledgers[ml->ledger_count - 1]->where.id;
        world_fill(&r->w, ml, 100 * i, entries);
        assert_int_equal(world_roll(&r->w, ml), OX_OK);
    }
    assert_int_equal(world_close(&r->w, ml), OX_OK);
}

char *rig_content(struct rig *r, const char *name)
{
    struct ox_str out = {0};
    struct ox_mledger *ml = world_open(&r->w, name);
    struct ox_pos from = ox_ml_first(ml);
    enum ox_err err = OX_OK;
    while (err == OX_OK) {
        struct ox_ml_read read = {.from = from, .entries_max = 100, .bytes_max = 1 << 20};
        world_op(&r->w, &read.op);
        ox_mledger_read(ml, &read);
        err = world_wait(&r->w, &read.op);
        for (size_t i = 0; i < read.count; i++)
            ox_str_addf(&out, "%lld/%lld:%zu:%08x ", (long long)read.entries[i].pos.ledger,
                        (long long)read.entries[i].pos.entry, read.entries[i].data.len,
                        ox_crc32c(0, read.entries[i].data.data, read.entries[i].data.len));
        ox_ml_read_fini(&read);
        from = read.next;
    }
    ox_str_adds(&out, ox_err_name(err));
    assert_int_equal(world_close(&r->w, ml), OX_OK);
    return ox_str_take(&out);
}

void rig_run_start(struct rig *r, uint32_t target)
{
    ox_router_activate(&r->w.router, target);
    world_op(&r->w, &r->run);
    storage_data_run(&r->st, &r->run);
}

enum ox_err rig_run(struct rig *r, uint32_t target)
{
    rig_run_start(r, target);
    return world_wait(&r->w, &r->run);
}

void rig_count(struct rig *r)
{
    r->appends = r->creates = 0;
}

size_t rig_ledgers(const struct rig *r, uint32_t place)
{
    return ox_sim_store_count(place == 0 ? r->w.store : r->w.other_store);
}

const char *rig_where(struct rig *r, const char *log, int64_t ledger, size_t *ret_copies, int64_t *ret_physical)
{
    struct ox_ml_walk walk = {0};
    const char *where = "-";
    ox_ml_walk_begin(&r->w.factory, &walk, false);
    do {
        world_op(&r->w, &walk.op);
        ox_ml_walk_next(&walk);
        assert_int_equal(world_wait(&r->w, &walk.op), OX_OK);
        for (size_t i = 0; walk.log && strcmp(walk.log, log) == 0 && i < walk.count; i++) {
            if (walk.found[i].where.id != ledger)
                continue;
            where = ox_router_name(&r->w.router, walk.found[i].where.place);
            if (ret_copies)
                *ret_copies = walk.found[i].copy_count;
            if (ret_physical)
                *ret_physical = walk.found[i].where.physical;
            assert_true(walk.found[i].where.place == 0 || walk.found[i].open || walk.found[i].digest != NULL);
        }
    } while (walk.log);
    ox_ml_walk_end(&walk);
    return where;
}

struct ox_storage_call *rig_call(struct rig *r, struct ox_storage_call *c)
{
    *c = (struct ox_storage_call){0};
    world_op(&r->w, &c->op);
    return c;
}

enum ox_err rig_wait(struct rig *r, struct ox_storage_call *c)
{
    return world_wait(&r->w, &c->op);
}

int64_t rig_number(const struct ox_storage_call *c, const char *key)
{
    const json_t *value = json_object_get(c->answer, key);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}
