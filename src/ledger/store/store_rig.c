// store_rig.c - a store on a simulated node.
#include "ledger/store/store_rig.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ledger/store/store_int.h"

void store_rig_init(struct store_rig *rig, uint64_t seed)
{
    *rig = (struct store_rig){0};
    rig->sim = ox_sim_new(seed, NULL);
    rig->node = ox_sim_node_new(rig->sim, "a");
    rig->table = ox_memory_table_new();
    ox_metrics_init(&rig->metrics);
    ox_store_config_init(&rig->config, "store");
    rig->config.segment_bytes = 256 * 1024;
    rig->config.batch_bytes_max = 32 * 1024;
    rig->config.reserve_bytes = 1024 * 1024;
    rig->config.index_cache_bytes = 16 * 1024;
    rig->config.table = ox_memory_table_source(rig->table);
    rig->config.metrics = &rig->metrics;
}

void store_rig_fini(struct store_rig *rig)
{
    if (rig->place)
        (void)!store_rig_close(rig);
    ox_sim_free(rig->sim);
    ox_memory_table_free(rig->table);
}

enum ox_err store_rig_open(struct store_rig *rig)
{
    struct ox_op op;
    rig->loop = ox_sim_loop(rig->node);
    rig->place = NULL;
    ox_op_init(&op, rig->loop, ox_sim_done, "open");
    ox_store_open(rig->loop, ox_sim_fs(rig->node), &op, &rig->config, &rig->place);
    return ox_sim_wait(rig->sim, &op);
}

enum ox_err store_rig_close(struct store_rig *rig)
{
    struct ox_op op;
    ox_op_init(&op, rig->loop, ox_sim_done, "close");
    ox_place_close(rig->place, &op);
    rig->place = NULL;
    return ox_sim_wait(rig->sim, &op);
}

void store_rig_crash(struct store_rig *rig, enum ox_sim_crash how)
{
    ox_sim_node_crash(rig->node, how);
    if (rig->place)
        (void)!store_rig_close(rig);
    ox_sim_node_restart(rig->node);
}

enum ox_err store_rig_create(struct store_rig *rig, int64_t id, struct ox_ledger **ret)
{
    struct ox_ledger_create op = {0};
    struct ox_kv custom = {0};
    ox_kv_set(&custom, "owner", "rig");
    ox_op_init(&op.op, rig->loop, ox_sim_done, "create");
    ox_ledger_create(rig->place, &op, id, &custom);
    ox_kv_fini(&custom);
    enum ox_err err = ox_sim_wait(rig->sim, &op.op);
    *ret = op.ledger;
    return err;
}

enum ox_err store_rig_open_ledger(struct store_rig *rig, int64_t id, enum ox_open_mode mode, struct ox_ledger **ret)
{
    struct ox_ledger_open op = {0};
    struct ox_kv custom = {0};
    ox_kv_set(&custom, "owner", "rig");
    ox_op_init(&op.op, rig->loop, ox_sim_done, "open");
    ox_ledger_open(rig->place, &op, id, mode, &custom);
    ox_kv_fini(&custom);
    enum ox_err err = ox_sim_wait(rig->sim, &op.op);
    *ret = op.ledger;
    return err;
}

struct ox_buf store_rig_bytes(int64_t ledger, int64_t entry, size_t len)
{
    uint8_t *data;
    struct ox_random r;
    struct ox_buf buf = ox_buf_new(len, &data);
    ox_random_seed(&r, (uint64_t)ledger << 32 ^ (uint64_t)entry);
    for (size_t i = 0; i < len; i++)
        data[i] = (uint8_t)ox_random_next(&r);
    return buf;
}

enum ox_err store_rig_append(struct store_rig *rig, struct ox_ledger *l, int64_t entry, size_t len)
{
    struct ox_append a = {.entry = entry, .part_count = 1};
    a.parts[0] = store_rig_bytes(l->info.id, entry, len);
    ox_op_init(&a.op, rig->loop, ox_sim_done, "append");
    ox_ledger_append(l, &a);
    enum ox_err err = ox_sim_wait(rig->sim, &a.op);
    ox_buf_unref(&a.parts[0]);
    return err;
}

enum ox_err store_rig_read(struct store_rig *rig, struct ox_ledger *l, int64_t entry, size_t len)
{
    struct ox_read r = {.first = entry, .last = entry, .bytes_max = 1};
    ox_op_init(&r.op, rig->loop, ox_sim_done, "read");
    ox_ledger_read(l, &r);
    enum ox_err err = ox_sim_wait(rig->sim, &r.op);
    struct ox_buf want = store_rig_bytes(l->info.id, entry, len);
    if (err == OX_OK && (r.count != 1 || !ox_buf_equal(r.entries[0], want)))
        err = OX_E_CHECKSUM;
    ox_buf_unref(&want);
    ox_read_fini(&r);
    return err;
}

enum ox_err store_rig_delete(struct store_rig *rig, int64_t id)
{
    struct ox_ledger_delete op = {0};
    struct ox_kv custom = {0};
    ox_kv_set(&custom, "owner", "rig");
    ox_op_init(&op.op, rig->loop, ox_sim_done, "delete");
    ox_ledger_delete(rig->place, &op, id, &custom);
    ox_kv_fini(&custom);
    return ox_sim_wait(rig->sim, &op.op);
}

int64_t store_rig_metric(struct store_rig *rig, const char *name)
{
    const struct store *s = store_of(rig->place);
#define X(field, metric, help)     \
    if (strcmp(name, metric) == 0) \
        return s->m_##field.value;
    STORE_METRICS(X)
#undef X
    abort();
}
