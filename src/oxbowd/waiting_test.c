// waiting_test.c - what waits for a place while the broker runs: deletes, the sweep of a place that is opened late, and the count that is shown.
#include "mledger/fixture.h"
#include "oxbowd/waiting.h"

#include <string.h>

#define NAME "public/default/persistent/w"

struct rig {
    struct world w;
    struct waiting waiting;
    unsigned lists; // asked of the places
    bool list_fails;
    bool over;
};

static void rig_place_call(struct world *w, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                           struct ox_sim_place_fault *fault)
{
    struct rig *r = CONTAINER_OF(w, struct rig, w);
    (void)ledger;
    (void)entry;
    r->lists += call == OX_SIM_CALL_LIST;
    if (call == OX_SIM_CALL_LIST && r->list_fails)
        fault->err = OX_E_IO;
}

// The second place is registered, but not open.
static void rig_init(struct rig *r)
{
    *r = (struct rig){0};
    world_init_two(&r->w, 1);
    r->w.on_place = rig_place_call;
    world_other_close(&r->w);
    waiting_start(&r->waiting, &r->w.factory);
    world_sleep(&r->w, OX_SEC);
}

static void rig_over(struct waiting *w)
{
    CONTAINER_OF(w, struct rig, waiting)->over = true;
}

static void rig_fini(struct rig *r)
{
    if (!waiting_stop(&r->waiting, rig_over)) {
        world_settle(&r->w);
        assert_true(r->over);
    }
    waiting_fini(&r->waiting);
    world_fini(&r->w);
}

// A ledger of a log of this instance, as a crash leaves it.
static void rig_ledger(struct rig *r, int64_t id, const char *log)
{
    struct ox_kv custom = {0};
    ox_kv_set(&custom, "component", "managed-ledger");
    ox_kv_set(&custom, "oxbow/instance", r->w.factory.instance);
    ox_kv_set(&custom, "pulsar/managed-ledger", log);
    ox_sim_store_make(r->w.other_store, id, &custom, 1);
    ox_kv_fini(&custom);
}

// What the metrics page says of a place, or -1.
static int rig_metric(struct rig *r, const char *name, const char *place, const char *more)
{
    struct ox_str page = {0};
    OX_CLEANUP(ox_free_ptr)
    char *line = ox_asprintf("%s{cluster=\"%s\"%s} ", name, place, more);
    ox_metrics_print(&r->w.metrics, &page);
    const char *at = strstr(ox_str_get(&page), line);
    int n = at ? atoi(at + strlen(line)) : -1;
    assert_true(!at || !strstr(at + 1, line)); // once
    ox_str_fini(&page);
    return n;
}

static int rig_pending(struct rig *r, const char *place)
{
    return rig_metric(r, "bookie_cluster_pending_deletes", place, "");
}

static void rig_log(struct rig *r)
{
    assert_int_equal(world_close(&r->w, world_open(&r->w, NAME)), OX_OK);
}

// A ledger that was made and never recorded, in a place that the start's sweep could not look at.
static void test_waiting_sweeps_a_place_that_is_opened_late_once(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    rig_log(&r);
    rig_ledger(&r, 900, NAME);
    world_sleep(&r.w, 20 * OX_SEC);
    assert_true(ox_sim_store_has(r.w.other_store, 900));
    assert_int_equal(r.lists, 0); // that of the place that was open is the start's sweep's
    world_other_open(&r.w);
    world_sleep(&r.w, 10 * OX_SEC);
    assert_false(ox_sim_store_has(r.w.other_store, 900));
    assert_int_equal(r.lists, 1);
    world_sleep(&r.w, 60 * OX_SEC);
    assert_int_equal(r.lists, 1);
    world_other_close(&r.w);
    world_sleep(&r.w, 10 * OX_SEC);
    world_other_open(&r.w);
    world_sleep(&r.w, 10 * OX_SEC);
    assert_int_equal(r.lists, 2);
    rig_fini(&r);
}

static void test_waiting_sweeps_again_what_could_not_be_listed(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    rig_log(&r);
    rig_ledger(&r, 900, NAME);
    r.list_fails = true;
    world_other_open(&r.w);
    world_sleep(&r.w, 20 * OX_SEC);
    assert_true(r.lists > 1 && ox_sim_store_has(r.w.other_store, 900));
    r.list_fails = false;
    world_sleep(&r.w, 10 * OX_SEC);
    assert_false(ox_sim_store_has(r.w.other_store, 900));
    rig_fini(&r);
}

// Deletes of a closed place are shown as waiting, done when it is open, and then shown as none.
static void test_waiting_shows_and_does_what_waits(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    assert_int_equal(rig_pending(&r, "other"), 0);
    assert_int_equal(rig_pending(&r, "default"), 0);
    world_other_open(&r.w);
    world_sleep(&r.w, 10 * OX_SEC);
    ox_router_activate(&r.w.router, 1); // the log's ledger is made there
    struct ox_mledger *ml = world_open(&r.w, NAME);
    int64_t id = ml->ledgers[0]->where.id;
    world_fill(&r.w, ml, 0, 5);
    world_sleep(&r.w, 10 * OX_SEC);
    assert_int_equal(rig_metric(&r, "bookie_cluster_open_ledgers", "other", ",kind=\"data\""), 1);
    assert_int_equal(rig_metric(&r, "bookie_cluster_open_ledgers", "default", ",kind=\"data\""), 0);
    assert_int_equal(rig_metric(&r, "bookie_cluster_misroute_total", "other", ""), 0);
    assert_true(ox_sim_store_has(r.w.other_store, id));
    assert_int_equal(world_close(&r.w, ml), OX_OK);
    ox_router_activate(&r.w.router, 0);
    rig_log(&r); // that one is sealed, the next is made in the first place
    world_other_close(&r.w);
    ml = world_open(&r.w, NAME);
    struct ox_op op;
    world_op(&r.w, &op);
    ox_mledger_delete(ml, &op);
    assert_int_equal(world_wait(&r.w, &op), OX_OK);
    world_sleep(&r.w, 60 * OX_SEC);
    assert_true(ox_sim_store_has(r.w.other_store, id));
    assert_int_equal(rig_pending(&r, "other"), 1);
    world_other_open(&r.w);
    world_sleep(&r.w, 10 * OX_SEC);
    assert_false(ox_sim_store_has(r.w.other_store, id));
    assert_int_equal(rig_pending(&r, "other"), 0);
    assert_int_equal(rig_pending(&r, "default"), 0);
    rig_fini(&r);
}

// A place that was taken out of the registry is not shown any more; another one may get its name.
static void test_waiting_forgets_what_is_not_registered(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    ox_router_forget(&r.w.router, 1);
    world_sleep(&r.w, 10 * OX_SEC);
    assert_int_equal(rig_pending(&r, "other"), -1);
    assert_int_equal(ox_router_reserve(&r.w.router, "other", OX_E_PLACE_CLOSED), 2);
    world_sleep(&r.w, 10 * OX_SEC);
    assert_int_equal(rig_pending(&r, "other"), 0);
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waiting_sweeps_a_place_that_is_opened_late_once),
        cmocka_unit_test(test_waiting_sweeps_again_what_could_not_be_listed),
        cmocka_unit_test(test_waiting_shows_and_does_what_waits),
        cmocka_unit_test(test_waiting_forgets_what_is_not_registered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
