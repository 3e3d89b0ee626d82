// ids.c - ids of a log only rise, whatever the place: every generator is pushed above the largest id that any of them has given out.
#include "move/storage/control_int.h"

static ox_step ids_ask(struct ox_seq *s);
static ox_step ids_asked(struct ox_seq *s);
static ox_step ids_push(struct ox_seq *s);
static ox_step ids_pushed(struct ox_seq *s);

static struct storage_ids *ids_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct storage_ids, seq);
}

static void ids_done(struct ox_seq *s, enum ox_err err)
{
    ox_op_finish(&ids_of(s)->op, err);
}

void storage_ids_push(struct ox_storage *st, struct storage_ids *ids, struct ox_place *extra, uint32_t target)
{
    ox_op_begin(&ids->op);
    ids->st = st;
    ids->extra = extra;
    ids->target = target;
    ids->at = 0;
    ids->target_next = ids->source_next = -1;
    ids->largest = OX_MAX(st->p.router->id_floor, st->control->bootstrap.max_ledger);
    ox_seq_start(&ids->seq, st->p.loop, "storage.ids", ids_ask, ids_done);
}

// The place whose turn it is: those of the router, then the extra one; NULL at the end.
static struct ox_place *ids_place(struct storage_ids *ids)
{
    const struct ox_router *r = ids->st->p.router;
    while (ids->at < r->count && !ox_router_place(r, ids->at))
        ids->at++;
    if (ids->at < r->count)
        return ox_router_place(r, ids->at);
    return ids->at == r->count ? ids->extra : NULL;
}

// Must this place answer?
static bool ids_needed(const struct storage_ids *ids)
{
    return ids->at == ids->target || ids->at == ids->st->p.router->count;
}

static ox_step ids_ask(struct ox_seq *s)
{
    struct storage_ids *ids = ids_of(s);
    struct ox_place *place = ids_place(ids);
    if (!place) {
        ids->at = 0;
        return OX_GOTO(s, ids_push);
    }
    ox_seq_bind(s, &ids->next.op, "storage.ids.next");
    ox_place_next_id(place, &ids->next);
    return OX_WAIT(s, ids_asked);
}

static ox_step ids_asked(struct ox_seq *s)
{
    struct storage_ids *ids = ids_of(s);
    if (s->err != OX_OK && ids_needed(ids)) {
        ids->place = ids->at;
        return OX_FINISH(s, s->err);
    }
    if (s->err == OX_OK) {
        ids->largest = OX_MAX(ids->largest, ids->next.id);
        if (ids->at == ids->target)
            ids->target_next = ids->next.id;
        if (ids->at == ids->st->p.router->active)
            ids->source_next = ids->next.id;
    }
    ids->at++;
    return OX_GOTO(s, ids_ask);
}

static ox_step ids_push(struct ox_seq *s)
{
    struct storage_ids *ids = ids_of(s);
    struct ox_place *place = ids_place(ids);
    if (!place)
        return OX_FINISH(s, OX_OK);
    ox_seq_bind(s, &ids->push, "storage.ids.push");
    ox_place_push_id(place, &ids->push, ids->largest);
    return OX_WAIT(s, ids_pushed);
}

static ox_step ids_pushed(struct ox_seq *s)
{
    struct storage_ids *ids = ids_of(s);
    if (s->err != OX_OK && ids_needed(ids)) {
        ids->place = ids->at;
        return OX_FINISH(s, s->err);
    }
    ids->at++;
    return OX_GOTO(s, ids_push);
}
