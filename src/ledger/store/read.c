// read.c - reads entries: where each is (unsealed index, extent and index block), then one read per stretch of neighbours, every record checked.
#include <stdio.h>

#include "base/assert.h"
#include "ledger/store/store_int.h"

#define READ_ITEMS 256u // entries of one stretch

struct reading {
    struct ox_seq seq;
    struct ox_op op;
    struct store *store;
    struct sledger *sl;    // holds a reference
    struct handle *handle; // or NULL: compaction
    struct ox_read *read;
    int64_t entry, last; // next wanted; last wanted
    uint64_t bytes;
    size_t cap;
    struct segment *seg; // pinned during a stretch
    struct ox_table_extent extent;
    struct ox_item items[READ_ITEMS];
    uint32_t item_count;
    uint8_t *block; // an index block being read
    uint32_t block_index;
    size_t got;
    struct ox_buf data;
    uint8_t *into;
    size_t want;
};

static ox_step read_plan(struct ox_seq *q);
static ox_step read_extent_found(struct ox_seq *q);
static ox_step read_index_open(struct ox_seq *q);
static ox_step read_index(struct ox_seq *q);
static ox_step read_index_got(struct ox_seq *q);
static ox_step read_rebuild(struct ox_seq *q);
static ox_step read_rebuilt(struct ox_seq *q);
static ox_step read_data(struct ox_seq *q);
static ox_step read_data_got(struct ox_seq *q);
static void read_done(struct ox_seq *q, enum ox_err err);

static struct reading *read_of(struct ox_seq *q)
{
    return CONTAINER_OF(q, struct reading, seq);
}

void read_start(struct store *s, struct sledger *sl, struct handle *h, struct ox_read *r, int64_t last)
{
    struct reading *g = ox_malloc(sizeof *g);
    g->store = s;
    g->sl = sl;
    g->handle = h;
    g->read = r;
    g->entry = r->first;
    g->last = last;
    sl->refs++;
    s->place.busy++;
    ox_seq_start(&g->seq, s->loop, "read entries", read_plan, read_done);
}

// The read is over: what was read before an error is given, the error comes when the damaged entry is asked for first.
static ox_step read_end(struct reading *g, enum ox_err err)
{
    if (g->read->count > 0 && err != OX_E_SHUTDOWN)
        err = OX_OK;
    return OX_FINISH(&g->seq, err);
}

static ox_step read_corrupt(struct reading *g, const char *what, uint64_t offset)
{
    OX_CLEANUP(ox_free_ptr)
    char *path = g->seg ? segment_path(g->store, g->seg->number) : ox_strdup("-");
    if (g->read->count == 0) {
        snprintf(g->read->where, sizeof g->read->where, "ledger=%lld entry=%lld file=%.60s offset=%llu: %s",
                 (long long)g->sl->id, (long long)g->entry, path, (unsigned long long)offset, what);
        g->store->m_corrupt.value++;
        ox_error(g->store->log, "store.entry.corrupt", "ledger=%lld entry=%lld file=\"%s\" offset=%llu why=\"%s\"",
                 (long long)g->sl->id, (long long)g->entry, path, (unsigned long long)offset, what);
    }
    return read_end(g, OX_E_CORRUPT);
}

// Takes items of neighbouring entries while they stand close together and the read still wants them.
static bool read_take_item(struct reading *g, struct ox_item item)
{
    uint64_t end = (uint64_t)item.offset + OX_RECORD_HEADER_BYTES + item.length;
    if (g->item_count > 0) {
        struct ox_item first = g->items[0], before = g->items[g->item_count - 1];
        uint64_t before_end = (uint64_t)before.offset + OX_RECORD_HEADER_BYTES + before.length;
        if (g->item_count == READ_ITEMS || item.offset < before_end || item.offset - before_end > STORE_READ_GAP)
            return false;
        if (end - first.offset > STORE_READ_CHUNK || g->bytes + (before_end - first.offset) > g->read->bytes_max)
            return false;
    }
    g->items[g->item_count++] = item;
    return true;
}

static bool read_in_tails(struct reading *g)
{
    for (struct ox_link *link = g->store->tails.head.prev; link != &g->store->tails.head; link = link->prev) {
        struct tail *t = CONTAINER_OF(link, struct tail, link);
        uint32_t more;
        const struct ox_item *item = ox_index_find(&t->index, g->sl->id, g->entry, &more);
        if (!item)
            continue;
        for (uint32_t i = 0; i <= more && g->entry + i <= g->last && read_take_item(g, item[i]); i++) {}
        g->seg = t->seg;
        segment_pin(g->store, g->seg);
        return true;
    }
    return false;
}

static bool read_wants_more(const struct reading *g)
{
    const struct ox_read *r = g->read;
    return g->entry <= g->last && (r->count == 0 || g->bytes <= r->bytes_max) && r->count < STORE_READ_ENTRIES_MAX;
}

static ox_step read_plan(struct ox_seq *q)
{
    struct reading *g = read_of(q);
    struct sledger *sl = g->sl;
    g->item_count = 0;
    if (!read_wants_more(g))
        return read_end(g, OX_OK);
    if (sl->deleted)
        return read_end(g, OX_E_NO_LEDGER);
    if (read_in_tails(g))
        return OX_GOTO(q, read_index_open);
    if (sl->extent_epoch == g->store->extent_epoch && sl->extent.first <= g->entry && g->entry <= sl->extent.last) {
        g->extent = sl->extent;
        q->err = OX_OK;
        return OX_GOTO(q, read_extent_found);
    }
    ox_seq_bind(q, &g->op, "find extent");
    ox_table_extent(g->store->table, &g->op, sl->id, g->entry, &g->extent);
    return OX_WAIT(q, read_extent_found);
}

static ox_step read_extent_found(struct ox_seq *q)
{
    struct reading *g = read_of(q);
    if (g->sl->deleted)
        return read_end(g, OX_E_NO_LEDGER);
    if (q->err == OX_E_NO_ENTRY || (q->err == OX_OK && g->extent.first > g->entry))
        return read_in_tails(g) ? OX_GOTO(q, read_index_open) : read_corrupt(g, "no segment holds the entry", 0);
    if (q->err != OX_OK)
        return read_end(g, q->err);
    g->sl->extent = g->extent;
    g->sl->extent_epoch = g->store->extent_epoch;
    g->seg = segment_find(g->store, g->extent.segment);
    if (!g->seg || g->seg->missing)
        return read_corrupt(g, "the segment file is missing", 0);
    segment_pin(g->store, g->seg);
    return OX_GOTO(q, read_index_open);
}

static ox_step read_index_open(struct ox_seq *q)
{
    struct reading *g = read_of(q);
    ox_seq_bind(q, &g->op, "open segment");
    segment_open(g->store, g->seg, &g->op);
    return OX_WAIT(q, read_index);
}

static void read_take_items(struct reading *g, const uint8_t *block)
{
    uint64_t at = g->extent.pos + (uint64_t)(g->entry - g->extent.first);
    int64_t last = OX_MIN(g->last, g->extent.last);
    uint32_t slot = (uint32_t)(at % OX_ITEMS_PER_BLOCK);
    for (uint32_t i = 0; slot + i < OX_ITEMS_PER_BLOCK && g->entry + i <= last; i++) {
        if (!read_take_item(g, ox_item_get(block, slot + i)))
            break;
    }
}

static ox_step read_index(struct ox_seq *q)
{
    struct reading *g = read_of(q);
    if (q->err == OX_E_NOT_FOUND)
        return read_corrupt(g, "the segment file is missing", 0);
    if (q->err != OX_OK)
        return read_end(g, q->err);
    if (g->item_count > 0)
        return OX_GOTO(q, read_data);
    g->block_index = (uint32_t)((g->extent.pos + (uint64_t)(g->entry - g->extent.first)) / OX_ITEMS_PER_BLOCK);
    const uint8_t *cached = ox_index_cache_find(&g->store->cache, g->seg->number, g->block_index);
    if (cached) {
        read_take_items(g, cached);
        return OX_GOTO(q, read_data);
    }
    g->block = ox_malloc(OX_SEG_BLOCK);
    uint64_t offset = g->seg->used + OX_SEG_BLOCK * (1 + (uint64_t)g->block_index);
    ox_seq_bind(q, &g->op, "read index block");
    ox_file_read(g->seg->file, &g->op, g->block, OX_SEG_BLOCK, offset, &g->got);
    return OX_WAIT(q, read_index_got);
}

static ox_step read_index_got(struct ox_seq *q)
{
    struct reading *g = read_of(q);
    if (q->err != OX_OK)
        return read_end(g, q->err);
    if (g->got != OX_SEG_BLOCK || ox_index_block_check(g->block, g->store->salt, g->seg->number, g->block_index) != OX_OK)
        return OX_GOTO(q, read_rebuild);
    ox_index_cache_put(&g->store->cache, g->seg->number, g->block_index, g->block);
    read_take_items(g, g->block);
    ox_free(g->block);
    g->block = NULL;
    return OX_GOTO(q, read_data);
}

// The index block is damaged: the entries are found by scanning the segment's batches. Slow, and only until compaction or a copy replaces the segment.
static ox_step read_rebuild(struct ox_seq *q)
{
    struct reading *g = read_of(q);
    ox_free(g->block);
    ox_warn(g->store->log, "store.index.corrupt", "segment=%llu block=%u", (unsigned long long)g->seg->number, g->block_index);
    g->block = ox_malloc(g->seg->used);
    ox_seq_bind(q, &g->op, "read segment");
    ox_file_read(g->seg->file, &g->op, g->block, g->seg->used, 0, &g->got);
    return OX_WAIT(q, read_rebuilt);
}

static ox_step read_rebuilt(struct ox_seq *q)
{
    struct reading *g = read_of(q);
    struct ox_scan scan;
    if (q->err != OX_OK)
        return read_end(g, q->err);
    ox_scan_segment(g->block, g->got, g->store->salt, g->seg->number, g->seg->used, &scan);
    int64_t want = g->entry;
    for (size_t i = 0; i < scan.record_count; i++) {
        const struct ox_segment_record *r = &scan.records[i].record;
        bool entry = r->type == OX_REC_ENTRY || r->type == OX_REC_MOVED;
        if (entry && r->ledger == g->sl->id && r->entry == want && want <= g->last) {
            if (!read_take_item(g, (struct ox_item){scan.records[i].offset, r->length}))
                break;
            want++;
        }
    }
    ox_scan_fini(&scan);
    ox_free(g->block);
    g->block = NULL;
    return g->item_count > 0 ? OX_GOTO(q, read_data) : read_corrupt(g, "index and record are damaged", 0);
}

static ox_step read_data(struct ox_seq *q)
{
    struct reading *g = read_of(q);
    struct ox_item first = g->items[0], last = g->items[g->item_count - 1];
    uint64_t end = (uint64_t)last.offset + OX_RECORD_HEADER_BYTES + last.length;
    if (end > g->seg->file_bytes)
        return read_corrupt(g, "the index points beyond the file", first.offset);
    g->want = (size_t)(end - first.offset);
    g->data = ox_buf_new(g->want, &g->into);
    ox_seq_bind(q, &g->op, "read entries");
    ox_file_read(g->seg->file, &g->op, g->into, g->want, first.offset, &g->got);
    return OX_WAIT(q, read_data_got);
}

static void read_give(struct reading *g, size_t from, size_t len)
{
    struct ox_read *r = g->read;
    if (r->count == g->cap) {
        g->cap = g->cap ? g->cap * 2 : 8;
        r->entries = ox_realloc(r->entries, g->cap, sizeof *r->entries);
    }
    r->entries[r->count++] = ox_buf_sub(g->data, from, len);
    g->bytes += len;
    g->entry++;
    g->store->m_reads.value++;
}

// Checks one record of the stretch and gives it. False: damaged.
static bool read_check(struct reading *g, struct ox_item item)
{
    struct ox_segment_record rec;
    size_t at = item.offset - g->items[0].offset, avail = OX_RECORD_HEADER_BYTES + (size_t)item.length;
    if (at + avail > g->got || ox_segment_record_decode(g->into + at, avail, g->store->salt, g->seg->number, &rec) != OX_OK)
        return false;
    bool named = rec.ledger == g->sl->id && rec.entry == g->entry && rec.length == item.length &&
                 (rec.type == OX_REC_ENTRY || rec.type == OX_REC_MOVED);
    if (named)
        read_give(g, at + OX_RECORD_HEADER_BYTES, rec.length);
    return named;
}

static ox_step read_data_got(struct ox_seq *q)
{
    struct reading *g = read_of(q);
    if (q->err != OX_OK)
        return read_end(g, q->err);
    for (uint32_t i = 0; i < g->item_count && read_wants_more(g); i++) {
        if (!read_check(g, g->items[i]))
            return read_corrupt(g, "the record's checksum or name is wrong", g->items[i].offset);
    }
    ox_buf_unref(&g->data);
    struct segment *seg = g->seg;
    g->seg = NULL;
    segment_unpin(g->store, seg);
    return OX_GOTO(q, read_plan);
}

static void read_done(struct ox_seq *q, enum ox_err err)
{
    struct reading *g = read_of(q);
    struct store *s = g->store;
    struct handle *h = g->handle;
    struct sledger *sl = g->sl;
    ox_buf_unref(&g->data);
    ox_free(g->block);
    if (g->seg)
        segment_unpin(s, g->seg);
    if (err != OX_OK)
        ox_read_fini(g->read);
    struct ox_op *op = &g->read->op;
    ox_free(g);
    ox_op_finish(op, err);
    sledger_unref(sl);
    if (h)
        handle_unpend(h);
    s->place.busy--;
    store_woken(s);
}
