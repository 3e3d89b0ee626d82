// prepare.c - makes the next segment ready before the current one is full: an emptied file is taken again, or a new one is reserved and filled with zeros.
//
// Order: file, space, header (synced), rename to its number, directory synced; from then on it may be used. Zeros are written into the next segment, before
// its turn, because a sync behind a write into space that was only reserved has metadata to write as well; large batches gain nothing from them.
#include "base/assert.h"
#include "ledger/store/store_int.h"

static ox_step prepare_space(struct ox_seq *q);
static ox_step prepare_spaced(struct ox_seq *q);
static ox_step prepare_open(struct ox_seq *q);
static ox_step prepare_opened(struct ox_seq *q);
static ox_step prepare_reserved(struct ox_seq *q);
static ox_step prepare_header(struct ox_seq *q);
static ox_step prepare_headed(struct ox_seq *q);
static ox_step prepare_renamed(struct ox_seq *q);
static ox_step prepare_listed(struct ox_seq *q);
static ox_step prepare_ready(struct ox_seq *q);
static ox_step prepare_fill(struct ox_seq *q);
static ox_step prepare_pause(struct ox_seq *q);
static ox_step prepare_filled(struct ox_seq *q);
static ox_step prepare_synced(struct ox_seq *q);
static ox_step prepare_undo(struct ox_seq *q);
static ox_step prepare_undone(struct ox_seq *q);
static ox_step prepare_forgotten(struct ox_seq *q);
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

static void prepare_paused(struct ox_timer *t)
{
    ox_seq_resume(&CONTAINER_OF(t, struct store, fill_timer)->prepare, OX_OK);
}

void prepare_init(struct store *s)
{
    ox_timer_init(&s->fill_timer, s->loop, prepare_paused);
    ox_timer_init(&s->prepare_timer, s->loop, prepare_retry);
}

void prepare_hurry(struct store *s)
{
    if (!ox_timer_started(&s->fill_timer))
        return;
    ox_timer_stop(&s->fill_timer);
    ox_seq_resume(&s->prepare, OX_OK);
}

bool prepare_active(const struct store *s)
{
    return s->prepare.active;
}

void prepare_want(struct store *s)
{
    if (!s->next)
        prepare_hurry(s);
    if (s->next || s->prepare.active || s->closing || s->failed || s->loop->dead || ox_timer_started(&s->prepare_timer))
        return;
    ox_seq_start(&s->prepare, s->loop, "prepare segment", prepare_space, prepare_done);
}

static ox_step prepare_space(struct ox_seq *q)
{
    struct store *s = prepare_store(q);
    s->prepare_bytes = s->cfg.segment_bytes;
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
    if (s->space.available >= reserve + s->cfg.segment_bytes)
        return OX_GOTO(q, prepare_open);
    if (!s->current_needed)
        return OX_FINISH(q, OX_E_NO_SPACE);
    // A store that cannot start can never be emptied: a small first segment, with as much left for footers and the table.
    s->prepare_bytes = OX_MIN(s->space.available / 2, s->cfg.segment_bytes) / OX_SEG_BLOCK * OX_SEG_BLOCK;
    return s->prepare_bytes >= STORE_SMALL_BYTES ? OX_GOTO(q, prepare_open) : OX_FINISH(q, OX_E_NO_SPACE);
}

static ox_step prepare_open(struct ox_seq *q)
{
    struct store *s = prepare_store(q);
    struct segment *seg = segment_new(s, s->last_number + 1, SEGMENT_READY);
    s->preparing = tail_new(seg);
    segment_pin(s, seg);
    s->fill_step = STORE_ZERO_STEP;
    s->fill_batches = s->m_batches.value;
    s->fill_bytes = s->m_batch_bytes.value;
    s->prepare_fresh = s->spare_count == 0;
    s->prepare_path = s->prepare_fresh ? segment_spare_path(s, seg->number) : s->spares[--s->spare_count];
    ox_seq_bind(q, &s->prepare_op, "open file");
    ox_file_open(s->fs, &s->prepare_op, OX_LANE_POOL, s->prepare_path, OX_OPEN_WRITE | OX_OPEN_CREATE, &seg->file,
                 &s->prepare_size);
    return OX_WAIT(q, prepare_opened);
}

static ox_step prepare_opened(struct ox_seq *q)
{
    struct store *s = prepare_store(q);
    if (q->err != OX_OK)
        return prepare_undo(q);
    s->open_files++;
    OX_CRASHPOINT(s->loop, "store.segment.created");
    struct tail *t = s->preparing;
    bool whole = s->prepare_size >= s->prepare_bytes;
    t->capacity = s->prepare_bytes;
    t->zeroed = whole ? t->capacity : OX_SEG_BLOCK;
    t->filling = !whole;
    t->seg->file_bytes = OX_MAX(s->prepare_size, t->capacity);
    if (whole)
        return OX_GOTO(q, prepare_header);
    ox_seq_bind(q, &s->prepare_op, "reserve space");
    ox_file_reserve(t->seg->file, &s->prepare_op, t->capacity);
    return OX_WAIT(q, prepare_reserved);
}

// The file is no segment: a new one goes, an emptied one is a spare again, by the name that it has now.
static ox_step prepare_undo(struct ox_seq *q)
{
    struct store *s = prepare_store(q);
    s->prepare_err = q->err;
    if (s->loop->dead)
        return OX_FINISH(q, q->err);
    if (!s->prepare_fresh) {
        s->spares = ox_realloc(s->spares, s->spare_count + 1, sizeof(char *));
        s->spares[s->spare_count++] = s->prepare_path;
        s->prepare_path = NULL;
        return OX_FINISH(q, q->err);
    }
    ox_seq_bind(q, &s->prepare_op, "remove file");
    ox_fs_unlink(s->fs, &s->prepare_op, s->prepare_path);
    return OX_WAIT(q, prepare_undone);
}

// Its space is free for certain only when the removal is durable; the next attempt, a second later, may need it.
static ox_step prepare_undone(struct ox_seq *q)
{
    struct store *s = prepare_store(q);
    ox_seq_bind(q, &s->prepare_op, "sync directory");
    ox_fs_sync_dir(s->fs, &s->prepare_op, s->dir);
    return OX_WAIT(q, prepare_forgotten);
}

static ox_step prepare_forgotten(struct ox_seq *q)
{
    return OX_FINISH(q, prepare_store(q)->prepare_err);
}

static ox_step prepare_reserved(struct ox_seq *q)
{
    if (q->err != OX_OK)
        return prepare_undo(q);
    OX_CRASHPOINT(q->loop, "store.segment.reserved");
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
        return prepare_undo(q);
    OX_CRASHPOINT(s->loop, "store.segment.header_written");
    OX_CLEANUP(ox_free_ptr)
    char *to = segment_path(s, s->preparing->seg->number);
    ox_seq_bind(q, &s->prepare_op, "rename file");
    ox_fs_rename(s->fs, &s->prepare_op, s->prepare_path, to);
    return OX_WAIT(q, prepare_renamed);
}

static ox_step prepare_renamed(struct ox_seq *q)
{
    struct store *s = prepare_store(q);
    if (q->err != OX_OK)
        return prepare_undo(q);
    ox_free(s->prepare_path);
    s->prepare_path = segment_path(s, s->preparing->seg->number);
    OX_CRASHPOINT(s->loop, "store.segment.renamed");
    ox_seq_bind(q, &s->prepare_op, "sync directory");
    ox_fs_sync_dir(s->fs, &s->prepare_op, s->dir);
    return OX_WAIT(q, prepare_listed);
}

static ox_step prepare_listed(struct ox_seq *q)
{
    struct store *s = prepare_store(q);
    if (q->err != OX_OK)
        return prepare_undo(q);
    OX_CRASHPOINT(s->loop, "store.segment.listed");
    ox_seq_bind(q, &s->prepare_op, "open for the journal");
    ox_file_open(s->fs, &s->prepare_op, s->cfg.journal_lane, s->prepare_path, OX_OPEN_WRITE | OX_OPEN_DIRECT,
                 &s->preparing->journal_file, &s->prepare_size);
    return OX_WAIT(q, prepare_ready);
}

// The segment may be used from here on.
static ox_step prepare_ready(struct ox_seq *q)
{
    struct store *s = prepare_store(q);
    struct tail *t = s->preparing;
    if (q->err != OX_OK)
        return prepare_undo(q);
    s->full = false;
    s->m_full.value = 0;
    s->next = t;
    store_woken(s);
    return t->filling ? OX_GOTO(q, prepare_pause) : OX_FINISH(q, OX_OK);
}

// Nothing to fill any more, or the next segment's turn has come.
static bool prepare_is_filled(const struct store *s)
{
    const struct tail *t = s->preparing;
    enum segment_state state = t->seg->state;
    bool late = state == SEGMENT_SEALING || (state == SEGMENT_CURRENT && t->planned * STORE_NEXT_AT > t->capacity);
    return t->zeroed >= t->capacity || late || s->closing;
}

// Up to the next whole step.
static uint64_t prepare_step_bytes(const struct store *s)
{
    const struct tail *t = s->preparing;
    return OX_MIN(t->capacity - t->zeroed, s->fill_step - t->zeroed % s->fill_step);
}

static ox_step prepare_fill(struct ox_seq *q)
{
    struct store *s = prepare_store(q);
    struct tail *t = s->preparing;
    t->zeroed = OX_MAX(t->zeroed, journal_end(s, t));
    if (prepare_is_filled(s))
        return OX_FINISH(q, OX_OK);
    t->zeroing = true;
    ox_seq_bind(q, &s->prepare_op, "zeros");
    ox_file_zero(t->seg->file, &s->prepare_op, t->zeroed, prepare_step_bytes(s));
    return OX_WAIT(q, prepare_filled);
}

// The next segment's zeros are ahead of the journal while they lead what it has taken of the current one by an eighth: a step holds up whatever is synced
// beside it, so that more of them than needed show in the slowest hundredth of the batches.
static bool prepare_is_ahead(struct store *s)
{
    const struct tail *t = s->preparing, *current = tail_current(s);
    return t->seg->state == SEGMENT_READY && current && t->zeroed > current->planned + t->capacity / STORE_NEXT_AT;
}

// Full speed while the journal rests. Otherwise no faster than is needed; in the segment that the journal writes only between small batches, because each
// of its syncs behind new zeros has metadata to write; and not at all while batches are large.
static ox_step prepare_pause(struct ox_seq *q)
{
    struct store *s = prepare_store(q);
    int64_t batches = s->m_batches.value - s->fill_batches, bytes = s->m_batch_bytes.value - s->fill_bytes;
    bool small = bytes <= batches * (int64_t)STORE_ZERO_SMALL, large = bytes >= batches * (int64_t)STORE_ZERO_WORTH;
    bool current = s->preparing->seg->state == SEGMENT_CURRENT;
    bool waits = current ? !small : large || prepare_is_ahead(s);
    s->fill_batches += batches;
    s->fill_bytes += bytes;
    if (batches > 0)
        s->fill_step = small ? STORE_ZERO_STEP_SMALL : STORE_ZERO_STEP;
    if (batches == 0 || prepare_is_filled(s) || (!current && !waits))
        return OX_GOTO(q, prepare_fill);
    ox_timer_start(&s->fill_timer, large ? STORE_ZERO_LOOK_NS : STORE_ZERO_PAUSE_NS);
    return OX_WAIT(q, waits ? prepare_pause : prepare_fill);
}

static ox_step prepare_filled(struct ox_seq *q)
{
    struct store *s = prepare_store(q);
    struct tail *t = s->preparing;
    t->zeroing = false;
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    t->zeroed += prepare_step_bytes(s);
    store_woken(s);
    if (t->zeroed < t->capacity && t->zeroed % (STORE_ZERO_SYNC * STORE_ZERO_STEP) != 0)
        return OX_GOTO(q, prepare_pause);
    ox_seq_bind(q, &s->prepare_op, "sync zeros");
    ox_file_sync(t->seg->file, &s->prepare_op);
    return OX_WAIT(q, prepare_synced);
}

static ox_step prepare_synced(struct ox_seq *q)
{
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    return OX_GOTO(q, prepare_pause);
}

// It did not become ready: it is forgotten here; what became of its file, prepare_undo has seen to.
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
        if (err != OX_OK)
            t->capacity = OX_MIN(t->capacity, OX_MAX(t->zeroed, journal_end(s, t))); // what could not be filled is not used
        t->filling = false;
        segment_unpin(s, t->seg);
    } else if (t) {
        s->preparing = t;
        prepare_drop(s);
        s->preparing = NULL;
    }
    if (err != OX_OK && !s->loop->dead && !s->closing) {
        if (!s->full) // said once, then tried again every second
            ox_warn(s->log, "store.segment.not_made", "place=%s error=%s available=%llu reserve=%llu", s->place.name,
                    ox_err_name(err), (unsigned long long)s->space.available, (unsigned long long)s->cfg.reserve_bytes);
        s->full = !s->next;
        s->m_full.value = s->full;
        ox_timer_start(&s->prepare_timer, STORE_RETRY_NS);
    }
    store_woken(s);
}
