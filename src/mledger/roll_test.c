// roll_test.c - rollover, make before break: its failure cases, one by one, and every crash point.
#include "mledger/fixture.h"

#include <stdio.h>
#include <string.h>

#define NAME "public/default/persistent/r"
#define NODE "/managed-ledgers/" NAME

// A world in which one log with a cursor that keeps everything is open.
struct roll_rig {
    struct world w;
    struct ox_mledger *ml;
    enum ox_sim_place_call call; // what fails, or is slow
    int skip;                    // after so many of them
    int times;
    struct ox_sim_place_fault fault;
    struct ox_ml_append *appends[64];
    size_t append_count;
};

static void rig_hook(struct world *w, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                     struct ox_sim_place_fault *fault)
{
    struct roll_rig *r = CONTAINER_OF(w, struct roll_rig, w);
    (void)ledger;
    (void)entry;
    if (call == OX_SIM_CALL_APPEND)
        fault->before_ns = OX_MS;
    if (call != r->call || r->times == 0)
        return;
    if (r->skip > 0) {
        r->skip--;
        return;
    }
    r->times--;
    *fault = r->fault;
}

static void rig_init(struct roll_rig *r)
{
    memset(r, 0, sizeof *r);
    world_init(&r->w, 1);
    r->w.on_place = rig_hook;
    r->ml = world_open(&r->w, NAME);
    world_cursor(&r->w, r->ml, "keep", OX_POS_EARLIEST);
}

static void rig_fail(struct roll_rig *r, enum ox_sim_place_call call, int skip, int times, struct ox_sim_place_fault fault)
{
    r->call = call;
    r->skip = skip;
    r->times = times;
    r->fault = fault;
}

static void rig_append(struct roll_rig *r, int count)
{
    for (int i = 0; i < count; i++) {
        char text[16];
        snprintf(text, sizeof text, "%zu", r->append_count);
        r->appends[r->append_count++] = world_append_start(&r->w, r->ml, text);
    }
}

// Waits for all appends; those from `first_bad` on must have ended with err.
static void rig_finish(struct roll_rig *r, size_t first_bad, enum ox_err err)
{
    for (size_t i = 0; i < r->append_count; i++) {
        assert_string_equal(ox_err_name(world_wait(&r->w, &r->appends[i]->op)), ox_err_name(i < first_bad ? OX_OK : err));
        ox_free(r->appends[i]);
    }
    r->append_count = 0;
}

static void rig_expect(struct roll_rig *r, const char *want)
{
    char *got = world_read_all(&r->w, r->ml, OX_POS_EARLIEST);
    assert_string_equal(got, want);
    ox_free(got);
}

static void rig_fini(struct roll_rig *r)
{
    world_close(&r->w, r->ml);
    world_fini(&r->w);
}

static void rig_start_roll(struct roll_rig *r, struct ox_op *op)
{
    world_op(&r->w, op);
    ox_mledger_roll(r->ml, op);
}

static void test_roll_appends_go_to_the_next_ledger_while_the_old_one_drains(void **state)
{
    (void)state;
    struct roll_rig r;
    struct ox_op roll;
    rig_init(&r);
    struct ox_ml_ledger *old = ml_impl(r.ml)->current;
    rig_fail(&r, OX_SIM_CALL_CLOSE, 0, 1, (struct ox_sim_place_fault){.before_ns = 50 * OX_MS}); // a slow close
    rig_append(&r, 3);
    rig_start_roll(&r, &roll);
    world_sleep(&r.w, 10 * OX_MS);
    assert_non_null(ml_impl(r.ml)->next);
    rig_append(&r, 3);
    world_sleep(&r.w, 10 * OX_MS);
    assert_int_equal(ox_sim_store_find(r.w.store, ml_impl(r.ml)->next->where.id)->last_entry, 2); // stored there ...
    assert_int_equal(r.ml->last.ledger, old->where.id); // ... and not acknowledged
    for (int i = 3; i < 6; i++)
        assert_true(ox_op_pending(&r.appends[i]->op));
    rig_expect(&r, "0 1 2");
    assert_int_equal(world_wait(&r.w, &roll), OX_OK);
    rig_finish(&r, 6, OX_OK);
    rig_expect(&r, "0 1 2 3 4 5");
    rig_fini(&r);
}

static void test_roll_full_ledger_takes_no_entry_above_its_limit(void **state)
{
    (void)state;
    struct roll_rig r;
    rig_init(&r);
    r.w.factory.settings.ledger_entries_max = 4;
    rig_append(&r, 10);
    rig_finish(&r, 10, OX_OK);
    world_settle(&r.w);
    assert_int_equal(r.ml->ledgers[0]->entries, 4);
    rig_expect(&r, "0 1 2 3 4 5 6 7 8 9");
    rig_fini(&r);
}

static void test_roll_slow_creation_does_not_hold_appends_for_long(void **state)
{
    (void)state;
    struct roll_rig r;
    rig_init(&r);
    r.w.factory.settings.ledger_entries_max = 4;
    rig_fail(&r, OX_SIM_CALL_CREATE, 0, 1, (struct ox_sim_place_fault){.before_ns = 5 * OX_SEC});
    rig_append(&r, 6);
    world_sleep(&r.w, 2 * ML_ROLL_HOLD_NS);
    rig_finish(&r, 6, OX_OK); // the last two went to the full ledger
    assert_int_equal(ml_impl(r.ml)->current->entries, 6);
    world_sleep(&r.w, 6 * OX_SEC);
    assert_int_equal(r.ml->ledger_count, 2);
    rig_fini(&r);
}

static void test_roll_without_a_next_ledger_goes_on_with_the_old(void **state)
{
    (void)state;
    struct roll_rig r;
    rig_init(&r);
    r.w.factory.settings.ledger_entries_max = 4;
    rig_fail(&r, OX_SIM_CALL_CREATE, 0, 1, (struct ox_sim_place_fault){.err = OX_E_NO_SPACE});
    rig_append(&r, 6);
    rig_finish(&r, 6, OX_OK);
    assert_int_equal(r.ml->state, OX_ML_OPEN);
    assert_int_equal(r.ml->ledger_count, 1);
    world_sleep(&r.w, 2 * ML_ROLL_PAUSE_NS);
    rig_append(&r, 1); // looks again
    rig_finish(&r, 1, OX_OK);
    world_settle(&r.w);
    assert_int_equal(r.ml->ledger_count, 2);
    rig_fini(&r);
}

static void test_roll_old_ledger_that_ends_short_gives_its_rest_to_a_third(void **state)
{
    (void)state;
    struct roll_rig r;
    struct ox_op roll;
    rig_init(&r);
    rig_fail(&r, OX_SIM_CALL_APPEND, 2, 1, (struct ox_sim_place_fault){.before_ns = 20 * OX_MS, .err = OX_E_PLACE_FAILED});
    rig_append(&r, 4); // entry 2 fails, so 3 does too
    rig_start_roll(&r, &roll);
    world_sleep(&r.w, 5 * OX_MS);
    rig_append(&r, 3);
    assert_int_equal(world_wait(&r.w, &roll), OX_OK);
    rig_finish(&r, 7, OX_OK);
    assert_int_equal(r.ml->ledger_count, 2);
    assert_int_equal(r.ml->ledgers[0]->entries, 2);
    assert_int_equal(r.ml->ledgers[1]->entries, 5);
    rig_expect(&r, "0 1 2 3 4 5 6");
    world_settle(&r.w);
    assert_int_equal(ox_sim_store_count(r.w.store), 2); // the abandoned next ledger is deleted
    world_crash(&r.w, r.ml);
    r.ml = world_open(&r.w, NAME);
    rig_expect(&r, "0 1 2 3 4 5 6");
    rig_fini(&r);
}

static void test_roll_failed_append_that_took_effect_is_found_by_the_close(void **state)
{
    (void)state;
    struct roll_rig r;
    struct ox_op roll;
    rig_init(&r);
    rig_fail(&r, OX_SIM_CALL_APPEND, 2, 1,
             (struct ox_sim_place_fault){.before_ns = 20 * OX_MS, .err = OX_E_PLACE_FAILED, .effect = true});
    rig_append(&r, 3);
    rig_start_roll(&r, &roll);
    assert_int_equal(world_wait(&r.w, &roll), OX_OK);
    rig_finish(&r, 3, OX_OK);
    rig_expect(&r, "0 1 2"); // not twice
    rig_fini(&r);
}

static void test_roll_next_ledger_that_fails_before_it_is_recorded_is_replaced(void **state)
{
    (void)state;
    struct roll_rig r;
    struct ox_op roll;
    rig_init(&r);
    rig_append(&r, 2);
    rig_finish(&r, 2, OX_OK);
    rig_fail(&r, OX_SIM_CALL_CLOSE, 0, 1, (struct ox_sim_place_fault){.before_ns = 50 * OX_MS});
    rig_start_roll(&r, &roll);
    world_sleep(&r.w, 5 * OX_MS);
    rig_fail(&r, OX_SIM_CALL_APPEND, 0, 1, (struct ox_sim_place_fault){.err = OX_E_PLACE_FAILED});
    rig_append(&r, 3);
    assert_int_equal(world_wait(&r.w, &roll), OX_OK);
    rig_finish(&r, 3, OX_OK);
    rig_expect(&r, "0 1 0 1 2");
    rig_fini(&r);
}

static void meta_is_slow(struct world *w, bool write, const char *path, struct ox_meta_fault *fault)
{
    (void)w;
    (void)path;
    fault->before_ns = write ? 100 * OX_MS : 0;
}

static void test_roll_next_ledgers_that_keep_failing_fail_the_log(void **state)
{
    (void)state;
    struct roll_rig r;
    struct ox_op roll;
    rig_init(&r);
    r.w.on_meta = meta_is_slow; // so that they fail before they are recorded
    rig_fail(&r, OX_SIM_CALL_APPEND, 2, 100, (struct ox_sim_place_fault){.before_ns = 20 * OX_MS, .err = OX_E_PLACE_FAILED});
    rig_append(&r, 4);
    rig_start_roll(&r, &roll);
    assert_int_equal(world_wait(&r.w, &roll), OX_E_PLACE_FAILED);
    rig_finish(&r, 2, OX_E_PLACE_FAILED);
    assert_int_equal(r.ml->state, OX_ML_FAILED);
    rig_expect(&r, "0 1");
    rig_fini(&r);
}

static void roll_with_unknown_close(bool effect)
{
    struct roll_rig r;
    struct ox_op roll;
    rig_init(&r);
    rig_append(&r, 3);
    rig_fail(&r, OX_SIM_CALL_CLOSE, 0, 1, (struct ox_sim_place_fault){.err = OX_E_UNKNOWN_OUTCOME, .effect = effect});
    rig_start_roll(&r, &roll);
    rig_append(&r, 2);
    assert_int_equal(world_wait(&r.w, &roll), OX_OK);
    rig_finish(&r, 5, OX_OK);
    assert_int_equal(ox_sim_store_find(r.w.store, r.ml->ledgers[0]->where.id)->state, OX_LEDGER_CLOSED);
    rig_expect(&r, "0 1 2 3 4");
    rig_fini(&r);
}

static void test_roll_unknown_outcome_of_the_close_is_learned_by_recovery(void **state)
{
    (void)state;
    roll_with_unknown_close(true);
    roll_with_unknown_close(false);
}

static void test_roll_old_ledger_that_cannot_be_closed_fails_the_log(void **state)
{
    (void)state;
    struct roll_rig r;
    struct ox_op roll;
    rig_init(&r);
    rig_append(&r, 3);
    rig_fail(&r, OX_SIM_CALL_CLOSE, 0, 1, (struct ox_sim_place_fault){.before_ns = 20 * OX_MS, .err = OX_E_PLACE_FAILED});
    rig_start_roll(&r, &roll);
    world_sleep(&r.w, 5 * OX_MS);
    rig_append(&r, 2); // into a next ledger that nobody will ever hear of
    assert_int_equal(world_wait(&r.w, &roll), OX_E_PLACE_FAILED);
    rig_finish(&r, 3, OX_E_PLACE_FAILED);
    rig_expect(&r, "0 1 2");
    world_crash(&r.w, r.ml);
    r.ml = world_open(&r.w, NAME);
    rig_expect(&r, "0 1 2");
    rig_fini(&r);
}

static void test_roll_next_ledger_that_was_never_recorded_goes_with_the_close(void **state)
{
    (void)state;
    struct roll_rig r;
    rig_init(&r);
    rig_append(&r, 3);
    rig_finish(&r, 3, OX_OK);
    rig_fail(&r, OX_SIM_CALL_CLOSE, 0, 1, (struct ox_sim_place_fault){.err = OX_E_PLACE_FAILED});
    assert_int_equal(world_roll(&r.w, r.ml), OX_E_PLACE_FAILED);
    assert_int_equal(ox_sim_store_count(r.w.store), 2);
    assert_int_equal(world_close(&r.w, r.ml), OX_E_PLACE_FAILED);
    world_settle(&r.w);
    assert_int_equal(ox_sim_store_count(r.w.store), 1);
    r.ml = world_open(&r.w, NAME);
    rig_expect(&r, "0 1 2");
    rig_fini(&r);
}

static void meta_fails(struct world *w, bool write, const char *path, struct ox_meta_fault *fault)
{
    if (write && strcmp(path, NODE) == 0 && *(int *)w->ctx > 0) {
        --*(int *)w->ctx;
        fault->outcome = OX_META_FAIL_BEFORE;
    }
}

static void test_roll_record_that_fails_is_tried_again(void **state)
{
    (void)state;
    struct roll_rig r;
    struct ox_op roll;
    int failures = 5;
    rig_init(&r);
    r.w.ctx = &failures;
    r.w.on_meta = meta_fails;
    rig_append(&r, 3);
    rig_start_roll(&r, &roll);
    rig_append(&r, 2);
    assert_int_equal(world_wait(&r.w, &roll), OX_OK);
    assert_int_equal(failures, 0);
    rig_finish(&r, 5, OX_OK);
    rig_expect(&r, "0 1 2 3 4");
    rig_fini(&r);
}

static void test_roll_that_can_never_be_recorded_fails_the_log(void **state)
{
    (void)state;
    struct roll_rig r;
    struct ox_op roll;
    int failures = 100000;
    rig_init(&r);
    r.w.ctx = &failures;
    r.w.on_meta = meta_fails;
    rig_append(&r, 3);
    rig_start_roll(&r, &roll);
    world_sleep(&r.w, 5 * OX_MS);
    rig_append(&r, 2);
    assert_int_equal(world_wait(&r.w, &roll), OX_E_DISCONNECTED);
    rig_finish(&r, 3, OX_E_DISCONNECTED); // never acknowledged: no node names their ledger
    r.w.on_meta = NULL;
    world_crash(&r.w, r.ml);
    r.ml = world_open(&r.w, NAME);
    rig_expect(&r, "0 1 2");
    rig_fini(&r);
}

// fault: B4 E19 S05
static void test_roll_by_another_owner_meanwhile_fences(void **state)
{
    (void)state;
    struct roll_rig r;
    struct ox_op roll;
    rig_init(&r);
    rig_append(&r, 3);
    rig_fail(&r, OX_SIM_CALL_CLOSE, 0, 1, (struct ox_sim_place_fault){.before_ns = 50 * OX_MS});
    rig_start_roll(&r, &roll);
    world_sleep(&r.w, 10 * OX_MS);
    rig_append(&r, 2);
    world_node_put(&r.w, NODE, "", 0);
    size_t ledgers = ox_sim_store_count(r.w.store);
    assert_int_equal(world_wait(&r.w, &roll), OX_E_FENCED);
    rig_finish(&r, 3, OX_E_FENCED);
    assert_int_equal(r.ml->state, OX_ML_FENCED);
    world_settle(&r.w);
    assert_int_equal(ox_sim_store_count(r.w.store), ledgers); // what the other one may have recorded isn't deleted
    rig_fini(&r);
}

static void test_roll_busy_while_one_runs(void **state)
{
    (void)state;
    struct roll_rig r;
    struct ox_op first;
    rig_init(&r);
    rig_append(&r, 1);
    rig_start_roll(&r, &first);
    assert_int_equal(world_roll(&r.w, r.ml), OX_E_BUSY);
    assert_int_equal(world_wait(&r.w, &first), OX_OK);
    rig_finish(&r, 1, OX_OK);
    rig_fini(&r);
}

// fault: S11
static void test_roll_of_an_empty_ledger_drops_it(void **state)
{
    (void)state;
    struct roll_rig r;
    rig_init(&r);
    int64_t first = r.ml->ledgers[0]->where.id;
    assert_int_equal(world_roll(&r.w, r.ml), OX_OK);
    assert_int_equal(r.ml->ledger_count, 1);
    world_settle(&r.w);
    assert_false(ox_sim_store_has(r.w.store, first));
    rig_append(&r, 2);
    rig_finish(&r, 2, OX_OK);
    rig_expect(&r, "0 1");
    rig_fini(&r);
}

static void test_roll_by_age_needs_an_entry(void **state)
{
    (void)state;
    struct roll_rig r;
    rig_init(&r);
    uint64_t age = ml_age_max_ns(ml_impl(r.ml));
    assert_in_range(age, r.w.settings.rollover_ns_max, r.w.settings.rollover_ns_max / 20 * 21);
    world_sleep(&r.w, age + OX_SEC);
    assert_int_equal(r.w.factory.rollovers.value, 0);
    rig_append(&r, 1);
    rig_finish(&r, 1, OX_OK);
    world_settle(&r.w);
    assert_int_equal(r.w.factory.rollovers.value, 1);
    rig_append(&r, 1);
    rig_finish(&r, 1, OX_OK);
    world_sleep(&r.w, age + OX_SEC); // by the timer, without an append
    assert_int_equal(r.w.factory.rollovers.value, 2);
    rig_fini(&r);
}

// Settings that change while a log is open: the age counts when it is looked at, the timer of the next ledger has it.
static void test_roll_follows_a_new_greatest_age(void **state)
{
    (void)state;
    struct roll_rig r;
    rig_init(&r);
    rig_append(&r, 1);
    rig_finish(&r, 1, OX_OK);
    r.w.factory.settings.rollover_ns_max = 60 * OX_SEC;
    assert_in_range(ml_age_max_ns(ml_impl(r.ml)), 60 * OX_SEC, 63 * OX_SEC);
    world_sleep(&r.w, 64 * OX_SEC);
    rig_append(&r, 1);
    rig_finish(&r, 1, OX_OK);
    assert_int_equal(world_roll(&r.w, r.ml), OX_OK);
    rig_append(&r, 1);
    rig_finish(&r, 1, OX_OK);
    int64_t before = r.w.factory.rollovers.value;
    world_sleep(&r.w, 64 * OX_SEC);
    assert_int_equal(r.w.factory.rollovers.value, before + 1);
    rig_fini(&r);
}

static void test_roll_full_ledger_waits_for_its_least_age(void **state)
{
    (void)state;
    struct roll_rig r;
    rig_init(&r);
    r.w.factory.settings.ledger_entries_max = 2;
    r.w.factory.settings.rollover_ns_min = 60 * OX_SEC;
    rig_append(&r, 5);
    rig_finish(&r, 5, OX_OK);
    world_settle(&r.w);
    assert_int_equal(r.ml->ledger_count, 1);
    world_sleep(&r.w, 61 * OX_SEC);
    rig_append(&r, 1);
    rig_finish(&r, 1, OX_OK);
    world_settle(&r.w);
    assert_int_equal(r.ml->ledger_count, 2);
    rig_fini(&r);
}

// ---- stamps (activation forced) ----------------------------------------------------------------------------------------

// fault: E2 G5
static void test_roll_stamp_and_unknown_fields_survive_a_close(void **state)
{
    (void)state;
    struct roll_rig r;
    rig_init(&r);
    r.w.factory.settings.stamps = true;
    rig_append(&r, 2);
    rig_finish(&r, 2, OX_OK);
    assert_int_equal(world_roll(&r.w, r.ml), OX_OK); // the new ledger is stamped
    rig_append(&r, 2);
    rig_finish(&r, 2, OX_OK);
    assert_int_equal(world_roll(&r.w, r.ml), OX_OK); // and sealed
    assert_null(ox_record_get(ml_impl(r.ml)->record, 0).place);
    assert_string_equal(ox_record_get(ml_impl(r.ml)->record, 1).place, "default");
    assert_int_equal(ox_record_get(ml_impl(r.ml)->record, 1).entries, 2);
    rig_append(&r, 2);
    rig_finish(&r, 2, OX_OK);
    world_crash(&r.w, r.ml);
    r.ml = world_open(&r.w, NAME); // sealed by the next opening
    assert_string_equal(ox_record_get(ml_impl(r.ml)->record, 2).place, "default");
    assert_int_equal(ox_record_get(ml_impl(r.ml)->record, 2).entries, 2);
    rig_fini(&r);
}

static bool node_is_guarded(struct world *w)
{
    struct ox_buf node = world_node(w, NODE, NULL);
    bool guarded = node.len > 2 && node.data[0] == 0x47 && node.data[1] == 0x78;
    ox_buf_unref(&node);
    return guarded;
}

static void test_roll_record_is_guarded_while_a_ledger_is_in_another_place(void **state)
{
    (void)state;
    struct roll_rig r;
    rig_init(&r);
    world_close(&r.w, r.ml);
    world_stop(&r.w);
    r.w.other_store = ox_sim_store_new(2);
    r.w.settings.stamps = true;
    world_start(&r.w);
    r.ml = world_open(&r.w, NAME);
    rig_append(&r, 2);
    rig_finish(&r, 2, OX_OK);
    assert_false(node_is_guarded(&r.w));
    r.w.router.active = 1;
    assert_int_equal(world_roll(&r.w, r.ml), OX_OK);
    assert_true(node_is_guarded(&r.w));
    rig_append(&r, 2);
    rig_finish(&r, 2, OX_OK);
    r.w.router.active = 0;
    assert_int_equal(world_roll(&r.w, r.ml), OX_OK);
    assert_true(node_is_guarded(&r.w));
    rig_expect(&r, "0 1 0 1");
    for (size_t i = 1; i < r.ml->ledger_count; i++)
        assert_true(r.ml->ledgers[i]->where.id > r.ml->ledgers[i - 1]->where.id); // ids rise whatever the place
    world_crash(&r.w, r.ml);
    r.ml = world_open(&r.w, NAME);
    rig_expect(&r, "0 1 0 1");
    assert_int_equal(world_ack_upto(&r.w, ox_cursor_find(r.ml, "keep"), r.ml->last), OX_OK);
    world_settle(&r.w);
    assert_false(node_is_guarded(&r.w)); // plain again with the last foreign ledger gone
    rig_fini(&r);
}

// ---- crash points ------------------------------------------------------------------------------------------------------

// Appends, rolls, trims, closes, reopens, deletes another log - dies at the point wherever that is - and starts again.
static void crash_history(struct roll_rig *r)
{
    struct ox_op roll;
    struct ox_ml_open open = {0};
    rig_append(r, 3);
    rig_start_roll(r, &roll);
    rig_append(r, 2);
    for (size_t i = 0; i < r->append_count; i++)
        world_wait(&r->w, &r->appends[i]->op);
    world_wait(&r->w, &roll);
    world_close(&r->w, r->ml);
    world_op(&r->w, &open.op);
    ox_mledger_open(&r->w.factory, &open, NAME, true);
    world_wait(&r->w, &open.op);
    r->ml = open.ml;
    world_settle(&r->w);
}

static void crash_at(const char *point, struct ox_sim_place_fault append_fault)
{
    struct roll_rig r;
    rig_init(&r);
    rig_fail(&r, OX_SIM_CALL_APPEND, 1, 1, append_fault);
    ox_sim_arm(r.w.node, point, 1, OX_SIM_CRASH_PROCESS);
    crash_history(&r);
    if (ox_sim_armed(r.w.node))
        fail_msg("crash point %s was not passed", point);
    world_crash(&r.w, r.ml);
    struct ox_op sweep;
    world_op(&r.w, &sweep);
    ox_ml_orphans_sweep(&r.w.factory, &sweep);
    assert_int_equal(world_wait(&r.w, &sweep), OX_OK);
    r.ml = world_open(&r.w, NAME);
    char *got = world_read_all(&r.w, r.ml, OX_POS_EARLIEST);
    size_t acked = 0;
    while (acked < r.append_count && r.appends[acked]->op.err == OX_OK)
        acked++;
    const char *want[] = {"", "0", "0 1", "0 1 2", "0 1 2 3", "0 1 2 3 4"};
    assert_memory_equal(got, want[acked], strlen(want[acked])); // more may be there, never less
    ox_free(got);
    for (size_t i = 0; i < r.append_count; i++)
        ox_free(r.appends[i]);
    world_settle(&r.w);
    assert_int_equal(ox_sim_store_count(r.w.store), r.ml->ledger_count); // no ledger is left over
    rig_fini(&r);
}

static void test_roll_crash_at_every_point_loses_nothing_acknowledged(void **state)
{
    (void)state;
    const char *const points[] = {"roll.after_create", "roll.after_close",   "roll.after_record", "end.after_cursors",
                                  "end.after_ledger",  "open.after_recover", "open.after_create", "open.after_record"};
    for (size_t i = 0; i < OX_COUNT(points); i++)
        crash_at(points[i], (struct ox_sim_place_fault){0});
    crash_at("roll.after_abandon", (struct ox_sim_place_fault){.before_ns = 20 * OX_MS, .err = OX_E_PLACE_FAILED});
}

static void test_roll_crash_while_the_node_is_made(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    ox_sim_arm(w.node, "open.after_node", 1, OX_SIM_CRASH_PROCESS);
    assert_int_equal(world_open_err(&w, NAME, true), OX_E_SHUTDOWN);
    world_crash(&w, NULL);
    world_close(&w, world_open(&w, NAME)); // an empty node is a log without ledgers
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roll_appends_go_to_the_next_ledger_while_the_old_one_drains),
        cmocka_unit_test(test_roll_full_ledger_takes_no_entry_above_its_limit),
        cmocka_unit_test(test_roll_slow_creation_does_not_hold_appends_for_long),
        cmocka_unit_test(test_roll_without_a_next_ledger_goes_on_with_the_old),
        cmocka_unit_test(test_roll_old_ledger_that_ends_short_gives_its_rest_to_a_third),
        cmocka_unit_test(test_roll_failed_append_that_took_effect_is_found_by_the_close),
        cmocka_unit_test(test_roll_next_ledger_that_fails_before_it_is_recorded_is_replaced),
        cmocka_unit_test(test_roll_next_ledgers_that_keep_failing_fail_the_log),
        cmocka_unit_test(test_roll_unknown_outcome_of_the_close_is_learned_by_recovery),
        cmocka_unit_test(test_roll_old_ledger_that_cannot_be_closed_fails_the_log),
        cmocka_unit_test(test_roll_next_ledger_that_was_never_recorded_goes_with_the_close),
        cmocka_unit_test(test_roll_record_that_fails_is_tried_again),
        cmocka_unit_test(test_roll_that_can_never_be_recorded_fails_the_log),
        cmocka_unit_test(test_roll_by_another_owner_meanwhile_fences),
        cmocka_unit_test(test_roll_busy_while_one_runs),
        cmocka_unit_test(test_roll_of_an_empty_ledger_drops_it),
        cmocka_unit_test(test_roll_by_age_needs_an_entry),
        cmocka_unit_test(test_roll_follows_a_new_greatest_age),
        cmocka_unit_test(test_roll_full_ledger_waits_for_its_least_age),
        cmocka_unit_test(test_roll_stamp_and_unknown_fields_survive_a_close),
        cmocka_unit_test(test_roll_record_is_guarded_while_a_ledger_is_in_another_place),
        cmocka_unit_test(test_roll_crash_at_every_point_loses_nothing_acknowledged),
        cmocka_unit_test(test_roll_crash_while_the_node_is_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
