// record.h - the record of a log (its node's value): decoded once, modified in place, never rebuilt, so that unknown fields and stamps survive.
#ifndef MLEDGER_RECORD_H
#define MLEDGER_RECORD_H

#include "ledger/router.h"
#include "mledger/copies.h"
#include "wire/mldata.h"

// Properties of a ledger's record.
#define OX_STAMP_PLACE "_pulsar.bookieClusterName"   // the place that holds the ledger; absent: the bootstrap place
#define OX_STAMP_PHYSICAL "_pulsar.physicalLedgerId" // the id there, where it isn't the logical one
#define OX_STAMP_COPIES "_pulsar.copies" // other complete locations: "place:physical id:since ms", separated by commas
#define OX_STAMP_DIGEST "_pulsar.copyDigest"  // of all entries, where it was ever computed
#define OX_STAMP_TRUNCATED "_oxbow.truncated" // the ledger ends before its place says so
// Properties of the log.
#define OX_PROPERTY_INDEX "index"                 // index of the last message (broker entry metadata)
#define OX_PROPERTY_COMPACTED "oxbow.compacted"   // locations of compacted ledgers (compacted.h)
#define OX_COMPONENT_COMPACTED "compacted-ledger" // custom metadata "component" of those

// A decoded record.
struct ox_record {
    struct ox_arena arena;           // private
    Mldata__ManagedLedgerInfo *info; // private
};

// One ledger of it.
struct ox_record_ledger {
    int64_t id;         // logical
    int64_t physical;   // in its place
    const char *place;  // name; NULL: the bootstrap place. Borrowed until the next change
    int64_t entries;    // 0 where absent
    uint64_t bytes;     // 0 where absent
    uint64_t closed_ms; // 0: open, or never noted
    const char *copies; // OX_STAMP_COPIES as it stands there (ox_copies_parse); NULL: none. Borrowed likewise
    const char *digest; // NULL: none. Borrowed likewise
};

// A new record without ledgers.
struct ox_record *ox_record_new(void);
// Frees it; NULL is allowed.
void ox_record_free(struct ox_record *r);
// Replaces the content by a node's value (empty: no ledgers). Ids must rise. Errors: CORRUPT, TOO_BIG; the content is undefined then.
enum ox_err ox_record_decode(struct ox_record *r, struct ox_buf value) OX_CHECKED;
// The node's value; the caller owns one reference. guard: records that Pulsar would misread are written so that it refuses them.
// bootstrap: the name of Pulsar's own place.
struct ox_buf ox_record_encode(const struct ox_record *r, bool guard, const char *bootstrap);
// Makes `to` a copy of `from`, unknown fields included.
void ox_record_copy(struct ox_record *to, const struct ox_record *from);

// How many ledgers there are.
size_t ox_record_count(const struct ox_record *r);
// The ledger at an index (asserted).
struct ox_record_ledger ox_record_get(const struct ox_record *r, size_t i);
// True if the log was terminated; *ret its last position.
bool ox_record_terminated(const struct ox_record *r, struct ox_pos *ret);
// True while the record holds something that Pulsar 4.0.7 would misread: another place, a physical id, a truncated ledger.
bool ox_record_is_foreign(const struct ox_record *r, const char *bootstrap);

// The index of a ledger by its logical id; ox_record_count if it isn't there.
size_t ox_record_at(const struct ox_record *r, int64_t id);
// Whether the record names a location, as a ledger's primary, as a copy, or as a compacted ledger. bootstrap: the name of the place where unstamped ledgers are. Errors: CORRUPT (what
// it says of some ledger can't be understood); *ret is right as far as it goes then.
enum ox_err ox_record_names(const struct ox_record *r, const char *bootstrap, const char *place, int64_t physical,
                            bool *ret) OX_CHECKED;

// Appends an open ledger; its id must be the largest (asserted).
void ox_record_append_open(struct ox_record *r, int64_t id);
// Stamps a ledger of the record with its place, and its physical id where that differs; a former stamp is replaced.
void ox_record_stamp(struct ox_record *r, struct ox_location where, const char *place);
// Notes the final counts of a ledger and when it was closed; all else of it stays.
void ox_record_seal(struct ox_record *r, int64_t id, int64_t entries, uint64_t bytes, uint64_t closed_ms);
// Takes a ledger out; false if it wasn't there.
bool ox_record_drop(struct ox_record *r, int64_t id);
// Notes the last position of all: nothing is appended any more.
void ox_record_terminate(struct ox_record *r, struct ox_pos last);
// Takes all ledgers out.
void ox_record_drop_all(struct ox_record *r);
// Sets a property of a ledger of the record.
void ox_record_set_ledger_property(struct ox_record *r, int64_t id, const char *key, const char *value);
// Takes a property of a ledger of the record out, if it is there.
void ox_record_unset_ledger_property(struct ox_record *r, int64_t id, const char *key);
// Writes a ledger's other locations; without any, the property goes.
void ox_record_set_copies(struct ox_record *r, int64_t id, const struct ox_copies *copies);
// Sets a property of the log.
void ox_record_set_property(struct ox_record *r, const char *key, const char *value);
// Takes a property of the log out, if it is there.
void ox_record_unset_property(struct ox_record *r, const char *key);
// The value of a property of the log, or NULL. Borrowed until the next change.
const char *ox_record_find_property(const struct ox_record *r, const char *key);

#endif
