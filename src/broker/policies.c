// policies.c - Pulsar's defaults, and reading the JSON of namespace and topic policies.
#include "broker/policies.h"

#include <jansson.h>
#include <string.h>

#include "base/mem.h"
#include "broker/shard.h"
#include "broker/subscription.h"

#define MIB (INT64_C(1024) * 1024)

void ox_policies_init(struct ox_policies *ret)
{
    *ret = (struct ox_policies){
        .quota_bytes = -1,
        .quota_s = -1,
        .max_unacked_per_consumer = 50000,
        .max_unacked_per_subscription = 200000,
        .dedup_snapshot_s = 120,
        .delayed = true,
        .delayed_tick_ms = 1000,
        .inactive_delete = true,
        .inactive_s = 60,
        .publish.period_s = 1,
        .dispatch.period_s = 1,
        .subscription_dispatch.period_s = 1,
        .subscribe.period_s = 30,
        .subscription_types = OX_SUBSCRIPTION_TYPES_ALL,
        .auto_subscription = true,
    };
}

void ox_policies_of_broker(const struct ox_broker_config *c, struct ox_policies *ret)
{
    *ret = c->policies;
    ret->auto_subscription = c->auto_subscription_creation;
}

// ---- members: each changes its value only if the member is there and of its type

static bool read_int(const json_t *object, const char *key, int64_t *value)
{
    const json_t *v = json_object_get(object, key);
    if (!json_is_integer(v))
        return false;
    *value = json_integer_value(v);
    return true;
}

static void read_bool(const json_t *object, const char *key, bool *value)
{
    const json_t *v = json_object_get(object, key);
    if (json_is_boolean(v))
        *value = json_is_true(v);
}

// Below 0: as if it were not there.
static void read_count(const json_t *object, const char *key, uint32_t *value)
{
    int64_t v;
    if (read_int(object, key, &v) && v >= 0)
        *value = (uint32_t)OX_MIN(v, (int64_t)UINT32_MAX);
}

static void read_amount(const json_t *object, const char *key, int64_t *value)
{
    int64_t v;
    if (read_int(object, key, &v) && v >= 0)
        *value = v;
}

static int64_t scaled(int64_t value, int64_t unit)
{
    return value < 0 ? -1 : value > INT64_MAX / unit ? INT64_MAX : value * unit;
}

static void read_scaled(const json_t *object, const char *key, int64_t unit, int64_t *value)
{
    int64_t v;
    if (read_int(object, key, &v))
        *value = scaled(v, unit);
}

static void read_retention(const json_t *r, struct ox_policies *p)
{
    read_scaled(r, "retentionTimeInMinutes", 60000, &p->retention_ms);
    read_scaled(r, "retentionSizeInMB", MIB, &p->retention_bytes);
}

static enum ox_quota_policy read_quota_policy(const json_t *quota)
{
    const char *name = json_string_value(json_object_get(quota, "policy"));
    if (name && !strcmp(name, "producer_exception"))
        return OX_QUOTA_EXCEPTION;
    return name && !strcmp(name, "consumer_backlog_eviction") ? OX_QUOTA_EVICT : OX_QUOTA_HOLD;
}

static void read_quotas(const json_t *map, struct ox_policies *p)
{
    const json_t *size = json_object_get(map, "destination_storage"), *age = json_object_get(map, "message_age");
    if (json_is_object(size)) {
        if (!read_int(size, "limitSize", &p->quota_bytes))
            read_int(size, "limit", &p->quota_bytes);
        p->quota_bytes_policy = read_quota_policy(size);
    }
    if (json_is_object(age)) {
        read_int(age, "limitTime", &p->quota_s);
        p->quota_s_policy = read_quota_policy(age);
    }
    p->quota_bytes = OX_MAX(p->quota_bytes, -1);
    p->quota_s = OX_MAX(p->quota_s, -1);
}

static void read_dispatch(const json_t *rate, struct ox_rate_limit *ret)
{
    if (!json_is_object(rate))
        return;
    *ret = (struct ox_rate_limit){.period_s = 1};
    read_int(rate, "dispatchThrottlingRateInMsg", &ret->messages);
    read_int(rate, "dispatchThrottlingRateInByte", &ret->bytes);
    read_count(rate, "ratePeriodInSecond", &ret->period_s);
    read_bool(rate, "relativeToPublishRate", &ret->relative);
    ret->period_s = OX_MAX(ret->period_s, 1u);
}

static void read_publish(const json_t *rate, struct ox_rate_limit *ret)
{
    if (!json_is_object(rate))
        return;
    *ret = (struct ox_rate_limit){.period_s = 1};
    read_int(rate, "publishThrottlingRateInMsg", &ret->messages);
    read_int(rate, "publishThrottlingRateInByte", &ret->bytes);
}

static void read_subscribe(const json_t *rate, struct ox_rate_limit *ret)
{
    if (!json_is_object(rate))
        return;
    *ret = (struct ox_rate_limit){.period_s = 30};
    read_int(rate, "subscribeThrottlingRatePerConsumer", &ret->messages);
    read_count(rate, "ratePeriodInSecond", &ret->period_s);
    ret->period_s = OX_MAX(ret->period_s, 1u);
}

static void read_inactive(const json_t *i, struct ox_policies *p)
{
    int64_t seconds;
    read_bool(i, "deleteWhileInactive", &p->inactive_delete);
    if (read_int(i, "maxInactiveDurationSeconds", &seconds) && seconds > 0)
        p->inactive_s = (uint64_t)seconds;
    const char *mode = json_string_value(json_object_get(i, "inactiveTopicDeleteMode"));
    if (mode)
        p->inactive_mode =
            strcmp(mode, "delete_when_subscriptions_caught_up") ? OX_INACTIVE_NO_SUBSCRIPTIONS : OX_INACTIVE_CAUGHT_UP;
}

// An empty list is no choice.
static void read_types(const json_t *list, struct ox_policies *p)
{
    uint8_t types = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        for (unsigned type = OX_SUB_EXCLUSIVE; name && type <= OX_SUB_KEY_SHARED; type++)
            if (!strcmp(name, ox_sub_type_name((enum ox_sub_type)type)))
                types |= (uint8_t)(1u << type);
    }
    if (types)
        p->subscription_types = types;
}

static void read_delays(const json_t *object, const char *tick, const char *longest, struct ox_policies *p)
{
    int64_t max;
    read_count(object, tick, &p->delayed_tick_ms);
    if (read_int(object, longest, &max) && max >= 0)
        p->delayed_max_ms = (uint64_t)max;
}

// ---- layers

static void namespace_rates(struct ox_policies *p, const json_t *ns, const char *cluster)
{
    const json_t *dispatch = json_object_get(json_object_get(ns, "topicDispatchRate"), cluster);
    if (!dispatch)
        dispatch = json_object_get(json_object_get(ns, "clusterDispatchRate"), cluster);
    read_dispatch(dispatch, &p->dispatch);
    read_dispatch(json_object_get(json_object_get(ns, "subscriptionDispatchRate"), cluster), &p->subscription_dispatch);
    read_publish(json_object_get(json_object_get(ns, "publishMaxMessageRate"), cluster), &p->publish);
    read_subscribe(json_object_get(json_object_get(ns, "clusterSubscribeRate"), cluster), &p->subscribe);
}

static void namespace_limits(struct ox_policies *p, const json_t *ns)
{
    read_count(ns, "max_producers_per_topic", &p->max_producers);
    read_count(ns, "max_consumers_per_topic", &p->max_consumers);
    read_count(ns, "max_consumers_per_subscription", &p->max_consumers_per_subscription);
    read_count(ns, "max_subscriptions_per_topic", &p->max_subscriptions);
    read_count(ns, "max_topics_per_namespace", &p->max_topics);
    read_count(ns, "max_unacked_messages_per_consumer", &p->max_unacked_per_consumer);
    read_count(ns, "max_unacked_messages_per_subscription", &p->max_unacked_per_subscription);
}

void ox_policies_apply_namespace(struct ox_policies *p, const json_t *ns, const char *cluster)
{
    int64_t minutes;
    read_amount(ns, "message_ttl_in_seconds", &p->ttl_s);
    read_retention(json_object_get(ns, "retention_policies"), p);
    read_quotas(json_object_get(ns, "backlog_quota_map"), p);
    namespace_limits(p, ns);
    namespace_rates(p, ns, cluster);
    read_bool(ns, "deduplicationEnabled", &p->dedup);
    read_count(ns, "deduplicationSnapshotIntervalSeconds", &p->dedup_snapshot_s);
    const json_t *delayed = json_object_get(ns, "delayed_delivery_policies");
    read_bool(delayed, "active", &p->delayed);
    read_delays(delayed, "tickTime", "maxDeliveryDelayInMillis", p);
    read_inactive(json_object_get(ns, "inactive_topic_policies"), p);
    read_amount(ns, "compaction_threshold", &p->compaction_threshold);
    read_types(json_object_get(ns, "subscription_types_enabled"), p);
    read_bool(json_object_get(ns, "autoSubscriptionCreationOverride"), "allowAutoSubscriptionCreation", &p->auto_subscription);
    if (read_int(ns, "subscription_expiration_time_minutes", &minutes) && minutes >= 0)
        p->subscription_expiry_s = scaled(minutes, 60);
    read_bool(ns, "encryption_required", &p->encryption_required);
}

static void topic_limits(struct ox_policies *p, const json_t *topic)
{
    read_count(topic, "maxProducerPerTopic", &p->max_producers);
    read_count(topic, "maxConsumerPerTopic", &p->max_consumers);
    read_count(topic, "maxConsumersPerSubscription", &p->max_consumers_per_subscription);
    read_count(topic, "maxSubscriptionsPerTopic", &p->max_subscriptions);
    read_count(topic, "maxUnackedMessagesOnConsumer", &p->max_unacked_per_consumer);
    read_count(topic, "maxUnackedMessagesOnSubscription", &p->max_unacked_per_subscription);
    read_count(topic, "maxMessageSize", &p->message_bytes_max);
}

void ox_policies_apply_topic(struct ox_policies *p, const json_t *topic)
{
    read_amount(topic, "messageTTLInSeconds", &p->ttl_s);
    read_retention(json_object_get(topic, "retentionPolicies"), p);
    read_quotas(json_object_get(topic, "backLogQuotaMap"), p);
    topic_limits(p, topic);
    read_dispatch(json_object_get(topic, "dispatchRate"), &p->dispatch);
    read_dispatch(json_object_get(topic, "subscriptionDispatchRate"), &p->subscription_dispatch);
    read_publish(json_object_get(topic, "publishRate"), &p->publish);
    read_subscribe(json_object_get(topic, "subscribeRate"), &p->subscribe);
    read_bool(topic, "deduplicationEnabled", &p->dedup);
    read_count(topic, "deduplicationSnapshotIntervalSeconds", &p->dedup_snapshot_s);
    read_bool(topic, "delayedDeliveryEnabled", &p->delayed);
    read_delays(topic, "delayedDeliveryTickTimeMillis", "delayedDeliveryMaxDelayInMillis", p);
    read_inactive(json_object_get(topic, "inactiveTopicPolicies"), p);
    read_amount(topic, "compactionThreshold", &p->compaction_threshold);
    read_types(json_object_get(topic, "subscriptionTypesEnabled"), p);
    read_bool(json_object_get(topic, "autoSubscriptionCreationOverride"), "allowAutoSubscriptionCreation",
              &p->auto_subscription);
}

struct ox_rate_limit ox_policies_subscription_dispatch(const struct ox_policies *p, const json_t *topic,
                                                       const char *subscription)
{
    struct ox_rate_limit rate = p->subscription_dispatch;
    const json_t *own = json_object_get(json_object_get(topic, "subscriptionPolicies"), subscription);
    read_dispatch(json_object_get(own, "dispatchRate"), &rate);
    return rate;
}
