// topic_policies_test.c - policies in force: namespaces' and topics' own, changed while topics are loaded, and after a crash.
#include "broker/topic_policies.h"

#include "base/limits.h"
#include "base/mem.h"
#include "broker/compaction.h"
#include "broker/fixture.h"
#include "broker/policy_event.h"
#include "broker/policy_scope.h"

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

static void slow_answers(struct ox_meta_memory_faults *f, bool write, const char *path, struct ox_meta_fault *fault)
{
    (void)f;
    if (!write && strcmp(path, "/admin/policies/public/default") == 0)
        fault->after_ns = OX_SEC;
}

// Two reads of a second each, the namespace and its scope: the node changes while the second answer is on its way.
static void test_namespace_policies_that_change_while_they_are_read_are_followed(void **state)
{
    (void)state;
    static const char path[] = "/admin/policies/public/default", text[] = "{\"message_ttl_in_seconds\":12}";
    struct rig r;
    struct ox_topic_name name;
    struct ox_topic_get get = {.create = true};
    struct ox_meta_put put;
    rig_init(&r);
    void (*choose)(struct ox_meta_memory_faults *, bool, const char *, struct ox_meta_fault *) = r.meta_faults.choose;
    r.meta_faults.choose = slow_answers;
    assert_int_equal(ox_topic_name_parse(&name, "t"), OX_OK);
    rig_op(&r, &get.op);
    ox_topic_get(&r.shard, &get, &name);
    ox_topic_name_fini(&name);
    ox_sim_run_for(r.sim, OX_SEC * 3 / 2);
    r.meta_faults.choose = choose;
    rig_op(&r, &put.op);
    ox_meta_put(r.meta, &put, path, ox_buf_static(text, strlen(text)), OX_META_ANY, 0);
    assert_int_equal(rig_wait(&r, &put.op), OX_OK);
    ox_free(put.path);
    assert_int_equal(rig_wait(&r, &get.op), OX_OK);
    rig_settle(&r);
    assert_int_equal(get.topic->policies.ttl_s, 12);
    ox_topic_put(get.topic);
    rig_fini(&r);
}

static void test_namespace_policies_reach_many_topics_in_portions(void **state)
{
    (void)state;
    struct rig r;
    struct ox_topic *t[300];
    rig_init(&r);
    for (size_t i = 0; i < OX_COUNT(t); i++) {
        OX_CLEANUP(ox_free_ptr)
        char *name = ox_asprintf("t%zu", i);
        t[i] = rig_topic(&r, name);
    }
    json_t *policies = json_loads("{\"message_ttl_in_seconds\":12}", 0, NULL);
    struct policy_scope *scope = scope_find(&r.shard, "public/default");
    size_t changed = 0;
    scope_take(scope, policies, INT64_MAX - 1);
    for (size_t i = 0; i < OX_COUNT(t); i++)
        changed += t[i]->policies.ttl_s == 12;
    assert_int_equal(changed, 128); // one turn
    struct ox_op op;
    rig_op(&r, &op);
    ox_topic_put(t[200]);
    ox_topic_unload(&r.shard, &op, "persistent://public/default/t200");
    assert_int_equal(rig_wait(&r, &op), OX_OK);
    json_object_set_new(policies, "message_ttl_in_seconds", json_integer(13));
    scope_take(scope, policies, INT64_MAX); // begins anew
    rig_settle(&r);
    for (size_t i = 0; i < OX_COUNT(t); i++) {
        if (i == 200)
            continue;
        assert_int_equal(t[i]->policies.ttl_s, 13);
        ox_topic_put(t[i]);
    }
    json_decref(policies);
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

static struct {
    int64_t ledger, bad;
    unsigned log_reads, failures;
} reads;

// Counts reads of the log.
static void count_reads(struct rig *r, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                        struct ox_sim_place_fault *fault)
{
    (void)r;
    (void)entry;
    if (call != OX_SIM_CALL_READ)
        return;
    reads.log_reads += ledger == reads.ledger;
    if (ledger == reads.bad) {
        fault->err = OX_E_PLACE_FAILED;
        reads.failures++;
    }
}

static void test_topic_policies_are_compacted_and_then_read_from_what_is_left(void **state)
{
    (void)state;
    struct rig r;
    struct ox_compaction_info info;
    int gone = 3, ttl = 0;
    rig_init(&r);
    assert_int_equal(update(&r, "gone", &gone), OX_OK);
    assert_int_equal(update(&r, "gone", NULL), OX_OK);
    for (ttl = 1; ttl < (int)OX_POLICY_EVENTS_MORE_MAX + 10; ttl++)
        assert_int_equal(update(&r, ttl % 2 ? "odd" : "even", &ttl), OX_OK);
    ox_sim_run_for(r.sim, r.shard.config.compaction_check_ns + OX_SEC);
    struct ox_topic *t = rig_topic(&r, "__change_events");
    ox_compaction_info(t, &info);
    assert_true(info.ledger >= 0);
    assert_int_equal(info.entries, 2);
    reads.ledger = t->ml->ledgers[0]->where.id;
    assert_true(ox_pos_equal(info.horizon, t->ml->last));
    assert_int_equal(t->ml->total_entries, OX_POLICY_EVENTS_MORE_MAX + 11); // the log keeps them all
    ox_topic_put(t);
    assert_int_equal(update(&r, "even", NULL), OX_OK); // behind the horizon
    for (unsigned round = 0; round < 2; round++) {
        reads.log_reads = reads.failures = 0;
        reads.bad = round == 1 ? info.ledger : -1; // where the compacted ledger cannot be read the log is
        r.on_place = NULL;
        r.config.resend_ns = 0; // else the log is looked through for what may be sent again
        rig_crash(&r);
        r.on_place = count_reads;
        assert_int_equal(own_ttl(&r, "odd", NULL), OX_POLICY_EVENTS_MORE_MAX + 9);
        assert_int_equal(own_ttl(&r, "even", NULL), -1);
        assert_int_equal(own_ttl(&r, "gone", NULL), -1);
        assert_int_equal(reads.log_reads > 1, round == 1); // one is what lies behind the horizon
        assert_int_equal(reads.failures > 0, round == 1);
    }
    r.on_place = NULL;
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_namespace_policies_reach_loaded_topics),
        cmocka_unit_test(test_namespace_policies_reach_many_topics_in_portions),
        cmocka_unit_test(test_topic_policies_are_compacted_and_then_read_from_what_is_left),
        cmocka_unit_test(test_namespace_policies_that_change_while_they_are_read_are_followed),
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
