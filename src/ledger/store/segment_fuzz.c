// segment_fuzz.c - fuzzes what start-up reads of segment files: header, batches, records, directories, footer and index blocks, custom metadata.
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/kv.h"
#include "fuzz.h"
#include "ledger/store/scan.h"

#define SALT 1u
#define SEGMENT 1u
#define LEN_MAX (64u * 4096u)

// Makes checksums right where the input looks like a batch, so that the fuzzer gets behind them.
static void segment_mend(uint8_t *p, size_t len)
{
    for (size_t at = OX_SEG_BLOCK; at + OX_SEG_BLOCK <= len; at += OX_SEG_BLOCK) {
        uint8_t *b = p + at;
        if (b[0] & 1)
            continue; // left as it is
        memcpy(b + 4, b[0] & 2 ? "OXF1" : "OXB1", 4);
        ox_put_le64(b + 8, SEGMENT);
        ox_put_le32(b + 16, (uint32_t)at);
        uint64_t directory = ox_get_le32(b + 24), bytes = (uint64_t)ox_get_le32(b + 28) * OX_DIR_ITEM_BYTES;
        if (directory + bytes <= len - at)
            ox_put_le32(b + 32, ox_crc32c(SALT, b + directory, bytes));
        ox_put_le32(b, ox_crc32c(SALT, b + 4, OX_BATCH_HEADER_BYTES - 4));
    }
}

static void segment_check(const struct ox_scan *s, size_t len)
{
    uint32_t end = OX_SEG_BLOCK;
    for (size_t i = 0; i < s->batch_count; i++) {
        OX_ASSERT(s->batches[i].offset == end);
        end += s->batches[i].bytes;
        OX_ASSERT(s->batches[i].first_record + s->batches[i].records <= s->record_count);
    }
    OX_ASSERT(s->end == end && end <= OX_MAX(len, (size_t)OX_SEG_BLOCK));
    for (size_t i = 0; i < s->record_count; i++)
        OX_ASSERT(s->records[i].offset + (uint64_t)OX_RECORD_HEADER_BYTES + s->records[i].record.length <= len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ox_segment_header h;
    struct ox_scan scan;
    struct ox_kv kv = {0};
    size = OX_MIN(size, (size_t)LEN_MAX);
    uint8_t *copy = malloc(size + 1);
    if (!copy)
        abort();
    memcpy(copy, data, size);
    (void)!ox_segment_header_decode(copy, size, &h);
    if (ox_custom_decode(copy, size, &kv) == OX_OK)
        ox_kv_fini(&kv);
    for (int mend = 0; mend < 2; mend++) {
        if (mend)
            segment_mend(copy, size);
        ox_scan_segment(copy, size, SALT, SEGMENT, (uint32_t)size / 2, &scan);
        segment_check(&scan, size);
        ox_scan_fini(&scan);
    }
    for (size_t at = 0; at + OX_SEG_BLOCK <= size; at += OX_SEG_BLOCK)
        (void)!ox_index_block_check(copy + at, SALT, SEGMENT, 0);
    free(copy);
    return 0;
}
