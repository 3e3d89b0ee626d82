// open.c - opening a log: places, node, last ledger, a fresh ledger, one compare-and-set, cursors.
#include "mledger/open.h"

#include <string.h>

struct ml_opening *opening_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct ml_opening, seq);
}

static ox_step opening_start(struct ox_seq *s);
static ox_step opening_undo(struct ox_seq *s);
static ox_step opening_made(struct ox_seq *s);
static ox_step opening_record(struct ox_seq *s);
static ox_step opening_recorded(struct ox_seq *s);
static ox_step opening_cursors(struct ox_seq *s);
static ox_step opening_ready(struct ox_seq *s);

// Tells the caller; the job is over.
static void opening_done(struct ox_seq *s, enum ox_err err)
{
    struct ml_opening *o = opening_of(s);
    struct ox_ml_open *op = o->op;
    op->ml = err == OX_OK ? o->ml : NULL;
    struct ox_mledger *opened = op->ml;
    ox_free(o);
    ox_op_finish(&op->op, err);
    if (opened)
        ml_trim_soon(opened);
}

void ox_mledger_open(struct ox_ml_factory *f, struct ox_ml_open *op, const char *name, bool create)
{
    ox_op_begin(&op->op);
    op->ml = NULL;
    if (ox_map_find_str(&f->open, name)) {
        ox_op_finish(&op->op, OX_E_BUSY);
        return;
    }
    struct ml_opening *o = ox_malloc(sizeof *o);
    o->op = op;
    o->create = create;
    o->dropped.id = -1;
    o->ml = ml_new(f, name);
    ox_seq_start(&o->seq, f->loop, "mledger.open", opening_start, opening_done);
}

// Nobody works on the nodes of this log any more; whoever wants to from now on finds it being opened.
static ox_step opening_claimed(struct ox_seq *s)
{
    ml_claim_release(&opening_of(s)->claim);
    return OX_GOTO(s, opening_places);
}

static ox_step opening_start(struct ox_seq *s)
{
    struct ml_opening *o = opening_of(s);
    if (!ml_is_claimed(o->ml->factory, o->ml->name))
        return OX_GOTO(s, opening_places);
    ox_seq_bind(s, &o->claim.op, "mledger.open.claim");
    ml_claim(o->ml->factory, &o->claim, o->ml->name);
    return OX_WAIT(s, opening_claimed);
}

ox_step opening_fail(struct ox_seq *s, enum ox_err err)
{
    opening_of(s)->failed = err;
    return OX_GOTO(s, opening_undo);
}

// Takes the half-open log down again. Cursors that were opened are closed first.
static ox_step opening_undone(struct ox_seq *s)
{
    struct ml_opening *o = opening_of(s);
    ml_set_state(o->ml, OX_ML_CLOSED, ox_err_name(o->failed));
    ml_free(o->ml);
    return OX_FINISH(s, o->failed);
}

static ox_step opening_undo(struct ox_seq *s)
{
    struct ml_opening *o = opening_of(s);
    if (ox_list_empty(&o->ml->cursors))
        return OX_GOTO(s, opening_undone);
    ox_seq_bind(s, &o->step, "mledger.open.undo_cursors");
    ox_cursors_close(o->ml, &o->step);
    return OX_WAIT(s, opening_undone);
}

// ---- the fresh ledger ------------------------------------------------------------------------------------------------

ox_step opening_extend(struct ox_seq *s)
{
    struct ml_opening *o = opening_of(s);
    if (o->ml->terminated)
        return OX_GOTO(s, opening_record);
    ox_seq_bind(s, &o->making.op, "mledger.open.create");
    int64_t above = OX_MAX(ml_list_max(o->ml), o->dropped.id);
    struct ox_ml_factory *f = o->ml->factory;
    ox_router_create_in(f->router, &o->making, ox_ml_target(f, o->ml->name), above, &ml_impl(o->ml)->owner);
    return OX_WAIT(s, opening_made);
}

// The disk is full: the log serves what it has, so that it can be consumed and trimmed, and refuses appends until it is opened anew (rule 13).
static ox_step opening_full(struct ox_seq *s)
{
    struct ml_opening *o = opening_of(s);
    o->ml->full = true;
    ox_warn(o->ml->factory->log, "mledger.open.full", "log=%s hint=" OX_LOG_Q, o->ml->name,
            "read only until there is space for a new ledger");
    return OX_GOTO(s, opening_record);
}

static ox_step opening_made(struct ox_seq *s)
{
    struct ml_opening *o = opening_of(s);
    struct mledger_impl *impl = ml_impl(o->ml);
    if (s->err == OX_E_NO_SPACE && o->ml->ledger_count > 0)
        return OX_GOTO(s, opening_full);
    if (s->err != OX_OK)
        return opening_fail(s, s->err);
    OX_CRASHPOINT(s->loop, "open.after_create");
    impl->current = ml_list_add(o->ml, o->making.location);
    impl->current->handle = o->making.ledger;
    impl->current->created_ns = ox_now_ns(s->loop);
    return OX_GOTO(s, opening_record);
}

static void opening_apply(struct ml_edit *e, struct ox_record *draft)
{
    struct ml_opening *o = CONTAINER_OF(e, struct ml_opening, edit);
    struct mledger_impl *impl = ml_impl(o->ml);
    if (o->dropped.id >= 0)
        ox_record_drop(draft, o->dropped.id);
    if (o->sealed_now)
        ox_record_seal(draft, o->last->where.id, o->last->entries, o->last->bytes, o->last->closed_ms);
    if (impl->current)
        ml_edit_append(o->ml, draft, impl->current->where);
    ml_edit_index(o->ml, draft);
}

static ox_step opening_record(struct ox_seq *s)
{
    struct ml_opening *o = opening_of(s);
    bool changed = o->dropped.id >= 0 || o->sealed_now || ml_impl(o->ml)->current;
    if (!changed)
        return OX_GOTO(s, opening_cursors);
    o->edit.apply = opening_apply;
    ox_seq_bind(s, &o->edit.op, "mledger.open.record");
    ml_edit_start(o->ml, &o->edit);
    return OX_WAIT(s, opening_recorded);
}

// An error other than FENCED says that the node does not name the fresh ledger. After FENCED nobody knows: the sweep for orphans looks.
static ox_step opening_not_recorded(struct ox_seq *s)
{
    struct ml_opening *o = opening_of(s);
    struct mledger_impl *impl = ml_impl(o->ml);
    enum ox_err err = s->err;
    if (impl->current && err != OX_E_FENCED && err != OX_E_SHUTDOWN) {
        struct ox_location where = impl->current->where;
        ml_list_remove(o->ml, impl->current);
        impl->current = NULL;
        ml_discard(o->ml->factory, where, &impl->owner);
    }
    return opening_fail(s, err);
}

static ox_step opening_recorded(struct ox_seq *s)
{
    struct ml_opening *o = opening_of(s);
    struct mledger_impl *impl = ml_impl(o->ml);
    if (s->err != OX_OK)
        return OX_GOTO(s, opening_not_recorded);
    OX_CRASHPOINT(s->loop, "open.after_record");
    if (impl->current)
        impl->current->recorded = true;
    if (o->delete_dropped)
        ml_discard(o->ml->factory, o->dropped, &impl->owner);
    return OX_GOTO(s, opening_cursors);
}

// ---- cursors ---------------------------------------------------------------------------------------------------------

// The last acknowledged entry of the log as it is now.
static void opening_find_end(struct ox_mledger *ml)
{
    struct mledger_impl *impl = ml_impl(ml);
    for (size_t i = 0; i < ml->ledger_count; i++)
        ml->ledgers[i]->sealed = ml->ledgers[i] != impl->current;
    ml_list_count(ml);
    ml->next_index = (uint64_t)(impl->acked_index + 1);
    int64_t newest = ml_list_max(ml);
    ml->last = (struct ox_pos){newest, -1};
    (void)ox_record_terminated(impl->record, &ml->last); // of an empty log; others' last entry is the same
    for (size_t i = ml->ledger_count; i-- > 0;)
        if (ml->ledgers[i]->entries > 0) {
            ml->last = (struct ox_pos){ml->ledgers[i]->where.id, ml->ledgers[i]->entries - 1};
            return;
        }
}

static ox_step opening_cursors(struct ox_seq *s)
{
    struct ml_opening *o = opening_of(s);
    opening_find_end(o->ml);
    ox_seq_bind(s, &o->step, "mledger.open.cursors");
    ox_cursors_recover(o->ml, &o->step);
    return OX_WAIT(s, opening_ready);
}

static ox_step opening_ready(struct ox_seq *s)
{
    struct ml_opening *o = opening_of(s);
    struct mledger_impl *impl = ml_impl(o->ml);
    if (s->err == OX_OK)
        s->err = impl->fail_err;
    if (s->err != OX_OK)
        return opening_fail(s, s->err);
    ml_set_state(o->ml, OX_ML_OPEN, "opened");
    if (impl->current)
        ox_timer_start(&impl->age, ml_age_max_ns(impl));
    ml_follower_check(&impl->follower); // another place may have become active meanwhile
    ox_cursors_check(o->ml);
    return OX_FINISH(s, OX_OK);
}
