// router.c - finds the place of a location, and makes ledgers in the active place with ids that only rise.
#include "ledger/router.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

#define ROUTER_ID_TRIES 16 // ids that turn out to be taken before a create gives up

void ox_router_init(struct ox_router *r, struct ox_loop *loop)
{
    *r = (struct ox_router){.loop = loop};
}

uint32_t ox_router_add(struct ox_router *r, struct ox_place *take_place)
{
    r->places = ox_realloc(r->places, r->count + 1u, sizeof *r->places);
    r->places[r->count] = take_place;
    return r->count++;
}

enum ox_err ox_router_find(const struct ox_router *r, const char *name, uint32_t *ret_index)
{
    for (uint32_t i = 0; i < r->count; i++) {
        if (strcmp(r->places[i]->name, name) == 0) {
            *ret_index = i;
            return OX_OK;
        }
    }
    return OX_E_NO_PLACE;
}

struct ox_place *ox_router_place(const struct ox_router *r, uint32_t index)
{
    OX_ASSERT(index < r->count);
    return r->places[index];
}

static void router_create_next(struct ox_router_create *c);

static void router_create_finish(struct ox_router_create *c, enum ox_err err)
{
    ox_kv_fini(&c->custom);
    ox_op_finish(&c->op, err);
}

static struct ox_place *router_create_place(struct ox_router_create *c)
{
    return c->router->places[c->location.place];
}

static void router_created(struct ox_op *op)
{
    struct ox_router_create *c = CONTAINER_OF(op, struct ox_router_create, create.op);
    if (op->err == OX_E_LEDGER_EXISTS && c->tries++ < ROUTER_ID_TRIES) {
        c->above = c->location.id;
        router_create_next(c);
        return;
    }
    if (op->err == OX_OK)
        c->ledger = c->create.ledger;
    router_create_finish(c, op->err);
}

static void router_pushed(struct ox_op *op)
{
    struct ox_router_create *c = CONTAINER_OF(op, struct ox_router_create, push);
    if (op->err != OX_OK)
        router_create_finish(c, op->err);
    else
        router_create_next(c);
}

// An id that is not above every id of the topic and of this process is thrown away.
static void router_id_taken(struct ox_op *op)
{
    struct ox_router_create *c = CONTAINER_OF(op, struct ox_router_create, next.op);
    struct ox_router *r = c->router;
    if (op->err != OX_OK) {
        router_create_finish(c, op->err);
        return;
    }
    int64_t floor = OX_MAX(c->above, r->id_floor);
    if (c->next.id <= floor) {
        ox_op_init(&c->push, r->loop, router_pushed, "push id");
        ox_place_push_id(router_create_place(c), &c->push, floor);
        return;
    }
    r->id_floor = c->next.id;
    c->location.id = c->location.physical = c->next.id;
    ox_op_init(&c->create.op, r->loop, router_created, "create ledger");
    ox_ledger_create(router_create_place(c), &c->create, c->next.id, &c->custom);
}

static void router_create_next(struct ox_router_create *c)
{
    ox_op_init(&c->next.op, c->router->loop, router_id_taken, "next id");
    ox_place_next_id(router_create_place(c), &c->next);
}

void ox_router_create(struct ox_router *r, struct ox_router_create *op, int64_t above, const struct ox_kv *custom)
{
    ox_op_begin(&op->op);
    op->router = r;
    op->above = above;
    op->ledger = NULL;
    op->tries = 0;
    op->custom = (struct ox_kv){0};
    if (r->count == 0) {
        router_create_finish(op, OX_E_NO_PLACE);
        return;
    }
    ox_kv_copy(&op->custom, custom);
    op->location = (struct ox_location){.place = r->active};
    router_create_next(op);
}

void ox_router_open(struct ox_router *r, struct ox_ledger_open *op, struct ox_location where, enum ox_open_mode mode,
                    const struct ox_kv *expected)
{
    if (where.place < r->count) {
        ox_ledger_open(r->places[where.place], op, where.physical, mode, expected);
        return;
    }
    ox_op_begin(&op->op);
    op->ledger = NULL;
    ox_op_finish(&op->op, OX_E_NO_PLACE);
}

void ox_router_delete(struct ox_router *r, struct ox_ledger_delete *op, struct ox_location where, const struct ox_kv *expected)
{
    if (where.place < r->count) {
        ox_ledger_delete(r->places[where.place], op, where.physical, expected);
        return;
    }
    ox_op_begin(&op->op);
    ox_op_finish(&op->op, OX_E_NO_PLACE);
}

// Closing all places: the first error is the outcome, the others are closed all the same.
struct router_closing {
    struct ox_router *router;
    struct ox_op *op;
    struct ox_op place_op;
    enum ox_err err;
    uint32_t index;
};

static void router_close_next(struct router_closing *c);

static void router_place_closed(struct ox_op *op)
{
    struct router_closing *c = CONTAINER_OF(op, struct router_closing, place_op);
    if (c->err == OX_OK)
        c->err = op->err;
    c->index++;
    router_close_next(c);
}

static void router_close_next(struct router_closing *c)
{
    struct ox_router *r = c->router;
    if (c->index < r->count) {
        ox_op_init(&c->place_op, r->loop, router_place_closed, "close place");
        ox_place_close(r->places[c->index], &c->place_op);
        return;
    }
    ox_free(r->places);
    r->places = NULL;
    r->count = 0;
    ox_op_finish(c->op, c->err);
    ox_free(c);
}

void ox_router_close(struct ox_router *r, struct ox_op *op)
{
    ox_op_begin(op);
    struct router_closing *c = ox_malloc(sizeof *c);
    *c = (struct router_closing){.router = r, .op = op};
    router_close_next(c);
}
