// discard.c - deletes ledgers that no record names any more, in the background: owner checked, several tries, whatever becomes of their log.
#include "mledger/mledger_int.h"

struct ml_discard {
    struct ox_ml_factory *factory;
    struct ox_location where;
    struct ox_kv owner;
    struct ox_ledger_delete del;
    struct ox_timer pause;
    int tries;
    struct ox_link link; // in factory->discards
};

static void discard_free(struct ml_discard *d)
{
    OX_ASSERT(!ox_op_pending(&d->del.op));
    ox_list_remove(&d->factory->discards, &d->link);
    ox_timer_stop(&d->pause);
    ox_kv_fini(&d->owner);
    ox_free(d);
}

// Ends a drain when nothing is in flight any more.
static void discard_drained(struct ox_ml_factory *f)
{
    struct ox_op *op = f->drain;
    OX_LIST_EACH(&f->discards, link)
        if (ox_op_pending(&CONTAINER_OF(link, struct ml_discard, link)->del.op))
            return;
    f->drain = NULL;
    if (op)
        ox_op_finish(op, OX_OK);
}

void ox_ml_factory_drain(struct ox_ml_factory *f, struct ox_op *op)
{
    ox_op_begin(op);
    f->drain = op;
    discard_drained(f);
}

static void discard_try(struct ml_discard *d)
{
    d->tries++;
    ox_router_delete(d->factory->router, &d->del, d->where, &d->owner);
}

static void discard_again(struct ox_timer *t)
{
    discard_try(CONTAINER_OF(t, struct ml_discard, pause));
}

// Deleted, or not there: done. A stranger's ledger under our id stays where it is. Anything else may pass.
static void discard_done(struct ox_op *op)
{
    struct ml_discard *d = CONTAINER_OF(op, struct ml_discard, del.op);
    struct ox_ml_factory *f = d->factory;
    bool over = op->err == OX_OK || op->err == OX_E_NO_LEDGER;
    if (op->err == OX_OK)
        OX_CRASHPOINT(f->loop, "discard.after_delete");
    if (!over)
        ox_warn(f->log, "mledger.discard.failed", "ledger=%lld log=%s error=%s try=%d", (long long)d->where.id,
                ox_kv_find(&d->owner, "pulsar/managed-ledger"), ox_err_name(op->err), d->tries);
    bool again = !over && !f->drain && op->err != OX_E_IDENTITY_MISMATCH && op->err != OX_E_SHUTDOWN &&
                 d->tries < ML_DISCARD_TRIES;
    if (again)
        ox_timer_start(&d->pause, ML_DISCARD_PAUSE_NS);
    else
        discard_free(d);
    discard_drained(f);
}

void ml_discard(struct ox_ml_factory *f, struct ox_location where, const struct ox_kv *owner)
{
    struct ml_discard *d = ox_malloc(sizeof *d);
    d->factory = f;
    d->where = where;
    ox_kv_copy(&d->owner, owner);
    ox_op_init(&d->del.op, f->loop, discard_done, "mledger.discard");
    ox_timer_init(&d->pause, f->loop, discard_again);
    ox_list_push_back(&f->discards, &d->link);
    discard_try(d);
}

void ml_discard_fini(struct ox_ml_factory *f)
{
    OX_LIST_EACH(&f->discards, link)
        discard_free(CONTAINER_OF(link, struct ml_discard, link));
}
