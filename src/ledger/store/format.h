// format.h - the bytes of a segment file: header, batches, records, directories, footer. Pure functions over memory.
//
// All integers are little endian. A segment is a header block, batches, and, once sealed, a footer. Everything starts at a multiple of 4096.
// Checksums are CRC-32C started from the store's salt (the CRC of its identity), so that bytes of another store never pass.
//
// Segment header, at 0                      Batch header, at the batch's start
//  0  8  "OXSEGMT" and a zero                0  4  checksum of 4..63
//  8  4  version, 1                          4  4  "OXB1"
// 12  4  checksum of 16..127                 8  8  segment number
// 16  8  segment number, never reused       16  4  own offset in the segment
// 24  8  file size in bytes                 20  4  bytes of the whole batch, a multiple of 4096
// 32  8  made at, ms since 1970             24  4  directory's offset in the batch
// 40 37  identity of the place and a zero   28  4  records
// 77 51  zeros                              32  4  checksum of the directory
//                                           36  4  flags: 1 = CUT: all between the mark and this batch is void
//                                           40  8  mark: segment up to which the journal was durable ...
//                                           48  8  mark: ... and offset in it
//                                           56  8  sequence: one more than the batch before
// Record, at a multiple of 8 in its batch   Directory item (a second copy of what names a record)
//  0  4  checksum of 4..47 and payload       0  4  record's offset in the batch, its type in the low 3 bits
//  4  4  payload bytes                       4  4  payload bytes
//  8  1  type                                8  8  ledger
//  9  7  zeros                              16  8  entry
// 16  8  segment number                     24  8  argument
// 24  8  ledger
// 32  8  entry                              Types, ledger, entry, argument and payload
// 40  8  argument                            1 ENTRY   L, E, the ledger's bytes up to and with this entry; the entry
// 48  -  payload                             2 CREATE  L, -1, 0; custom metadata
//                                            3 CLOSE   L, last entry, the ledger's bytes
//                                            4 DELETE  L, -1, 0
//                                            5 ID      0, ids up to here may have been given, 0
//                                            6 MOVED   as ENTRY (argument 0), copied from a sparse segment
//
// Footer header, one block                  Item block                       Run block
//  0  4  checksum of 4..63                   0..4087 511 items of 8 bytes:    0..4079 102 runs of 40 bytes:
//  4  4  "OXF1"                                0 4 record's offset              0 8 ledger   8 8 first entry
//  8  8  segment number                        4 4 payload bytes               16 4 entries 20 4 first item
// 16  4  own offset in the segment           4088 4 checksum of 0..4087,       24 8 payload bytes 32 8 zeros
// 20  4  bytes of the whole footer                  number and block          4080 8 zeros
// 24  4  items                               4092 4 block's index             4088 8 as in item blocks
// 28  4  runs
// 32 32  zeros
// Item blocks follow the footer header, run blocks follow them. Items of a run stand together: entry e of a run is item first_item + e - first_entry.
// Custom metadata: u32 count, then per pair u32 key bytes, u32 value bytes, key, value.
//
// The next version: give the segment header version 2, keep decoding 1 for sealed segments (start-up always begins a new segment, so no segment mixes
// versions), and let compaction carry old records over. New record types need a new version: an unknown type is damage.
#ifndef LEDGER_STORE_FORMAT_H
#define LEDGER_STORE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/kv.h"
#include "base/str.h"
#include "ledger/place.h"

#define OX_SEG_BLOCK 4096u
#define OX_BATCH_HEADER_BYTES 64u
#define OX_RECORD_HEADER_BYTES 48u
#define OX_DIR_ITEM_BYTES 32u
#define OX_BATCH_CUT 1u
#define OX_ITEMS_PER_BLOCK 511u
#define OX_RUNS_PER_BLOCK 102u
#define OX_RUN_BYTES 40u

enum ox_segment_record_type { OX_REC_ENTRY = 1, OX_REC_CREATE, OX_REC_CLOSE, OX_REC_DELETE, OX_REC_ID, OX_REC_MOVED };

// A position in the journal: the segments one after another.
struct ox_journal_pos {
    uint64_t segment;
    uint64_t offset; // bytes from the segment file's start
};
// Negative, 0 or positive as a is before, at or after b.
int ox_journal_pos_cmp(struct ox_journal_pos a, struct ox_journal_pos b);

struct ox_segment_header {
    uint64_t number;
    uint64_t file_bytes;
    uint64_t made_ms;
    char identity[OX_IDENTITY_BYTES];
};
struct ox_batch_header {
    uint64_t number; // of the segment
    uint32_t offset, bytes;
    uint32_t directory; // offset in the batch
    uint32_t records;
    uint32_t directory_crc;
    uint32_t flags;
    struct ox_journal_pos mark;
    uint64_t sequence;
};
struct ox_segment_record {
    enum ox_segment_record_type type;
    uint32_t length; // payload bytes
    uint64_t number; // of the segment
    int64_t ledger, entry;
    uint64_t arg;
};
struct ox_footer_header {
    uint64_t number;
    uint32_t offset, bytes, items, runs;
};
// Where a record is: an item of the index.
struct ox_item {
    uint32_t offset, length; // of the record in the segment; of its payload
};
struct ox_run {
    int64_t ledger, first;
    uint32_t count, first_item;
    uint64_t bytes;
};

// n rounded up to a multiple of 8.
static inline uint32_t ox_align8(uint32_t n)
{
    return (n + 7u) & ~7u;
}
// n rounded up to a multiple of OX_SEG_BLOCK.
static inline uint64_t ox_align_block(uint64_t n)
{
    return (n + OX_SEG_BLOCK - 1u) & ~(uint64_t)(OX_SEG_BLOCK - 1u);
}

// The start value of all checksums of a store.
uint32_t ox_format_salt(const char *identity);
// Fills one block.
void ox_segment_header_encode(uint8_t *block, const struct ox_segment_header *h);
// Errors: CORRUPT (magic, checksum), UNSUPPORTED (version).
enum ox_err ox_segment_header_decode(const uint8_t *p, size_t len, struct ox_segment_header *ret) OX_CHECKED;
// Fills 64 bytes.
void ox_batch_header_encode(uint8_t *p, uint32_t salt, const struct ox_batch_header *h);
// True if a whole batch header of segment `number` stands at `offset` of the segment whose bytes are data..data+len and its sizes are possible.
bool ox_batch_header_decode(const uint8_t *data, size_t len, uint32_t salt, uint64_t number, uint32_t offset,
                            struct ox_batch_header *ret);
// What a record holds: the bytes of the parts, of which the last tail_len have been checked already and have the CRC-32C tail_crc.
struct ox_record_payload {
    const struct ox_buf *parts;
    size_t count;
    uint32_t tail_len, tail_crc;
};
// Fills 48 bytes.
void ox_segment_record_header_encode(uint8_t *p, uint32_t salt, const struct ox_segment_record *r,
                                     const struct ox_record_payload *payload);
// Checks the record at p, of which `avail` bytes may be read. Errors: CORRUPT.
enum ox_err ox_segment_record_decode(const uint8_t *p, size_t avail, uint32_t salt, uint64_t number,
                                     struct ox_segment_record *ret) OX_CHECKED;
// Fills 32 bytes; offset is the record's in the batch.
void ox_dir_item_encode(uint8_t *p, uint32_t offset, const struct ox_segment_record *r);
// Errors: CORRUPT (an unknown type).
enum ox_err ox_dir_item_decode(const uint8_t *p, uint64_t number, uint32_t *ret_offset,
                               struct ox_segment_record *ret) OX_CHECKED;

// Bytes of the footer for so many items and runs.
uint64_t ox_footer_bytes(uint64_t items, uint64_t runs);
void ox_footer_header_encode(uint8_t *block, uint32_t salt, const struct ox_footer_header *h);
// True if the footer header of segment `number` stands at `offset` and its sizes are possible.
bool ox_footer_header_decode(const uint8_t *p, size_t len, uint32_t salt, uint64_t number, uint32_t offset,
                             struct ox_footer_header *ret);
// Seals an item or run block whose content (0..4087) is there.
void ox_index_block_seal(uint8_t *block, uint32_t salt, uint64_t number, uint32_t index);
// Errors: CORRUPT.
enum ox_err ox_index_block_check(const uint8_t *block, uint32_t salt, uint64_t number, uint32_t index) OX_CHECKED;
void ox_item_put(uint8_t *block, uint32_t slot, struct ox_item item);
struct ox_item ox_item_get(const uint8_t *block, uint32_t slot);
void ox_run_put(uint8_t *block, uint32_t slot, const struct ox_run *run);
struct ox_run ox_run_get(const uint8_t *block, uint32_t slot);

// Appends the pairs' bytes.
void ox_custom_encode(struct ox_str *out, const struct ox_kv *kv);
// Fills an empty list. Errors: CORRUPT (the list is empty then).
enum ox_err ox_custom_decode(const uint8_t *p, size_t len, struct ox_kv *ret) OX_CHECKED;

#endif
