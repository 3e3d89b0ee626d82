// ending.c - the log ends in this process: close, and delete.
#include "mledger/compacted.h"
#include "mledger/deletes.h"

static struct mledger_impl *ending_impl(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct ml_ending, seq)->impl;
}

static void ending_note(struct ml_ending *e, enum ox_err err)
{
    if (e->first == OX_OK)
        e->first = err;
}

static void ending_done(struct ox_seq *s, enum ox_err err)
{
    struct mledger_impl *impl = ending_impl(s);
    struct ox_op *op = impl->ending->op;
    ml_set_state(impl->ml, OX_ML_CLOSED, ox_err_name(err));
    ml_free(impl->ml);
    ox_op_finish(op, err);
}

static ox_step ending_quiet(struct ox_seq *s);
static ox_step ending_cursors(struct ox_seq *s);
static ox_step ending_cursors_over(struct ox_seq *s);
static ox_step ending_ledger(struct ox_seq *s);
static ox_step ending_ledger_closed(struct ox_seq *s);
static ox_step ending_reads(struct ox_seq *s);
static ox_step removal_intents(struct ox_seq *s);
static ox_step removal_intent_written(struct ox_seq *s);
static ox_step removal_record(struct ox_seq *s);
static ox_step removal_recorded(struct ox_seq *s);
static ox_step removal_ledger(struct ox_seq *s);
static ox_step removal_ledger_deleted(struct ox_seq *s);
static ox_step removal_ledger_kept(struct ox_seq *s);
static ox_step removal_compacted(struct ox_seq *s);
static ox_step removal_compacted_deleted(struct ox_seq *s);
static ox_step removal_compacted_kept(struct ox_seq *s);
static ox_step removal_node(struct ox_seq *s);
static ox_step removal_node_deleted(struct ox_seq *s);
static ox_step ending_last(struct ox_seq *s);

// A next ledger that certainly no node names has no use.
static void ending_drop_next(struct mledger_impl *impl)
{
    if (!impl->next || impl->roll.in_doubt)
        return;
    struct ox_location where = impl->next->where;
    ml_list_remove(impl->ml, impl->next);
    impl->next = NULL;
    ml_discard(impl->ml->factory, where, &impl->owner);
}

static void ending_start(struct ox_mledger *ml, struct ox_op *op, bool remove)
{
    struct ml_ending *e = ox_malloc(sizeof *e);
    ox_op_begin(op);
    OX_ASSERT(!ml_impl(ml)->ending);
    ml_impl(ml)->ending = e;
    e->impl = ml_impl(ml);
    e->op = op;
    e->remove = remove;
    ml_set_state(ml, OX_ML_CLOSING, remove ? "removed" : "closed");
    ml_wake(ml);
    ox_seq_start(&e->seq, ml->factory->loop, remove ? "mledger.remove" : "mledger.close", ending_quiet, ending_done);
}

void ox_mledger_close(struct ox_mledger *ml, struct ox_op *op)
{
    ending_start(ml, op, false);
}

void ox_mledger_delete(struct ox_mledger *ml, struct ox_op *op)
{
    ending_start(ml, op, true);
}

// True while something of the log is under way.
static bool ending_is_busy(const struct mledger_impl *impl)
{
    return impl->roll.seq.active || impl->trim.seq.active || (impl->term && impl->term->seq.active) ||
           impl->writer.seq.active || !ox_list_empty(&impl->pending) || !ox_list_empty(&impl->parked) ||
           ox_op_pending(&impl->wake) || impl->reads > 0 || impl->moves > 0;
}

static ox_step ending_wait(struct ox_seq *s, ox_step_fn fn, const char *name)
{
    ending_impl(s)->ending->waiting = true;
    return ox_seq_goto(s, fn, name, OX_STEP_WAIT);
}
#define ENDING_WAIT(s, fn) ending_wait((s), (fn), #fn)

static ox_step ending_quiet(struct ox_seq *s)
{
    if (ending_is_busy(ending_impl(s)))
        return ENDING_WAIT(s, ending_quiet);
    return OX_GOTO(s, ending_cursors);
}

static ox_step ending_cursors(struct ox_seq *s)
{
    struct mledger_impl *impl = ending_impl(s);
    ox_seq_bind(s, &impl->ending->step, "mledger.end.cursors");
    if (impl->ending->remove)
        ox_cursors_remove(impl->ml, &impl->ending->step);
    else
        ox_cursors_close(impl->ml, &impl->ending->step);
    return OX_WAIT(s, ending_cursors_over);
}

static ox_step ending_cursors_over(struct ox_seq *s)
{
    struct mledger_impl *impl = ending_impl(s);
    ending_note(impl->ending, s->err);
    if (impl->ending->remove && s->err != OX_OK)
        return OX_GOTO(s, ending_reads);
    OX_CRASHPOINT(s->loop, "end.after_cursors");
    return OX_GOTO(s, ending_ledger);
}

// The current ledger is closed so that the next opening finds its end without recovery. The record is not written: as Pulsar does.
static ox_step ending_ledger(struct ox_seq *s)
{
    struct mledger_impl *impl = ending_impl(s);
    if (!impl->current || impl->fail_err != OX_OK)
        return OX_GOTO(s, ending_reads);
    ox_seq_bind(s, &impl->ending->close.op, "mledger.end.ledger");
    ox_ledger_close(impl->current->handle, &impl->ending->close);
    return OX_WAIT(s, ending_ledger_closed);
}

static ox_step ending_ledger_closed(struct ox_seq *s)
{
    struct mledger_impl *impl = ending_impl(s);
    OX_CRASHPOINT(s->loop, "end.after_ledger");
    if (s->err != OX_E_UNKNOWN_OUTCOME) // recovery at the next opening finds out
        ending_note(impl->ending, s->err);
    return OX_GOTO(s, ending_reads);
}

static ox_step ending_reads(struct ox_seq *s)
{
    struct mledger_impl *impl = ending_impl(s);
    if (ending_is_busy(impl))
        return ENDING_WAIT(s, ending_reads);
    if (impl->ending->remove && impl->ending->first == OX_OK)
        return OX_GOTO(s, removal_intents);
    return OX_GOTO(s, ending_last);
}

static ox_step ending_last(struct ox_seq *s)
{
    struct mledger_impl *impl = ending_impl(s);
    ending_drop_next(impl);
    ending_note(impl->ending, impl->fail_err);
    return OX_FINISH(s, impl->ending->first);
}

// ---- delete: the record loses its ledgers, then the places, then the node goes (rule 10) -------------------------------

// One location of a ledger: its primary, then its copies.
struct removal_target {
    const char *place; // name; NULL behind the last one
    struct ox_location where;
};

static struct removal_target removal_target(const struct ox_mledger *ml, const struct ox_ml_ledger *l, size_t i)
{
    struct removal_target t = {.where = l->where};
    const struct ox_router *router = ml->factory->router;
    if (i == 0) {
        t.place = ox_router_name(router, l->where.place);
    } else if (i <= l->copies.count) {
        t.place = l->copies.items[i - 1].place;
        t.where.physical = l->copies.items[i - 1].physical;
        if (ox_router_find(router, t.place, &t.where.place) != OX_OK)
            t.where.place = UINT32_MAX; // what is asked of it answers NO_PLACE
    }
    return t;
}

static bool removal_is_away(const struct ox_mledger *ml, const struct removal_target *t)
{
    return t->where.place == UINT32_MAX || !ox_router_place(ml->factory->router, t->where.place);
}

// Keeps the intent to delete what can't be reached now.
static ox_step removal_keep(struct ox_seq *s, struct removal_target t, ox_step_fn then, const char *name)
{
    struct mledger_impl *impl = ending_impl(s);
    impl->ending->intent = ox_malloc(sizeof *impl->ending->intent);
    ox_seq_bind(s, &impl->ending->intent->op, "mledger.remove.keep");
    ml_intent_write(impl->ml->factory, impl->ending->intent, t.place, t.where.id, t.where.physical, &impl->owner);
    return ox_seq_goto(s, then, name, OX_STEP_WAIT);
}

static void removal_kept(struct ox_seq *s)
{
    struct ml_ending *e = ending_impl(s)->ending;
    ox_free(e->intent);
    e->intent = NULL;
}

// What lies in places that are not open is noted before the record forgets it: no crash leaves a ledger behind that nobody knows of.
static ox_step removal_intents(struct ox_seq *s)
{
    struct ml_ending *e = ending_impl(s)->ending;
    struct ox_mledger *ml = ending_impl(s)->ml;
    for (; e->ledger < ml->ledger_count; e->ledger++, e->target = 0) {
        struct removal_target t;
        while ((t = removal_target(ml, ml->ledgers[e->ledger], e->target)).place) {
            e->target++;
            if (removal_is_away(ml, &t))
                return removal_keep(s, t, removal_intent_written, "removal_intent_written");
        }
    }
    e->target = 0;
    return OX_GOTO(s, removal_record);
}

static ox_step removal_intent_written(struct ox_seq *s)
{
    removal_kept(s);
    ending_note(ending_impl(s)->ending, s->err);
    return s->err == OX_OK ? OX_GOTO(s, removal_intents) : OX_GOTO(s, ending_last);
}

static void removal_apply(struct ml_edit *e, struct ox_record *draft)
{
    (void)e;
    ox_record_drop_all(draft);
}

static ox_step removal_record(struct ox_seq *s)
{
    struct mledger_impl *impl = ending_impl(s);
    impl->ending->edit.apply = removal_apply;
    ox_seq_bind(s, &impl->ending->edit.op, "mledger.remove.record");
    ml_edit_start(impl->ml, &impl->ending->edit);
    return OX_WAIT(s, removal_recorded);
}

static ox_step removal_recorded(struct ox_seq *s)
{
    struct mledger_impl *impl = ending_impl(s);
    ending_note(impl->ending, s->err);
    if (s->err != OX_OK)
        return OX_GOTO(s, ending_last);
    OX_CRASHPOINT(s->loop, "delete.after_record");
    ending_drop_next(impl);
    return OX_GOTO(s, removal_ledger);
}

// Nothing is at this location any more, or that is somebody's task: on to the next one.
static ox_step removal_next(struct ox_seq *s)
{
    ending_impl(s)->ending->target++;
    return OX_GOTO(s, removal_ledger);
}

static ox_step removal_ledger(struct ox_seq *s)
{
    struct mledger_impl *impl = ending_impl(s);
    struct ox_mledger *ml = impl->ml;
    if (ml->ledger_count == 0)
        return OX_GOTO(s, removal_compacted);
    struct ox_ml_ledger *l = ml->ledgers[0];
    struct removal_target t = removal_target(ml, l, impl->ending->target);
    if (!t.place) {
        ml_list_remove(ml, l);
        impl->ending->target = 0;
        return OX_GOTO(s, removal_ledger);
    }
    ml_handle_release(l);
    ox_tail_cache_drop_ledger(&ml->factory->cache, l->where.id);
    ox_seq_bind(s, &impl->ending->del.op, "mledger.remove.ledger");
    ox_router_delete(ml->factory->router, &impl->ending->del, t.where, &impl->owner);
    return OX_WAIT(s, removal_ledger_deleted);
}

// It stays in its place, so the node stays too: the sweep knows whose it was.
static ox_step removal_ledger_left(struct ox_seq *s)
{
    struct mledger_impl *impl = ending_impl(s);
    struct ox_mledger *ml = impl->ml;
    ox_warn(ml->factory->log, "mledger.remove.ledger_left", "log=%s ledger=%lld error=%s", ml->name,
            (long long)ml->ledgers[0]->where.id, ox_err_name(s->err));
    ending_note(impl->ending, s->err);
    return removal_next(s);
}

static ox_step removal_ledger_deleted(struct ox_seq *s)
{
    struct mledger_impl *impl = ending_impl(s);
    struct ox_mledger *ml = impl->ml;
    if (ml_place_is_away(s->err))
        return removal_keep(s, removal_target(ml, ml->ledgers[0], impl->ending->target), removal_ledger_kept,
                            "removal_ledger_kept");
    if (s->err != OX_OK && s->err != OX_E_NO_LEDGER)
        return OX_GOTO(s, removal_ledger_left);
    OX_CRASHPOINT(s->loop, "delete.after_ledger");
    return removal_next(s);
}

static ox_step removal_ledger_kept(struct ox_seq *s)
{
    removal_kept(s);
    return s->err == OX_OK ? removal_next(s) : OX_GOTO(s, removal_ledger_left);
}

// ---- compacted ledgers: the node names them until they are gone; one that can't be reached is left to its intent

static ox_step removal_compacted(struct ox_seq *s)
{
    struct mledger_impl *impl = ending_impl(s);
    struct ox_ml_factory *f = impl->ml->factory;
    struct ox_copies all = {0};
    struct ox_kv owner = {0};
    enum ox_err err = ox_ml_compacted(impl->ml, &all);
    ending_note(impl->ending, err);
    if (err != OX_OK || impl->ending->compacted >= all.count) {
        ox_copies_fini(&all);
        return OX_GOTO(s, removal_node);
    }
    const struct ox_copy *c = &all.items[impl->ending->compacted];
    struct ox_location where = {.id = c->physical, .physical = c->physical};
    if (ox_router_find(f->router, c->place, &where.place) != OX_OK)
        where.place = UINT32_MAX;
    ox_ml_compacted_owner(f, impl->ml->name, &owner);
    ox_seq_bind(s, &impl->ending->del.op, "mledger.remove.compacted");
    ox_router_delete(f->router, &impl->ending->del, where, &owner);
    ox_kv_fini(&owner);
    ox_copies_fini(&all);
    return OX_WAIT(s, removal_compacted_deleted);
}

static ox_step removal_compacted_next(struct ox_seq *s, enum ox_err err)
{
    struct ml_ending *e = ending_impl(s)->ending;
    if (err != OX_E_NO_LEDGER)
        ending_note(e, err);
    e->compacted++;
    return OX_GOTO(s, removal_compacted);
}

static ox_step removal_compacted_deleted(struct ox_seq *s)
{
    struct mledger_impl *impl = ending_impl(s);
    struct ox_copies all = {0};
    struct ox_kv owner = {0};
    if (!ml_place_is_away(s->err) || ox_ml_compacted(impl->ml, &all) != OX_OK)
        return removal_compacted_next(s, s->err);
    const struct ox_copy *c = &all.items[impl->ending->compacted];
    ox_ml_compacted_owner(impl->ml->factory, impl->ml->name, &owner);
    impl->ending->intent = ox_malloc(sizeof *impl->ending->intent);
    ox_seq_bind(s, &impl->ending->intent->op, "mledger.remove.keep_compacted");
    ml_intent_write(impl->ml->factory, impl->ending->intent, c->place, c->physical, c->physical, &owner);
    ox_kv_fini(&owner);
    ox_copies_fini(&all);
    return OX_WAIT(s, removal_compacted_kept);
}

static ox_step removal_compacted_kept(struct ox_seq *s)
{
    removal_kept(s);
    return removal_compacted_next(s, s->err);
}

static ox_step removal_node(struct ox_seq *s)
{
    struct mledger_impl *impl = ending_impl(s);
    if (impl->ending->first != OX_OK)
        return OX_GOTO(s, ending_last);
    ox_seq_bind(s, &impl->ending->del_node.op, "mledger.remove.node");
    ox_meta_del(impl->ml->factory->meta, &impl->ending->del_node, impl->ml->path, impl->ml->node_version);
    return OX_WAIT(s, removal_node_deleted);
}

static ox_step removal_node_deleted(struct ox_seq *s)
{
    struct mledger_impl *impl = ending_impl(s);
    if (s->err == OX_E_UNKNOWN_OUTCOME && impl->ending->tries++ < 100)
        return OX_GOTO(s, removal_node); // once more: NOT_FOUND says that it had worked
    if (s->err != OX_E_NOT_FOUND)
        ending_note(impl->ending, s->err);
    OX_CRASHPOINT(s->loop, "delete.after_node");
    return OX_GOTO(s, ending_last);
}
