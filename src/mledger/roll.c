// roll.c - rollover, make before break: the next ledger takes appends while the old one closes; one compare-and-set records both (rules 3 to 6).
#include "mledger/mledger_int.h"

static struct mledger_impl *roll_impl(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct mledger_impl, roll.seq);
}

// Too long a wait for the next ledger: appends go on to the full one.
static void roll_hold_over(struct ox_timer *t)
{
    struct mledger_impl *impl = CONTAINER_OF(t, struct mledger_impl, roll.hold);
    if (impl->next)
        return;
    impl->hold = false;
    ml_append_flow(impl->ml);
}

static void roll_pause_over(struct ox_timer *t)
{
    ox_seq_resume(&CONTAINER_OF(t, struct ml_roll, pause)->seq, OX_OK);
}

static void roll_record_apply(struct ml_edit *e, struct ox_record *draft)
{
    struct mledger_impl *impl = ml_impl(e->ml);
    struct ml_roll *r = &impl->roll;
    if (r->old_entries > 0)
        ox_record_seal(draft, r->old->where.id, r->old_entries, r->old_bytes, r->closed_ms);
    else
        ox_record_drop(draft, r->old->where.id);
    ml_edit_append(e->ml, draft, impl->next->where);
    ml_edit_index(e->ml, draft);
}

void ml_roll_init(struct ox_mledger *ml)
{
    struct ml_roll *r = &ml_impl(ml)->roll;
    r->edit.apply = roll_record_apply;
    ox_timer_init(&r->hold, ml->factory->loop, roll_hold_over);
    ox_timer_init(&r->pause, ml->factory->loop, roll_pause_over);
}

void ml_roll_fini(struct ox_mledger *ml)
{
    ox_timer_stop(&ml_impl(ml)->roll.hold);
    OX_ASSERT(!ox_timer_started(&ml_impl(ml)->roll.pause));
}

void ml_roll_drained(struct ox_mledger *ml)
{
    struct ml_roll *r = &ml_impl(ml)->roll;
    if (!r->wait_for || r->wait_for->sent > 0)
        return;
    r->wait_for = NULL;
    ox_seq_resume(&r->seq, OX_OK);
}

// True if the sequence has to wait for answers from a ledger.
static bool roll_waits_for(struct ml_roll *r, struct ox_ml_ledger *l)
{
    r->wait_for = l->sent > 0 ? l : NULL;
    return r->wait_for != NULL;
}

static void roll_done(struct ox_seq *s, enum ox_err err)
{
    struct mledger_impl *impl = roll_impl(s);
    struct ox_mledger *ml = impl->ml;
    struct ox_op *op = impl->roll.op;
    ox_free(impl->roll.io);
    impl->roll.io = NULL;
    ox_timer_stop(&impl->roll.hold);
    impl->roll.op = NULL;
    impl->hold = false;
    if (ml->state == OX_ML_ROLLING)
        ml_set_state(ml, OX_ML_OPEN, err == OX_OK ? "the next ledger is recorded" : "no next ledger could be made");
    if (op)
        ox_op_finish(op, err);
    ml_append_flow(ml);
    ox_mledger_trim(ml);
    ml_roll_check(ml);
    ml_follower_check(&impl->follower); // another place may be active since the next ledger was begun
    ml_poke(ml);
}

static ox_step roll_make(struct ox_seq *s);
static ox_step roll_made(struct ox_seq *s);
static ox_step roll_close(struct ox_seq *s);
static ox_step roll_closed(struct ox_seq *s);
static ox_step roll_learned(struct ox_seq *s);
static ox_step roll_settle(struct ox_seq *s);
static ox_step roll_abandon(struct ox_seq *s);
static ox_step roll_record(struct ox_seq *s);
static ox_step roll_recorded(struct ox_seq *s);

static void roll_start(struct ox_mledger *ml, struct ox_op *op, bool full)
{
    struct mledger_impl *impl = ml_impl(ml);
    struct ml_roll *r = &impl->roll;
    r->op = op;
    r->old = impl->current;
    r->old_broken = r->next_broken = r->in_doubt = false;
    r->old_entries = -1;
    r->tries = 0;
    ml_set_state(ml, OX_ML_ROLLING, full ? "the ledger is full" : "asked for, or the ledger is old");
    impl->hold = full;
    if (full)
        ox_timer_start(&r->hold, ML_ROLL_HOLD_NS);
    r->io = ox_malloc(sizeof *r->io);
    ox_seq_start(&r->seq, ml->factory->loop, "mledger.roll", roll_make, roll_done);
}

// The log has failed meanwhile: everything stays as it is until it is closed.
static ox_step roll_stop(struct ox_seq *s)
{
    struct mledger_impl *impl = roll_impl(s);
    return OX_FINISH(s, impl->fail_err);
}

static ox_step roll_fail(struct ox_seq *s, enum ox_err err, const char *why)
{
    struct mledger_impl *impl = roll_impl(s);
    if (impl->fail_err == OX_OK)
        ml_fail(impl->ml, err, why);
    return OX_GOTO(s, roll_stop);
}

static ox_step roll_make(struct ox_seq *s)
{
    struct mledger_impl *impl = roll_impl(s);
    struct ox_ml_factory *f = impl->ml->factory;
    impl->roll.tries++;
    ox_seq_bind(s, &impl->roll.io->create.op, "mledger.roll.create");
    ox_router_create_in(f->router, &impl->roll.io->create, ox_ml_target(f, impl->ml->name), ml_list_max(impl->ml),
                        &impl->owner);
    return OX_WAIT(s, roll_made);
}

// No next ledger. The old one goes on if it can: rule 5.
static ox_step roll_not_made(struct ox_seq *s)
{
    struct mledger_impl *impl = roll_impl(s);
    enum ox_err err = s->err;
    impl->roll.not_before_ns = ox_now_ns(s->loop) + ML_ROLL_PAUSE_NS;
    if (!impl->roll.warned)
        ox_warn(impl->ml->factory->log, "mledger.roll.no_next", "log=%s error=%s", impl->ml->name, ox_err_name(err));
    impl->roll.warned = true;
    if (impl->roll.old_broken || impl->roll.old_entries >= 0 || err == OX_E_SHUTDOWN)
        return roll_fail(s, err, "the ledger has ended and no next one could be made");
    return OX_FINISH(s, err);
}

static ox_step roll_made(struct ox_seq *s)
{
    struct mledger_impl *impl = roll_impl(s);
    struct ml_roll *r = &impl->roll;
    if (s->err != OX_OK)
        return OX_GOTO(s, roll_not_made);
    OX_CRASHPOINT(s->loop, "roll.after_create");
    if (impl->fail_err != OX_OK) {
        ox_ledger_release(r->io->create.ledger);
        ml_discard(impl->ml->factory, r->io->create.location, &impl->owner);
        return OX_GOTO(s, roll_stop);
    }
    impl->next = ml_list_add(impl->ml, r->io->create.location);
    impl->next->handle = r->io->create.ledger;
    impl->next->created_ns = ox_now_ns(s->loop);
    impl->hold = false;
    r->next_broken = r->warned = false;
    ml_append_flow(impl->ml);
    return r->old_entries < 0 ? OX_GOTO(s, roll_close) : OX_GOTO(s, roll_record);
}

static ox_step roll_close(struct ox_seq *s)
{
    struct mledger_impl *impl = roll_impl(s);
    ox_seq_bind(s, &impl->roll.io->close.op, "mledger.roll.close");
    ox_ledger_close(impl->roll.old->handle, &impl->roll.io->close);
    return OX_WAIT(s, roll_closed);
}

static ox_step roll_closed(struct ox_seq *s)
{
    struct mledger_impl *impl = roll_impl(s);
    struct ml_roll *r = &impl->roll;
    if (s->err == OX_E_UNKNOWN_OUTCOME) {
        ox_seq_bind(s, &r->io->open.op, "mledger.roll.recover");
        ox_router_open(impl->ml->factory->router, &r->io->open, r->old->where, OX_OPEN_RECOVER, &impl->owner);
        return OX_WAIT(s, roll_learned);
    }
    if (s->err != OX_OK)
        return roll_fail(s, s->err, "the old ledger could not be closed");
    r->old_entries = r->io->close.last_entry + 1;
    r->old_bytes = r->io->close.length;
    return OX_GOTO(s, roll_settle);
}

// The outcome of the close was unknown: recovery has found the true end.
static ox_step roll_learned(struct ox_seq *s)
{
    struct mledger_impl *impl = roll_impl(s);
    struct ml_roll *r = &impl->roll;
    if (s->err != OX_OK)
        return roll_fail(s, s->err, "the end of the old ledger could not be learned");
    r->old_entries = r->io->open.ledger->info.last_entry + 1;
    r->old_bytes = r->io->open.ledger->info.length;
    ox_ledger_release(r->io->open.ledger);
    return OX_GOTO(s, roll_settle);
}

static ox_step roll_settle(struct ox_seq *s)
{
    struct mledger_impl *impl = roll_impl(s);
    struct ml_roll *r = &impl->roll;
    if (roll_waits_for(r, r->old))
        return OX_WAIT(s, roll_settle);
    OX_CRASHPOINT(s->loop, "roll.after_close");
    r->closed_ms = ox_wall_ms(s->loop);
    r->give_up_ns = ox_now_ns(s->loop) + ML_ROLL_RECORD_NS;
    if (impl->fail_err != OX_OK)
        return OX_GOTO(s, roll_stop);
    if (r->old_entries < r->old->entries)
        return roll_fail(s, OX_E_CORRUPT, "the old ledger ended before its last acknowledged entry");
    bool short_end = ml_append_settle(impl->ml, r->old, r->old_entries);
    return short_end || r->next_broken ? OX_GOTO(s, roll_abandon) : OX_GOTO(s, roll_record);
}

// The next ledger can't be used: it is never recorded; a third one takes, in order, what the old one's true end lacks and then all of the next one's (rule 6).
static ox_step roll_abandon(struct ox_seq *s)
{
    struct mledger_impl *impl = roll_impl(s);
    struct ml_roll *r = &impl->roll;
    if (impl->fail_err != OX_OK)
        return OX_GOTO(s, roll_stop);
    impl->hold = true;
    if (roll_waits_for(r, impl->next))
        return OX_WAIT(s, roll_abandon);
    struct ox_location where = impl->next->where;
    ox_warn(impl->ml->factory->log, "mledger.roll.abandoned", "log=%s ledger=%lld old=%lld old_entries=%lld",
            impl->ml->name, (long long)where.id, (long long)r->old->where.id, (long long)r->old_entries);
    ml_append_park(impl->ml, r->old);
    ml_list_remove(impl->ml, impl->next);
    impl->next = NULL;
    ml_discard(impl->ml->factory, where, &impl->owner);
    OX_CRASHPOINT(s->loop, "roll.after_abandon");
    return r->tries < ML_ROLL_TRIES ? OX_GOTO(s, roll_make) : roll_fail(s, OX_E_PLACE_FAILED, "next ledgers keep failing");
}

static ox_step roll_record(struct ox_seq *s)
{
    struct mledger_impl *impl = roll_impl(s);
    if (impl->fail_err != OX_OK)
        return OX_GOTO(s, roll_stop);
    if (impl->roll.next_broken)
        return OX_GOTO(s, roll_abandon);
    impl->roll.in_doubt = true;
    ox_seq_bind(s, &impl->roll.edit.op, "mledger.roll.record");
    ml_edit_start(impl->ml, &impl->roll.edit);
    return OX_WAIT(s, roll_recorded);
}

// The compare-and-set certainly had no effect: again, since the old ledger is closed and there is no way back.
static ox_step roll_not_recorded(struct ox_seq *s)
{
    struct mledger_impl *impl = roll_impl(s);
    impl->roll.in_doubt = s->err == OX_E_SHUTDOWN || s->err == OX_E_FENCED;
    if (impl->fail_err != OX_OK)
        return OX_GOTO(s, roll_stop);
    if (s->err == OX_E_SHUTDOWN || ox_now_ns(s->loop) >= impl->roll.give_up_ns)
        return roll_fail(s, s->err, "the rollover could not be recorded");
    ox_warn(impl->ml->factory->log, "mledger.roll.not_recorded", "log=%s error=%s", impl->ml->name, ox_err_name(s->err));
    ox_timer_start(&impl->roll.pause, ML_RETRY_NS);
    return OX_WAIT(s, roll_record);
}

// The old ledger in memory as the record has it now.
static void roll_seal_old(struct mledger_impl *impl)
{
    struct ml_roll *r = &impl->roll;
    struct ox_ml_ledger *old = r->old;
    OX_ASSERT(old->entries == r->old_entries);
    old->sealed = true;
    old->sealed_ns = ox_now_ns(impl->ml->factory->loop);
    old->bytes = r->old_bytes;
    old->closed_ms = r->closed_ms;
    if (old->entries > 0) {
        ml_handle_keep(old, old->handle);
        return;
    }
    struct ox_location where = old->where;
    ml_list_remove(impl->ml, old);
    ox_cursors_ledger_gone(impl->ml, where.id);
    ml_discard(impl->ml->factory, where, &impl->owner);
}

static ox_step roll_recorded(struct ox_seq *s)
{
    struct mledger_impl *impl = roll_impl(s);
    struct ox_mledger *ml = impl->ml;
    if (s->err != OX_OK)
        return OX_GOTO(s, roll_not_recorded);
    OX_CRASHPOINT(s->loop, "roll.after_record");
    impl->current = impl->next;
    impl->next = NULL;
    impl->current->recorded = true;
    roll_seal_old(impl);
    if (ml->total_entries == 0)
        ml->last = (struct ox_pos){impl->current->where.id, -1};
    ml_list_count(ml);
    ml->factory->rollovers.value++;
    impl->young = false;
    ox_timer_start(&impl->age, ml_age_max_ns(impl));
    if (impl->roll.next_broken)
        return roll_fail(s, OX_E_PLACE_FAILED, "the new ledger failed while it was being recorded");
    return OX_FINISH(s, OX_OK);
}

// ---- when ------------------------------------------------------------------------------------------------------------

static bool roll_is_full(const struct mledger_impl *impl)
{
    const struct ox_ml_settings *set = &impl->ml->factory->settings;
    const struct ox_ml_ledger *l = impl->current;
    return (uint64_t)l->given >= set->ledger_entries_max || l->given_bytes >= set->ledger_bytes_max;
}

// Full before its time: looked at again when it is old enough, not at each append.
static void roll_ripen(struct mledger_impl *impl, uint64_t age_ns)
{
    uint64_t least_ns = OX_MIN(impl->ml->factory->settings.rollover_ns_min, ml_age_max_ns(impl));
    impl->young = true;
    ox_timer_start(&impl->age, least_ns - age_ns);
}

bool ml_roll_is_due(const struct mledger_impl *impl)
{
    if (!impl->current || impl->roll.not_before_ns || !ox_timer_started(&impl->age))
        return true;
    return !impl->young && roll_is_full(impl);
}

void ml_roll_check(struct ox_mledger *ml)
{
    struct mledger_impl *impl = ml_impl(ml);
    uint64_t now = ox_now_ns(ml->factory->loop);
    if (ml->state != OX_ML_OPEN || impl->term || !impl->current || impl->current->given == 0 || now < impl->roll.not_before_ns)
        return;
    if (impl->roll.seq.active || ml->factory->meta->session != OX_META_CONNECTED)
        return;
    uint64_t age_ns = now - impl->current->created_ns;
    bool full = roll_is_full(impl), old = age_ns >= ml->factory->settings.rollover_ns_min;
    if ((full && old) || age_ns >= ml_age_max_ns(impl))
        roll_start(ml, NULL, full && old);
    else if (full && !impl->young)
        roll_ripen(impl, age_ns);
}

void ox_mledger_roll(struct ox_mledger *ml, struct ox_op *op)
{
    struct mledger_impl *impl = ml_impl(ml);
    ox_op_begin(op);
    if (ml->state == OX_ML_ROLLING || impl->roll.seq.active)
        ox_op_finish(op, OX_E_BUSY);
    else if (impl->fail_err != OX_OK)
        ox_op_finish(op, impl->fail_err);
    else if (ml->state != OX_ML_OPEN)
        ox_op_finish(op, OX_E_SHUTDOWN);
    else if (ml->terminated || impl->term)
        ox_op_finish(op, OX_E_TOPIC_TERMINATED);
    else if (ml->full)
        ox_op_finish(op, OX_E_NO_SPACE);
    else
        roll_start(ml, op, false);
}
