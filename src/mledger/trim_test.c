// trim_test.c - what is dropped, when, and in which order; crashes in between; deletion of a log.
#include "mledger/fixture.h"

#include <string.h>

#define NAME "public/default/persistent/y"
#define NODE "/managed-ledgers/" NAME

struct trim_rig {
    struct world w;
    struct ox_mledger *ml;
    struct ox_cursor *cursor;
};

// Three ledgers of ten entries and an empty current one.
static void rig_init(struct trim_rig *r)
{
    world_init(&r->w, 1);
    r->ml = world_open(&r->w, NAME);
    r->cursor = world_cursor(&r->w, r->ml, "c", OX_POS_EARLIEST);
    for (int i = 0; i < 3; i++) {
        world_fill(&r->w, r->ml, 10, 10);
        assert_int_equal(world_roll(&r->w, r->ml), OX_OK);
    }
}

static void rig_ack(struct trim_rig *r, size_t ledger, int64_t entry)
{
    assert_int_equal(world_ack_upto(&r->w, r->cursor, (struct ox_pos){r->ml->ledgers[ledger]->where.id, entry}), OX_OK);
    world_settle(&r->w);
}

static void rig_fini(struct trim_rig *r)
{
    world_close(&r->w, r->ml);
    world_fini(&r->w);
}

static void test_trim_follows_the_slowest_cursor(void **state)
{
    (void)state;
    struct trim_rig r;
    rig_init(&r);
    struct ox_cursor *fast = world_cursor(&r.w, r.ml, "fast", r.ml->last);
    rig_ack(&r, 0, 8);
    assert_int_equal(r.ml->ledger_count, 4);
    rig_ack(&r, 0, 9); // wholly acknowledged: goes at the next look, as with Pulsar
    ox_mledger_trim(r.ml);
    world_settle(&r.w);
    assert_int_equal(r.ml->ledger_count, 3);
    assert_int_equal(r.ml->total_entries, 20);
    rig_ack(&r, 1, 9);
    assert_int_equal(r.ml->ledger_count, 1);
    assert_int_equal(ox_cursor_backlog(fast), 0);
    assert_int_equal(ox_cursor_backlog(r.cursor), 0);
    assert_int_equal(r.ml->last.entry, -1);
    rig_fini(&r);
}

static void test_trim_waits_for_producers_that_may_send_again(void **state)
{
    (void)state;
    struct trim_rig r;
    rig_init(&r);
    r.ml->factory->settings.trim_delay_ns = 30 * OX_SEC;
    world_settle(&r.w); // away from time 0
    world_fill(&r.w, r.ml, 10, 10);
    assert_int_equal(world_roll(&r.w, r.ml), OX_OK);
    rig_ack(&r, 3, 9);
    assert_in_range(r.ml->ledger_count, 2, 5);
    world_sleep(&r.w, 20 * OX_SEC);
    assert_in_range(r.ml->ledger_count, 2, 5);
    world_sleep(&r.w, 20 * OX_SEC); // by itself
    assert_int_equal(r.ml->ledger_count, 1);
    rig_fini(&r);
}

static void slow_record(struct world *w, bool write, const char *path, struct ox_meta_fault *fault)
{
    if (write && strcmp(path, NODE) == 0 && *(bool *)w->ctx)
        fault->after_ns = OX_SEC;
}

// What may go is decided when the record is written, not when somebody thought of it.
static void test_trim_minds_a_cursor_that_went_back_meanwhile(void **state)
{
    (void)state;
    struct trim_rig r;
    struct ox_op roll, reset;
    bool slow = true;
    rig_init(&r);
    r.w.ctx = &slow;
    r.w.on_meta = slow_record;
    world_op(&r.w, &roll);
    world_op(&r.w, &reset);
    world_fill(&r.w, r.ml, 40, 1);
    ox_mledger_roll(r.ml, &roll);
    world_sleep(&r.w, 100 * OX_MS); // its record is on its way: others wait
    ox_cursor_mark_delete(r.cursor, NULL, (struct ox_pos){r.ml->ledgers[1]->where.id, 9});
    ox_mledger_trim(r.ml);
    ox_cursor_reset(r.cursor, &reset, OX_POS_EARLIEST);
    assert_int_equal(world_wait(&r.w, &reset), OX_OK);
    assert_int_equal(world_wait(&r.w, &roll), OX_OK);
    slow = false;
    world_settle(&r.w);
    world_settle(&r.w);
    assert_int_equal(ox_cursor_backlog(r.cursor), 31);
    rig_fini(&r);
}

static void slow_place(struct world *w, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                       struct ox_sim_place_fault *fault)
{
    (void)w, (void)ledger, (void)entry;
    if (call == OX_SIM_CALL_APPEND || call == OX_SIM_CALL_CREATE)
        fault->before_ns = 3 * OX_SEC;
}

// What is kept with a position says what the entries before it said: until it is stored a crash would need them.
static void test_trim_waits_until_what_is_kept_with_a_position_is_stored(void **state)
{
    (void)state;
    struct trim_rig r;
    struct ox_kv kv = {0};
    rig_init(&r);
    r.w.on_place = slow_place;
    ox_kv_set(&kv, "p", "41");
    ox_cursor_mark_delete_with(r.cursor, NULL, (struct ox_pos){r.ml->ledgers[1]->where.id, 9}, &kv);
    ox_kv_fini(&kv);
    world_sleep(&r.w, 2 * OX_SEC);
    ox_mledger_trim(r.ml);
    world_settle(&r.w);
    assert_int_equal(r.ml->total_entries, 30);
    world_sleep(&r.w, 10 * OX_SEC); // by itself
    assert_int_equal(r.ml->total_entries, 10);
    rig_fini(&r);
}

// Who opens a log can hold it before anything goes: the broker looks for what may be sent again.
static void test_trim_of_an_opened_log_can_be_held(void **state)
{
    (void)state;
    struct trim_rig r;
    rig_init(&r);
    ox_mledger_hold_trim(r.ml);
    rig_ack(&r, 2, 9);
    assert_int_equal(world_close(&r.w, r.ml), OX_OK);
    r.ml = world_open(&r.w, NAME);
    ox_mledger_hold_trim(r.ml);
    world_sleep(&r.w, 5 * OX_SEC);
    assert_int_equal(r.ml->total_entries, 30);
    ox_mledger_release_trim(r.ml);
    world_settle(&r.w);
    assert_int_equal(r.ml->total_entries, 0);
    rig_fini(&r);
}

static void test_trim_without_cursors_keeps_the_last_ledger_only(void **state)
{
    (void)state;
    struct trim_rig r;
    rig_init(&r);
    struct ox_op op;
    world_op(&r.w, &op);
    ox_cursor_remove(r.cursor, &op);
    assert_int_equal(world_wait(&r.w, &op), OX_OK);
    world_fill(&r.w, r.ml, 10, 3);
    ox_mledger_trim(r.ml);
    world_settle(&r.w);
    assert_int_equal(r.ml->ledger_count, 1);
    assert_int_equal(r.ml->total_entries, 3);
    rig_fini(&r);
}

static void test_trim_waits_for_retention_time(void **state)
{
    (void)state;
    struct trim_rig r;
    rig_init(&r);
    r.w.factory.settings.retention_ms = 600 * 1000;
    r.w.factory.settings.retention_bytes = -1;
    rig_ack(&r, 2, 9);
    assert_int_equal(r.ml->ledger_count, 4);
    world_sleep(&r.w, 500 * OX_SEC);
    assert_int_equal(r.ml->ledger_count, 4);
    world_sleep(&r.w, 400 * OX_SEC); // by the timer
    assert_int_equal(r.ml->ledger_count, 1);
    rig_fini(&r);
}

static void test_trim_ledgers_expire_one_after_another(void **state)
{
    (void)state;
    struct trim_rig r;
    rig_init(&r);
    r.w.factory.settings.retention_ms = 600 * 1000;
    r.w.factory.settings.retention_bytes = -1;
    rig_ack(&r, 2, 9);
    r.ml->ledgers[1]->closed_ms += 600 * 1000;
    r.ml->ledgers[2]->closed_ms += 1200 * 1000;
    for (size_t left = 4; left > 0; left--) {
        assert_int_equal(r.ml->ledger_count, left);
        world_sleep(&r.w, (left == 4 ? 720 : 600) * OX_SEC);
        if (left == 2)
            break;
    }
    assert_int_equal(r.ml->ledger_count, 1);
    rig_fini(&r);
}

static void test_trim_keeps_what_fits_the_retention_size(void **state)
{
    (void)state;
    struct trim_rig r;
    rig_init(&r);
    r.w.factory.settings.retention_ms = -1;
    r.w.factory.settings.retention_bytes = 45; // ledgers of 20 bytes
    rig_ack(&r, 2, 9);
    assert_int_equal(r.ml->ledger_count, 3);
    r.w.factory.settings.retention_bytes = -1;
    ox_mledger_trim(r.ml);
    world_settle(&r.w);
    assert_int_equal(r.ml->ledger_count, 3);
    rig_fini(&r);
}

static void test_trim_unknown_close_time_is_not_1970(void **state)
{
    (void)state;
    struct trim_rig r;
    rig_init(&r);
    r.w.factory.settings.retention_ms = 600 * 1000;
    r.w.factory.settings.retention_bytes = -1;
    r.ml->ledgers[0]->closed_ms = 0;
    world_sleep(&r.w, 900 * OX_SEC);
    rig_ack(&r, 2, 9);
    assert_int_equal(r.ml->ledger_count, 4);
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

static void test_trim_failed_delete_is_tried_again(void **state)
{
    (void)state;
    struct trim_rig r;
    struct delete_faults d = {2, OX_E_TIMEOUT};
    rig_init(&r);
    int64_t id = r.ml->ledgers[0]->where.id;
    r.w.ctx = &d;
    r.w.on_place = delete_fails;
    rig_ack(&r, 1, 0);
    assert_int_equal(r.ml->ledger_count, 3); // the record comes first
    assert_true(ox_sim_store_has(r.w.store, id));
    world_sleep(&r.w, 3 * ML_DISCARD_PAUSE_NS);
    assert_false(ox_sim_store_has(r.w.store, id));
    assert_true(ox_list_empty(&r.w.factory.discards));
    rig_fini(&r);
}

static void test_trim_never_deletes_a_strangers_ledger(void **state)
{
    (void)state;
    struct trim_rig r;
    rig_init(&r);
    int64_t id = r.ml->ledgers[0]->where.id;
    struct ox_kv custom = {0};
    ox_kv_set(&custom, "oxbow/instance", "i-2");
    assert_true(ox_sim_store_lose(r.w.store, id));
    ox_sim_store_make(r.w.store, id, &custom, 1);
    rig_ack(&r, 1, 0);
    world_sleep(&r.w, 3 * ML_DISCARD_PAUSE_NS);
    assert_true(ox_sim_store_has(r.w.store, id));
    assert_true(ox_list_empty(&r.w.factory.discards));
    ox_kv_fini(&custom);
    rig_fini(&r);
}

static void test_trim_emptied_log_keeps_its_last_index(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    w.settings.broker_entry_metadata = true;
    world_stop(&w);
    world_start(&w);
    struct ox_mledger *ml = world_open(&w, NAME);
    world_fill(&w, ml, 0, 5);
    assert_int_equal(world_roll(&w, ml), OX_OK);
    world_settle(&w);
    assert_int_equal(ml->total_entries, 0);
    assert_string_equal(ox_record_find_property(ml_impl(ml)->record, OX_PROPERTY_INDEX), "4");
    world_crash(&w, ml);
    ml = world_open(&w, NAME);
    assert_int_equal(ml->next_index, 5);
    assert_int_equal(world_close(&w, ml), OX_OK);
    world_fini(&w);
}

static void test_trim_read_of_a_ledger_that_goes_ends_well(void **state)
{
    (void)state;
    struct trim_rig r;
    rig_init(&r);
    r.w.factory.cache.bytes_max = 0;
    ox_tail_cache_fini(&r.w.factory.cache);
    struct ox_ml_read read = {.from = OX_POS_EARLIEST, .entries_max = 2, .bytes_max = 100};
    world_op(&r.w, &read.op);
    ox_mledger_read(r.ml, &read);
    ox_cursor_mark_delete(r.cursor, NULL, r.ml->last);
    enum ox_err err = world_wait(&r.w, &read.op);
    assert_true(err == OX_OK || err == OX_E_NO_ENTRY);
    ox_ml_read_fini(&read);
    world_settle(&r.w);
    assert_int_equal(r.ml->ledger_count, 1);
    rig_fini(&r);
}

// ---- crash points ------------------------------------------------------------------------------------------------------

static void sweep(struct world *w)
{
    struct ox_op op;
    world_op(w, &op);
    ox_ml_orphans_sweep(&w->factory, &op);
    assert_int_equal(world_wait(w, &op), OX_OK);
}

static void trim_crash_at(const char *point)
{
    struct trim_rig r;
    rig_init(&r);
    ox_sim_arm(r.w.node, point, 1, OX_SIM_CRASH_PROCESS);
    ox_cursor_mark_delete(r.cursor, NULL, (struct ox_pos){r.ml->ledgers[1]->where.id, 9});
    world_settle(&r.w);
    assert_false(ox_sim_armed(r.w.node));
    world_crash(&r.w, r.ml);
    sweep(&r.w);
    r.ml = world_open(&r.w, NAME);
    world_settle(&r.w);
    assert_int_equal(r.ml->total_entries, 10);
    assert_int_equal(ox_sim_store_count(r.w.store), r.ml->ledger_count); // none is left over
    rig_fini(&r);
}

static void test_trim_crash_between_record_and_delete_leaves_nothing_behind(void **state)
{
    (void)state;
    trim_crash_at("trim.after_record");
    trim_crash_at("discard.after_delete");
}

static void delete_crash_at(const char *point)
{
    struct trim_rig r;
    rig_init(&r);
    struct ox_op op;
    ox_sim_arm(r.w.node, point, 1, OX_SIM_CRASH_PROCESS);
    world_op(&r.w, &op);
    ox_mledger_delete(r.ml, &op);
    world_wait(&r.w, &op);
    assert_false(ox_sim_armed(r.w.node));
    world_crash(&r.w, NULL);
    sweep(&r.w);
    assert_int_equal(ox_sim_store_count(r.w.store), 0);
    struct ox_ml_open open = {0}; // and the removal can be repeated
    world_op(&r.w, &open.op);
    ox_mledger_open(&r.w.factory, &open, NAME, false);
    enum ox_err err = world_wait(&r.w, &open.op);
    assert_true(err == OX_OK || err == OX_E_NOT_FOUND);
    if (err == OX_OK) {
        world_op(&r.w, &op);
        ox_mledger_delete(open.ml, &op);
        assert_int_equal(world_wait(&r.w, &op), OX_OK);
    }
    assert_int_equal(ox_sim_store_count(r.w.store), 0);
    assert_null(world_node(&r.w, NODE, NULL).data);
    world_fini(&r.w);
}

static void test_trim_crash_while_a_log_is_deleted(void **state)
{
    (void)state;
    delete_crash_at("delete.after_record");
    delete_crash_at("delete.after_ledger");
    delete_crash_at("delete.after_node");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trim_follows_the_slowest_cursor),
        cmocka_unit_test(test_trim_waits_for_producers_that_may_send_again),
        cmocka_unit_test(test_trim_minds_a_cursor_that_went_back_meanwhile),
        cmocka_unit_test(test_trim_waits_until_what_is_kept_with_a_position_is_stored),
        cmocka_unit_test(test_trim_of_an_opened_log_can_be_held),
        cmocka_unit_test(test_trim_without_cursors_keeps_the_last_ledger_only),
        cmocka_unit_test(test_trim_waits_for_retention_time),
        cmocka_unit_test(test_trim_ledgers_expire_one_after_another),
        cmocka_unit_test(test_trim_keeps_what_fits_the_retention_size),
        cmocka_unit_test(test_trim_unknown_close_time_is_not_1970),
        cmocka_unit_test(test_trim_failed_delete_is_tried_again),
        cmocka_unit_test(test_trim_never_deletes_a_strangers_ledger),
        cmocka_unit_test(test_trim_emptied_log_keeps_its_last_index),
        cmocka_unit_test(test_trim_read_of_a_ledger_that_goes_ends_well),
        cmocka_unit_test(test_trim_crash_between_record_and_delete_leaves_nothing_behind),
        cmocka_unit_test(test_trim_crash_while_a_log_is_deleted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
