// store.h - the embedded engine: a place whose ledgers live in segment files of one directory.
#ifndef LEDGER_STORE_STORE_H
#define LEDGER_STORE_STORE_H

#include "base/metrics.h"
#include "io/file.h"
#include "ledger/place.h"
#include "ledger/store/table.h"

// When an append is acknowledged.
enum ox_store_sync {
    OX_STORE_SYNC,          // after fdatasync of its batch
    OX_STORE_SYNC_INTERVAL, // after the write; a sync follows within sync_interval_ms: a power cut may lose what is younger
    OX_STORE_SYNC_NONE,     // after the write; synced when its segment is sealed
};

struct ox_store_config {
    const char *dir;        // made if it is not there; its parent must be there
    const char *name;       // of the place
    uint64_t segment_bytes; // of one segment file, a multiple of 4096, 256 KiB to 1 GiB
    enum ox_store_sync sync;
    uint32_t sync_interval_ms;
    uint64_t reserve_bytes;      // free bytes of the file system below which no new segment is made
    uint64_t index_cache_bytes;  // index blocks of sealed segments
    uint64_t batch_bytes_max;    // one write; an entry above it makes a batch of its own
    uint64_t inflight_bytes_max; // appends that wait or are being written; beyond it an append fails with LIMIT
    uint64_t compaction_bytes_per_s;
    uint32_t compaction_percent; // segments whose live share of the file is below it are compacted; 0: never
    enum ox_lane journal_lane;   // of writes and syncs; places that share one wait for each other's disks
    struct ox_metrics *metrics;  // or NULL
    bool existing; // only one that is there already is opened: where nothing of a store is, NOT_FOUND, and nothing is made
    struct ox_table_source table; // of the ledger table
};
// Defaults: OX_SEGMENT_BYTES, sync, 256 MiB reserve, OX_INDEX_CACHE_BYTES, 4 MiB batches, 2x OX_TOTAL_INFLIGHT_BYTES, 16 MiB/s below 40 %, LMDB.
void ox_store_config_init(struct ox_store_config *config, const char *dir);

// Opens the store: makes what is missing, takes the directory's lock, replays the journal behind the table. *ret is closed with ox_place_close.
// Errors: NOT_FOUND (existing), LOCKED (another process uses the directory; the log names it), CORRUPT or UNSUPPORTED (the table, or a segment of another store), NO_SPACE, ACCESS, IO, SHUTDOWN, INVALID (config).
// Damaged entries are no error: each answers CORRUPT when it is read.
// Beyond what place.h says: appends may also fail with LIMIT; open, close and delete may fail with PLACE_FAILED or NO_SPACE; ids above 0 only.
void ox_store_open(struct ox_loop *loop, struct ox_fs *fs, struct ox_op *op, const struct ox_store_config *config,
                   struct ox_place **ret);

// Takes new settings of an open store: sync_interval_ms, reserve_bytes, inflight_bytes_max and those of compaction; the others stay as they were.
// A place that is no store of this kind is left alone.
void ox_store_settings_changed(struct ox_place *place, const struct ox_store_config *config);

#endif
