// topic_list_test.c - patterns with bounds, lists of many topics that are watched, namespaces and tenants that go, topics that end.
#include "broker/fixture.h"
#include "broker/namespace_admin.h"

#include <stdio.h>
#include <string.h>

static struct ox_topic_pattern *pattern(const char *text)
{
    struct ox_topic_pattern *p;
    char why[128];
    assert_int_equal(ox_topic_pattern_new(text, &p, why, sizeof why), OX_OK);
    return p;
}

static void expect_match(const char *text, const char *name, bool matches)
{
    struct ox_topic_pattern *p = pattern(text);
    assert_int_equal(ox_topic_pattern_matches(p, name), matches);
    ox_topic_pattern_free(p);
}

static void test_pattern_matches_whole_names_without_domains(void **state)
{
    (void)state;
    char why[128], wide[OX_TOPIC_PATTERN_BYTES_MAX + 2];
    struct ox_topic_pattern *none;
    expect_match("persistent://a/b/t.*", "persistent://a/b/topic", true);
    expect_match("a/b/t", "persistent://a/b/topic", false);
    expect_match("b/topic", "persistent://a/b/topic", false);
    expect_match("non-persistent://a/b/.*", "persistent://a/b/t", true);
    expect_match("a/b/(x|y)\\d+", "persistent://a/b/y12", true);
    expect_match("a/b/т.ма", "persistent://a/b/тема", true);
    assert_int_equal(ox_topic_pattern_new("a(", &none, why, sizeof why), OX_E_INVALID);
    assert_non_null(strstr(why, "Invalid topics pattern"));
    memset(wide, 'a', sizeof wide - 1);
    wide[sizeof wide - 1] = 0;
    assert_int_equal(ox_topic_pattern_new(wide, &none, why, sizeof why), OX_E_INVALID);
}

static void test_pattern_that_explodes_is_given_up(void **state)
{
    (void)state;
    expect_match("a/b/(x+x+)+y", "persistent://a/b/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", false);
}

// Otherwise a pattern of one client would keep all others waiting, or hide topics from it.
static void test_list_whose_pattern_explodes_is_left_to_the_client(void **state)
{
    (void)state;
    struct rig r;
    struct ox_topics_list list = {.pattern = pattern("public/default/(x+x+)+y|public/default/t")};
    rig_init(&r);
    assert_int_equal(rig_topic_err(&r, "t", true), OX_OK);
    assert_int_equal(rig_topic_err(&r, "u", true), OX_OK);
    rig_op(&r, &list.op);
    ox_topics_list(&r.shard, &list, "public/default");
    assert_int_equal(rig_wait(&r, &list.op), OX_OK);
    assert_true(list.filtered);
    assert_int_equal(list.count, 1);
    ox_topics_list_fini(&list);
    assert_int_equal(rig_topic_err(&r, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", true), OX_OK);
    rig_op(&r, &list.op);
    ox_topics_list(&r.shard, &list, "public/default");
    assert_int_equal(rig_wait(&r, &list.op), OX_OK);
    assert_false(list.filtered);
    assert_int_equal(list.count, 3);
    ox_topics_list_fini(&list);
    ox_topic_pattern_free(list.pattern);
    rig_fini(&r);
}

static void test_hash_of_no_names_is_zeros(void **state)
{
    (void)state;
    char hash[9];
    char *names[] = {(char *)(uintptr_t) "persistent://public/topics/w1796109541-a",
                     (char *)(uintptr_t) "persistent://public/topics/w1796109541-p-partition-0"};
    ox_topics_hash(NULL, 0, hash);
    assert_string_equal(hash, "00000000");
    ox_topics_hash(names, 2, hash); // as Pulsar 4.0.7 answered
    assert_string_equal(hash, "11282da5");
}

// ---- watching

struct watcher {
    struct ox_topics_watch watch;
    size_t added, removed, calls;
};

static void watcher_changed(struct ox_topics_watch *w, char *const *added, size_t added_count, char *const *removed,
                            size_t removed_count)
{
    struct watcher *me = w->owner;
    (void)added;
    (void)removed;
    me->added += added_count;
    me->removed += removed_count;
    me->calls++;
}

static void watcher_open(struct rig *r, struct watcher *w, const char *text)
{
    *w = (struct watcher){.watch = {.changed = watcher_changed, .owner = w, .pattern = pattern(text)}};
    rig_op(r, &w->watch.op);
    ox_topics_watch(&r->shard, &w->watch, "public/default");
    assert_int_equal(rig_wait(r, &w->watch.op), OX_OK);
}

static void watcher_close(struct watcher *w)
{
    ox_topics_unwatch(&w->watch);
    ox_topic_pattern_free(w->watch.pattern);
}

static void test_watchers_share_one_list_and_see_every_change_once(void **state)
{
    (void)state;
    struct rig r;
    struct watcher some, all;
    struct ox_partitions_create create = {.partitions = 500};
    struct ox_partitions_delete delete = {0};
    struct ox_topic_name name;
    rig_init(&r);
    watcher_open(&r, &some, ".*-partition-\\d");
    watcher_open(&r, &all, ".*");
    assert_int_equal(ox_map_count(&r.shard.boards), 1);
    assert_int_equal(ox_topic_name_parse(&name, "many"), OX_OK);
    rig_op(&r, &create.op);
    ox_partitions_create(&r.shard, &create, &name);
    assert_int_equal(rig_wait(&r, &create.op), OX_OK);
    rig_settle(&r);
    assert_int_equal(some.added, 10);
    assert_int_equal(all.added, 500);
    assert_int_equal(all.watch.count, 500);
    assert_int_equal(rig_topic_err(&r, "aaa", true), OX_OK);
    rig_settle(&r);
    assert_int_equal(all.added, 501);
    assert_string_equal(all.watch.names[0], "persistent://public/default/aaa");
    rig_op(&r, &delete.op);
    ox_partitions_delete(&r.shard, &delete, &name);
    assert_int_equal(rig_wait(&r, &delete.op), OX_OK);
    ox_sim_run_for(r.sim, 5 * OX_SEC);
    assert_int_equal(some.removed, 10);
    assert_int_equal(all.removed, 500);
    assert_int_equal(all.watch.count, 1);
    watcher_close(&some);
    watcher_close(&all);
    rig_settle(&r);
    assert_int_equal(ox_map_count(&r.shard.boards), 0);
    ox_topic_name_fini(&name);
    rig_fini(&r);
}

static void test_watch_of_a_namespace_that_does_not_exist_is_empty(void **state)
{
    (void)state;
    struct rig r;
    struct watcher w = {.watch = {.changed = watcher_changed, .owner = &w}};
    rig_init(&r);
    rig_op(&r, &w.watch.op);
    ox_topics_watch(&r.shard, &w.watch, "public/nowhere");
    assert_int_equal(rig_wait(&r, &w.watch.op), OX_OK);
    assert_int_equal(w.watch.count, 0);
    watcher_close(&w);
    rig_fini(&r);
}

// ---- namespaces

static enum ox_err ns_create(struct rig *r, const char *ns, const char *policies)
{
    struct ox_namespace_create op = {0};
    rig_op(r, &op.op);
    ox_namespace_create(&r->shard, &op, ns, policies);
    return rig_wait(r, &op.op);
}

static enum ox_err ns_delete(struct rig *r, const char *ns, bool force)
{
    struct ox_namespace_delete op = {.force = force};
    rig_op(r, &op.op);
    ox_namespace_delete(&r->shard, &op, ns);
    return rig_wait(r, &op.op);
}

static enum ox_err node_err(struct rig *r, const char *path)
{
    struct ox_meta_get get;
    rig_op(r, &get.op);
    ox_meta_get(r->meta, &get, path);
    enum ox_err err = rig_wait(r, &get.op);
    if (!err)
        ox_buf_unref(&get.value);
    return err;
}

static void test_namespace_is_made_and_deleted_with_all_that_is_in_it(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    rig_init(&r);
    assert_int_equal(ns_create(&r, "none/a", NULL), OX_E_NOT_FOUND);
    assert_int_equal(ns_create(&r, "public/a b", NULL), OX_E_INVALID);
    assert_int_equal(ns_create(&r, "public/a", "[1]"), OX_E_INVALID);
    assert_int_equal(ns_create(&r, "public/a", "{\"message_ttl_in_seconds\":7}"), OX_OK);
    assert_int_equal(ns_create(&r, "public/a", NULL), OX_E_EXISTS);
    struct ox_topic *t = rig_topic(&r, "public/a/t");
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_OK);
    ox_topic_put(t);
    struct ox_topic_name name;
    struct ox_partitions_create parts = {.partitions = 3};
    assert_int_equal(ox_topic_name_parse(&name, "public/a/p"), OX_OK);
    rig_op(&r, &parts.op);
    ox_partitions_create(&r.shard, &parts, &name);
    assert_int_equal(rig_wait(&r, &parts.op), OX_OK);
    ox_topic_name_fini(&name);
    assert_int_equal(rig_topic_err(&r, "non-persistent://public/a/n", true), OX_OK);
    assert_int_equal(ns_delete(&r, "public/a", false), OX_E_CONFLICT);
    assert_int_equal(ns_delete(&r, "public/a", true), OX_OK);
    assert_int_equal(p.closed, 1);
    assert_int_equal(node_err(&r, "/admin/policies/public/a"), OX_E_NOT_FOUND);
    assert_int_equal(node_err(&r, "/managed-ledgers/public/a"), OX_E_NOT_FOUND);
    assert_int_equal(node_err(&r, "/admin/partitioned-topics/public/a"), OX_E_NOT_FOUND);
    assert_null(ox_topic_find(&r.shard, "non-persistent://public/a/n"));
    assert_int_equal(rig_topic_err(&r, "public/a/t", true), OX_E_NAMESPACE_NOT_FOUND);
    assert_int_equal(ns_delete(&r, "public/a", true), OX_E_NAMESPACE_NOT_FOUND);
    assert_int_equal(ns_create(&r, "public/a", NULL), OX_OK); // right away
    assert_int_equal(rig_topic_err(&r, "public/a/t", true), OX_OK);
    rig_fini(&r);
}

static void slow_partitions(struct ox_meta_memory_faults *f, bool write, const char *path, struct ox_meta_fault *fault)
{
    (void)f, (void)write;
    if (strcmp(path, "/admin/partitioned-topics/public/a/persistent/t") == 0)
        fault->after_ns = OX_SEC / 2;
}

// A topic that is being made while an empty namespace is deleted: whoever uses it is not sent away without force.
static void test_namespace_that_gets_a_topic_while_it_is_deleted_stays(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct ox_topic_name name;
    struct ox_topic_get get = {.create = true};
    rig_init(&r);
    assert_int_equal(ns_create(&r, "public/a", "{\"message_ttl_in_seconds\":7}"), OX_OK);
    r.meta_faults.choose = slow_partitions;
    assert_int_equal(ox_topic_name_parse(&name, "public/a/t"), OX_OK);
    rig_op(&r, &get.op);
    ox_topic_get(&r.shard, &get, &name);
    ox_topic_name_fini(&name);
    ox_sim_run_for(r.sim, OX_SEC / 10); // it has seen the namespace
    assert_int_equal(ns_delete(&r, "public/a", false), OX_E_CONFLICT);
    assert_int_equal(rig_wait(&r, &get.op), OX_OK);
    assert_int_equal(rig_produce(&r, &p, get.topic, NULL, false), OX_OK);
    assert_int_equal(get.topic->policies.ttl_s, 7);
    ox_topic_put(get.topic);
    assert_int_equal(rig_topic_err(&r, "public/a/u", true), OX_OK);
    rig_fini(&r);
}

static void crash_at(const char *point)
{
    struct rig r;
    rig_init(&r);
    assert_int_equal(ns_create(&r, "public/a", NULL), OX_OK);
    assert_int_equal(rig_topic_err(&r, "public/a/t1", true), OX_OK);
    assert_int_equal(rig_topic_err(&r, "public/a/t2", true), OX_OK);
    ox_sim_arm(r.node, point, 1, OX_SIM_CRASH_PROCESS);
    assert_int_not_equal(ns_delete(&r, "public/a", true), OX_OK);
    rig_restart(&r);
    assert_int_equal(rig_topic_err(&r, "public/a/t2", true), OX_E_NAMESPACE_NOT_FOUND);
    assert_int_equal(ns_delete(&r, "public/a", true), OX_OK);
    assert_int_equal(node_err(&r, "/managed-ledgers/public/a"), OX_E_NOT_FOUND);
    assert_int_equal(ns_create(&r, "public/a", NULL), OX_OK);
    rig_fini(&r);
}

static void test_namespace_half_deleted_is_not_used_and_repeating_completes(void **state)
{
    (void)state;
    crash_at("namespace.after_mark");
    crash_at("namespace.after_topic");
    crash_at("namespace.before_node");
}

static void test_tenant_goes_with_its_namespaces_by_force_only(void **state)
{
    (void)state;
    struct rig r;
    struct ox_meta_put put;
    struct ox_tenant_delete del = {0};
    rig_init(&r);
    rig_op(&r, &put.op);
    ox_meta_put(r.meta, &put, "/admin/policies/x", ox_buf_static("{}", 2), OX_META_ABSENT, 0);
    assert_int_equal(rig_wait(&r, &put.op), OX_OK);
    ox_free(put.path);
    assert_int_equal(ns_create(&r, "x/a", NULL), OX_OK);
    assert_int_equal(rig_topic_err(&r, "x/a/t", true), OX_OK);
    rig_op(&r, &del.op);
    ox_tenant_delete(&r.shard, &del, "x");
    assert_int_equal(rig_wait(&r, &del.op), OX_E_CONFLICT);
    del.force = true;
    rig_op(&r, &del.op);
    ox_tenant_delete(&r.shard, &del, "x");
    assert_int_equal(rig_wait(&r, &del.op), OX_OK);
    assert_int_equal(node_err(&r, "/admin/policies/x"), OX_E_NOT_FOUND);
    rig_op(&r, &del.op);
    ox_tenant_delete(&r.shard, &del, "x");
    assert_int_equal(rig_wait(&r, &del.op), OX_E_NOT_FOUND);
    rig_fini(&r);
}

static enum ox_err parts_create(struct rig *r, const char *topic, uint32_t partitions)
{
    struct ox_partitions_create op = {.partitions = partitions};
    struct ox_topic_name name;
    assert_int_equal(ox_topic_name_parse(&name, topic), OX_OK);
    rig_op(r, &op.op);
    ox_partitions_create(&r->shard, &op, &name);
    ox_topic_name_fini(&name);
    return rig_wait(r, &op.op);
}

static void test_namespace_that_is_full_takes_no_more_topics(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    assert_int_equal(ns_create(&r, "public/a", "{\"max_topics_per_namespace\":3}"), OX_OK);
    assert_int_equal(rig_topic_err(&r, "public/a/t1", true), OX_OK);
    assert_int_equal(parts_create(&r, "public/a/p", 3), OX_E_NOT_ALLOWED);
    assert_int_equal(parts_create(&r, "public/a/p", 2), OX_OK);
    assert_int_equal(rig_topic_err(&r, "public/a/p-partition-1", true), OX_OK);
    assert_int_equal(rig_topic_err(&r, "public/a/t2", true), OX_E_NOT_ALLOWED);
    rig_crash(&r);
    assert_int_equal(rig_topic_err(&r, "public/a/t1", true), OX_OK);
    assert_int_equal(rig_topic_err(&r, "public/a/p-partition-0", true), OX_OK);
    rig_fini(&r);
}

// ---- ending a topic

static enum ox_err terminate(struct rig *r, struct ox_topic *t, struct ox_pos *ret)
{
    struct ox_topic_terminate op = {0};
    rig_op(r, &op.op);
    ox_topic_terminate(t, &op);
    enum ox_err err = rig_wait(r, &op.op);
    *ret = op.last;
    return err;
}

static void test_terminated_topic_takes_nothing_more_and_gives_what_it_has(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct rig_consumer c;
    struct ox_pos last, again;
    rig_init(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_OK);
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    assert_true(rig_send(&p, 0, "m0"));
    assert_true(rig_send(&p, 1, "m1"));
    assert_int_equal(terminate(&r, t, &last), OX_OK);
    rig_settle(&r);
    assert_int_equal(last.entry, 1);
    assert_int_equal(p.receipt_count, 2);
    assert_int_equal(p.closed, 1);
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_E_TOPIC_TERMINATED);
    assert_int_equal(c.ends, 0);
    assert_int_equal(ox_consumer_flow(c.consumer, 10), OX_OK);
    rig_settle(&r);
    assert_int_equal(c.got_count, 2);
    assert_int_equal(terminate(&r, t, &again), OX_OK);
    assert_int_equal(ox_pos_cmp(last, again), 0);
    ox_topic_put(t);
    rig_crash(&r);
    t = rig_topic(&r, "t");
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_E_TOPIC_TERMINATED);
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    ox_topic_put(t);
    t = rig_topic(&r, "non-persistent://public/default/n");
    assert_int_equal(terminate(&r, t, &again), OX_E_UNSUPPORTED);
    ox_topic_put(t);
    rig_fini(&r);
}

// ---- the last message

static struct ox_pos last_id(struct rig *r, struct ox_topic *t)
{
    struct ox_last_id op = {0};
    rig_op(r, &op.op);
    ox_topic_last_id(t, &op);
    assert_int_equal(rig_wait(r, &op.op), OX_OK);
    return op.pos;
}

static void test_last_id_of_a_topic_whose_data_are_gone_is_none(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct rig_consumer c;
    struct ox_op roll;
    rig_init(&r);
    r.config.resend_ns = 0; // nothing is kept for those who may send again
    r.settings.trim_delay_ns = 0;
    rig_restart(&r);
    struct ox_topic *t = rig_topic(&r, "t");
    assert_int_equal(last_id(&r, t).ledger, -1);
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_OK);
    assert_int_equal(rig_subscribe(&r, &c, t, "s", true), OX_OK);
    assert_true(rig_send(&p, 0, "m0"));
    rig_settle(&r);
    struct ox_pos last = last_id(&r, t);
    assert_int_equal(last.entry, 0);
    rig_op(&r, &roll);
    ox_mledger_roll(t->ml, &roll);
    assert_int_equal(rig_wait(&r, &roll), OX_OK);
    assert_int_equal(ox_pos_cmp(last_id(&r, t), last), 0); // still that of the ledger before
    assert_int_equal(rig_ack(&c, true, last, 0, false), OX_OK);
    ox_mledger_trim(t->ml);
    ox_sim_run_for(r.sim, 60 * OX_SEC);
    assert_int_equal(t->ml->total_entries, 0);
    last = last_id(&r, t);
    assert_int_equal(last.ledger, -1);
    assert_int_equal(last.entry, -1);
    ox_topic_put(t);
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pattern_matches_whole_names_without_domains),
        cmocka_unit_test(test_pattern_that_explodes_is_given_up),
        cmocka_unit_test(test_list_whose_pattern_explodes_is_left_to_the_client),
        cmocka_unit_test(test_hash_of_no_names_is_zeros),
        cmocka_unit_test(test_watchers_share_one_list_and_see_every_change_once),
        cmocka_unit_test(test_watch_of_a_namespace_that_does_not_exist_is_empty),
        cmocka_unit_test(test_namespace_is_made_and_deleted_with_all_that_is_in_it),
        cmocka_unit_test(test_namespace_that_gets_a_topic_while_it_is_deleted_stays),
        cmocka_unit_test(test_namespace_half_deleted_is_not_used_and_repeating_completes),
        cmocka_unit_test(test_tenant_goes_with_its_namespaces_by_force_only),
        cmocka_unit_test(test_namespace_that_is_full_takes_no_more_topics),
        cmocka_unit_test(test_last_id_of_a_topic_whose_data_are_gone_is_none),
        cmocka_unit_test(test_terminated_topic_takes_nothing_more_and_gives_what_it_has),
    };
    return cmocka_run_group_tests_name("broker.topic_list", tests, NULL, NULL);
}
