// targets_test.c - places of their own for namespaces and topics: set, removed, kept over restarts, respected by switches and by all stages.
#include <string.h>

#include "move/storage/control_fixture.h"

#define NS "public/default"
#define LOG_T NS "/persistent/t"
#define LOG_U "other/space/persistent/u"
#define TOPIC_T "persistent://public/default/t"

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

// A world in which default, b and c are registered.
static void start(struct cluster *c)
{
    cluster_init(c);
    assert_ok(one(c), broker_register(one(c), "b", "sim:b"));
    assert_ok(one(c), broker_register(one(c), "c", "sim:c"));
    cluster_sleep(c, OX_SEC);
}

// Waits for a call; what it answered, or why not, is in b->trouble.
static enum ox_err answered(struct broker *b, struct ox_storage_call *call)
{
    enum ox_err err = ox_sim_wait(b->cluster->sim, &call->op);
    char *text = call->answer ? json_dumps(call->answer, JSON_COMPACT) : NULL;
    ox_str_truncate(&b->trouble, 0);
    ox_str_adds(&b->trouble, text ? text : ox_str_get(&call->why));
    free(text);
    ox_storage_call_fini(call);
    return err;
}

enum verb { GET, SET, REMOVE, MOVE, SAFE, CLOSE };
static enum ox_err ask(struct broker *b, enum verb verb, const char *name, const char *place)
{
    struct ox_storage_call call = {0};
    ox_op_init(&call.op, b->loop, ox_sim_done, "test");
    switch (verb) {
    case GET: ox_storage_target_get(b->st, &call, name); break;
    case SET: ox_storage_target_set(b->st, &call, name, place); break;
    case REMOVE: ox_storage_target_remove(b->st, &call, name); break;
    case MOVE: ox_storage_move_data(b->st, &call, name); break;
    case SAFE: ox_storage_safe_to_release(b->st, &call, name); break;
    case CLOSE: ox_storage_close_client(b->st, &call, name); break;
    }
    return answered(b, &call);
}

static const char *place_of(struct broker *b, const struct ox_mledger *ml)
{
    return ox_router_name(&b->router, ml->ledgers[ml->ledger_count - 1]->where.place);
}

static void assert_content(struct broker *b, struct ox_mledger *ml, const char *want)
{
    char *text = broker_read(b, ml);
    assert_string_equal(text, want);
    ox_free(text);
}

// A cursor whose position is in a ledger of its own.
static struct ox_cursor *make_cursor(struct broker *b, struct ox_mledger *ml, struct ox_pos acked)
{
    struct ox_cursor_open open = {0};
    ox_op_init(&open.op, b->loop, ox_sim_done, "test");
    ox_cursor_open(ml, &open, "s", true, OX_POS_EARLIEST, NULL);
    assert_int_equal(ox_sim_wait(b->cluster->sim, &open.op), OX_OK);
    struct ox_cursor_ack ack = {0};
    ox_op_init(&ack.op, b->loop, ox_sim_done, "test");
    ox_cursor_mark_delete(open.cursor, &ack, acked);
    assert_int_equal(ox_sim_wait(b->cluster->sim, &ack.op), OX_OK);
    return open.cursor;
}

// How many ledgers of a log's data, or its cursors', are recorded in a place.
static int ledgers_in(struct broker *b, const char *log, enum ox_ml_kind kind, const char *place)
{
    struct ox_ml_walk w = {0};
    int count = 0;
    ox_ml_walk_begin(&b->factory, &w, true);
    do {
        ox_op_init(&w.op, b->loop, ox_sim_done, "test");
        ox_ml_walk_next(&w);
        assert_int_equal(ox_sim_wait(b->cluster->sim, &w.op), OX_OK);
        for (size_t i = 0; w.log && !strcmp(w.log, log) && i < w.count; i++)
            count += w.found[i].kind == kind && !strcmp(w.found[i].place, place);
    } while (w.log);
    ox_ml_walk_end(&w);
    return count;
}

static void test_set_and_removed_open_logs_follow(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    struct ox_mledger *t = broker_log(b, LOG_T), *u = broker_log(b, LOG_U);
    struct ox_mledger *part = broker_log(b, LOG_T "-partition-3");
    broker_append(b, t, "1");
    broker_append(b, u, "1");
    assert_ok(b, ask(b, GET, TOPIC_T, NULL));
    assert_true(broker_says(b, "{\"name\":\"" TOPIC_T "\",\"target\":\"default\",\"source\":\"cluster\"}"));
    assert_ok(b, ask(b, SET, NS, "b"));
    assert_true(cluster_node_has(&c, 0, ROOT "/targets/public%2Fdefault", "{\"name\":\"public/default\",\"target\":\"b\"}"));
    assert_ok(b, ask(b, GET, TOPIC_T, NULL));
    assert_true(broker_says(b, "\"target\":\"b\",\"source\":\"namespace\""));
    cluster_sleep(&c, OX_SEC);
    assert_string_equal(place_of(b, t), "b");
    assert_string_equal(place_of(b, part), "b");
    assert_string_equal(place_of(b, u), "default");
    assert_ok(b, ask(b, SET, TOPIC_T, "c")); // its own one wins, and is its partitions' too
    assert_true(broker_says(b, "\"target\":\"c\",\"source\":\"topic\""));
    cluster_sleep(&c, OX_SEC);
    broker_append(b, t, "2");
    assert_string_equal(place_of(b, t), "c");
    assert_string_equal(place_of(b, part), "c");
    assert_ok(b, ask(b, REMOVE, TOPIC_T, NULL));
    assert_ok(b, ask(b, REMOVE, NS, NULL));
    assert_err(b, ask(b, REMOVE, NS, NULL), "NOT_FOUND", "no target of its own");
    cluster_sleep(&c, OX_SEC);
    broker_append(b, t, "3");
    assert_string_equal(place_of(b, t), "default");
    assert_content(b, t, "1 2 3");
    assert_null(cluster_node(&c, 0, ROOT "/targets/public%2Fdefault"));
    cluster_fini(&c);
}

// fault: F16
// A cluster switch respects what namespaces and topics have for themselves: writes, cursors and older data go where they belong, not to the active place.
static void test_a_switch_respects_targets(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    struct ox_mledger *t = broker_log(b, LOG_T), *u = broker_log(b, LOG_U);
    broker_append(b, t, "1");
    broker_append(b, t, "2");
    broker_append(b, u, "1");
    broker_append(b, u, "2");
    make_cursor(b, t, (struct ox_pos){t->last.ledger, 0});
    make_cursor(b, u, (struct ox_pos){u->last.ledger, 0});
    ox_sim_node_crash(b->node, OX_SIM_CRASH_PROCESS); // a clean close would put the positions into the nodes
    broker_restart(&c, 0);
    assert_ok(b, ask(b, SET, NS, "b")); // nothing is loaded: the stages bring it there
    assert_ok(b, broker_switch(b, "c", false));
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    assert_string_equal(broker_active(b), "c");
    assert_int_equal(ledgers_in(b, LOG_T, OX_ML_KIND_CURSOR, "default") + ledgers_in(b, LOG_T, OX_ML_KIND_CURSOR, "c"), 0);
    assert_int_equal(ledgers_in(b, LOG_U, OX_ML_KIND_CURSOR, "default") + ledgers_in(b, LOG_U, OX_ML_KIND_CURSOR, "b"), 0);
    t = broker_log(b, LOG_T);
    u = broker_log(b, LOG_U);
    assert_string_equal(place_of(b, t), "b");
    assert_string_equal(place_of(b, u), "c");
    assert_ok(b, ask(b, MOVE, "c", NULL));
    assert_true(broker_says(b, "\"ledgers\":2"));
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    assert_int_equal(ledgers_in(b, LOG_T, OX_ML_KIND_DATA, "b"), 2);
    assert_int_equal(ledgers_in(b, LOG_U, OX_ML_KIND_DATA, "c"), 2);
    assert_int_equal(ledgers_in(b, LOG_T, OX_ML_KIND_DATA, "c") + ledgers_in(b, LOG_U, OX_ML_KIND_DATA, "b"), 0);
    assert_int_equal(b->st->data.failures, 0);
    assert_content(b, t, "1 2");
    assert_content(b, u, "1 2");
    assert_ok(b, broker_switch(b, "default", false)); // and back
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    broker_append(b, t, "3");
    broker_append(b, u, "3");
    assert_string_equal(place_of(b, t), "b");
    assert_string_equal(place_of(b, u), "default");
    cluster_fini(&c);
}

// A target without room fails for its own logs only, by name; with room it takes them.
static void test_a_full_target_holds_up_nobody_else(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c);
    struct broker *b = one(&c);
    c.room[1] = (struct ox_capacity){.total = 8000, .available = 4000, .reserve = 1000, .step = 100, .writable = true};
    assert_ok(b, broker_register(b, "b", "sim:b"));
    assert_ok(b, broker_register(b, "c", "sim:c"));
    struct ox_mledger *t = broker_log(b, LOG_T), *u = broker_log(b, LOG_U);
    broker_append(b, t, "1");
    broker_append(b, u, "1");
    assert_ok(b, ask(b, SET, NS, "b"));
    assert_ok(b, broker_switch(b, "c", false));
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    c.room[1].available = 1000; // all of it kept free for clients
    assert_ok(b, ask(b, MOVE, "c", NULL));
    assert_int_equal(broker_wait_over(b), STORAGE_DONE_WITH_FAILURES);
    assert_int_equal(ledgers_in(b, LOG_U, OX_ML_KIND_DATA, "c"), 2);
    assert_int_equal(ledgers_in(b, LOG_T, OX_ML_KIND_DATA, "default"), 1);
    assert_ok(b, broker_call(b, ox_storage_failures));
    assert_true(broker_says(b, "\"topic\":\"" LOG_T "\""));
    assert_true(broker_says(b, "place b takes no copies now"));
    c.room[1].available = 4000;
    assert_ok(b, broker_switch(b, "c", false)); // to where it is: tried again
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    assert_int_equal(ledgers_in(b, LOG_T, OX_ML_KIND_DATA, "b"), 2);
    assert_int_equal(ledgers_in(b, LOG_T, OX_ML_KIND_DATA, "default"), 0);
    assert_content(b, t, "1");
    cluster_fini(&c);
}

// Killed in the middle of a copy into a target: what is left of it there does not stay, and the next life finishes.
static void test_a_crash_while_copying_into_a_target(void **state)
{
    (void)state;
    static const char *const points[] = {"copy.after_create", "copy.after_close", "relocate.after_record"};
    for (size_t i = 0; i < OX_COUNT(points); i++) {
        struct cluster c;
        start(&c);
        struct broker *b = one(&c);
        struct ox_mledger *t = broker_log(b, LOG_T);
        broker_append(b, t, "1");
        assert_ok(b, ask(b, SET, NS, "b"));
        assert_ok(b, broker_switch(b, "c", false));
        assert_int_equal(broker_wait_over(b), STORAGE_DONE);
        ox_sim_arm(b->node, points[i], 1, OX_SIM_CRASH_PROCESS);
        ask(b, MOVE, "c", NULL);
        broker_wait_over(b);
        assert_true(b->loop->dead);
        broker_restart(&c, 0);
        assert_int_equal(broker_wait_over(b), STORAGE_DONE);
        assert_int_equal(ledgers_in(b, LOG_T, OX_ML_KIND_DATA, "default"), 0);
        assert_int_equal(ox_sim_store_count(c.stores[1]), (size_t)ledgers_in(b, LOG_T, OX_ML_KIND_DATA, "b"));
        assert_int_equal(ox_sim_store_count(c.stores[2]), 0);
        assert_content(b, broker_log(b, LOG_T), "1");
        cluster_fini(&c);
    }
}

// What is open, cursors too, goes on in its target while the cluster switches; a lost target refuses, nothing falls back.
static void test_cursors_follow_and_a_closed_target_is_waited_for(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    struct ox_mledger *t = broker_log(b, LOG_T);
    broker_append(b, t, "1");
    broker_append(b, t, "2");
    struct ox_cursor *s = make_cursor(b, t, (struct ox_pos){t->last.ledger, 0});
    assert_true(s->cursor_ledger >= 0);
    assert_ok(b, ask(b, SET, TOPIC_T, "b"));
    cluster_sleep(&c, OX_SEC);
    assert_int_equal(ledgers_in(b, LOG_T, OX_ML_KIND_CURSOR, "b"), 1);
    assert_int_equal(ledgers_in(b, LOG_T, OX_ML_KIND_CURSOR, "default"), 0);
    assert_ok(b, broker_switch(b, "c", false));
    assert_int_equal(broker_wait_over(b), STORAGE_DONE); // it is where it belongs: nothing to be moved
    assert_int_equal(b->st->metadata.total, 0);
    assert_int_equal(ledgers_in(b, LOG_T, OX_ML_KIND_CURSOR, "b"), 1);
    broker_stop(&c, 0);
    c.away[1] = true;
    broker_restart(&c, 0); // the active one is there
    struct ox_ml_open open = {0};
    ox_op_init(&open.op, b->loop, ox_sim_done, "test");
    ox_mledger_open(&b->factory, &open, LOG_T, false);
    assert_string_equal(ox_err_name(ox_sim_wait(c.sim, &open.op)), "PLACE_CLOSED");
    assert_err(b, ask(b, SET, NS, "b"), "PLACE_CLOSED", "b is not open here");
    c.away[1] = false;
    cluster_sleep(&c, 11 * OX_SEC);
    t = broker_log(b, LOG_T);
    assert_string_equal(place_of(b, t), "b");
    assert_content(b, t, "1 2");
    cluster_fini(&c);
}

static void test_restarts_keep_targets_and_other_brokers_learn_of_them(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c), *two = &c.brokers[1];
    assert_ok(two, broker_start(&c, 1));
    ox_sim_arm(b->node, "target.after_record", 1, OX_SIM_CRASH_PROCESS);
    ask(b, SET, NS, "b");
    assert_true(b->loop->dead); // the record is there
    broker_restart(&c, 0);
    assert_ok(b, ask(b, GET, NS, NULL));
    assert_true(broker_says(b, "\"target\":\"b\",\"source\":\"namespace\""));
    struct ox_mledger *t = broker_log(two, LOG_T);
    cluster_sleep(&c, 11 * OX_SEC);
    assert_ok(two, ask(two, GET, NS, NULL));
    assert_true(broker_says(two, "\"target\":\"b\""));
    assert_string_equal(place_of(two, t), "b");
    assert_ok(two, ask(two, SET, NS, "c"));
    assert_err(b, ask(b, SET, NS, "default"), "CONFLICT", "somebody else has just changed the target of " NS);
    cluster_sleep(&c, OX_SEC); // it has looked at once
    assert_ok(b, ask(b, GET, NS, NULL));
    assert_true(broker_says(b, "\"target\":\"c\""));
    ox_sim_arm(b->node, "target.after_remove", 1, OX_SIM_CRASH_PROCESS);
    ask(b, REMOVE, NS, NULL);
    assert_true(b->loop->dead);
    broker_restart(&c, 0);
    assert_ok(b, ask(b, GET, NS, NULL));
    assert_true(broker_says(b, "\"target\":\"default\",\"source\":\"cluster\""));
    cluster_fini(&c);
}

static void unsure_write(struct cluster *c, bool write, const char *path, struct ox_meta_fault *fault)
{
    if (write && strstr(path, "/targets/") && c->hook_count-- > 0)
        fault->outcome = c->hook_count == 1 ? OX_META_FAIL_UNKNOWN : OX_META_FAIL_AFTER;
}

static void test_unknown_outcomes_are_reread(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    c.on_meta = unsure_write;
    c.hook_count = 2;
    assert_ok(b, ask(b, SET, NS, "b"));
    assert_true(broker_says(b, "\"target\":\"b\""));
    c.hook_count = 2;
    assert_ok(b, ask(b, REMOVE, NS, NULL));
    assert_ok(b, ask(b, GET, NS, NULL));
    assert_true(broker_says(b, "\"source\":\"cluster\""));
    cluster_fini(&c);
}

static void test_refusals_name_the_reason(void **state)
{
    (void)state;
    static const char *const odd[] = {
        "", "a", "a/", "/a", "a/b/c", "a b/c", "persistent://a/b", "persistent://a/b/", "non-persistent://a/b/c"};
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    for (size_t i = 0; i < OX_COUNT(odd); i++) {
        assert_err(b, ask(b, GET, odd[i], NULL), "INVALID", "is neither TENANT/NAMESPACE nor");
        assert_err(b, ask(b, SET, odd[i], "b"), "INVALID", "is neither TENANT/NAMESPACE nor");
    }
    assert_err(b, ask(b, SET, NS, "nowhere"), "NO_PLACE", "nowhere");
    assert_ok(b, ask(b, SET, TOPIC_T, "b"));
    assert_err(b, broker_unregister(b, "b"), "CONFLICT", "b is the target of " TOPIC_T);
    assert_err(b, ask(b, CLOSE, "b", NULL), "CONFLICT", "b is the target of " TOPIC_T);
    assert_ok(b, ask(b, SAFE, "b", NULL));
    assert_true(broker_says(b, "{\"safe\":false,\"reasons\":[\"b is the target of " TOPIC_T));
    assert_ok(b, ask(b, REMOVE, TOPIC_T, NULL));
    assert_ok(b, broker_unregister(b, "b"));
    cluster_fini(&c);
}

// A record that contradicts the registry is not passed over: at start it is refused, while running what was known goes on to hold.
static void test_records_that_are_not_right(void **state)
{
    (void)state;
    struct cluster c;
    start(&c);
    struct broker *b = one(&c);
    assert_ok(b, ask(b, SET, NS, "b"));
    cluster_put(&c, 0, ROOT "/targets/public%2Fdefault", "{\"name\":\"public/default\",\"target\":\"gone\"}");
    cluster_sleep(&c, 11 * OX_SEC);
    assert_true(cluster_logged(&c, "storage.targets.wrong"));
    assert_ok(b, ask(b, GET, NS, NULL));
    assert_true(broker_says(b, "\"target\":\"b\""));
    broker_stop(&c, 0);
    assert_err(b, broker_start(&c, 0), "CONFLICT",
               "targets/public%2Fdefault names a bookie cluster that is not registered here: gone");
    cluster_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_and_removed_open_logs_follow),
        cmocka_unit_test(test_a_switch_respects_targets),
        cmocka_unit_test(test_a_full_target_holds_up_nobody_else),
        cmocka_unit_test(test_a_crash_while_copying_into_a_target),
        cmocka_unit_test(test_cursors_follow_and_a_closed_target_is_waited_for),
        cmocka_unit_test(test_restarts_keep_targets_and_other_brokers_learn_of_them),
        cmocka_unit_test(test_unknown_outcomes_are_reread),
        cmocka_unit_test(test_refusals_name_the_reason),
        cmocka_unit_test(test_records_that_are_not_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
