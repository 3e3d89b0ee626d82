// policy_schema.c - the types of Pulsar 4.0's PulsarEvent and of all that is in it: names, types and order of the schema that its brokers register for __change_events.
#include "broker/policy_schema.h"

#include "base/mem.h"

static const char *const action_type_symbols[] = {"INSERT", "DELETE", "UPDATE", "NONE"};
static const struct avro_type action_type = {
    .kind = AVRO_ENUM, .symbols = action_type_symbols, .count = OX_COUNT(action_type_symbols)};

static const char *const event_type_symbols[] = {"TOPIC_POLICY", "TRANSACTION_BUFFER_SNAPSHOT",
                                                 "TRANSACTION_BUFFER_SNAPSHOT_SEGMENTS",
                                                 "TRANSACTION_BUFFER_SNAPSHOT_INDEXES"};
static const struct avro_type event_type = {
    .kind = AVRO_ENUM, .symbols = event_type_symbols, .count = OX_COUNT(event_type_symbols)};

static const struct avro_type string_array = {.kind = AVRO_ARRAY, .items = &avro_string};

static const struct avro_field auto_subscription_creation_override_fields[] = {
    {"allowAutoSubscriptionCreation", &avro_bool, false},
};
static const struct avro_type auto_subscription_creation_override = {
    .kind = AVRO_RECORD,
    .fields = auto_subscription_creation_override_fields,
    .count = OX_COUNT(auto_subscription_creation_override_fields)};

static const char *const retention_policy_symbols[] = {"producer_request_hold", "producer_exception",
                                                       "consumer_backlog_eviction"};
static const struct avro_type retention_policy = {
    .kind = AVRO_ENUM, .symbols = retention_policy_symbols, .count = OX_COUNT(retention_policy_symbols)};

static const struct avro_field backlog_quota_fields[] = {
    {"limit", &avro_long, false},
    {"limitSize", &avro_long, true},
    {"limitTime", &avro_int, false},
    {"policy", &retention_policy, true},
};
static const struct avro_type backlog_quota = {
    .kind = AVRO_RECORD, .fields = backlog_quota_fields, .count = OX_COUNT(backlog_quota_fields)};

static const struct avro_type backlog_quota_map = {.kind = AVRO_MAP, .items = &backlog_quota};

static const struct avro_field dispatch_rate_fields[] = {
    {"dispatchThrottlingRateInByte", &avro_long, false},
    {"dispatchThrottlingRateInMsg", &avro_int, false},
    {"ratePeriodInSecond", &avro_int, false},
    {"relativeToPublishRate", &avro_bool, false},
};
static const struct avro_type dispatch_rate = {
    .kind = AVRO_RECORD, .fields = dispatch_rate_fields, .count = OX_COUNT(dispatch_rate_fields)};

static const struct avro_field entry_filters_fields[] = {
    {"entryFilterNames", &avro_string, true},
};
static const struct avro_type entry_filters = {
    .kind = AVRO_RECORD, .fields = entry_filters_fields, .count = OX_COUNT(entry_filters_fields)};

static const char *const inactive_topic_delete_mode_symbols[] = {"delete_when_no_subscriptions",
                                                                 "delete_when_subscriptions_caught_up"};
static const struct avro_type inactive_topic_delete_mode = {.kind = AVRO_ENUM,
                                                            .symbols = inactive_topic_delete_mode_symbols,
                                                            .count = OX_COUNT(inactive_topic_delete_mode_symbols)};

static const struct avro_field inactive_topic_policies_fields[] = {
    {"deleteWhileInactive", &avro_bool, false},
    {"inactiveTopicDeleteMode", &inactive_topic_delete_mode, true},
    {"maxInactiveDurationSeconds", &avro_int, false},
};
static const struct avro_type inactive_topic_policies = {
    .kind = AVRO_RECORD, .fields = inactive_topic_policies_fields, .count = OX_COUNT(inactive_topic_policies_fields)};

static const struct avro_type string_map = {.kind = AVRO_MAP, .items = &avro_string};

static const char *const offloaded_read_priority_symbols[] = {"BOOKKEEPER_FIRST", "TIERED_STORAGE_FIRST"};
static const struct avro_type offloaded_read_priority = {
    .kind = AVRO_ENUM, .symbols = offloaded_read_priority_symbols, .count = OX_COUNT(offloaded_read_priority_symbols)};

static const struct avro_field offload_policies_fields[] = {
    {"fileSystemProfilePath", &avro_string, true},
    {"fileSystemURI", &avro_string, true},
    {"gcsManagedLedgerOffloadBucket", &avro_string, true},
    {"gcsManagedLedgerOffloadMaxBlockSizeInBytes", &avro_int, true},
    {"gcsManagedLedgerOffloadReadBufferSizeInBytes", &avro_int, true},
    {"gcsManagedLedgerOffloadRegion", &avro_string, true},
    {"gcsManagedLedgerOffloadServiceAccountKeyFile", &avro_string, true},
    {"managedLedgerExtraConfigurations", &string_map, true},
    {"managedLedgerOffloadBucket", &avro_string, true},
    {"managedLedgerOffloadDeletionLagInMillis", &avro_long, true},
    {"managedLedgerOffloadDriver", &avro_string, true},
    {"managedLedgerOffloadMaxBlockSizeInBytes", &avro_int, true},
    {"managedLedgerOffloadMaxThreads", &avro_int, true},
    {"managedLedgerOffloadPrefetchRounds", &avro_int, true},
    {"managedLedgerOffloadReadBufferSizeInBytes", &avro_int, true},
    {"managedLedgerOffloadRegion", &avro_string, true},
    {"managedLedgerOffloadServiceEndpoint", &avro_string, true},
    {"managedLedgerOffloadThresholdInBytes", &avro_long, true},
    {"managedLedgerOffloadThresholdInSeconds", &avro_long, true},
    {"managedLedgerOffloadedReadPriority", &offloaded_read_priority, true},
    {"offloadersDirectory", &avro_string, true},
    {"s3ManagedLedgerOffloadBucket", &avro_string, true},
    {"s3ManagedLedgerOffloadCredentialId", &avro_string, true},
    {"s3ManagedLedgerOffloadCredentialSecret", &avro_string, true},
    {"s3ManagedLedgerOffloadMaxBlockSizeInBytes", &avro_int, true},
    {"s3ManagedLedgerOffloadReadBufferSizeInBytes", &avro_int, true},
    {"s3ManagedLedgerOffloadRegion", &avro_string, true},
    {"s3ManagedLedgerOffloadRole", &avro_string, true},
    {"s3ManagedLedgerOffloadRoleSessionName", &avro_string, true},
    {"s3ManagedLedgerOffloadServiceEndpoint", &avro_string, true},
};
static const struct avro_type offload_policies = {
    .kind = AVRO_RECORD, .fields = offload_policies_fields, .count = OX_COUNT(offload_policies_fields)};

static const struct avro_field persistence_policies_fields[] = {
    {"bookkeeperAckQuorum", &avro_int, false},
    {"bookkeeperEnsemble", &avro_int, false},
    {"bookkeeperWriteQuorum", &avro_int, false},
    {"managedLedgerMaxMarkDeleteRate", &avro_double, false},
    {"managedLedgerStorageClassName", &avro_string, true},
};
static const struct avro_type persistence_policies = {
    .kind = AVRO_RECORD, .fields = persistence_policies_fields, .count = OX_COUNT(persistence_policies_fields)};

static const struct avro_field publish_rate_fields[] = {
    {"publishThrottlingRateInByte", &avro_long, false},
    {"publishThrottlingRateInMsg", &avro_int, false},
};
static const struct avro_type publish_rate = {
    .kind = AVRO_RECORD, .fields = publish_rate_fields, .count = OX_COUNT(publish_rate_fields)};

static const struct avro_field retention_policies_fields[] = {
    {"retentionSizeInMB", &avro_long, false},
    {"retentionTimeInMinutes", &avro_int, false},
};
static const struct avro_type retention_policies = {
    .kind = AVRO_RECORD, .fields = retention_policies_fields, .count = OX_COUNT(retention_policies_fields)};

static const char *const schema_compatibility_strategy_symbols[] = {
    "UNDEFINED", "ALWAYS_INCOMPATIBLE", "ALWAYS_COMPATIBLE",  "BACKWARD",       "FORWARD",
    "FULL",      "BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE"};
static const struct avro_type schema_compatibility_strategy = {.kind = AVRO_ENUM,
                                                               .symbols = schema_compatibility_strategy_symbols,
                                                               .count = OX_COUNT(schema_compatibility_strategy_symbols)};

static const struct avro_field subscribe_rate_fields[] = {
    {"ratePeriodInSecond", &avro_int, false},
    {"subscribeThrottlingRatePerConsumer", &avro_int, false},
};
static const struct avro_type subscribe_rate = {
    .kind = AVRO_RECORD, .fields = subscribe_rate_fields, .count = OX_COUNT(subscribe_rate_fields)};

static const struct avro_field subscription_policies_fields[] = {
    {"dispatchRate", &dispatch_rate, true},
};
static const struct avro_type subscription_policies = {
    .kind = AVRO_RECORD, .fields = subscription_policies_fields, .count = OX_COUNT(subscription_policies_fields)};

static const struct avro_type subscription_policies_map = {.kind = AVRO_MAP, .items = &subscription_policies};

static const char *const sub_type_symbols[] = {"Exclusive", "Shared", "Failover", "Key_Shared"};
static const struct avro_type sub_type = {.kind = AVRO_ENUM, .symbols = sub_type_symbols, .count = OX_COUNT(sub_type_symbols)};

static const struct avro_type sub_type_array = {.kind = AVRO_ARRAY, .items = &sub_type};

static const struct avro_field topic_policies_fields[] = {
    {"autoSubscriptionCreationOverride", &auto_subscription_creation_override, true},
    {"backLogQuotaMap", &backlog_quota_map, true},
    {"compactionThreshold", &avro_long, true},
    {"deduplicationEnabled", &avro_bool, true},
    {"deduplicationSnapshotIntervalSeconds", &avro_int, true},
    {"delayedDeliveryEnabled", &avro_bool, true},
    {"delayedDeliveryMaxDelayInMillis", &avro_long, true},
    {"delayedDeliveryTickTimeMillis", &avro_long, true},
    {"dispatchRate", &dispatch_rate, true},
    {"dispatcherPauseOnAckStatePersistentEnabled", &avro_bool, true},
    {"entryFilters", &entry_filters, true},
    {"inactiveTopicPolicies", &inactive_topic_policies, true},
    {"isGlobal", &avro_bool, true},
    {"maxConsumerPerTopic", &avro_int, true},
    {"maxConsumersPerSubscription", &avro_int, true},
    {"maxMessageSize", &avro_int, true},
    {"maxProducerPerTopic", &avro_int, true},
    {"maxSubscriptionsPerTopic", &avro_int, true},
    {"maxUnackedMessagesOnConsumer", &avro_int, true},
    {"maxUnackedMessagesOnSubscription", &avro_int, true},
    {"messageTTLInSeconds", &avro_int, true},
    {"offloadPolicies", &offload_policies, true},
    {"persistence", &persistence_policies, true},
    {"publishRate", &publish_rate, true},
    {"replicationClusters", &string_array, true},
    {"replicatorDispatchRate", &dispatch_rate, true},
    {"retentionPolicies", &retention_policies, true},
    {"schemaCompatibilityStrategy", &schema_compatibility_strategy, true},
    {"schemaValidationEnforced", &avro_bool, true},
    {"shadowTopics", &string_array, true},
    {"subscribeRate", &subscribe_rate, true},
    {"subscriptionDispatchRate", &dispatch_rate, true},
    {"subscriptionPolicies", &subscription_policies_map, true},
    {"subscriptionTypesEnabled", &sub_type_array, true},
};
static const struct avro_type topic_policies = {
    .kind = AVRO_RECORD, .fields = topic_policies_fields, .count = OX_COUNT(topic_policies_fields)};

static const struct avro_field topic_policies_event_fields[] = {
    {"domain", &avro_string, true}, {"namespace", &avro_string, true}, {"policies", &topic_policies, true},
    {"tenant", &avro_string, true}, {"topic", &avro_string, true},
};
static const struct avro_type topic_policies_event = {
    .kind = AVRO_RECORD, .fields = topic_policies_event_fields, .count = OX_COUNT(topic_policies_event_fields)};

static const struct avro_field pulsar_event_fields[] = {
    {"actionType", &action_type, true},
    {"eventType", &event_type, true},
    {"replicateTo", &string_array, true},
    {"topicPoliciesEvent", &topic_policies_event, true},
};
const struct avro_type policy_event_schema = {
    .kind = AVRO_RECORD, .fields = pulsar_event_fields, .count = OX_COUNT(pulsar_event_fields)};
