// store_int.h - the engine's inner structures and the calls between its files.
#ifndef LEDGER_STORE_STORE_INT_H
#define LEDGER_STORE_STORE_INT_H

#include "base/list.h"
#include "base/map.h"
#include "base/metrics.h"
#include "io/file.h"
#include "io/seq.h"
#include "ledger/store/cache.h"
#include "ledger/store/format.h"
#include "ledger/store/index.h"
#include "ledger/store/scan.h"
#include "ledger/store/store.h"
#include "ledger/store/table.h"

#define STORE_PATH_BYTES 4096u
#define STORE_ZERO_STEP \
    (1024u * 1024u) // zero-filling goes in steps of this: what the journal writes meanwhile waits for one of them at most
#define STORE_ZERO_STEP_SMALL \
    (256u * 1024u)          // likewise beside small batches, whose slowest hundredth would show the others
#define STORE_ZERO_SYNC 16u // large steps between syncs of the zeros
#define STORE_ZERO_PAUSE_NS \
    (2 * OX_MS) // between looks while the journal writes and the zeros are far enough ahead of it
#define STORE_ZERO_SMALL (32u * 1024u) // batches up to here are small
#define STORE_ZERO_WORTH \
    (512u * 1024u) // batches of this size gain less from zeros that are there already than writing these takes from the disk
#define STORE_NEXT_AT \
    8u // a part of a segment: when so much is taken, the next one is made, and zeros have come too late for this one
#define STORE_ZERO_LOOK_NS (20 * OX_MS)  // until the next look at the batches' size
#define STORE_READ_CHUNK (1024u * 1024u) // one read of neighbouring entries
#define STORE_READ_GAP (16u * 1024u)     // read through gaps up to this
#define STORE_READ_ENTRIES_MAX 10000u    // of one read operation
#define STORE_META_ROOM \
    (64u * 1024u) // at least kept in the last segment for closes and deletes while there is no next one
#define STORE_SMALL_BYTES (64u * 1024u) // the least that start-up makes of its first segment when the disk is full
#define STORE_ID_MAX (INT64_MAX - 1000000)
#define STORE_IDS_AHEAD 1000      // ids that one record makes available
#define STORE_SPARES_MAX 2u       // emptied files kept for reuse
#define STORE_OPEN_FILES_MAX 128u // of sealed segments
#define STORE_TAILS_MAX 6u        // unsealed segments before appends wait for the table
#define STORE_RETRY_NS OX_SEC     // between attempts at what failed for want of space

// Custom metadata of a ledger whose CREATE record is damaged: opening it says CORRUPT.
#define STORE_DAMAGED_KEY "oxbow/damaged"

struct store;

// A segment file.
#define SEGMENT_STATES(X) X(READY) X(CURRENT) X(SEALING) X(SEALED) X(FREEING)
enum segment_state {
#define X(name) SEGMENT_##name,
    SEGMENT_STATES(X)
#undef X
};
struct segment {
    uint64_t number;
    struct ox_file *file; // on the pool; NULL: not open
    uint64_t file_bytes, live, live_entries;
    uint64_t touched; // when last read, for closing the coldest file
    uint32_t used, items, runs;
    uint32_t pins; // reads and copies under way: not to be closed or freed
    enum segment_state state;
    bool keep;    // cannot be compacted: it holds damage
    bool moved;   // compacted: what lived there lives in a tail
    bool missing; // the table knows it, the directory does not
};

// What is in memory about a segment until its footer and the table hold it.
struct tail {
    struct ox_link link;
    struct segment *seg;
    struct ox_file *journal_file; // on the journal lane; NULL: replayed, not written any more
    uint64_t capacity;            // bytes that batches may fill
    uint64_t zeroed;   // really written so far, with zeros or by batches; the rest is reserved and reads as zeros
    uint64_t planned;  // where the next batch goes
    uint32_t writes;   // batches not over yet
    uint64_t sequence; // of the last batch that counts, 0: none
    bool filling;      // prepare.c has it in hand
    bool zeroing;      // a step of zeros is being written from `zeroed` on: no batch may reach there
    bool unsynced;     // holds batches that were written without a sync
    struct ox_index index;
    struct ox_map rows; // struct tail_row
};
// A ledger as changed in a segment.
struct tail_row {
    struct ox_map_node node;
    struct ox_table_row row;
};

// An open ledger, shared by its handles.
struct sledger {
    struct ox_map_node node;
    struct store *store;
    int64_t id;
    struct ox_list handles;
    struct handle *writer; // until it has closed or is fenced
    uint32_t refs;         // handles and requests
    bool mapped, creating, fenced, closing, deleted;
    enum ox_ledger_state state;
    int64_t last, next, encoded; // confirmed; next to be accepted; last put into a batch
    uint64_t length, encoded_length;
    enum ox_err append_err; // no append is encoded any more
    struct ox_kv custom;
    struct ox_table_extent extent;
    uint64_t extent_epoch; // extent holds while it is the store's
};
struct handle {
    struct ox_ledger base;
    struct sledger *sl;
    struct ox_link link;
    uint32_t pending;
    bool released;
    enum ox_err err; // of the first append that failed
};

// A record that is not an append: its owner embeds it.
struct jrecord {
    enum ox_segment_record_type type;
    int64_t ledger, entry;
    uint64_t arg;
    struct ox_buf payload;      // the owner's until done
    const struct ox_kv *custom; // CREATE: what payload says
    struct sledger *sl;         // CLOSE: entry and arg are taken from it when the record is encoded
    void *owner;                // for done
    void (*done)(struct jrecord *r, enum ox_err err); // called from the loop, behind all earlier records' effects
};

// The journal (journal.c).
struct journal_waiting {
    struct ox_append *append;
    struct jrecord *record;
};
struct journal {
    struct ox_list batches; // struct batch: in flight first, then the open one
    struct batch *open;     // takes records
    struct ox_list spares;  // empty ones kept for their memory
    uint64_t usual_bytes;   // of the largest batch lately
    uint32_t in_flight;
    struct journal_waiting *waiting;                 // what the open batch has no room for
    size_t waiting_head, waiting_count, waiting_cap; // a ring; cap is a power of two
    uint64_t bytes;                                  // of appends accepted and not over
    uint64_t sequence;                               // of the next batch
    struct ox_journal_pos mark;                      // durable up to here
    struct ox_journal_pos mark_written;              // the largest mark that stands in the journal itself
    bool sync_due;
    bool filling; // waiting records are being encoded
    struct ox_turn_hook hook;
    struct ox_timer sync_timer;
};

#define STORE_METRICS(X)                                                                                          \
    X(appends, "oxbow_store_appends_total", "Entries appended")                                                   \
    X(append_bytes, "oxbow_store_append_bytes_total", "Payload bytes appended")                                   \
    X(batches, "oxbow_store_batches_total", "Batches written to the journal")                                     \
    X(batch_bytes, "oxbow_store_batch_bytes_total", "Bytes written to the journal, headers and padding included") \
    X(syncs, "oxbow_store_syncs_total", "Syncs of the journal")                                                   \
    X(reads, "oxbow_store_read_entries_total", "Entries read from files")                                         \
    X(corrupt, "oxbow_store_corrupt_entries_total", "Damaged entries met at start-up or in reads")                \
    X(sealed, "oxbow_store_segments_sealed_total", "Segments sealed")                                             \
    X(recycled, "oxbow_store_segments_recycled_total", "Emptied segment files reused or removed")                 \
    X(compacted, "oxbow_store_compaction_bytes_total", "Bytes copied by compaction")                              \
    X(failed, "oxbow_store_failed", "1 after a failed write or sync: appends are refused until a restart")        \
    X(full, "oxbow_store_full", "1 while the reserve forbids new segments")

struct store {
    struct ox_place place;
    struct ox_store_config cfg;
    struct ox_loop *loop;
    struct ox_fs *fs;
    struct ox_log *log;
    char *dir;
    uint32_t salt;
    struct ox_file *lock;
    struct ox_table *table;
    struct ox_table_meta meta; // as the table holds it, or is being told
    struct segment **segs;     // sorted by number
    size_t seg_count, seg_cap;
    uint32_t open_files;
    uint64_t last_number; // of a segment, ever
    struct ox_list tails; // oldest first; the last one is current
    struct tail *next;    // prepared for when the current is full
    char **spares;        // names of emptied files
    size_t spare_count;
    struct ox_map ledgers;
    struct journal journal;
    struct ox_index_cache cache;
    uint64_t extent_epoch;
    int64_t id_next, id_ceiling, id_max;
    bool id_asking;            // a record for those who wait is on its way
    struct ox_list id_waiters; // ox_op.link of next_id and push_id
    bool open, closing, failed, full;
    struct ox_space space;
    struct ox_op space_op;
    struct ox_space space_new, space_new2; // of prepare.c, of the timer
    struct ox_timer space_timer;
    // prepare.c
    struct ox_seq prepare;
    struct ox_op prepare_op;
    struct tail *preparing;
    char *prepare_path;
    uint64_t prepare_size, prepare_bytes; // of the file as found; wanted
    enum ox_err prepare_err;
    bool prepare_fresh;
    uint8_t *prepare_block;
    struct iovec prepare_iov;
    struct ox_timer prepare_timer;
    struct ox_timer fill_timer;
    int64_t fill_batches, fill_bytes; // of the journal, when last looked at
    uint64_t fill_step;               // bytes of the next step of zeros
    // maintain.c
    struct ox_seq maintain;
    struct ox_op maintain_op;
    struct maintain_work *work;
    int64_t *deletes; // durable in the journal, to be told to the table
    size_t delete_count, delete_cap;
    struct ox_timer maintain_timer;
    bool stuck; // the last background job has failed and is tried again
    struct compaction *compaction;
    struct store_opening *opening; // recover.c; NULL once open
    bool current_needed;           // start-up may go below the reserve for its first segment
    // close
    struct ox_seq closing_seq;
    struct ox_op closing_op;
    struct ox_op *close_op;
    enum ox_err close_err;
    bool closing_waits;
    struct ox_metrics own_metrics;
#define X(field, name, help) struct ox_metric m_##field;
    STORE_METRICS(X)
#undef X
};

static inline struct store *store_of(struct ox_place *p)
{
    return CONTAINER_OF(p, struct store, place);
}
// The largest entry that fits into a segment.
uint64_t store_entry_max(const struct store *s);
// Something went on: starts what can go on now, in this or another file.
void store_woken(struct store *s);
// Asks for the file system's free space again.
void store_measure_space(struct store *s);

// segment.c
void segment_set_state(struct store *s, struct segment *seg, enum segment_state to);
struct segment *segment_new(struct store *s, uint64_t number, enum segment_state state);
struct segment *segment_find(const struct store *s, uint64_t number);
// Closes the file, takes it out of the set, frees it.
void segment_free(struct store *s, struct segment *seg);
// DIR/seg-NUMBER, DIR/spare-NUMBER; to be freed.
char *segment_path(const struct store *s, uint64_t number);
char *segment_spare_path(const struct store *s, uint64_t number);
// Opens the file if it is not open (op finishes with OK). The segment must be pinned.
void segment_open(struct store *s, struct segment *seg, struct ox_op *op);
void segment_pin(struct store *s, struct segment *seg);
void segment_unpin(struct store *s, struct segment *seg);
struct tail *tail_new(struct segment *seg);
void tail_free(struct tail *t);
// The unsealed part of a segment, or NULL.
struct tail *tail_find(const struct store *s, uint64_t number);
static inline struct tail *tail_current(struct store *s)
{
    struct ox_link *link = ox_list_last(&s->tails);
    return link ? CONTAINER_OF(link, struct tail, link) : NULL;
}

// rows.c - ledgers as the tails know them, on top of the table
enum rows_known { ROWS_NOTHING, ROWS_CHANGED, ROWS_WHOLE, ROWS_DELETED };
// Lays the tails' changes over a row (found or not). *found and row are updated.
enum rows_known rows_overlay(const struct store *s, int64_t id, struct ox_table_row *row, bool *found);
// Makes a record's effect on a tail; also at replay. custom: of a CREATE.
void rows_apply(struct store *s, struct tail *t, const struct ox_segment_record *r, uint32_t offset,
                const struct ox_kv *custom);

// journal.c
void journal_init(struct store *s);
void journal_append(struct store *s, struct ox_append *a);
void journal_record(struct store *s, struct jrecord *r);
// Goes on after a segment, space or zeros have come.
void journal_pump(struct store *s);
bool journal_idle(const struct store *s);
// Up to where a segment is, or will be, taken by batches.
uint64_t journal_end(const struct store *s, const struct tail *t);
void journal_fini(struct store *s);
// Writes one batch of copies of the records found beyond the mark, with the CUT flag; op finishes when it is durable. *ret_offsets gets where each stands.
struct journal_copy {
    struct ox_segment_record record;
    const uint8_t *payload;
};
void journal_write_cut(struct store *s, struct ox_op *op, const struct journal_copy *records, size_t count,
                       uint32_t *ret_offsets);

// prepare.c
void prepare_init(struct store *s);
// Starts making the next segment if there is none.
void prepare_want(struct store *s);
// True while the sequence runs.
bool prepare_active(const struct store *s);
// Ends a pause of the zero-filling: closing.
void prepare_hurry(struct store *s);

// maintain.c
void maintain_init(struct store *s);
void maintain_kick(struct store *s);
void maintain_delete(struct store *s, int64_t ledger);
bool maintain_idle(const struct store *s);
// Closing: seals the current segment too.
void maintain_fini(struct store *s);

// compact.c
void compact_kick(struct store *s);
void compact_fini(struct store *s);
bool compact_idle(const struct store *s);

// read.c: reads entries of any ledger; err_where as ox_read.where.
void read_start(struct store *s, struct sledger *sl, struct handle *h, struct ox_read *r, int64_t last);

// ledgers.c
extern const struct ox_place_body store_body;
void ledgers_append_done(struct ox_append *a, enum ox_err err);
// An entry is confirmed.
void ledgers_confirmed(struct sledger *sl, int64_t entry, uint64_t length);
void handle_unpend(struct handle *h);
// A ledger's shared state, made from a row (whose custom metadata it takes) where it is not open yet; one reference more. _unref gives it back.
struct sledger *sledger_get(struct store *s, struct ox_table_row *take_row);
void sledger_unref(struct sledger *sl);
struct sledger *sledger_find(const struct store *s, int64_t id);
// Looks a ledger up: tails over table. *ret_found and *ret (to be finished in either case) are valid when op finishes OK.
void ledgers_find(struct store *s, struct ox_op *op, int64_t id, struct ox_table_row *ret, bool *ret_found);

// recover.c
// Something that start-up may wait for has happened.
void recover_woken(struct store *s);

// store.c
struct store *store_new(struct ox_loop *loop, struct ox_fs *fs, const struct ox_store_config *config);
void store_free(struct store *s);
// Ends a store that could not be opened; close_op finishes with close_err.
void store_abandon(struct store *s);
void store_close_place(struct ox_place *p, struct ox_op *op);
void store_capacity(struct ox_place *p, struct ox_capacity *ret);

#endif
