// settings.c - from configuration keys to the settings of each part.
#include "oxbowd/settings.h"

#include <string.h>

#include "broker/subscription.h"

#define MIB (UINT64_C(1024) * 1024)
#define SETTINGS_MESSAGE_EXTRA (128 * 1024) // metadata and frame of a message, and the store's own 64 KiB

void settings_store(const struct ox_config *c, struct ox_store_config *ret)
{
    static const enum ox_store_sync policies[] = {
        [OX_CONFIG_STORE_SYNC_POLICY_SYNC] = OX_STORE_SYNC,
        [OX_CONFIG_STORE_SYNC_POLICY_SYNC_INTERVAL] = OX_STORE_SYNC_INTERVAL,
        [OX_CONFIG_STORE_SYNC_POLICY_NONE] = OX_STORE_SYNC_NONE,
    };
    ret->segment_bytes = (uint64_t)c->storeSegmentSizeMB * MIB;
    ret->sync = policies[c->storeSyncPolicy];
    ret->sync_interval_ms = (uint32_t)c->storeSyncIntervalMs;
    ret->reserve_bytes = (uint64_t)c->storeReserveMB * MIB;
    ret->index_cache_bytes = (uint64_t)c->storeIndexCacheSizeMB * MIB;
    ret->inflight_bytes_max = 2 * (uint64_t)c->maxMessagePublishBufferSizeInMB * MIB;
    ret->compaction_bytes_per_s = (uint64_t)c->storeCompactionRateMBPerSecond * MIB;
    if (c->storeCompactionRateMBPerSecond == 0)
        ret->compaction_percent = 0;
}

static int64_t settings_scaled(int64_t value, int64_t unit)
{
    return value < 0 ? -1 : value * unit;
}

void settings_mledger(const struct ox_config *c, struct ox_ml_settings *ret)
{
    ox_ml_settings_init(ret);
    ret->ledger_entries_max = (uint64_t)c->managedLedgerMaxEntriesPerLedger;
    ret->ledger_bytes_max = (uint64_t)c->managedLedgerMaxSizePerLedgerMbytes * MIB;
    ret->rollover_ns_min = (uint64_t)c->managedLedgerMinLedgerRolloverTimeMinutes * 60 * OX_SEC;
    ret->rollover_ns_max = (uint64_t)c->managedLedgerMaxLedgerRolloverTimeMinutes * 60 * OX_SEC;
    ret->retention_ms = settings_scaled(c->defaultRetentionTimeInMinutes, 60000);
    ret->retention_bytes = settings_scaled(c->defaultRetentionSizeInMB, (int64_t)MIB);
    ret->cursor_entries_max = (uint64_t)c->managedLedgerCursorMaxEntriesPerLedger;
    ret->cursor_rollover_ns = (uint64_t)c->managedLedgerCursorRolloverTimeInSeconds * OX_SEC;
    ret->ranges_persisted_max = (uint32_t)c->managedLedgerMaxUnackedRangesToPersist;
    ret->ranges_in_node_max = (uint32_t)c->managedLedgerMaxUnackedRangesToPersistInMetadataStore;
    ret->batch_sets_persisted_max = (uint32_t)c->managedLedgerMaxBatchDeletedIndexToPersist;
    double rate = c->managedLedgerDefaultMarkDeleteRateLimit;
    ret->mark_delete_interval_ns = rate > 0 ? (uint64_t)((double)OX_SEC / rate) : 0;
    ret->broker_entry_metadata = *c->brokerEntryMetadataInterceptors != 0;
    ret->trim_delay_ns = (uint64_t)c->managedLedgerTrimDelaySeconds * OX_SEC;
    ret->skip_unrecoverable = c->autoSkipNonRecoverableData;
    ret->guarded_records = c->pulsarCompatibleRecords == OX_CONFIG_PULSAR_COMPATIBLE_RECORDS_GUARDED;
    ret->follow_max = (uint32_t)c->bookieClusterSwitch_migrationConcurrency;
    ret->away_read_ns = (uint64_t)c->bookieClusterSwitch_oldLedgerReadTimeoutMs * OX_MS;
}

// The two windows are one: the longer.
static uint64_t settings_window_ms(const struct ox_config *c)
{
    uint64_t days = (uint64_t)c->bookieClusterSwitch_dualReadTimeoutDays;
    uint64_t hours = (uint64_t)c->bookieClusterSwitch_rollbackWindowHours;
    return OX_MAX(days * 24, hours) * 3600 * 1000;
}

void settings_storage(const struct ox_config *c, struct ox_storage_config *ret)
{
    ox_storage_config_init(ret);
    ret->root = c->bookieClusterSwitch_configPath;
    ret->current = c->bookieClusterSwitch_currentClusterName;
    ret->skip_idgen = c->bookieClusterSwitch_skipIdgenPrecheck;
    ret->window_ms = settings_window_ms(c);
    ret->concurrency = (uint32_t)c->bookieClusterSwitch_migrationConcurrency;
    ret->bytes_per_s = (uint64_t)c->bookieClusterSwitch_moveDataBytesPerSecond;
    ret->ops_per_s = (uint64_t)c->bookieClusterSwitch_moveDataOpsPerSecond;
    ret->latency_ns = (uint64_t)c->bookieClusterSwitch_moveDataYieldLatencyMs * OX_MS;
    ret->default_uri_explicit = *c->bookkeeperMetadataServiceUri != 0;
}

// A list of subscription types as bits; 0 if one is not known.
static uint8_t settings_types(const char *list)
{
    uint8_t types = 0;
    for (const char *p = list; *p;) {
        size_t len = strcspn(p, ", ");
        uint8_t bit = 0;
        for (unsigned type = OX_SUB_EXCLUSIVE; type <= OX_SUB_KEY_SHARED; type++) {
            const char *name = ox_sub_type_name((enum ox_sub_type)type);
            if (strlen(name) == len && strncmp(name, p, len) == 0)
                bit = (uint8_t)(1u << type);
        }
        if (len && !bit)
            return 0;
        types |= bit;
        p += len + (p[len] != 0);
    }
    return types;
}

static void settings_limits(const struct ox_config *c, struct ox_policies *ret)
{
    ret->max_topics = (uint32_t)c->maxTopicsPerNamespace;
    ret->max_producers = (uint32_t)c->maxProducersPerTopic;
    ret->max_consumers = (uint32_t)c->maxConsumersPerTopic;
    ret->max_consumers_per_subscription = (uint32_t)c->maxConsumersPerSubscription;
    ret->max_subscriptions = (uint32_t)c->maxSubscriptionsPerTopic;
    ret->max_unacked_per_consumer = (uint32_t)c->maxUnackedMessagesPerConsumer;
    ret->max_unacked_per_subscription = (uint32_t)c->maxUnackedMessagesPerSubscription;
    ret->subscription_types = settings_types(c->subscriptionTypesEnabled);
}

static void settings_delays(const struct ox_config *c, struct ox_policies *ret)
{
    ret->delayed = c->delayedDeliveryEnabled;
    ret->delayed_tick_ms = (uint32_t)c->delayedDeliveryTickTimeMillis;
    ret->delayed_max_ms = (uint64_t)c->delayedDeliveryMaxDelayInMillis;
}

static void settings_rates(const struct ox_config *c, struct ox_policies *ret)
{
    bool relative = c->dispatchThrottlingRateRelativeToPublishRate;
    ret->dedup = c->brokerDeduplicationEnabled;
    ret->dedup_snapshot_s = (uint32_t)c->brokerDeduplicationSnapshotIntervalSeconds;
    ret->publish = (struct ox_rate_limit){
        .messages = c->maxPublishRatePerTopicInMessages, .bytes = c->maxPublishRatePerTopicInBytes, .period_s = 1};
    ret->dispatch = (struct ox_rate_limit){c->dispatchThrottlingRatePerTopicInMsg,
                                           c->dispatchThrottlingRatePerTopicInByte, 1, relative};
    ret->subscription_dispatch = (struct ox_rate_limit){c->dispatchThrottlingRatePerSubscriptionInMsg,
                                                        c->dispatchThrottlingRatePerSubscriptionInByte, 1, relative};
    ret->subscribe = (struct ox_rate_limit){.messages = c->subscribeThrottlingRatePerConsumer,
                                            .period_s = (uint32_t)c->subscribeRatePeriodPerConsumerInSecond};
}

static enum ox_quota_policy settings_quota_policy(const struct ox_config *c)
{
    static const enum ox_quota_policy policies[] = {
        [OX_CONFIG_BACKLOG_QUOTA_DEFAULT_RETENTION_POLICY_PRODUCER_REQUEST_HOLD] = OX_QUOTA_HOLD,
        [OX_CONFIG_BACKLOG_QUOTA_DEFAULT_RETENTION_POLICY_PRODUCER_EXCEPTION] = OX_QUOTA_EXCEPTION,
        [OX_CONFIG_BACKLOG_QUOTA_DEFAULT_RETENTION_POLICY_CONSUMER_BACKLOG_EVICTION] = OX_QUOTA_EVICT,
    };
    return policies[c->backlogQuotaDefaultRetentionPolicy];
}

static void settings_policies(const struct ox_config *c, struct ox_policies *ret)
{
    int64_t inactive = c->brokerDeleteInactiveTopicsMaxInactiveDurationSeconds;
    ret->ttl_s = c->ttlDurationDefaultInSeconds;
    ret->quota_bytes = c->backlogQuotaDefaultLimitBytes;
    ret->quota_s = c->backlogQuotaDefaultLimitSecond;
    ret->quota_bytes_policy = ret->quota_s_policy = settings_quota_policy(c);
    ret->inactive_delete = c->brokerDeleteInactiveTopicsEnabled;
    ret->inactive_s = (uint64_t)(inactive ? inactive : c->brokerDeleteInactiveTopicsFrequencySeconds);
    ret->inactive_mode = c->brokerDeleteInactiveTopicsMode ==
                                 OX_CONFIG_BROKER_DELETE_INACTIVE_TOPICS_MODE_DELETE_WHEN_SUBSCRIPTIONS_CAUGHT_UP
                             ? OX_INACTIVE_CAUGHT_UP
                             : OX_INACTIVE_NO_SUBSCRIPTIONS;
    ret->compaction_threshold = c->brokerServiceCompactionThresholdInBytes;
    ret->subscription_expiry_s = c->subscriptionExpirationTimeMinutes * 60;
    settings_limits(c, ret);
    settings_delays(c, ret);
    settings_rates(c, ret);
}

static void settings_checks(const struct ox_config *c, struct ox_broker_config *ret)
{
    ret->topic_policies = c->topicLevelPoliciesEnabled && c->systemTopicEnabled;
    ret->ttl_check_ns = (uint64_t)c->messageExpiryCheckIntervalInMinutes * 60 * OX_SEC;
    ret->expiry_check_ns = (uint64_t)c->subscriptionExpiryCheckIntervalInMinutes * 60 * OX_SEC;
    ret->quota_check_ns = c->backlogQuotaCheckEnabled ? (uint64_t)c->backlogQuotaCheckIntervalInSeconds * OX_SEC : 0;
    ret->inactive_check_ns =
        c->brokerDeleteInactiveTopicsEnabled ? (uint64_t)c->brokerDeleteInactiveTopicsFrequencySeconds * OX_SEC : 0;
    ret->compaction_check_ns = (uint64_t)c->brokerServiceCompactionMonitorIntervalInSeconds * OX_SEC;
    ret->compaction_keys_bytes = (uint64_t)c->compactionKeyMemoryMB * MIB;
    ret->scan_entries_max = (uint32_t)c->subscriptionBacklogScanMaxEntries;
    ret->scan_ms_max = (uint32_t)c->subscriptionBacklogScanMaxTimeMs;
    ret->compaction_retain_null_key = c->topicCompactionRetainNullKey;
    ret->inactive_partitions = c->brokerDeleteInactivePartitionedTopicMetadataEnabled;
}

void settings_broker(const struct ox_config *c, struct ox_broker_config *ret)
{
    ox_broker_config_init(ret);
    ret->cluster = c->clusterName;
    ret->message_bytes_max = (uint32_t)c->maxMessageSize;
    ret->bundles = (uint32_t)c->defaultNumberOfNamespaceBundles;
    ret->auto_topic_creation = c->allowAutoTopicCreation;
    ret->auto_topic_partitioned = c->allowAutoTopicCreationType == OX_CONFIG_ALLOW_AUTO_TOPIC_CREATION_TYPE_PARTITIONED;
    ret->default_partitions = (uint32_t)c->defaultNumPartitions;
    ret->force_delete_namespace = c->forceDeleteNamespaceAllowed;
    ret->force_delete_tenant = c->forceDeleteTenantAllowed;
    ret->auto_subscription_creation = c->allowAutoSubscriptionCreation;
    ret->persistent_topics = c->enablePersistentTopics;
    ret->non_persistent_topics = c->enableNonPersistentTopics;
    ret->patterns_here = c->enableBrokerSideSubscriptionPatternEvaluation;
    ret->pattern_bytes_max = (uint32_t)c->subscriptionPatternMaxLength;
    ret->batch_index_acks = c->acknowledgmentAtBatchIndexLevelEnabled;
    ret->topic_inflight_bytes = (uint64_t)c->maxTopicPublishBufferSizeInMB * MIB;
    ret->total_inflight_bytes = (uint64_t)c->maxMessagePublishBufferSizeInMB * MIB;
    ret->resend_ns = (uint64_t)c->producerResendWindowSeconds * OX_SEC;
    ret->stats_interval_ns = (uint64_t)c->statsUpdateFrequencyInSecs * OX_SEC;
    ret->metrics_topics = c->exposeTopicLevelMetricsInPrometheus;
    ret->metrics_consumers = c->exposeConsumerLevelMetricsInPrometheus;
    ret->metrics_producers = c->exposeProducerLevelMetricsInPrometheus;
    ret->metrics_logs = c->exposeManagedLedgerMetricsInPrometheus;
    ret->metrics_split = c->splitTopicAndPartitionLabelInPrometheus;
    ret->failover_delay_ns = (uint64_t)c->activeConsumerFailoverDelayTimeMillis * OX_MS;
    ret->dispatch_entries_max = (uint32_t)c->dispatcherMaxReadBatchSize;
    ret->key_points = (uint32_t)c->subscriptionKeySharedConsistentHashingReplicaPoints;
    ret->delays_strict = c->isDelayedDeliveryDeliverAtTimeStrict;
    ret->publish_messages_per_s = (double)c->brokerPublisherThrottlingMaxMessageRate;
    ret->publish_bytes_per_s = (double)c->brokerPublisherThrottlingMaxByteRate;
    ret->dedup_names_max = (uint32_t)c->brokerDeduplicationMaxNumberOfProducers;
    ret->dedup_entries = (uint32_t)c->brokerDeduplicationEntriesInterval;
    ret->dedup_idle_ns = (uint64_t)c->brokerDeduplicationProducerInactivityTimeoutMinutes * 60 * OX_SEC;
    ret->probe_ns = (uint64_t)c->connectionLivenessCheckTimeoutMillis * OX_MS;
    settings_policies(c, &ret->policies);
    settings_checks(c, ret);
}

void settings_pulsar(const struct ox_config *c, struct ox_pulsar_config *ret)
{
    ox_pulsar_config_init(ret);
    ret->host = c->bindAddress;
    ret->port = (uint16_t)c->brokerServicePort;
    ret->connections_max = c->brokerMaxConnections ? (uint32_t)c->brokerMaxConnections : UINT32_MAX;
    ret->keep_alive_ns = (uint64_t)c->keepAliveIntervalSeconds * OX_SEC;
}

void settings_admin(const struct ox_config *c, struct ox_admin_limits *ret)
{
    *ret = (struct ox_admin_limits){.connections = (uint32_t)c->maxHttpServerConnections,
                                    .head_bytes = (uint32_t)c->httpMaxRequestHeaderSize,
                                    .request_ns = (uint64_t)c->httpRequestTimeoutSeconds * OX_SEC,
                                    .idle_ns = (uint64_t)c->httpIdleTimeoutSeconds * OX_SEC,
                                    .answer_ns = (uint64_t)c->httpAnswerTimeoutSeconds * OX_SEC};
}

uint64_t settings_cache_bytes(const struct ox_config *c)
{
    return (uint64_t)c->managedLedgerCacheSizeMB * MIB;
}

// One interceptor's class name, with or without its package.
static bool settings_interceptor_known(const char *name, size_t len)
{
    static const char *const known[] = {"AppendIndexMetadataInterceptor", "AppendBrokerTimestampMetadataInterceptor"};
    for (size_t i = 0; i < OX_COUNT(known); i++) {
        size_t n = strlen(known[i]);
        if (len >= n && strncmp(name + len - n, known[i], n) == 0 && (len == n || name[len - n - 1] == '.'))
            return true;
    }
    return false;
}

static enum ox_err settings_check_interceptors(const char *list, struct ox_str *error)
{
    for (const char *p = list; *p;) {
        size_t len = strcspn(p, ", ");
        if (len > 0 && !settings_interceptor_known(p, len)) {
            ox_str_addf(error, "brokerEntryMetadataInterceptors: %.*s is not known; AppendIndexMetadataInterceptor and AppendBrokerTimestampMetadataInterceptor are",
                        (int)len, p);
            return OX_E_INVALID;
        }
        p += len + (p[len] != 0);
    }
    return OX_OK;
}

// A message, with its metadata, must fit the store: half a segment, less what the segment itself needs (ox_store_config.segment_bytes).
static enum ox_err settings_check_sizes(const struct ox_config *c, struct ox_str *error)
{
    int64_t wanted_mb = (2 * (c->maxMessageSize + (int64_t)SETTINGS_MESSAGE_EXTRA) + (int64_t)MIB - 1) / (int64_t)MIB;
    if (c->storeSegmentSizeMB >= wanted_mb)
        return OX_OK;
    ox_str_addf(error, "storeSegmentSizeMB=%lld: too small for messages of maxMessageSize=%lld bytes; take at least storeSegmentSizeMB=%lld, or smaller messages",
                (long long)c->storeSegmentSizeMB, (long long)c->maxMessageSize, (long long)wanted_mb);
    return OX_E_INVALID;
}

enum ox_err settings_check(const struct ox_config *c, struct ox_str *error)
{
    const char *uri = c->bookkeeperMetadataServiceUri, *meta = c->metadataStoreUrl;
    if (*uri && (strncmp(uri, "embedded:", 9) != 0 || !uri[9])) {
        ox_str_addf(error, "bookkeeperMetadataServiceUri: \"%s\" is not supported by this version; use embedded:DIR", uri);
        return OX_E_INVALID;
    }
    if (*meta && strcmp(meta, "memory:") != 0 && (strncmp(meta, "lmdb:", 5) != 0 || !meta[5])) {
        ox_str_addf(error, "metadataStoreUrl: \"%s\" is not supported by this version; use lmdb:DIR or memory:", meta);
        return OX_E_INVALID;
    }
    if (!ox_meta_path_valid(c->bookieClusterSwitch_configPath) || strcmp(c->bookieClusterSwitch_configPath, "/") == 0) {
        ox_str_addf(error, "bookieClusterSwitch.configPath: \"%s\" is no path; use one such as /admin/bookie-clusters",
                    c->bookieClusterSwitch_configPath);
        return OX_E_INVALID;
    }
    if (!settings_types(c->subscriptionTypesEnabled)) {
        ox_str_addf(error, "subscriptionTypesEnabled: \"%s\" is no list of Exclusive, Shared, Failover, Key_Shared",
                    c->subscriptionTypesEnabled);
        return OX_E_INVALID;
    }
    enum ox_err err = settings_check_sizes(c, error);
    return err == OX_OK ? settings_check_interceptors(c->brokerEntryMetadataInterceptors, error) : err;
}
