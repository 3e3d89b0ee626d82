// terminate.c - the end of a log for good: appends in flight end, the current ledger closes at its true end, one compare-and-set seals it and names the last position.
#include "mledger/mledger_int.h"

static ox_step term_quiet(struct ox_seq *s);
static ox_step term_close(struct ox_seq *s);
static ox_step term_closed(struct ox_seq *s);
static ox_step term_learned(struct ox_seq *s);
static ox_step term_record(struct ox_seq *s);
static ox_step term_recorded(struct ox_seq *s);

static struct mledger_impl *term_impl(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct ml_term, seq)->impl;
}

static void term_pause_over(struct ox_timer *t)
{
    ox_seq_resume(&CONTAINER_OF(t, struct ml_term, pause)->seq, OX_OK);
}

static void term_apply(struct ml_edit *e, struct ox_record *draft)
{
    const struct ox_mledger *ml = e->ml;
    const struct ox_ml_ledger *l = ml_impl(ml)->current;
    if (l && l->entries > 0)
        ox_record_seal(draft, l->where.id, l->entries, l->bytes, ml_impl(ml)->term->closed_ms);
    else if (l)
        ox_record_drop(draft, l->where.id);
    ox_record_terminate(draft, ml->last);
    ml_edit_index(e->ml, draft);
}

static struct ml_term *term_new(struct ox_mledger *ml)
{
    struct ml_term *t = ox_malloc(sizeof *t);
    t->impl = ml_impl(ml);
    t->edit.apply = term_apply;
    ox_list_init(&t->ops);
    ox_timer_init(&t->pause, ml->factory->loop, term_pause_over);
    return t;
}

static void term_done(struct ox_seq *s, enum ox_err err)
{
    struct mledger_impl *impl = term_impl(s);
    for (struct ox_link *link; (link = ox_list_pop_front(&impl->term->ops));)
        ox_op_finish(CONTAINER_OF(link, struct ox_op, link), err);
    ml_wake(impl->ml);
    ml_poke(impl->ml);
}

void ox_mledger_terminate(struct ox_mledger *ml, struct ox_op *op)
{
    struct mledger_impl *impl = ml_impl(ml);
    ox_op_begin(op);
    if (impl->fail_err != OX_OK || !ml_is_open(ml) || ml->terminated) {
        enum ox_err closed = ml_is_open(ml) ? OX_OK : OX_E_SHUTDOWN;
        ox_op_finish(op, impl->fail_err != OX_OK ? impl->fail_err : closed);
        return;
    }
    if (!impl->term)
        impl->term = term_new(ml);
    ox_list_push_back(&impl->term->ops, &op->link);
    if (!impl->term->seq.active)
        ox_seq_start(&impl->term->seq, ml->factory->loop, "mledger.terminate", term_quiet, term_done);
}

void ml_term_poke(struct ox_mledger *ml)
{
    struct ml_term *t = ml_impl(ml)->term;
    if (!t || !t->waiting)
        return;
    t->waiting = false;
    ox_seq_resume(&t->seq, OX_OK);
}

static enum ox_err term_refused_by(const struct mledger_impl *impl)
{
    if (impl->fail_err != OX_OK)
        return impl->fail_err;
    return ml_is_open(impl->ml) ? OX_OK : OX_E_SHUTDOWN;
}

// New appends are refused already; those before them, and a rollover, end first.
static ox_step term_quiet(struct ox_seq *s)
{
    struct mledger_impl *impl = term_impl(s);
    enum ox_err err = term_refused_by(impl);
    if (err != OX_OK)
        return OX_FINISH(s, err);
    if (impl->roll.seq.active || !ox_list_empty(&impl->pending) || !ox_list_empty(&impl->parked)) {
        impl->term->waiting = true;
        return OX_WAIT(s, term_quiet);
    }
    impl->term->give_up_ns = ox_now_ns(s->loop) + ML_ROLL_RECORD_NS;
    return impl->current ? OX_GOTO(s, term_close) : OX_GOTO(s, term_record);
}

static ox_step term_close(struct ox_seq *s)
{
    struct mledger_impl *impl = term_impl(s);
    ox_seq_bind(s, &impl->term->close.op, "mledger.terminate.close");
    ox_ledger_close(impl->current->handle, &impl->term->close);
    return OX_WAIT(s, term_closed);
}

static ox_step term_fail(struct ox_seq *s, enum ox_err err, const char *why)
{
    struct mledger_impl *impl = term_impl(s);
    if (impl->fail_err == OX_OK)
        ml_fail(impl->ml, err, why);
    return OX_FINISH(s, impl->fail_err);
}

// All appends were acknowledged: anything else than their number is a loss.
static ox_step term_ended(struct ox_seq *s, int64_t last_entry)
{
    struct mledger_impl *impl = term_impl(s);
    if (last_entry + 1 != impl->current->entries)
        return term_fail(s, OX_E_CORRUPT, "the ledger did not end with its last acknowledged entry");
    OX_CRASHPOINT(s->loop, "terminate.after_close");
    impl->term->closed_ms = ox_wall_ms(s->loop);
    return OX_GOTO(s, term_record);
}

static ox_step term_closed(struct ox_seq *s)
{
    struct mledger_impl *impl = term_impl(s);
    if (s->err == OX_OK)
        return term_ended(s, impl->term->close.last_entry);
    if (s->err != OX_E_UNKNOWN_OUTCOME)
        return term_fail(s, s->err, "the last ledger could not be closed");
    ox_seq_bind(s, &impl->term->open.op, "mledger.terminate.recover");
    ox_router_open(impl->ml->factory->router, &impl->term->open, impl->current->where, OX_OPEN_RECOVER, &impl->owner);
    return OX_WAIT(s, term_learned);
}

static ox_step term_learned(struct ox_seq *s)
{
    struct mledger_impl *impl = term_impl(s);
    if (s->err != OX_OK)
        return term_fail(s, s->err, "the end of the last ledger could not be learned");
    int64_t last_entry = impl->term->open.ledger->info.last_entry;
    ox_ledger_release(impl->term->open.ledger);
    return term_ended(s, last_entry);
}

static ox_step term_record(struct ox_seq *s)
{
    struct mledger_impl *impl = term_impl(s);
    if (impl->fail_err != OX_OK)
        return OX_FINISH(s, impl->fail_err);
    ox_seq_bind(s, &impl->term->edit.op, "mledger.terminate.record");
    ml_edit_start(impl->ml, &impl->term->edit);
    return OX_WAIT(s, term_recorded);
}

// The last ledger in memory as the record has it now.
static void term_seal(struct mledger_impl *impl)
{
    struct ox_mledger *ml = impl->ml;
    struct ox_ml_ledger *last = impl->current;
    impl->current = NULL;
    ox_timer_stop(&impl->age);
    if (!last)
        return;
    last->sealed = true;
    last->sealed_ns = ox_now_ns(ml->factory->loop);
    last->closed_ms = impl->term->closed_ms;
    if (last->entries > 0) {
        ml_handle_keep(last, last->handle);
        return;
    }
    struct ox_location where = last->where;
    ml_list_remove(ml, last);
    ox_cursors_ledger_gone(ml, where.id);
    ml_discard(ml->factory, where, &impl->owner);
}

// The compare-and-set certainly had no effect: again, since the ledger is closed and there is no way back.
static ox_step term_not_recorded(struct ox_seq *s)
{
    struct mledger_impl *impl = term_impl(s);
    if (s->err == OX_E_SHUTDOWN || s->err == OX_E_FENCED || ox_now_ns(s->loop) >= impl->term->give_up_ns)
        return term_fail(s, s->err, "the end could not be recorded");
    ox_timer_start(&impl->term->pause, ML_RETRY_NS);
    return OX_WAIT(s, term_record);
}

static ox_step term_recorded(struct ox_seq *s)
{
    struct mledger_impl *impl = term_impl(s);
    if (s->err != OX_OK)
        return OX_GOTO(s, term_not_recorded);
    OX_CRASHPOINT(s->loop, "terminate.after_record");
    impl->ml->terminated = true;
    term_seal(impl);
    ox_info(impl->ml->factory->log, "mledger.terminated", "log=%s last=" OX_POS_FMT, impl->ml->name,
            OX_POS_ARG(impl->ml->last));
    return OX_FINISH(s, OX_OK);
}
