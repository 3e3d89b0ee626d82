// discard.c - deletes ledgers that no record names any more, in the background: owner checked, several tries, whatever becomes of their log. What can't be
// done because its place can't be reached is kept as an intent (deletes.c).
#include <string.h>

#include "mledger/deletes.h"

struct ml_discard {
    struct ox_ml_factory *factory;
    char *place;              // name
    struct ox_location where; // where.place: UINT32_MAX if no place of that name is registered
    struct ox_kv owner;
    struct ox_ledger_delete del;
    struct ml_intent intent;
    struct ox_timer pause;
    int tries;
    struct ox_link link; // in factory->discards
};

static bool discard_is_pending(const struct ml_discard *d)
{
    return ox_op_pending(&d->del.op) || ox_op_pending(&d->intent.op);
}

static void discard_free(struct ml_discard *d)
{
    OX_ASSERT(!discard_is_pending(d));
    ox_list_remove(&d->factory->discards, &d->link);
    ox_timer_stop(&d->pause);
    ox_kv_fini(&d->owner);
    ox_free(d->place);
    ox_free(d);
}

// Ends a drain when nothing is in flight any more.
static void discard_drained(struct ox_ml_factory *f)
{
    struct ox_op *op = f->drain;
    OX_LIST_EACH(&f->discards, link)
        if (discard_is_pending(CONTAINER_OF(link, struct ml_discard, link)))
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

static void discard_kept(struct ox_op *op)
{
    struct ml_discard *d = CONTAINER_OF(op, struct ml_discard, intent.op);
    struct ox_ml_factory *f = d->factory;
    if (op->err != OX_OK && op->err != OX_E_SHUTDOWN)
        ox_warn(f->log, "mledger.discard.not_kept", "place=%s ledger=%lld error=%s hint=" OX_LOG_Q, d->place,
                (long long)d->where.id, ox_err_name(op->err), "the next start's sweep looks for it");
    discard_free(d);
    discard_drained(f);
}

static void discard_keep(struct ml_discard *d)
{
    ml_intent_write(d->factory, &d->intent, d->place, d->where.id, d->where.physical, &d->owner);
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
    over |= op->err == OX_E_IDENTITY_MISMATCH || op->err == OX_E_SHUTDOWN;
    bool away = ml_place_is_away(op->err);
    if (!over && (away || d->tries >= ML_DISCARD_TRIES))
        discard_keep(d);
    else if (!over && !f->drain)
        ox_timer_start(&d->pause, ML_DISCARD_PAUSE_NS);
    else
        discard_free(d);
    discard_drained(f);
}

static void discard_start(struct ox_ml_factory *f, const char *place, struct ox_location where, const struct ox_kv *owner)
{
    struct ml_discard *d = ox_malloc(sizeof *d);
    d->factory = f;
    d->place = ox_strdup(place);
    d->where = where;
    ox_kv_copy(&d->owner, owner);
    ox_op_init(&d->del.op, f->loop, discard_done, "mledger.discard");
    ox_op_init(&d->intent.op, f->loop, discard_kept, "mledger.discard.keep");
    ox_timer_init(&d->pause, f->loop, discard_again);
    ox_list_push_back(&f->discards, &d->link);
    discard_try(d);
}

void ml_discard(struct ox_ml_factory *f, struct ox_location where, const struct ox_kv *owner)
{
    discard_start(f, ox_router_name(f->router, where.place), where, owner);
}

void ml_discard_copy(struct ox_ml_factory *f, const struct ox_copy *copy, int64_t id, const struct ox_kv *owner)
{
    struct ox_location where = {.id = id, .physical = copy->physical};
    if (ox_router_find(f->router, copy->place, &where.place) != OX_OK)
        where.place = UINT32_MAX; // its deletes answer NO_PLACE
    discard_start(f, copy->place, where, owner);
}

void ml_discard_copies(struct ox_ml_factory *f, const struct ox_copies *copies, int64_t id, const struct ox_kv *owner)
{
    for (size_t i = 0; i < copies->count; i++)
        ml_discard_copy(f, &copies->items[i], id, owner);
}

bool ml_is_discarded(const struct ox_ml_factory *f, struct ox_location where)
{
    OX_LIST_EACH(&f->discards, link) {
        const struct ml_discard *d = CONTAINER_OF(link, struct ml_discard, link);
        if (d->where.place == where.place && d->where.physical == where.physical)
            return true;
    }
    return false;
}

size_t ml_discard_count(const struct ox_ml_factory *f, const char *place)
{
    size_t count = 0;
    OX_LIST_EACH(&f->discards, link)
        count += strcmp(CONTAINER_OF(link, struct ml_discard, link)->place, place) == 0;
    return count;
}

void ml_discard_fini(struct ox_ml_factory *f)
{
    OX_LIST_EACH(&f->discards, link)
        discard_free(CONTAINER_OF(link, struct ml_discard, link));
}
