// copy.c - one ledger from one place to another: the same entries under the same ids, closed, read again and compared before anybody is told.
//
// What an earlier run left under the same id is told apart by its marker: a finished copy is compared and taken over, an unfinished one is deleted and
// made anew. A stranger's ledger under the id is left alone; the copy gets another physical id.
#include <string.h>

#include "move/storage/data_int.h"

struct copy_batch;
struct copy_append {
    struct ox_append append;
    struct copy_batch *batch;
};
// The appends of one range.
struct copy_batch {
    struct data_copy *copy;
    struct data_range *range;
    size_t left;
    struct copy_append items[];
};

static ox_step copy_source_open(struct ox_seq *q);
static ox_step copy_source_opened(struct ox_seq *q);
static ox_step copy_source_counted(struct ox_seq *q);
static ox_step copy_found_opened(struct ox_seq *q);
static ox_step copy_found_digested(struct ox_seq *q);
static ox_step copy_found_compared(struct ox_seq *q);
static ox_step copy_redo(struct ox_seq *q);
static ox_step copy_redone(struct ox_seq *q);
static ox_step copy_create(struct ox_seq *q);
static ox_step copy_created(struct ox_seq *q);
static ox_step copy_stored(struct ox_seq *q);
static ox_step copy_reopened(struct ox_seq *q);
static ox_step copy_verified(struct ox_seq *q);
static ox_step copy_undo(struct ox_seq *q);
static ox_step copy_undone(struct ox_seq *q);

static struct data_copy *copy_of(struct ox_seq *q)
{
    return CONTAINER_OF(q, struct data_copy, seq);
}

static struct ox_router *copy_router(const struct data_copy *c)
{
    return c->d->st->p.router;
}

static const char *copy_place(const struct data_copy *c, bool at_target)
{
    return ox_router_name(copy_router(c), at_target ? c->to : c->from.place);
}

static void copy_release(struct ox_ledger **l)
{
    if (*l)
        ox_ledger_release(*l);
    *l = NULL;
}

static void copy_done(struct ox_seq *q, enum ox_err err)
{
    struct data_copy *c = copy_of(q);
    copy_release(&c->source);
    copy_release(&c->target);
    ox_kv_fini(&c->custom);
    ox_kv_fini(&c->owner);
    if (err != OX_OK && err != OX_E_CANCELED && err != OX_E_SHUTDOWN)
        ox_warn(c->d->st->p.log, "storage.copy.failed", "log=\"%s\" ledger=%lld error=%s why=\"%s\"", c->log,
                (long long)c->from.id, ox_err_name(err), ox_str_get(&c->why));
    ox_op_finish(&c->op, err);
}

void data_copy_fini(struct data_copy *c)
{
    ox_str_fini(&c->why);
}

void data_copy_start(struct data_copy *c)
{
    struct ox_storage *st = c->d->st;
    ox_op_begin(&c->op);
    c->made = (struct ox_location){c->to, c->from.id, c->from.id};
    c->source = c->target = NULL;
    c->bytes = 0;
    c->bad_entry = -1;
    c->rank = c->d->ranks++;
    c->adopted = c->at_target = c->have_target = c->recover = false;
    c->custom = c->owner = (struct ox_kv){0};
    c->why = (struct ox_str){0};
    ox_ml_owner(st->factory, c->log, NULL, &c->owner);
    ox_seq_start(&c->seq, st->p.loop, "storage.copy", copy_source_open, copy_done);
}

void data_copy_delete(struct data_copy *c, struct ox_ledger_delete *del)
{
    struct ox_kv expected = {0};
    data_marker(c->d->st, &expected, c->log, c->from, -1);
    ox_router_delete(copy_router(c), del, c->made, &expected);
    ox_kv_fini(&expected);
}

// The sentence of a failure, and the way out of the sequence. What was made is deleted, unless the work is only interrupted: the next run does that.
static ox_step copy_fail(struct data_copy *c, enum ox_err err, bool at_target, const char *what)
{
    c->err = err;
    c->at_target = at_target;
    ox_str_addf(&c->why, "%s in place %s: %s", what, copy_place(c, at_target), ox_err_text(err));
    return OX_GOTO(&c->seq, copy_undo);
}

// ---- the source

static ox_step copy_source_open(struct ox_seq *q)
{
    struct data_copy *c = copy_of(q);
    ox_seq_bind(q, &c->open.op, "storage.copy.open");
    ox_router_open(copy_router(c), &c->open, c->from, c->recover ? OX_OPEN_RECOVER : OX_OPEN_READ_ONLY, &c->owner);
    return OX_WAIT(q, copy_source_opened);
}

// Its record is sealed, so nobody writes it any more: where the close was lost it is recovered.
static ox_step copy_source_opened(struct ox_seq *q)
{
    struct data_copy *c = copy_of(q);
    if (q->err != OX_OK)
        return copy_fail(c, q->err, false, "the ledger can't be opened");
    c->source = c->open.ledger;
    if (c->source->info.state != OX_LEDGER_CLOSED && !c->recover) {
        c->recover = true;
        copy_release(&c->source);
        return OX_GOTO(q, copy_source_open);
    }
    return OX_GOTO(q, copy_source_counted);
}

// All that the place has is copied, also beyond the count on record (readers never see it); fewer than on record is a loss.
static ox_step copy_source_counted(struct ox_seq *q)
{
    struct data_copy *c = copy_of(q);
    c->real_entries = c->source->info.last_entry + 1;
    if (c->real_entries < c->entries) {
        c->bad_entry = c->real_entries;
        return copy_fail(c, OX_E_NO_ENTRY, false, "the ledger ends before the count on record");
    }
    if (c->real_entries > c->entries)
        ox_info(c->d->st->p.log, "storage.copy.longer", "log=\"%s\" ledger=%lld recorded=%lld entries=%lld", c->log,
                (long long)c->from.id, (long long)c->entries, (long long)c->real_entries);
    data_marker(c->d->st, &c->custom, c->log, c->from, c->real_entries);
    if (c->physical >= 0)
        c->made.physical = c->physical;
    struct ox_kv expected = {0};
    data_marker(c->d->st, &expected, c->log, c->from, -1);
    ox_seq_bind(q, &c->open.op, "storage.copy.find");
    ox_router_open(copy_router(c), &c->open, c->made, OX_OPEN_READ_ONLY, &expected);
    ox_kv_fini(&expected);
    return OX_WAIT(q, copy_found_opened);
}

static ox_step copy_scan(struct data_copy *c, struct ox_ledger *l, struct throttle *t, ox_step_fn then, const char *name)
{
    c->scan = (struct data_scan){
        .d = c->d, .ledger = l, .count = c->real_entries, .throttle = t, .go_on = c->go_on, .ctx = c->ctx, .wait.rank = c->rank};
    ox_seq_bind(&c->seq, &c->scan.op, name);
    data_scan_start(&c->scan);
    return ox_seq_goto(&c->seq, then, name, OX_STEP_WAIT);
}

// ---- what an earlier run left

static ox_step copy_found_opened(struct ox_seq *q)
{
    struct data_copy *c = copy_of(q);
    bool taken = q->err == OX_E_IDENTITY_MISMATCH || q->err == OX_E_CORRUPT; // somebody else's, or ours and no copy of this one
    c->d->st->conflicts.value += taken;
    if (taken || q->err == OX_E_NO_LEDGER)
        return OX_GOTO(q, copy_create);
    if (q->err != OX_OK)
        return copy_fail(c, q->err, true, "the copy's id can't be looked up");
    c->target = c->open.ledger;
    const struct ox_ledger_info *info = &c->target->info;
    bool complete;
    int64_t id;
    if (!data_marker_read(c->d->st, info, &complete, &id) || !complete || info->last_entry + 1 != c->real_entries ||
        info->length != c->source->info.length)
        return OX_GOTO(q, copy_redo);
    return copy_scan(c, c->source, &c->d->copy, copy_found_digested, "storage.copy.digest");
}

// Reading the source failed: what that means is the same as in a copy.
static ox_step copy_source_failed(struct data_copy *c, enum ox_err err)
{
    c->bad_entry = c->scan.entry;
    if (c->scan.where[0])
        ox_str_addf(&c->why, "%s: ", c->scan.where);
    return copy_fail(c, err, false, "an entry can't be read");
}

// What was computed when the ledger came here. If the source isn't that any more, whoever has the right bytes (a copy on record, say) is left alone.
static bool copy_is_other_than_recorded(const struct data_copy *c)
{
    return c->expected && strcmp(c->expected, c->digest) != 0;
}

#define COPY_NOT_AS_RECORDED "the entries are not those that the digest on record was computed of"

static ox_step copy_found_digested(struct ox_seq *q)
{
    struct data_copy *c = copy_of(q);
    if (q->err != OX_OK)
        return copy_source_failed(c, q->err);
    memcpy(c->digest, c->scan.digest, sizeof c->digest);
    if (copy_is_other_than_recorded(c))
        return copy_fail(c, OX_E_CHECKSUM, false, COPY_NOT_AS_RECORDED);
    return copy_scan(c, c->target, &c->d->verify, copy_found_compared, "storage.copy.compare");
}

static ox_step copy_found_compared(struct ox_seq *q)
{
    struct data_copy *c = copy_of(q);
    if (q->err == OX_E_CANCELED || q->err == OX_E_SHUTDOWN)
        return copy_fail(c, q->err, true, "the copy can't be read");
    if (q->err != OX_OK || strcmp(c->digest, c->scan.digest) != 0)
        return OX_GOTO(q, copy_redo);
    c->adopted = true;
    c->d->st->conflicts.value++;
    ox_info(c->d->st->p.log, "storage.copy.adopted", "log=\"%s\" ledger=%lld physical=%lld entries=%lld", c->log,
            (long long)c->from.id, (long long)c->made.physical, (long long)c->real_entries);
    return OX_FINISH(q, OX_OK);
}

static ox_step copy_redo(struct ox_seq *q)
{
    struct data_copy *c = copy_of(q);
    copy_release(&c->target);
    ox_info(c->d->st->p.log, "storage.copy.redone", "log=\"%s\" ledger=%lld physical=%lld", c->log,
            (long long)c->from.id, (long long)c->made.physical);
    ox_seq_bind(q, &c->del.op, "storage.copy.redo");
    data_copy_delete(c, &c->del);
    return OX_WAIT(q, copy_redone);
}

static ox_step copy_redone(struct ox_seq *q)
{
    struct data_copy *c = copy_of(q);
    c->have_target = false;
    if (q->err != OX_OK && q->err != OX_E_NO_LEDGER)
        return copy_fail(c, q->err, true, "an unfinished copy can't be deleted");
    return OX_GOTO(q, copy_create);
}

// ---- the copy

static ox_step copy_create(struct ox_seq *q)
{
    struct data_copy *c = copy_of(q);
    ox_seq_bind(q, &c->create.op, "storage.copy.create");
    ox_router_create_copy(copy_router(c), &c->create, c->to, c->from.id, &c->custom);
    return OX_WAIT(q, copy_created);
}

static void copy_joined(struct data_copy *c)
{
    if (--c->joins == 0)
        ox_seq_resume(&c->seq, OX_OK);
}

static void copy_scanned(struct ox_op *op)
{
    struct data_copy *c = CONTAINER_OF(op, struct data_copy, scan.op);
    c->err = op->err;
    copy_joined(c);
}

static void copy_closed(struct ox_op *op)
{
    struct data_copy *c = CONTAINER_OF(op, struct data_copy, close.op);
    c->close_err = op->err;
    copy_joined(c);
}

// The close goes right behind the last append, so that both wait for one sync.
static void copy_close(struct data_copy *c)
{
    c->joins++;
    ox_op_init(&c->close.op, c->seq.loop, copy_closed, "storage.copy.close");
    ox_ledger_close(c->target, &c->close);
}

static void copy_appended(struct ox_op *op)
{
    struct copy_append *a = CONTAINER_OF(op, struct copy_append, append.op);
    struct copy_batch *b = a->batch;
    struct data_copy *c = b->copy;
    if (op->err != OX_OK) {
        c->at_target = true;
        data_scan_fail(&c->scan, op->err);
    }
    if (--b->left > 0)
        return;
    struct data_range *r = b->range;
    if (op->err == OX_OK) {
        c->bytes += r->bytes;
        c->d->st->data.bytes += r->bytes;
        OX_CRASHPOINT(c->seq.loop, "copy.after_range");
    }
    ox_free(b);
    data_range_unref(r);
}

static void copy_sink(struct data_scan *s, struct data_range *r)
{
    struct data_copy *c = CONTAINER_OF(s, struct data_copy, scan);
    struct copy_batch *b = ox_malloc(sizeof *b + r->count * sizeof b->items[0]);
    b->copy = c;
    b->range = r;
    b->left = r->count;
    for (size_t i = 0; i < r->count; i++) {
        struct copy_append *a = &b->items[i];
        a->batch = b;
        a->append.entry = c->appended++;
        a->append.parts[0] = r->entries[i];
        a->append.part_count = r->entries[i].len > 0 ? 1 : 0;
        ox_op_init(&a->append.op, c->seq.loop, copy_appended, "storage.copy.append");
        ox_ledger_append(c->target, &a->append);
    }
    if (c->appended == c->real_entries)
        copy_close(c);
}

static ox_step copy_created(struct ox_seq *q)
{
    struct data_copy *c = copy_of(q);
    if (q->err != OX_OK)
        return copy_fail(c, q->err, true, "the copy can't be made");
    c->target = c->create.ledger;
    c->made = c->create.location;
    c->have_target = true;
    OX_CRASHPOINT(q->loop, "copy.after_create");
    c->scan = (struct data_scan){.d = c->d,
                                 .ledger = c->source,
                                 .count = c->real_entries,
                                 .throttle = &c->d->copy,
                                 .go_on = c->go_on,
                                 .ctx = c->ctx,
                                 .wait.rank = c->rank,
                                 .sink = copy_sink};
    c->appended = 0;
    c->joins = 1;
    c->close_err = OX_OK;
    ox_op_init(&c->scan.op, q->loop, copy_scanned, "storage.copy.scan");
    data_scan_start(&c->scan);
    if (c->real_entries == 0)
        copy_close(c);
    return OX_WAIT(q, copy_stored);
}

static ox_step copy_stored(struct ox_seq *q)
{
    struct data_copy *c = copy_of(q);
    if (c->err != OX_OK && c->at_target)
        return copy_fail(c, c->err, true, "an entry can't be stored");
    if (c->err != OX_OK)
        return copy_source_failed(c, c->err);
    OX_CRASHPOINT(q->loop, "copy.after_entries");
    if (c->close_err != OX_OK)
        return copy_fail(c, c->close_err, true, "the copy can't be closed");
    OX_CRASHPOINT(q->loop, "copy.after_close");
    if (c->close.last_entry + 1 != c->real_entries || c->close.length != c->scan.bytes)
        return copy_fail(c, OX_E_CONFLICT, true, "the copy was closed at another end than it has");
    memcpy(c->digest, c->scan.digest, sizeof c->digest);
    if (copy_is_other_than_recorded(c))
        return copy_fail(c, OX_E_CHECKSUM, false, COPY_NOT_AS_RECORDED);
    copy_release(&c->target);
    ox_seq_bind(q, &c->open.op, "storage.copy.reopen");
    ox_router_open(copy_router(c), &c->open, c->made, OX_OPEN_READ_ONLY, &c->custom);
    return OX_WAIT(q, copy_reopened);
}

static ox_step copy_reopened(struct ox_seq *q)
{
    struct data_copy *c = copy_of(q);
    if (q->err != OX_OK)
        return copy_fail(c, q->err, true, "the copy can't be opened");
    c->target = c->open.ledger;
    if (c->target->info.state != OX_LEDGER_CLOSED || c->target->info.last_entry + 1 != c->real_entries)
        return copy_fail(c, OX_E_CONFLICT, true, "the copy isn't closed at its end");
    return copy_scan(c, c->target, &c->d->verify, copy_verified, "storage.copy.verify");
}

static ox_step copy_verified(struct ox_seq *q)
{
    struct data_copy *c = copy_of(q);
    if (q->err == OX_OK && strcmp(c->digest, c->scan.digest) != 0)
        q->err = OX_E_CHECKSUM;
    if (q->err != OX_OK)
        return copy_fail(c, q->err, true, "the copy isn't what was written");
    OX_CRASHPOINT(q->loop, "copy.after_verify");
    c->d->m_entries.value += c->real_entries;
    return OX_FINISH(q, OX_OK);
}

// ---- failure

static ox_step copy_undo(struct ox_seq *q)
{
    struct data_copy *c = copy_of(q);
    copy_release(&c->target);
    c->d->st->data.bytes -= OX_MIN(c->bytes, c->d->st->data.bytes);
    if (!c->have_target || c->err == OX_E_CANCELED || c->err == OX_E_SHUTDOWN)
        return OX_FINISH(q, c->err);
    ox_seq_bind(q, &c->del.op, "storage.copy.undo");
    data_copy_delete(c, &c->del);
    return OX_WAIT(q, copy_undone);
}

// Whether that worked or not: what is left is found by its marker.
static ox_step copy_undone(struct ox_seq *q)
{
    return OX_FINISH(q, copy_of(q)->err);
}
