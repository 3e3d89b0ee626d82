// deletes_test.c - deletes of ledgers whose place can't be reached: kept, done later, never done to anybody else's ledger.
#include "mledger/deletes.h"
#include "mledger/fixture.h"
#include "mledger/places.h"

#include <string.h>

#define NAME "public/default/persistent/d"
#define NODE "/managed-ledgers/" NAME

struct deletes_rig {
    struct world w;
    struct ox_mledger *ml;
    struct ox_location at[3]; // 0 and 1 are in the other place, with a copy left in the bootstrap place
};

static void rig_move(struct deletes_rig *r, size_t i)
{
    struct ox_ml_relocate op = {.log = NAME, .ledger = r->at[i].id, .from = r->at[i]};
    op.to = world_copy(&r->w, NAME, r->at[i], 1);
    world_op(&r->w, &op.op);
    ox_ml_relocate(&r->w.factory, &op);
    assert_int_equal(world_wait(&r->w, &op.op), OX_OK);
    r->at[i] = op.to;
}

static void rig_init(struct deletes_rig *r)
{
    *r = (struct deletes_rig){0};
    world_init_two(&r->w, 1);
    r->ml = world_open(&r->w, NAME);
    world_cursor(&r->w, r->ml, "keep", OX_POS_EARLIEST);
    for (int i = 0; i < 3; i++) {
        world_fill(&r->w, r->ml, 5 * i, 5);
        assert_int_equal(world_roll(&r->w, r->ml), OX_OK);
        r->at[i] = r->ml->ledgers[i]->where;
    }
    rig_move(r, 0);
    rig_move(r, 1);
}

static void rig_fini(struct deletes_rig *r)
{
    if (r->ml)
        world_close(&r->w, r->ml);
    world_fini(&r->w);
}

static size_t waiting(struct deletes_rig *r, const char *place)
{
    struct ox_ml_deletes_count c = {.place = place};
    world_op(&r->w, &c.op);
    ox_ml_deletes_count(&r->w.factory, &c);
    assert_int_equal(world_wait(&r->w, &c.op), OX_OK);
    return c.count;
}

static enum ox_err retry(struct deletes_rig *r, uint32_t place)
{
    struct ox_op op;
    world_op(&r->w, &op);
    ox_ml_deletes_retry(&r->w.factory, &op, place);
    return world_wait(&r->w, &op);
}

// Acknowledges what is in the first `count` ledgers: they are trimmed.
static void rig_trim(struct deletes_rig *r, size_t count)
{
    struct ox_cursor *c = ox_cursor_find(r->ml, "keep");
    assert_int_equal(world_ack_upto(&r->w, c, (struct ox_pos){r->at[count - 1].id, 4}), OX_OK);
    ox_mledger_trim(r->ml);
    world_settle(&r->w);
    assert_int_equal(r->ml->ledgers[0]->where.id, count < 3 ? r->at[count].id : r->ml->ledgers[0]->where.id);
}

static enum ox_err rig_delete(struct deletes_rig *r)
{
    struct ox_op op;
    world_op(&r->w, &op);
    ox_mledger_delete(r->ml, &op);
    enum ox_err err = world_wait(&r->w, &op);
    r->ml = NULL;
    world_settle(&r->w);
    return err;
}

static bool is_there(const struct deletes_rig *r, size_t i)
{
    return ox_sim_store_has(r->w.other_store, r->at[i].physical);
}

// fault: E11
static void test_deletes_wait_for_a_place_that_is_closed(void **state)
{
    (void)state;
    struct deletes_rig r;
    rig_init(&r);
    world_other_close(&r.w);
    rig_trim(&r, 2);
    assert_int_equal(waiting(&r, "other"), 2);
    assert_int_equal(waiting(&r, "default"), 0);
    assert_true(is_there(&r, 0) && is_there(&r, 1));
    for (size_t i = 0; i < 2; i++) // the copies that were left behind could be reached
        assert_false(ox_sim_store_has(r.w.store, r.at[i].id));
    assert_int_equal(retry(&r, 1), OX_E_PLACE_CLOSED);
    world_crash(&r.w, r.ml);
    r.ml = NULL;
    assert_int_equal(waiting(&r, "other"), 2);
    world_other_open(&r.w);
    assert_int_equal(retry(&r, 1), OX_OK);
    assert_int_equal(waiting(&r, "other"), 0);
    assert_false(is_there(&r, 0) || is_there(&r, 1));
    assert_int_equal(retry(&r, 1), OX_OK); // nothing to do
    rig_fini(&r);
}

// Each ledger is deleted in its own place; one of the same id elsewhere that is somebody else's stays.
// fault: E10
static void test_deletes_never_touch_the_same_id_elsewhere(void **state)
{
    (void)state;
    struct deletes_rig r;
    struct ox_kv stranger = {0};
    rig_init(&r);
    ox_kv_set(&stranger, "application", "pulsar");
    for (size_t i = 0; i < 2; i++) {
        assert_true(ox_sim_store_lose(r.w.store, r.at[i].id));
        ox_sim_store_make(r.w.store, r.at[i].id, &stranger, 5);
    }
    ox_sim_store_make(r.w.other_store, r.at[2].id, &stranger, 5);
    assert_int_equal(rig_delete(&r), OX_E_IDENTITY_MISMATCH); // as ever: told
    assert_true(ox_sim_store_has(r.w.store, r.at[0].id) && ox_sim_store_has(r.w.store, r.at[1].id));
    assert_false(is_there(&r, 0) || is_there(&r, 1));
    assert_true(ox_sim_store_has(r.w.other_store, r.at[2].id));
    assert_false(ox_sim_store_has(r.w.store, r.at[2].id));
    ox_kv_fini(&stranger);
    rig_fini(&r);
}

static void drop_copy(struct deletes_rig *r, size_t i)
{
    struct ox_ml_drop_copy d = {.log = NAME, .ledger = r->at[i].id, .place = "default", .physical = r->at[i].id};
    world_op(&r->w, &d.op);
    ox_ml_drop_copy(&r->w.factory, &d);
    assert_int_equal(world_wait(&r->w, &d.op), OX_OK);
    world_settle(&r->w);
    assert_false(ox_sim_store_has(r->w.store, r->at[i].id));
}

// A log that nobody has loaded is deleted: two of its ledgers are in one place, one in the other, and under each of these ids a stranger has one in the
// place where the log has none.
// fault: E10
static void test_deletes_of_a_log_not_loaded_go_to_their_own_places(void **state)
{
    (void)state;
    struct deletes_rig r;
    struct ox_kv stranger = {0};
    rig_init(&r);
    drop_copy(&r, 0);
    drop_copy(&r, 1);
    ox_kv_set(&stranger, "application", "pulsar");
    ox_sim_store_make(r.w.store, r.at[0].physical, &stranger, 5);
    ox_sim_store_make(r.w.store, r.at[1].physical, &stranger, 5);
    ox_sim_store_make(r.w.other_store, r.at[2].physical, &stranger, 5);
    world_crash(&r.w, r.ml);
    r.ml = world_open(&r.w, NAME); // whoever deletes opens it first
    assert_int_equal(rig_delete(&r), OX_OK);
    assert_null(world_node(&r.w, NODE, NULL).data);
    assert_int_equal(ox_sim_store_count(r.w.store), 2);
    assert_int_equal(ox_sim_store_count(r.w.other_store), 1);
    for (size_t i = 0; i < OX_COUNT(r.at); i++) {
        struct ox_sim_store *elsewhere = i < 2 ? r.w.store : r.w.other_store;
        assert_string_equal(ox_kv_find(&ox_sim_store_find(elsewhere, r.at[i].physical)->custom, "application"),
                            "pulsar");
    }
    ox_kv_fini(&stranger);
    rig_fini(&r);
}

// fault: E11
static void test_deletes_of_a_whole_log_do_not_need_all_places(void **state)
{
    (void)state;
    struct deletes_rig r;
    rig_init(&r);
    world_other_close(&r.w);
    assert_int_equal(rig_delete(&r), OX_OK);
    assert_null(world_node(&r.w, NODE, NULL).data);
    assert_int_equal(ox_sim_store_count(r.w.store), 0);
    assert_int_equal(waiting(&r, "other"), 2);
    world_other_open(&r.w);
    assert_int_equal(retry(&r, 1), OX_OK);
    assert_int_equal(waiting(&r, "other"), 0);
    assert_int_equal(ox_sim_store_count(r.w.other_store), 0);
    rig_fini(&r);
}

// The log's deletion dies at some point; it is deleted again (if it is still there), the other place comes back: nothing is left anywhere.
static void delete_crash_at(const char *point, uint32_t nth)
{
    struct deletes_rig r;
    rig_init(&r);
    world_other_close(&r.w);
    ox_sim_arm(r.w.node, point, nth, OX_SIM_CRASH_PROCESS);
    rig_delete(&r);
    assert_false(ox_sim_armed(r.w.node));
    world_crash(&r.w, NULL);
    struct ox_ml_open open = {0};
    world_op(&r.w, &open.op);
    ox_mledger_open(&r.w.factory, &open, NAME, false);
    if (world_wait(&r.w, &open.op) == OX_OK) {
        r.ml = open.ml;
        assert_int_equal(rig_delete(&r), OX_OK);
    }
    assert_null(world_node(&r.w, NODE, NULL).data);
    world_other_open(&r.w);
    assert_int_equal(retry(&r, 1), OX_OK);
    assert_int_equal(waiting(&r, "other"), 0);
    assert_int_equal(ox_sim_store_count(r.w.other_store), 0);
    rig_fini(&r);
}

static void test_deletes_crash_while_a_log_is_deleted_leaves_nothing_behind(void **state)
{
    (void)state;
    delete_crash_at("deletes.after_intent", 1);
    delete_crash_at("deletes.after_intent", 2);
    delete_crash_at("delete.after_record", 1);
    delete_crash_at("delete.after_node", 1);
}

static void retry_crash_at(const char *point)
{
    struct deletes_rig r;
    rig_init(&r);
    world_other_close(&r.w);
    rig_trim(&r, 2);
    world_close(&r.w, r.ml);
    r.ml = NULL;
    world_other_open(&r.w);
    ox_sim_arm(r.w.node, point, 1, OX_SIM_CRASH_PROCESS);
    assert_int_not_equal(retry(&r, 1), OX_OK);
    assert_false(ox_sim_armed(r.w.node));
    world_crash(&r.w, NULL);
    assert_int_equal(retry(&r, 1), OX_OK);
    assert_int_equal(waiting(&r, "other"), 0);
    assert_false(is_there(&r, 0) || is_there(&r, 1));
    rig_fini(&r);
}

static void test_deletes_crash_in_a_retry(void **state)
{
    (void)state;
    retry_crash_at("deletes.after_delete");
    retry_crash_at("deletes.after_node");
}

static void write_intent(struct deletes_rig *r, const char *place, struct ox_location where, const char *cursor)
{
    struct ml_intent intent;
    struct ox_kv owner = {0};
    ox_ml_owner(&r->w.factory, NAME, cursor, &owner);
    world_op(&r->w, &intent.op);
    ml_intent_write(&r->w.factory, &intent, place, where.id, where.physical, &owner);
    assert_int_equal(world_wait(&r->w, &intent.op), OX_OK);
    ox_kv_fini(&owner);
}

// A copy that can't be deleted now, wherever that fails, is not forgotten.
static void test_deletes_a_dropped_copy_waits_for_its_place(void **state)
{
    (void)state;
    struct deletes_rig r;
    rig_init(&r);
    struct ox_ml_relocate back = {.log = NAME, .ledger = r.at[0].id, .from = r.at[0], .to = {0, r.at[0].id, r.at[0].id}};
    world_op(&r.w, &back.op);
    ox_ml_relocate(&r.w.factory, &back);
    assert_int_equal(world_wait(&r.w, &back.op), OX_OK);
    world_settle(&r.w);
    world_other_close(&r.w);
    struct ox_ml_drop_copy drop = {.log = NAME, .ledger = r.at[0].id, .place = "other", .physical = r.at[0].physical};
    world_op(&r.w, &drop.op);
    ox_ml_drop_copy(&r.w.factory, &drop);
    assert_int_equal(world_wait(&r.w, &drop.op), OX_OK);
    assert_int_equal(drop.left, OX_E_PLACE_CLOSED);
    assert_int_equal(waiting(&r, "other"), 1);
    assert_true(is_there(&r, 0));
    world_other_open(&r.w);
    assert_int_equal(retry(&r, 1), OX_OK);
    assert_int_equal(waiting(&r, "other"), 0);
    assert_false(is_there(&r, 0));
    assert_true(is_there(&r, 1));
    rig_fini(&r);
}

static void deletes_fail(struct world *w, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                         struct ox_sim_place_fault *fault)
{
    (void)w, (void)ledger, (void)entry;
    if (call == OX_SIM_CALL_DELETE)
        fault->err = OX_E_IO;
}

// What pauses before another try is no intent yet, and waits all the same.
static void test_deletes_that_are_being_tried_are_counted(void **state)
{
    (void)state;
    struct deletes_rig r;
    rig_init(&r);
    r.w.on_place = deletes_fail;
    rig_trim(&r, 2);
    assert_int_equal(waiting(&r, "other"), 2);
    assert_int_equal(waiting(&r, "default"), 2);
    r.w.on_place = NULL;
    world_sleep(&r.w, 2 * ML_DISCARD_PAUSE_NS);
    assert_int_equal(waiting(&r, "other"), 0);
    assert_int_equal(waiting(&r, "default"), 0);
    rig_fini(&r);
}

static void write_intent(struct deletes_rig *r, const char *place, struct ox_location where, const char *cursor);

static void deletes_are_slow(struct world *w, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                             struct ox_sim_place_fault *fault)
{
    (void)w, (void)ledger, (void)entry;
    if (call == OX_SIM_CALL_DELETE)
        fault->before_ns = OX_SEC;
}

// An old intent is carried out while the very ledger is about to become primary: what becomes primary is there.
static void retry_against_relocate(bool retry_first)
{
    struct deletes_rig r;
    struct ox_op op;
    rig_init(&r);
    struct ox_location to = world_copy(&r.w, NAME, r.at[2], 1);
    write_intent(&r, "other", to, NULL);
    r.w.on_place = deletes_are_slow;
    struct ox_ml_relocate move = {.log = NAME, .ledger = to.id, .from = r.at[2], .to = to};
    world_op(&r.w, &move.op);
    world_op(&r.w, &op);
    if (!retry_first)
        ox_ml_relocate(&r.w.factory, &move);
    ox_ml_deletes_retry(&r.w.factory, &op, 1);
    world_sleep(&r.w, 500 * OX_MS);
    if (retry_first)
        ox_ml_relocate(&r.w.factory, &move);
    assert_int_equal(world_wait(&r.w, &op), OX_OK);
    assert_int_equal(world_wait(&r.w, &move.op), retry_first ? OX_E_NO_LEDGER : OX_OK);
    assert_int_equal(ox_sim_store_has(r.w.other_store, to.physical), !retry_first);
    assert_int_equal(r.ml->ledgers[2]->where.place, retry_first ? 0 : 1);
    assert_int_equal(waiting(&r, "other"), 0);
    r.w.on_place = NULL;
    rig_fini(&r);
}

static void test_deletes_never_hit_what_becomes_primary(void **state)
{
    (void)state;
    retry_against_relocate(true);
    retry_against_relocate(false);
}

// G4: an older broker has dropped the stamp of a ledger that was made after the bootstrap. It may be anywhere: nothing under its id is deleted.
// fault: G4
static void test_deletes_leave_a_ledger_that_has_lost_its_stamp(void **state)
{
    (void)state;
    struct deletes_rig r;
    struct ox_op op;
    rig_init(&r);
    struct ox_buf node = world_node(&r.w, NODE, NULL);
    struct ox_record *record = ox_record_new();
    assert_int_equal(ox_record_decode(record, node), OX_OK);
    ox_buf_unref(&node);
    ox_record_unset_ledger_property(record, r.at[0].id, OX_STAMP_PLACE);
    ox_record_unset_ledger_property(record, r.at[0].id, OX_STAMP_COPIES);
    node = ox_record_encode(record, true, "default");
    ox_record_free(record);
    world_crash(&r.w, r.ml);
    r.ml = NULL;
    world_node_put(&r.w, NODE, node.data, node.len);
    ox_buf_unref(&node);
    r.w.factory.settings.unstamped_max = r.at[0].id - 1;
    write_intent(&r, "other", r.at[0], NULL);
    assert_int_not_equal(retry(&r, 1), OX_OK);
    assert_int_equal(waiting(&r, "other"), 1);
    world_op(&r.w, &op);
    ox_ml_orphans_sweep(&r.w.factory, &op);
    assert_int_equal(world_wait(&r.w, &op), OX_OK);
    assert_true(is_there(&r, 0) && is_there(&r, 1));
    r.w.factory.settings.unstamped_max = r.at[0].id; // from before the bootstrap: it is in the bootstrap place
    assert_int_equal(retry(&r, 1), OX_OK);
    assert_false(is_there(&r, 0));
    rig_fini(&r);
}

// The record that should have dropped them was never written: what it names, as primary or as a copy, is kept; the intent is void.
static void test_deletes_keep_what_a_record_still_names(void **state)
{
    (void)state;
    struct deletes_rig r;
    rig_init(&r);
    struct ox_location copy = {0, r.at[1].id, r.at[1].id};
    write_intent(&r, "other", r.at[0], NULL);
    write_intent(&r, "other", r.at[0], NULL); // twice is once
    write_intent(&r, "default", copy, NULL);
    assert_int_equal(waiting(&r, "other"), 1);
    assert_int_equal(waiting(&r, "default"), 1);
    assert_int_equal(retry(&r, 0), OX_OK);
    assert_int_equal(retry(&r, 1), OX_OK);
    assert_true(is_there(&r, 0) && ox_sim_store_has(r.w.store, copy.id));
    assert_int_equal(waiting(&r, "other") + waiting(&r, "default"), 0);
    rig_fini(&r);
}

// A record that can't be read may name anything: nothing is deleted, and nothing forgotten.
static void test_deletes_wait_for_a_record_that_can_not_be_read(void **state)
{
    (void)state;
    struct deletes_rig r;
    rig_init(&r);
    world_close(&r.w, r.ml);
    r.ml = NULL;
    world_node_put(&r.w, NODE, "\x0a\x04\x08", 3);
    write_intent(&r, "other", r.at[0], NULL);
    assert_int_equal(retry(&r, 1), OX_E_CORRUPT);
    assert_int_equal(waiting(&r, "other"), 1);
    assert_true(is_there(&r, 0));
    rig_fini(&r);
}

static void test_deletes_keep_a_cursor_ledger_that_is_named(void **state)
{
    (void)state;
    struct deletes_rig r;
    rig_init(&r);
    struct ox_cursor *c = ox_cursor_find(r.ml, "keep");
    assert_int_equal(world_ack_upto(&r.w, c, (struct ox_pos){r.at[0].id, 1}), OX_OK);
    struct ox_location where = {0, c->cursor_ledger, c->cursor_ledger}, old = {0, 900, 900};
    struct ox_kv owner = {0};
    ox_ml_owner(&r.w.factory, NAME, "keep", &owner);
    ox_sim_store_make(r.w.store, old.id, &owner, 1);
    write_intent(&r, "default", where, "keep");
    write_intent(&r, "default", old, "keep");
    assert_int_equal(retry(&r, 0), OX_OK);
    assert_true(ox_sim_store_has(r.w.store, where.id));
    assert_false(ox_sim_store_has(r.w.store, old.id));
    assert_int_equal(waiting(&r, "default"), 0);
    ox_kv_fini(&owner);
    rig_fini(&r);
}

static void test_deletes_leave_a_strangers_ledger_where_it_is(void **state)
{
    (void)state;
    struct deletes_rig r;
    struct ox_kv stranger = {0};
    rig_init(&r);
    world_other_close(&r.w);
    rig_trim(&r, 1);
    assert_int_equal(waiting(&r, "other"), 1);
    assert_true(ox_sim_store_lose(r.w.other_store, r.at[0].physical));
    ox_kv_set(&stranger, "oxbow/instance", "i-2");
    ox_sim_store_make(r.w.other_store, r.at[0].physical, &stranger, 1);
    world_other_open(&r.w);
    assert_int_equal(retry(&r, 1), OX_OK);
    assert_true(is_there(&r, 0)); // the stranger's
    assert_int_equal(waiting(&r, "other"), 0);
    ox_kv_fini(&stranger);
    rig_fini(&r);
}

struct delete_faults {
    int left;
    enum ox_err err;
};

static void delete_fails(struct world *w, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                         struct ox_sim_place_fault *fault)
{
    struct delete_faults *d = w->ctx;
    (void)ledger;
    (void)entry;
    if (call == OX_SIM_CALL_DELETE && d->left > 0) {
        d->left--;
        fault->err = d->err;
    }
}

static void test_deletes_that_keep_failing_are_kept(void **state)
{
    (void)state;
    struct deletes_rig r;
    struct delete_faults d = {2 * ML_DISCARD_TRIES + 1, OX_E_TIMEOUT};
    rig_init(&r);
    r.w.ctx = &d;
    r.w.on_place = delete_fails;
    rig_trim(&r, 1); // the ledger and its copy
    world_sleep(&r.w, 4 * ML_DISCARD_PAUSE_NS);
    assert_int_equal(waiting(&r, "other"), 1);
    assert_int_equal(waiting(&r, "default"), 1);
    assert_int_equal(retry(&r, 1), OX_E_TIMEOUT);
    assert_int_equal(retry(&r, 1), OX_OK);
    assert_int_equal(retry(&r, 0), OX_OK);
    assert_false(is_there(&r, 0));
    assert_int_equal(waiting(&r, "other") + waiting(&r, "default"), 0);
    assert_true(ox_list_empty(&r.w.factory.discards));
    rig_fini(&r);
}

// A copy in a place that is not registered any more is noted under its name.
static void test_deletes_of_a_place_that_nobody_knows_are_kept(void **state)
{
    (void)state;
    struct deletes_rig r;
    rig_init(&r);
    ox_copies_add(&r.ml->ledgers[2]->copies, "gone/1", 77, 1); // names are encoded in paths
    rig_trim(&r, 3);
    assert_int_equal(waiting(&r, "gone/1"), 1);
    assert_int_equal(waiting(&r, "other") + waiting(&r, "default"), 0);
    rig_fini(&r);
}

static void first_write_is_unknown(struct world *w, bool write, const char *path, struct ox_meta_fault *fault)
{
    struct delete_faults *d = w->ctx;
    if (!write || strncmp(path, "/oxbow/deletes/", 15) != 0 || d->left-- <= 0)
        return;
    fault->outcome = d->err == OX_OK ? OX_META_FAIL_AFTER : OX_META_FAIL_UNKNOWN;
}

static void test_deletes_intent_of_unknown_outcome_is_written(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct deletes_rig r;
        struct delete_faults d = {1, i ? OX_OK : OX_E_IO};
        rig_init(&r);
        r.w.ctx = &d;
        r.w.on_meta = first_write_is_unknown;
        world_other_close(&r.w);
        assert_int_equal(rig_delete(&r), OX_OK);
        assert_int_equal(waiting(&r, "other"), 2);
        rig_fini(&r);
    }
}

static void intents_fail(struct world *w, bool write, const char *path, struct ox_meta_fault *fault)
{
    (void)w;
    if (write && strncmp(path, "/oxbow/deletes/", 15) == 0)
        fault->outcome = OX_META_FAIL_BEFORE;
}

// Where the intent can't be written, the record keeps its ledgers: the deletion fails and can be repeated.
static void test_deletes_of_a_log_without_intents_change_nothing(void **state)
{
    (void)state;
    struct deletes_rig r;
    rig_init(&r);
    world_other_close(&r.w);
    r.w.on_meta = intents_fail;
    assert_int_equal(rig_delete(&r), OX_E_DISCONNECTED);
    r.w.on_meta = NULL;
    assert_true(is_there(&r, 0));
    assert_int_equal(waiting(&r, "other"), 0);
    r.ml = world_open(&r.w, NAME);
    assert_int_equal(r.ml->total_entries, 15);
    assert_int_equal(rig_delete(&r), OX_OK);
    assert_int_equal(waiting(&r, "other"), 2);
    rig_fini(&r);
}

static void test_deletes_corrupt_intent_holds_up_nobody(void **state)
{
    (void)state;
    static const char *const bad[] = {"ledger=1\nphysical=1\n",
                                      "ledger=1\nphysical=x\nowner.pulsar%2Fmanaged-ledger=x\n",
                                      "owner.pulsar%2Fmanaged-ledger=x\nledger=1\n",
                                      "what",
                                      "%zz=1\n",
                                      ""};
    struct deletes_rig r;
    rig_init(&r);
    world_other_close(&r.w);
    rig_trim(&r, 1);
    for (size_t i = 0; i < OX_COUNT(bad); i++) {
        OX_CLEANUP(ox_free_ptr)
        char *path = ox_asprintf("/oxbow/deletes/other/0-%zu", i);
        world_node_put(&r.w, path, bad[i], strlen(bad[i]));
    }
    world_other_open(&r.w);
    assert_int_equal(retry(&r, 1), OX_E_CORRUPT);
    assert_false(is_there(&r, 0));
    assert_int_equal(waiting(&r, "other"), OX_COUNT(bad));
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deletes_wait_for_a_place_that_is_closed),
        cmocka_unit_test(test_deletes_never_touch_the_same_id_elsewhere),
        cmocka_unit_test(test_deletes_of_a_log_not_loaded_go_to_their_own_places),
        cmocka_unit_test(test_deletes_of_a_whole_log_do_not_need_all_places),
        cmocka_unit_test(test_deletes_crash_while_a_log_is_deleted_leaves_nothing_behind),
        cmocka_unit_test(test_deletes_crash_in_a_retry),
        cmocka_unit_test(test_deletes_a_dropped_copy_waits_for_its_place),
        cmocka_unit_test(test_deletes_that_are_being_tried_are_counted),
        cmocka_unit_test(test_deletes_never_hit_what_becomes_primary),
        cmocka_unit_test(test_deletes_leave_a_ledger_that_has_lost_its_stamp),
        cmocka_unit_test(test_deletes_keep_what_a_record_still_names),
        cmocka_unit_test(test_deletes_wait_for_a_record_that_can_not_be_read),
        cmocka_unit_test(test_deletes_keep_a_cursor_ledger_that_is_named),
        cmocka_unit_test(test_deletes_leave_a_strangers_ledger_where_it_is),
        cmocka_unit_test(test_deletes_that_keep_failing_are_kept),
        cmocka_unit_test(test_deletes_of_a_place_that_nobody_knows_are_kept),
        cmocka_unit_test(test_deletes_intent_of_unknown_outcome_is_written),
        cmocka_unit_test(test_deletes_of_a_log_without_intents_change_nothing),
        cmocka_unit_test(test_deletes_corrupt_intent_holds_up_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
