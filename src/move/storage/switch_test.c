// switch_test.c - which place is active: one compare-and-set, whatever else happens at the same time, by hand, or in between; and the stages that follow.
#include "move/storage/control_fixture.h"

#include <stdio.h>
#include <string.h>

#define LOG_T "public/default/persistent/t"

#define assert_ok(b, err)                                                                 \
    do {                                                                                  \
        enum ox_err assert_err_value = (err);                                             \
        if (assert_err_value != OX_OK)                                                    \
            fail_msg("%s: %s", ox_err_name(assert_err_value), ox_str_get(&(b)->trouble)); \
    } while (0)
#define assert_err(b, err, name, text)                 \
    do {                                               \
        assert_string_equal(ox_err_name(err), (name)); \
        assert_true(broker_says((b), (text)));         \
    } while (0)

static struct broker *one(struct cluster *c)
{
    return &c->brokers[0];
}

static struct broker *two(struct cluster *c)
{
    return &c->brokers[1];
}

// A world in which default, b, c and d are registered.
static void start(struct cluster *c)
{
    cluster_init(c);
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

static void assert_content(struct broker *b, struct ox_mledger *ml, const char *want)
{
    char *text = broker_read(b, ml);
    assert_string_equal(text, want);
    ox_free(text);
}

static int64_t status_number(struct broker *b, const char *key)
{
    assert_ok(b, broker_call(b, ox_storage_status));
    json_t *root = json_loads(ox_str_get(&b->trouble), 0, NULL);
    int64_t value = json_integer_value(json_object_get(root, key));
    json_decref(root);
    return value;
}

// ---- the plain case ----------------------------------------------------------------------------------------------------

static void test_switch_moves_what_is_new(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    struct ox_mledger *ml = broker_log(b, LOG_T);
    broker_append(b, ml, "1");
    size_t before = ox_sim_store_count(c.stores[0]);
    assert_ok(b, broker_switch(b, "b", false));
    assert_true(broker_says(b, "\"epoch\":1,\"target\":\"b\",\"previous\":\"default\""));
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    broker_append(b, ml, "2");
    assert_content(b, ml, "1 2");
    assert_int_equal(ox_sim_store_count(c.stores[0]), before);
    assert_int_equal(ox_sim_store_count(c.stores[1]), 1);
    assert_true(cluster_node_has(&c, 0, ROOT "/switch-target",
                                 "{\"target\":\"b\",\"origin\":\"http://broker-0:8080\",\"epoch\":1,\"ts\":"));
    assert_true(cluster_node_has(&c, 0, ROOT "/acks/1/broker-0:8080", ""));
    assert_null(cluster_node(&c, 0, ROOT "/acks/0"));
    cluster_sleep(&c, 11 * OX_SEC);
    assert_true(cluster_node_has(&c, 0, ROOT "/b", "\"status\":\"ACTIVE\""));
    assert_true(cluster_node_has(&c, 0, ROOT "/default", "\"status\":\"DEPRECATED\""));
    assert_true(cluster_node_has(&c, 0, ROOT "/c", "\"status\":\"STANDBY\""));
    assert_int_equal(status_number(b, "epoch"), 1);
    assert_true(broker_says(b, "\"state\":\"DONE\""));
    assert_true(
        broker_says(b, "{\"name\":\"SWAPPED\",\"done\":1,\"total\":1,\"left\":0,\"failures\":0,\"over\":true}"));
    assert_true(broker_says(b, "\"acks\":[\"broker-0:8080\"],\"missing\":[]"));
    assert_int_equal(status_number(b, "guarded"), 1);
    cluster_fini(&c);
}

// G1, G2: the directive wins over everything at start.
// fault: G1 G2
static void test_restarted_brokers_come_up_on_the_target(void **state)
{
    (void)state;
    struct cluster c;
    start_both(&c);
    assert_ok(one(&c), broker_switch(one(&c), "b", false));
    assert_int_equal(broker_wait_over(one(&c)), STORAGE_DONE);
    cluster_sleep(&c, OX_SEC);
    assert_string_equal(broker_active(two(&c)), "b"); // by its watch
    broker_restart(&c, 1);
    assert_string_equal(broker_active(two(&c)), "b");
    broker_stop(&c, 0);
    broker_stop(&c, 1);
    broker_restart(&c, 0);
    broker_restart(&c, 1);
    assert_string_equal(broker_active(one(&c)), "b");
    assert_string_equal(broker_active(two(&c)), "b");
    assert_int_equal(one(&c)->st->state, STORAGE_DONE);
    status_number(one(&c), "epoch"); // begins to count what is where
    cluster_sleep(&c, 11 * OX_SEC);
    assert_int_equal(status_number(one(&c), "guarded"), 0);
    assert_true(
        broker_says(one(&c), "{\"name\":\"RELEASED\",\"done\":0,\"total\":0,\"left\":0,\"failures\":0,\"over\":true}"));
    assert_true(broker_says(one(&c), "\"acks\":[\"broker-0:8080\",\"broker-1:8080\"]"));
    cluster_fini(&c);
}

// fault: B2
static void test_both_brokers_acknowledge(void **state)
{
    (void)state;
    struct cluster c;
    start_both(&c);
    cluster_put(&c, 0, "/loadbalance/brokers/broker-0:8080", "{}");
    cluster_put(&c, 0, "/loadbalance/brokers/broker-1:8080", "{}");
    assert_ok(one(&c), broker_switch(one(&c), "b", false));
    assert_int_equal(broker_wait_over(one(&c)), STORAGE_DONE);
    assert_true(cluster_node_has(&c, 0, ROOT "/acks/1/broker-1:8080", ""));
    ox_meta_memory_expire(c.tree, two(&c)->meta->session_id); // B2: it comes back with a new session
    cluster_sleep(&c, OX_SEC);
    assert_null(cluster_node(&c, 0, ROOT "/acks/1/broker-1:8080"));
    ox_meta_memory_reconnect(two(&c)->meta);
    cluster_sleep(&c, OX_SEC);
    assert_true(cluster_node_has(&c, 0, ROOT "/acks/1/broker-1:8080", ""));
    broker_kill(&c, 1); // and one that is gone but still listed is missed
    assert_err(one(&c), broker_switch(one(&c), "c", false), "CONFLICT", "the first is broker-1:8080: upgrade or stop it");
    cluster_fini(&c);
}

// C2, G8: a broker that cannot follow writes on where it is, truthfully, and the barrier shows it.
// fault: C2 G8
static void test_a_broker_that_cannot_follow_is_named(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    cluster_put(&c, 0, "/loadbalance/brokers/broker-0:8080", "{}");
    cluster_put(&c, 0, "/loadbalance/brokers/broker-1:8080", "{}");
    c.away[1] = true;
    assert_ok(two(&c), broker_start(&c, 1));
    cluster_sleep(&c, 2 * OX_SEC);
    struct ox_mledger *ml = broker_log(two(&c), LOG_T);
    assert_ok(one(&c), broker_switch(one(&c), "b", false));
    cluster_sleep(&c, 60 * OX_SEC);
    assert_int_equal(one(&c)->st->state, STORAGE_RUNNING);
    assert_int_equal(status_number(one(&c), "epoch"), 1);
    assert_true(
        broker_says(one(&c), "{\"name\":\"SWAPPED\",\"done\":1,\"total\":2,\"left\":1,\"failures\":0,\"over\":false}"));
    assert_true(broker_says(one(&c), "\"missing\":[\"broker-1:8080\"]"));
    assert_int_equal(one(&c)->st->control->lag.value, 1);
    assert_true(cluster_logged(&c, "storage.follow.failed target=b epoch=1"));
    assert_string_equal(broker_active(two(&c)), "default");
    broker_append(two(&c), ml, "1");
    c.away[1] = false;
    assert_int_equal(broker_wait_over(one(&c)), STORAGE_DONE);
    assert_string_equal(broker_active(two(&c)), "b");
    broker_append(two(&c), ml, "2");
    assert_content(two(&c), ml, "1 2");
    cluster_fini(&c);
}

// ---- several at once -----------------------------------------------------------------------------------------------------

static void both_switch(struct cluster *c, const char *first, const char *second, enum ox_err *ret_first,
                        enum ox_err *ret_second)
{
    struct ox_storage_call a = {0}, b = {0};
    ox_op_init(&a.op, one(c)->loop, ox_sim_done, "test");
    ox_op_init(&b.op, two(c)->loop, ox_sim_done, "test");
    ox_storage_switch(one(c)->st, &a, first, false);
    ox_storage_switch(two(c)->st, &b, second, false);
    *ret_first = ox_sim_wait(c->sim, &a.op);
    *ret_second = ox_sim_wait(c->sim, &b.op);
    ox_storage_call_fini(&a);
    ox_storage_call_fini(&b);
}

// F1
// fault: F1
static void test_two_switches_at_once_one_wins(void **state)
{
    (void)state;
    struct cluster c;
    start_both(&c);
    enum ox_err a, b;
    both_switch(&c, "b", "c", &a, &b);
    assert_int_equal((a == OX_OK) + (b == OX_OK), 1);
    assert_int_equal((a == OX_E_CONFLICT) + (b == OX_E_CONFLICT), 1);
    const char *winner = a == OX_OK ? "b" : "c";
    cluster_sleep(&c, 15 * OX_SEC);
    assert_string_equal(broker_active(one(&c)), winner);
    assert_string_equal(broker_active(two(&c)), winner);
    assert_int_equal(one(&c)->st->directive.epoch, 1);
    cluster_fini(&c);
}

// F2, F3
// fault: F2
static void test_the_same_switch_twice_is_one(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    struct ox_storage_call first = {0};
    ox_op_init(&first.op, b->loop, ox_sim_done, "test");
    ox_storage_switch(b->st, &first, "b", false);
    assert_err(b, broker_switch(b, "b", false), "CONFLICT", "at another switch");
    assert_int_equal(ox_sim_wait(c.sim, &first.op), OX_OK);
    const char *id = json_string_value(json_object_get(first.answer, "switchId"));
    assert_ok(b, broker_switch(b, "b", false));
    assert_true(broker_says(b, id));
    assert_true(broker_says(b, "\"noop\":true"));
    assert_int_equal(b->st->directive.epoch, 1);
    ox_storage_call_fini(&first);
    assert_err(b, broker_switch(b, "nobody", false), "NO_PLACE", "nobody");
    cluster_fini(&c);
}

// F4
// fault: F4
static void test_a_chain_needs_supersede(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    struct ox_mledger *ml = broker_log(b, LOG_T);
    broker_append(b, ml, "1");
    assert_ok(b, broker_switch(b, "b", false));
    assert_ok(b, broker_call(b, ox_storage_pause));
    assert_err(b, broker_switch(b, "c", false), "CONFLICT", "unfinished: the switch");
    assert_true(broker_says(b, "is paused: wait for it, abort it, or supersede it"));
    assert_string_equal(broker_active(b), "b");
    assert_ok(b, broker_switch(b, "c", true));
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    assert_string_equal(broker_active(b), "c");
    assert_int_equal(b->st->directive.epoch, 2);
    struct ox_ml_left left;
    ox_ml_follow_left(&b->factory, &left);
    assert_int_equal(left.logs + left.cursors, 0);
    broker_append(b, ml, "2");
    assert_content(b, ml, "1 2");
    cluster_fini(&c);
}

// F5: ids of a log only rise, whatever the place; nothing is refused on the way back.
// fault: F5
static void test_round_trip_keeps_order(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    struct ox_mledger *ml = broker_log(b, LOG_T);
    static const char *const route[] = {"b", "c", "default", "b"};
    broker_append(b, ml, "0");
    for (size_t i = 0; i < OX_COUNT(route); i++) {
        char text[8];
        assert_ok(b, broker_switch(b, route[i], false));
        assert_int_equal(broker_wait_over(b), STORAGE_DONE);
        snprintf(text, sizeof text, "%zu", i + 1);
        broker_append(b, ml, text);
    }
    assert_content(b, ml, "0 1 2 3 4");
    broker_restart(&c, 0);
    assert_string_equal(broker_active(b), "b");
    ml = broker_log(b, LOG_T);
    assert_content(b, ml, "0 1 2 3 4");
    assert_int_equal(b->st->directive.epoch, 4);
    cluster_fini(&c);
}

// F6: back at once; what was born on the target is read there.
// fault: F6
static void test_rollback_at_any_time(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    assert_err(b, broker_call(b, ox_storage_rollback), "CONFLICT", "nothing to go back to");
    struct ox_mledger *ml = broker_log(b, LOG_T);
    broker_append(b, ml, "1");
    assert_ok(b, broker_switch(b, "b", false));
    assert_ok(b, broker_call(b, ox_storage_pause));
    assert_ok(b, broker_call(b, ox_storage_rollback));
    assert_string_equal(broker_active(b), "default");
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    assert_ok(b, broker_switch(b, "b", false));
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    broker_append(b, ml, "2");
    assert_ok(b, broker_call(b, ox_storage_rollback));
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    broker_append(b, ml, "3");
    assert_content(b, ml, "1 2 3");
    assert_int_equal(b->st->directive.epoch, 4);
    cluster_fini(&c);
}

// ---- precheck ------------------------------------------------------------------------------------------------------------

static void fail_append(struct cluster *c, enum ox_sim_place_call call, int64_t ledger, struct ox_sim_place_fault *fault)
{
    (void)c;
    (void)ledger;
    if (call == OX_SIM_CALL_APPEND)
        fault->err = OX_E_PLACE_FAILED;
}

static void fail_ids(struct cluster *c, enum ox_sim_place_call call, int64_t ledger, struct ox_sim_place_fault *fault)
{
    (void)ledger;
    if (call == OX_SIM_CALL_ID && c->hook_count++ > 0) // the canary's own id is given
        fault->err = OX_E_IO;
}

static void fail_read(struct cluster *c, enum ox_sim_place_call call, int64_t ledger, struct ox_sim_place_fault *fault)
{
    (void)c;
    (void)ledger;
    if (call == OX_SIM_CALL_READ)
        fault->err = OX_E_CORRUPT;
}

// fault: G3
static void test_precheck_says_what_fails(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    assert_err(b, broker_precheck(b, "nobody"), "NO_PLACE", "nobody");
    assert_ok(b, broker_precheck(b, "b"));
    assert_true(broker_says(b, "\"ready\":true,\"idgenAdvancedBeyondSource\":true,\"sourceClusterName\":\"default\","
                               "\"targetClusterName\":\"b\",\"sourceMaxHighOrderBit\":0"));
    static const char *const checks[] = {"reachable", "identity", "writable",   "canary",
                                         "ids",       "space",    "unfinished", "brokers"};
    for (size_t i = 0; i < OX_COUNT(checks); i++) {
        char text[64];
        snprintf(text, sizeof text, "{\"name\":\"%s\",\"result\":\"pass\"", checks[i]);
        assert_true(broker_says(b, text));
    }
    assert_int_equal(ox_sim_store_count(c.stores[1]), 0); // the canary is gone
    c.on_place = fail_append;
    assert_err(b, broker_switch(b, "b", false), "CONFLICT", "canary: a test ledger could not be written in b");
    c.on_place = fail_read;
    assert_err(b, broker_switch(b, "b", false), "CONFLICT",
               "canary: a test ledger could not be read in b: stored bytes are damaged");
    c.on_place = fail_ids;
    assert_err(b, broker_switch(b, "b", false), "CONFLICT", "ids: the id generator of b cannot be pushed");
    c.on_place = NULL;
    assert_int_equal(ox_sim_store_count(c.stores[1]), 0);
    cluster_put(&c, 0, "/loadbalance/brokers/old:8080", "{}");
    assert_err(b, broker_switch(b, "b", false), "CONFLICT",
               "brokers: 1 live broker(s) have not acknowledged epoch 0, the first is old:8080"); // G3
    cluster_delete(&c, 0, "/loadbalance/brokers/old:8080");
    assert_string_equal(broker_active(b), "default");
    assert_null(cluster_node(&c, 0, ROOT "/switch-target")); // nothing has changed
    assert_ok(b, broker_switch(b, "b", false));
    cluster_fini(&c);
}

// C1, and a full disk.
// fault: C1
static void test_precheck_needs_a_place_that_takes_writes(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    broker_stop(&c, 0);
    c.away[1] = true;
    c.room[2] = (struct ox_capacity){.total = 1000, .available = 7};
    broker_restart(&c, 0);
    assert_err(b, broker_switch(b, "b", false), "CONFLICT",
               "reachable: the storage of b at sim:b cannot be opened: nobody listens");
    assert_err(b, broker_switch(b, "c", false), "CONFLICT",
               "writable: c takes no writes: it has failed, or its disk is full (7 bytes available)");
    c.away[1] = false;
    assert_ok(b, broker_switch(b, "b", false)); // opened for it, without waiting for the next round
    assert_string_equal(broker_active(b), "b");
    cluster_fini(&c);
}

// What a store keeps free is no room for new ledgers; what the data would need is only an estimate.
static void test_precheck_counts_what_is_kept_free(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    struct ox_mledger *ml = broker_log(b, LOG_T);
    broker_append(b, ml, "some bytes");
    broker_log_close(b, ml);
    broker_stop(&c, 0);
    c.room[1] = (struct ox_capacity){.total = 8000, .available = 300, .reserve = 1000, .step = 100, .writable = true};
    broker_restart(&c, 0);
    assert_err(b, broker_switch(b, "b", false), "CONFLICT",
               "space: 300 bytes are available in b, of which it keeps 1000 free: it would soon refuse new data");
    assert_string_equal(broker_active(b), "default");
    broker_log(b, LOG_T); // what the broker before wrote is closed, and its length known
    c.room[1].available = 1099;
    assert_ok(b, broker_precheck(b, "b"));
    assert_true(broker_says(b, "\"ready\":true"));
    assert_true(broker_says(
        b, "{\"name\":\"space\",\"result\":\"warn\",\"detail\":\"1099 bytes are available in b, of which it "
           "keeps 1000 free and takes 100 at a time: it will soon refuse new data"));
    c.room[1].available = 2005; // a quarter is kept free of copies
    assert_ok(b, broker_precheck(b, "b"));
    assert_true(broker_says(
        b, "10 bytes lie elsewhere, 2005 are available in b, 2000 of them are kept free: new data fits, moving "
           "the older does not"));
    c.room[1].available = 2010;
    assert_ok(b, broker_switch(b, "b", false));
    cluster_fini(&c);
}

// ---- unknown outcomes ----------------------------------------------------------------------------------------------------

static void unknown_directive(struct cluster *c, bool write, const char *path, struct ox_meta_fault *fault)
{
    if (write && strstr(path, "switch-target") && c->hook_count > 0) {
        fault->outcome = c->hook_count-- % 2 ? OX_META_FAIL_AFTER : OX_META_FAIL_UNKNOWN;
    }
}

// B1
// fault: B1
static void test_unknown_outcome_of_the_directive_is_reread(void **state)
{
    (void)state;
    for (int faults = 1; faults <= 2; faults++) {
        struct cluster c;
        start(&c);
        c.hook_count = faults;
        c.on_meta = unknown_directive;
        assert_ok(one(&c), broker_switch(one(&c), "b", false));
        assert_int_equal(c.hook_count, 0);
        assert_int_equal(one(&c)->st->directive.epoch, 1);
        assert_true(cluster_node_has(&c, 0, ROOT "/switch-target", "\"epoch\":1"));
        assert_int_equal(broker_wait_over(one(&c)), STORAGE_DONE);
        c.hook_count = faults; // now over a directive that is there
        assert_ok(one(&c), broker_switch(one(&c), "c", false));
        assert_int_equal(c.hook_count, 0);
        assert_true(cluster_node_has(&c, 0, ROOT "/switch-target", "\"epoch\":2"));
        cluster_fini(&c);
    }
}

static void away_directive(struct cluster *c, bool write, const char *path, struct ox_meta_fault *fault)
{
    (void)c;
    if (write && strstr(path, "switch-target"))
        fault->outcome = OX_META_FAIL_BEFORE;
}

static void test_metadata_away_is_said(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    c.on_meta = away_directive;
    assert_err(one(&c), broker_switch(one(&c), "b", false), "DISCONNECTED", "ask status whether the switch to b was made");
    assert_string_equal(broker_active(one(&c)), "default");
    c.on_meta = NULL;
    assert_ok(one(&c), broker_switch(one(&c), "b", false));
    cluster_fini(&c);
}

static void shaky(struct cluster *c, bool write, const char *path, struct ox_meta_fault *fault)
{
    (void)path;
    (void)write;
    c->hook_count++;
    if ((uint32_t)c->hook_count * 2654435761u >> 16 & 3)
        return;
    fault->outcome = c->hook_count % 2 ? OX_META_FAIL_AFTER : OX_META_FAIL_UNKNOWN;
}

// fault: B6
static void test_stages_pass_a_shaky_store(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    struct ox_mledger *ml = broker_log(b, LOG_T);
    broker_append(b, ml, "1");
    assert_ok(b, broker_switch(b, "b", false));
    c.on_meta = shaky;
    assert_int_equal(broker_wait_over(b), STORAGE_DONE); // B6: no failure is counted for it
    c.on_meta = NULL;
    broker_append(b, ml, "2");
    assert_content(b, ml, "1 2");
    cluster_fini(&c);
}

// ---- by hand -------------------------------------------------------------------------------------------------------------

// B7
// fault: B7
static void test_a_removed_directive_comes_back(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    assert_ok(b, broker_switch(b, "b", false));
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    char *before = cluster_node(&c, 0, ROOT "/switch-target");
    cluster_forget(&c);
    cluster_delete(&c, 0, ROOT "/switch-target");
    cluster_sleep(&c, OX_SEC);
    assert_string_equal(broker_active(b), "b");
    assert_true(cluster_logged(&c, "storage.directive.missing"));
    assert_true(cluster_node_has(&c, 0, ROOT "/switch-target", before));
    assert_ok(b, broker_switch(b, "c", false)); // it goes on from there
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    assert_ok(two(&c), broker_start(&c, 1));
    cluster_sleep(&c, OX_SEC);
    broker_stop(&c, 0);
    broker_stop(&c, 1);
    // While nobody runs: the orchestrator's newest header knows.
    struct broker *tool = two(&c);
    tool->loop = ox_sim_loop(tool->node);
    tool->meta = ox_meta_memory_new(tool->loop, c.tree, NULL);
    cluster_delete(&c, 1, ROOT "/switch-target");
    struct ox_op op;
    ox_op_init(&op, tool->loop, ox_sim_done, "test");
    ox_meta_close(tool->meta, &op);
    ox_sim_wait(c.sim, &op);
    broker_restart(&c, 0);
    assert_string_equal(broker_active(b), "c");
    assert_true(cluster_logged(&c, "storage.directive.restored target=c epoch=2"));
    cluster_sleep(&c, OX_SEC);
    assert_true(cluster_node_has(&c, 0, ROOT "/switch-target", "\"target\":\"c\""));
    assert_true(cluster_node_has(&c, 0, ROOT "/switch-target", "\"epoch\":2"));
    ox_free(before);
    cluster_fini(&c);
}

static void test_a_directive_that_went_back_is_not_followed(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    assert_ok(b, broker_switch(b, "b", false));
    char *old = cluster_node(&c, 0, ROOT "/switch-target");
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    assert_ok(b, broker_switch(b, "c", false));
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    cluster_put(&c, 0, ROOT "/switch-target", old);
    cluster_sleep(&c, OX_SEC);
    assert_string_equal(broker_active(b), "c");
    assert_true(cluster_logged(&c, "storage.directive.stale"));
    assert_true(cluster_node_has(&c, 0, ROOT "/switch-target", "\"target\":\"c\""));
    cluster_put(&c, 0, ROOT "/switch-target", "{broken");
    cluster_sleep(&c, OX_SEC);
    assert_true(cluster_logged(&c, "storage.directive.corrupt"));
    assert_true(cluster_node_has(&c, 0, ROOT "/switch-target", "\"target\":\"c\""));
    assert_string_equal(broker_active(b), "c");
    ox_free(old);
    cluster_fini(&c);
}

// A9: what another program writes by the proposal's first revision is followed, and written again with its epoch.
// fault: A9
static void test_a_text_directive_is_followed(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    assert_ok(b, broker_switch(b, "b", false));
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    cluster_put(&c, 0, ROOT "/switch-target", "c\norigin=http://tool:1");
    cluster_sleep(&c, OX_SEC);
    assert_string_equal(broker_active(b), "c");
    assert_int_equal(b->st->directive.epoch, 2);
    assert_true(cluster_node_has(&c, 0, ROOT "/switch-target", "{\"target\":\"c\",\"origin\":\"http://tool:1\",\"epoch\":2,"));
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    broker_restart(&c, 0);
    assert_string_equal(broker_active(b), "c");
    assert_int_equal(b->st->directive.epoch, 2);
    cluster_put(&c, 0, ROOT "/switch-target", "nobody"); // one that cannot be followed leaves things as they are
    cluster_sleep(&c, 11 * OX_SEC);
    assert_string_equal(broker_active(b), "c");
    assert_true(cluster_logged(&c, "storage.follow.failed target=nobody"));
    cluster_fini(&c);
}

// B8
// fault: B8 G5
static void test_statuses_decide_nothing(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    assert_ok(b, broker_switch(b, "b", false));
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    cluster_sleep(&c, 11 * OX_SEC);
    cluster_put(&c, 0,
                ROOT "/c", "{\"name\":\"c\",\"metadataServiceUri\":\"sim:c\",\"status\":\"ACTIVE\",\"identity\":\"00000000-0000-4000-8000-000000000003\",\"zone\":1}");
    broker_restart(&c, 0);
    assert_string_equal(broker_active(b), "b");
    cluster_sleep(&c, 11 * OX_SEC);
    assert_string_equal(broker_active(b), "b");
    assert_true(cluster_node_has(&c, 0, ROOT "/c", "\"status\":\"STANDBY\""));
    assert_true(cluster_node_has(&c, 0, ROOT "/c", "\"zone\":1")); // G5
    assert_true(cluster_node_has(&c, 0, ROOT "/b", "\"status\":\"ACTIVE\""));
    cluster_fini(&c);
}

// G6
// fault: G6
static void test_clocks_decide_nothing(void **state)
{
    (void)state;
    struct cluster c;
    start_both(&c);
    assert_ok(one(&c), broker_switch(one(&c), "b", false));
    assert_int_equal(broker_wait_over(one(&c)), STORAGE_DONE);
    ox_sim_step_clock(c.sim, -3600 * 1000);
    assert_ok(one(&c), broker_switch(one(&c), "c", false));
    assert_int_equal(broker_wait_over(one(&c)), STORAGE_DONE);
    cluster_sleep(&c, 11 * OX_SEC);
    assert_string_equal(broker_active(two(&c)), "c");
    ox_sim_step_clock(c.sim, 7200 * 1000);
    broker_restart(&c, 0);
    assert_string_equal(broker_active(one(&c)), "c");
    assert_int_equal(one(&c)->st->directive.epoch, 2);
    cluster_fini(&c);
}

// ---- crashes -------------------------------------------------------------------------------------------------------------

static bool crashed(void *ctx)
{
    struct broker *b = ctx;
    return b->loop->dead;
}

// A switch (and then the data) with a crash at one arrow, a restart, and the rest of the way.
static void crash_at(const char *point, const char *active, bool move_data)
{
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    struct ox_mledger *ml = broker_log(b, LOG_T);
    broker_append(b, ml, "1");
    broker_append(b, ml, "2");
    ox_sim_arm(b->node, point, 1, OX_SIM_CRASH_PROCESS);
    struct ox_storage_call call = {0}, data = {0};
    ox_op_init(&call.op, b->loop, ox_sim_done, "test");
    ox_storage_switch(b->st, &call, "b", false);
    ox_sim_wait(c.sim, &call.op);
    ox_storage_call_fini(&call);
    if (move_data) {
        ox_op_init(&data.op, b->loop, ox_sim_done, "test");
        ox_storage_move_data(b->st, &data, "b");
        assert_ok(b, ox_sim_wait(c.sim, &data.op));
        ox_storage_call_fini(&data);
    }
    if (!ox_sim_run(c.sim, crashed, b, 60 * OX_SEC))
        fail_msg("%s was not passed", point);
    broker_kill(&c, 0);
    broker_restart(&c, 0);
    assert_string_equal(broker_active(b), active);
    assert_int_equal(b->st->move_data, move_data); // what was asked for is kept
    if (!strcmp(active, "b")) {
        assert_int_equal(broker_wait_over(b), STORAGE_DONE);
        assert_int_equal(b->st->directive.epoch, 1);
    }
    assert_ok(b, broker_switch(b, "b", false));
    ml = broker_log(b, LOG_T);
    broker_append(b, ml, "3");
    assert_content(b, ml, "1 2 3");
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    cluster_fini(&c);
}

// fault: A1 G1
static void test_crash_at_every_arrow_leaves_one_truth(void **state)
{
    (void)state;
    crash_at("switch.after_precheck", "default", false);
    static const char *const points[] = {"switch.after_directive", "switch.after_activate", "switch.after_follow",
                                         "switch.after_header",    "switch.after_lease",    "switch.after_ack",
                                         "switch.after_swapped",   "switch.after_writes",   "switch.after_metadata"};
    for (size_t i = 0; i < OX_COUNT(points); i++)
        crash_at(points[i], "b", false);
    crash_at("switch.after_data", "b", true);
}

// A7: whoever has lost its session does not lead; another broker goes on.
// fault: A8
static void test_another_broker_takes_the_lead(void **state)
{
    (void)state;
    struct cluster c;
    start_both(&c);
    struct broker *b = one(&c);
    ox_sim_arm(b->node, "switch.after_header", 1, OX_SIM_CRASH_PROCESS);
    struct ox_storage_call call = {0};
    ox_op_init(&call.op, b->loop, ox_sim_done, "test");
    ox_storage_switch(b->st, &call, "b", false);
    ox_sim_wait(c.sim, &call.op);
    ox_storage_call_fini(&call);
    broker_kill(&c, 0);
    assert_int_equal(broker_wait_over(two(&c)), STORAGE_DONE);
    assert_string_equal(broker_active(two(&c)), "b");
    broker_restart(&c, 0);
    assert_string_equal(broker_active(b), "b");
    assert_int_equal(b->st->state, STORAGE_DONE);
    cluster_fini(&c);
}

static void hold_swapped(struct cluster *c, bool write, const char *path, struct ox_meta_fault *fault)
{
    (void)c;
    if (!write && !strcmp(path, ROOT "/acks/1"))
        fault->outcome = OX_META_FAIL_BEFORE;
}

// A7: the lease goes with the session; whoever comes back with a new one does not lead beside the next leader.
// fault: A7
static void test_a_former_leader_stands_back(void **state)
{
    (void)state;
    struct cluster c;
    start_both(&c);
    struct broker *a = one(&c), *b = two(&c);
    c.on_meta = hold_swapped; // nobody gets past SWAPPED
    assert_ok(a, broker_switch(a, "b", false));
    cluster_sleep(&c, 5 * OX_SEC);
    assert_int_equal(a->st->state, STORAGE_RUNNING);
    assert_true(a->st->control->stages.lease_session == a->meta->session_id);
    uint64_t session = a->meta->session_id;
    ox_meta_memory_disconnect(a->meta);
    ox_meta_memory_expire(c.tree, session);
    cluster_sleep(&c, 30 * OX_SEC);
    assert_true(b->st->control->stages.lease_session == b->meta->session_id);
    ox_meta_memory_reconnect(a->meta);
    cluster_sleep(&c, 30 * OX_SEC);
    assert_true(a->meta->session_id != session);
    assert_int_equal(a->st->control->stages.lease_session, 0);
    assert_true(b->st->control->stages.lease_session == b->meta->session_id);
    c.on_meta = NULL;
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    assert_int_equal(broker_wait_over(a), STORAGE_DONE); // by the header
    cluster_fini(&c);
}

// ---- stages --------------------------------------------------------------------------------------------------------------

// A cursor whose position is in a ledger of its own.
static void make_cursor(struct broker *b, struct ox_mledger *ml, const char *name, struct ox_pos acked)
{
    struct ox_cursor_open open = {0};
    ox_op_init(&open.op, b->loop, ox_sim_done, "test");
    ox_cursor_open(ml, &open, name, true, OX_POS_EARLIEST, NULL);
    assert_int_equal(ox_sim_wait(b->cluster->sim, &open.op), OX_OK);
    struct ox_cursor_ack ack = {0};
    ox_op_init(&ack.op, b->loop, ox_sim_done, "test");
    ox_cursor_mark_delete(open.cursor, &ack, acked);
    assert_int_equal(ox_sim_wait(b->cluster->sim, &ack.op), OX_OK);
}

static bool resumed(void *ctx)
{
    struct broker *b = ctx;
    return b->st->state == STORAGE_DONE;
}

// D1, D2: while the old place is out of reach its cursors are listed; when it is back they move by themselves.
// fault: D1 F3
static void test_cursors_wait_for_their_place(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    struct ox_mledger *ml = broker_log(b, LOG_T);
    broker_append(b, ml, "1");
    broker_append(b, ml, "2");
    make_cursor(b, ml, "s", (struct ox_pos){ml->last.ledger, 0});
    ox_sim_node_crash(b->node, OX_SIM_CRASH_PROCESS); // a clean close would put the position into the node
    broker_restart(&c, 0);
    assert_ok(b, broker_switch(b, "b", false));
    assert_ok(b, broker_call(b, ox_storage_pause));
    broker_stop(&c, 0);
    c.away[0] = true;
    broker_restart(&c, 0);
    assert_string_equal(broker_active(b), "b");
    assert_ok(b, broker_call(b, ox_storage_resume));
    assert_int_equal(broker_wait_over(b), STORAGE_DONE_WITH_FAILURES);
    assert_ok(b, broker_call(b, ox_storage_failures));
    assert_true(broker_says(b, "\"topic\":\"" LOG_T "\",\"cursor\":\"s\",\"place\":\"default\""));
    broker_restart(&c, 0); // the list is kept
    assert_int_equal(b->st->state, STORAGE_DONE_WITH_FAILURES);
    assert_int_equal(b->st->failures.count, 1);
    assert_ok(b, broker_switch(b, "b", false)); // F3: tried again
    assert_int_equal(broker_wait_over(b), STORAGE_DONE_WITH_FAILURES);
    c.away[0] = false;
    assert_true(ox_sim_run(c.sim, resumed, b, 60 * OX_SEC));
    assert_int_equal(b->st->failures.count, 0);
    assert_int_equal(b->st->metadata.done, 1);
    cluster_fini(&c);
}

static void away_cursor(struct cluster *c, bool write, const char *path, struct ox_meta_fault *fault)
{
    if (!write || !strstr(path, "/persistent/t/s"))
        return;
    fault->outcome = OX_META_FAIL_BEFORE;
    c->hook_count++;
}

// B6: the stage waits for metadata that is away; nothing is counted as a failure, nothing is given up.
// fault: B6
static void test_cursors_wait_for_metadata(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    struct ox_mledger *ml = broker_log(b, LOG_T);
    broker_append(b, ml, "1");
    broker_append(b, ml, "2");
    make_cursor(b, ml, "s", (struct ox_pos){ml->last.ledger, 0});
    ox_sim_node_crash(b->node, OX_SIM_CRASH_PROCESS);
    broker_restart(&c, 0);
    c.on_meta = away_cursor;
    assert_ok(b, broker_switch(b, "b", false));
    cluster_sleep(&c, 120 * OX_SEC);
    assert_true(c.hook_count > 3);
    assert_int_equal(b->st->state, STORAGE_RUNNING);
    assert_int_equal(storage_failures_count(b->st), 0);
    c.on_meta = NULL;
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    assert_int_equal(b->st->metadata.done, 1);
    cluster_fini(&c);
}

// fault: F13
static void test_pause_resume_abort(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    assert_err(b, broker_call(b, ox_storage_pause), "CONFLICT", "no switch was made yet");
    assert_ok(b, broker_switch(b, "b", false));
    assert_ok(b, broker_call(b, ox_storage_pause));
    assert_ok(b, broker_call(b, ox_storage_pause));
    cluster_sleep(&c, 30 * OX_SEC);
    assert_int_equal(b->st->state, STORAGE_PAUSED);
    broker_restart(&c, 0); // it is kept
    cluster_sleep(&c, 30 * OX_SEC);
    assert_int_equal(b->st->state, STORAGE_PAUSED);
    assert_ok(b, broker_call(b, ox_storage_resume));
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    assert_err(b, broker_call(b, ox_storage_abort), "CONFLICT", "is DONE");
    assert_ok(b, broker_switch(b, "c", false));
    assert_ok(b, broker_call(b, ox_storage_abort));
    cluster_sleep(&c, 30 * OX_SEC);
    assert_int_equal(b->st->state, STORAGE_ABORTED);
    assert_string_equal(broker_active(b), "c");       // the directive stands
    assert_ok(b, broker_switch(b, "default", false)); // an aborted one is in nobody's way
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    cluster_fini(&c);
}

// A place that was closed stays closed until somebody asks for it.
static void test_a_closed_place_opens_when_it_is_asked_for(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    for (int i = 0; i < 2; i++) {
        struct ox_storage_call call = {0};
        ox_op_init(&call.op, b->loop, ox_sim_done, "test");
        ox_storage_close_client(b->st, &call, "b");
        assert_int_equal(ox_sim_wait(c.sim, &call.op), OX_OK);
        ox_storage_call_fini(&call);
        cluster_sleep(&c, 30 * OX_SEC);
        uint32_t index = storage_place_find(b->st, "b")->index;
        assert_null(ox_router_place(&b->router, index));
        assert_ok(b, i ? broker_switch(b, "b", false) : broker_register(b, "b", "sim:b"));
        assert_non_null(ox_router_place(&b->router, index));
    }
    assert_string_equal(broker_active(b), "b");
    cluster_fini(&c);
}

static void test_read_modes(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    struct ox_storage_call call = {0};
    assert_ok(b, broker_switch(b, "b", false));
    static const struct {
        const char *mode;
        bool old, active;
    } modes[] = {{"NEW_CLUSTER_ONLY", true, false}, {"OLD_CLUSTER_ONLY", false, true}, {"DUAL_READ", false, false}};
    for (size_t i = 0; i < OX_COUNT(modes); i++) {
        ox_op_init(&call.op, b->loop, ox_sim_done, "test");
        ox_storage_read_mode(b->st, &call, modes[i].mode);
        assert_int_equal(ox_sim_wait(c.sim, &call.op), OX_OK);
        ox_storage_call_fini(&call);
        assert_int_equal(b->router.slots[0].reads_blocked, modes[i].old);
        assert_int_equal(b->router.slots[b->router.active].reads_blocked, modes[i].active);
    }
    ox_op_init(&call.op, b->loop, ox_sim_done, "test");
    ox_storage_read_mode(b->st, &call, "BOTH");
    assert_int_equal(ox_sim_wait(c.sim, &call.op), OX_E_INVALID);
    ox_storage_call_fini(&call);
    cluster_fini(&c);
}

// REST is open before the managed ledgers are.
static void test_calls_before_the_start_are_told_to_wait(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    struct ox_ml_factory *f = b->st->factory;
    b->st->factory = NULL;
    assert_err(b, broker_switch(b, "b", false), "SHUTDOWN", "still starting: ask again");
    assert_err(b, broker_call(b, ox_storage_inventory), "SHUTDOWN", "still starting: ask again");
    b->st->factory = f;
    assert_ok(b, broker_switch(b, "b", false));
    cluster_fini(&c);
}

static void test_stop_ends_what_is_at_work(void **state)
{
    (void)state;
    for (uint64_t ms = 0; ms < 40; ms += 3) {
        struct cluster c;
        start(&c);
        struct broker *b = one(&c);
        struct ox_storage_call call = {0}, late = {0};
        struct ox_op op;
        ox_op_init(&call.op, b->loop, ox_sim_done, "test");
        ox_storage_switch(b->st, &call, "b", false);
        cluster_sleep(&c, ms * OX_MS / 10);
        ox_op_init(&op, b->loop, ox_sim_done, "test");
        ox_storage_stop(b->st, &op);
        ox_op_init(&late.op, b->loop, ox_sim_done, "test");
        ox_storage_status(b->st, &late);
        assert_int_equal(ox_sim_wait(c.sim, &late.op), OX_E_SHUTDOWN);
        ox_sim_wait(c.sim, &call.op);
        assert_int_equal(ox_sim_wait(c.sim, &op), OX_OK);
        ox_storage_call_fini(&call);
        ox_storage_call_fini(&late);
        b->stopped = true;
        broker_restart(&c, 0);
        assert_ok(b, broker_switch(b, "b", false));
        assert_int_equal(broker_wait_over(b), STORAGE_DONE);
        cluster_fini(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_switch_moves_what_is_new),
        cmocka_unit_test(test_restarted_brokers_come_up_on_the_target),
        cmocka_unit_test(test_both_brokers_acknowledge),
        cmocka_unit_test(test_a_broker_that_cannot_follow_is_named),
        cmocka_unit_test(test_two_switches_at_once_one_wins),
        cmocka_unit_test(test_the_same_switch_twice_is_one),
        cmocka_unit_test(test_a_chain_needs_supersede),
        cmocka_unit_test(test_round_trip_keeps_order),
        cmocka_unit_test(test_rollback_at_any_time),
        cmocka_unit_test(test_precheck_says_what_fails),
        cmocka_unit_test(test_precheck_needs_a_place_that_takes_writes),
        cmocka_unit_test(test_precheck_counts_what_is_kept_free),
        cmocka_unit_test(test_unknown_outcome_of_the_directive_is_reread),
        cmocka_unit_test(test_metadata_away_is_said),
        cmocka_unit_test(test_stages_pass_a_shaky_store),
        cmocka_unit_test(test_a_removed_directive_comes_back),
        cmocka_unit_test(test_a_directive_that_went_back_is_not_followed),
        cmocka_unit_test(test_a_text_directive_is_followed),
        cmocka_unit_test(test_statuses_decide_nothing),
        cmocka_unit_test(test_clocks_decide_nothing),
        cmocka_unit_test(test_crash_at_every_arrow_leaves_one_truth),
        cmocka_unit_test(test_another_broker_takes_the_lead),
        cmocka_unit_test(test_a_former_leader_stands_back),
        cmocka_unit_test(test_cursors_wait_for_their_place),
        cmocka_unit_test(test_cursors_wait_for_metadata),
        cmocka_unit_test(test_pause_resume_abort),
        cmocka_unit_test(test_a_closed_place_opens_when_it_is_asked_for),
        cmocka_unit_test(test_read_modes),
        cmocka_unit_test(test_calls_before_the_start_are_told_to_wait),
        cmocka_unit_test(test_stop_ends_what_is_at_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
