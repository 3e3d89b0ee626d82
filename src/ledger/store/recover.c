// recover.c - start-up: the table is loaded, the journal behind it is scanned and replayed, what may not be durable is copied to a fresh segment.
//
// All segments that the table does not cover are scanned, newest first, so that marks in later ones tell how far earlier ones were durable. M is the largest mark.
// Up to M everything counts and damage is damage. Beyond M batches count while they are whole and in sequence; they are copied, as one batch with the CUT flag,
// (which voids whatever else is left there) into a new segment: a sync that failed may have left them in the cache only, and the range may not be written again. Start-up always begins a new segment.
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "ledger/store/store_int.h"

// A segment to be replayed.
struct replay {
    uint64_t number;
    struct ox_file *file;
    uint64_t size;
    uint8_t *bytes;
    size_t got;
    struct ox_scan scan;
    bool unused; // prepared, or half recycled: its header names another segment, or it holds nothing
    struct tail *tail;
};
// What a CUT batch has made void: from its mark up to itself.
struct replay_cut {
    struct ox_journal_pos from, to;
};
struct store_opening {
    struct ox_seq seq;
    struct ox_op op;
    struct store *store;
    struct ox_op *user;
    struct ox_place **ret;
    struct ox_table_image image;
    struct ox_table_changes changes;
    struct ox_dirlist list;
    char **garbage; // names of files that nothing needs
    size_t garbage_count;
    struct replay *replays; // ascending
    size_t replay_count, replay_index;
    struct ox_journal_pos mark;
    uint64_t sequence; // the largest seen
    struct replay_cut *cuts;
    size_t cut_count;
    struct journal_copy *copies;
    size_t copy_count;
    uint64_t copy_bytes;
    uint32_t *offsets;
    bool in_place; // too much to copy: synced where it is
    bool waits;
};

static ox_step open_look(struct ox_seq *q);
static ox_step open_looked(struct ox_seq *q);
static ox_step open_mkdir(struct ox_seq *q);
static ox_step open_sync_parent(struct ox_seq *q);
static ox_step open_lock(struct ox_seq *q);
static ox_step open_locked(struct ox_seq *q);
static ox_step open_load(struct ox_seq *q);
static ox_step open_loaded(struct ox_seq *q);
static ox_step open_list(struct ox_seq *q);
static ox_step open_listed(struct ox_seq *q);
static ox_step open_clean(struct ox_seq *q);
static ox_step open_cleaned(struct ox_seq *q);
static ox_step open_replay(struct ox_seq *q);
static ox_step open_replay_read(struct ox_seq *q);
static ox_step open_replay_scan(struct ox_seq *q);
static ox_step open_decide(struct ox_seq *q);
static ox_step open_sync(struct ox_seq *q);
static ox_step open_synced(struct ox_seq *q);
static ox_step open_apply(struct ox_seq *q);
static ox_step open_segment(struct ox_seq *q);
static ox_step open_cut(struct ox_seq *q);
static ox_step open_finish(struct ox_seq *q);

static struct store_opening *opening_of(struct ox_seq *q)
{
    return CONTAINER_OF(q, struct store_opening, seq);
}

// The first segment takes the copy already, though zeros are still being written behind it.
static bool open_has_room(const struct store_opening *o)
{
    const struct tail *t = o->store->next;
    return t && (!t->filling || o->copy_bytes + 4 * OX_SEG_BLOCK <= t->zeroed);
}

void recover_woken(struct store *s)
{
    struct store_opening *o = s->opening;
    if (!o || !o->waits || (prepare_active(s) && !open_has_room(o)))
        return;
    if (!s->next && !s->full && !s->loop->dead)
        return;
    o->waits = false;
    ox_seq_resume(&o->seq, s->loop->dead ? OX_E_SHUTDOWN : s->next ? OX_OK : OX_E_NO_SPACE);
}

static ox_step open_look(struct ox_seq *q)
{
    struct store_opening *o = opening_of(q);
    if (!o->store->cfg.existing)
        return OX_GOTO(q, open_mkdir);
    ox_seq_bind(q, &o->op, "look into directory");
    ox_fs_list(o->store->fs, &o->op, o->store->dir, &o->list);
    return OX_WAIT(q, open_looked);
}

// A store leaves its lock and its table where it is, whatever becomes of its segments: where neither is, its disk is not mounted, or it was emptied.
static ox_step open_looked(struct ox_seq *q)
{
    struct store_opening *o = opening_of(q);
    bool there = false;
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    for (size_t i = 0; i < o->list.count && !there; i++)
        there = !strcmp(o->list.items[i].name, "lock") || !strcmp(o->list.items[i].name, "table.mdb");
    ox_dirlist_fini(&o->list);
    return there ? OX_GOTO(q, open_mkdir) : OX_FINISH(q, OX_E_NOT_FOUND);
}

static ox_step open_mkdir(struct ox_seq *q)
{
    struct store_opening *o = opening_of(q);
    ox_seq_bind(q, &o->op, "make directory");
    ox_fs_mkdir(o->store->fs, &o->op, o->store->dir);
    return OX_WAIT(q, open_sync_parent);
}

// The directory's own name is made durable, too.
static ox_step open_sync_parent(struct ox_seq *q)
{
    struct store_opening *o = opening_of(q);
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    const char *slash = strrchr(o->store->dir, '/');
    OX_CLEANUP(ox_free_ptr)
    char *parent = slash ? ox_strndup(o->store->dir, OX_MAX((size_t)(slash - o->store->dir), (size_t)1)) : ox_strdup(".");
    ox_seq_bind(q, &o->op, "sync parent directory");
    ox_fs_sync_dir(o->store->fs, &o->op, parent);
    return OX_WAIT(q, open_lock);
}

static ox_step open_lock(struct ox_seq *q)
{
    struct store_opening *o = opening_of(q);
    if (q->err != OX_OK && q->err != OX_E_NOT_FOUND)
        return OX_FINISH(q, q->err);
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("%s/lock", o->store->dir);
    ox_seq_bind(q, &o->op, "lock directory");
    ox_fs_lock(o->store->fs, &o->op, path, &o->store->lock);
    return OX_WAIT(q, open_locked);
}

static ox_step open_locked(struct ox_seq *q)
{
    struct store_opening *o = opening_of(q);
    if (q->err == OX_E_LOCKED)
        ox_error(o->store->log, "store.locked",
                 "dir=\"%s\" hint=\"another process uses this data directory: stop it, or choose another directory\"",
                 o->store->dir);
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    ox_seq_bind(q, &o->op, "open table");
    ox_table_open(o->store->loop, &o->op, o->store->cfg.table, o->store->dir, &o->store->table);
    return OX_WAIT(q, open_load);
}

static ox_step open_load(struct ox_seq *q)
{
    struct store_opening *o = opening_of(q);
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    ox_seq_bind(q, &o->op, "load table");
    ox_table_load(o->store->table, &o->op, &o->image);
    return OX_WAIT(q, open_loaded);
}

static void open_new_identity(struct store *s)
{
    static const char hex[] = "0123456789abcdef";
    uint64_t bits[2] = {ox_loop_random(s->loop), ox_loop_random(s->loop)};
    char *p = s->meta.identity;
    for (unsigned i = 0; i < 32; i++) {
        if (i == 8 || i == 12 || i == 16 || i == 20)
            *p++ = '-';
        unsigned digit = (unsigned)(bits[i / 16] >> (i % 16 * 4)) & 15u;
        *p++ = i == 12 ? '4' : hex[i == 16 ? 8u | (digit & 3u) : digit];
    }
    *p = 0;
}

static ox_step open_loaded(struct ox_seq *q)
{
    struct store_opening *o = opening_of(q);
    struct store *s = o->store;
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    s->meta = o->image.meta;
    if (!o->image.fresh)
        return OX_GOTO(q, open_list);
    s->meta.covered = 1;
    open_new_identity(s);
    return OX_GOTO(q, open_list);
}

static ox_step open_list(struct ox_seq *q)
{
    struct store_opening *o = opening_of(q);
    struct store *s = o->store;
    memcpy(s->place.identity, s->meta.identity, OX_IDENTITY_BYTES);
    s->salt = ox_format_salt(s->meta.identity);
    s->id_ceiling = s->meta.id_ceiling;
    s->id_max = s->meta.id_max;
    s->last_number = s->meta.covered - 1;
    ox_seq_bind(q, &o->op, "list directory");
    ox_fs_list(s->fs, &o->op, s->dir, &o->list);
    return OX_WAIT(q, open_listed);
}

// The number in a name such as seg-00000000000000ff.
static bool open_name_number(const char *name, const char *prefix, uint64_t *ret)
{
    size_t len = strlen(prefix);
    if (strncmp(name, prefix, len) != 0 || strlen(name) != len + 16)
        return false;
    char *end;
    *ret = strtoull(name + len, &end, 16);
    return *end == 0;
}

static void open_garbage(struct store_opening *o, const char *name)
{
    o->garbage = ox_realloc(o->garbage, o->garbage_count + 1, sizeof(char *));
    o->garbage[o->garbage_count++] = ox_asprintf("%s/%s", o->store->dir, name);
}

static void open_spare(struct store *s, const char *name)
{
    s->spares = ox_realloc(s->spares, s->spare_count + 1, sizeof(char *));
    s->spares[s->spare_count++] = ox_asprintf("%s/%s", s->dir, name);
}

static void open_take_file(struct store_opening *o, const struct ox_dirent *file)
{
    struct store *s = o->store;
    uint64_t number;
    if (open_name_number(file->name, "spare-", &number)) {
        s->last_number = OX_MAX(s->last_number, number);
        if (file->size >= s->cfg.segment_bytes && s->spare_count < STORE_SPARES_MAX)
            open_spare(s, file->name);
        else
            open_garbage(o, file->name);
    } else if (open_name_number(file->name, "seg-", &number)) {
        struct segment *seg = segment_find(s, number);
        s->last_number = OX_MAX(s->last_number, number);
        if (seg) {
            seg->missing = false;
        } else if (number < s->meta.covered) {
            open_garbage(o, file->name); // forgotten by the table before its file was given away
        } else {
            o->replays = ox_realloc(o->replays, o->replay_count + 1, sizeof *o->replays);
            o->replays[o->replay_count++] = (struct replay){.number = number, .size = file->size};
        }
    }
}

static void open_take_segments(struct store_opening *o)
{
    for (size_t i = 0; i < o->image.count; i++) {
        const struct ox_table_segment *row = &o->image.segments[i];
        struct segment *seg = segment_new(o->store, row->number, SEGMENT_SEALED);
        seg->file_bytes = row->file_bytes;
        seg->live = row->live;
        seg->live_entries = row->live_entries;
        seg->used = row->used;
        seg->items = row->items;
        seg->runs = row->runs;
        seg->missing = true;
    }
}

static ox_step open_listed(struct ox_seq *q)
{
    struct store_opening *o = opening_of(q);
    struct store *s = o->store;
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    open_take_segments(o);
    for (size_t i = 0; i < o->list.count; i++)
        open_take_file(o, &o->list.items[i]);
    if (o->image.fresh && o->replay_count > 0) {
        ox_error(s->log, "store.table.missing",
                 "dir=\"%s\" hint=\"segment files are there but the ledger table is not: restore table.mdb\"", s->dir);
        return OX_FINISH(q, OX_E_CORRUPT);
    }
    for (size_t i = 0; i < s->seg_count; i++) {
        if (s->segs[i]->missing)
            ox_error(s->log, "store.segment.missing", "segment=%llu dir=\"%s\"", (unsigned long long)s->segs[i]->number,
                     s->dir);
    }
    o->replay_index = o->replay_count;
    if (!o->image.fresh)
        return OX_GOTO(q, open_clean);
    // The identity is durable before the first segment carries it.
    o->changes.meta = s->meta;
    ox_seq_bind(q, &o->op, "write identity");
    ox_table_commit(s->table, &o->op, &o->changes);
    return OX_WAIT(q, open_cleaned);
}

static ox_step open_clean(struct ox_seq *q)
{
    struct store_opening *o = opening_of(q);
    if (o->garbage_count == 0)
        return OX_GOTO(q, open_replay);
    OX_CLEANUP(ox_free_ptr)
    char *path = o->garbage[--o->garbage_count];
    ox_seq_bind(q, &o->op, "remove file");
    ox_fs_unlink(o->store->fs, &o->op, path);
    return OX_WAIT(q, open_cleaned);
}

static ox_step open_cleaned(struct ox_seq *q)
{
    if (q->err != OX_OK && q->err != OX_E_NOT_FOUND)
        return OX_FINISH(q, q->err);
    return OX_GOTO(q, open_clean);
}

// Newest first.
static ox_step open_replay(struct ox_seq *q)
{
    struct store_opening *o = opening_of(q);
    if (o->replay_index == 0)
        return OX_GOTO(q, open_decide);
    struct replay *r = &o->replays[--o->replay_index];
    OX_CLEANUP(ox_free_ptr)
    char *path = segment_path(o->store, r->number);
    ox_seq_bind(q, &o->op, "open segment");
    ox_file_open(o->store->fs, &o->op, OX_LANE_POOL, path, OX_OPEN_WRITE, &r->file, &r->size);
    return OX_WAIT(q, open_replay_read);
}

static ox_step open_replay_read(struct ox_seq *q)
{
    struct store_opening *o = opening_of(q);
    struct replay *r = &o->replays[o->replay_index];
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    r->size = OX_MIN(r->size, (uint64_t)UINT32_MAX);
    r->bytes = ox_malloc(r->size);
    ox_seq_bind(q, &o->op, "read segment");
    ox_file_read(r->file, &o->op, r->bytes, r->size, 0, &r->got);
    return OX_WAIT(q, open_replay_scan);
}

static void open_marks(struct store_opening *o, const struct replay *r)
{
    for (size_t i = 0; i < r->scan.batch_count; i++) {
        const struct ox_scan_batch *b = &r->scan.batches[i];
        if (b->salvaged)
            continue;
        if (ox_journal_pos_cmp(b->mark, o->mark) > 0)
            o->mark = b->mark;
        o->sequence = OX_MAX(o->sequence, b->sequence);
    }
    struct ox_journal_pos end = {r->number, r->scan.end};
    if (r->scan.sealed && ox_journal_pos_cmp(end, o->mark) > 0)
        o->mark = end;
}

// How far a segment is known to have been durable from marks in later ones.
static uint32_t open_durable(const struct store_opening *o, const struct replay *r)
{
    uint64_t durable = 0;
    for (const struct replay *later = r + 1; later < o->replays + o->replay_count; later++) {
        for (size_t i = 0; i < later->scan.batch_count; i++) {
            const struct ox_scan_batch *b = &later->scan.batches[i];
            if (!b->salvaged && b->mark.segment == r->number)
                durable = OX_MAX(durable, b->mark.offset);
        }
    }
    return (uint32_t)OX_MIN(durable, (uint64_t)UINT32_MAX);
}

// True if a mark in a later segment says that all of this one was durable.
static bool open_all_durable(const struct store_opening *o, const struct replay *r)
{
    for (const struct replay *later = r + 1; later < o->replays + o->replay_count; later++) {
        for (size_t i = 0; i < later->scan.batch_count; i++) {
            if (!later->scan.batches[i].salvaged && later->scan.batches[i].mark.segment > r->number)
                return true;
        }
    }
    return false;
}

// True if batches are missing at the end of a segment that was durable as a whole, though no mark may name that end: the next segment goes on behind a gap.
static bool open_lacks_end(const struct store_opening *o, const struct replay *r)
{
    const struct replay *next = r + 1, *end = o->replays + o->replay_count;
    while (next < end && next->scan.batch_count == 0)
        next++;
    if (next == end || r->scan.sealed || r->scan.batch_count == 0)
        return false;
    const struct ox_scan_batch *last = &r->scan.batches[r->scan.batch_count - 1], *first = &next->scan.batches[0];
    if (last->salvaged || first->salvaged || (first->flags & OX_BATCH_CUT))
        return false;
    return last->sequence + 1 < first->sequence && open_all_durable(o, r);
}

static void open_scan(const struct store_opening *o, struct replay *r)
{
    ox_scan_segment(r->bytes, r->got, o->store->salt, r->number, open_durable(o, r), &r->scan);
    if (!open_lacks_end(o, r))
        return;
    ox_scan_fini(&r->scan);
    ox_scan_segment(r->bytes, r->got, o->store->salt, r->number, (uint32_t)OX_MIN(r->got, (size_t)UINT32_MAX), &r->scan);
}

static enum ox_err open_check_header(struct store_opening *o, struct replay *r)
{
    struct ox_segment_header h;
    enum ox_err err = ox_segment_header_decode(r->bytes, r->got, &h);
    if (err == OX_E_CORRUPT)
        return OX_OK; // damage; records carry the number themselves
    if (err == OX_OK && strcmp(h.identity, o->store->meta.identity) != 0)
        err = OX_E_IDENTITY_MISMATCH;
    if (err == OX_OK)
        r->unused = h.number != r->number;
    else
        ox_error(o->store->log, "store.segment.foreign", "segment=%llu error=%s", (unsigned long long)r->number,
                 ox_err_name(err));
    return err;
}

// True if custom metadata is still to be read.
static bool open_has_creates(const struct ox_scan *scan)
{
    for (size_t i = 0; i < scan->record_count; i++) {
        if (scan->records[i].record.type == OX_REC_CREATE)
            return true;
    }
    return false;
}

static ox_step open_replay_scan(struct ox_seq *q)
{
    struct store_opening *o = opening_of(q);
    struct replay *r = &o->replays[o->replay_index];
    enum ox_err err = q->err == OX_OK ? open_check_header(o, r) : q->err;
    if (err != OX_OK)
        return OX_FINISH(q, err);
    if (!r->unused)
        open_scan(o, r);
    r->unused = r->unused || (r->scan.batch_count == 0 && !r->scan.sealed);
    open_marks(o, r);
    struct ox_journal_pos end = {r->number, r->scan.end};
    if (r->unused || ox_journal_pos_cmp(end, o->mark) <= 0) {
        if (!open_has_creates(&r->scan)) {
            ox_free(r->bytes);
            r->bytes = NULL;
        }
    }
    return OX_GOTO(q, open_replay);
}

static void open_find_cuts(struct store_opening *o, const struct ox_scan *scan)
{
    for (size_t k = 0; k < scan->batch_count; k++) {
        const struct ox_scan_batch *b = &scan->batches[k];
        struct ox_journal_pos end = {scan->number, (uint64_t)b->offset + b->bytes}, own = {scan->number, b->offset};
        if (b->salvaged || !(b->flags & OX_BATCH_CUT) || !(b->intact || ox_journal_pos_cmp(end, o->mark) <= 0))
            continue;
        o->cuts = ox_realloc(o->cuts, o->cut_count + 1, sizeof *o->cuts);
        o->cuts[o->cut_count++] = (struct replay_cut){b->mark, own};
    }
}

static bool open_void(const struct store_opening *o, struct ox_journal_pos at)
{
    for (size_t i = 0; i < o->cut_count; i++) {
        if (ox_journal_pos_cmp(at, o->cuts[i].from) >= 0 && ox_journal_pos_cmp(at, o->cuts[i].to) < 0)
            return true;
    }
    return false;
}

static void open_copy(struct store_opening *o, const struct replay *r, const struct ox_scan_record *rec)
{
    o->copies = ox_realloc(o->copies, o->copy_count + 1, sizeof *o->copies);
    o->copies[o->copy_count++] = (struct journal_copy){rec->record, r->bytes + rec->offset + OX_RECORD_HEADER_BYTES};
    o->copy_bytes += OX_RECORD_HEADER_BYTES + OX_DIR_ITEM_BYTES + 8 + rec->record.length;
}

// Each batch's fate, in order: void, durable, beyond the mark and whole (a copy), or the end.
static void open_sort_batches(struct store_opening *o)
{
    uint64_t before = o->store->meta.sequence;
    bool known = true, over = false;
    for (size_t i = 0; i < o->replay_count; i++)
        open_find_cuts(o, &o->replays[i].scan);
    for (size_t i = 0; i < o->replay_count; i++) {
        struct replay *r = &o->replays[i];
        for (size_t k = 0; k < r->scan.batch_count; k++) {
            struct ox_scan_batch *b = &r->scan.batches[k];
            struct ox_journal_pos at = {r->number, b->offset}, end = {r->number, (uint64_t)b->offset + b->bytes};
            b->fate = OX_BATCH_DROPPED;
            if (open_void(o, at))
                continue;
            if (ox_journal_pos_cmp(end, o->mark) <= 0)
                b->fate = OX_BATCH_DURABLE;
            else if (!over && b->intact && (!known || b->sequence == before + 1 || (b->flags & OX_BATCH_CUT)))
                b->fate = OX_BATCH_TAIL;
            else
                over = true;
            known = !b->salvaged;
            before = b->sequence;
        }
    }
}

static ox_step open_decide(struct ox_seq *q)
{
    struct store_opening *o = opening_of(q);
    open_sort_batches(o);
    for (size_t i = 0; i < o->replay_count; i++) {
        struct replay *r = &o->replays[i];
        for (size_t k = 0; k < r->scan.batch_count; k++) {
            const struct ox_scan_batch *b = &r->scan.batches[k];
            for (uint32_t n = 0; n < b->records && b->fate == OX_BATCH_TAIL; n++)
                open_copy(o, r, &r->scan.records[b->first_record + n]);
        }
    }
    o->in_place = o->copy_bytes + 4 * OX_SEG_BLOCK > o->store->cfg.segment_bytes;
    o->replay_index = 0;
    return o->in_place ? OX_GOTO(q, open_sync) : OX_GOTO(q, open_apply);
}

static ox_step open_sync(struct ox_seq *q)
{
    struct store_opening *o = opening_of(q);
    if (o->replay_index == o->replay_count) {
        o->copy_count = 0;
        return OX_GOTO(q, open_apply);
    }
    ox_seq_bind(q, &o->op, "sync segment");
    ox_file_sync(o->replays[o->replay_index++].file, &o->op);
    return OX_WAIT(q, open_synced);
}

static ox_step open_synced(struct ox_seq *q)
{
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    return OX_GOTO(q, open_sync);
}

static void open_apply_record(struct store_opening *o, const struct replay *r, const struct ox_scan_record *rec)
{
    struct store *s = o->store;
    struct ox_kv custom = {0};
    if (rec->damaged) {
        s->m_corrupt.value++;
        ox_error(s->log, "store.record.corrupt", "segment=%llu offset=%u type=%d ledger=%lld entry=%lld",
                 (unsigned long long)r->number, rec->offset, (int)rec->record.type, (long long)rec->record.ledger,
                 (long long)rec->record.entry);
    }
    // A damaged CREATE makes the ledger without its metadata: opening it says CORRUPT, and nobody can prove that it is his to delete.
    bool create = rec->record.type == OX_REC_CREATE;
    if (create && (rec->damaged || ox_custom_decode(r->bytes + rec->offset + OX_RECORD_HEADER_BYTES, rec->record.length,
                                                    &custom) != OX_OK))
        ox_kv_set(&custom, STORE_DAMAGED_KEY, "create");
    rows_apply(s, r->tail, &rec->record, rec->offset, &custom);
    ox_kv_fini(&custom);
}

static void open_apply_segment(struct store_opening *o, struct replay *r)
{
    struct store *s = o->store;
    struct segment *seg = segment_new(s, r->number, SEGMENT_SEALING);
    seg->file = r->file;
    s->open_files++;
    r->file = NULL;
    seg->file_bytes = r->size;
    r->tail = tail_new(seg);
    r->tail->capacity = r->tail->zeroed = r->size;
    ox_list_push_back(&s->tails, &r->tail->link);
    for (size_t k = 0; k < r->scan.batch_count; k++) {
        const struct ox_scan_batch *b = &r->scan.batches[k];
        if (b->fate != OX_BATCH_DURABLE && !(o->in_place && b->fate == OX_BATCH_TAIL))
            continue;
        r->tail->planned = (uint64_t)b->offset + b->bytes;
        r->tail->sequence = OX_MAX(r->tail->sequence, b->sequence);
        if (b->salvaged || !b->intact)
            ox_error(s->log, "store.batch.corrupt", "segment=%llu offset=%u records=%u", (unsigned long long)r->number,
                     b->offset, b->records);
        for (uint32_t n = 0; n < b->records; n++)
            open_apply_record(o, r, &r->scan.records[b->first_record + n]);
    }
}

// Where the last batch that counts ends.
static struct ox_journal_pos open_end(const struct store_opening *o)
{
    struct ox_journal_pos end = o->mark;
    for (size_t i = 0; i < o->replay_count; i++) {
        const struct ox_scan *scan = &o->replays[i].scan;
        for (size_t k = 0; k < scan->batch_count; k++) {
            if (scan->batches[k].fate == OX_BATCH_TAIL)
                end = (struct ox_journal_pos){scan->number, (uint64_t)scan->batches[k].offset + scan->batches[k].bytes};
        }
    }
    return end;
}

static ox_step open_apply(struct ox_seq *q)
{
    struct store_opening *o = opening_of(q);
    struct store *s = o->store;
    for (size_t i = 0; i < o->replay_count; i++) {
        struct replay *r = &o->replays[i];
        if (!r->unused) {
            open_apply_segment(o, r);
            continue;
        }
        OX_CLEANUP(ox_free_ptr)
        char *name = ox_asprintf("seg-%016llx", (unsigned long long)r->number);
        open_spare(s, name);
    }
    s->journal.mark = o->in_place ? open_end(o) : o->mark;
    s->journal.sequence = OX_MAX(o->sequence, s->meta.sequence) + 1;
    s->current_needed = true;
    OX_CRASHPOINT(s->loop, "store.open.replayed");
    if (s->loop->dead)
        return OX_FINISH(q, OX_E_SHUTDOWN);
    o->waits = true;
    prepare_want(s);
    return OX_WAIT(q, open_segment);
}

static ox_step open_segment(struct ox_seq *q)
{
    struct store_opening *o = opening_of(q);
    struct store *s = o->store;
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    struct tail *t = s->next;
    if (o->copy_count > 0 && o->copy_bytes + 4 * OX_SEG_BLOCK > t->capacity)
        return OX_FINISH(q, OX_E_NO_SPACE); // a small segment on a full disk
    s->next = NULL;
    s->current_needed = false;
    segment_set_state(s, t->seg, SEGMENT_CURRENT);
    ox_list_push_back(&s->tails, &t->link);
    q->err = OX_OK;
    if (s->tails.count == 1)
        return OX_GOTO(q, open_finish); // nothing was replayed
    o->offsets = ox_calloc(o->copy_count + 1, sizeof *o->offsets);
    ox_seq_bind(q, &o->op, "copy the journal's end");
    journal_write_cut(s, &o->op, o->copies, o->copy_count, o->offsets);
    return OX_WAIT(q, open_cut);
}

static ox_step open_cut(struct ox_seq *q)
{
    struct store_opening *o = opening_of(q);
    struct store *s = o->store;
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    OX_CRASHPOINT(s->loop, "store.open.copied");
    for (size_t i = 0; i < o->copy_count; i++) {
        struct ox_kv custom = {0};
        const struct journal_copy *c = &o->copies[i];
        if (c->record.type == OX_REC_CREATE)
            (void)!ox_custom_decode(c->payload, c->record.length, &custom);
        rows_apply(s, tail_current(s), &c->record, o->offsets[i], &custom);
        ox_kv_fini(&custom);
    }
    return OX_GOTO(q, open_finish);
}

static ox_step open_finish(struct ox_seq *q)
{
    struct store_opening *o = opening_of(q);
    struct store *s = o->store;
    s->id_next = OX_MAX(s->id_ceiling, s->id_max) + 1;
    s->open = true;
    ox_info(s->log, "store.open", "place=%s dir=\"%s\" identity=%s segments=%zu replayed=%zu copied=%zu", s->place.name,
            s->dir, s->place.identity, s->seg_count, o->replay_count, o->copy_count);
    return OX_FINISH(q, OX_OK);
}

static void opening_free(struct store_opening *o)
{
    for (size_t i = 0; i < o->replay_count; i++) {
        struct replay *r = &o->replays[i];
        if (r->file)
            ox_file_close(r->file);
        ox_free(r->bytes);
        ox_scan_fini(&r->scan);
    }
    for (size_t i = 0; i < o->garbage_count; i++)
        ox_free(o->garbage[i]);
    ox_free(o->garbage);
    ox_free(o->replays);
    ox_free(o->cuts);
    ox_free(o->copies);
    ox_free(o->offsets);
    ox_free(o->image.segments);
    ox_free(o->changes.live);
    ox_dirlist_fini(&o->list);
    ox_free(o);
}

static void open_done(struct ox_seq *q, enum ox_err err)
{
    struct store_opening *o = opening_of(q);
    struct store *s = o->store;
    struct ox_op *user = o->user;
    s->opening = NULL;
    if (err == OX_OK) {
        *o->ret = &s->place;
        opening_free(o);
        ox_op_finish(user, OX_OK);
        store_measure_space(s);
        store_woken(s);
        return;
    }
    if (err != OX_E_SHUTDOWN)
        ox_error(s->log, "store.open.failed", "dir=\"%s\" step=%s error=%s", s->dir, q->step, ox_err_name(err));
    opening_free(o);
    s->close_op = user;
    s->close_err = err;
    store_abandon(s);
}

void ox_store_open(struct ox_loop *loop, struct ox_fs *fs, struct ox_op *op, const struct ox_store_config *config,
                   struct ox_place **ret)
{
    ox_op_begin(op);
    if (config->segment_bytes % OX_SEG_BLOCK != 0 || config->segment_bytes < 256 * 1024 ||
        config->segment_bytes > UINT64_C(1) << 30) {
        ox_op_finish(op, OX_E_INVALID);
        return;
    }
    struct store_opening *o = ox_malloc(sizeof *o);
    o->store = store_new(loop, fs, config);
    o->store->opening = o;
    o->user = op;
    o->ret = ret;
    ox_seq_start(&o->seq, loop, "open store", open_look, open_done);
}
