// data_many_test.c - 100,000 tiny ledgers in simulated time: syncs are shared, and memory does not grow with their number.
#include "move/storage/data_rig.h"

#include <stdio.h>

#define LOGS 10000
#define LEDGERS 10 // of each log
#define SYNC_NS (5 * OX_MS)

struct many {
    struct rig r;
    uint64_t flying_max;
    size_t holders_max;
};

// What a sync costs: a create, an append and a close wait for one each, unless they go together.
static void many_place_call(struct world *w, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                            struct ox_sim_place_fault *fault)
{
    (void)w;
    (void)ledger;
    (void)entry;
    if (call == OX_SIM_CALL_CREATE || call == OX_SIM_CALL_APPEND || call == OX_SIM_CALL_CLOSE)
        fault->before_ns = SYNC_NS;
}

static void many_make_log(struct many *m, int log)
{
    char name[64], path[96];
    struct ox_kv owner = {0};
    struct ox_record *record = ox_record_new();
    snprintf(name, sizeof name, "public/default/persistent/t%05d", log);
    snprintf(path, sizeof path, "/managed-ledgers/%s", name);
    ox_ml_owner(&m->r.w.factory, name, NULL, &owner);
    for (int i = 0; i < LEDGERS; i++) {
        int64_t id = 1 + log * LEDGERS + i, entries = 1 + i % 3;
        ox_sim_store_make(m->r.w.store, id, &owner, entries);
        ox_record_append_open(record, id);
        ox_record_seal(record, id, entries, (uint64_t)entries, 1000);
    }
    struct ox_buf value = ox_record_encode(record, false, "default");
    world_node_put(&m->r.w, path, value.data, value.len);
    ox_buf_unref(&value);
    ox_record_free(record);
    ox_kv_fini(&owner);
}

static bool many_over(void *ctx)
{
    struct many *m = ctx;
    m->flying_max = OX_MAX(m->flying_max, m->r.st.moving->flying.used);
    m->holders_max = OX_MAX(m->holders_max, ox_router_holders(&m->r.w.router, 1, NULL, NULL));
    return !ox_op_pending(&m->r.run);
}

static void test_data_many_tiny_ledgers_share_their_syncs(void **state)
{
    (void)state;
    struct many m = {0};
    rig_init(&m.r);
    for (int i = 0; i < LOGS; i++)
        many_make_log(&m, i);
    m.r.w.on_place = many_place_call;
    uint64_t before = ox_sim_now(m.r.w.sim);
    rig_run_start(&m.r, 1);
    assert_true(ox_sim_run(m.r.w.sim, many_over, &m, 3600 * OX_SEC));
    assert_int_equal(m.r.run.err, OX_OK);
    assert_int_equal(m.r.st.data.done, LOGS * LEDGERS);
    assert_true(ox_list_empty(&m.r.st.failures));
    assert_int_equal(rig_ledgers(&m.r, 1), LOGS * LEDGERS);
    // Sixteen at once, two syncs each: one after another they would have taken 3 * 5 ms * 100,000 = 1,500 s.
    assert_true(ox_sim_now(m.r.w.sim) - before < LOGS * LEDGERS / 16 * 2 * SYNC_NS * 5 / 4);
    assert_true(m.holders_max <= 16);
    assert_true(m.flying_max < 1 << 20);
    rig_fini(&m.r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_many_tiny_ledgers_share_their_syncs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
