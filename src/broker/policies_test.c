// policies_test.c - policies laid over each other, and Pulsar's events of topic policies byte by byte.
#include "broker/policies.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "broker/consumer.h"
#include "broker/policy_event.h"
#include "broker/policy_schema.h"

static json_t *json_of(const char *text)
{
    json_t *j = json_loads(text, 0, NULL);
    assert_non_null(j);
    return j;
}

static void test_policies_of_a_fresh_namespace_change_nothing(void **state)
{
    (void)state;
    struct ox_policies p, before;
    ox_policies_init(&p);
    before = p;
    json_t *ns = json_of("{\"backlog_quota_map\":{},\"topicDispatchRate\":{},\"subscription_types_enabled\":[],"
                         "\"deleted\":false,\"compaction_threshold\":null}");
    ox_policies_apply_namespace(&p, ns, "c");
    assert_memory_equal(&p, &before, sizeof p);
    json_decref(ns);
}

static void test_namespace_policies_are_read_by_pulsars_names(void **state)
{
    (void)state;
    struct ox_policies p;
    ox_policies_init(&p);
    json_t *ns = json_of(
        "{\"message_ttl_in_seconds\":77,\"retention_policies\":{\"retentionTimeInMinutes\":-1,\"retentionSizeInMB\":5},"
        "\"backlog_quota_map\":{\"destination_storage\":{\"limit\":10,\"limitSize\":20,\"policy\":\"producer_"
        "exception\"},"
        "\"message_age\":{\"limitTime\":30,\"policy\":\"consumer_backlog_eviction\"}},"
        "\"max_producers_per_topic\":1,\"max_consumers_per_topic\":2,\"max_consumers_per_subscription\":3,"
        "\"max_subscriptions_per_topic\":4,\"max_topics_per_namespace\":5,\"max_unacked_messages_per_consumer\":0,"
        "\"topicDispatchRate\":{\"c\":{\"dispatchThrottlingRateInMsg\":9,\"dispatchThrottlingRateInByte\":-1,"
        "\"ratePeriodInSecond\":2,\"relativeToPublishRate\":true},\"d\":{\"dispatchThrottlingRateInMsg\":1}},"
        "\"subscription_types_enabled\":[\"Shared\",\"Failover\"],\"deduplicationEnabled\":true,"
        "\"inactive_topic_policies\":{\"inactiveTopicDeleteMode\":\"delete_when_subscriptions_caught_up\","
        "\"maxInactiveDurationSeconds\":7,\"deleteWhileInactive\":false},"
        "\"autoSubscriptionCreationOverride\":{\"allowAutoSubscriptionCreation\":false},\"subscription_expiration_time_"
        "minutes\":2}");
    ox_policies_apply_namespace(&p, ns, "c");
    json_decref(ns);
    assert_int_equal(p.ttl_s, 77);
    assert_int_equal(p.retention_ms, -1);
    assert_int_equal(p.retention_bytes, 5 * 1024 * 1024);
    assert_int_equal(p.quota_bytes, 20);
    assert_int_equal(p.quota_bytes_policy, OX_QUOTA_EXCEPTION);
    assert_int_equal(p.quota_s, 30);
    assert_int_equal(p.quota_s_policy, OX_QUOTA_EVICT);
    assert_int_equal(
        p.max_producers + p.max_consumers * 10 + p.max_consumers_per_subscription * 100 + p.max_subscriptions * 1000, 4321);
    assert_int_equal(p.max_topics, 5);
    assert_int_equal(p.max_unacked_per_consumer, 0);
    assert_int_equal(p.max_unacked_per_subscription, 200000);
    assert_int_equal(p.dispatch.messages, 9);
    assert_int_equal(p.dispatch.bytes, -1);
    assert_int_equal(p.dispatch.period_s, 2);
    assert_true(p.dispatch.relative);
    assert_int_equal(p.subscription_types, 1u << OX_SUB_SHARED | 1u << OX_SUB_FAILOVER);
    assert_true(p.dedup && !p.inactive_delete && !p.auto_subscription);
    assert_int_equal(p.inactive_mode, OX_INACTIVE_CAUGHT_UP);
    assert_int_equal(p.inactive_s, 7);
    assert_int_equal(p.subscription_expiry_s, 120);
}

static void test_topic_policies_go_before_the_namespaces(void **state)
{
    (void)state;
    struct ox_policies p;
    ox_policies_init(&p);
    json_t *ns = json_of("{\"message_ttl_in_seconds\":77,\"max_producers_per_topic\":1}");
    json_t *topic = json_of("{\"messageTTLInSeconds\":0,\"maxMessageSize\":100,\"retentionPolicies\":null,"
                            "\"subscriptionPolicies\":{\"s\":{\"dispatchRate\":{\"dispatchThrottlingRateInMsg\":3}}}}");
    ox_policies_apply_namespace(&p, ns, "c");
    ox_policies_apply_topic(&p, topic);
    assert_int_equal(p.ttl_s, 0);
    assert_int_equal(p.max_producers, 1);
    assert_int_equal(p.message_bytes_max, 100);
    assert_int_equal(ox_policies_subscription_dispatch(&p, topic, "s").messages, 3);
    assert_int_equal(ox_policies_subscription_dispatch(&p, topic, "t").messages, 0);
    json_decref(ns);
    json_decref(topic);
}

// ---- events: the bytes are a real broker's (4.0.7)

static const char reference[] = "020402000202147374616e64616c6f6e650002021470657273697374656e740210706f6c69636965730200"
                                "02022664657374696e6174696f6e5f73746f72616765"
                                "d00f02d00f00020200000000000000020c0a06010000020102025802000000028040000000000000000000"
                                "00022814000000000002020273020c0a060100020406"
                                "0200020c7075626c6963020261";

static void test_event_has_the_bytes_of_a_real_brokers(void **state)
{
    (void)state;
    uint8_t bytes[256];
    size_t len = (sizeof reference - 1) / 2;
    for (size_t i = 0; i < len; i++) {
        unsigned byte;
        assert_int_equal(sscanf(reference + 2 * i, "%2x", &byte), 1);
        bytes[i] = (uint8_t)byte;
    }
    json_t *event;
    assert_int_equal(avro_decode(&policy_event_schema, bytes, len, &event), OX_OK);
    json_t *p = json_object_get(json_object_get(event, "topicPoliciesEvent"), "policies");
    assert_int_equal(json_integer_value(json_object_get(p, "maxMessageSize")), 4096);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(p, "retentionPolicies"), "retentionSizeInMB")), 20);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(p, "retentionPolicies"), "retentionTimeInMinutes")), 10);
    assert_string_equal(json_string_value(json_array_get(json_object_get(p, "subscriptionTypesEnabled"), 0)),
                        "Key_Shared");
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(p, "inactiveTopicPolicies"), "maxInactiveDurationSeconds")), 44);
    struct ox_str out = {0};
    assert_int_equal(avro_encode(&policy_event_schema, event, &out), OX_OK);
    assert_int_equal(out.len, len);
    assert_memory_equal(out.data, bytes, len);
    for (size_t cut = 0; cut < len; cut++) {
        json_t *none;
        assert_int_equal(avro_decode(&policy_event_schema, bytes, cut, &none), OX_E_MALFORMED);
    }
    ox_str_fini(&out);
    json_decref(event);
}

static void test_event_comes_back_from_its_entry(void **state)
{
    (void)state;
    struct ox_topic_name name;
    struct policy_event_from from = {.producer = "p", .cluster = "c", .now_ms = 5};
    struct ox_entry entry = {.pos = {1, 0}};
    char *topic;
    json_t *back, *policies = json_of("{\"messageTTLInSeconds\":9}");
    assert_int_equal(ox_topic_name_parse(&name, "persistent://t/ns/a b"), OX_OK);
    assert_int_equal(policy_event_build(&name, policies, &from, &entry.data), OX_OK);
    assert_int_equal(policy_event_parse(&entry, &topic, &back), OX_OK);
    assert_string_equal(topic, name.full);
    assert_int_equal(json_integer_value(json_object_get(back, "messageTTLInSeconds")), 9);
    json_decref(back);
    ox_free(topic);
    ox_buf_unref(&entry.data);
    assert_int_equal(policy_event_build(&name, NULL, &from, &entry.data), OX_OK);
    assert_int_equal(policy_event_parse(&entry, &topic, &back), OX_OK);
    assert_null(back);
    ox_free(topic);
    ox_buf_unref(&entry.data);
    json_object_set_new(policies, "messageTTLInSeconds", json_integer(INT64_C(1) << 40));
    assert_int_equal(policy_event_build(&name, policies, &from, &entry.data), OX_E_INVALID);
    json_decref(policies);
    ox_topic_name_fini(&name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policies_of_a_fresh_namespace_change_nothing),
        cmocka_unit_test(test_namespace_policies_are_read_by_pulsars_names),
        cmocka_unit_test(test_topic_policies_go_before_the_namespaces),
        cmocka_unit_test(test_event_has_the_bytes_of_a_real_brokers),
        cmocka_unit_test(test_event_comes_back_from_its_entry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
