// factory.h - what all managed ledgers of a process share: stores, router, tail cache, settings, counters.
#ifndef MLEDGER_FACTORY_H
#define MLEDGER_FACTORY_H

#include "base/limits.h"
#include "base/map.h"
#include "base/metrics.h"
#include "io/seq.h"
#include "ledger/router.h"
#include "metastore/metastore.h"
#include "mledger/tail_cache.h"

struct ml_follow;

// Settings; the names in comments are the configuration keys. ox_ml_settings_init gives Pulsar's defaults.
struct ox_ml_settings {
    uint64_t ledger_entries_max; // managedLedgerMaxEntriesPerLedger 50000
    uint64_t ledger_bytes_max;   // managedLedgerMaxSizePerLedgerMbytes 2048 MiB, in bytes
    uint64_t rollover_ns_min; // managedLedgerMinLedgerRolloverTimeMinutes 10: not rolled by count or size before this age
    uint64_t rollover_ns_max; // managedLedgerMaxLedgerRolloverTimeMinutes 240 (plus 0 to 5 % drawn per topic)
    int64_t retention_ms;     // defaultRetentionTimeInMinutes 0; -1 = without limit
    int64_t retention_bytes;  // defaultRetentionSizeInMB 0; -1 = without limit
    uint64_t trim_delay_ns; // managedLedgerTrimDelaySeconds 30 (here 0): a consumed ledger goes no sooner than so long after it was sealed
    uint64_t cursor_entries_max;       // managedLedgerCursorMaxEntriesPerLedger 50000
    uint64_t cursor_rollover_ns;       // managedLedgerCursorRolloverTimeInSeconds 14400
    uint32_t ranges_persisted_max;     // managedLedgerMaxUnackedRangesToPersist 10000
    uint32_t ranges_in_node_max;       // managedLedgerMaxUnackedRangesToPersistInMetadataStore 1000
    uint32_t batch_sets_persisted_max; // managedLedgerMaxBatchDeletedIndexToPersist 10000
    uint64_t mark_delete_interval_ns; // 1 / managedLedgerDefaultMarkDeleteRateLimit (1.0 per second): acks without a request
    uint64_t ack_flush_ns;            // 10 ms: the longest wait of an ack with a request id for others to join it
    uint32_t ack_flush_count;         // 1000: so many waiting acks are flushed at once
    bool broker_entry_metadata;       // brokerEntryMetadataInterceptors: timestamp and index before each entry
    bool skip_unrecoverable; // autoSkipNonRecoverableData false: pass lost or damaged ledgers and entries, logged and counted
    bool guarded_records; // pulsarCompatibleRecords=guarded (default): records that Pulsar would misread are written so that it refuses them
    int64_t unstamped_max; // largest id of a ledger that may be unstamped (the bootstrap record's maxLedgerId); above it somebody has lost a stamp: nobody knows the place. INT64_MAX: not known
    bool stamps; // true from right before the bootstrap record is written: ledgers' places are written into records
    uint64_t away_read_ns; // bookieClusterSwitch.oldLedgerReadTimeoutMs 5000, in ns: a read of another place than the active one ends with TIMEOUT then
    uint32_t follow_max; // bookieClusterSwitch.migrationConcurrency 16: rollovers at once when the active place has changed
};
// Fills in the defaults.
void ox_ml_settings_init(struct ox_ml_settings *s);

struct ox_ml_append;

// One per shard. Zero it, set the public members, then ox_ml_factory_init.
struct ox_ml_factory {
    // public: index of the place where a log's new ledgers are made; NULL: the router's active one, for all
    uint32_t (*target)(void *ctx, const char *log);
    void *target_ctx; // public: of target

    // public: brings the compacted ledger of a log, by its name, into its target. Errors: NOT_FOUND, BUSY (again later), others. NULL: nobody can
    void (*compacted)(void *ctx, struct ox_op *op, const char *log);
    void *compacted_ctx; // public: of compacted

    struct ox_loop *loop;           // public
    struct ox_log *log;             // public
    struct ox_meta *meta;           // public
    struct ox_router *router;       // public
    struct ox_metrics *metrics;     // public
    struct ox_ml_settings settings; // public
    const char *instance;           // public: this Oxbow instance's id, written into custom metadata as oxbow/instance
    struct ox_tail_cache cache;     // read-only
    struct ox_timer shrink;         // private: brings the cache down to cache_bytes, bit by bit
    uint64_t cache_bytes;           // private: what the cache may hold
    struct ox_map open;             // private: managed ledgers by name
    struct ox_map claims;           // private: logs whose nodes are being worked on from outside, by name (offline.h)
    struct ox_list handles;         // private: ledgers with a handle that can be closed, the longest unused first
    struct ox_timer idle;           // private: closes unused handles
    struct ox_list discards;        // private: ledgers on their way out
    struct ml_follow *follow;       // private: what follows the active place
    struct ox_op *drain;            // private: waits for them
    bool sweep_stop;                // public: ends a running sweep at its next ledger
    int64_t *sweep_bounds;          // private: by place, the id below which all is older than the process; 0: not known
    uint32_t sweep_bound_count;     // private
    uint32_t places_known;          // private: so many of the router's places have shown the identity that is on record
    struct ox_metric lost_ledgers, orphans, kept_orphans; // private
    uint64_t append_ns;                                   // read-only: how long appends take, a moving mean over some
    uint64_t store_read_bytes;                            // read-only: of entries that readers got from ledgers
    const struct ox_ml_append *probe;                     // private: the append that is being timed, since probe_ns
    uint64_t probe_ns;                                    // private
    struct ox_metric appends, append_bytes, append_failures, rollovers, trimmed_ledgers, lost_entries, cursor_flushes; // private
};
// The place where a log's new ledgers, and its cursors', are made: whatever of them is in another one is elsewhere. After target's answers have changed: ox_ml_follow.
static inline uint32_t ox_ml_target(const struct ox_ml_factory *f, const char *log)
{
    return f->target ? f->target(f->target_ctx, log) : f->router->active;
}
// Registers the metrics and makes the cache (settings' cache size: cache_bytes).
void ox_ml_factory_init(struct ox_ml_factory *f, uint64_t cache_bytes);
// Changes what the cache may hold; a smaller one gives its oldest entries up over some milliseconds.
void ox_ml_factory_resize(struct ox_ml_factory *f, uint64_t cache_bytes);
// Waits for deletes of dropped ledgers that are in flight; what pauses before another try is left to the next start's sweep. Once, before fini.
void ox_ml_factory_drain(struct ox_ml_factory *f, struct ox_op *op);
// Frees the cache; all managed ledgers must be closed and the factory drained (asserted).
void ox_ml_factory_fini(struct ox_ml_factory *f);

// The sweep at process start: ledgers of this instance that no node names are deleted, owner checked; a stranger's never. Data ledgers whose topic
// has no node at all are kept, logged and counted: a missing node may be a lost one. Safe while logs are being opened. op: the first error of the stores; called
// again after one, it looks at nothing that was made since the first call.
// Places that are not open are left out, with a line in the log; ledgers that carry OX_COPY_OF (places.h) are whoever moves storage's.
void ox_ml_orphans_sweep(struct ox_ml_factory *f, struct ox_op *op);
// The same for one place, when it is opened later in a process's life: ledgers of logs that are open here are left alone then.
void ox_ml_orphans_sweep_place(struct ox_ml_factory *f, struct ox_op *op, uint32_t place);

#endif
