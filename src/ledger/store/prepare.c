// prepare.c - makes the next segment ready before the current one is full: an emptied file is taken again, or a new one is filled with zeros in small steps.
//
// Order: file, first zeros, header (synced), rename to its number, directory synced; from then on it may be used while the rest is filled ahead of the journal.
#include "base/assert.h"
#include "ledger/store/store_int.h"

static ox_step prepare_space(struct ox_seq *q);
static ox_step prepare_spaced(struct ox_seq *q);
static ox_step prepare_open(struct ox_seq *q);
static ox_step prepare_opened(struct ox_seq *q);
static ox_step prepare_zeroed_first(struct ox_seq *q);
static ox_step prepare_header(struct ox_seq *q);
static ox_step prepare_headed(struct ox_seq *q);
static ox_step prepare_renamed(struct ox_seq *q);
static ox_step prepare_listed(struct ox_seq *q);
static ox_step prepare_ready(struct ox_seq *q);
static ox_step prepare_fill(struct ox_seq *q);
static ox_step prepare_filled(struct ox_seq *q);
static ox_step prepare_synced(struct ox_seq *q);
static void prepare_done(struct ox_seq *q, enum ox_err err);

static struct store *prepare_store(struct ox_seq *q)
{
    return CONTAINER_OF(q, struct store, prepare);
}

static void prepare_retry(struct ox_timer *t)
{
    struct store *s = CONTAINER_OF(t, struct store, prepare_timer);
    prepare_want(s);
    store_woken(s);
}

void prepare_init(struct store *s)
{
    ox_timer_init(&s->prepare_timer, s->loop, prepare_retry);
}

bool prepare_active(const struct store *s)
{
    return s->prepare.active;
}

void prepare_want(struct store *s)
{
    if (s->next || s->prepare.active || s->closing || s->failed || s->loop->dead || ox_timer_started(&s->prepare_timer))
        return;
    ox_seq_start(&s->prepare, s->loop, "prepare segment", prepare_space, prepare_done);
}

static ox_step prepare_space(struct ox_seq *q)
{
    struct store *s = prepare_store(q);
    if (s->spare_count > 0)
        return OX_GOTO(q, prepare_open);
    ox_seq_bind(q, &s->prepare_op, "free space");
    ox_fs_space(s->fs, &s->prepare_op, s->dir, &s->space_new);
    return OX_WAIT(q, prepare_spaced);
}

static ox_step prepare_spaced(struct ox_seq *q)
{
    struct store *s = prepare_store(q);
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    s->space = s->space_new;
    uint64_t reserve = s->current_needed ? 0 : s->cfg.reserve_bytes;
    if (s->space.available < reserve + s->cfg.segment_bytes)
        return OX_FINISH(q, OX_E_NO_SPACE);
    return OX_GOTO(q, prepare_open);
}

static ox_step prepare_open(struct ox_seq *q)
{
    struct store *s = prepare_store(q);
    struct segment *seg = segment_new(s, s->last_number + 1, SEGMENT_READY);
    s->preparing = tail_new(seg);
    segment_pin(s, seg);
    s->prepare_fresh = s->spare_count == 0;
    s->prepare_path = s->prepare_fresh ? segment_spare_path(s, seg->number) : s->spares[--s->spare_count];
    ox_seq_bind(q, &s->prepare_op, "open file");
    ox_file_open(s->fs, &s->prepare_op, OX_LANE_POOL, s->prepare_path, OX_OPEN_WRITE | OX_OPEN_CREATE, &seg->file, &s->prepare_size);
    return OX_WAIT(q, prepare_opened);
}

static ox_step prepare_opened(struct ox_seq *q)
{
    struct store *s = prepare_store(q);
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    s->open_files++;
    OX_CRASHPOINT(s->loop, "store.segment.created");
    struct tail *t = s->preparing;
    bool whole = s->prepare_size >= s->cfg.segment_bytes;
    t->capacity = s->cfg.segment_bytes;
    t->zeroed = whole ? t->capacity : OX_MIN(t->capacity, STORE_ZERO_STEP);
    t->filling = t->zeroed < t->capacity;
    t->seg->file_bytes = OX_MAX(s->prepare_size, t->capacity);
    if (whole)
        return OX_GOTO(q, prepare_header);
    ox_seq_bind(q, &s->prepare_op, "first zeros");
    ox_file_zero(t->seg->file, &s->prepare_op, 0, t->zeroed);
    return OX_WAIT(q, prepare_zeroed_first);
}

static ox_step prepare_zeroed_first(struct ox_seq *q)
{
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    OX_CRASHPOINT(q->loop, "store.segment.zeroed");
    return OX_GOTO(q, prepare_header);
}

static ox_step prepare_header(struct ox_seq *q)
{
    struct store *s = prepare_store(q);
    struct segment *seg = s->preparing->seg;
    struct ox_segment_header h = {.number = seg->number, .file_bytes = seg->file_bytes, .made_ms = ox_wall_ms(s->loop)};
    for (size_t i = 0; i < OX_IDENTITY_BYTES; i++)
        h.identity[i] = s->meta.identity[i];
    s->prepare_block = ox_malloc(OX_SEG_BLOCK);
    ox_segment_header_encode(s->prepare_block, &h);
    s->prepare_iov = (struct iovec){s->prepare_block, OX_SEG_BLOCK};
    ox_seq_bind(q, &s->prepare_op, "write header");
    ox_file_write(seg->file, &s->prepare_op, &s->prepare_iov, 1, 0, true);
    return OX_WAIT(q, prepare_headed);
}

static ox_step prepare_headed(struct ox_seq *q)
{
    struct store *s = prepare_store(q);
    ox_free(s->prepare_block);
    s->prepare_block = NULL;
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    OX_CRASHPOINT(s->loop, "store.segment.header_written");
    OX_CLEANUP(ox_free_ptr) char *to = segment_path(s, s->preparing->seg->number);
    ox_seq_bind(q, &s->prepare_op, "rename file");
    ox_fs_rename(s->fs, &s->prepare_op, s->prepare_path, to);
    return OX_WAIT(q, prepare_renamed);
}

static ox_step prepare_renamed(struct ox_seq *q)
{
    struct store *s = prepare_store(q);
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    OX_CRASHPOINT(s->loop, "store.segment.renamed");
    ox_seq_bind(q, &s->prepare_op, "sync directory");
    ox_fs_sync_dir(s->fs, &s->prepare_op, s->dir);
    return OX_WAIT(q, prepare_listed);
}

static ox_step prepare_listed(struct ox_seq *q)
{
    struct store *s = prepare_store(q);
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    OX_CRASHPOINT(s->loop, "store.segment.listed");
    OX_CLEANUP(ox_free_ptr) char *path = segment_path(s, s->preparing->seg->number);
    ox_seq_bind(q, &s->prepare_op, "open for the journal");
    ox_file_open(s->fs, &s->prepare_op, OX_LANE_JOURNAL, path, OX_OPEN_WRITE, &s->preparing->journal_file, &s->prepare_size);
    return OX_WAIT(q, prepare_ready);
}

// The segment may be used from here on; zero-filling stays ahead of the journal.
static ox_step prepare_ready(struct ox_seq *q)
{
    struct store *s = prepare_store(q);
    struct tail *t = s->preparing;
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    s->full = false;
    s->m_full.value = 0;
    s->next = t;
    store_woken(s);
    return OX_GOTO(q, prepare_fill);
}

static ox_step prepare_fill(struct ox_seq *q)
{
    struct store *s = prepare_store(q);
    struct tail *t = s->preparing;
    if (t->zeroed >= t->capacity || s->closing)
        return OX_FINISH(q, OX_OK);
    ox_seq_bind(q, &s->prepare_op, "zeros");
    ox_file_zero(t->seg->file, &s->prepare_op, t->zeroed, OX_MIN(t->capacity - t->zeroed, STORE_ZERO_STEP));
    return OX_WAIT(q, prepare_filled);
}

static ox_step prepare_filled(struct ox_seq *q)
{
    struct store *s = prepare_store(q);
    struct tail *t = s->preparing;
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    t->zeroed = OX_MIN(t->zeroed + STORE_ZERO_STEP, t->capacity);
    journal_pump(s);
    if (t->zeroed < t->capacity && t->zeroed % (8 * STORE_ZERO_STEP) != 0)
        return OX_GOTO(q, prepare_fill);
    ox_seq_bind(q, &s->prepare_op, "sync zeros");
    ox_file_sync(t->seg->file, &s->prepare_op);
    return OX_WAIT(q, prepare_synced);
}

static ox_step prepare_synced(struct ox_seq *q)
{
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    return OX_GOTO(q, prepare_fill);
}

// Before it was ready: the file is left as a spare name for the next start, and forgotten here.
static void prepare_drop(struct store *s)
{
    struct tail *t = s->preparing;
    t->filling = false;
    segment_unpin(s, t->seg);
    segment_free(s, t->seg);
    tail_free(t);
}

static void prepare_done(struct ox_seq *q, enum ox_err err)
{
    struct store *s = prepare_store(q);
    struct tail *t = s->preparing;
    bool ready = t && t->journal_file;
    s->preparing = NULL;
    ox_free(s->prepare_path);
    s->prepare_path = NULL;
    if (ready) {
        if (t->filling && t->zeroed < t->capacity)
            t->capacity = t->zeroed; // what was not filled is not used
        t->filling = false;
        segment_unpin(s, t->seg);
    } else if (t) {
        s->preparing = t;
        prepare_drop(s);
        s->preparing = NULL;
    }
    if (err != OX_OK && !s->loop->dead && !s->closing) {
        s->full = !s->next;
        s->m_full.value = s->full;
        ox_warn(s->log, "store.segment.not_made", "place=%s error=%s available=%llu reserve=%llu", s->place.name, ox_err_name(err),
                (unsigned long long)s->space.available, (unsigned long long)s->cfg.reserve_bytes);
        ox_timer_start(&s->prepare_timer, STORE_RETRY_NS);
    }
    store_woken(s);
}
