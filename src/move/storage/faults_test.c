// faults_test.c - rows of the fault tables that need brokers of their own: round trips with all data, sessions, deaf watches, broken notes, late comers.
#include <string.h>

#include "mledger/record.h"
#include "move/storage/control_fixture.h"

#define LOG_T "public/default/persistent/t"
#define LOG_U "public/default/persistent/u"

#define assert_ok(b, err)                                                                 \
    do {                                                                                  \
        enum ox_err assert_err_value = (err);                                             \
        if (assert_err_value != OX_OK)                                                    \
            fail_msg("%s: %s", ox_err_name(assert_err_value), ox_str_get(&(b)->trouble)); \
    } while (0)

static struct broker *one(struct cluster *c)
{
    return &c->brokers[0];
}

static struct broker *two(struct cluster *c)
{
    return &c->brokers[1];
}

// A world in which default, b and c are registered and logs keep everything.
static void start(struct cluster *c)
{
    cluster_init(c);
    for (size_t i = 0; i < OX_COUNT(c->brokers); i++)
        c->brokers[i].settings.retention_ms = c->brokers[i].settings.retention_bytes = -1;
    broker_restart(c, 0);
    assert_ok(one(c), broker_register(one(c), "b", "sim:b"));
    assert_ok(one(c), broker_register(one(c), "c", "sim:c"));
    cluster_sleep(c, OX_SEC);
}

static void start_both(struct cluster *c)
{
    start(c);
    assert_ok(two(c), broker_start(c, 1));
    cluster_sleep(c, 2 * OX_SEC);
}

static void list_brokers(struct cluster *c)
{
    cluster_put(c, 0, "/loadbalance/brokers/broker-0:8080", "{}");
    cluster_put(c, 0, "/loadbalance/brokers/broker-1:8080", "{}");
}

static void assert_content(struct broker *b, struct ox_mledger *ml, const char *want)
{
    char *text = broker_read(b, ml);
    assert_string_equal(text, want);
    ox_free(text);
}

static void assert_last_in(struct broker *b, const struct ox_mledger *ml, const char *place)
{
    assert_string_equal(ox_router_name(&b->router, ml->ledgers[ml->ledger_count - 1]->where.place), place);
}

// What a log's record says of its last ledger.
static void assert_stamped(struct broker *b, const char *log, const char *place)
{
    struct ox_meta_get get = {0};
    struct ox_record *record = ox_record_new();
    char *path = ox_asprintf("/managed-ledgers/%s", log);
    ox_op_init(&get.op, b->loop, ox_sim_done, "test");
    ox_meta_get(b->meta, &get, path);
    assert_int_equal(ox_sim_wait(b->cluster->sim, &get.op), OX_OK);
    assert_int_equal(ox_record_decode(record, get.value), OX_OK);
    assert_string_equal(ox_record_get(record, ox_record_count(record) - 1).place, place);
    ox_buf_unref(&get.value);
    ox_record_free(record);
    ox_free(path);
}

static struct ox_cursor *cursor(struct broker *b, struct ox_mledger *ml)
{
    struct ox_cursor_open open = {0};
    ox_op_init(&open.op, b->loop, ox_sim_done, "test");
    ox_cursor_open(ml, &open, "s", true, OX_POS_EARLIEST, NULL);
    assert_int_equal(ox_sim_wait(b->cluster->sim, &open.op), OX_OK);
    return open.cursor;
}

static void ack(struct broker *b, struct ox_cursor *c, struct ox_pos upto)
{
    struct ox_cursor_ack a = {0};
    ox_op_init(&a.op, b->loop, ox_sim_done, "test");
    ox_cursor_mark_delete(c, &a, upto);
    assert_int_equal(ox_sim_wait(b->cluster->sim, &a.op), OX_OK);
}

// ---- F5: round with everything

static void move_all_to(struct broker *b, const char *target)
{
    struct ox_storage_call call = {0};
    assert_ok(b, broker_switch(b, target, false));
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    ox_op_init(&call.op, b->loop, ox_sim_done, "test");
    ox_storage_move_data(b->st, &call, target);
    assert_int_equal(ox_sim_wait(b->cluster->sim, &call.op), OX_OK);
    ox_storage_call_fini(&call);
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    assert_int_equal(storage_failures_count(b->st), 0);
}

static void clean_up(struct broker *b)
{
    struct ox_storage_call call = {0};
    ox_op_init(&call.op, b->loop, ox_sim_done, "test");
    ox_storage_cleanup(b->st, &call, NULL, false, true, 0);
    assert_int_equal(ox_sim_wait(b->cluster->sim, &call.op), OX_OK);
    ox_storage_call_fini(&call);
}

// After each leg: every ledger with entries is in the target, all entries are there in their order, the position is the one acknowledged last, and it
// survives a kill. between: old copies are deleted after each leg, so that ids that were used before are asked for again.
static void go_round(bool between)
{
    static const char *const route[] = {"b", "c", "default", "b"};
    static const char *const content[] = {"0 1", "0 1 2", "0 1 2 3", "0 1 2 3 4"};
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    struct ox_mledger *ml = broker_log(b, LOG_T);
    broker_append(b, ml, "0");
    for (size_t i = 0; i < OX_COUNT(route); i++) {
        ack(b, cursor(b, ml), ml->last);
        struct ox_pos acked = ml->last;
        move_all_to(b, route[i]);
        if (between)
            clean_up(b);
        for (size_t k = 0; k < ml->ledger_count; k++)
            assert_string_equal(ox_router_name(&b->router, ml->ledgers[k]->where.place), route[i]);
        const char text[] = {(char)('1' + i), 0};
        broker_append(b, ml, text);
        assert_content(b, ml, content[i]);
        ox_sim_node_crash(b->node, OX_SIM_CRASH_PROCESS);
        broker_restart(&c, 0);
        ml = broker_log(b, LOG_T);
        assert_content(b, ml, content[i]);
        assert_int_equal(ox_pos_cmp(cursor(b, ml)->mark_delete, acked), 0);
    }
    clean_up(b);
    assert_int_equal(ox_sim_store_count(c.stores[0]) + ox_sim_store_count(c.stores[2]), 0);
    assert_content(b, ml, "0 1 2 3 4");
    cluster_fini(&c);
}

// fault: F5 G1
static void test_round_trip_with_all_data_keeps_order_and_positions(void **state)
{
    (void)state;
    go_round(false);
}

// fault: F5 F7 C10
static void test_round_trip_with_cleanups_copies_all_again(void **state)
{
    (void)state;
    go_round(true);
}

// fault: F7
static void test_rollback_after_a_cleanup_copies_back(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    struct ox_mledger *ml = broker_log(b, LOG_T);
    broker_append(b, ml, "1");
    move_all_to(b, "b");
    clean_up(b);
    assert_int_equal(ox_sim_store_count(c.stores[0]), 0);
    assert_ok(b, broker_call(b, ox_storage_rollback));
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    broker_append(b, ml, "2");
    assert_string_equal(ox_router_name(&b->router, ml->ledgers[0]->where.place), "b"); // nothing is there to flip to
    move_all_to(b, "default");
    clean_up(b);
    assert_int_equal(ox_sim_store_count(c.stores[1]), 0);
    assert_content(b, ml, "1 2");
    cluster_fini(&c);
}

// ---- sessions, watches, notes

// fault: B2
static void test_a_broker_without_a_session_follows_with_its_next(void **state)
{
    (void)state;
    struct cluster c;
    start_both(&c);
    struct ox_mledger *ml = broker_log(two(&c), LOG_T);
    broker_append(two(&c), ml, "1");
    ox_meta_memory_disconnect(two(&c)->meta);
    ox_meta_memory_expire(c.tree, two(&c)->meta->session_id);
    assert_ok(one(&c), broker_switch(one(&c), "b", false));
    cluster_sleep(&c, 30 * OX_SEC);
    assert_string_equal(broker_active(two(&c)), "default");
    broker_append(two(&c), ml, "2"); // into the ledger that it has
    ox_meta_memory_reconnect(two(&c)->meta);
    cluster_sleep(&c, 2 * OX_SEC);
    assert_string_equal(broker_active(two(&c)), "b");
    assert_true(cluster_node_has(&c, 0, ROOT "/acks/1/broker-1:8080", ""));
    broker_append(two(&c), ml, "3");
    assert_last_in(two(&c), ml, "b");
    assert_content(two(&c), ml, "1 2 3");
    cluster_fini(&c);
}

static void deaf(struct ox_meta_watch *watch, enum ox_meta_event event)
{
    (void)watch;
    (void)event;
}

// fault: B3
static void test_a_broker_that_is_never_told_looks_by_itself(void **state)
{
    (void)state;
    struct cluster c;
    start_both(&c);
    list_brokers(&c);
    struct ox_mledger *ml = broker_log(two(&c), LOG_T);
    broker_append(two(&c), ml, "1");
    two(&c)->st->control->watch.watch.fired = deaf;
    assert_ok(one(&c), broker_switch(one(&c), "b", false));
    assert_string_equal(broker_active(two(&c)), "default");
    struct ox_mledger *late = broker_log(two(&c), LOG_U);
    broker_append(two(&c), late, "1");
    assert_last_in(two(&c), late, "default");
    assert_stamped(one(&c), LOG_U, "default");
    assert_int_equal(one(&c)->st->state, STORAGE_RUNNING); // the barrier waits for it
    cluster_sleep(&c, 11 * OX_SEC);
    assert_string_equal(broker_active(two(&c)), "b");
    assert_int_equal(broker_wait_over(one(&c)), STORAGE_DONE);
    cluster_sleep(&c, OX_SEC);
    assert_last_in(two(&c), ml, "b");
    assert_last_in(two(&c), late, "b");
    assert_stamped(one(&c), LOG_U, "b");
    assert_content(two(&c), ml, "1");
    assert_content(two(&c), late, "1");
    cluster_fini(&c);
}

// fault: A10
static void test_a_broken_note_of_a_switch_counts_anew(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    struct ox_mledger *ml = broker_log(b, LOG_T);
    broker_append(b, ml, "1");
    assert_ok(b, broker_switch(b, "b", false));
    assert_ok(b, broker_call(b, ox_storage_pause)); // it has a state to lose
    char *path = ox_asprintf(ROOT "/orchestrator/%s/header", b->st->directive.switch_id);
    cluster_put(&c, 0, path, "{\"switchId\":");
    ox_sim_node_crash(b->node, OX_SIM_CRASH_PROCESS);
    cluster_forget(&c);
    broker_restart(&c, 0);
    assert_true(cluster_logged(&c, "storage.header.corrupt"));
    assert_string_equal(broker_active(b), "b");
    assert_int_equal(b->st->directive.epoch, 1);
    ml = broker_log(b, LOG_T);
    broker_append(b, ml, "2");
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    assert_content(b, ml, "1 2");
    cluster_sleep(&c, OX_SEC);
    assert_true(cluster_node_has(&c, 0, path, "\"state\":\"DONE\"")); // and it can be understood again
    ox_free(path);
    cluster_fini(&c);
}

// fault: G7
static void test_a_broker_that_joins_meanwhile_is_waited_for(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    assert_ok(b, broker_switch(b, "b", false));
    assert_ok(b, broker_call(b, ox_storage_pause));
    assert_ok(two(&c), broker_start(&c, 1));
    assert_string_equal(broker_active(two(&c)), "b"); // before it has made a single ledger
    list_brokers(&c);
    cluster_sleep(&c, 2 * OX_SEC);
    assert_true(cluster_node_has(&c, 0, ROOT "/acks/1/broker-1:8080", ""));
    struct ox_mledger *ml = broker_log(two(&c), LOG_T);
    broker_append(two(&c), ml, "1");
    assert_last_in(two(&c), ml, "b");
    assert_ok(b, broker_call(b, ox_storage_resume));
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    assert_ok(b, broker_call(b, ox_storage_status));
    assert_true(broker_says(b, "\"acks\":[\"broker-0:8080\",\"broker-1:8080\"],\"missing\":[]"));
    cluster_fini(&c);
}

// ---- a target that fails

static void fail_one_ledger(struct cluster *c, enum ox_sim_place_call call, int64_t ledger, struct ox_sim_place_fault *fault)
{
    (void)call;
    if (ledger == c->hook_count)
        fault->err = OX_E_PLACE_FAILED;
}

static enum ox_err open_log(struct broker *b, const char *name)
{
    struct ox_ml_open open = {0};
    ox_op_init(&open.op, b->loop, ox_sim_done, "test");
    ox_mledger_open(&b->factory, &open, name, true);
    return ox_sim_wait(b->cluster->sim, &open.op);
}

// Back from a place that has failed with a log's last ledger in it: new logs go on at once; that log is an error, not empty, until the place is back.
// fault: C6
static void test_back_from_a_place_that_failed(void **state)
{
    (void)state;
    static const char *const others[] = {"v", "w", "x", "y"}; // so that the ledger's id is not the next one of the other place
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    assert_ok(b, broker_switch(b, "b", false));
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    for (size_t i = 0; i < OX_COUNT(others); i++)
        broker_log(b, others[i]);
    struct ox_mledger *ml = broker_log(b, LOG_T);
    broker_append(b, ml, "1");
    broker_append(b, ml, "2");
    c.hook_count = (int)ml->last.ledger;
    c.on_place = fail_one_ledger;
    assert_ok(b, broker_call(b, ox_storage_rollback));
    struct ox_mledger *fresh = broker_log(b, LOG_U);
    broker_append(b, fresh, "x");
    assert_last_in(b, fresh, "default");
    cluster_sleep(&c, 60 * OX_SEC);
    assert_content(b, ml, "<PLACE_FAILED>");
    assert_ok(b, broker_call(b, ox_storage_status));
    assert_true(
        broker_says(b, "{\"name\":\"RELEASED\",\"done\":0,\"total\":1,\"left\":1,\"failures\":0,\"over\":false}"));
    broker_log_close(b, ml);
    assert_string_equal(ox_err_name(open_log(b, LOG_T)), "PLACE_FAILED"); // and is not begun anew
    c.on_place = NULL;
    ml = broker_log(b, LOG_T);
    broker_append(b, ml, "3");
    assert_last_in(b, ml, "default");
    assert_content(b, ml, "1 2 3");
    cluster_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip_with_all_data_keeps_order_and_positions),
        cmocka_unit_test(test_round_trip_with_cleanups_copies_all_again),
        cmocka_unit_test(test_rollback_after_a_cleanup_copies_back),
        cmocka_unit_test(test_a_broker_without_a_session_follows_with_its_next),
        cmocka_unit_test(test_a_broker_that_is_never_told_looks_by_itself),
        cmocka_unit_test(test_a_broken_note_of_a_switch_counts_anew),
        cmocka_unit_test(test_a_broker_that_joins_meanwhile_is_waited_for),
        cmocka_unit_test(test_back_from_a_place_that_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
