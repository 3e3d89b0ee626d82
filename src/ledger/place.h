// place.h - a place (bookie cluster) where ledgers live: the interface that the embedded engine and the BookKeeper client share.
#ifndef LEDGER_PLACE_H
#define LEDGER_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/kv.h"
#include "base/list.h"
#include "base/pos.h"
#include "io/loop.h"

struct ox_place;
struct ox_ledger;

// What identifies a place for ever: made when its storage is first set up (INSTANCEID of a bookie cluster). 36 characters, as a UUID is written.
#define OX_IDENTITY_BYTES 37

// The state of a ledger as its place knows it.
enum ox_ledger_state { OX_LEDGER_OPEN, OX_LEDGER_IN_RECOVERY, OX_LEDGER_CLOSED };

// What is known of a ledger without reading entries.
struct ox_ledger_info {
    int64_t id;
    enum ox_ledger_state state;
    int64_t last_entry;  // last confirmed entry; -1 = none. Final when CLOSED
    uint64_t length;     // bytes of all entries up to last_entry
    struct ox_kv custom; // custom metadata: application, component, pulsar/managed-ledger, pulsar/cursor, ... and ours
};
// Frees the custom metadata.
void ox_ledger_info_fini(struct ox_ledger_info *info);

enum ox_open_mode {
    OX_OPEN_READ_ONLY, // no fencing: reads up to the last confirmed entry
    OX_OPEN_RECOVER,   // fences the writer, closes the ledger at its true end; then reads
};

// An append. The caller fills the first part; entries of a ledger are appended with ids 0, 1, 2 ... without a hole and complete in that order.
struct ox_append {
    struct ox_op op; // OK only when the entry is on stable storage of the place's policy. Errors: FENCED, CLOSED, NO_SPACE, PLACE_FAILED, TOO_BIG, SHUTDOWN. After an error no later append of the handle succeeds.
    int64_t entry;   // in: the id, must be the next one (asserted)
    struct ox_buf parts[3]; // in: the entry's bytes one after another; references are the caller's to keep until done
    uint32_t part_count;    // in
    uint32_t tail_len; // in: so many bytes at the end of the last part have been checked already: their CRC-32C is tail_crc. 0: none
    uint32_t tail_crc;        // in
    struct ox_ledger *ledger; // private
    uint64_t private_[6];     // private to the place: offset, batch, ...
};
// Bytes of an append.
uint64_t ox_append_bytes(const struct ox_append *a);

// A read of entries first..last of a ledger.
struct ox_read {
    struct ox_op op;     // Errors: NO_ENTRY (beyond the end), NO_LEDGER, CORRUPT (with entry and where), IO, SHUTDOWN
    int64_t first, last; // in
    uint64_t bytes_max;  // in: stop after the entry that passes it; at least one entry is returned
    struct ox_buf *entries; // result: count slices, owned by the caller: free with ox_read_fini
    size_t count;           // result: entries first..first+count-1
    char where[160];        // result on CORRUPT: ledger, entry, file, offset, for the log
    void *private_;         // private to the place
};
// Frees the result's slices and array.
void ox_read_fini(struct ox_read *r);

// A create. Errors: LEDGER_EXISTS, NO_SPACE, PLACE_FAILED, SHUTDOWN.
struct ox_ledger_create {
    struct ox_op op;
    struct ox_ledger *ledger; // result: a writer's handle
    void *private_[4];
};
// An open. Errors: NO_LEDGER, IDENTITY_MISMATCH (expected custom metadata isn't there), CORRUPT, SHUTDOWN.
struct ox_ledger_open {
    struct ox_op op;
    struct ox_ledger *ledger; // result: a reader's handle
    void *private_[4];
};
// A close of a written ledger. Errors: FENCED, PLACE_FAILED, UNKNOWN_OUTCOME (re-open to learn), SHUTDOWN.
struct ox_ledger_close {
    struct ox_op op;
    int64_t last_entry; // result
    uint64_t length;    // result
    void *private_[4];
};
// A delete. Errors: NO_LEDGER, IDENTITY_MISMATCH, BUSY (a writer's handle is open), SHUTDOWN.
struct ox_ledger_delete {
    struct ox_op op;
    void *private_[4];
};
// One page of all ledgers.
struct ox_ledger_list {
    struct ox_op op;
    int64_t after;                // in: ids above this one (-1 to start)
    size_t max;                   // in
    struct ox_ledger_info *items; // result, sorted by id; free with ox_ledger_list_fini
    size_t count;                 // result; less than max: the end
    void *private_;
};
void ox_ledger_list_fini(struct ox_ledger_list *l);
// The next id. Ids only rise and are never given twice, across restarts too.
struct ox_next_id {
    struct ox_op op;
    int64_t id; // result, > 0
    void *private_;
};

struct ox_capacity {
    uint64_t total, available, used_live; // bytes; live = of ledgers that aren't deleted
    uint64_t reserve;                     // with less than this available it takes no more room for appends
    uint64_t step;                        // the room that it takes at a time
    bool writable;                        // false: failed or below its reserve
};

// What a kind of place supplies. The functions below that users call have begun the operation already (and set ox_append.ledger); a body only finishes it.
struct ox_place_body {
    void (*create)(struct ox_place *p, struct ox_ledger_create *op, int64_t id, const struct ox_kv *custom);
    void (*open)(struct ox_place *p, struct ox_ledger_open *op, int64_t id, enum ox_open_mode mode,
                 const struct ox_kv *expected);
    void (*append)(struct ox_ledger *l, struct ox_append *op);
    void (*read)(struct ox_ledger *l, struct ox_read *op);
    void (*close_ledger)(struct ox_ledger *l, struct ox_ledger_close *op);
    void (*release)(struct ox_ledger *l);
    void (*del)(struct ox_place *p, struct ox_ledger_delete *op, int64_t id, const struct ox_kv *expected);
    void (*list)(struct ox_place *p, struct ox_ledger_list *op);
    void (*next_id)(struct ox_place *p, struct ox_next_id *op);
    void (*push_id)(struct ox_place *p, struct ox_op *op, int64_t above);
    void (*capacity)(struct ox_place *p, struct ox_capacity *ret);
    void (*close)(struct ox_place *p, struct ox_op *op);
};

// An open place; bodies embed it first.
struct ox_place {
    const struct ox_place_body *body;
    struct ox_loop *loop;
    char *name;                       // read-only: as registered ("default")
    char *uri;                        // read-only: metadata service URI ("embedded:data/store")
    char identity[OX_IDENTITY_BYTES]; // read-only
    struct ox_list handles;           // private: struct ox_ledger, open handles, in order of opening
    uint32_t busy; // read-only: calls under way, counted by the body; one that ends with a handle counts until the handle is in the list
};

// A handle on a ledger, for one writer or reader; bodies embed it first.
struct ox_ledger {
    struct ox_place *place;     // read-only
    struct ox_ledger_info info; // read-only; last_entry and length follow confirmed appends in this process
    bool writer;                // read-only: made by create
    struct ox_link link;        // private: in place->handles
};

// For bodies: a place's shared part before it is handed out; a handle of it; the end of one.
void ox_place_init(struct ox_place *p);
void ox_ledger_attach(struct ox_ledger *l, struct ox_place *p, bool writer);
void ox_ledger_detach(struct ox_ledger *l);

// Makes a ledger of a chosen id with custom metadata (copied). Durable when op finishes.
void ox_ledger_create(struct ox_place *p, struct ox_ledger_create *op, int64_t id, const struct ox_kv *custom);
// Opens a ledger; every pair of `expected` must be in its custom metadata (NULL: no check, for tools only).
// RECOVER fences: after it no append through an older handle is ever acknowledged, and the ledger is CLOSED at an end that holds every acknowledged entry.
void ox_ledger_open(struct ox_place *p, struct ox_ledger_open *op, int64_t id, enum ox_open_mode mode,
                    const struct ox_kv *expected);
// Appends one entry through a writer's handle.
void ox_ledger_append(struct ox_ledger *l, struct ox_append *op);
// Reads entries; last is capped by the last confirmed entry.
void ox_ledger_read(struct ox_ledger *l, struct ox_read *op);
// Closes a writer's ledger behind all its appends (which complete first). The handle reads on until released.
void ox_ledger_close(struct ox_ledger *l, struct ox_ledger_close *op);
// Gives the handle back. A writer's ledger that was not closed stays open in its place: whoever opens it next recovers it. Pending reads and appends finish first (appends with SHUTDOWN or their outcome).
void ox_ledger_release(struct ox_ledger *l);
// Deletes a ledger whose custom metadata holds every pair of `expected` (never NULL). Durable when op finishes. Deleting what is not there says NO_LEDGER.
void ox_ledger_delete(struct ox_place *p, struct ox_ledger_delete *op, int64_t id, const struct ox_kv *expected);
// Lists ledgers in pages.
void ox_ledger_list(struct ox_place *p, struct ox_ledger_list *op);
// Takes the next id from the place's generator.
void ox_place_next_id(struct ox_place *p, struct ox_next_id *op);
// Pushes the generator: later ids are above `above`. Durable when op finishes.
void ox_place_push_id(struct ox_place *p, struct ox_op *op, int64_t above);
// Free and used bytes, as last measured (at most some seconds old).
void ox_place_capacity(struct ox_place *p, struct ox_capacity *ret);
// Closes the place: waits for what is in flight, writes what makes the next start quick, frees it. All handles must have been released (asserted).
void ox_place_close(struct ox_place *p, struct ox_op *op);

#endif
