// data_faults_test.c - rows of the fault tables about data on its way: places that go away, ids that are refused, ledgers that are trimmed meanwhile.
#include <string.h>

#include "move/storage/data_rig.h"

#define LOG_A "public/default/persistent/a"

static void target_away(struct world *w, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                        struct ox_sim_place_fault *fault)
{
    (void)w;
    (void)ledger;
    (void)entry;
    if (call == OX_SIM_CALL_CREATE || call == OX_SIM_CALL_APPEND || call == OX_SIM_CALL_CLOSE)
        fault->err = OX_E_PLACE_CLOSED;
}

// The stage waits for as long as it takes; what lies in the source is read meanwhile.
// fault: C5
static void test_data_target_away_is_waited_for(void **state)
{
    (void)state;
    struct rig r;
    int64_t ids[10];
    rig_init(&r);
    rig_log(&r, LOG_A, 10, 3, ids);
    OX_CLEANUP(ox_free_ptr)
    char *before = rig_content(&r, LOG_A);
    struct ox_mledger *ml = world_open(&r.w, LOG_A);
    r.slow_ns = 20 * OX_MS;
    r.st.p.config.concurrency = 2;
    rig_run_start(&r, 1);
    world_sleep(&r.w, 100 * OX_MS);
    assert_true(rig_ledgers(&r, 1) > 0); // in the middle of it
    void (*healthy)(struct world *, enum ox_sim_place_call, int64_t, int64_t, struct ox_sim_place_fault *) = r.w.on_place;
    r.w.on_place = target_away;
    world_sleep(&r.w, 300 * OX_SEC);
    assert_true(ox_op_pending(&r.run));
    OX_CLEANUP(ox_free_ptr)
    char *meanwhile = world_read_all(&r.w, ml, OX_POS_EARLIEST);
    assert_null(strchr(meanwhile, '<'));
    r.w.on_place = healthy;
    r.slow_ns = 0;
    world_roll(&r.w, ml);
    assert_int_equal(world_wait(&r.w, &r.run), OX_OK);
    assert_true(ox_list_empty(&r.st.failures));
    world_close(&r.w, ml);
    for (int i = 0; i < 10; i++)
        assert_string_equal(rig_where(&r, LOG_A, ids[i], NULL, NULL), "other");
    OX_CLEANUP(ox_free_ptr)
    char *after = rig_content(&r, LOG_A);
    assert_string_equal(before, after);
    rig_fini(&r);
}

struct used_ids {
    int64_t ids[3];
    bool refused;
};

// A place that gives no id twice, as BookKeeper's bookies that remember a fenced ledger.
static void used_id_refused(struct world *w, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                            struct ox_sim_place_fault *fault)
{
    struct used_ids *used = w->ctx;
    (void)entry;
    for (size_t i = 0; call == OX_SIM_CALL_CREATE && i < OX_COUNT(used->ids); i++)
        if (used->ids[i] == ledger) {
            fault->err = OX_E_LEDGER_EXISTS;
            used->refused = true;
        }
}

static void clean_up(struct rig *r, const char *place)
{
    struct ox_storage_call c;
    ox_storage_cleanup(&r->st, rig_call(r, &c), place, false, true, 0);
    assert_int_equal(rig_wait(r, &c), OX_OK);
    ox_storage_call_fini(&c);
}

// Away, cleaned up, and back into a place that refuses the ids that it had before.
// fault: C10 F7
static void test_data_ids_that_were_used_before_are_taken_elsewhere(void **state)
{
    (void)state;
    struct rig r;
    struct used_ids used = {0};
    rig_init(&r);
    rig_log(&r, LOG_A, 3, 10, used.ids);
    OX_CLEANUP(ox_free_ptr)
    char *before = rig_content(&r, LOG_A);
    assert_int_equal(rig_run(&r, 1), OX_OK);
    clean_up(&r, "default");
    r.w.on_place = used_id_refused;
    r.w.ctx = &used;
    assert_int_equal(rig_run(&r, 0), OX_OK);
    assert_true(used.refused);
    assert_true(ox_list_empty(&r.st.failures));
    for (size_t i = 0; i < OX_COUNT(used.ids); i++) {
        int64_t physical = -1;
        assert_string_equal(rig_where(&r, LOG_A, used.ids[i], NULL, &physical), "default");
        assert_int_not_equal(physical, used.ids[i]);
        assert_true(ox_sim_store_has(r.w.store, physical));
    }
    r.w.on_place = NULL;
    clean_up(&r, "other");
    OX_CLEANUP(ox_free_ptr)
    char *after = rig_content(&r, LOG_A);
    assert_string_equal(before, after); // message ids and all
    rig_fini(&r);
}

// fault: E13
static void test_data_ledgers_trimmed_during_their_copy_leave_none(void **state)
{
    (void)state;
    struct rig r;
    int64_t ids[4];
    rig_init(&r);
    r.w.settings.retention_ms = r.w.settings.retention_bytes = 0;
    r.w.factory.settings = r.w.settings;
    struct ox_mledger *ml = world_open(&r.w, LOG_A);
    struct ox_cursor *keep = world_cursor(&r.w, ml, "keep", OX_POS_EARLIEST);
    for (int i = 0; i < 4; i++) {
        ids[i] = ml->ledgers[ml->ledger_count - 1]->where.id;
        world_fill(&r.w, ml, 10 * i, 10);
        assert_int_equal(world_roll(&r.w, ml), OX_OK);
    }
    r.slow_ns = 50 * OX_MS;
    rig_run_start(&r, 1);
    world_sleep(&r.w, 120 * OX_MS);
    assert_true(rig_ledgers(&r, 1) > 0);
    assert_int_equal(world_ack_upto(&r.w, keep, (struct ox_pos){ids[2], 9}), OX_OK);
    ox_mledger_trim(ml);
    r.slow_ns = 0;
    world_roll(&r.w, ml);
    assert_int_equal(world_wait(&r.w, &r.run), OX_OK);
    world_settle(&r.w);
    assert_true(ox_list_empty(&r.st.failures));
    for (int i = 0; i < 3; i++) {
        assert_string_equal(rig_where(&r, LOG_A, ids[i], NULL, NULL), "-");
        assert_false(ox_sim_store_has(r.w.store, ids[i]));
        assert_false(ox_sim_store_has(r.w.other_store, ids[i]));
    }
    assert_string_equal(rig_where(&r, LOG_A, ids[3], NULL, NULL), "other");
    OX_CLEANUP(ox_free_ptr)
    char *all = world_read_all(&r.w, ml, ox_ml_first(ml));
    assert_string_equal(all, "30 31 32 33 34 35 36 37 38 39");
    world_close(&r.w, ml);
    rig_fini(&r);
}

static void refuse_to_clean_up(struct rig *r)
{
    struct ox_storage_call c;
    ox_storage_cleanup(&r->st, rig_call(r, &c), NULL, false, false, 0);
    assert_int_equal(rig_wait(r, &c), OX_E_CONFLICT);
    ox_storage_call_fini(&c);
}

// Whatever an hour does to the clock, a window of two hours is open at first, and closed after three.
// fault: G6
static void test_cleanup_window_outlives_a_clock_that_steps(void **state)
{
    (void)state;
    static const int64_t steps_ms[] = {3600000, -3600000};
    for (size_t i = 0; i < OX_COUNT(steps_ms); i++) {
        struct rig r;
        struct ox_storage_call c;
        rig_init(&r);
        r.st.p.config.window_ms = 2 * 3600 * 1000;
        rig_log(&r, LOG_A, 3, 10, NULL);
        assert_int_equal(rig_run(&r, 1), OX_OK);
        ox_sim_step_clock(r.w.sim, steps_ms[i]);
        refuse_to_clean_up(&r);
        world_sleep(&r.w, 50 * 60 * OX_SEC);
        refuse_to_clean_up(&r);
        world_sleep(&r.w, 131 * 60 * OX_SEC);
        ox_storage_cleanup(&r.st, rig_call(&r, &c), NULL, false, false, 0);
        assert_int_equal(rig_wait(&r, &c), OX_OK);
        assert_int_equal(rig_number(&c, "deleted"), 3);
        ox_storage_call_fini(&c);
        rig_fini(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_target_away_is_waited_for),
        cmocka_unit_test(test_data_ids_that_were_used_before_are_taken_elsewhere),
        cmocka_unit_test(test_data_ledgers_trimmed_during_their_copy_leave_none),
        cmocka_unit_test(test_cleanup_window_outlives_a_clock_that_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
