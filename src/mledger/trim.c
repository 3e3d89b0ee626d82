// trim.c - drops ledgers that every durable cursor has passed and retention doesn't keep: first from the record, then from their place.
#include "mledger/mledger_int.h"

static struct mledger_impl *trim_impl(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct mledger_impl, trim.seq);
}

// True if no durable cursor needs an entry of a ledger.
static bool trim_is_consumed(const struct ox_ml_ledger *l, struct ox_pos slowest)
{
    return l->where.id < slowest.ledger || (l->where.id == slowest.ledger && slowest.entry >= l->entries - 1);
}

static int64_t trim_retention_ms(const struct ox_mledger *ml)
{
    const struct mledger_impl *impl = ml_impl(ml);
    return impl->own_retention ? impl->retention_ms : ml->factory->settings.retention_ms;
}

static int64_t trim_retention_bytes(const struct ox_mledger *ml)
{
    const struct mledger_impl *impl = ml_impl(ml);
    return impl->own_retention ? impl->retention_bytes : ml->factory->settings.retention_bytes;
}

// True if retention lets a consumed ledger go; `kept` are the bytes of the log without those that go before it.
static bool trim_is_expired(const struct ox_mledger *ml, const struct ox_ml_ledger *l, uint64_t kept)
{
    int64_t time_ms = trim_retention_ms(ml), bytes = trim_retention_bytes(ml);
    uint64_t now = ox_wall_ms(ml->factory->loop);
    uint64_t closed = l->closed_ms ? l->closed_ms : now; // an unknown time is not the year 1970
    bool old = time_ms == 0 || (time_ms > 0 && now > closed && now - closed > (uint64_t)time_ms);
    bool big = bytes == 0 || (bytes > 0 && kept > (uint64_t)bytes);
    return old || big;
}

// How long a ledger stays after it was sealed: what it holds may be sent again by a producer that has lost its receipts. Not on a full disk.
static uint64_t trim_wait_ns(const struct ox_mledger *ml, const struct ox_ml_ledger *l)
{
    uint64_t now = ox_now_ns(ml->factory->loop), until = l->sealed_ns + ml->factory->settings.trim_delay_ns;
    return l->sealed_ns && !ml->full && now < until ? until - now : 0;
}

// The id up to which ledgers can go, or -1. The last one, and one that takes appends, never goes.
static int64_t trim_upto(const struct ox_mledger *ml)
{
    int64_t upto = -1;
    uint64_t kept = ml->total_bytes;
    struct ox_pos slowest = OX_POS_LATEST; // without cursors everything is consumed
    (void)ox_cursors_slowest(ml, &slowest);
    for (size_t i = 0; i + 1 < ml->ledger_count; i++) {
        const struct ox_ml_ledger *l = ml->ledgers[i];
        if (!l->sealed || !trim_is_consumed(l, slowest) || !trim_is_expired(ml, l, kept) || trim_wait_ns(ml, l))
            break;
        kept -= l->bytes;
        upto = l->where.id;
    }
    return upto;
}

// The edit may have waited for others: cursors that were moved back or made meanwhile, and holds, count.
static void trim_apply(struct ml_edit *e, struct ox_record *draft)
{
    struct mledger_impl *impl = ml_impl(e->ml);
    impl->trim.upto = e->ml->trim_holds ? -1 : trim_upto(e->ml);
    while (ox_record_count(draft) > 0 && ox_record_get(draft, 0).id <= impl->trim.upto)
        ox_record_drop(draft, ox_record_get(draft, 0).id);
    ml_edit_index(e->ml, draft);
}

// Retention passes with time: logs with sealed ledgers look again now and then.
static void trim_again(struct ox_timer *t)
{
    ox_mledger_trim(CONTAINER_OF(t, struct mledger_impl, trim.timer)->ml);
}

void ml_trim_init(struct ox_mledger *ml)
{
    struct ml_trim *t = &ml_impl(ml)->trim;
    t->edit.apply = trim_apply;
    ox_timer_init(&t->timer, ml->factory->loop, trim_again);
}

void ml_trim_soon(struct ox_mledger *ml)
{
    ox_timer_start(&ml_impl(ml)->trim.timer, ML_TRIM_SOON_NS);
}

void ml_trim_fini(struct ox_mledger *ml)
{
    ox_timer_stop(&ml_impl(ml)->trim.timer);
}

static ox_step trim_record(struct ox_seq *s);
static ox_step trim_recorded(struct ox_seq *s);

static void trim_done(struct ox_seq *s, enum ox_err err)
{
    struct mledger_impl *impl = trim_impl(s);
    if (err != OX_OK && err != OX_E_SHUTDOWN && err != OX_E_FENCED)
        ox_warn(impl->ml->factory->log, "mledger.trim.failed", "log=%s error=%s", impl->ml->name, ox_err_name(err));
    if (err == OX_OK)
        ox_mledger_trim(impl->ml); // something may have become due meanwhile
    else
        ox_timer_start(&impl->trim.timer, ML_TRIM_CHECK_NS);
    ml_poke(impl->ml);
}

void ox_mledger_trim(struct ox_mledger *ml)
{
    struct ml_trim *t = &ml_impl(ml)->trim;
    if (!ml_is_open(ml) || ml->trim_holds || t->seq.active || ml->ledger_count == 0 || !ml->ledgers[0]->sealed)
        return;
    t->upto = trim_upto(ml);
    if (t->upto >= 0)
        ox_seq_start(&t->seq, ml->factory->loop, "mledger.trim", trim_record, trim_done);
    else if (trim_wait_ns(ml, ml->ledgers[0]))
        ox_timer_start(&t->timer, trim_wait_ns(ml, ml->ledgers[0]));
    else if (trim_retention_ms(ml) > 0)
        ox_timer_start(&t->timer, ML_TRIM_CHECK_NS);
}

void ox_mledger_hold_trim(struct ox_mledger *ml)
{
    ml->trim_holds++;
}

void ox_mledger_release_trim(struct ox_mledger *ml)
{
    OX_ASSERT(ml->trim_holds > 0);
    if (--ml->trim_holds == 0)
        ox_mledger_trim(ml);
}

static ox_step trim_record(struct ox_seq *s)
{
    struct mledger_impl *impl = trim_impl(s);
    if (!ml_is_open(impl->ml) || impl->ml->trim_holds)
        return OX_FINISH(s, OX_OK);
    ox_seq_bind(s, &impl->trim.edit.op, "mledger.trim.record");
    ml_edit_start(impl->ml, &impl->trim.edit);
    return OX_WAIT(s, trim_recorded);
}

// A ledger that the node does not name any more leaves memory, then its place.
static void trim_forget(struct ox_mledger *ml, struct ox_ml_ledger *l)
{
    struct mledger_impl *impl = ml_impl(ml);
    struct ox_location where = l->where;
    impl->entries_trimmed += l->entries;
    ox_info(ml->factory->log, "mledger.trimmed", "log=%s ledger=%lld entries=%lld bytes=%llu", ml->name,
            (long long)where.id, (long long)l->entries, (unsigned long long)l->bytes);
    ml->factory->trimmed_ledgers.value++;
    if (l->pins == 0)
        ml_handle_release(l);
    ml_discard_copies(ml->factory, &l->copies, where.id, &impl->owner);
    ml_list_remove(ml, l);
    ox_tail_cache_drop_ledger(&ml->factory->cache, where.id);
    ox_cursors_ledger_gone(ml, where.id);
    ml_discard(ml->factory, where, &impl->owner);
}

static ox_step trim_recorded(struct ox_seq *s)
{
    struct mledger_impl *impl = trim_impl(s);
    struct ox_mledger *ml = impl->ml;
    if (s->err != OX_OK)
        return OX_FINISH(s, s->err);
    OX_CRASHPOINT(s->loop, "trim.after_record");
    while (ml->ledger_count > 0 && ml->ledgers[0]->where.id <= impl->trim.upto)
        trim_forget(ml, ml->ledgers[0]);
    if (ml->ledger_count > 0 && ml->last.ledger < ml->ledgers[0]->where.id)
        ml->last = (struct ox_pos){ml->ledgers[0]->where.id, -1};
    return OX_FINISH(s, OX_OK);
}
