// journal.c - batches: everything that waits goes out in one write and one sync, then all of it is acknowledged, in order.
//
// A record is encoded as it comes (header, checksum, payload copied into aligned memory) into the open batch. With nothing in flight the open batch is written at the end of
// the turn; one that is large enough is written at once behind the one in flight, so at most two are. Batches are settled strictly in order, and when one fails, all
// behind it fail, whatever became of their own writes: nobody is told OK for bytes behind a hole.
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "io/direct.h"
#include "ledger/store/store_int.h"

#define JOURNAL_SPARE_BYTES (6u << 20) // a batch with more memory is not kept: enough for the largest message
#define JOURNAL_SPARES_MAX 3u          // two in flight and one open
#define JOURNAL_MEMORY_MIN 65536u
#define JOURNAL_EAGER_PIECES 4u // a batch goes out early with so much of all that is on its way ...
#define JOURNAL_EAGER_MIN 32u   // ... but not with less than this part of the largest batch ...
#define JOURNAL_EAGER_MAX 2u    // ... and surely with this part of it
#define JOURNAL_SPARE_TIMES 8u  // memory of more than so many times what batches have used lately is given back

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
    uint64_t offset; // in the segment
    uint64_t bytes;  // so far
    uint8_t *memory; // for writes past the page cache
    size_t cap;
    struct batch_item *items;
    size_t item_count, item_cap, settled;
    struct iovec iov;
    struct ox_journal_pos mark; // that its header carries
    uint64_t sequence;
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
    ox_free(b->items);
    ox_free(b);
}

// Keeps a batch's memory for a later one, unless it is far more than batches need now.
static void batch_retire(struct store *s, struct batch *b)
{
    struct journal *j = &s->journal;
    j->usual_bytes = OX_MAX(b->bytes, j->usual_bytes - j->usual_bytes / 8);
    bool large = b->cap > JOURNAL_SPARE_BYTES ||
                 b->cap > OX_MAX(j->usual_bytes * JOURNAL_SPARE_TIMES, (uint64_t)JOURNAL_MEMORY_MIN);
    if (j->spares.count >= JOURNAL_SPARES_MAX || large)
        batch_free(b);
    else
        ox_list_push_back(&j->spares, &b->link);
}

static void batch_grow(struct batch *b, size_t len)
{
    uint8_t *memory = ox_direct_alloc(OX_MAX(b->cap * 2, OX_MAX(len, (size_t)JOURNAL_MEMORY_MIN)), &b->cap);
    ox_direct_copy(memory, b->memory, b->bytes);
    ox_free(b->memory);
    b->memory = memory;
}

static uint8_t *batch_stage(struct batch *b, size_t len)
{
    if (b->bytes + len > b->cap)
        batch_grow(b, b->bytes + len);
    uint8_t *p = b->memory + b->bytes;
    b->bytes += len;
    return p;
}

static struct batch *batch_new(struct store *s, struct tail *t)
{
    struct ox_link *spare = ox_list_pop_front(&s->journal.spares);
    struct batch *b = spare ? CONTAINER_OF(spare, struct batch, link) : ox_malloc(sizeof *b);
    b->store = s;
    b->tail = t;
    b->offset = t->planned;
    b->bytes = 0;
    b->item_count = b->settled = 0;
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
        ox_direct_copy(batch_stage(b, part->len), part->data, part->len);
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
    ox_batch_header_encode(b->memory, s->salt, &h);
    b->iov = (struct iovec){b->memory, b->bytes};
}

// Writing.

static void batch_done(struct ox_op *op)
{
    struct batch *b = CONTAINER_OF(op, struct batch, op);
    b->over = true;
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
    OX_CRASHPOINT(s->loop, "store.batch.before_write");
    ox_op_init(&b->op, s->loop, batch_done, "journal batch");
    ox_file_write(b->tail->journal_file, &b->op, &b->iov, 1, b->offset, b->sync);
    if (b->tail->planned * STORE_NEXT_AT > b->tail->capacity)
        prepare_want(s);
}

// A sync without bytes: for the interval, and before a segment with unsynced batches is left.
static void journal_submit_sync(struct store *s, struct tail *t)
{
    struct journal *j = &s->journal;
    OX_ASSERT(!j->open);
    struct batch *b = batch_new(s, t);
    b->bytes = 0;
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
static enum journal_room journal_room(struct store *s, enum ox_segment_record_type type, uint64_t payload)
{
    struct journal *j = &s->journal;
    for (;;) {
        uint64_t bytes = batch_bytes_with(j->open, payload);
        bool fits = !j->open || bytes <= s->cfg.batch_bytes_max;
        enum journal_room room = fits ? journal_segment_room(s, type, bytes) : ROOM_NEVER;
        if (room == ROOM_LATER || (room == ROOM_YES && j->open))
            return room;
        if (room == ROOM_YES) {
            j->open = batch_new(s, tail_current(s));
            return ROOM_YES;
        }
        if (j->in_flight >= 2)
            return ROOM_LATER;
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
    enum journal_room room = err == OX_OK ? journal_room(s, OX_REC_ENTRY, bytes) : ROOM_NEVER;
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
    enum journal_room room = journal_room(s, r->type, r->payload.len);
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

// A batch that is large enough goes out although more may come: client, loop and disk work at the same time on different pieces of what is on its way. A
// large batch costs the disk and both threads much less than small ones of the same bytes, so the pieces are as large as that allows.
static void journal_eager(struct store *s)
{
    struct journal *j = &s->journal;
    if (!j->open || j->in_flight >= 2)
        return;
    uint64_t enough = OX_MAX(j->bytes / JOURNAL_EAGER_PIECES, s->cfg.batch_bytes_max / JOURNAL_EAGER_MIN);
    if (j->open->bytes >= OX_MIN(enough, s->cfg.batch_bytes_max / JOURNAL_EAGER_MAX))
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
    journal_eager(s); // what was too much before a batch came back
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
    ox_op_init(&c->op, s->loop, journal_cut_done, "journal cut");
    ox_file_write(b->tail->journal_file, &c->op, &b->iov, 1, b->offset, true);
}
