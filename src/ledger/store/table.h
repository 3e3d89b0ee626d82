// table.h - the ledger table: ledgers, extents and segments as of a journal position, on an ordered key-value store whose commits are atomic and durable.
// It may lag behind the journal, never lead. All work is done in jobs on OX_LANE_META, in the order of the calls; operations finish in that order too.
#ifndef LEDGER_STORE_TABLE_H
#define LEDGER_STORE_TABLE_H

#include "io/loop.h"
#include "ledger/store/format.h"

// An ordered key-value store; one transaction at a time, only touched by jobs on OX_LANE_META.
struct ox_table_kv;
struct ox_table_kv_body {
    enum ox_err (*begin)(struct ox_table_kv *kv, bool write);
    // The value of a key; valid until the next call. NOT_FOUND.
    enum ox_err (*get)(struct ox_table_kv *kv, struct ox_buf key, struct ox_buf *ret_value);
    // The first key at or after `key`. NOT_FOUND at the end.
    enum ox_err (*seek)(struct ox_table_kv *kv, struct ox_buf key, struct ox_buf *ret_key, struct ox_buf *ret_value);
    enum ox_err (*put)(struct ox_table_kv *kv, struct ox_buf key, struct ox_buf value);
    // Success if it was not there.
    enum ox_err (*del)(struct ox_table_kv *kv, struct ox_buf key);
    // Durable on success; on an error as if aborted. Also ends a read.
    enum ox_err (*commit)(struct ox_table_kv *kv);
    void (*abort)(struct ox_table_kv *kv);
    void (*close)(struct ox_table_kv *kv);
};
struct ox_table_kv {
    const struct ox_table_kv_body *body;
};
// Where a table's key-value store comes from. open runs in a job; dir is the place's directory.
struct ox_table_source {
    enum ox_err (*open)(void *ctx, const char *dir, struct ox_table_kv **ret);
    void *ctx;
};
// LMDB in DIR/table.mdb.
struct ox_table_source ox_table_lmdb(void);

struct ox_table;

struct ox_table_meta {
    uint64_t covered;   // the first segment whose records the table does not hold
    int64_t id_ceiling; // ids up to here may have been given
    int64_t id_max;     // no ledger of the table has a larger id
    uint64_t sequence;  // of the last batch that the table covers
    char identity[OX_IDENTITY_BYTES];
};
struct ox_table_segment {
    uint64_t number, file_bytes;
    uint64_t live, live_entries; // payload bytes and entries that extents name; bytes are for choosing what to compact, entries are exact
    uint32_t used, items, runs; // used: where the footer is
};
// A ledger's row, or a change of it.
struct ox_table_row {
    int64_t id;
    enum ox_ledger_state state;
    int64_t last_entry;
    uint64_t length;
    bool created; // a change: custom is set, an older ledger of this id is gone
    bool deleted; // a change: the ledger and its extents go
    struct ox_kv custom;
};
void ox_table_row_fini(struct ox_table_row *row);
// Entries first..last of a ledger are items pos, pos+1 ... of a segment's footer.
struct ox_table_extent {
    int64_t first, last;
    uint64_t segment, bytes;
    uint32_t pos;
};
// What ox_table_load gives.
struct ox_table_image {
    bool fresh; // nothing was there
    struct ox_table_meta meta;
    struct ox_table_segment *segments; // sorted by number, to be freed
    size_t count;
};
// What lives in a segment after a commit.
struct ox_table_live {
    uint64_t segment, live, live_entries;
};
// Changes that are made together. All memory is the caller's until the operation finishes.
struct ox_table_changes {
    struct ox_table_meta meta;
    const struct ox_table_row *rows;
    size_t row_count;
    const struct ox_table_segment *segment; // or NULL: a sealed segment; live is computed from the runs that count
    const struct ox_run *runs;              // of that segment; runs of ledgers that are not in the table are dead
    const struct ox_item *const *items;
    size_t run_count;
    uint64_t drop;              // number of a segment to forget, 0: none. It must hold no live entry
    struct ox_table_live *live; // result: segments whose live bytes changed, to be freed
    size_t live_count;
};

// Results may be filled even on an error (the process died behind the job): the caller frees them in either case.
// Opens the table of a directory. Errors: those of the source, CORRUPT.
void ox_table_open(struct ox_loop *loop, struct ox_op *op, struct ox_table_source source, const char *dir,
                   struct ox_table **ret);
// Loads all but ledgers and extents. Errors: CORRUPT, IO.
void ox_table_load(struct ox_table *t, struct ox_op *op, struct ox_table_image *ret);
// Makes changes; durable on success. Errors: METADATA_FULL, IO, CORRUPT: nothing has changed.
void ox_table_commit(struct ox_table *t, struct ox_op *op, struct ox_table_changes *changes);
// One row. Errors: NO_LEDGER, CORRUPT, IO.
void ox_table_find(struct ox_table *t, struct ox_op *op, int64_t id, struct ox_table_row *ret);
// The extent that holds an entry, else the ledger's first one behind it. Errors: NO_ENTRY, CORRUPT, IO.
void ox_table_extent(struct ox_table *t, struct ox_op *op, int64_t id, int64_t entry, struct ox_table_extent *ret);
// At most max rows with ids above `after`, sorted; *ret_rows is the caller's to free, each row to be finished.
void ox_table_list(struct ox_table *t, struct ox_op *op, int64_t after, size_t max, struct ox_table_row **ret_rows,
                   size_t *ret_count);
// Closes and frees; op finishes when the files are closed.
void ox_table_close(struct ox_table *t, struct ox_op *op);

#endif
