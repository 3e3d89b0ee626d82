// compaction_fuzz.c - stored and published entries as compaction reads them: what is taken out of a batch leaves its indexes, and what is written reads the same.
#include "base/assert.h"
#include "base/mem.h"
#include "broker/compaction_entry.h"
#include "fuzz.h"
#include "wire/compress.h"

#define PLAIN_MAX (256u * 1024)

static bool keeps_odd(void *ctx, const struct compaction_message *m)
{
    (void)ctx;
    return m->index % 2 == 1;
}

// Batches only: half of the messages are taken out.
static void fuzz_thin(const struct compaction_entry *e)
{
    struct compaction_message m;
    struct compaction_entry again = *e;
    size_t at = 0, there = 0;
    struct ox_str plain = compaction_entry_thin(e, keeps_odd, NULL);
    again.plain = ox_buf_copy(plain.data, plain.len);
    while (compaction_entry_next(&again, &at, &m)) {
        OX_ASSERT(m.index == (int32_t)there && (m.index % 2 == 1 || m.gone));
        there++;
    }
    OX_ASSERT(there == e->count);
    struct ox_buf entry;
    if (compaction_entry_rebuild(e, again.plain, plain.len, &entry) == OX_OK)
        ox_buf_unref(&entry);
    ox_buf_unref(&again.plain);
    ox_str_fini(&plain);
}

static void fuzz_entry(struct ox_buf data)
{
    struct compaction_entry e;
    struct compaction_message m;
    struct ox_buf plain = ox_buf_empty();
    compaction_entry_scan(&e, data);
    if (compaction_entry_is_packed(&e) && ox_decompress(e.meta.compression, e.payload.data, e.payload.len,
                                                        e.meta.uncompressed_size, PLAIN_MAX, &plain) != OX_OK)
        plain = ox_buf_empty();
    compaction_entry_open(&e, plain);
    size_t count = 0;
    for (size_t at = 0; compaction_entry_next(&e, &at, &m); count++)
        OX_ASSERT(m.index == (e.kind == COMPACTION_BATCH ? (int32_t)count : -1));
    OX_ASSERT(count == (e.kind == COMPACTION_BATCH || e.kind == COMPACTION_SINGLE ? e.count : 0));
    if (e.kind == COMPACTION_BATCH)
        fuzz_thin(&e);
    compaction_entry_fini(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ox_buf stored = ox_buf_copy(data, size), entry;
    uint8_t head[COMPACTION_HEAD_BYTES_MAX];
    struct ox_pos pos;
    fuzz_entry(stored);
    if (compaction_stored_parse(stored, &pos, &entry) == OX_OK) {
        OX_ASSERT(compaction_head_put(head, pos, -1, entry.len) <= sizeof head);
        fuzz_entry(entry);
    }
    ox_buf_unref(&stored);
    return 0;
}
