// shard.h - everything a broker's loop owns: ports, stores, topics, budgets, settings. There are no globals: all hangs off this.
#ifndef BROKER_SHARD_H
#define BROKER_SHARD_H

#include "base/limits.h"
#include "base/list.h"
#include "base/map.h"
#include "base/metrics.h"
#include "base/token_bucket.h"
#include "broker/policies.h"
#include "io/loop.h"
#include "io/seq.h"
#include "ledger/router.h"
#include "metastore/metastore.h"
#include "mledger/factory.h"

// Settings; the names in comments are the configuration keys. Strings are borrowed for the shard's life. ox_broker_config_init gives the defaults.
struct ox_broker_config {
    const char *cluster;             // clusterName "standalone"
    const char *service_url;         // "pulsar://<advertisedAddress>:<brokerServicePort>"; what look-ups answer
    const char *web_url;             // "http://<advertisedAddress>:<webServicePort>"
    const char *metadata_url;        // metadataStoreUrl; what tools are told
    uint32_t message_bytes_max;      // maxMessageSize 5 MiB
    uint32_t bundles;                // defaultNumberOfNamespaceBundles 4
    bool auto_topic_creation;        // allowAutoTopicCreation true
    bool auto_topic_partitioned;     // allowAutoTopicCreationType non-partitioned
    uint32_t default_partitions;     // defaultNumPartitions 1
    bool force_delete_namespace;     // forceDeleteNamespaceAllowed false
    bool force_delete_tenant;        // forceDeleteTenantAllowed false
    bool auto_subscription_creation; // allowAutoSubscriptionCreation true
    bool persistent_topics;          // enablePersistentTopics true
    bool non_persistent_topics;      // enableNonPersistentTopics true
    bool patterns_here;              // enableBrokerSideSubscriptionPatternEvaluation true
    uint32_t pattern_bytes_max;      // subscriptionPatternMaxLength 50
    bool batch_index_acks;           // acknowledgmentAtBatchIndexLevelEnabled true
    uint64_t topic_inflight_bytes;   // OX_TOPIC_INFLIGHT_BYTES: beyond it a producer's connection is not read
    uint64_t total_inflight_bytes;   // OX_TOTAL_INFLIGHT_BYTES
    uint64_t resend_ns; // producerResendWindowSeconds 5 min: how long re-sent messages are recognised after a topic was loaded or a connection broke; 0: never
    uint64_t stats_interval_ns;    // statsUpdateFrequencyInSecs 60
    bool metrics_topics;           // exposeTopicLevelMetricsInPrometheus true: else sums by namespace
    bool metrics_consumers;        // exposeConsumerLevelMetricsInPrometheus false
    bool metrics_producers;        // exposeProducerLevelMetricsInPrometheus false
    bool metrics_logs;             // exposeManagedLedgerMetricsInPrometheus true
    bool metrics_split;            // splitTopicAndPartitionLabelInPrometheus false
    uint32_t dispatch_entries_max; // dispatcherMaxReadBatchSize 100
    uint32_t dispatch_bytes_max;   // dispatcherMaxReadSizeBytes, 1 MiB here
    uint64_t failover_delay_ns; // activeConsumerFailoverDelayTimeMillis 1000: a new active consumer of a Failover subscription waits so long for its first message
    uint32_t key_points;        // subscriptionKeySharedConsistentHashingReplicaPoints 100
    bool delays_strict;         // isDelayedDeliveryDeliverAtTimeStrict: true here
    uint64_t probe_ns;          // connectionLivenessCheckTimeoutMillis 5000
    double publish_messages_per_s; // brokerPublisherThrottlingMaxMessageRate 0: all topics together; 0: without limit
    double publish_bytes_per_s;    // brokerPublisherThrottlingMaxByteRate 0
    uint32_t dedup_names_max;      // brokerDeduplicationMaxNumberOfProducers 10000: of a topic
    uint32_t dedup_entries;        // brokerDeduplicationEntriesInterval 1000: messages between two snapshots
    uint64_t dedup_idle_ns;        // brokerDeduplicationProducerInactivityTimeoutMinutes 360
    struct ox_policies policies; // what applies where neither topic nor namespace says otherwise; retention is the log settings', auto_subscription the member above
    bool topic_policies;         // topicLevelPoliciesEnabled and systemTopicEnabled true
    uint64_t ttl_check_ns;       // messageExpiryCheckIntervalInMinutes 5
    uint64_t expiry_check_ns;    // subscriptionExpiryCheckIntervalInMinutes 5
    uint64_t quota_check_ns;     // backlogQuotaCheckIntervalInSeconds 60; 0: backlogQuotaCheckEnabled is off
    uint64_t inactive_check_ns; // brokerDeleteInactiveTopicsFrequencySeconds 60; 0: brokerDeleteInactiveTopicsEnabled is off, for all namespaces
    uint64_t compaction_check_ns;    // brokerServiceCompactionMonitorIntervalInSeconds 60
    uint64_t compaction_keys_bytes;  // compactionKeyMemoryMB 128 MiB: keys that a run notes
    bool compaction_retain_null_key; // topicCompactionRetainNullKey false: messages without a key stay
    uint32_t scan_entries_max;       // subscriptionBacklogScanMaxEntries 10000: where looking through a backlog ends
    uint32_t scan_ms_max;            // subscriptionBacklogScanMaxTimeMs 120000
    bool inactive_partitions; // brokerDeleteInactivePartitionedTopicMetadataEnabled false: with its last partition a partitioned topic's count goes too
};
// Fills in the defaults.
void ox_broker_config_init(struct ox_broker_config *c);

#define OX_SHARD_STATES(X)                                                         \
    X(NEW)      /* not started */                                                  \
    X(STARTING) /* the first nodes and the producer name counter are being made */ \
    X(RUNNING)  /* serves */                                                       \
    X(STOPPING) /* topics are being closed */                                      \
    X(STOPPED)
enum ox_shard_state {
#define OX_X(name) OX_SHARD_##name,
    OX_SHARD_STATES(OX_X)
#undef OX_X
};

struct ox_policing;
struct compactions;
struct shard_setup;

// A broker's loop. Zero it, set the public members, then ox_shard_init.
struct ox_shard {
    struct ox_loop *loop;           // public
    struct ox_log *log;             // public
    struct ox_metrics *metrics;     // public
    struct ox_meta *meta;           // public
    struct ox_router *router;       // public
    struct ox_ml_factory *mledgers; // public
    struct ox_broker_config config; // public

    enum ox_shard_state state; // read-only
    struct ox_map topics;      // read-only: loaded (and loading) topics by full name: struct ox_topic.by_name
    uint64_t inflight_bytes;   // read-only: appends in flight, all topics
    uint64_t held_bytes;       // read-only: entries that were read for consumers which take no more just now
    uint64_t producer_epoch;   // read-only: I of generated names <cluster>-<I>-<n>
    struct ox_metric topics_count, subscriptions_count, producers_count, consumers_count;                 // read-only
    struct ox_metric in_messages, in_bytes, out_messages, out_bytes, publish_errors, resends, duplicates; // read-only
    struct ox_metric topic_loads, topic_load_failures, topics_loading;                                    // read-only
    struct ox_metric in_bytes_by[2],
        out_bytes_by[2];           // read-only: of topics of clients, of the broker's own; those without a log too
    struct ox_metric evictions[2]; // read-only: of backlogs because of their size, their age
    struct ox_summary publish_latency, topic_load_times; // read-only
    struct shard_interval {                              // read-only
        double seconds;                                  // how long it was; 0: there was none yet
        uint64_t cache_hits, cache_misses, cache_evictions, cache_hit_bytes, read_miss_bytes; // in it
    } last; // the last whole interval of statistics

    uint64_t producer_seq;   // private: n of generated names
    struct ox_list blocked;  // private: producers that wait for memory, or because of a rate
    struct ox_timer unblock; // private: looks at those
    bool publish_limited;    // private: the next two have a rate
    struct ox_token_bucket publish_messages, publish_bytes; // private
    struct ox_list free_publishes;                          // private: recycled publish operations
    uint64_t resend_bytes;                                  // private: memory of all tables of re-sends
    struct ox_seq seq;                                      // private: start or stop
    struct ox_op *user_op;                                  // private: finished by the sequence
    struct ox_op step;                                      // private
    struct ox_meta_put put;                                 // private
    struct ox_timer tick;                                   // private: statistics
    uint64_t tick_ns;                                       // private: when rates were last computed
    struct ox_map_node *tick_next; // private: the next topic whose interval ends; NULL: all have ended
    double tick_seconds;           // private: the interval that ends
    struct shard_interval marks;   // private: totals at that time
    struct ox_list nonpersistent; // read-only: those of the topics that have no log, by struct ox_topic.in_nonpersistent
    struct ox_list rounds;        // private: over the topics (topic_round.c)
    struct ox_list walks;         // private: over the topics, for metrics (gauges.c)
    uint64_t turn_ns;             // private: the time of this turn, 0: nobody has asked
    struct ox_turn_hook turn_over;   // private: forgets it
    struct shard_setup *setup;       // private: nodes to be made, while STARTING
    struct ox_policing *policing;    // private: rounds over the topics
    struct compactions *compactions; // private: runs of compaction, one after another
    struct ox_map scopes;            // private: of struct policy_scope, by_ns
    struct ox_map boards;            // private: lists of topics that are watched, by namespace (topic_watch.c)
    enum ox_err stop_err;            // private: the first error of a topic's close
    bool stop_waits; // private: all topics are closed; operations that use scopes, or those of rounds, have not ended
};

// Prepares a shard: registers metrics, makes maps.
void ox_shard_init(struct ox_shard *sh);
// Starts serving: makes what a cluster's first set-up makes (tenants public and pulsar, their namespaces, the cluster) where it is missing, and draws the
// number for generated producer names. Errors: those of the metadata store; CORRUPT (a policies node that is not JSON).
void ox_shard_start(struct ox_shard *sh, struct ox_op *op);
// The settings in sh->config have been replaced, in this turn; `before` are the former ones (borrowed). Rounds, rates and what is in force for each loaded topic
// follow, topics a portion at a time. Settings that were read when something was opened (cluster, policies kept by topics) are not to be changed.
void ox_shard_settings_changed(struct ox_shard *sh, const struct ox_broker_config *before);
// Closes all topics (clients are told, appends in flight complete first). Op errors: the first that a topic's close gave; all are closed all the same.
void ox_shard_stop(struct ox_shard *sh, struct ox_op *op);
// Frees what is left. The shard must be NEW or STOPPED.
void ox_shard_fini(struct ox_shard *sh);
// The state's name, as in logs and on the health page.
const char *ox_shard_state_name(enum ox_shard_state state);

#endif
