// policies.h - what applies to a topic: the topic's own policies over its namespace's over the broker's settings.
#ifndef BROKER_POLICIES_H
#define BROKER_POLICIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct json_t;
struct ox_broker_config;
struct ox_topic;

enum ox_quota_policy {
    OX_QUOTA_HOLD,
    OX_QUOTA_EXCEPTION,
    OX_QUOTA_EVICT
}; // producer_request_hold, producer_exception, consumer_backlog_eviction
enum ox_inactive_mode {
    OX_INACTIVE_NO_SUBSCRIPTIONS,
    OX_INACTIVE_CAUGHT_UP
}; // delete_when_no_subscriptions, delete_when_subscriptions_caught_up

#define OX_SUBSCRIPTION_TYPES_ALL 0xfu // bits (1 << enum ox_sub_type)

// A rate; 0 or less = without limit.
struct ox_rate_limit {
    int64_t messages, bytes; // per period
    uint32_t period_s;       // 1 at least
    bool relative;           // to the topic's publish rate
};

// The values in force for one topic. Numbers: 0 = without limit unless said otherwise. Each comment names the namespace policy, then the broker's setting.
struct ox_policies {
    int64_t ttl_s;                         // message_ttl_in_seconds, ttlDurationDefaultInSeconds
    int64_t retention_ms, retention_bytes; // retention_policies; -1 = without limit, 0 = none
    int64_t quota_bytes, quota_s; // backlog_quota_map destination_storage, message_age; -1 = none; of the age 0 too
    enum ox_quota_policy quota_bytes_policy, quota_s_policy;
    uint32_t max_producers, max_consumers, max_consumers_per_subscription, max_subscriptions;
    uint32_t max_topics; // of the namespace: max_topics_per_namespace, maxTopicsPerNamespace
    uint32_t max_unacked_per_consumer, max_unacked_per_subscription;
    bool dedup; // deduplicationEnabled, brokerDeduplicationEnabled
    uint32_t dedup_snapshot_s;
    bool delayed; // delayed_delivery_policies, delayedDeliveryEnabled
    uint32_t delayed_tick_ms;
    uint64_t delayed_max_ms; // longer delays are refused
    bool inactive_delete;    // inactive_topic_policies, brokerDeleteInactiveTopicsEnabled
    enum ox_inactive_mode inactive_mode;
    uint64_t inactive_s;
    struct ox_rate_limit publish, dispatch, subscription_dispatch,
        subscribe; // publishMaxMessageRate, topicDispatchRate, subscriptionDispatchRate, clusterSubscribeRate
    int64_t compaction_threshold;  // bytes
    uint32_t message_bytes_max;    // topic policy maxMessageSize; 0: the broker's
    uint8_t subscription_types;    // bit (1 << enum ox_sub_type): allowed
    bool auto_subscription;        // autoSubscriptionCreationOverride, allowAutoSubscriptionCreation
    int64_t subscription_expiry_s; // subscription_expiration_time_minutes
    bool encryption_required;
};

// Pulsar's defaults, as of a broker whose configuration says nothing.
void ox_policies_init(struct ox_policies *ret);
// The broker's settings as policies.
void ox_policies_of_broker(const struct ox_broker_config *c, struct ox_policies *ret);
// Lays a namespace's policies (the JSON object in the metadata store) over p. Rates are kept by cluster: `cluster`'s count. Members that are missing, null or
// of another type than Pulsar's change nothing.
void ox_policies_apply_namespace(struct ox_policies *p, const struct json_t *ns, const char *cluster);
// Lays a topic's own policies (the members of Pulsar's TopicPolicies) over p.
void ox_policies_apply_topic(struct ox_policies *p, const struct json_t *topic);
// The dispatch rate that the topic's own policies give one subscription (subscriptionPolicies), else p->subscription_dispatch. topic may be NULL.
struct ox_rate_limit ox_policies_subscription_dispatch(const struct ox_policies *p, const struct json_t *topic,
                                                       const char *subscription);

// The values of a topic have been computed anew (t->policies): limits, log settings and dispatchers follow.
void topic_policies_changed(struct ox_topic *t);

#endif
