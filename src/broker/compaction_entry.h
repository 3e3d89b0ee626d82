// compaction_entry.h - entries as compaction sees them: their keys, what is left of a batch, and how they stand in a compacted ledger.
//
// An entry of a compacted ledger (Pulsar's RawMessage; numbers are big-endian):
//
// | bytes | field |
// |---|---|
// | 4 | n: bytes of the id |
// | n | MessageIdData of the message, or batch, as it was published: ledger, entry, partition |
// | 4 | m |
// | m | [0x0e01, checksum] metadata size, metadata, payload |
//
// Messages that were taken out of a batch stay in it as empty ones with compacted_out set, so that indexes do not change.
#ifndef BROKER_COMPACTION_ENTRY_H
#define BROKER_COMPACTION_ENTRY_H

#include "base/pos.h"
#include "base/str.h"
#include "wire/message_meta.h"

#define COMPACTION_HEAD_BYTES_MAX 48u

enum compaction_kind {
    COMPACTION_KEEP,   // cannot be looked into: stays as it is
    COMPACTION_DROP,   // a broker's marker
    COMPACTION_SINGLE, // one message
    COMPACTION_BATCH,
};

// One message of an entry.
struct compaction_message {
    struct ox_span key;  // data NULL: none
    struct ox_span uuid; // of a chunked message; data NULL: not one
    bool tombstone;      // empty or null: the key is removed
    bool gone;           // taken out by an earlier run
    bool is_first_chunk, is_last_chunk;
    int32_t index; // in its batch; -1: not in one
};

struct compaction_entry {
    enum compaction_kind kind;
    struct ox_buf data;     // without the broker's part; borrowed
    struct ox_buf metadata; // borrowed
    struct ox_buf payload;  // borrowed
    struct ox_message_meta meta;
    struct ox_buf plain; // of a batch: its payload uncompressed; a reference of its own
    uint32_t count;      // messages
};

// Takes an entry (with or without the broker's part) apart as far as that needs no decompression: a batch is then given its `plain` by compaction_entry_open. `data` must outlive it.
void compaction_entry_scan(struct compaction_entry *e, struct ox_buf data);
// True if the payload of a batch has to be decompressed first (e->meta.compression, e->meta.uncompressed_size).
bool compaction_entry_is_packed(const struct compaction_entry *e);
// Gives a batch its plain payload (taken over; empty: it could not be decompressed) and checks it: what is damaged becomes COMPACTION_KEEP.
void compaction_entry_open(struct compaction_entry *e, struct ox_buf take_plain);
// Frees `plain`.
void compaction_entry_fini(struct compaction_entry *e);

// Walks an entry's messages: *at begins with 0. False at the end.
bool compaction_entry_next(const struct compaction_entry *e, size_t *at, struct compaction_message *ret);
// The plain payload of a batch with only those messages left for which `keeps` is true; the others stand there as taken out.
struct ox_str compaction_entry_thin(const struct compaction_entry *e,
                                    bool (*keeps)(void *ctx, const struct compaction_message *m), void *ctx);
// The entry with another payload (compressed as before), whose plain length is plain_len; the caller owns one reference. Errors: MALFORMED (the metadata are not what they should be).
enum ox_err compaction_entry_rebuild(const struct compaction_entry *e, struct ox_buf payload, size_t plain_len,
                                     struct ox_buf *ret) OX_CHECKED;

// What stands before an entry of `len` bytes in a compacted ledger; returns its length.
size_t compaction_head_put(uint8_t out[COMPACTION_HEAD_BYTES_MAX], struct ox_pos pos, int32_t partition, size_t len);
// Takes an entry of a compacted ledger apart; *ret_entry is borrowed. Errors: CORRUPT.
enum ox_err compaction_stored_parse(struct ox_buf stored, struct ox_pos *ret_pos, struct ox_buf *ret_entry) OX_CHECKED;

#endif
