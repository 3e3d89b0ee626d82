// topic_policies_test.c - policies in force: namespaces' and topics' own, changed while topics are loaded, and after a crash.
#include "broker/topic_policies.h"

#include "base/mem.h"
#include "broker/fixture.h"
#include "broker/policy_event.h"

static enum ox_err set_ttl(struct ox_topic_policies_update *u, json_t *policies)
{
    json_object_set_new(policies, "messageTTLInSeconds", json_integer(*(int *)u->ctx));
    return OX_OK;
}

static enum ox_err update(struct rig *r, const char *topic, int *ttl)
{
    struct ox_topic_name name;
    struct ox_topic_policies_update u = {.change = ttl ? set_ttl : NULL, .ctx = ttl};
    assert_int_equal(ox_topic_name_parse(&name, topic), OX_OK);
    rig_op(r, &u.op);
    ox_topic_policies_update(&r->shard, &u, &name);
    ox_topic_name_fini(&name);
    return rig_wait(r, &u.op);
}

// The topic's own TTL, -1 if it has no policies; *ret_applied: what is in force.
static int64_t own_ttl(struct rig *r, const char *topic, int64_t *ret_applied)
{
    struct ox_topic_name name;
    struct ox_topic_policies_get g;
    assert_int_equal(ox_topic_name_parse(&name, topic), OX_OK);
    rig_op(r, &g.op);
    ox_topic_policies_get(&r->shard, &g, &name);
    ox_topic_name_fini(&name);
    assert_int_equal(rig_wait(r, &g.op), OX_OK);
    int64_t ttl = g.own ? json_integer_value(json_object_get(g.own, "messageTTLInSeconds")) : -1;
    if (ret_applied)
        *ret_applied = g.applied.ttl_s;
    json_decref(g.own);
    return ttl;
}

static void test_namespace_policies_reach_loaded_topics(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(t->policies.ttl_s, 0);
    rig_policies(&r, "{\"message_ttl_in_seconds\":12,\"max_producers_per_topic\":3}");
    assert_int_equal(t->policies.ttl_s, 12);
    assert_int_equal(t->policies.max_producers, 3);
    ox_topic_put(t);
    rig_fini(&r);
}

// ---- topics' own

static void test_topic_policies_are_in_force_at_once_and_after_a_crash(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    int ttl = 5;
    int64_t applied;
    struct ox_topic *t = rig_topic(&r, "t"), *other = rig_topic(&r, "t2");
    assert_int_equal(own_ttl(&r, "t", NULL), -1);
    assert_int_equal(update(&r, "t", &ttl), OX_OK);
    assert_int_equal(t->policies.ttl_s, 5);
    assert_int_equal(other->policies.ttl_s, 0);
    ttl = 6;
    assert_int_equal(update(&r, "t", &ttl), OX_OK);
    assert_int_equal(t->policies.ttl_s, 6);
    ox_topic_put(t);
    ox_topic_put(other);
    rig_crash(&r);
    assert_int_equal(own_ttl(&r, "t", &applied), 6);
    assert_int_equal(applied, 6);
    t = rig_topic(&r, "t");
    assert_int_equal(t->policies.ttl_s, 6);
    assert_int_equal(update(&r, "t", NULL), OX_OK);
    assert_int_equal(t->policies.ttl_s, 0);
    ox_topic_put(t);
    rig_restart(&r);
    assert_int_equal(own_ttl(&r, "t", NULL), -1);
    rig_fini(&r);
}

static void test_topic_policies_are_those_of_all_partitions(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    int ttl = 5;
    struct ox_topic *t = rig_topic(&r, "t-partition-1");
    assert_int_equal(update(&r, "t-partition-3", &ttl), OX_OK);
    assert_int_equal(t->policies.ttl_s, 5);
    assert_int_equal(own_ttl(&r, "t", NULL), 5);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_topic_policies_in_one_namespace_do_not_wait_for_or_disturb_each_other(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    enum { N = 20 };
    static struct ox_topic_policies_update u[N];
    int ttl[N];
    struct ox_topic_name name;
    for (int i = 0; i < N; i++) {
        OX_CLEANUP(ox_free_ptr)
        char *text = ox_asprintf("persistent://public/default/t%d", i % 7);
        ttl[i] = 100 + i;
        u[i] = (struct ox_topic_policies_update){.change = set_ttl, .ctx = &ttl[i]};
        assert_int_equal(ox_topic_name_parse(&name, text), OX_OK);
        rig_op(&r, &u[i].op);
        ox_topic_policies_update(&r.shard, &u[i], &name);
        ox_topic_name_fini(&name);
    }
    for (int i = 0; i < N; i++)
        assert_int_equal(rig_wait(&r, &u[i].op), OX_OK);
    assert_int_equal(own_ttl(&r, "t5", NULL), 119);
    assert_int_equal(own_ttl(&r, "t6", NULL), 113);
    rig_fini(&r);
}

static void test_topic_policies_go_with_their_topic(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    int ttl = 5;
    struct ox_topic_name name;
    struct ox_topic_delete d = {0};
    ox_topic_put(rig_topic(&r, "t"));
    assert_int_equal(update(&r, "t", &ttl), OX_OK);
    assert_int_equal(ox_topic_name_parse(&name, "t"), OX_OK);
    rig_op(&r, &d.op);
    ox_topic_delete(&r.shard, &d, &name);
    assert_int_equal(rig_wait(&r, &d.op), OX_OK);
    ox_topic_name_fini(&name);
    assert_int_equal(own_ttl(&r, "t", NULL), -1);
    rig_crash(&r);
    assert_int_equal(own_ttl(&r, "t", NULL), -1);
    rig_fini(&r);
}

static void test_topic_policies_survive_the_unloading_of_their_log(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    int ttl = 5;
    struct ox_op op;
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(update(&r, "t", &ttl), OX_OK);
    rig_op(&r, &op);
    ox_topic_unload(&r.shard, &op, "persistent://public/default/" POLICY_EVENTS_LOCAL);
    assert_int_equal(rig_wait(&r, &op), OX_OK);
    assert_int_equal(t->policies.ttl_s, 5);
    ttl = 7;
    assert_int_equal(update(&r, "t", &ttl), OX_OK);
    assert_int_equal(t->policies.ttl_s, 7);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_topic_policies_published_by_a_client_are_followed(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    int ttl = 5;
    struct ox_topic *t = rig_topic(&r, "t"), *events = rig_topic(&r, POLICY_EVENTS_LOCAL);
    assert_int_equal(update(&r, "t2", &ttl), OX_OK);
    json_t *policies = json_pack("{s:i}", "messageTTLInSeconds", 33);
    struct policy_event_from from = {.producer = "p", .cluster = "standalone"};
    struct ox_buf entry;
    assert_int_equal(policy_event_build(&t->name, policies, &from, &entry), OX_OK);
    struct ox_ml_append append = {.messages = 1, .body = entry};
    json_decref(policies);
    rig_op(&r, &append.op);
    ox_mledger_append(events->ml, &append);
    assert_int_equal(rig_wait(&r, &append.op), OX_OK);
    ox_buf_unref(&entry);
    rig_settle(&r);
    assert_int_equal(t->policies.ttl_s, 33);
    ox_topic_put(t);
    ox_topic_put(events);
    rig_fini(&r);
}

static void fail_reads(struct rig *r, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                       struct ox_sim_place_fault *fault)
{
    (void)r;
    (void)ledger;
    (void)entry;
    if (call == OX_SIM_CALL_READ)
        fault->err = OX_E_IO;
}

static void test_topic_policies_that_cannot_be_read_keep_topics_from_loading(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    int ttl = 5;
    assert_int_equal(update(&r, "t", &ttl), OX_OK);
    rig_restart(&r);
    r.on_place = fail_reads;
    assert_int_not_equal(rig_topic_err(&r, "t", true), OX_OK);
    r.on_place = NULL;
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(t->policies.ttl_s, 5);
    ox_topic_put(t);
    rig_fini(&r);
}

static void test_topic_policies_of_system_topics_are_refused(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    int ttl = 5;
    assert_int_equal(update(&r, "__change_events", &ttl), OX_E_UNSUPPORTED);
    assert_int_equal(update(&r, "t", NULL), OX_OK);
    assert_int_equal(rig_topic_err(&r, "__change_events", false), OX_E_TOPIC_NOT_FOUND); // nothing was there to remove
    assert_int_equal(update(&r, "public/none/t", &ttl), OX_E_NAMESPACE_NOT_FOUND);
    r.shard.config.topic_policies = false;
    assert_int_equal(update(&r, "t", &ttl), OX_E_UNSUPPORTED);
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_namespace_policies_reach_loaded_topics),
        cmocka_unit_test(test_topic_policies_are_in_force_at_once_and_after_a_crash),
        cmocka_unit_test(test_topic_policies_are_those_of_all_partitions),
        cmocka_unit_test(test_topic_policies_in_one_namespace_do_not_wait_for_or_disturb_each_other),
        cmocka_unit_test(test_topic_policies_go_with_their_topic),
        cmocka_unit_test(test_topic_policies_survive_the_unloading_of_their_log),
        cmocka_unit_test(test_topic_policies_published_by_a_client_are_followed),
        cmocka_unit_test(test_topic_policies_that_cannot_be_read_keep_topics_from_loading),
        cmocka_unit_test(test_topic_policies_of_system_topics_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
