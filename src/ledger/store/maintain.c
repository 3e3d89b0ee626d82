// maintain.c - one background job at a time: tell the table of deletes, seal the oldest full segment, give an emptied one away.
#include "base/assert.h"
#include "ledger/store/store_int.h"

// The job under way.
struct maintain_work {
    struct tail *tail;   // sealing
    struct segment *seg; // sealing or freeing
    struct ox_table_changes changes;
    struct ox_table_segment row;
    struct ox_run *runs;
    const struct ox_item **items;
    uint8_t *footer;
    struct iovec iov;
    struct ox_table_row *rows;
    char *from, *to;
};

static ox_step maintain_pick(struct ox_seq *q);
static ox_step maintain_seal_footer(struct ox_seq *q);
static ox_step maintain_seal_commit(struct ox_seq *q);
static ox_step maintain_sealed(struct ox_seq *q);
static ox_step maintain_deleted(struct ox_seq *q);
static ox_step maintain_free_unlink(struct ox_seq *q);
static ox_step maintain_free_sync(struct ox_seq *q);
static ox_step maintain_freed(struct ox_seq *q);
static void maintain_done(struct ox_seq *q, enum ox_err err);

static struct store *maintain_store(struct ox_seq *q)
{
    return CONTAINER_OF(q, struct store, maintain);
}

static void maintain_retry(struct ox_timer *t)
{
    store_woken(CONTAINER_OF(t, struct store, maintain_timer));
}

void maintain_init(struct store *s)
{
    ox_timer_init(&s->maintain_timer, s->loop, maintain_retry);
}

static struct tail *maintain_sealable(struct store *s)
{
    struct ox_link *first = ox_list_first(&s->tails);
    struct tail *t = first ? CONTAINER_OF(first, struct tail, link) : NULL;
    bool sealable = t && t->seg->state == SEGMENT_SEALING && t->writes == 0 && !t->filling;
    return sealable && !s->failed ? t : NULL; // a segment with a hole is for the next start to judge
}

// An emptied segment may go when nothing reads it and no delete that emptied it is still to be told.
static struct segment *maintain_empty(struct store *s)
{
    for (size_t i = 0; i < s->seg_count; i++) {
        struct segment *seg = s->segs[i];
        if (seg->state == SEGMENT_SEALED && seg->live_entries == 0 && seg->pins == 0)
            return seg;
    }
    return NULL;
}

static bool maintain_has_work(struct store *s)
{
    return s->delete_count > 0 || maintain_sealable(s) || maintain_empty(s);
}

void maintain_kick(struct store *s)
{
    if (!s->open || s->maintain.active || s->loop->dead || ox_timer_started(&s->maintain_timer) || !maintain_has_work(s))
        return;
    s->work = ox_malloc(sizeof *s->work);
    ox_seq_start(&s->maintain, s->loop, "maintain store", maintain_pick, maintain_done);
}

void maintain_delete(struct store *s, int64_t ledger)
{
    if (s->delete_count == s->delete_cap) {
        s->delete_cap = s->delete_cap ? s->delete_cap * 2 : 16;
        s->deletes = ox_realloc(s->deletes, s->delete_cap, sizeof *s->deletes);
    }
    s->deletes[s->delete_count++] = ledger;
}

bool maintain_idle(const struct store *s)
{
    return !s->maintain.active;
}

static void maintain_meta(struct store *s, struct ox_table_meta *meta)
{
    *meta = s->meta;
    meta->id_ceiling = s->id_ceiling;
    meta->id_max = s->id_max;
}

// Deletes first: a row that a later segment makes anew must not be lost to an older delete.
static ox_step maintain_deletes(struct ox_seq *q)
{
    struct store *s = maintain_store(q);
    struct maintain_work *w = s->work;
    w->changes.row_count = s->delete_count;
    w->rows = ox_calloc(s->delete_count, sizeof *w->rows);
    for (size_t i = 0; i < s->delete_count; i++)
        w->rows[i] = (struct ox_table_row){.id = s->deletes[i], .deleted = true};
    s->delete_count = 0;
    w->changes.rows = w->rows;
    maintain_meta(s, &w->changes.meta);
    ox_seq_bind(q, &s->maintain_op, "tell deletes");
    OX_CRASHPOINT(s->loop, "store.delete.before_table");
    ox_table_commit(s->table, &s->maintain_op, &w->changes);
    return OX_WAIT(q, maintain_deleted);
}

static ox_step maintain_free(struct ox_seq *q)
{
    struct store *s = maintain_store(q);
    struct maintain_work *w = s->work;
    segment_set_state(s, w->seg, SEGMENT_FREEING);
    maintain_meta(s, &w->changes.meta);
    w->changes.drop = w->seg->number;
    ox_seq_bind(q, &s->maintain_op, "forget segment");
    ox_table_commit(s->table, &s->maintain_op, &w->changes);
    return OX_WAIT(q, maintain_free_unlink);
}

static ox_step maintain_seal(struct ox_seq *q)
{
    struct store *s = maintain_store(q);
    struct maintain_work *w = s->work;
    struct ox_footer_header h;
    size_t count;
    w->runs = ox_index_runs(&w->tail->index, &count, &w->items);
    w->changes.run_count = count;
    w->footer = ox_index_footer(w->runs, w->items, count, s->salt, w->seg->number, (uint32_t)w->tail->planned, &h);
    w->row = (struct ox_table_segment){.number = w->seg->number, .used = h.offset, .items = h.items, .runs = h.runs};
    w->row.file_bytes = OX_MAX(w->seg->file_bytes, (uint64_t)h.offset + h.bytes);
    w->iov = (struct iovec){w->footer, h.bytes};
    OX_CRASHPOINT(s->loop, "store.seal.before_footer");
    segment_pin(s, w->seg);
    ox_seq_bind(q, &s->maintain_op, "write footer");
    ox_file_write(w->seg->file, &s->maintain_op, &w->iov, 1, h.offset, true);
    return OX_WAIT(q, maintain_seal_footer);
}

static ox_step maintain_pick(struct ox_seq *q)
{
    struct store *s = maintain_store(q);
    struct maintain_work *w = s->work;
    if (s->delete_count > 0)
        return OX_GOTO(q, maintain_deletes);
    w->tail = maintain_sealable(s);
    w->seg = w->tail ? w->tail->seg : maintain_empty(s);
    if (w->tail)
        return OX_GOTO(q, maintain_seal);
    return w->seg ? OX_GOTO(q, maintain_free) : OX_FINISH(q, OX_OK);
}

// The rows of the tail, copied: the loop may change them while the table's thread reads.
static void maintain_copy_rows(struct maintain_work *w)
{
    size_t n = 0;
    w->rows = ox_calloc(ox_map_count(&w->tail->rows) + 1, sizeof *w->rows);
    OX_MAP_EACH(&w->tail->rows, node) {
        const struct ox_table_row *row = &CONTAINER_OF(node, struct tail_row, node)->row;
        w->rows[n] = *row;
        w->rows[n].custom = (struct ox_kv){0};
        if (row->created)
            ox_kv_copy(&w->rows[n].custom, &row->custom);
        n++;
    }
    w->changes.rows = w->rows;
    w->changes.row_count = n;
}

static ox_step maintain_seal_footer(struct ox_seq *q)
{
    struct store *s = maintain_store(q);
    struct maintain_work *w = s->work;
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    OX_CRASHPOINT(s->loop, "store.seal.footer_written");
    // Deletes that came meanwhile are told with or after this commit; runs of deleted ledgers die there.
    maintain_copy_rows(w);
    maintain_meta(s, &w->changes.meta);
    w->changes.meta.covered = w->seg->number + 1;
    w->changes.meta.sequence = OX_MAX(w->changes.meta.sequence, w->tail->sequence);
    w->changes.segment = &w->row;
    w->changes.runs = w->runs;
    w->changes.items = w->items;
    ox_seq_bind(q, &s->maintain_op, "tell the table");
    ox_table_commit(s->table, &s->maintain_op, &w->changes);
    return OX_WAIT(q, maintain_seal_commit);
}

static void maintain_take_live(struct store *s, const struct ox_table_changes *c)
{
    for (size_t i = 0; i < c->live_count; i++) {
        struct segment *seg = segment_find(s, c->live[i].segment);
        if (seg) {
            seg->live = c->live[i].live;
            seg->live_entries = c->live[i].live_entries;
        }
    }
    s->extent_epoch++;
}

static ox_step maintain_seal_commit(struct ox_seq *q)
{
    struct store *s = maintain_store(q);
    struct maintain_work *w = s->work;
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    OX_CRASHPOINT(s->loop, "store.seal.committed");
    s->meta.covered = w->changes.meta.covered;
    s->meta.sequence = w->changes.meta.sequence;
    w->seg->used = w->row.used;
    w->seg->items = w->row.items;
    w->seg->runs = w->row.runs;
    w->seg->file_bytes = w->row.file_bytes;
    maintain_take_live(s, &w->changes);
    segment_set_state(s, w->seg, SEGMENT_SEALED);
    ox_list_remove(&s->tails, &w->tail->link);
    tail_free(w->tail);
    w->tail = NULL;
    s->m_sealed.value++;
    ox_debug(s->log, "store.segment.sealed", "segment=%llu used=%u live=%llu", (unsigned long long)w->seg->number,
             w->seg->used, (unsigned long long)w->seg->live);
    return OX_GOTO(q, maintain_sealed);
}

static ox_step maintain_sealed(struct ox_seq *q)
{
    struct store *s = maintain_store(q);
    struct segment *seg = s->work->seg;
    segment_unpin(s, seg);
    s->work->seg = NULL;
    return OX_FINISH(q, OX_OK);
}

static ox_step maintain_deleted(struct ox_seq *q)
{
    struct store *s = maintain_store(q);
    if (q->err != OX_OK) {
        for (size_t i = 0; i < s->work->changes.row_count; i++)
            maintain_delete(s, s->work->rows[i].id);
        return OX_FINISH(q, q->err);
    }
    OX_CRASHPOINT(s->loop, "store.delete.told");
    maintain_take_live(s, &s->work->changes);
    return OX_FINISH(q, OX_OK);
}

// The table has forgotten the segment: its file becomes a spare, or goes.
static ox_step maintain_free_unlink(struct ox_seq *q)
{
    struct store *s = maintain_store(q);
    struct maintain_work *w = s->work;
    struct segment *seg = w->seg;
    if (q->err != OX_OK) {
        seg->state = SEGMENT_SEALED; // not forgotten: as before
        return OX_FINISH(q, q->err);
    }
    OX_CRASHPOINT(s->loop, "store.recycle.forgotten");
    bool missing = seg->missing, whole = seg->file_bytes >= s->cfg.segment_bytes;
    w->from = segment_path(s, seg->number);
    w->to = whole && s->spare_count < STORE_SPARES_MAX ? segment_spare_path(s, seg->number) : NULL;
    segment_free(s, seg);
    w->seg = NULL;
    if (missing)
        return OX_FINISH(q, OX_OK);
    ox_seq_bind(q, &s->maintain_op, "give file away");
    if (w->to)
        ox_fs_rename(s->fs, &s->maintain_op, w->from, w->to);
    else
        ox_fs_unlink(s->fs, &s->maintain_op, w->from);
    return OX_WAIT(q, maintain_free_sync);
}

static ox_step maintain_free_sync(struct ox_seq *q)
{
    struct store *s = maintain_store(q);
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    OX_CRASHPOINT(s->loop, "store.recycle.renamed");
    ox_seq_bind(q, &s->maintain_op, "sync directory");
    ox_fs_sync_dir(s->fs, &s->maintain_op, s->dir);
    return OX_WAIT(q, maintain_freed);
}

static ox_step maintain_freed(struct ox_seq *q)
{
    struct store *s = maintain_store(q);
    struct maintain_work *w = s->work;
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    OX_CRASHPOINT(s->loop, "store.recycle.done");
    s->m_recycled.value++;
    if (w->to) {
        s->spares = ox_realloc(s->spares, s->spare_count + 1, sizeof(char *));
        s->spares[s->spare_count++] = w->to;
        w->to = NULL;
    }
    if (s->full) {
        ox_timer_stop(&s->prepare_timer);
        prepare_want(s);
    }
    return OX_FINISH(q, OX_OK);
}

static void maintain_work_free(struct maintain_work *w)
{
    for (size_t i = 0; i < w->changes.row_count; i++)
        ox_table_row_fini(&w->rows[i]);
    ox_free(w->rows);
    ox_free(w->changes.live);
    ox_free(w->runs);
    ox_free(w->items);
    ox_free(w->footer);
    ox_free(w->from);
    ox_free(w->to);
    ox_free(w);
}

static void maintain_done(struct ox_seq *q, enum ox_err err)
{
    struct store *s = maintain_store(q);
    struct maintain_work *w = s->work;
    if (w->seg && w->tail)
        w->seg->pins--;
    maintain_work_free(w);
    s->work = NULL;
    s->stuck = err != OX_OK;
    if (err != OX_OK && !s->loop->dead) {
        ox_warn(s->log, "store.maintenance.failed", "place=%s step=%s error=%s", s->place.name, q->step, ox_err_name(err));
        ox_timer_start(&s->maintain_timer, STORE_RETRY_NS);
    }
    store_woken(s);
}

void maintain_fini(struct store *s)
{
    OX_ASSERT(!s->maintain.active);
    ox_timer_stop(&s->maintain_timer);
    ox_free(s->deletes);
}
