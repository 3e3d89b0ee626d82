// journal.c - batches: everything that waits goes out in one vectored write and one sync, then all of it is acknowledged, in order.
//
// A record is encoded as it comes (header, checksum, small payloads copied) into the open batch. With nothing in flight the open batch is written at the end of
// the turn; one that is full is written at once behind the one in flight, so at most two are. Batches are settled strictly in order, and when one fails, all
// behind it fail, whatever became of their own writes: nobody is told OK for bytes behind a hole.
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "ledger/store/store_int.h"

#define JOURNAL_COPY_MAX \
    (256u << 10) // payload parts up to this are copied, larger ones are written from where they are
#define JOURNAL_PARTS_MAX (OX_IOV_MAX - 8u)
#define JOURNAL_SPARE_BYTES (1u << 20) // a batch with more memory is not kept
#define JOURNAL_SPARES_MAX 3u          // two in flight and one open
#define JOURNAL_EAGER_PART 32u         // of the largest batch: with less in it a batch waits for more
#define JOURNAL_EAGER_RATE 5u          // ... and with less than a batch's usual time is worth, in bytes per 10 ns

// A stretch of the batch: outside memory, or `len` staged bytes from `at`.
struct batch_part {
    const void *outside;
    size_t at, len;
};
struct batch_item {
    struct ox_segment_record record;
    uint32_t offset; // of the record in the batch
    struct ox_append *append;
    struct jrecord *jrecord;
};
struct batch {
    struct ox_link link;
    struct store *store;
    struct tail *tail;
    struct ox_op op;
    uint64_t offset;          // in the segment
    uint64_t bytes;           // so far
    uint8_t *memory, *staged; // staged: the aligned part of memory
    size_t staged_len, staged_cap;
    struct batch_part *parts;
    size_t part_count, part_cap;
    struct batch_item *items;
    size_t item_count, item_cap, settled;
    struct iovec *iov;
    struct ox_journal_pos mark; // that its header carries
    uint64_t sequence;
    uint64_t begun_ns;
    bool over, sync;
};

enum journal_room { ROOM_YES, ROOM_LATER, ROOM_NEVER };

static void journal_ready(struct ox_turn_hook *hook);
static void journal_sync_fire(struct ox_timer *t);
static void journal_settle(struct store *s);
static void journal_fail(struct store *s, enum ox_err err);

void journal_init(struct store *s)
{
    ox_list_init(&s->journal.batches);
    ox_list_init(&s->journal.spares);
    s->journal.hook = (struct ox_turn_hook){.run = journal_ready};
    ox_timer_init(&s->journal.sync_timer, s->loop, journal_sync_fire);
}

static void batch_free(struct batch *b)
{
    ox_free(b->memory);
    ox_free(b->parts);
    ox_free(b->items);
    ox_free(b->iov);
    ox_free(b);
}

// Keeps a batch's memory for a later one.
static void batch_retire(struct store *s, struct batch *b)
{
    if (s->journal.spares.count >= JOURNAL_SPARES_MAX || b->staged_cap > JOURNAL_SPARE_BYTES)
        batch_free(b);
    else
        ox_list_push_back(&s->journal.spares, &b->link);
}

// Aligned, so that a batch without outside parts can be written past the page cache.
static void batch_grow(struct batch *b, size_t len)
{
    size_t cap = OX_MAX(b->staged_cap * 2, OX_MAX(len, (size_t)65536));
    uint8_t *memory = ox_malloc_raw(cap + OX_DIRECT_ALIGN);
    uint8_t *staged = memory + (OX_DIRECT_ALIGN - (uintptr_t)memory % OX_DIRECT_ALIGN) % OX_DIRECT_ALIGN;
    if (b->staged_len)
        memcpy(staged, b->staged, b->staged_len);
    ox_free(b->memory);
    b->memory = memory;
    b->staged = staged;
    b->staged_cap = cap;
}

static uint8_t *batch_stage(struct batch *b, size_t len)
{
    if (b->staged_len + len > b->staged_cap)
        batch_grow(b, b->staged_len + len);
    uint8_t *p = b->staged + b->staged_len;
    b->staged_len += len;
    b->bytes += len;
    return p;
}

static void batch_part_add(struct batch *b, const void *outside, size_t at, size_t len)
{
    if (b->part_count == b->part_cap) {
        b->part_cap = b->part_cap ? b->part_cap * 2 : 16;
        b->parts = ox_realloc(b->parts, b->part_cap, sizeof *b->parts);
    }
    b->parts[b->part_count++] = (struct batch_part){outside, at, len};
}

// Ends the staged stretch that began where the last part's staging ended.
static void batch_cut_staged(struct batch *b)
{
    size_t from = 0;
    for (size_t i = b->part_count; i > 0; i--) {
        if (!b->parts[i - 1].outside) {
            from = b->parts[i - 1].at + b->parts[i - 1].len;
            break;
        }
    }
    if (b->staged_len > from)
        batch_part_add(b, NULL, from, b->staged_len - from);
}

static struct batch *batch_new(struct store *s, struct tail *t)
{
    struct ox_link *spare = ox_list_pop_front(&s->journal.spares);
    struct batch *b = spare ? CONTAINER_OF(spare, struct batch, link) : ox_malloc(sizeof *b);
    b->store = s;
    b->tail = t;
    b->offset = t->planned;
    b->bytes = 0;
    b->staged_len = b->part_count = b->item_count = b->settled = 0;
    b->over = b->sync = false;
    memset(batch_stage(b, OX_BATCH_HEADER_BYTES), 0, OX_BATCH_HEADER_BYTES);
    ox_list_push_back(&s->journal.batches, &b->link);
    return b;
}

static struct batch_item *batch_item_add(struct batch *b)
{
    if (b->item_count == b->item_cap) {
        b->item_cap = b->item_cap ? b->item_cap * 2 : 64;
        b->items = ox_realloc(b->items, b->item_cap, sizeof *b->items);
    }
    struct batch_item *item = &b->items[b->item_count++];
    *item = (struct batch_item){0};
    return item;
}

static struct batch_item *batch_encode(struct batch *b, const struct ox_segment_record *record,
                                       const struct ox_record_payload *payload)
{
    struct batch_item *item = batch_item_add(b);
    item->record = *record;
    item->offset = (uint32_t)b->bytes;
    ox_segment_record_header_encode(batch_stage(b, OX_RECORD_HEADER_BYTES), b->store->salt, record, payload);
    for (size_t i = 0; i < payload->count; i++) {
        const struct ox_buf *part = &payload->parts[i];
        if (part->len == 0)
            continue;
        if (part->len <= JOURNAL_COPY_MAX) {
            memcpy(batch_stage(b, part->len), part->data, part->len);
            continue;
        }
        batch_cut_staged(b);
        batch_part_add(b, part->data, 0, part->len);
        b->bytes += part->len;
    }
    size_t pad = (size_t)(ox_align8((uint32_t)b->bytes) - b->bytes);
    if (pad)
        memset(batch_stage(b, pad), 0, pad);
    return item;
}

// The size of the batch on disk with one more record.
static uint64_t batch_bytes_with(const struct batch *b, uint64_t payload)
{
    uint64_t bytes = b ? b->bytes : OX_BATCH_HEADER_BYTES, items = b ? b->item_count : 0;
    return ox_align_block(bytes + OX_RECORD_HEADER_BYTES + payload + 7 + (items + 1) * OX_DIR_ITEM_BYTES);
}

// Adds directory, padding and header: the batch is as it will stand on disk.
static void batch_seal(struct batch *b, uint32_t flags)
{
    struct store *s = b->store;
    struct ox_batch_header h = {
        .number = b->tail->seg->number,
        .offset = (uint32_t)b->offset,
        .directory = (uint32_t)b->bytes,
        .records = (uint32_t)b->item_count,
        .flags = flags,
        .mark = s->journal.mark,
        .sequence = s->journal.sequence++,
    };
    b->mark = h.mark;
    b->sequence = h.sequence;
    size_t len = b->item_count * OX_DIR_ITEM_BYTES;
    uint8_t *directory = batch_stage(b, len);
    for (size_t i = 0; i < b->item_count; i++)
        ox_dir_item_encode(directory + i * OX_DIR_ITEM_BYTES, b->items[i].offset, &b->items[i].record);
    h.directory_crc = ox_crc32c(s->salt, directory, len);
    size_t pad = (size_t)(ox_align_block(b->bytes) - b->bytes);
    if (pad)
        memset(batch_stage(b, pad), 0, pad);
    h.bytes = (uint32_t)b->bytes;
    ox_batch_header_encode(b->staged, s->salt, &h);
    batch_cut_staged(b);
}

static int batch_iov(struct batch *b)
{
    b->iov = ox_realloc(b->iov, b->part_count, sizeof *b->iov);
    for (size_t i = 0; i < b->part_count; i++) {
        const void *base = b->parts[i].outside ? b->parts[i].outside : b->staged + b->parts[i].at;
        b->iov[i] = (struct iovec){(void *)(uintptr_t)base, b->parts[i].len};
    }
    return (int)b->part_count;
}

// Writing.

// The time of a batch alone: not that in which it stood behind another.
static void journal_time(struct journal *j, const struct batch *b, uint64_t now_ns)
{
    uint64_t took_ns = now_ns - OX_MAX(b->begun_ns, j->over_ns);
    j->over_ns = now_ns;
    j->usual_ns = (j->usual_ns * 7 + took_ns) / 8;
}

static void batch_done(struct ox_op *op)
{
    struct batch *b = CONTAINER_OF(op, struct batch, op);
    b->over = true;
    journal_time(&b->store->journal, b, ox_now_ns(op->loop));
    journal_settle(b->store);
}

static void journal_submit(struct store *s, struct batch *b)
{
    struct journal *j = &s->journal;
    OX_ASSERT(j->open == b && b->item_count > 0);
    j->open = NULL;
    batch_seal(b, 0);
    b->tail->planned = b->offset + b->bytes;
    b->tail->writes++;
    b->sync = s->cfg.sync == OX_STORE_SYNC || j->sync_due;
    j->sync_due = false;
    j->in_flight++;
    b->begun_ns = ox_now_ns(s->loop);
    OX_CRASHPOINT(s->loop, "store.batch.before_write");
    int parts = batch_iov(b);
    ox_op_init(&b->op, s->loop, batch_done, "journal batch");
    ox_file_write(b->tail->journal_file, &b->op, b->iov, parts, b->offset, b->sync);
    if (b->tail->planned * 2 > b->tail->capacity)
        prepare_want(s);
}

// A sync without bytes: for the interval, and before a segment with unsynced batches is left.
static void journal_submit_sync(struct store *s, struct tail *t)
{
    struct journal *j = &s->journal;
    OX_ASSERT(!j->open);
    struct batch *b = batch_new(s, t);
    b->bytes = 0;
    b->begun_ns = ox_now_ns(s->loop);
    t->writes++;
    b->sync = true;
    j->in_flight++;
    j->sync_due = false;
    ox_op_init(&b->op, s->loop, batch_done, "journal sync");
    ox_file_sync(t->journal_file, &b->op);
}

static void journal_fail_item(struct store *s, struct ox_append *a, struct jrecord *r, enum ox_err err)
{
    if (a) {
        s->journal.bytes -= ox_append_bytes(a);
        ledgers_append_done(a, err);
    } else {
        r->done(r, err);
    }
}

// Room for a record in the current segment. Where there is none, moves on to the next segment.
static enum journal_room journal_segment_room(struct store *s, enum ox_segment_record_type type, uint64_t bytes)
{
    struct tail *t = tail_current(s);
    bool last = s->full && !s->next;
    bool user = type == OX_REC_ENTRY || type == OX_REC_CREATE || type == OX_REC_MOVED;
    uint64_t kept = !s->next && user ? OX_MIN(OX_MAX(t->capacity / 16, (uint64_t)STORE_META_ROOM), t->capacity / 2) : 0;
    uint64_t limit = t->capacity - kept; // without a next segment, closes and deletes must still find room
    uint64_t end = t->planned + bytes;
    if (end <= limit)
        return end <= t->zeroed || !t->zeroing ? ROOM_YES : ROOM_LATER;
    if (s->next && s->tails.count < STORE_TAILS_MAX)
        return ROOM_NEVER; // in this segment
    bool never = last || (s->next && s->stuck) ||
                 (s->closing && !s->next && !prepare_active(s)); // a closing store makes no more segments
    if (never)
        return ROOM_NEVER;
    prepare_want(s);
    return ROOM_LATER;
}

uint64_t journal_end(const struct store *s, const struct tail *t)
{
    const struct batch *open = s->journal.open;
    return open && open->tail == t ? open->offset + batch_bytes_with(open, 0) : t->planned;
}

// Why ROOM_NEVER.
static enum ox_err journal_no_room(const struct store *s)
{
    return s->closing ? OX_E_SHUTDOWN : OX_E_NO_SPACE;
}

static void journal_next_segment(struct store *s)
{
    struct tail *old = tail_current(s), *t = s->next;
    if (s->cfg.sync != OX_STORE_SYNC)
        journal_submit_sync(s, old);
    s->next = NULL;
    segment_set_state(s, old->seg, SEGMENT_SEALING);
    segment_set_state(s, t->seg, SEGMENT_CURRENT);
    ox_list_push_back(&s->tails, &t->link);
    OX_CRASHPOINT(s->loop, "store.segment.switched");
    maintain_kick(s);
}

// Makes sure that the open batch has room for a record. ROOM_NEVER: the disk is full.
static enum journal_room journal_room(struct store *s, enum ox_segment_record_type type, uint64_t payload, size_t parts)
{
    struct journal *j = &s->journal;
    for (;;) {
        uint64_t bytes = batch_bytes_with(j->open, payload);
        bool fits = !j->open || (bytes <= s->cfg.batch_bytes_max && j->open->part_count + 2 * parts + 2 < JOURNAL_PARTS_MAX);
        enum journal_room room = fits ? journal_segment_room(s, type, bytes) : ROOM_NEVER;
        if (room == ROOM_LATER || (room == ROOM_YES && j->open))
            return room;
        if (j->in_flight >= 2)
            return ROOM_LATER;
        if (room == ROOM_YES) {
            j->open = batch_new(s, tail_current(s));
            return ROOM_YES;
        }
        if (j->open)
            journal_submit(s, j->open);
        else if (s->next && s->tails.count < STORE_TAILS_MAX)
            journal_next_segment(s);
        else
            return ROOM_NEVER;
    }
}

// Entries go behind the last one that was encoded; a ledger that lost one takes no more.
static enum ox_err journal_encode_append(struct store *s, struct ox_append *a)
{
    struct sledger *sl = CONTAINER_OF(a->ledger, struct handle, base)->sl;
    uint64_t bytes = ox_append_bytes(a);
    enum ox_err err = sl->fenced ? OX_E_FENCED : sl->append_err;
    enum journal_room room = err == OX_OK ? journal_room(s, OX_REC_ENTRY, bytes, a->part_count) : ROOM_NEVER;
    if (room == ROOM_LATER)
        return OX_E_BUSY;
    if (room == ROOM_NEVER) {
        sl->append_err = err == OX_OK ? journal_no_room(s) : err;
        journal_fail_item(s, a, NULL, sl->append_err);
        return OX_OK;
    }
    OX_ASSERT(a->entry == sl->encoded + 1);
    sl->encoded = a->entry;
    sl->encoded_length += bytes;
    struct ox_segment_record r = {
        .type = OX_REC_ENTRY,
        .length = (uint32_t)bytes,
        .number = s->journal.open->tail->seg->number,
        .ledger = sl->id,
        .entry = a->entry,
        .arg = sl->encoded_length,
    };
    struct ox_record_payload payload = {a->parts, a->part_count, a->tail_len, a->tail_crc};
    batch_encode(s->journal.open, &r, &payload)->append = a;
    return OX_OK;
}

static enum ox_err journal_encode_record(struct store *s, struct jrecord *r)
{
    enum journal_room room = journal_room(s, r->type, r->payload.len, 1);
    if (room == ROOM_LATER)
        return OX_E_BUSY;
    if (room == ROOM_NEVER) {
        r->done(r, journal_no_room(s));
        return OX_OK;
    }
    if (r->sl && r->type == OX_REC_CLOSE) {
        r->entry = r->sl->encoded;
        r->arg = r->sl->encoded_length;
    }
    struct ox_segment_record record = {
        .type = r->type,
        .length = (uint32_t)r->payload.len,
        .number = s->journal.open->tail->seg->number,
        .ledger = r->ledger,
        .entry = r->entry,
        .arg = r->arg,
    };
    struct ox_record_payload payload = {.parts = &r->payload, .count = 1};
    batch_encode(s->journal.open, &record, &payload)->jrecord = r;
    return OX_OK;
}

// A batch that is large enough goes out although more may come: its senders are answered while the rest is still being read and written. Where a write takes
// long whatever its size, that is large.
static void journal_eager(struct store *s)
{
    struct journal *j = &s->journal;
    if (!j->open || j->in_flight >= 2)
        return;
    uint64_t enough = OX_MAX(s->cfg.batch_bytes_max / JOURNAL_EAGER_PART, j->usual_ns * JOURNAL_EAGER_RATE / 10);
    if (j->open->bytes >= enough)
        journal_submit(s, j->open);
}

// Encodes what waits, as far as there is room.
static void journal_fill(struct store *s)
{
    struct journal *j = &s->journal;
    if (j->filling)
        return; // from inside an owner's done
    j->filling = true;
    while (j->waiting_count > 0 && !s->failed && tail_current(s)) {
        struct journal_waiting w = j->waiting[j->waiting_head++ & (j->waiting_cap - 1)];
        j->waiting_count--;
        enum ox_err err = w.append ? journal_encode_append(s, w.append) : journal_encode_record(s, w.record);
        if (err == OX_E_BUSY) {
            j->waiting_head--;
            j->waiting_count++;
            break;
        }
        journal_eager(s);
    }
    j->filling = false;
}

static void journal_wait(struct store *s, struct ox_append *a, struct jrecord *r)
{
    struct journal *j = &s->journal;
    if (j->waiting_count == j->waiting_cap) {
        size_t cap = j->waiting_cap ? j->waiting_cap * 2 : 64;
        struct journal_waiting *grown = ox_calloc(cap, sizeof *grown);
        for (size_t i = 0; i < j->waiting_count; i++)
            grown[i] = j->waiting[(j->waiting_head + i) & (j->waiting_cap - 1)];
        ox_free(j->waiting);
        j->waiting = grown;
        j->waiting_cap = cap;
        j->waiting_head = 0;
    }
    j->waiting[(j->waiting_head + j->waiting_count++) & (j->waiting_cap - 1)] = (struct journal_waiting){a, r};
}

// A segment that is being sealed is synced with its footer.
static bool journal_sync_wanted(struct store *s)
{
    struct tail *t = tail_current(s);
    return s->journal.sync_due && !s->journal.open && s->journal.in_flight == 0 && t && t->unsynced &&
           t->seg->state == SEGMENT_CURRENT;
}

static void journal_ready(struct ox_turn_hook *hook)
{
    struct store *s = CONTAINER_OF(hook, struct store, journal.hook);
    journal_fill(s);
    if (s->journal.open && s->journal.in_flight == 0)
        journal_submit(s, s->journal.open);
    else if (journal_sync_wanted(s))
        journal_submit_sync(s, tail_current(s));
}

void journal_pump(struct store *s)
{
    struct journal *j = &s->journal;
    if (s->loop->dead && !s->failed && !j->filling)
        journal_fail(s, OX_E_SHUTDOWN);
    if (s->failed || !s->open)
        return;
    journal_fill(s);
    if (j->in_flight == 0 && (j->open || j->sync_due))
        ox_turn_end(s->loop, &j->hook);
}

void journal_append(struct store *s, struct ox_append *a)
{
    s->journal.bytes += ox_append_bytes(a);
    journal_wait(s, a, NULL);
    journal_pump(s);
}

void journal_record(struct store *s, struct jrecord *r)
{
    journal_wait(s, NULL, r);
    if (s->failed) {
        s->journal.waiting_count--;
        r->done(r, s->loop->dead ? OX_E_SHUTDOWN : OX_E_PLACE_FAILED);
        return;
    }
    journal_pump(s);
}

// Settling.

static void journal_settle_item(struct store *s, struct batch *b, struct batch_item *item)
{
    struct ox_append *a = item->append;
    struct jrecord *r = item->jrecord;
    rows_apply(s, b->tail, &item->record, (uint32_t)b->offset + item->offset, r ? r->custom : NULL);
    if (!a) {
        r->done(r, OX_OK);
        return;
    }
    s->m_appends.value++;
    s->m_append_bytes.value += item->record.length;
    s->journal.bytes -= item->record.length;
    ledgers_confirmed(CONTAINER_OF(a->ledger, struct handle, base)->sl, item->record.entry, item->record.arg);
    ledgers_append_done(a, OX_OK);
}

static void journal_settle_good(struct store *s, struct batch *b)
{
    struct journal *j = &s->journal;
    if (b->bytes > 0) {
        j->mark_written = b->mark;
        b->tail->sequence = b->sequence;
        s->m_batches.value++;
        s->m_batch_bytes.value += (int64_t)b->bytes;
    }
    if (b->sync) {
        s->m_syncs.value++;
        uint64_t end = b->bytes > 0 ? b->offset + b->bytes : b->offset;
        j->mark = (struct ox_journal_pos){b->tail->seg->number, end};
        b->tail->unsynced = false;
    } else {
        b->tail->unsynced = true;
        if (s->cfg.sync == OX_STORE_SYNC_INTERVAL && !ox_timer_started(&j->sync_timer))
            ox_timer_start(&j->sync_timer, s->cfg.sync_interval_ms * OX_MS);
    }
    OX_CRASHPOINT(s->loop, "store.batch.after_sync");
    while (b->settled < b->item_count && !s->loop->dead)
        journal_settle_item(s, b, &b->items[b->settled++]);
}

static void journal_fail_batch(struct store *s, struct batch *b, enum ox_err err)
{
    for (; b->settled < b->item_count; b->settled++)
        journal_fail_item(s, b->items[b->settled].append, b->items[b->settled].jrecord, err);
}

// The first failure ends all appends for this process: what the disk holds of the range is not known.
static void journal_set_failed(struct store *s, enum ox_err err)
{
    if (!s->failed && !s->loop->dead) {
        ox_error(s->log, "store.failed",
                 "place=%s dir=\"%s\" error=%s hint=\"appends are refused; check the disk and restart\"", s->place.name,
                 s->dir, ox_err_name(err));
    }
    s->failed = true;
    s->m_failed.value = 1;
    ox_turn_end_cancel(s->loop, &s->journal.hook);
}

// Everything that is not in flight fails.
static void journal_fail(struct store *s, enum ox_err err)
{
    struct journal *j = &s->journal;
    journal_set_failed(s, err);
    enum ox_err answer = s->loop->dead ? OX_E_SHUTDOWN : OX_E_PLACE_FAILED;
    if (j->open) {
        struct batch *b = j->open;
        j->open = NULL;
        ox_list_remove(&j->batches, &b->link);
        journal_fail_batch(s, b, answer);
        batch_free(b);
    }
    while (j->waiting_count > 0) {
        struct journal_waiting w = j->waiting[j->waiting_head++ & (j->waiting_cap - 1)];
        j->waiting_count--;
        journal_fail_item(s, w.append, w.record, answer);
    }
}

static void journal_settle(struct store *s)
{
    struct journal *j = &s->journal;
    struct ox_link *first;
    while ((first = ox_list_first(&j->batches)) != NULL) {
        struct batch *b = CONTAINER_OF(first, struct batch, link);
        if (!b->over)
            break;
        enum ox_err err = b->op.err;
        ox_list_remove(&j->batches, first);
        j->in_flight--;
        if (err == OX_OK && !s->failed)
            journal_settle_good(s, b);
        b->tail->writes--;
        if (err != OX_OK || s->failed || s->loop->dead) {
            journal_set_failed(s, err);
            journal_fail_batch(s, b, s->loop->dead ? OX_E_SHUTDOWN : OX_E_PLACE_FAILED);
            journal_fail(s, err);
        }
        OX_CRASHPOINT(s->loop, "store.batch.after_ack");
        batch_retire(s, b);
    }
    journal_pump(s);
    store_woken(s);
}

static void journal_sync_fire(struct ox_timer *t)
{
    struct store *s = CONTAINER_OF(t, struct store, journal.sync_timer);
    s->journal.sync_due = true;
    journal_pump(s);
}

bool journal_idle(const struct store *s)
{
    return s->journal.in_flight == 0 && !s->journal.open && s->journal.waiting_count == 0;
}

void journal_fini(struct store *s)
{
    struct journal *j = &s->journal;
    OX_ASSERT(journal_idle(s) && ox_list_empty(&j->batches));
    ox_turn_end_cancel(s->loop, &j->hook);
    ox_timer_stop(&j->sync_timer);
    for (struct ox_link *link; (link = ox_list_pop_front(&j->spares));)
        batch_free(CONTAINER_OF(link, struct batch, link));
    ox_free(j->waiting);
}

// The one batch that start-up writes: built by the same encoder, written by the caller's operation.
struct journal_cut {
    struct ox_op op;
    struct ox_op *user;
    struct batch *batch;
};

static void journal_cut_done(struct ox_op *op)
{
    struct journal_cut *c = CONTAINER_OF(op, struct journal_cut, op);
    struct batch *b = c->batch;
    struct store *s = b->store;
    b->tail->writes--;
    if (op->err == OX_OK) {
        b->tail->planned = b->offset + b->bytes;
        b->tail->sequence = b->sequence;
        s->journal.mark = (struct ox_journal_pos){b->tail->seg->number, b->tail->planned};
    }
    ox_op_finish(c->user, op->err);
    batch_free(b);
    ox_free(c);
}

void journal_write_cut(struct store *s, struct ox_op *op, const struct journal_copy *records, size_t count,
                       uint32_t *ret_offsets)
{
    struct journal_cut *c = ox_malloc(sizeof *c);
    struct batch *b = batch_new(s, tail_current(s));
    ox_list_remove(&s->journal.batches, &b->link);
    for (size_t i = 0; i < count; i++) {
        struct ox_segment_record r = records[i].record;
        r.number = b->tail->seg->number;
        struct ox_buf bytes = ox_buf_static(records[i].payload, r.length);
        struct ox_record_payload payload = {.parts = &bytes, .count = 1};
        batch_encode(b, &r, &payload);
        ret_offsets[i] = (uint32_t)b->offset + b->items[i].offset;
    }
    batch_seal(b, OX_BATCH_CUT);
    b->tail->writes++;
    c->user = op;
    c->batch = b;
    ox_op_begin(op);
    int parts = batch_iov(b);
    ox_op_init(&c->op, s->loop, journal_cut_done, "journal cut");
    ox_file_write(b->tail->journal_file, &c->op, b->iov, parts, b->offset, true);
}
