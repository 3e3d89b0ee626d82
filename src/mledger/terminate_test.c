// terminate_test.c - the end of a log for good, properties of its record, its own retention: over rollovers, faults, crashes and reopening.
#include "mledger/fixture.h"

#include <string.h>

#define NAME "public/default/persistent/e"
#define NODE "/managed-ledgers/" NAME

struct term_rig {
    struct world w;
    struct ox_mledger *ml;
};

static void rig_init(struct term_rig *r, uint64_t seed)
{
    world_init(&r->w, seed);
    r->ml = world_open(&r->w, NAME);
}

static void rig_fini(struct term_rig *r)
{
    world_close(&r->w, r->ml);
    world_fini(&r->w);
}

static enum ox_err rig_terminate(struct term_rig *r)
{
    struct ox_op op;
    world_op(&r->w, &op);
    ox_mledger_terminate(r->ml, &op);
    return world_wait(&r->w, &op);
}

static void rig_reopen(struct term_rig *r)
{
    assert_int_equal(world_close(&r->w, r->ml), OX_OK);
    r->ml = world_open(&r->w, NAME);
}

static enum ox_err rig_set(struct term_rig *r, const char *key, const char *value)
{
    struct ox_ml_property p;
    memset(&p, 0, sizeof p);
    world_op(&r->w, &p.op);
    ox_mledger_set_property(r->ml, &p, key, value);
    return world_wait(&r->w, &p.op);
}

static void test_terminate_lets_appends_in_flight_end_and_refuses_later_ones(void **state)
{
    (void)state;
    struct term_rig r;
    struct ox_op op;
    rig_init(&r, 1);
    struct ox_ml_append *before = world_append_start(&r.w, r.ml, "0");
    world_op(&r.w, &op);
    ox_mledger_terminate(r.ml, &op);
    struct ox_ml_append *after = world_append_start(&r.w, r.ml, "1");
    assert_int_equal(world_wait(&r.w, &op), OX_OK);
    assert_int_equal(world_wait(&r.w, &before->op), OX_OK);
    assert_int_equal(world_wait(&r.w, &after->op), OX_E_TOPIC_TERMINATED);
    assert_true(r.ml->terminated && ox_pos_equal(r.ml->last, before->pos));
    assert_int_equal(rig_terminate(&r), OX_OK); // again
    ox_free(before);
    ox_free(after);
    rig_reopen(&r);
    assert_true(r.ml->terminated);
    assert_int_equal(r.ml->ledger_count, 1);
    assert_int_equal(world_append(&r.w, r.ml, "2", NULL), OX_E_TOPIC_TERMINATED);
    assert_int_equal(world_roll(&r.w, r.ml), OX_E_TOPIC_TERMINATED);
    char *text = world_read_all(&r.w, r.ml, ox_ml_first(r.ml));
    assert_string_equal(text, "0");
    ox_free(text);
    rig_fini(&r);
}

static void test_terminate_during_a_rollover(void **state)
{
    (void)state;
    struct term_rig r;
    struct ox_op roll, op;
    rig_init(&r, 2);
    (void)world_cursor(&r.w, r.ml, "c", OX_POS_EARLIEST);
    world_fill(&r.w, r.ml, 0, 5);
    world_op(&r.w, &roll);
    ox_mledger_roll(r.ml, &roll);
    struct ox_ml_append *late = world_append_start(&r.w, r.ml, "5");
    world_op(&r.w, &op);
    ox_mledger_terminate(r.ml, &op);
    assert_int_equal(world_wait(&r.w, &op), OX_OK);
    assert_int_equal(world_wait(&r.w, &roll), OX_OK);
    assert_int_equal(world_wait(&r.w, &late->op), OX_OK);
    assert_true(ox_pos_equal(r.ml->last, late->pos));
    ox_free(late);
    rig_reopen(&r);
    char *text = world_read_all(&r.w, r.ml, ox_ml_first(r.ml));
    assert_string_equal(text, "0 1 2 3 4 5");
    ox_free(text);
    rig_fini(&r);
}

static void test_terminate_empty(void **state) // an empty last ledger goes; what stays is where it ended
{
    (void)state;
    struct term_rig r;
    rig_init(&r, 3);
    struct ox_cursor *c = world_cursor(&r.w, r.ml, "c", OX_POS_EARLIEST);
    struct ox_pos end = r.ml->last;
    assert_int_equal(rig_terminate(&r), OX_OK);
    assert_int_equal(r.ml->ledger_count, 0);
    assert_int_equal(ox_cursor_backlog(c), 0);
    rig_reopen(&r);
    assert_true(r.ml->terminated && ox_pos_equal(r.ml->last, end));
    c = ox_cursor_find(r.ml, "c");
    assert_int_equal(ox_cursor_backlog(c), 0);
    rig_fini(&r);
}

static void test_terminate_with_an_empty_current_ledger(void **state)
{
    (void)state;
    struct term_rig r;
    rig_init(&r, 4);
    (void)world_cursor(&r.w, r.ml, "keeps", OX_POS_EARLIEST);
    world_fill(&r.w, r.ml, 0, 3);
    struct ox_pos last = r.ml->last;
    assert_int_equal(world_roll(&r.w, r.ml), OX_OK);
    struct ox_cursor *c = world_cursor(&r.w, r.ml, "c", r.ml->last);
    assert_int_equal(rig_terminate(&r), OX_OK);
    assert_int_equal(r.ml->ledger_count, 1);
    assert_true(ox_pos_equal(r.ml->last, last));
    assert_int_equal(ox_cursor_backlog(c), 0);
    char *hex = world_node_hex(&r.w, NODE);
    assert_non_null(strstr(hex, "1204")); // terminatedPosition
    ox_free(hex);
    rig_reopen(&r);
    assert_true(ox_pos_equal(r.ml->last, last));
    rig_fini(&r);
}

static void flaky_record(struct world *w, bool write, const char *path, struct ox_meta_fault *fault)
{
    int *left = w->ctx;
    if (write && strcmp(path, NODE) == 0 && *left > 0)
        fault->outcome = (*left)-- % 2 ? OX_META_FAIL_UNKNOWN : OX_META_FAIL_BEFORE;
}

static void test_terminate_is_tried_until_it_is_recorded(void **state)
{
    (void)state;
    struct term_rig r;
    int failures = 6;
    rig_init(&r, 5);
    world_fill(&r.w, r.ml, 0, 3);
    r.w.ctx = &failures;
    r.w.on_meta = flaky_record;
    assert_int_equal(rig_terminate(&r), OX_OK);
    rig_reopen(&r);
    assert_true(r.ml->terminated);
    assert_int_equal(r.ml->last.entry, 2);
    rig_fini(&r);
}

static void crash_at(const char *point, bool ended)
{
    struct term_rig r;
    rig_init(&r, 6);
    world_fill(&r.w, r.ml, 0, 3);
    ox_sim_arm(r.w.node, point, 1, OX_SIM_CRASH_PROCESS);
    (void)rig_terminate(&r);
    assert_false(ox_sim_node_alive(r.w.node));
    world_crash(&r.w, r.ml);
    r.ml = world_open(&r.w, NAME);
    assert_int_equal(r.ml->terminated, ended);
    assert_int_equal(r.ml->total_entries, 3);
    assert_int_equal(world_append(&r.w, r.ml, "3", NULL), ended ? OX_E_TOPIC_TERMINATED : OX_OK);
    rig_fini(&r);
}

static void test_terminate_crash_at_every_arrow(void **state)
{
    (void)state;
    crash_at("terminate.after_close", false);
    crash_at("terminate.after_record", true);
}

static void test_terminate_and_close_at_once(void **state)
{
    (void)state;
    struct term_rig r;
    struct ox_op op;
    rig_init(&r, 7);
    struct ox_ml_append *a = world_append_start(&r.w, r.ml, "0");
    world_op(&r.w, &op);
    ox_mledger_terminate(r.ml, &op);
    assert_int_equal(world_close(&r.w, r.ml), OX_OK);
    assert_int_equal(world_wait(&r.w, &a->op), OX_OK);
    assert_int_equal(world_wait(&r.w, &op), OX_E_SHUTDOWN);
    ox_free(a);
    r.ml = world_open(&r.w, NAME);
    assert_false(r.ml->terminated);
    rig_fini(&r);
}

static void test_properties_of_a_log_survive(void **state)
{
    (void)state;
    struct term_rig r;
    rig_init(&r, 8);
    assert_int_equal(rig_set(&r, "pulsar.topic.epoch", "4"), OX_OK);
    assert_int_equal(rig_set(&r, "gone", "x"), OX_OK);
    assert_int_equal(rig_set(&r, "gone", NULL), OX_OK);
    assert_int_equal(rig_set(&r, "pulsar.topic.epoch", "5"), OX_OK);
    world_fill(&r.w, r.ml, 0, 3);
    assert_int_equal(world_roll(&r.w, r.ml), OX_OK);
    assert_string_equal(ox_kv_find(&r.ml->properties, "pulsar.topic.epoch"), "5");
    world_crash(&r.w, r.ml);
    r.ml = world_open(&r.w, NAME);
    assert_string_equal(ox_kv_find(&r.ml->properties, "pulsar.topic.epoch"), "5");
    assert_null(ox_kv_find(&r.ml->properties, "gone"));
    assert_int_equal(rig_terminate(&r), OX_OK);
    assert_int_equal(rig_set(&r, "late", "1"), OX_OK);
    rig_reopen(&r);
    assert_string_equal(ox_kv_find(&r.ml->properties, "late"), "1");
    assert_true(r.ml->terminated);
    rig_fini(&r);
}

static void test_property_when_somebody_else_owns_the_log(void **state)
{
    (void)state;
    struct term_rig r;
    rig_init(&r, 9);
    int64_t version;
    struct ox_buf node = world_node(&r.w, NODE, &version);
    world_node_put(&r.w, NODE, node.data, node.len);
    ox_buf_unref(&node);
    assert_int_equal(rig_set(&r, "k", "v"), OX_E_FENCED);
    assert_null(ox_kv_find(&r.ml->properties, "k"));
    rig_fini(&r);
}

static void test_own_retention_is_in_force_at_once(void **state)
{
    (void)state;
    struct term_rig r;
    rig_init(&r, 10);
    ox_mledger_set_retention(r.ml, -1, -1);
    for (int i = 0; i < 3; i++) {
        world_fill(&r.w, r.ml, 10, 10);
        assert_int_equal(world_roll(&r.w, r.ml), OX_OK);
    }
    world_settle(&r.w);
    assert_int_equal(r.ml->ledger_count, 4); // no cursor needs them, retention does
    ox_mledger_set_retention(r.ml, -1, (int64_t)r.ml->ledgers[1]->bytes * 2);
    world_settle(&r.w);
    assert_int_equal(r.ml->ledger_count, 3);
    ox_mledger_set_retention(r.ml, 60000, -1);
    world_sleep(&r.w, 200 * OX_SEC);
    assert_int_equal(r.ml->ledger_count, 1);
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_terminate_lets_appends_in_flight_end_and_refuses_later_ones),
        cmocka_unit_test(test_terminate_during_a_rollover),
        cmocka_unit_test(test_terminate_empty),
        cmocka_unit_test(test_terminate_with_an_empty_current_ledger),
        cmocka_unit_test(test_terminate_is_tried_until_it_is_recorded),
        cmocka_unit_test(test_terminate_crash_at_every_arrow),
        cmocka_unit_test(test_terminate_and_close_at_once),
        cmocka_unit_test(test_properties_of_a_log_survive),
        cmocka_unit_test(test_property_when_somebody_else_owns_the_log),
        cmocka_unit_test(test_own_retention_is_in_force_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
