// open_last.c - opening a log, second part: its last ledger is recovered (which fences a former owner) and the last index found.
#include "mledger/open.h"

static ox_step opening_recovered(struct ox_seq *s);
static ox_step opening_probe(struct ox_seq *s);
static ox_step opening_probed(struct ox_seq *s);

ox_step opening_recover(struct ox_seq *s)
{
    struct ml_opening *o = opening_of(s);
    struct ox_mledger *ml = o->ml;
    if (ml->ledger_count == 0)
        return OX_GOTO(s, opening_extend);
    o->last = ml->ledgers[ml->ledger_count - 1];
    if (ml->terminated && o->last->entries > 0 && o->last->closed_ms > 0)
        return OX_GOTO(s, opening_extend); // sealed for good
    ox_seq_bind(s, &o->open.op, "mledger.open.recover");
    ox_router_open(ml->factory->router, &o->open, o->last->where, OX_OPEN_RECOVER, &ml_impl(ml)->owner);
    return OX_WAIT(s, opening_recovered);
}

// The place, whose identity was checked, doesn't have the last ledger. A recorded ledger was durable before its record, so this is a loss (a store restored from
// an older copy, say), how much of one nobody knows: the log stays closed unless losses are to be skipped. Pulsar drops such a ledger silently.
static ox_step opening_last_lost(struct ox_seq *s)
{
    struct ml_opening *o = opening_of(s);
    struct ox_mledger *ml = o->ml;
    bool counted = o->last->entries > 0;
    ox_error(ml->factory->log, "mledger.open.last_lost", "log=%s ledger=%lld place=%s entries=%lld", ml->name,
             (long long)o->last->where.id, ox_router_name(ml->factory->router, o->last->where.place),
             (long long)o->last->entries);
    ml->factory->lost_ledgers.value++;
    if (!counted && !ml->factory->settings.skip_unrecoverable) {
        ox_error(ml->factory->log,
                 "mledger.open.refused", "log=%s ledger=%lld hint=\"its place has lost it: restore the store, or set autoSkipNonRecoverableData=true to go on without it\"",
                 ml->name, (long long)o->last->where.id);
        return opening_fail(s, OX_E_NO_LEDGER);
    }
    if (counted) { // it was sealed once: readers are to learn what is missing
        o->last->lost = true;
        return OX_GOTO(s, opening_extend);
    }
    o->dropped = o->last->where;
    ml_list_remove(ml, o->last);
    o->last = NULL;
    return OX_GOTO(s, opening_extend);
}

static void opening_drop_empty(struct ml_opening *o)
{
    o->dropped = o->last->where;
    o->ml->dropped = o->dropped.id;
    o->delete_dropped = true;
    ml_list_remove(o->ml, o->last);
    o->last = NULL;
}

// It was sealed once, with more entries than its place has now: what is missing is not gone. The record stays, readers are told.
static ox_step opening_last_short(struct ox_seq *s)
{
    struct ml_opening *o = opening_of(s);
    struct ox_mledger *ml = o->ml;
    ox_error(ml->factory->log, "mledger.open.last_short", "log=%s ledger=%lld place=%s recorded=%lld entries=%lld",
             ml->name, (long long)o->last->where.id, ox_router_name(ml->factory->router, o->last->where.place),
             (long long)o->last->entries, (long long)o->open.ledger->info.last_entry + 1);
    ml_handle_keep(o->last, o->open.ledger);
    ml->factory->lost_ledgers.value++;
    return OX_GOTO(s, opening_extend);
}

static ox_step opening_recovered(struct ox_seq *s)
{
    struct ml_opening *o = opening_of(s);
    struct ox_mledger *ml = o->ml;
    if (s->err == OX_E_NO_LEDGER)
        return OX_GOTO(s, opening_last_lost);
    if (s->err != OX_OK) {
        ox_error(ml->factory->log, "mledger.open.last_failed", "log=%s ledger=%lld error=%s", ml->name,
                 (long long)o->last->where.id, ox_err_name(s->err));
        return opening_fail(s, s->err);
    }
    OX_CRASHPOINT(s->loop, "open.after_recover");
    const struct ox_ledger_info *info = &o->open.ledger->info;
    if (info->last_entry + 1 < o->last->entries)
        return OX_GOTO(s, opening_last_short);
    o->last->entries = info->last_entry + 1;
    o->last->bytes = info->length;
    o->last->closed_ms = ox_wall_ms(s->loop);
    ml_handle_keep(o->last, o->open.ledger);
    ml_list_count(ml);
    o->sealed_now = o->last->entries > 0;
    if (!o->sealed_now) {
        opening_drop_empty(o);
        return OX_GOTO(s, opening_extend);
    }
    o->probe = o->last->entries - 1;
    return ml->factory->settings.broker_entry_metadata ? OX_GOTO(s, opening_probe) : OX_GOTO(s, opening_extend);
}

static ox_step opening_probe(struct ox_seq *s)
{
    struct ml_opening *o = opening_of(s);
    if (o->probe < 0 || o->probe < o->last->entries - ML_INDEX_PROBES)
        return OX_GOTO(s, opening_extend);
    ox_seq_bind(s, &o->read.op, "mledger.open.index");
    o->read.first = o->read.last = o->probe;
    o->read.bytes_max = 1;
    ox_ledger_read(o->last->handle, &o->read);
    return OX_WAIT(s, opening_probed);
}

// The index in the last readable entry. Damaged ones behind it count as one message each: the index never goes back.
static ox_step opening_probed(struct ox_seq *s)
{
    struct ml_opening *o = opening_of(s);
    struct mledger_impl *impl = ml_impl(o->ml);
    uint64_t index = 0;
    if (s->err == OX_E_CORRUPT) {
        o->probe--;
        return OX_GOTO(s, opening_probe);
    }
    if (s->err != OX_OK)
        return opening_fail(s, s->err);
    bool found = o->read.count > 0 && ml_header_index(o->read.entries[0], &index) && index < INT64_MAX / 2;
    ox_read_fini(&o->read);
    int64_t behind = o->last->entries - 1 - o->probe;
    if (found)
        impl->acked_index = OX_MAX(impl->acked_index, (int64_t)index + behind);
    return OX_GOTO(s, opening_extend);
}
