// compaction_int.h - compaction for compaction*.c only: a topic's compacted ledger, and a run.
#ifndef BROKER_COMPACTION_INT_H
#define BROKER_COMPACTION_INT_H

#include "broker/compaction.h"
#include "broker/compaction_keys.h"
#include "broker/topic_int.h"
#include "broker/topic_round.h"
#include "mledger/compacted.h"

#define COMPACTION_CURSOR "__compaction"
#define COMPACTION_PROPERTY "CompactedTopicLedger" // of the cursor's position
#define COMPACTION_HINTS 8

// A compacted ledger that is, or was, in use.
struct compacted_ledger {
    struct ox_compaction *compaction;
    struct ox_location where;
    struct ox_pos upto;       // what is at or before it is in here
    struct ox_ledger *handle; // NULL until somebody reads
    uint32_t uses;            // reads in flight
    bool retired;             // another one is in use: it goes with its last read
    bool discard;             // and is deleted then
    struct {
        struct ox_pos from;
        int64_t number;        // of the first entry at or behind it
    } hints[COMPACTION_HINTS]; // where readers go on
    unsigned hint_at;
};

struct compaction_run;

struct ox_compaction {
    struct ox_topic *topic;
    struct ox_cursor_view view;      // of `ledger`
    struct compacted_ledger *ledger; // in use; NULL: none
    struct compaction_run *run;      // runs or waits; NULL: neither
    struct ox_ml_property tidy;      // what is on record is being corrected after a crash
    struct ox_copies dead;           // ledgers that go then
    struct ox_compaction_info info;
    char *error; // what info.error borrows
};

// Of a shard: one run at a time.
struct compactions {
    struct ox_shard *shard;
    struct ox_list waiting;         // of struct compaction_run, by link
    struct compaction_run *running; // or NULL
    struct ox_timer timer;          // the next look at thresholds
    struct topic_round round;       // that look
};

// compaction.c
// A topic's, made where there is none.
struct ox_compaction *compaction_get(struct ox_topic *t);
// A run is over: its outcome, and the next one's turn.
void compaction_over(struct compaction_run *run, enum ox_err err);

// compaction_move.c
// Of the factory: brings a log's compacted ledger into its target. Errors: NOT_FOUND, BUSY, those of loading and of a run.
void compaction_move_log(void *ctx, struct ox_op *op, const char *log);

// compaction_read.c
struct compacted_ledger *compacted_new(struct ox_compaction *c, struct ox_location where, struct ox_pos upto);
// Not in use any more: it goes as soon as nobody reads it. discard: and is deleted.
void compacted_retire(struct compacted_ledger *l, bool discard);
// The body of the view.
void compacted_read(struct ox_cursor_view *v, struct ox_ml_read *r);
// Likewise its last entry; count 0: there is none.
void compacted_read_last(struct ox_compaction *c, struct ox_ml_read *r);
// Custom metadata that a topic's compacted ledgers carry, Pulsar's ones too.
void compacted_owner(const struct ox_topic *t, struct ox_kv *ret);

// compaction_run.c
struct compaction_run {
    struct ox_link link; // in compactions.waiting
    struct ox_compaction *compaction;
    struct ox_op *op;                 // of whoever asked, or NULL
    bool move;                        // copies the ledger as it is
    bool prepare;                     // makes the cursor, so that nothing is trimmed before the first run
    enum ox_compaction_status before; // what the status was
    struct ox_seq seq;
    struct ox_cursor *cursor;
    uint64_t started_ns;
    const char *why; // of a failure
    uint64_t removed;
    // where it reads
    bool second;        // pass
    struct ox_pos end;  // the last entry that counts
    struct ox_pos from; // the next one to read
    struct ox_ml_read read;
    size_t at; // in read.entries
    struct compaction_entry entry;
    struct compaction_keys keys;
    // what it writes
    struct ox_router_create create;
    struct ox_ledger *handle;
    struct ox_location where;
    int64_t next_entry;
    uint32_t writing;             // appends in flight
    bool waits;                   // for them
    struct compacted_ledger *old; // the one that was in use until the switch
    enum ox_err write_err;
    struct ox_ledger_close close;
    // steps
    struct ox_cursor_open open;
    struct ox_cursor_ack ack;
    struct ox_ml_property property;
    struct compaction_pack *pack; // a job, or NULL
    struct ox_buf packed;         // its result
    size_t plain_len;
};
void compaction_run_start(struct compaction_run *run);

#endif
