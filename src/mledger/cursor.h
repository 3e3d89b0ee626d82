// cursor.h - a cursor: how far a subscription has acknowledged a log, kept in Pulsar's formats.
#ifndef MLEDGER_CURSOR_H
#define MLEDGER_CURSOR_H

#include "base/ranges.h"
#include "mledger/batch_acks.h"
#include "mledger/mledger.h"

// States of a cursor's store.
#define OX_CURSOR_STATES(X)                                                                 \
    X(NO_LEDGER) /* the position is in the node; the first persisted move makes a ledger */ \
    X(SWITCHING) /* a new cursor ledger is being made, moves wait */                        \
    X(OPEN)      /* moves are appended to the cursor ledger */                              \
    X(CLOSING)   /* the last position is being written */                                   \
    X(CLOSED)
enum ox_cursor_state {
#define OX_X(name) OX_CURSOR_##name,
    OX_CURSOR_STATES(OX_X)
#undef OX_X
};

// Acknowledged entries of one ledger behind the mark-delete position.
struct ox_cursor_holes {
    int64_t ledger;
    struct ox_ranges acked;
};

// A cursor. Members are read-only outside this folder.
struct ox_cursor {
    struct ox_mledger *ml;
    char *name;   // as the client gave it
    bool durable; // false: a reader's, nothing is stored
    enum ox_cursor_state state;
    struct ox_pos mark_delete;     // all up to it is acknowledged
    struct ox_pos read;            // the next entry to read
    struct ox_cursor_holes *holes; // by ledger, ascending: acknowledged entries behind mark_delete
    size_t hole_count, hole_cap;
    uint64_t acked_behind;            // entries in holes
    struct ox_kv properties;          // cursor properties (subscription properties)
    struct ox_kv position_properties; // long values kept with the position, as decimal texts
    struct ox_batch_acks batches;     // entries that are acknowledged in part
    uint64_t last_active_ms;
    uint64_t advanced_ms;  // wall time at which mark_delete last moved on; 0: not since the cursor was opened
    int64_t cursor_ledger; // -1: none
    uint64_t ack_epoch;    // rises with every reset; late answers are recognised by it
    struct ox_link link;   // private: in ml->cursors
    void *impl;            // private: struct cursor_impl
};

// Opens a cursor, making it if there is none. A durable one that exists keeps its position. start: the mark-delete position of a new one (clamped); properties may be NULL.
struct ox_cursor_open {
    struct ox_op op;          // Errors: those of the stores, FENCED
    struct ox_cursor *cursor; // result
    bool created;             // result
    void *private_;
};
void ox_cursor_open(struct ox_mledger *ml, struct ox_cursor_open *op, const char *name, bool durable,
                    struct ox_pos start, const struct ox_kv *properties);
// The open cursor of a name, or NULL.
struct ox_cursor *ox_cursor_find(struct ox_mledger *ml, const char *name);

// An acknowledgement whose outcome somebody waits for; NULL where nobody does (durable within mark_delete_interval_ns).
// op OK: the store holds it (non-durable cursors: at once). Errors: FENCED, those of the stores.
struct ox_cursor_ack {
    struct ox_op op;
    uint64_t version;    // private
    struct ox_link link; // private
};
// Cumulative: everything up to p is acknowledged. Going back, or beyond the last entry, has no effect (OK, as Pulsar answers).
void ox_cursor_mark_delete(struct ox_cursor *c, struct ox_cursor_ack *ack, struct ox_pos p);
// Single entries; ones acknowledged already, or that do not exist, have no effect. Ranges join and move mark_delete.
void ox_cursor_delete(struct ox_cursor *c, struct ox_cursor_ack *ack, const struct ox_pos *positions, size_t count);
// Acknowledges a part of a batch: only those of its messages stay that `bits` (1 = still to be delivered) has too. When none is left the entry is deleted as by ox_cursor_delete
// (*ret_whole true). Kept with the position in the cursor's store (batchedEntryDeletionIndexInfo), at most settings.batch_sets_persisted_max of them; in memory at most
// OX_BATCH_ACKS_MAX, beyond which it has no effect (the whole batch comes again). ret_left (may be NULL): how many are left. ack as in ox_cursor_delete.
void ox_cursor_delete_part(struct ox_cursor *c, struct ox_cursor_ack *ack, struct ox_pos p, const uint64_t *bits,
                           size_t words, bool *ret_whole, uint32_t *ret_left);
// Sets the messages of an entry that are still to be delivered, whatever was there; stored with the next flush.
void ox_cursor_set_part(struct ox_cursor *c, struct ox_pos p, const uint64_t *bits, size_t words);
// The set of an entry that is acknowledged in part, or NULL. Borrowed until the next change.
const struct ox_batch_ack *ox_cursor_part(const struct ox_cursor *c, struct ox_pos p);
// True if an entry is acknowledged.
bool ox_cursor_is_deleted(const struct ox_cursor *c, struct ox_pos p);
// What statistics tell of a cursor beside its members.
struct ox_cursor_figures {
    bool waits;            // a read is pending
    int64_t ledger_last;   // last entry of the cursor ledger that this process has written; -1: none
    uint64_t switched_ms;  // wall time at which it made the cursor ledger; 0: it made none
    uint64_t acked_ranges; // ranges of acknowledged entries behind mark_delete
};
void ox_cursor_figures(const struct ox_cursor *c, struct ox_cursor_figures *ret);
// Entries not acknowledged yet.
uint64_t ox_cursor_backlog(const struct ox_cursor *c);

// Another picture of the older part of a log (its compacted ledger): what is at or before `upto` is read from it instead.
struct ox_cursor_view {
    struct ox_pos upto;
    // Begins and finishes r->op as ox_mledger_read does; entries have rising positions at or behind r->from. With none left: count 0 and r->next behind `upto`.
    void (*read)(struct ox_cursor_view *v, struct ox_ml_read *r);
};

// The next entries that are not acknowledged; waits while there are none (cancel ends it: CANCELED). One at a time a cursor. Moves cursor->read.
struct ox_cursor_read {
    struct ox_op op;
    uint32_t entries_max;        // in
    uint64_t bytes_max;          // in
    struct ox_cursor_view *view; // in: NULL: the log itself. Borrowed until the read is over
    struct ox_entry *entries;    // result: the caller's, ox_cursor_read_fini
    size_t count;                // result, >= 1 on OK
    struct ox_cursor *cursor;    // private
    struct ox_ml_read read;      // private
    struct ox_ml_waiter waiter;  // private
    uint64_t epoch;              // private
    bool viewed;                 // private: `read` is the view's
};
void ox_cursor_read(struct ox_cursor *c, struct ox_cursor_read *r);
void ox_cursor_read_fini(struct ox_cursor_read *r);
// The read position goes back to the first entry that isn't acknowledged. A read in flight is thrown away and started anew from there.
void ox_cursor_rewind(struct ox_cursor *c);
// The read position goes back to p, or where the mark-delete position has passed it right behind that: what was read from there on is not wanted now. No effect where p was not read. No read is pending.
void ox_cursor_unread(struct ox_cursor *c, struct ox_pos p);
// Seeks: mark_delete = p (clamped), holes forgotten, read right behind it; stored before op finishes.
void ox_cursor_reset(struct ox_cursor *c, struct ox_op *op, struct ox_pos p);
// Likewise, and of one entry only the messages of `bits` are still to be delivered (words 0, or no such entry: all of them); stored together.
void ox_cursor_reset_into(struct ox_cursor *c, struct ox_op *op, struct ox_pos mark, struct ox_pos entry,
                          const uint64_t *bits, size_t words);
// Cumulative move together with long properties that are kept with the position (PositionInfo.properties, e.g. pulsar.dedup's sequence ids): both or neither are stored. The map is copied.
// c->position_properties has what is stored or being stored.
void ox_cursor_mark_delete_with(struct ox_cursor *c, struct ox_cursor_ack *ack, struct ox_pos p,
                                const struct ox_kv *properties);
// Skips the next n entries that are not acknowledged (they count as acknowledged). op finishes when it is stored.
void ox_cursor_skip(struct ox_cursor *c, struct ox_cursor_ack *ack, uint64_t n);
// Replaces the subscription properties in the node.
void ox_cursor_set_properties(struct ox_cursor *c, struct ox_op *op, const struct ox_kv *properties);
// Stores the position (into the node where it fits), frees the cursor. Reads must not be pending.
void ox_cursor_close(struct ox_cursor *c, struct ox_op *op);
// Deletes the cursor: node first, then its ledger; frees it.
void ox_cursor_remove(struct ox_cursor *c, struct ox_op *op);

#endif
