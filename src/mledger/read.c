// read.c - reads: from the tail cache, else from the ledgers; lost ledgers and damaged entries are errors, or passed and counted.
#include <string.h>

#include "mledger/mledger_int.h"

static ox_step read_start(struct ox_seq *s);
static ox_step read_open(struct ox_seq *s);
static ox_step read_opened(struct ox_seq *s);
static ox_step read_entries(struct ox_seq *s);
static ox_step read_answered(struct ox_seq *s);

// What a read asks of a place that is not the active one: it may be on its way out and never answer. Lives until the answer comes; a read that has not got it
// in time goes on without.
struct ml_ask {
    struct ox_ml_read *read;     // NULL: it has ended
    struct ox_ml_ledger *ledger; // pinned from then on
    struct ox_ledger_open open;  // one of the two
    struct ox_read entries;
    bool opens, asked;
    struct ox_timer limit;
};

static struct ox_ml_read *read_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct ox_ml_read, seq);
}

static void read_count(struct ox_ml_read *r)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < r->count; i++)
        bytes += r->entries[i].data.len;
    r->ml->read_entries += r->count;
    r->ml->read_bytes += bytes;
    if (!r->ledger)
        return; // the cache had it
    r->ml->store_read_entries += r->count;
    r->ml->factory->store_read_bytes += bytes;
}

static void read_done(struct ox_seq *s, enum ox_err err)
{
    struct ox_ml_read *r = read_of(s);
    struct mledger_impl *impl = ml_impl(r->ml);
    read_count(r);
    if (r->ledger)
        ml_handle_unpin(r->ledger);
    r->ledger = NULL;
    impl->reads--;
    ox_op_finish(&r->op, err);
    ml_poke(impl->ml);
}

void ox_mledger_read(struct ox_mledger *ml, struct ox_ml_read *r)
{
    OX_ASSERT(r->entries_max > 0);
    ox_op_begin(&r->op);
    r->ml = ml;
    r->entries = NULL;
    r->count = 0;
    r->next = r->from;
    r->ledger = NULL;
    r->single = false;
    ml_impl(ml)->reads++;
    ox_seq_start(&r->seq, ml->factory->loop, "mledger.read", read_start, read_done);
}

void ox_ml_read_fini(struct ox_ml_read *r)
{
    for (size_t i = 0; i < r->count; i++)
        ox_buf_unref(&r->entries[i].data);
    ox_free(r->entries);
    r->entries = NULL;
    r->count = 0;
}

// Moves r->next to the first entry at or behind it that is acknowledged, and returns its ledger; NULL if there is none yet.
static struct ox_ml_ledger *read_locate(struct ox_ml_read *r)
{
    struct ox_mledger *ml = r->ml;
    for (size_t i = ml_list_at(ml, r->next.ledger); i < ml->ledger_count; i++) {
        struct ox_ml_ledger *l = ml->ledgers[i];
        if (l->where.id != r->next.ledger)
            r->next = (struct ox_pos){l->where.id, 0};
        r->next.entry = OX_MAX(r->next.entry, 0);
        if (r->next.entry < l->entries)
            return l;
        if (!l->sealed)
            return NULL;
    }
    return NULL;
}

static void read_take(struct ox_ml_read *r, struct ox_buf take_entry)
{
    if ((r->count & (r->count - 1)) == 0) // a power of two: full
        r->entries = ox_realloc(r->entries, r->count ? 2 * r->count : 1, sizeof *r->entries);
    r->entries[r->count++] = (struct ox_entry){r->next, take_entry};
    r->next.entry++;
}

// Takes what the tail cache has, up to the end of the ledger.
static void read_cached(struct ox_ml_read *r, const struct ox_ml_ledger *l)
{
    uint64_t bytes = 0;
    struct ox_buf entry;
    while (r->next.entry < l->entries && r->count < r->entries_max && (r->count == 0 || bytes < r->bytes_max) &&
           ox_tail_cache_get(&r->ml->factory->cache, r->next, &entry)) {
        bytes += entry.len;
        read_take(r, entry);
    }
}

static enum ox_err read_refused_by(const struct ox_mledger *ml)
{
    if (ml->state == OX_ML_FENCED)
        return OX_E_FENCED;
    return ml_is_open(ml) || ml->state == OX_ML_FAILED ? OX_OK : OX_E_SHUTDOWN;
}

// A ledger known to be lost is passed without asking again.
static ox_step read_pass_ledger(struct ox_seq *s, const struct ox_ml_ledger *l)
{
    struct ox_ml_read *r = read_of(s);
    r->next = (struct ox_pos){l->where.id, l->entries};
    if (r->count == 0)
        (void)read_locate(r);
    return OX_FINISH(s, OX_OK);
}

static ox_step read_start(struct ox_seq *s)
{
    struct ox_ml_read *r = read_of(s);
    enum ox_err err = read_refused_by(r->ml);
    struct ox_ml_ledger *l = err == OX_OK ? read_locate(r) : NULL;
    if (!l)
        return OX_FINISH(s, err == OX_OK ? OX_E_NO_ENTRY : err);
    if (ml_is_skipped(r->ml, l))
        return read_pass_ledger(s, l);
    read_cached(r, l);
    if (r->count > 0)
        return OX_FINISH(s, OX_OK);
    r->ledger = l;
    ml_handle_pin(l);
    return l->handle ? OX_GOTO(s, read_entries) : OX_GOTO(s, read_open);
}

// ---- other places ----------------------------------------------------------------------------------------------------

static bool read_is_away(const struct ox_ml_read *r)
{
    return r->ledger->where.place != r->ml->factory->router->active;
}

// In time: the answer is the read's. Too late: nobody's, but a handle serves the next read.
static void ask_answered(struct ml_ask *a, enum ox_err err)
{
    struct ox_ml_read *r = a->read;
    ox_timer_stop(&a->limit);
    if (r) {
        r->open.ledger = a->open.ledger;
        memcpy(r->read.where, a->entries.where, sizeof r->read.where);
        r->read.entries = a->entries.entries;
        r->read.count = a->entries.count;
        ox_free(a);
        ox_seq_resume(&r->seq, err);
        return;
    }
    struct mledger_impl *impl = ml_impl(a->ledger->ml);
    if (err == OX_OK && a->opens && a->ledger->gone)
        ox_ledger_release(a->open.ledger);
    else if (err == OX_OK && a->opens)
        ml_handle_keep(a->ledger, a->open.ledger);
    else if (err == OX_OK)
        ox_read_fini(&a->entries);
    a->ledger->late--;
    ml_handle_unpin(a->ledger);
    impl->reads--;
    ox_free(a);
    ml_poke(impl->ml);
}

static void ask_opened(struct ox_op *op)
{
    ask_answered(CONTAINER_OF(op, struct ml_ask, open.op), op->err);
}

static void ask_read(struct ox_op *op)
{
    ask_answered(CONTAINER_OF(op, struct ml_ask, entries.op), op->err);
}

static void ask_late(struct ox_timer *t)
{
    struct ml_ask *a = CONTAINER_OF(t, struct ml_ask, limit);
    struct ox_ml_read *r = a->read;
    struct ox_ml_factory *f = r->ml->factory;
    ox_warn(f->log, "mledger.read.late", "log=%s ledger=%lld place=%s", r->ml->name, (long long)a->ledger->where.id,
            ox_router_name(f->router, a->ledger->where.place));
    ox_seq_resume(&r->seq, OX_E_TIMEOUT);
    if (!a->asked) {
        ox_free(a);
        return;
    }
    a->read = NULL;
    a->ledger->late++;
    ml_handle_pin(a->ledger);
    ml_impl(r->ml)->reads++;
}

// While many answers of a ledger are outstanding it is not asked once more: what waits is bounded, however often readers try.
static struct ml_ask *ask_new(struct ox_ml_read *r)
{
    struct ox_ml_factory *f = r->ml->factory;
    struct ml_ask *a = ox_malloc(sizeof *a);
    a->read = r;
    a->ledger = r->ledger;
    a->asked = r->ledger->late < ML_LATE_MAX;
    ox_timer_init(&a->limit, f->loop, ask_late);
    ox_timer_start(&a->limit, f->settings.away_read_ns);
    return a;
}

static ox_step read_open_away(struct ox_seq *s)
{
    struct ox_ml_read *r = read_of(s);
    struct ml_ask *a = ask_new(r);
    a->opens = true;
    ox_op_init(&a->open.op, s->loop, ask_opened, "mledger.read.open");
    if (a->asked)
        ox_router_open(r->ml->factory->router, &a->open, r->ledger->where, OX_OPEN_READ_ONLY, &ml_impl(r->ml)->owner);
    return OX_WAIT(s, read_opened);
}

static ox_step read_entries_away(struct ox_seq *s)
{
    struct ox_ml_read *r = read_of(s);
    struct ml_ask *a = ask_new(r);
    a->entries.first = r->read.first;
    a->entries.last = r->read.last;
    a->entries.bytes_max = r->read.bytes_max;
    ox_op_init(&a->entries.op, s->loop, ask_read, "mledger.read.entries");
    if (a->asked)
        ox_ledger_read(r->ledger->handle, &a->entries);
    return OX_WAIT(s, read_answered);
}

// ---- one ledger ------------------------------------------------------------------------------------------------------

static ox_step read_open(struct ox_seq *s)
{
    struct ox_ml_read *r = read_of(s);
    if (read_is_away(r))
        return read_open_away(s);
    ox_seq_bind(s, &r->open.op, "mledger.read.open");
    ox_router_open(r->ml->factory->router, &r->open, r->ledger->where, OX_OPEN_READ_ONLY, &ml_impl(r->ml)->owner);
    return OX_WAIT(s, read_opened);
}

// The ledger was trimmed or brought elsewhere under the read: what the log is now is looked at anew.
static ox_step read_again(struct ox_seq *s)
{
    struct ox_ml_read *r = read_of(s);
    ml_handle_unpin(r->ledger);
    r->ledger = NULL;
    r->single = false;
    return OX_GOTO(s, read_start);
}

// A whole ledger can't be read. Skipping is on: one logged loss, cursors step over it (trap S08).
static ox_step read_lost_ledger(struct ox_seq *s, enum ox_err err)
{
    struct ox_ml_read *r = read_of(s);
    struct ox_ml_ledger *l = r->ledger;
    struct ox_ml_factory *f = r->ml->factory;
    if (!l->lost) {
        ox_error(f->log, "mledger.read.lost_ledger", "log=%s ledger=%lld entries=%lld error=%s skipped=%s", r->ml->name,
                 (long long)l->where.id, (long long)l->entries, ox_err_name(err),
                 f->settings.skip_unrecoverable ? "yes" : "no");
        f->lost_ledgers.value++;
        l->lost = true;
        if (f->settings.skip_unrecoverable) {
            f->lost_entries.value += l->entries;
            ox_cursors_ledger_gone(r->ml, l->where.id);
        }
    }
    return f->settings.skip_unrecoverable ? read_pass_ledger(s, l) : OX_FINISH(s, err);
}

static ox_step read_opened(struct ox_seq *s)
{
    struct ox_ml_read *r = read_of(s);
    if (s->err != OX_OK && r->ledger->gone)
        return read_again(s);
    if (s->err != OX_OK)
        ox_router_note_read(r->ml->factory->router, r->ledger->where.place, s->err);
    if (s->err == OX_E_NO_LEDGER || s->err == OX_E_CORRUPT)
        return read_lost_ledger(s, s->err);
    if (s->err != OX_OK)
        return OX_FINISH(s, s->err);
    r->ledger->lost = false;
    if (r->ledger->gone) {
        ox_ledger_release(r->open.ledger);
        return read_again(s);
    }
    ml_handle_keep(r->ledger, r->open.ledger);
    return OX_GOTO(s, read_entries);
}

static ox_step read_entries(struct ox_seq *s)
{
    struct ox_ml_read *r = read_of(s);
    int64_t wanted = r->single ? 1 : OX_MIN((int64_t)r->entries_max, ML_READ_ENTRIES_MAX);
    r->read.first = r->next.entry;
    r->read.last = OX_MIN(r->next.entry + wanted, r->ledger->entries) - 1;
    r->read.bytes_max = r->bytes_max;
    if (read_is_away(r))
        return read_entries_away(s);
    ox_seq_bind(s, &r->read.op, "mledger.read.entries");
    ox_ledger_read(r->ledger->handle, &r->read);
    return OX_WAIT(s, read_answered);
}

// One entry is damaged. Skipping is on: passed, logged and counted.
static ox_step read_lost_entry(struct ox_seq *s, enum ox_err err)
{
    struct ox_ml_read *r = read_of(s);
    struct ox_ml_factory *f = r->ml->factory;
    ox_error(f->log, "mledger.read.lost_entry", "log=%s position=" OX_POS_FMT " error=%s where=" OX_LOG_Q " skipped=%s",
             r->ml->name, OX_POS_ARG(r->next), ox_err_name(err), r->read.where,
             f->settings.skip_unrecoverable ? "yes" : "no");
    if (!f->settings.skip_unrecoverable)
        return OX_FINISH(s, OX_E_CORRUPT);
    f->lost_entries.value++;
    r->next.entry++;
    (void)read_locate(r);
    return OX_FINISH(s, OX_OK);
}

static ox_step read_answered(struct ox_seq *s)
{
    struct ox_ml_read *r = read_of(s);
    if (s->err != OX_OK && r->ledger->gone)
        return read_again(s);
    ox_router_note_read(r->ml->factory->router, r->ledger->where.place, s->err);
    bool damaged = s->err == OX_E_CORRUPT || s->err == OX_E_NO_ENTRY; // the record counts an entry that its ledger lacks
    if (damaged && !r->single && r->read.last > r->read.first) {
        r->single = true;
        return OX_GOTO(s, read_entries);
    }
    if (s->err == OX_E_NO_LEDGER)
        return read_lost_ledger(s, s->err);
    if (damaged)
        return read_lost_entry(s, s->err);
    if (s->err != OX_OK)
        return OX_FINISH(s, s->err);
    for (size_t i = 0; i < r->read.count && r->count < r->entries_max; i++)
        read_take(r, ox_buf_ref(r->read.entries[i]));
    ox_read_fini(&r->read);
    OX_ASSERT(r->count > 0);
    return OX_FINISH(s, OX_OK);
}
