// mledger.h - a managed ledger: a topic's log as a list of ledgers, with cursors on it.
#ifndef MLEDGER_MLEDGER_H
#define MLEDGER_MLEDGER_H

#include "mledger/copies.h"
#include "mledger/factory.h"

struct ox_cursor;

// States. Only OPEN takes appends; ROLLING takes them too (make before break).
#define OX_ML_STATES(X)                                                                                           \
    X(OPENING) /* the opening sequence runs */                                                                    \
    X(OPEN)    /* appends go to the current ledger */                                                             \
    X(ROLLING) /* a next ledger takes appends while the current one drains */                                     \
    X(FENCED)  /* somebody else owns the log, or the outcome of a write is unknown: everything fails, close it */ \
    X(FAILED)  /* a place failed: appends fail, reads go on, close and open again */                              \
    X(CLOSING) /* the closing sequence runs */                                                                    \
    X(CLOSED)
enum ox_ml_state {
#define OX_X(name) OX_ML_##name,
    OX_ML_STATES(OX_X)
#undef OX_X
};

// One ledger of the list as this process knows it.
struct ox_ml_ledger {
    struct ox_location where;              // logical id in where.id
    int64_t entries;                       // sealed: final; current: confirmed (acknowledged) so far
    uint64_t bytes;                        // likewise
    uint64_t closed_ms;                    // wall time of the close; 0 while open
    uint64_t sealed_ns;                    // monotonic time at which this process sealed it; 0: an earlier one did
    bool sealed;                           // false: current (or next, while rolling)
    bool lost;                             // its place said NO_LEDGER (from the right identity) or CORRUPT as a whole
    struct ox_ledger *handle;              // private: open handle or NULL
    uint64_t used_ns;                      // private: last read, to close idle handles
    uint32_t pins;                         // private: reads in flight
    uint32_t late;                         // private: of them, those that have ended without their answer
    bool recorded;                         // the node names it; only then are its entries acknowledged
    struct ox_copies copies;               // other complete locations, as the record has them
    bool gone;                             // private: out of the list, freed with its last pin
    int64_t given;                         // private: entries handed to the writer's handle
    uint64_t given_bytes;                  // private: their bytes
    uint32_t sent;                         // private: those without an answer yet
    uint64_t created_ns;                   // private: of a ledger made by this process
    uint64_t entries_before, bytes_before; // private: in the ledgers before it
    struct ox_mledger *ml;                 // private
    struct ox_link idle;                   // private: in factory->handles while its handle can be closed
};

// An entry as read.
struct ox_entry {
    struct ox_pos pos;
    struct ox_buf data; // with the broker entry metadata header, if it was stored with one
};

// An append of one entry (one message or one batch).
struct ox_ml_append {
    struct ox_op op; // OK: durable and recorded. Errors: FENCED, FAILED -> PLACE_FAILED, NO_SPACE, TOO_BIG, TOPIC_TERMINATED, SHUTDOWN. After an error all later ones fail until the log is opened anew.
    struct ox_buf body; // in: [checksum header] metadata payload as on the wire; a reference is taken
    uint32_t messages;  // in: how many messages it holds (for the index); >= 1
    uint32_t tail_len; // in: so many bytes at the end of the body have been checked already: their CRC-32C is tail_crc. 0: none
    uint32_t tail_crc;         // in
    struct ox_pos pos;         // result
    uint64_t index;            // result with broker entry metadata: index of its last message
    uint8_t header[48];        // private: broker entry metadata
    struct ox_append append;   // private
    struct ox_mledger *ml;     // private
    struct ox_link link;       // private
    struct ox_ml_ledger *home; // private: where it was handed to
    uint8_t stage;             // private: enum ml_stage
    enum ox_err result;        // private: why it was refused
};

// A read of entries from a position on, across ledgers. Errors: NO_ENTRY (nothing there yet), CORRUPT or NO_LEDGER (skip_unrecoverable off), FENCED, SHUTDOWN,
// TIMEOUT (another place than the active one has not answered within settings.away_read_ns: again later).
struct ox_ml_read {
    struct ox_op op;
    struct ox_pos from;   // in: the first entry wanted; one that does not exist any more is moved to the next that does
    uint32_t entries_max; // in: at least 1
    uint64_t bytes_max;   // in: stop after passing it; at least one entry comes
    struct ox_entry *entries;    // result: owned by the caller, ox_ml_read_fini
    size_t count;                // result; may be 0 with OK when everything up to `next` was lost and skipped
    struct ox_pos next;          // result: where to read on
    struct ox_mledger *ml;       // private
    struct ox_seq seq;           // private
    struct ox_read read;         // private
    struct ox_ledger_open open;  // private
    struct ox_ml_ledger *ledger; // private
    bool single;                 // private: one entry at a time, to find the damaged one
};
// Frees a read's result.
void ox_ml_read_fini(struct ox_ml_read *r);

// Wakes its owner once, from the loop, when the log has entries behind `after` (or the state changes so that waiting is pointless). Then armed again by hand.
struct ox_ml_waiter {
    void (*wake)(struct ox_ml_waiter *w); // public
    struct ox_link link;                  // private
    struct ox_pos after;                  // private
};

// A managed ledger. Members are read-only for other files than this folder's.
struct ox_mledger {
    uint32_t magic;
    struct ox_ml_factory *factory;
    char *name; // "public/default/persistent/t" (local name encoded)
    char *path; // "/managed-ledgers/" + name
    enum ox_ml_state state;
    struct ox_ml_ledger **ledgers; // by logical id, ascending; the current (and next) last
    size_t ledger_count, ledger_cap;
    int64_t node_version;   // of the node, for compare-and-set
    struct ox_pos last;     // last acknowledged entry; {ledger, -1} = none in that ledger
    struct ox_list cursors; // of struct ox_cursor, in order of opening
    struct ox_list waiters;
    uint64_t next_index; // broker entry metadata: index of the next message
    bool terminated;
    bool compacted; // it has a compacted ledger: positions in ledgers that are gone are legal, for that may hold their entries (compacted.h)
    bool full; // opened on a full disk, without a ledger for appends: they end with NO_SPACE until it is opened anew
    struct ox_map_node by_name;          // private: in factory->open
    uint64_t total_entries, total_bytes; // of all ledgers in the list
    struct ox_kv properties;
    uint64_t read_entries, read_bytes,
        store_read_entries; // given to readers since the opening; those of them that came from a ledger
    int64_t dropped;        // the last ledger of the former owner, found empty and dropped at this opening; -1: none
    uint32_t trim_holds;    // private: ox_mledger_hold_trim
    void *impl; // private: struct mledger_impl in mledger_int.h (record, appends in flight, sequences, timers)
};

// Opens (or creates) a log and all its cursors: recovers the last ledger, appends a fresh one. One open handle a name and process. Errors: NOT_FOUND (create false), BUSY (being opened or closed), CORRUPT (record), FENCED (lost the compare-and-set), and those of the stores.
struct ox_ml_open {
    struct ox_op op;
    struct ox_mledger *ml; // result
    void *private_;
};
void ox_mledger_open(struct ox_ml_factory *f, struct ox_ml_open *op, const char *name, bool create);
// Appends. Completion in order of the calls. Never blocks; the caller bounds what is in flight.
void ox_mledger_append(struct ox_mledger *ml, struct ox_ml_append *a);
// Reads entries that are acknowledged, from the tail cache or the ledgers.
void ox_mledger_read(struct ox_mledger *ml, struct ox_ml_read *r);
// Arms a waiter; wakes it soon if there is something behind `after` already.
void ox_mledger_wait(struct ox_mledger *ml, struct ox_ml_waiter *w, struct ox_pos after);
// Disarms a waiter; no effect if it isn't armed.
void ox_mledger_unwait(struct ox_mledger *ml, struct ox_ml_waiter *w);
// Closes all cursors (their positions go into their nodes), then the current ledger, frees the log. Appends in flight complete first. Op errors: what kept it from a clean close (the log is gone from memory all the same).
void ox_mledger_close(struct ox_mledger *ml, struct ox_op *op);
// Deletes cursors, ledgers and the node (order: facts 11), frees the log.
void ox_mledger_delete(struct ox_mledger *ml, struct ox_op *op);
// Looks what may be trimmed (slowest durable cursor, retention) and starts it if it is not running. Called by itself a little after the opening, on rollover, cursor moves and a timer.
void ox_mledger_trim(struct ox_mledger *ml);
// Keeps all ledgers until the matching release: for somebody who needs the log's end whatever is consumed. Counted.
void ox_mledger_hold_trim(struct ox_mledger *ml);
// Gives a hold back; with the last one it looks what may be trimmed.
void ox_mledger_release_trim(struct ox_mledger *ml);
// Starts a rollover now (make before break); op finishes when the new ledger is recorded. BUSY if one runs.
void ox_mledger_roll(struct ox_mledger *ml, struct ox_op *op);

// Ends the log for good: from the call on appends end with TOPIC_TERMINATED; op finishes when the record says so (terminatedPosition). ml->last is then the last entry of all. Appends in flight complete first. Again: OK.
// Errors: FENCED, SHUTDOWN, those of the stores (the log has failed then: open it anew and see).
void ox_mledger_terminate(struct ox_mledger *ml, struct ox_op *op);
// Sets one property in the log's record by the owner's compare-and-set (value NULL: removes it); both texts are copied. ml->properties has it when op finishes.
struct ox_ml_property {
    struct ox_op op; // Errors: FENCED, SHUTDOWN (the log is closing), those of the store
};
void ox_mledger_set_property(struct ox_mledger *ml, struct ox_ml_property *p, const char *key, const char *value);
// This log's own retention instead of the settings' (-1: without limit); takes effect at the next trim.
void ox_mledger_set_retention(struct ox_mledger *ml, int64_t retention_ms, int64_t retention_bytes);

// Positions. All are O(log ledgers).
// The first position of the log: {first ledger, 0} (it may not be written yet).
struct ox_pos ox_ml_first(const struct ox_mledger *ml);
// The first position behind p at which there is or will be an entry (the end: {current ledger, last + 1}).
struct ox_pos ox_ml_next(const struct ox_mledger *ml, struct ox_pos p);
// The position before p: the entry before it, or {ledger, -1} of the first kept ledger at the start (in a compacted log also one in a ledger that is gone).
struct ox_pos ox_ml_prev(const struct ox_mledger *ml, struct ox_pos p);
// p, or the nearest legal mark-delete position at or before it: never beyond the last entry, never before {first ledger, -1} unless the log is compacted.
struct ox_pos ox_ml_clamp(const struct ox_mledger *ml, struct ox_pos p);
// How many acknowledged entries lie in (after, upto]; lost ledgers' entries count.
uint64_t ox_ml_count(const struct ox_mledger *ml, struct ox_pos after, struct ox_pos upto);
// Likewise bytes, estimated by the ledgers' averages.
uint64_t ox_ml_bytes_between(const struct ox_mledger *ml, struct ox_pos after, struct ox_pos upto);
// The last entry of those ledgers, from the first one on, that were closed before a time (wall, ms): nothing in them is younger, readable or not. {-1, -1} if there is none.
struct ox_pos ox_ml_closed_before(const struct ox_mledger *ml, uint64_t before_ms);
// The ledger of a logical id, or NULL. Borrowed until the list changes.
const struct ox_ml_ledger *ox_ml_ledger(const struct ox_mledger *ml, int64_t id);

// Finds the last entry for which `before` is true, by bisection over entries (before must be monotone): used by seek by time.
struct ox_ml_find {
    struct ox_op op;
    bool (*before)(void *ctx, const struct ox_entry *entry); // in
    void *ctx;                                               // in
    struct ox_pos found;    // result: the entry, or {first ledger, -1} if it is false for all
    struct ox_mledger *ml;  // private
    struct ox_seq seq;      // private
    struct ox_ml_read read; // private
    int64_t low, high, mid; // private: numbers of entries, counted from the log's first ever seen here
};
void ox_mledger_find(struct ox_mledger *ml, struct ox_ml_find *f);

#endif
