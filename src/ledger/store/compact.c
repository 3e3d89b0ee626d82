// compact.c - copies what lives in a sparse segment to the journal, at a limited rate; the old segment goes when the table has the new places.
#include "base/assert.h"
#include "ledger/store/store_int.h"

#define COMPACT_CHUNK (256u * 1024u)

struct compaction {
    struct ox_seq seq;
    struct ox_op op;
    struct store *store;
    struct segment *seg;
    uint8_t *blocks; // run blocks of the footer
    size_t got;
    uint32_t run_index;
    struct ox_run run;
    int64_t entry; // next of the run
    struct ox_table_row row;
    bool found;
    struct sledger *sl;
    struct ox_table_extent extent;
    struct ox_read read;
    struct jrecord *moves;
    size_t moves_left;
    enum ox_err move_err;
    uint64_t bytes;
    struct ox_timer timer;
    bool timer_waits;
};

static ox_step compact_opened(struct ox_seq *q);
static ox_step compact_runs_read(struct ox_seq *q);
static ox_step compact_next_run(struct ox_seq *q);
static ox_step compact_ledger_found(struct ox_seq *q);
static ox_step compact_next_extent(struct ox_seq *q);
static ox_step compact_extent_found(struct ox_seq *q);
static ox_step compact_entries_read(struct ox_seq *q);
static ox_step compact_moved(struct ox_seq *q);
static ox_step compact_paced(struct ox_seq *q);
static void compact_done(struct ox_seq *q, enum ox_err err);

static struct compaction *compact_of(struct ox_seq *q)
{
    return CONTAINER_OF(q, struct compaction, seq);
}

static uint32_t compact_item_blocks(const struct segment *seg)
{
    return (seg->items + OX_ITEMS_PER_BLOCK - 1) / OX_ITEMS_PER_BLOCK;
}

static uint32_t compact_run_blocks(const struct segment *seg)
{
    return (seg->runs + OX_RUNS_PER_BLOCK - 1) / OX_RUNS_PER_BLOCK;
}

static bool compact_sparse(const struct store *s, const struct segment *seg)
{
    uint64_t live = seg->live + seg->live_entries * OX_RECORD_HEADER_BYTES;
    return seg->state == SEGMENT_SEALED && !seg->keep && !seg->moved && !seg->missing && seg->live_entries > 0 &&
           live * 100 < seg->file_bytes * s->cfg.compaction_percent;
}

static void compact_timer(struct ox_timer *t)
{
    struct compaction *c = CONTAINER_OF(t, struct compaction, timer);
    if (c->timer_waits) {
        c->timer_waits = false;
        ox_seq_resume(&c->seq, OX_OK);
        return;
    }
    struct store *s = c->store;
    s->compaction = NULL; // the pause after a failure is over
    ox_free(c);
    compact_kick(s);
}

static ox_step compact_start(struct ox_seq *q)
{
    struct compaction *c = compact_of(q);
    ox_seq_bind(q, &c->op, "open segment");
    segment_open(c->store, c->seg, &c->op);
    return OX_WAIT(q, compact_opened);
}

void compact_kick(struct store *s)
{
    if (s->compaction || !s->open || s->closing || s->failed || s->full || s->loop->dead || s->cfg.compaction_percent == 0)
        return;
    for (size_t i = 0; i < s->seg_count; i++) {
        if (!compact_sparse(s, s->segs[i]))
            continue;
        struct compaction *c = ox_malloc(sizeof *c);
        s->compaction = c;
        c->store = s;
        c->seg = s->segs[i];
        segment_pin(s, c->seg);
        ox_timer_init(&c->timer, s->loop, compact_timer);
        ox_seq_start(&c->seq, s->loop, "compact segment", compact_start, compact_done);
        return;
    }
}

bool compact_idle(const struct store *s)
{
    return !s->compaction || !s->compaction->seq.active;
}

void compact_fini(struct store *s)
{
    OX_ASSERT(compact_idle(s));
    if (s->compaction)
        ox_timer_stop(&s->compaction->timer);
    ox_free(s->compaction);
    s->compaction = NULL;
}

static ox_step compact_opened(struct ox_seq *q)
{
    struct compaction *c = compact_of(q);
    struct segment *seg = c->seg;
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    size_t len = (size_t)compact_run_blocks(seg) * OX_SEG_BLOCK;
    uint64_t offset = seg->used + OX_SEG_BLOCK * (1 + (uint64_t)compact_item_blocks(seg));
    c->blocks = ox_malloc(len);
    ox_seq_bind(q, &c->op, "read runs");
    ox_file_read(seg->file, &c->op, c->blocks, len, offset, &c->got);
    return OX_WAIT(q, compact_runs_read);
}

static ox_step compact_runs_read(struct ox_seq *q)
{
    struct compaction *c = compact_of(q);
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    uint32_t blocks = compact_run_blocks(c->seg), first = compact_item_blocks(c->seg);
    bool good = c->got == (size_t)blocks * OX_SEG_BLOCK;
    for (uint32_t i = 0; i < blocks && good; i++)
        good = ox_index_block_check(c->blocks + (size_t)i * OX_SEG_BLOCK, c->store->salt, c->seg->number, first + i) == OX_OK;
    if (good)
        return OX_GOTO(q, compact_next_run);
    c->seg->keep = true;
    return OX_FINISH(q, OX_E_CORRUPT);
}

static ox_step compact_next_run(struct ox_seq *q)
{
    struct compaction *c = compact_of(q);
    if (c->sl)
        sledger_unref(c->sl);
    c->sl = NULL;
    ox_table_row_fini(&c->row);
    if (c->store->closing)
        return OX_FINISH(q, OX_E_SHUTDOWN);
    if (c->run_index == c->seg->runs) {
        c->seg->moved = true;
        OX_CRASHPOINT(q->loop, "store.compact.done");
        return OX_FINISH(q, OX_OK);
    }
    c->run = ox_run_get(c->blocks + (size_t)(c->run_index / OX_RUNS_PER_BLOCK) * OX_SEG_BLOCK,
                        c->run_index % OX_RUNS_PER_BLOCK);
    c->run_index++;
    c->entry = c->run.first;
    ox_seq_bind(q, &c->op, "find ledger");
    ledgers_find(c->store, &c->op, c->run.ledger, &c->row, &c->found);
    return OX_WAIT(q, compact_ledger_found);
}

static ox_step compact_ledger_found(struct ox_seq *q)
{
    struct compaction *c = compact_of(q);
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    if (!c->found)
        return OX_GOTO(q, compact_next_run);
    c->sl = sledger_get(c->store, &c->row);
    return OX_GOTO(q, compact_next_extent);
}

static int64_t compact_run_last(const struct compaction *c)
{
    return c->run.first + c->run.count - 1;
}

static ox_step compact_next_extent(struct ox_seq *q)
{
    struct compaction *c = compact_of(q);
    if (c->store->closing)
        return OX_FINISH(q, OX_E_SHUTDOWN);
    if (c->entry > compact_run_last(c))
        return OX_GOTO(q, compact_next_run);
    ox_seq_bind(q, &c->op, "find extent");
    ox_table_extent(c->store->table, &c->op, c->run.ledger, c->entry, &c->extent);
    return OX_WAIT(q, compact_extent_found);
}

static ox_step compact_extent_found(struct ox_seq *q)
{
    struct compaction *c = compact_of(q);
    if (q->err == OX_E_NO_ENTRY)
        return OX_GOTO(q, compact_next_run);
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    c->entry = OX_MAX(c->entry, c->extent.first);
    if (c->entry > compact_run_last(c))
        return OX_GOTO(q, compact_next_run);
    if (c->extent.segment != c->seg->number) {
        c->entry = c->extent.last + 1;
        return OX_GOTO(q, compact_next_extent);
    }
    ox_read_fini(&c->read);
    c->read =
        (struct ox_read){.first = c->entry, .last = OX_MIN(c->extent.last, compact_run_last(c)), .bytes_max = COMPACT_CHUNK};
    ox_seq_bind(q, &c->read.op, "read entries");
    ox_op_begin(&c->read.op);
    read_start(c->store, c->sl, NULL, &c->read, c->read.last);
    return OX_WAIT(q, compact_entries_read);
}

static void compact_move_done(struct jrecord *r, enum ox_err err)
{
    struct compaction *c = r->owner;
    if (err != OX_OK)
        c->move_err = err;
    if (--c->moves_left == 0)
        ox_seq_resume(&c->seq, c->move_err);
}

static ox_step compact_entries_read(struct ox_seq *q)
{
    struct compaction *c = compact_of(q);
    if (q->err == OX_E_NO_LEDGER || c->sl->deleted)
        return OX_GOTO(q, compact_next_run);
    if (q->err == OX_E_CORRUPT)
        c->seg->keep = true; // damage stays where it is, to be reported, not dropped
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    if (c->store->failed || c->store->closing)
        return OX_FINISH(q, OX_E_SHUTDOWN);
    c->moves = ox_realloc(c->moves, c->read.count, sizeof *c->moves);
    c->moves_left = c->read.count;
    c->move_err = OX_OK;
    c->bytes = 0;
    OX_CRASHPOINT(q->loop, "store.compact.before_move");
    for (size_t i = 0; i < c->read.count; i++) {
        c->bytes += c->read.entries[i].len + OX_RECORD_HEADER_BYTES;
        c->moves[i] = (struct jrecord){
            .type = OX_REC_MOVED,
            .ledger = c->run.ledger,
            .entry = c->entry + (int64_t)i,
            .payload = c->read.entries[i],
            .done = compact_move_done,
            .owner = c,
        };
    }
    for (size_t i = 0, n = c->read.count; i < n; i++)
        journal_record(c->store, &c->moves[i]);
    return OX_WAIT(q, compact_moved);
}

static ox_step compact_moved(struct ox_seq *q)
{
    struct compaction *c = compact_of(q);
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    OX_CRASHPOINT(q->loop, "store.compact.moved");
    c->store->m_compacted.value += (int64_t)c->bytes;
    c->entry += (int64_t)c->read.count;
    c->timer_waits = true;
    ox_timer_start(&c->timer, c->bytes * OX_SEC / OX_MAX(c->store->cfg.compaction_bytes_per_s, UINT64_C(1)));
    return OX_WAIT(q, compact_paced);
}

static ox_step compact_paced(struct ox_seq *q)
{
    return OX_GOTO(q, compact_next_extent);
}

static void compact_done(struct ox_seq *q, enum ox_err err)
{
    struct compaction *c = compact_of(q);
    struct store *s = c->store;
    if (c->sl)
        sledger_unref(c->sl);
    ox_table_row_fini(&c->row);
    ox_read_fini(&c->read);
    ox_free(c->moves);
    ox_free(c->blocks);
    struct segment *seg = c->seg;
    if (err != OX_OK && !s->loop->dead && !s->closing) {
        ox_warn(s->log, "store.compaction.failed", "segment=%llu error=%s", (unsigned long long)seg->number,
                ox_err_name(err));
        ox_timer_start(&c->timer, STORE_RETRY_NS);
    } else {
        s->compaction = NULL;
        ox_free(c);
    }
    segment_unpin(s, seg);
    store_woken(s);
}
