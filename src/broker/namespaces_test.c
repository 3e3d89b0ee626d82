// namespaces_test.c - the first nodes of a cluster, policies, partition counts, lists.
#include "broker/fixture.h"

#include <string.h>

static char *node(struct rig *r, const char *path)
{
    struct ox_meta_get get;
    rig_op(r, &get.op);
    ox_meta_get(r->meta, &get, path);
    if (rig_wait(r, &get.op))
        return NULL;
    char *text = ox_strndup((const char *)get.value.data, get.value.len);
    ox_buf_unref(&get.value);
    return text;
}

static void expect_node(struct rig *r, const char *path, const char *text)
{
    char *got = node(r, path);
    assert_non_null(got);
    assert_string_equal(got, text);
    ox_free(got);
}

static void put_node(struct rig *r, const char *path, const char *text)
{
    struct ox_meta_put put;
    rig_op(r, &put.op);
    ox_meta_put(r->meta, &put, path, ox_buf_static(text, strlen(text)), OX_META_ANY, 0);
    assert_int_equal(rig_wait(r, &put.op), OX_OK);
    ox_free(put.path);
}

static void test_first_start_makes_the_nodes_that_pulsar_makes(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    expect_node(&r, "/admin/policies/public", "{\"adminRoles\":[],\"allowedClusters\":[\"standalone\"]}");
    expect_node(&r, "/admin/partitioned-topics/pulsar/system/persistent/transaction_coordinator_assign",
                "{\"partitions\":16,\"deleted\":false}");
    expect_node(&r, "/bookies", "{}");
    char *policies = node(&r, "/admin/policies/public/default");
    assert_non_null(strstr(policies, "\"boundaries\":[\"0x00000000\",\"0x40000000\",\"0x80000000\",\"0xc0000000\","
                                     "\"0xffffffff\"],\"numBundles\":4"));
    assert_non_null(strstr(policies, "\"replication_clusters\":[\"standalone\"]"));
    assert_non_null(strstr(policies, "\"deleted\":false"));
    ox_free(policies);
    put_node(&r, "/admin/policies/public", "{\"mine\":1}");
    rig_crash(&r);
    expect_node(&r, "/admin/policies/public", "{\"mine\":1}");
    rig_fini(&r);
}

static enum ox_err namespace_of(struct rig *r, const char *ns, struct ox_namespace_policies *ret)
{
    struct ox_namespace_get get;
    rig_op(r, &get.op);
    ox_namespace_get(&r->shard, &get, ns);
    enum ox_err err = rig_wait(r, &get.op);
    *ret = get.policies;
    return err;
}

static void test_policies_are_read_and_bad_ones_told(void **state)
{
    (void)state;
    struct rig r;
    struct ox_namespace_policies p;
    rig_init(&r);
    assert_int_equal(namespace_of(&r, "public/default", &p), OX_OK);
    assert_int_equal(p.auto_topic_creation, -1);
    assert_int_equal(namespace_of(&r, "public/none", &p), OX_E_NAMESPACE_NOT_FOUND);
    r.shard.state = OX_SHARD_STARTING; // in which the first ones are made
    assert_int_equal(namespace_of(&r, "public/none", &p), OX_E_SHUTDOWN);
    r.shard.state = OX_SHARD_RUNNING;
    put_node(&r, "/admin/policies/public/a", "{\"autoTopicCreationOverride\":{\"allowAutoTopicCreation\":true,\"topicType\":\"partitioned\",\"defaultNumPartitions\":5}}");
    assert_int_equal(namespace_of(&r, "public/a", &p), OX_OK);
    assert_int_equal(p.auto_topic_creation, 1);
    assert_true(p.auto_topic_partitioned);
    assert_int_equal(p.default_partitions, 5);
    put_node(&r, "/admin/policies/public/b", "{\"deleted\":true}");
    assert_int_equal(namespace_of(&r, "public/b", &p), OX_E_NAMESPACE_NOT_FOUND);
    put_node(&r, "/admin/policies/public/c", "not json");
    assert_int_equal(namespace_of(&r, "public/c", &p), OX_E_CORRUPT);
    rig_fini(&r);
}

static void test_override_of_a_namespace_decides_over_the_setting(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    put_node(&r, "/admin/policies/public/no", "{\"autoTopicCreationOverride\":{\"allowAutoTopicCreation\":false}}");
    assert_int_equal(rig_topic_err(&r, "public/no/t", true), OX_E_TOPIC_NOT_FOUND);
    r.shard.config.auto_topic_creation = false;
    put_node(&r, "/admin/policies/public/yes",
             "{\"autoTopicCreationOverride\":{\"allowAutoTopicCreation\":true,\"topicType\":\"non-partitioned\"}}");
    assert_int_equal(rig_topic_err(&r, "public/yes/t", true), OX_OK);
    rig_fini(&r);
}

static void test_partitioned_topic_is_made_once(void **state)
{
    (void)state;
    struct rig r;
    struct ox_topic_name name;
    struct ox_partitions_create create = {.partitions = 4};
    struct ox_partitions_get get = {0};
    rig_init(&r);
    assert_int_equal(ox_topic_name_parse(&name, "t"), OX_OK);
    rig_op(&r, &create.op);
    ox_partitions_create(&r.shard, &create, &name);
    assert_int_equal(rig_wait(&r, &create.op), OX_OK);
    expect_node(&r, "/admin/partitioned-topics/public/default/persistent/t", "{\"partitions\":4,\"deleted\":false}");
    rig_op(&r, &create.op);
    ox_partitions_create(&r.shard, &create, &name);
    assert_int_equal(rig_wait(&r, &create.op), OX_E_EXISTS);
    rig_op(&r, &get.op);
    ox_partitions_get(&r.shard, &get, &name);
    assert_int_equal(rig_wait(&r, &get.op), OX_OK);
    assert_int_equal(get.partitions, 4);
    create.partitions = 0;
    rig_op(&r, &create.op);
    ox_partitions_create(&r.shard, &create, &name);
    assert_int_equal(rig_wait(&r, &create.op), OX_E_INVALID);
    ox_topic_name_fini(&name);
    rig_fini(&r);
}

static void test_list_of_topics_is_sorted_and_hides_those_of_brokers(void **state)
{
    (void)state;
    struct rig r;
    struct ox_topics_list list = {0};
    rig_init(&r);
    assert_int_equal(rig_topic_err(&r, "b c", true), OX_OK);
    assert_int_equal(rig_topic_err(&r, "a", true), OX_OK);
    assert_int_equal(rig_topic_err(&r, "__change_events", true), OX_OK);
    rig_op(&r, &list.op);
    ox_topics_list(&r.shard, &list, "public/default");
    assert_int_equal(rig_wait(&r, &list.op), OX_OK);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.names[0], "persistent://public/default/a");
    assert_string_equal(list.names[1], "persistent://public/default/b c");
    ox_topics_list_fini(&list);
    rig_op(&r, &list.op);
    ox_topics_list(&r.shard, &list, "no namespace");
    assert_int_equal(rig_wait(&r, &list.op), OX_E_NAMESPACE_NOT_FOUND);
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_start_makes_the_nodes_that_pulsar_makes),
        cmocka_unit_test(test_policies_are_read_and_bad_ones_told),
        cmocka_unit_test(test_override_of_a_namespace_decides_over_the_setting),
        cmocka_unit_test(test_partitioned_topic_is_made_once),
        cmocka_unit_test(test_list_of_topics_is_sorted_and_hides_those_of_brokers),
    };
    return cmocka_run_group_tests_name("broker.namespaces", tests, NULL, NULL);
}
