// partitions_test.c - partitioned topics: growing under load without losing anybody's messages, deleting, and both cut off in between.
#include "broker/fixture.h"
#include "broker/topic_policies.h"

#include <stdio.h>
#include <string.h>

static struct ox_topic_name name_of(const char *text)
{
    struct ox_topic_name name;
    assert_int_equal(ox_topic_name_parse(&name, text), OX_OK);
    return name;
}

static enum ox_err create(struct rig *r, const char *topic, uint32_t partitions)
{
    struct ox_topic_name name = name_of(topic);
    struct ox_partitions_create op = {.partitions = partitions};
    rig_op(r, &op.op);
    ox_partitions_create(&r->shard, &op, &name);
    ox_topic_name_fini(&name);
    return rig_wait(r, &op.op);
}

static enum ox_err grow(struct rig *r, const char *topic, uint32_t partitions)
{
    struct ox_topic_name name = name_of(topic);
    struct ox_partitions_update op = {.partitions = partitions};
    rig_op(r, &op.op);
    ox_partitions_update(&r->shard, &op, &name);
    ox_topic_name_fini(&name);
    return rig_wait(r, &op.op);
}

static enum ox_err delete (struct rig *r, const char *topic, bool force) {
    struct ox_topic_name name = name_of(topic); struct ox_partitions_delete op = {.force = force}; rig_op(r, &op.op);
    ox_partitions_delete(&r->shard, &op, &name);
    ox_topic_name_fini(&name);
    return rig_wait(r, &op.op);
}

static enum ox_err count_err(struct rig *r, const char *topic, bool make, uint32_t *ret)
{
    struct ox_topic_name name = name_of(topic);
    struct ox_partitions_get op = {.create = make};
    rig_op(r, &op.op);
    ox_partitions_get(&r->shard, &op, &name);
    ox_topic_name_fini(&name);
    enum ox_err err = rig_wait(r, &op.op);
    *ret = op.partitions;
    return err;
}

static void expect_count(struct rig *r, const char *topic, uint32_t partitions)
{
    uint32_t count;
    assert_int_equal(count_err(r, topic, false, &count), OX_OK);
    assert_int_equal(count, partitions);
}

static size_t list_count(struct rig *r, bool partitioned)
{
    struct ox_topics_list list = {.partitioned = partitioned};
    rig_op(r, &list.op);
    ox_topics_list(&r->shard, &list, "public/default");
    assert_int_equal(rig_wait(r, &list.op), OX_OK);
    size_t count = list.count;
    ox_topics_list_fini(&list);
    return count;
}

static void subscribe_and_leave(struct rig *r, const char *topic, const char *subscription)
{
    struct rig_consumer c;
    struct ox_topic *t = rig_topic(r, topic);
    assert_int_equal(rig_subscribe(r, &c, t, subscription, false), OX_OK);
    ox_consumer_close(c.consumer);
    ox_topic_put(t);
}

static void send_to(struct rig *r, const char *topic, const char *payload)
{
    struct rig_producer p;
    struct ox_topic *t = rig_topic(r, topic);
    assert_int_equal(rig_produce(r, &p, t, NULL, false), OX_OK);
    assert_true(rig_send(&p, 0, payload));
    rig_settle(r);
    assert_int_equal(p.receipt_count, 1);
    assert_int_equal(p.receipts[0].err, OX_OK);
    ox_producer_close(p.producer);
    ox_topic_put(t);
}

// The first message that a subscription gets, which must be this.
static void expect_message(struct rig *r, const char *topic, const char *subscription, const char *payload)
{
    struct rig_consumer c;
    struct ox_topic *t = rig_topic(r, topic);
    assert_non_null(ox_subscription_find(t, subscription));
    assert_int_equal(rig_subscribe(r, &c, t, subscription, false), OX_OK);
    assert_int_equal(ox_consumer_flow(c.consumer, 10), OX_OK);
    rig_settle(r);
    assert_int_equal(c.got_count, 1);
    assert_string_equal(c.got[0].payload, payload);
    ox_consumer_close(c.consumer);
    ox_topic_put(t);
}

// fault: P12
// "From latest" means the time of subscribing, not that at which a partition was made.
static void test_partitions_grow_with_their_subscriptions(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    assert_int_equal(create(&r, "t", 2), OX_OK);
    subscribe_and_leave(&r, "t-partition-0", "s");
    subscribe_and_leave(&r, "t-partition-1", "s");
    subscribe_and_leave(&r, "t-partition-1", "a/b");
    assert_int_equal(grow(&r, "t", 8), OX_OK);
    expect_count(&r, "t", 8);
    for (int i = 2; i < 8; i++) {
        char topic[32], payload[32];
        snprintf(topic, sizeof topic, "t-partition-%d", i);
        snprintf(payload, sizeof payload, "first of %d", i);
        send_to(&r, topic, payload);
        expect_message(&r, topic, "s", payload);
        expect_message(&r, topic, "a/b", payload);
    }
    rig_fini(&r);
}

// So many that a transaction is full right behind a partition's own node.
static void test_partitions_grow_over_many_transactions(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    assert_int_equal(create(&r, "t", 1), OX_OK);
    subscribe_and_leave(&r, "t-partition-0", "s");
    subscribe_and_leave(&r, "t-partition-0", "s2");
    assert_int_equal(grow(&r, "t", 700), OX_OK);
    expect_count(&r, "t", 700);
    rig_fini(&r);
}

static void test_partitions_of_a_namespace_that_asks_for_too_many_are_one(void **state)
{
    (void)state;
    struct rig r;
    uint32_t count;
    rig_init(&r);
    rig_policies(&r, "{\"autoTopicCreationOverride\":{\"allowAutoTopicCreation\":true,\"topicType\":\"partitioned\","
                     "\"defaultNumPartitions\":-1}}");
    assert_int_equal(count_err(&r, "t", true, &count), OX_OK);
    assert_int_equal(count, 1);
    expect_count(&r, "t", 1);
    rig_fini(&r);
}

static bool fail_once_armed;
static bool fails_at_partition(const char *path)
{
    bool fails = fail_once_armed && strstr(path, "t-partition-2");
    fail_once_armed &= !fails;
    return fails;
}

// fault: P12
static void test_partitions_keep_their_count_when_growing_fails_and_repeating_completes(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    assert_int_equal(create(&r, "t", 2), OX_OK);
    subscribe_and_leave(&r, "t-partition-0", "s");
    fail_once_armed = true;
    r.fails = fails_at_partition;
    assert_int_equal(grow(&r, "t", 8), OX_E_DISCONNECTED);
    assert_false(fail_once_armed);
    expect_count(&r, "t", 2);
    assert_int_equal(rig_topic_err(&r, "t-partition-5", true), OX_E_TOPIC_NOT_FOUND);
    assert_int_equal(grow(&r, "t", 8), OX_OK);
    expect_count(&r, "t", 8);
    send_to(&r, "t-partition-7", "m");
    expect_message(&r, "t-partition-7", "s", "m");
    rig_fini(&r);
}

static void test_partitions_crash_while_growing_leaves_the_old_count(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    assert_int_equal(create(&r, "t", 1), OX_OK);
    subscribe_and_leave(&r, "t-partition-0", "s1");
    subscribe_and_leave(&r, "t-partition-0", "s2");
    subscribe_and_leave(&r, "t-partition-0", "s3");
    ox_sim_arm(r.node, "partitions.after_part", 1, OX_SIM_CRASH_PROCESS);
    assert_int_not_equal(grow(&r, "t", 400), OX_OK);
    rig_restart(&r);
    expect_count(&r, "t", 1);
    assert_int_equal(grow(&r, "t", 400), OX_OK);
    expect_count(&r, "t", 400);
    send_to(&r, "t-partition-399", "m");
    expect_message(&r, "t-partition-399", "s3", "m");
    send_to(&r, "t-partition-100", "m");
    expect_message(&r, "t-partition-100", "s1", "m");
    rig_fini(&r);
}

// fault: P12
static void test_partitions_never_shrink_and_same_count_is_no_error(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    assert_int_equal(create(&r, "t", 3), OX_OK);
    assert_int_equal(grow(&r, "t", 2), OX_E_INVALID);
    assert_int_equal(grow(&r, "t", 3), OX_OK);
    expect_count(&r, "t", 3);
    assert_int_equal(grow(&r, "u", 3), OX_E_TOPIC_NOT_FOUND);
    assert_int_equal(rig_topic_err(&r, "plain", true), OX_OK);
    assert_int_equal(grow(&r, "plain", 3), OX_E_TOPIC_NOT_FOUND);
    assert_int_equal(create(&r, "plain", 3), OX_E_EXISTS);
    assert_int_equal(create(&r, "t-partition-9", 3), OX_E_INVALID);
    rig_fini(&r);
}

static void test_partition_behind_the_count_is_refused_and_not_made(void **state)
{
    (void)state;
    struct rig r;
    uint32_t count;
    rig_init(&r);
    assert_int_equal(create(&r, "t", 2), OX_OK);
    assert_int_equal(list_count(&r, false), 2);
    assert_int_equal(rig_topic_err(&r, "t-partition-2", true), OX_E_TOPIC_NOT_FOUND);
    assert_int_equal(count_err(&r, "t-partition-2", true, &count), OX_E_TOPIC_NOT_FOUND);
    expect_count(&r, "t-partition-1", 0);
    assert_int_equal(list_count(&r, false), 2);
    rig_fini(&r);
}

static void test_partitions_that_are_missing_are_made(void **state)
{
    (void)state;
    struct rig r;
    struct ox_topic_delete del = {.marked = true};
    rig_init(&r);
    assert_int_equal(create(&r, "t", 3), OX_OK);
    subscribe_and_leave(&r, "t-partition-0", "s");
    struct ox_topic_name name = name_of("t-partition-1");
    rig_op(&r, &del.op);
    ox_topic_delete(&r.shard, &del, &name);
    assert_int_equal(rig_wait(&r, &del.op), OX_OK);
    ox_topic_name_fini(&name);
    assert_int_equal(list_count(&r, false), 2);
    assert_int_equal(grow(&r, "t", 0), OX_OK);
    assert_int_equal(list_count(&r, false), 3);
    expect_count(&r, "t", 3);
    send_to(&r, "t-partition-1", "m");
    expect_message(&r, "t-partition-1", "s", "m");
    rig_fini(&r);
}

static void test_partitioned_topic_in_use_is_deleted_by_force_only(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    uint32_t count;
    rig_init(&r);
    assert_int_equal(create(&r, "t", 3), OX_OK);
    struct ox_topic *t = rig_topic(&r, "t-partition-1");
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_OK);
    ox_topic_put(t);
    assert_int_equal(delete (&r, "t", false), OX_E_BUSY);
    expect_count(&r, "t", 3);
    assert_int_equal(list_count(&r, false), 3);
    assert_int_equal(delete (&r, "t", true), OX_OK);
    assert_int_equal(p.closed, 1);
    assert_int_equal(list_count(&r, false), 0);
    assert_int_equal(count_err(&r, "t", false, &count), OX_E_TOPIC_NOT_FOUND);
    assert_int_equal(delete (&r, "t", true), OX_E_TOPIC_NOT_FOUND);
    assert_int_equal(create(&r, "t", 5), OX_OK); // right away
    expect_count(&r, "t", 5);
    rig_fini(&r);
}

static enum ox_err set_ttl(struct ox_topic_policies_update *u, json_t *policies)
{
    (void)u;
    return json_object_set_new(policies, "messageTTLInSeconds", json_integer(7)) ? OX_E_INVALID : OX_OK;
}

static json_t *policies_of(struct rig *r, const char *topic)
{
    struct ox_topic_policies_get get = {0};
    struct ox_topic_name name = name_of(topic);
    rig_op(r, &get.op);
    ox_topic_policies_get(&r->shard, &get, &name);
    ox_topic_name_fini(&name);
    assert_int_equal(rig_wait(r, &get.op), OX_OK);
    return get.own;
}

static struct ox_buf node_of(struct rig *r, const char *path, int64_t *ret_version)
{
    struct ox_meta_get get;
    rig_op(r, &get.op);
    ox_meta_get(r->meta, &get, path);
    assert_int_equal(rig_wait(r, &get.op), OX_OK);
    *ret_version = get.stat.version;
    return get.value;
}

// True if the topic's node has a property that nobody here knows of.
static bool has_property(struct rig *r, const char *path)
{
    int64_t version;
    struct ox_buf value = node_of(r, path, &version);
    OX_CLEANUP(ox_free_ptr)
    char *text = ox_strndup((const char *)value.data, value.len);
    ox_buf_unref(&value);
    return strstr(text, "\"properties\":{\"owner\":\"me\"}") != NULL;
}

static void test_partitioned_topic_keeps_its_properties(void **state)
{
    (void)state;
    static const char path[] = "/admin/partitioned-topics/public/default/persistent/t",
                      text[] = "{\"partitions\":2,\"deleted\":false,\"properties\":{\"owner\":\"me\"}}";
    struct rig r;
    struct ox_topic_name name = name_of("t");
    struct ox_partitions_delete op = {.only_empty = true};
    struct ox_meta_put put;
    rig_init(&r);
    assert_int_equal(create(&r, "t", 2), OX_OK);
    int64_t version;
    struct ox_buf before = node_of(&r, path, &version), value = ox_buf_copy(text, strlen(text));
    ox_buf_unref(&before);
    rig_op(&r, &put.op);
    ox_meta_put(r.meta, &put, path, value, version, 0);
    ox_buf_unref(&value);
    assert_int_equal(rig_wait(&r, &put.op), OX_OK);
    ox_free(put.path);
    assert_int_equal(grow(&r, "t", 3), OX_OK);
    assert_true(has_property(&r, path));
    send_to(&r, "t-partition-1", "m");
    rig_restart(&r);
    rig_op(&r, &op.op);
    ox_partitions_delete(&r.shard, &op, &name);
    assert_int_equal(rig_wait(&r, &op.op), OX_E_BUSY);
    expect_count(&r, "t", 3);
    assert_true(has_property(&r, path));
    ox_topic_name_fini(&name);
    rig_fini(&r);
}

// Who deletes it because nobody uses it has seen no partition: one that is there by now was made meanwhile.
static void test_partitioned_topic_that_came_to_life_again_is_not_deleted(void **state)
{
    (void)state;
    struct rig r;
    struct ox_topic_name name = name_of("t");
    struct ox_partitions_delete op = {.only_empty = true};
    rig_init(&r);
    struct ox_topic_policies_update u = {.change = set_ttl};
    assert_int_equal(create(&r, "t", 2), OX_OK);
    send_to(&r, "t-partition-1", "m");
    rig_op(&r, &u.op);
    ox_topic_policies_update(&r.shard, &u, &name);
    assert_int_equal(rig_wait(&r, &u.op), OX_OK);
    rig_restart(&r);
    rig_op(&r, &op.op);
    ox_partitions_delete(&r.shard, &op, &name);
    assert_int_equal(rig_wait(&r, &op.op), OX_E_BUSY);
    expect_count(&r, "t", 2);
    json_t *own = policies_of(&r, "t");
    assert_non_null(own);
    json_decref(own);
    struct ox_topic *t = rig_topic(&r, "t-partition-1");
    assert_int_equal(t->ml->total_entries, 1);
    ox_topic_put(t);
    ox_topic_name_fini(&name);
    rig_fini(&r);
}

static void slow_mark(struct ox_meta_memory_faults *f, bool write, const char *path, struct ox_meta_fault *fault)
{
    (void)f;
    if (write && strcmp(path, "/admin/partitioned-topics/public/default/persistent/t") == 0)
        fault->after_ns = OX_SEC / 2;
}

// Somebody comes while the topic is being marked: all partitions stay, or none.
static void test_partitioned_topic_that_gets_a_user_meanwhile_keeps_all_partitions(void **state)
{
    (void)state;
    struct rig r;
    struct rig_producer p;
    struct ox_topic_name name = name_of("t");
    struct ox_partitions_delete op = {0};
    rig_init(&r);
    assert_int_equal(create(&r, "t", 2), OX_OK);
    send_to(&r, "t-partition-0", "m");
    struct ox_topic *t = rig_topic(&r, "t-partition-1");
    void (*choose)(struct ox_meta_memory_faults *, bool, const char *, struct ox_meta_fault *) = r.meta_faults.choose;
    r.meta_faults.choose = slow_mark;
    rig_op(&r, &op.op);
    ox_partitions_delete(&r.shard, &op, &name);
    ox_sim_run_for(r.sim, OX_SEC / 10);
    assert_int_equal(rig_produce(&r, &p, t, NULL, false), OX_OK);
    assert_int_equal(rig_wait(&r, &op.op), OX_E_BUSY);
    r.meta_faults.choose = choose;
    expect_count(&r, "t", 2);
    ox_topic_put(t);
    t = rig_topic(&r, "t-partition-0");
    assert_int_equal(t->ml->total_entries, 1);
    ox_topic_put(t);
    ox_topic_name_fini(&name);
    rig_fini(&r);
}

static void test_partitioned_topic_goes_with_its_policies(void **state)
{
    (void)state;
    struct rig r;
    struct ox_topic_policies_update u = {.change = set_ttl};
    rig_init(&r);
    assert_int_equal(create(&r, "t", 2), OX_OK);
    struct ox_topic_name name = name_of("t");
    rig_op(&r, &u.op);
    ox_topic_policies_update(&r.shard, &u, &name);
    ox_topic_name_fini(&name);
    assert_int_equal(rig_wait(&r, &u.op), OX_OK);
    json_t *own = policies_of(&r, "t");
    assert_non_null(own);
    json_decref(own);
    assert_int_equal(delete (&r, "t", false), OX_OK);
    assert_null(policies_of(&r, "t"));
    rig_fini(&r);
}

static void crash_at_delete(const char *point, uint32_t nth)
{
    struct rig r;
    uint32_t count;
    rig_init(&r);
    assert_int_equal(create(&r, "t", 3), OX_OK);
    send_to(&r, "t-partition-2", "m");
    ox_sim_arm(r.node, point, nth, OX_SIM_CRASH_PROCESS);
    assert_int_not_equal(delete (&r, "t", false), OX_OK);
    rig_restart(&r);
    assert_int_equal(count_err(&r, "t", true, &count), OX_E_TOPIC_NOT_FOUND);
    assert_int_equal(rig_topic_err(&r, "t-partition-2", true), OX_E_TOPIC_NOT_FOUND);
    assert_int_equal(create(&r, "t", 3), OX_E_EXISTS);
    assert_int_equal(delete (&r, "t", false), OX_OK);
    assert_int_equal(list_count(&r, false), 0);
    assert_int_equal(list_count(&r, true), 0);
    rig_fini(&r);
}

static void test_partitioned_topic_half_deleted_is_not_used_and_repeating_completes(void **state)
{
    (void)state;
    crash_at_delete("partitions.after_mark", 1);
    crash_at_delete("partitions.after_delete", 1);
    crash_at_delete("partitions.after_delete", 3);
}

static void test_partitions_of_a_non_persistent_topic_need_no_nodes(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    assert_int_equal(create(&r, "non-persistent://public/default/n", 2), OX_OK);
    assert_int_equal(rig_topic_err(&r, "non-persistent://public/default/n-partition-1", false), OX_OK);
    assert_int_equal(rig_topic_err(&r, "non-persistent://public/default/n-partition-2", true), OX_E_TOPIC_NOT_FOUND);
    assert_int_equal(grow(&r, "non-persistent://public/default/n", 3), OX_OK);
    assert_int_equal(rig_topic_err(&r, "non-persistent://public/default/n-partition-2", true), OX_OK);
    assert_int_equal(list_count(&r, false), 0);
    assert_int_equal(delete (&r, "non-persistent://public/default/n", false), OX_OK);
    assert_null(ox_topic_find(&r.shard, "non-persistent://public/default/n-partition-1"));
    rig_fini(&r);
}

static void test_partitions_grow_only_as_far_as_the_namespace_has_room(void **state)
{
    (void)state;
    struct rig r;
    uint32_t count;
    rig_init(&r);
    rig_policies(&r, "{\"max_topics_per_namespace\":5}");
    assert_int_equal(create(&r, "t", 2), OX_OK);
    ox_topic_put(rig_topic(&r, "plain"));
    assert_int_equal(grow(&r, "t", 5), OX_E_NOT_ALLOWED);
    assert_int_equal(count_err(&r, "t", false, &count), OX_OK);
    assert_int_equal(count, 2);
    assert_int_equal(grow(&r, "t", 4), OX_OK);
    assert_int_equal(grow(&r, "t", 4), OX_OK); // what is there already needs no room
    assert_int_equal(grow(&r, "t", 5), OX_E_NOT_ALLOWED);
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_partitions_grow_with_their_subscriptions),
        cmocka_unit_test(test_partitions_grow_over_many_transactions),
        cmocka_unit_test(test_partitions_of_a_namespace_that_asks_for_too_many_are_one),
        cmocka_unit_test(test_partitions_grow_only_as_far_as_the_namespace_has_room),
        cmocka_unit_test(test_partitions_keep_their_count_when_growing_fails_and_repeating_completes),
        cmocka_unit_test(test_partitions_crash_while_growing_leaves_the_old_count),
        cmocka_unit_test(test_partitions_never_shrink_and_same_count_is_no_error),
        cmocka_unit_test(test_partition_behind_the_count_is_refused_and_not_made),
        cmocka_unit_test(test_partitions_that_are_missing_are_made),
        cmocka_unit_test(test_partitioned_topic_in_use_is_deleted_by_force_only),
        cmocka_unit_test(test_partitioned_topic_keeps_its_properties),
        cmocka_unit_test(test_partitioned_topic_that_came_to_life_again_is_not_deleted),
        cmocka_unit_test(test_partitioned_topic_that_gets_a_user_meanwhile_keeps_all_partitions),
        cmocka_unit_test(test_partitioned_topic_goes_with_its_policies),
        cmocka_unit_test(test_partitioned_topic_half_deleted_is_not_used_and_repeating_completes),
        cmocka_unit_test(test_partitions_of_a_non_persistent_topic_need_no_nodes),
    };
    return cmocka_run_group_tests_name("broker.partitions", tests, NULL, NULL);
}
