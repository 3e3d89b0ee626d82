// orphans_test.c - the sweep deletes this instance's ledgers that no node names, and nothing else.
#include "mledger/fixture.h"

#define NAME "public/default/persistent/o"

static void make(struct world *w, int64_t id, const char *instance, const char *component, const char *log, const char *cursor)
{
    struct ox_kv custom = {0};
    ox_kv_set(&custom, "application", "pulsar");
    ox_kv_set(&custom, "component", component);
    ox_kv_set(&custom, "pulsar/managed-ledger", log);
    if (instance)
        ox_kv_set(&custom, "oxbow/instance", instance);
    if (cursor)
        ox_kv_set(&custom, "pulsar/cursor", cursor);
    ox_sim_store_make(w->store, id, &custom, 1);
    ox_kv_fini(&custom);
}

static enum ox_err sweep(struct world *w)
{
    struct ox_op op;
    world_op(w, &op);
    ox_ml_orphans_sweep(&w->factory, &op);
    return world_wait(w, &op);
}

// A log with two data ledgers and a cursor ledger.
static struct ox_mledger *prepare(struct world *w, int64_t ids[3])
{
    struct ox_mledger *ml = world_open(w, NAME);
    struct ox_cursor *c = world_cursor(w, ml, "c/1", OX_POS_EARLIEST);
    world_fill(w, ml, 0, 3);
    assert_int_equal(world_roll(w, ml), OX_OK);
    world_fill(w, ml, 3, 3);
    assert_int_equal(world_ack_upto(w, c, (struct ox_pos){ml->ledgers[0]->where.id, 1}), OX_OK);
    ids[0] = ml->ledgers[0]->where.id;
    ids[1] = ml->ledgers[1]->where.id;
    ids[2] = c->cursor_ledger;
    return ml;
}

static void test_orphans_of_this_instance_go_and_nothing_else(void **state)
{
    (void)state;
    struct world w;
    int64_t ids[3];
    world_init(&w, 1);
    struct ox_mledger *ml = prepare(&w, ids);
    world_crash(&w, ml);
    make(&w, 100, "i-1", "managed-ledger", NAME, NULL);                          // made, never recorded
    make(&w, 101, "i-1", "managed-ledger", NAME, "c%2F1");                       // replaced cursor ledger
    make(&w, 102, "i-1", "managed-ledger", NAME, "gone");                        // of a cursor without node
    make(&w, 103, "i-1", "managed-ledger", "public/default/persistent/no", "c"); // of a log without node: a position, nothing more
    make(&w, 200, "i-2", "managed-ledger", NAME, NULL);                          // another instance's
    make(&w, 201, NULL, "managed-ledger", NAME, NULL);                           // real Pulsar's
    make(&w, 202, "i-1", "schema", NAME, NULL);                                  // not a log's
    make(&w, 203, "i-1", "managed-ledger", "public/default/persistent/no", NULL); // messages whose node is missing
    assert_int_equal(sweep(&w), OX_OK);
    for (size_t i = 0; i < 3; i++)
        assert_true(ox_sim_store_has(w.store, ids[i]));
    for (int64_t id = 100; id < 104; id++)
        assert_false(ox_sim_store_has(w.store, id));
    for (int64_t id = 200; id < 204; id++)
        assert_true(ox_sim_store_has(w.store, id));
    assert_int_equal(w.factory.orphans.value, 4);
    assert_int_equal(w.factory.kept_orphans.value, 1);
    ml = world_open(&w, NAME);
    assert_int_equal(ml->total_entries, 6);
    assert_int_equal(world_close(&w, ml), OX_OK);
    world_fini(&w);
}

static void test_orphans_sweep_leaves_what_is_made_meanwhile(void **state)
{
    (void)state;
    struct world w;
    int64_t ids[3];
    world_init(&w, 1);
    struct ox_op op;
    world_op(&w, &op);
    ox_ml_orphans_sweep(&w.factory, &op);
    struct ox_mledger *ml = prepare(&w, ids);
    assert_int_equal(world_wait(&w, &op), OX_OK);
    for (size_t i = 0; i < 3; i++)
        assert_true(ox_sim_store_has(w.store, ids[i]));
    assert_int_equal(world_close(&w, ml), OX_OK);
    world_fini(&w);
}

static void test_orphans_pages_of_ledgers_are_all_seen(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    world_close(&w, world_open(&w, NAME));
    for (int64_t id = 1000; id < 1700; id++)
        make(&w, id, "i-1", "managed-ledger", NAME, NULL);
    assert_int_equal(sweep(&w), OX_OK);
    assert_int_equal(w.factory.orphans.value, 700);
    world_fini(&w);
}

static void test_orphans_sweep_ends_when_it_is_told(void **state)
{
    (void)state;
    struct world w;
    struct ox_op op;
    world_init(&w, 1);
    world_close(&w, world_open(&w, NAME));
    for (int64_t id = 1000; id < 1700; id++)
        make(&w, id, "i-1", "managed-ledger", NAME, NULL);
    world_op(&w, &op);
    ox_ml_orphans_sweep(&w.factory, &op);
    w.factory.sweep_stop = true;
    assert_int_equal(world_wait(&w, &op), OX_E_CANCELED);
    assert_int_equal(w.factory.orphans.value, 0);
    w.factory.sweep_stop = false;
    assert_int_equal(sweep(&w), OX_OK);
    assert_int_equal(w.factory.orphans.value, 700);
    world_fini(&w);
}

static void test_orphans_unreadable_record_deletes_nothing(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    world_node_put(&w, "/managed-ledgers/" NAME, "\x0a\x04\x08", 3);
    make(&w, 100, "i-1", "managed-ledger", NAME, NULL);
    assert_int_equal(sweep(&w), OX_OK);
    assert_true(ox_sim_store_has(w.store, 100));
    world_fini(&w);
}

static void meta_is_away(struct world *w, bool write, const char *path, struct ox_meta_fault *fault)
{
    (void)w;
    (void)write;
    (void)path;
    fault->outcome = OX_META_FAIL_BEFORE;
}

static void test_orphans_without_metadata_nothing_is_deleted(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    make(&w, 100, "i-1", "managed-ledger", NAME, NULL);
    w.on_meta = meta_is_away;
    assert_int_equal(sweep(&w), OX_E_DISCONNECTED);
    assert_true(ox_sim_store_has(w.store, 100));
    world_fini(&w);
}

static void test_orphans_crash_in_the_sweep(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    world_close(&w, world_open(&w, NAME));
    for (int64_t id = 100; id < 105; id++)
        make(&w, id, "i-1", "managed-ledger", NAME, NULL);
    ox_sim_arm(w.node, "sweep.after_delete", 2, OX_SIM_CRASH_PROCESS);
    assert_int_equal(sweep(&w), OX_E_SHUTDOWN);
    world_crash(&w, NULL);
    assert_int_equal(sweep(&w), OX_OK);
    assert_false(ox_sim_store_has(w.store, 104));
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orphans_of_this_instance_go_and_nothing_else),
        cmocka_unit_test(test_orphans_sweep_leaves_what_is_made_meanwhile),
        cmocka_unit_test(test_orphans_pages_of_ledgers_are_all_seen),
        cmocka_unit_test(test_orphans_sweep_ends_when_it_is_told),
        cmocka_unit_test(test_orphans_unreadable_record_deletes_nothing),
        cmocka_unit_test(test_orphans_without_metadata_nothing_is_deleted),
        cmocka_unit_test(test_orphans_crash_in_the_sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
