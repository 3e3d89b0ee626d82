// scan.h - what a segment's bytes say: batches, records, damage and the end. A pure function over memory, run at start-up and by the fuzzer.
#ifndef LEDGER_STORE_SCAN_H
#define LEDGER_STORE_SCAN_H

#include "ledger/store/format.h"

// One record found. damaged: its name comes from the directory, its bytes do not check.
struct ox_scan_record {
    struct ox_segment_record record;
    uint32_t offset; // in the segment
    bool damaged;
};
// What start-up does with a batch (set by it, not by the scan).
enum ox_batch_fate { OX_BATCH_DROPPED, OX_BATCH_DURABLE, OX_BATCH_TAIL };
// One batch, or the stretch where one was whose header is damaged (salvaged: mark, flags and sequence are unknown).
struct ox_scan_batch {
    uint32_t offset, bytes;
    uint32_t first_record, records; // in ox_scan.records
    struct ox_journal_pos mark;
    uint64_t sequence;
    uint32_t flags;
    bool intact; // header, directory and every record check
    bool salvaged;
    enum ox_batch_fate fate;
};
struct ox_scan {
    uint64_t number;
    struct ox_scan_batch *batches;
    size_t batch_count, batch_cap;
    struct ox_scan_record *records;
    size_t record_count, record_cap;
    uint32_t end; // where the last batch ends
    bool sealed;  // a footer stands there: all below is durable
};

// Scans data..data+len, the bytes of segment `number` from its file's start. Everything below `durable` (0: nothing known) is known from later segments to have
// been durable: a bad header there is damage, never the end. Within the segment a later batch's mark (or the footer) tells the same. Frees nothing of ret's old content.
void ox_scan_segment(const uint8_t *data, size_t len, uint32_t salt, uint64_t number, uint32_t durable, struct ox_scan *ret);
// Frees the arrays.
void ox_scan_fini(struct ox_scan *s);

#endif
