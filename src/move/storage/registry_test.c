// registry_test.c - how a second place is registered, what a start makes of the records in every state, and how a place goes.
#include "move/storage/control_fixture.h"

#include <string.h>

static struct broker *one(struct cluster *c)
{
    return &c->brokers[0];
}

#define assert_ok(b, err) assert_string_equal(ox_err_name(err), "OK")
#define assert_err(b, err, name, text)                 \
    do {                                               \
        assert_string_equal(ox_err_name(err), (name)); \
        assert_true(broker_says((b), (text)));         \
    } while (0)

// fault: G10
static void test_nothing_is_written_before_activation(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c);
    cluster_sleep(&c, 60 * OX_SEC);
    char *tree = cluster_tree(&c, 0, "/admin");
    assert_string_equal(tree, "");
    ox_free(tree);
    assert_false(ox_storage_activated(one(&c)->st));
    assert_ok(one(&c), broker_call(one(&c), ox_storage_list));
    assert_true(broker_says(one(&c), "\"name\":\"default\",\"metadataServiceUri\":\"sim:a\",\"status\":\"ACTIVE\""));
    assert_ok(one(&c), broker_call(one(&c), ox_storage_status));
    assert_true(broker_says(
        one(&c), "\"active\":\"default\",\"epoch\":0,\"bootstrap\":\"default\",\"activated\":false,\"previous\":null"));
    assert_ok(one(&c), broker_switch(one(&c), "default", false));
    assert_true(broker_says(one(&c), "\"noop\":true"));
    cluster_fini(&c);
}

static void test_activation_writes_these_nodes(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c);
    struct ox_mledger *ml = broker_log(one(&c), "t");
    broker_append(one(&c), ml, "x");
    assert_ok(one(&c), broker_register(one(&c), "b", "sim://b"));
    assert_true(broker_says(one(&c), "\"status\":\"STANDBY\""));
    assert_true(one(&c)->factory.settings.stamps);
    assert_true(ox_storage_activated(one(&c)->st));
    cluster_sleep(&c, OX_SEC);
    assert_true(cluster_node_has(
        &c, 0,
        ROOT "/default", "{\"name\":\"default\",\"metadataServiceUri\":\"sim:a\",\"status\":\"ACTIVE\",\"identity\":\"00000000-0000-4000-8000-000000000001\"}"));
    assert_true(cluster_node_has(
        &c, 0,
        ROOT "/b", "{\"name\":\"b\",\"metadataServiceUri\":\"sim:b\",\"status\":\"STANDBY\",\"identity\":\"00000000-0000-4000-8000-000000000002\"}"));
    assert_true(cluster_node_has(&c, 0, ROOT "/bootstrap", "{\"bootstrapClusterName\":\"default\",\"recordedAt\":"));
    assert_true(cluster_node_has(&c, 0, ROOT "/bootstrap", "\"maxLedgerId\":2}"));
    assert_true(cluster_node_has(&c, 0, "/oxbow/places/b", "00000000-0000-4000-8000-000000000002"));
    assert_true(cluster_node_has(&c, 0, "/oxbow/places/default", "00000000-0000-4000-8000-000000000001"));
    assert_true(cluster_node_has(&c, 0, ROOT "/acks/0/broker-0:8080", ""));
    assert_null(cluster_node(&c, 0, ROOT "/switch-target"));
    broker_log_close(one(&c), ml);
    cluster_fini(&c);
}

static int64_t next_id(struct broker *b, uint32_t place)
{
    struct ox_next_id next = {0};
    ox_op_init(&next.op, b->loop, ox_sim_done, "test");
    ox_place_next_id(ox_router_place(&b->router, place), &next);
    assert_int_equal(ox_sim_wait(b->cluster->sim, &next.op), OX_OK);
    return next.id;
}

// Message ids order a log: a generator never starts below an id that is in use anywhere.
// fault: C9
static void test_registering_pushes_every_generator(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c);
    struct broker *b = one(&c);
    int64_t used = 0;
    while (used < 50)
        used = next_id(b, 0);
    assert_ok(b, broker_register(b, "b", "sim:b"));
    uint32_t index = storage_place_find(b->st, "b")->index;
    assert_true(next_id(b, index) > used);
    while (used < 90)
        used = next_id(b, index);
    assert_ok(b, broker_register(b, "c", "sim:c"));
    assert_true(next_id(b, storage_place_find(b->st, "c")->index) > used);
    assert_true(next_id(b, 0) > used);
    while (used < 200)
        used = next_id(b, 0);
    assert_ok(b, broker_switch(b, "b", false)); // and again before it becomes active
    assert_true(next_id(b, index) > used);
    cluster_fini(&c);
}

// fault: B11 F11
static void test_registering_refuses(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c);
    struct broker *b = one(&c);
    assert_err(b, broker_register(b, "switch", "sim:b"), "INVALID", "reserved");
    assert_err(b, broker_register(b, "a b", "sim:b"), "INVALID", "letters");
    assert_err(b, broker_register(b, "b", "zk://x"), "INVALID", "begins with sim:");
    assert_err(b, broker_register(b, "b", "sim:a"), "INVALID", "already, as default");
    assert_err(b, broker_register(b, "b", "sim:alias-a"), "INVALID", "same storage as default");
    assert_err(b, broker_register(b, "b", "sim:z"), "INVALID", "cannot be opened");
    assert_err(b, broker_register(b, "default", "sim:b"), "CONFLICT", "default is registered at sim:a");
    assert_err(b, broker_register(b, "b", "sim:a/b"), "INVALID", "sim:a/b lies within sim:a, the storage of default");
    c.away[1] = true;
    assert_err(b, broker_register(b, "b", "sim:b"), "CONNECTION_REFUSED", "b at sim:b cannot be opened");
    c.away[1] = false;
    char *tree = cluster_tree(&c, 0, "/admin");
    assert_string_equal(tree, ""); // nothing of all that was written
    ox_free(tree);
    assert_ok(b, broker_register(b, "b", "sim:b"));
    assert_ok(b, broker_register(b, "b", "sim:b")); // again
    assert_err(b, broker_register(b, "b", "sim:c"), "CONFLICT", "b is registered at sim:b");
    assert_err(b, broker_register(b, "c", "sim:alias-b"), "INVALID", "same storage as b");
    cluster_fini(&c);
}

static void test_registering_stops_at_every_arrow_and_goes_on(void **state)
{
    (void)state;
    static const char *const points[] = {"register.after_open",     "register.after_ids",
                                         "register.after_identity", "register.after_first_entry",
                                         "register.after_entries",  "register.after_bootstrap"};
    for (size_t i = 0; i < OX_COUNT(points); i++) {
        struct cluster c;
        cluster_init(&c);
        ox_sim_arm(one(&c)->node, points[i], 1, OX_SIM_CRASH_PROCESS);
        broker_register(one(&c), "b", "sim:b");
        assert_true(one(&c)->loop->dead);
        broker_kill(&c, 0);
        broker_restart(&c, 0);
        assert_string_equal(broker_active(one(&c)), "default");
        assert_int_equal(storage_place_find(one(&c)->st, "default")->index, 0);
        if (i == 4) // the second place is known but nothing may name it yet
            assert_err(one(&c), broker_switch(one(&c), "b", false), "CONFLICT", "register it once more");
        assert_ok(one(&c), broker_register(one(&c), "b", "sim:b"));
        assert_true(ox_storage_activated(one(&c)->st));
        assert_true(cluster_node_has(&c, 0, ROOT "/bootstrap", "default"));
        assert_true(cluster_node_has(&c, 0, ROOT "/default", "ACTIVE"));
        assert_true(cluster_node_has(&c, 0, ROOT "/b", "STANDBY"));
        assert_ok(one(&c), broker_switch(one(&c), "b", false));
        assert_string_equal(broker_active(one(&c)), "b");
        cluster_fini(&c);
    }
}

static void registering_unknown(struct cluster *c, bool write, const char *path, struct ox_meta_fault *fault)
{
    (void)path;
    if (write && c->hook_count++ % 2 == 0)
        fault->outcome = c->hook_count % 4 == 1 ? OX_META_FAIL_AFTER : OX_META_FAIL_UNKNOWN;
}

static void test_registering_rereads_unknown_outcomes(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c);
    c.on_meta = registering_unknown;
    assert_ok(one(&c), broker_register(one(&c), "b", "sim:b"));
    c.on_meta = NULL;
    assert_true(cluster_node_has(&c, 0, ROOT "/bootstrap", "default"));
    assert_true(cluster_node_has(&c, 0, ROOT "/b", "sim:b"));
    broker_restart(&c, 0);
    assert_true(ox_storage_activated(one(&c)->st));
    cluster_fini(&c);
}

static void ledger_is_made_meanwhile(struct cluster *c, bool write, const char *path, struct ox_meta_fault *fault)
{
    (void)fault;
    if (write && strcmp(path, ROOT "/b") == 0)
        one(c)->router.id_floor = 50;
    if (write && strcmp(path, ROOT "/bootstrap") == 0) {
        c->hook_count++;
        assert_true(one(c)->factory.settings.stamps);
    }
}

// Topics are opened while the first place is registered: what their records name without a stamp is not above the id that the bootstrap record notes.
static void test_activation_notes_ledgers_that_are_made_meanwhile(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c);
    c.on_meta = ledger_is_made_meanwhile;
    assert_ok(one(&c), broker_register(one(&c), "b", "sim:b"));
    c.on_meta = NULL;
    assert_true(c.hook_count > 0);
    assert_true(cluster_node_has(&c, 0, ROOT "/bootstrap", "\"maxLedgerId\":50}"));
    cluster_fini(&c);
}

static void test_another_broker_learns_of_it(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c);
    assert_int_equal(broker_start(&c, 1), OX_OK);
    assert_ok(one(&c), broker_register(one(&c), "b", "sim:b"));
    cluster_sleep(&c, 25 * OX_SEC);
    struct broker *two = &c.brokers[1];
    assert_true(ox_storage_activated(two->st));
    assert_true(two->factory.settings.stamps);
    assert_non_null(storage_place_find(two->st, "b"));
    assert_non_null(ox_router_place(&two->router, storage_place_find(two->st, "b")->index));
    assert_true(cluster_node_has(&c, 0, ROOT "/acks/0/broker-1:8080", ""));
    cluster_fini(&c);
}

// ---- start-up --------------------------------------------------------------------------------------------------------

// B12, and the same for the place that is not needed at once.
// fault: B12
static void test_start_knows_a_changed_storage(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c);
    assert_ok(one(&c), broker_register(one(&c), "b", "sim:b"));
    broker_stop(&c, 0);
    struct ox_sim_store *old = c.stores[1], *fresh = ox_sim_store_new(9);
    c.stores[1] = fresh;
    cluster_forget(&c);
    broker_restart(&c, 0);
    assert_true(cluster_logged(&c, "storage.place.changed place=b"));
    assert_true(cluster_logged(
        &c, "its identity changed from 00000000-0000-4000-8000-000000000002 to 00000000-0000-4000-8000-000000000009"));
    uint32_t index = storage_place_find(one(&c)->st, "b")->index;
    struct ox_ledger_open open = {0};
    ox_op_init(&open.op, one(&c)->loop, ox_sim_done, "test");
    ox_router_open(&one(&c)->router, &open, (struct ox_location){index, 5, 5}, OX_OPEN_READ_ONLY, NULL);
    assert_string_equal(ox_err_name(ox_sim_wait(c.sim, &open.op)), "PLACE_CHANGED"); // never NO_LEDGER
    assert_err(one(&c), broker_switch(one(&c), "b", false), "CONFLICT", "its identity changed");
    cluster_sleep(&c, 30 * OX_SEC);
    assert_null(ox_router_place(&one(&c)->router, index));
    broker_stop(&c, 0);
    c.stores[1] = old;
    broker_restart(&c, 0);
    assert_non_null(ox_router_place(&one(&c)->router, index));
    broker_stop(&c, 0);
    old = c.stores[0];
    c.stores[0] = fresh;
    assert_string_equal(ox_err_name(broker_start(&c, 0)), "PLACE_CHANGED");
    assert_true(broker_says(one(&c), "its identity changed from 00000000-0000-4000-8000-000000000001"));
    assert_true(broker_says(one(&c), "does not start without it"));
    c.stores[0] = old;
    ox_sim_store_free(fresh);
    broker_restart(&c, 0);
    cluster_fini(&c);
}

// The identity under /oxbow/places counts as much as the one in the entry, which may have been written by hand.
static void test_start_compares_with_what_managed_ledgers_know(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c);
    assert_ok(one(&c), broker_register(one(&c), "b", "sim:b"));
    assert_ok(&c.brokers[1], broker_start(&c, 1));
    broker_stop(&c, 0);
    cluster_put(&c, 1, "/oxbow/places/b", "00000000-0000-4000-8000-00000000000f");
    cluster_forget(&c);
    broker_restart(&c, 0);
    assert_true(cluster_logged(&c, "storage.place.changed place=b"));
    assert_string_equal(ox_err_name(one(&c)->router.slots[storage_place_find(one(&c)->st, "b")->index].err),
                        "PLACE_CHANGED");
    broker_stop(&c, 0);
    cluster_put(&c, 1, "/oxbow/places/default", "00000000-0000-4000-8000-00000000000f");
    assert_string_equal(ox_err_name(broker_start(&c, 0)), "PLACE_CHANGED");
    cluster_fini(&c);
}

static void test_start_refused_without_the_active_place(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c);
    assert_ok(one(&c), broker_register(one(&c), "b", "sim:b"));
    broker_stop(&c, 0);
    c.away[0] = true;
    assert_string_equal(ox_err_name(broker_start(&c, 0)), "CONNECTION_REFUSED");
    assert_true(broker_says(one(&c), "the storage of default at sim:a cannot be opened"));
    assert_true(broker_says(one(&c), "make it reachable, then start again"));
    c.away[0] = false;
    broker_restart(&c, 0);
    cluster_fini(&c);
}

static void test_a_place_out_of_reach_comes_back(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c);
    assert_ok(one(&c), broker_register(one(&c), "b", "sim:b"));
    broker_stop(&c, 0);
    c.away[1] = true;
    cluster_forget(&c);
    broker_restart(&c, 0);
    assert_true(cluster_logged(&c, "storage.place.closed place=b error=CONNECTION_REFUSED"));
    uint32_t index = storage_place_find(one(&c)->st, "b")->index;
    cluster_sleep(&c, 60 * OX_SEC);
    assert_null(ox_router_place(&one(&c)->router, index));
    assert_ok(one(&c), broker_call(one(&c), ox_storage_list));
    assert_true(broker_says(one(&c), "\"state\":\"PLACE_CLOSED\""));
    c.away[1] = false;
    cluster_sleep(&c, 11 * OX_SEC);
    assert_non_null(ox_router_place(&one(&c)->router, index));
    cluster_fini(&c);
}

// B9
// fault: B9
static void test_start_refused_without_bootstrap_record(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c);
    assert_ok(one(&c), broker_register(one(&c), "b", "sim:b"));
    assert_ok(one(&c), broker_switch(one(&c), "b", false));
    assert_int_equal(broker_wait_over(one(&c)), STORAGE_DONE);
    cluster_forget(&c);
    char *before = cluster_node(&c, 0, ROOT "/bootstrap");
    cluster_delete(&c, 0, ROOT "/bootstrap"); // a running one alarms, and puts it back as it was
    cluster_sleep(&c, 11 * OX_SEC);
    assert_true(cluster_logged(&c, "storage.bootstrap.missing"));
    assert_true(cluster_node_has(&c, 0, ROOT "/bootstrap", before));
    ox_free(before);
    assert_int_equal(broker_start(&c, 1), OX_OK);
    broker_stop(&c, 0);
    cluster_delete(&c, 1, ROOT "/bootstrap");
    assert_string_equal(ox_err_name(broker_start(&c, 0)), "CONFLICT");
    assert_true(broker_says(one(&c), "bootstrap is missing, but a switch to b was made"));
    cluster_sleep(&c, 11 * OX_SEC);
    broker_restart(&c, 0);
    cluster_fini(&c);
}

// B10
// fault: B10
static void test_start_refused_for_another_uri(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c);
    assert_ok(one(&c), broker_register(one(&c), "b", "sim:b"));
    broker_stop(&c, 0);
    one(&c)->config.default_uri = "sim:c";
    one(&c)->config.default_uri_explicit = true;
    assert_string_equal(ox_err_name(broker_start(&c, 0)), "CONFLICT");
    assert_true(broker_says(one(&c), "bookkeeperMetadataServiceUri is sim:c"));
    assert_true(broker_says(one(&c), "registered at sim:a"));
    one(&c)->config.default_uri = "sim:a";
    broker_restart(&c, 0);
    cluster_fini(&c);
}

static void test_a_moved_data_folder_is_known_by_its_identity(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c);
    assert_ok(one(&c), broker_register(one(&c), "b", "sim:b"));
    broker_stop(&c, 0);
    one(&c)->config.default_uri = "sim:alias-a";
    broker_restart(&c, 0);
    assert_string_equal(ox_router_place(&one(&c)->router, 0)->uri, "sim:alias-a");
    cluster_sleep(&c, OX_SEC);
    assert_true(cluster_node_has(&c, 0, ROOT "/default", "sim:alias-a"));
    broker_stop(&c, 0);
    one(&c)->config.default_uri = "sim:c"; // another storage lies there: what is registered counts
    broker_restart(&c, 0);
    assert_string_equal(ox_router_place(&one(&c)->router, 0)->uri, "sim:alias-a");
    cluster_fini(&c);
}

static void test_current_cluster_name_is_a_hint(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c);
    assert_ok(one(&c), broker_register(one(&c), "b", "sim:b"));
    broker_stop(&c, 0);
    one(&c)->config.current = "b";
    broker_restart(&c, 0);
    assert_string_equal(broker_active(one(&c)), "b");
    assert_ok(one(&c), broker_switch(one(&c), "default", false));
    broker_restart(&c, 0); // the directive wins
    assert_string_equal(broker_active(one(&c)), "default");
    broker_stop(&c, 0);
    one(&c)->config.current = "nobody";
    broker_restart(&c, 0);
    cluster_fini(&c);
    cluster_init(&c);
    broker_stop(&c, 0);
    one(&c)->config.current = "nobody";
    assert_string_equal(ox_err_name(broker_start(&c, 0)), "CONFLICT");
    assert_true(broker_says(
        one(&c), "nobody is to be active (by bookieClusterSwitch.currentClusterName), but it is not registered"));
    cluster_fini(&c);
}

static void test_records_that_cannot_be_understood(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c);
    assert_ok(one(&c), broker_register(one(&c), "b", "sim:b"));
    assert_int_equal(broker_start(&c, 1), OX_OK);
    broker_stop(&c, 0);
    cluster_put(&c, 1, ROOT "/c", "{\"name\":7}"); // a place of which nothing is known but its name
    cluster_put(&c, 1, ROOT "/d", "{\"name\":\"d\",\"metadataServiceUri\":\"sim:d\",\"status\":\"STANDBY\",\"zone\":1}");
    broker_restart(&c, 0);
    assert_null(ox_router_place(&one(&c)->router, storage_place_find(one(&c)->st, "c")->index));
    assert_non_null(ox_router_place(&one(&c)->router, storage_place_find(one(&c)->st, "d")->index));
    assert_ok(one(&c), broker_register(one(&c), "c", "sim:c")); // that repairs it
    assert_true(broker_says(one(&c), "\"metadataServiceUri\":\"sim:c\",\"status\":\"STANDBY\""));
    assert_true(cluster_node_has(
        &c, 1, ROOT "/c", "{\"name\":\"c\",\"metadataServiceUri\":\"sim:c\",\"status\":\"STANDBY\",\"identity\":"));
    broker_restart(&c, 0);
    assert_non_null(ox_router_place(&one(&c)->router, storage_place_find(one(&c)->st, "c")->index));
    broker_stop(&c, 0);
    cluster_put(&c, 1, ROOT "/bootstrap", "what");
    assert_string_equal(ox_err_name(broker_start(&c, 0)), "CONFLICT");
    assert_true(broker_says(one(&c), ROOT "/bootstrap cannot be understood"));
    broker_stop(&c, 1);
    cluster_fini(&c);
}

// ---- leaving ---------------------------------------------------------------------------------------------------------

// fault: F10
static void test_unregistering_refuses_what_is_named(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c);
    struct broker *b = one(&c);
    struct ox_mledger *ml = broker_log(b, "public/default/persistent/t");
    broker_append(b, ml, "x");
    assert_err(b, broker_unregister(b, "b"), "NO_PLACE", "registered as b");
    assert_err(b, broker_unregister(b, "default"), "CONFLICT", "is active");
    assert_ok(b, broker_register(b, "b", "sim:b"));
    assert_ok(b, broker_register(b, "c", "sim:c"));
    assert_ok(b, broker_unregister(b, "c"));
    assert_null(cluster_node(&c, 0, ROOT "/c"));
    assert_null(cluster_node(&c, 0, "/oxbow/places/c"));
    assert_ok(b, broker_register(b, "c", "sim:d")); // the name is free again, for any storage
    assert_ok(b, broker_switch(b, "b", false));
    assert_err(b, broker_unregister(b, "default"), "CONFLICT", "is not finished");
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    broker_append(b, ml, "y");
    assert_err(b, broker_unregister(b, "default"), "CONFLICT", "default holds 1 ledgers");
    assert_true(broker_says(b, "public/default/persistent/t"));
    broker_log_close(b, ml);
    cluster_fini(&c);
}

static void test_the_bootstrap_place_may_go_when_it_is_empty(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c);
    struct broker *b = one(&c);
    assert_ok(b, broker_register(b, "b", "sim:b"));
    assert_ok(b, broker_switch(b, "b", false));
    assert_int_equal(broker_wait_over(b), STORAGE_DONE);
    assert_ok(b, broker_unregister(b, "default"));
    assert_err(b, broker_call(b, ox_storage_rollback), "CONFLICT", "nothing to go back to: default was unregistered");
    assert_string_equal(ox_err_name(b->router.slots[0].err), "NO_PLACE");
    broker_restart(&c, 0);
    assert_string_equal(broker_active(b), "b");
    assert_string_equal(ox_router_name(&b->router, 0), "default");
    assert_string_equal(ox_err_name(b->router.slots[0].err), "NO_PLACE");
    assert_err(b, broker_register(b, "default", "sim:c"), "INVALID", "bootstrap bookie cluster's");
    assert_ok(b, broker_register(b, "default", "sim:a")); // the same storage as ever
    assert_non_null(ox_router_place(&b->router, 0));
    cluster_fini(&c);
}

static void slow_create(struct cluster *c, enum ox_sim_place_call call, int64_t ledger, struct ox_sim_place_fault *fault)
{
    (void)c;
    (void)ledger;
    if (call == OX_SIM_CALL_CREATE)
        fault->before_ns = 10 * OX_SEC;
}

// A ledger is being made in it (before a switch, say): its handle would be left in a place that is closed.
static void test_a_place_where_a_ledger_is_being_made_stays_open(void **state)
{
    (void)state;
    struct cluster c;
    struct ox_router_create create = {0};
    struct ox_kv custom = {0};
    cluster_init(&c);
    struct broker *b = one(&c);
    assert_ok(b, broker_register(b, "b", "sim:b"));
    c.on_place = slow_create;
    ox_op_init(&create.op, b->loop, ox_sim_done, "create");
    ox_router_create_in(&b->router, &create, 1, -1, &custom);
    cluster_sleep(&c, OX_SEC);
    assert_err(b, broker_unregister(b, "b"), "BUSY", "something is being done in b");
    assert_non_null(ox_router_place(&b->router, 1));
    assert_int_equal(ox_sim_wait(c.sim, &create.op), OX_OK);
    assert_err(b, broker_unregister(b, "b"), "CONFLICT", "is being read");
    ox_ledger_release(create.ledger);
    assert_ok(b, broker_unregister(b, "b"));
    cluster_fini(&c);
}

static void entry_goes_unheard(struct cluster *c, bool write, const char *path, struct ox_meta_fault *fault)
{
    if (write && !strcmp(path, ROOT "/b") && c->hook_count++ == 0)
        fault->outcome = OX_META_FAIL_AFTER;
}

// The entry went, its answer got lost: the place is still known here. Registering it again must write all of it again.
static void test_registering_writes_again_what_an_unregistration_took(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c);
    struct broker *b = one(&c);
    assert_ok(b, broker_register(b, "b", "sim:b"));
    c.on_meta = entry_goes_unheard;
    broker_unregister(b, "b");
    c.on_meta = NULL;
    assert_true(broker_says(b, "could not be removed"));
    assert_ok(b, broker_register(b, "b", "sim:b"));
    assert_true(cluster_node_has(&c, 0, ROOT "/b", "sim:b"));
    assert_true(cluster_node_has(&c, 0, "/oxbow/places/b", ox_router_place(&b->router, 1)->identity));
    assert_ok(b, broker_switch(b, "b", false));
    cluster_fini(&c);
}

static void test_unregistering_stops_at_every_arrow_and_goes_on(void **state)
{
    (void)state;
    static const char *const points[] = {"unregister.after_close", "unregister.after_identity"};
    for (size_t i = 0; i < OX_COUNT(points); i++) {
        struct cluster c;
        cluster_init(&c);
        assert_ok(one(&c), broker_register(one(&c), "b", "sim:b"));
        ox_sim_arm(one(&c)->node, points[i], 1, OX_SIM_CRASH_PROCESS);
        broker_unregister(one(&c), "b");
        assert_true(one(&c)->loop->dead);
        broker_kill(&c, 0);
        broker_restart(&c, 0);
        assert_ok(one(&c), broker_unregister(one(&c), "b"));
        assert_ok(one(&c), broker_register(one(&c), "b", "sim:c"));
        cluster_fini(&c);
    }
}

static void test_a_name_of_another_storage_is_refused(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c);
    cluster_put(&c, 0, "/oxbow/places/b", "00000000-0000-4000-8000-00000000000f");
    assert_err(one(&c), broker_register(one(&c), "b", "sim:b"), "INVALID", "belonged to another storage");
    assert_null(cluster_node(&c, 0, ROOT "/b"));
    cluster_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_written_before_activation),
        cmocka_unit_test(test_activation_writes_these_nodes),
        cmocka_unit_test(test_activation_notes_ledgers_that_are_made_meanwhile),
        cmocka_unit_test(test_registering_pushes_every_generator),
        cmocka_unit_test(test_registering_refuses),
        cmocka_unit_test(test_registering_stops_at_every_arrow_and_goes_on),
        cmocka_unit_test(test_registering_rereads_unknown_outcomes),
        cmocka_unit_test(test_another_broker_learns_of_it),
        cmocka_unit_test(test_start_knows_a_changed_storage),
        cmocka_unit_test(test_start_compares_with_what_managed_ledgers_know),
        cmocka_unit_test(test_start_refused_without_the_active_place),
        cmocka_unit_test(test_a_place_out_of_reach_comes_back),
        cmocka_unit_test(test_start_refused_without_bootstrap_record),
        cmocka_unit_test(test_start_refused_for_another_uri),
        cmocka_unit_test(test_a_moved_data_folder_is_known_by_its_identity),
        cmocka_unit_test(test_current_cluster_name_is_a_hint),
        cmocka_unit_test(test_records_that_cannot_be_understood),
        cmocka_unit_test(test_unregistering_refuses_what_is_named),
        cmocka_unit_test(test_the_bootstrap_place_may_go_when_it_is_empty),
        cmocka_unit_test(test_a_place_where_a_ledger_is_being_made_stays_open),
        cmocka_unit_test(test_registering_writes_again_what_an_unregistration_took),
        cmocka_unit_test(test_unregistering_stops_at_every_arrow_and_goes_on),
        cmocka_unit_test(test_a_name_of_another_storage_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
