// orphans_test.c - the sweep deletes this instance's ledgers that no node names, and nothing else.
#include "mledger/fixture.h"
#include "mledger/offline.h"
#include "mledger/places.h"

#define NAME "public/default/persistent/o"

static void make_in(struct ox_sim_store *store, int64_t id, const char *instance, const char *component,
                    const char *log, const char *cursor, const char *copy_of)
{
    struct ox_kv custom = {0};
    ox_kv_set(&custom, "application", "pulsar");
    ox_kv_set(&custom, "component", component);
    if (log)
        ox_kv_set(&custom, "pulsar/managed-ledger", log);
    if (instance)
        ox_kv_set(&custom, "oxbow/instance", instance);
    if (cursor)
        ox_kv_set(&custom, "pulsar/cursor", cursor);
    if (copy_of)
        ox_kv_set(&custom, OX_COPY_OF, copy_of);
    ox_sim_store_make(store, id, &custom, 1);
    ox_kv_fini(&custom);
}

static void make(struct world *w, int64_t id, const char *instance, const char *component, const char *log, const char *cursor)
{
    make_in(w->store, id, instance, component, log, cursor, NULL);
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
    make(&w, 104, "i-1", "canary", NULL, NULL);                                  // of a precheck that was cut off
    make(&w, 200, "i-2", "managed-ledger", NAME, NULL);                          // another instance's
    make(&w, 204, "i-2", "canary", NULL, NULL);                                  // another instance's
    make(&w, 201, NULL, "managed-ledger", NAME, NULL);                           // real Pulsar's
    make(&w, 202, "i-1", "schema", NAME, NULL);                                  // not a log's
    make(&w, 203, "i-1", "managed-ledger", "public/default/persistent/no", NULL); // messages whose node is missing
    assert_int_equal(sweep(&w), OX_OK);
    for (size_t i = 0; i < 3; i++)
        assert_true(ox_sim_store_has(w.store, ids[i]));
    for (int64_t id = 100; id < 105; id++)
        assert_false(ox_sim_store_has(w.store, id));
    for (int64_t id = 200; id < 205; id++)
        assert_true(ox_sim_store_has(w.store, id));
    assert_int_equal(w.factory.orphans.value, 5);
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

static void ledger_goes(struct world *w, bool write, const char *path, struct ox_meta_fault *fault)
{
    (void)fault;
    if (!write && strcmp(path, "/managed-ledgers/public/default/persistent/no") == 0)
        ox_sim_store_lose(w->store, 100);
}

// A topic that is deleted, with its ledgers, after they were listed: nobody is told of a ledger that isn't there.
static void test_orphans_deleted_meanwhile_are_not_called_kept(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    make(&w, 100, "i-1", "managed-ledger", "public/default/persistent/no", NULL);
    make(&w, 101, "i-1", "managed-ledger", "public/default/persistent/lost", NULL);
    w.on_meta = ledger_goes;
    assert_int_equal(sweep(&w), OX_OK);
    assert_false(ox_sim_store_has(w.store, 100));
    assert_true(ox_sim_store_has(w.store, 101));
    assert_int_equal(w.factory.kept_orphans.value, 1);
    world_fini(&w);
}

// A topic that was deleted while the place of one of its ledgers was closed: that one waits to be deleted, it is not what is left of a lost topic.
static void test_orphans_that_wait_to_be_deleted_are_not_called_kept(void **state)
{
    (void)state;
    struct world w;
    struct ox_op op;
    world_init_two(&w, 1);
    ox_router_activate(&w.router, 1);
    struct ox_mledger *ml = world_open(&w, NAME);
    int64_t id = ml->ledgers[0]->where.id;
    world_fill(&w, ml, 0, 3);
    assert_int_equal(world_close(&w, ml), OX_OK);
    ox_router_activate(&w.router, 0);
    assert_int_equal(world_close(&w, world_open(&w, NAME)), OX_OK); // that one is sealed, the next is made in the first place
    world_other_close(&w);
    ml = world_open(&w, NAME);
    world_op(&w, &op);
    ox_mledger_delete(ml, &op);
    assert_int_equal(world_wait(&w, &op), OX_OK);
    world_crash(&w, NULL);
    world_other_open(&w);
    assert_int_equal(sweep(&w), OX_OK);
    assert_true(ox_sim_store_has(w.other_store, id));
    assert_int_equal(w.factory.kept_orphans.value, 0);
    world_op(&w, &op);
    ox_ml_deletes_retry(&w.factory, &op, 1);
    assert_int_equal(world_wait(&w, &op), OX_OK);
    assert_false(ox_sim_store_has(w.other_store, id));
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

// ---- several places ----------------------------------------------------------------------------------------------------

static enum ox_err sweep_place(struct world *w, uint32_t place)
{
    struct ox_op op;
    world_op(w, &op);
    ox_ml_orphans_sweep_place(&w->factory, &op, place);
    return world_wait(w, &op);
}

static struct ox_location move(struct world *w, struct ox_location from)
{
    struct ox_ml_relocate op = {.log = NAME, .ledger = from.id, .from = from, .to = world_copy(w, NAME, from, 1)};
    world_op(w, &op.op);
    ox_ml_relocate(&w->factory, &op);
    assert_int_equal(world_wait(w, &op.op), OX_OK);
    return op.to;
}

// A ledger is named by place and physical id: the same number elsewhere is another ledger. What copies name is named.
static void test_orphans_are_told_apart_by_place_and_physical_id(void **state)
{
    (void)state;
    struct world w;
    int64_t ids[3];
    world_init_two(&w, 1);
    struct ox_mledger *ml = prepare(&w, ids);
    struct ox_location first = ml->ledgers[0]->where, second = ml->ledgers[1]->where;
    assert_int_equal(world_roll(&w, ml), OX_OK);
    move(&w, first); // the one in the other place carries OX_COPY_OF, the one that is left behind doesn't
    world_crash(&w, ml);
    make_in(w.other_store, second.id, "i-1", "managed-ledger", NAME, NULL, NULL); // as if the second one's number were used there
    make_in(w.other_store, ids[2], "i-1", "managed-ledger", NAME, "c%2F1", NULL);    // and that of the cursor's ledger
    make_in(w.other_store, 900, "i-1", "managed-ledger", NAME, NULL, "default:900"); // half a copy
    make_in(w.other_store, 901, "i-1", "managed-ledger", NAME, NULL, NULL);
    assert_int_equal(sweep(&w), OX_OK);
    assert_true(ox_sim_store_has(w.store, first.id) && ox_sim_store_has(w.other_store, first.id));
    assert_true(ox_sim_store_has(w.store, second.id) && !ox_sim_store_has(w.other_store, second.id));
    assert_true(ox_sim_store_has(w.store, ids[2]) && !ox_sim_store_has(w.other_store, ids[2]));
    assert_true(ox_sim_store_has(w.other_store, 900));
    assert_false(ox_sim_store_has(w.other_store, 901));
    ml = world_open(&w, NAME);
    assert_int_equal(ml->total_entries, 6);
    assert_int_equal(world_close(&w, ml), OX_OK);
    world_fini(&w);
}

// A record that points to a place that does not have the ledger (somebody has confused two places) is no reason to delete the one that there is.
static void test_orphans_a_ledger_that_is_missing_where_it_should_be_is_kept(void **state)
{
    (void)state;
    struct world w;
    int64_t ids[3];
    world_init_two(&w, 1);
    struct ox_mledger *ml = prepare(&w, ids);
    world_crash(&w, ml);
    assert_true(ox_sim_store_lose(w.store, ids[0]) && ox_sim_store_lose(w.store, ids[2]));
    make_in(w.other_store, ids[0], "i-1", "managed-ledger", NAME, NULL, NULL);
    make_in(w.other_store, ids[2], "i-1", "managed-ledger", NAME, "c%2F1", NULL);
    assert_int_equal(sweep(&w), OX_OK);
    assert_true(ox_sim_store_has(w.other_store, ids[0]) && ox_sim_store_has(w.other_store, ids[2]));
    assert_int_equal(w.factory.kept_orphans.value, 2);
    world_fini(&w);
}

// The physical id counts, not the logical one that it stands for.
static void test_orphans_physical_id_is_what_counts(void **state)
{
    (void)state;
    struct world w;
    int64_t ids[3];
    world_init_two(&w, 1);
    struct ox_mledger *ml = prepare(&w, ids);
    struct ox_location from = ml->ledgers[0]->where;
    make_in(w.other_store, from.id, "i-1", "managed-ledger", NAME, NULL, NULL); // takes the id: an orphan
    struct ox_location to = move(&w, from);
    assert_true(to.physical != to.id);
    world_crash(&w, ml);
    assert_int_equal(sweep(&w), OX_OK);
    assert_false(ox_sim_store_has(w.other_store, to.id));
    assert_true(ox_sim_store_has(w.other_store, to.physical));
    assert_true(ox_sim_store_has(w.store, from.physical));
    world_fini(&w);
}

static void test_orphans_of_a_closed_place_are_looked_at_when_it_opens(void **state)
{
    (void)state;
    struct world w;
    int64_t ids[3];
    world_init_two(&w, 1);
    struct ox_mledger *ml = prepare(&w, ids);
    move(&w, ml->ledgers[0]->where);
    world_crash(&w, ml);
    make_in(w.other_store, 900, "i-1", "managed-ledger", NAME, NULL, NULL);
    world_other_close(&w);
    make(&w, 901, "i-1", "managed-ledger", NAME, NULL);
    assert_int_equal(sweep(&w), OX_OK);
    assert_false(ox_sim_store_has(w.store, 901));
    assert_true(ox_sim_store_has(w.other_store, 900));
    assert_int_equal(sweep_place(&w, 1), OX_OK); // still closed
    world_other_open(&w);
    assert_int_equal(sweep_place(&w, 1), OX_OK);
    assert_false(ox_sim_store_has(w.other_store, 900));
    assert_true(ox_sim_store_has(w.other_store, ids[0]) && ox_sim_store_has(w.store, ids[0]));
    world_fini(&w);
}

// A ledger that a log at work, or somebody at work on its nodes, has just made is not named yet.
static void test_orphans_of_logs_at_work_are_left_alone(void **state)
{
    (void)state;
    struct world w;
    struct ml_claim claim;
    int64_t ids[3];
    world_init_two(&w, 1);
    struct ox_mledger *ml = prepare(&w, ids);
    make(&w, 900, "i-1", "managed-ledger", NAME, NULL);
    make(&w, 901, "i-1", "managed-ledger", NAME, "c%2F1");
    assert_int_equal(sweep_place(&w, 0), OX_OK);
    assert_true(ox_sim_store_has(w.store, 900) && ox_sim_store_has(w.store, 901));
    assert_int_equal(world_close(&w, ml), OX_OK);
    world_op(&w, &claim.op);
    ml_claim(&w.factory, &claim, NAME);
    assert_int_equal(world_wait(&w, &claim.op), OX_OK);
    assert_int_equal(sweep_place(&w, 0), OX_OK);
    assert_true(ox_sim_store_has(w.store, 900) && ox_sim_store_has(w.store, 901));
    ml_claim_release(&claim);
    assert_int_equal(sweep_place(&w, 0), OX_OK);
    assert_false(ox_sim_store_has(w.store, 900) || ox_sim_store_has(w.store, 901));
    world_fini(&w);
}

// What one ledger's record says can't be understood: it may mean any of them.
static void test_orphans_copies_that_can_not_be_understood_keep_all(void **state)
{
    (void)state;
    struct world w;
    int64_t ids[3];
    world_init_two(&w, 1);
    struct ox_mledger *ml = prepare(&w, ids);
    world_crash(&w, ml);
    struct ox_record *record = ox_record_new();
    struct ox_buf node = world_node(&w, "/managed-ledgers/" NAME, NULL);
    assert_int_equal(ox_record_decode(record, node), OX_OK);
    ox_buf_unref(&node);
    ox_record_set_ledger_property(record, ids[0], OX_STAMP_COPIES, "other:100");
    node = ox_record_encode(record, true, "default");
    world_node_put(&w, "/managed-ledgers/" NAME, node.data, node.len);
    ox_buf_unref(&node);
    ox_record_free(record);
    make_in(w.other_store, 100, "i-1", "managed-ledger", NAME, NULL, NULL);
    assert_int_equal(sweep(&w), OX_OK);
    assert_true(ox_sim_store_has(w.other_store, 100));
    world_fini(&w);
}

// At the start many logs are being opened: what is older than the process nobody names any more, whoever is at work.
static void test_orphans_of_a_former_process_go_while_their_log_is_worked_on(void **state)
{
    (void)state;
    struct world w;
    struct ml_claim claim;
    world_init(&w, 1);
    world_close(&w, world_open(&w, NAME));
    make(&w, 900, "i-1", "managed-ledger", NAME, "c");
    world_op(&w, &claim.op);
    ml_claim(&w.factory, &claim, NAME);
    assert_int_equal(world_wait(&w, &claim.op), OX_OK);
    assert_int_equal(sweep(&w), OX_OK);
    assert_false(ox_sim_store_has(w.store, 900));
    ml_claim_release(&claim);
    world_fini(&w);
}

// The start's sweep was cut short; when it is tried again the process has been at work.
static void test_orphans_made_since_the_start_are_left_alone_by_a_second_sweep(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    world_close(&w, world_open(&w, NAME));
    make(&w, 900, "i-1", "managed-ledger", NAME, NULL);
    w.on_meta = meta_is_away;
    assert_int_equal(sweep(&w), OX_E_DISCONNECTED);
    w.on_meta = NULL;
    make(&w, 950, "i-1", "managed-ledger", NAME, NULL);
    assert_int_equal(sweep(&w), OX_OK);
    assert_false(ox_sim_store_has(w.store, 900));
    assert_true(ox_sim_store_has(w.store, 950));
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
        cmocka_unit_test(test_orphans_deleted_meanwhile_are_not_called_kept),
        cmocka_unit_test(test_orphans_that_wait_to_be_deleted_are_not_called_kept),
        cmocka_unit_test(test_orphans_crash_in_the_sweep),
        cmocka_unit_test(test_orphans_are_told_apart_by_place_and_physical_id),
        cmocka_unit_test(test_orphans_a_ledger_that_is_missing_where_it_should_be_is_kept),
        cmocka_unit_test(test_orphans_physical_id_is_what_counts),
        cmocka_unit_test(test_orphans_of_a_closed_place_are_looked_at_when_it_opens),
        cmocka_unit_test(test_orphans_of_logs_at_work_are_left_alone),
        cmocka_unit_test(test_orphans_of_a_former_process_go_while_their_log_is_worked_on),
        cmocka_unit_test(test_orphans_made_since_the_start_are_left_alone_by_a_second_sweep),
        cmocka_unit_test(test_orphans_copies_that_can_not_be_understood_keep_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
