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

static struct ox_router_slot *router_slot(const struct ox_router *r, uint32_t index)
{
    OX_ASSERT(index < r->count);
    return &r->slots[index];
}

static uint32_t router_slot_new(struct ox_router *r, const char *name)
{
    r->slots = ox_realloc(r->slots, r->count + 1u, sizeof *r->slots);
    r->slots[r->count] = (struct ox_router_slot){.name = ox_strdup(name), .err = OX_E_PLACE_CLOSED};
    return r->count++;
}

uint32_t ox_router_add(struct ox_router *r, struct ox_place *take_place)
{
    uint32_t index = router_slot_new(r, take_place->name);
    r->slots[index].place = take_place;
    r->slots[index].openings = 1;
    return index;
}

uint32_t ox_router_reserve(struct ox_router *r, const char *name, enum ox_err err)
{
    uint32_t index;
    if (ox_router_find(r, name, &index) != OX_OK)
        index = router_slot_new(r, name);
    if (!r->slots[index].place)
        r->slots[index].err = err;
    return index;
}

void ox_router_attach(struct ox_router *r, uint32_t index, struct ox_place *take_place)
{
    struct ox_router_slot *slot = router_slot(r, index);
    OX_ASSERT(!slot->place && strcmp(slot->name, take_place->name) == 0);
    slot->place = take_place;
    slot->openings++;
}

void ox_router_detach(struct ox_router *r, struct ox_op *op, uint32_t index, enum ox_err err)
{
    struct ox_router_slot *slot = router_slot(r, index);
    struct ox_place *place = slot->place;
    if (place && index != r->active && ox_list_empty(&place->handles) && place->busy == 0) {
        slot->place = NULL;
        slot->err = err;
        ox_place_close(place, op);
        return;
    }
    ox_op_begin(op);
    ox_op_finish(op, !place ? slot->err : index == r->active ? OX_E_CONFLICT : OX_E_BUSY);
}

void ox_router_forget(struct ox_router *r, uint32_t index)
{
    struct ox_router_slot *slot = router_slot(r, index);
    OX_ASSERT(!slot->place);
    slot->err = OX_E_NO_PLACE;
}

void ox_router_activate(struct ox_router *r, uint32_t index)
{
    OX_ASSERT(router_slot(r, index)->place);
    r->active = index;
}

void ox_router_block_reads(struct ox_router *r, uint32_t index, bool on)
{
    router_slot(r, index)->reads_blocked = on;
}

enum ox_err ox_router_find(const struct ox_router *r, const char *name, uint32_t *ret_index)
{
    for (uint32_t i = 0; i < r->count; i++) {
        const struct ox_router_slot *slot = &r->slots[i];
        if ((slot->place || slot->err != OX_E_NO_PLACE) && strcmp(slot->name, name) == 0) {
            *ret_index = i;
            return OX_OK;
        }
    }
    return OX_E_NO_PLACE;
}

struct ox_place *ox_router_place(const struct ox_router *r, uint32_t index)
{
    return router_slot(r, index)->place;
}

uint32_t ox_router_opening(const struct ox_router *r, uint32_t index)
{
    const struct ox_router_slot *slot = router_slot(r, index);
    return slot->place ? slot->openings : 0;
}

void ox_router_note_read(struct ox_router *r, uint32_t index, enum ox_err err)
{
    struct ox_router_reads *reads = &router_slot(r, index)->reads;
    reads->answered += err == OX_OK;
    reads->failed += err != OX_OK;
    reads->misrouted += err == OX_E_IDENTITY_MISMATCH;
}

const struct ox_router_reads *ox_router_reads(const struct ox_router *r, uint32_t index)
{
    return &router_slot(r, index)->reads;
}

const char *ox_router_name(const struct ox_router *r, uint32_t index)
{
    return router_slot(r, index)->name;
}

size_t ox_router_holders(const struct ox_router *r, uint32_t index, void (*visit)(void *ctx, const struct ox_ledger *l),
                         void *ctx)
{
    const struct ox_place *place = router_slot(r, index)->place;
    if (!place)
        return 0;
    if (visit)
        OX_LIST_EACH(&place->handles, link)
            visit(ctx, CONTAINER_OF(link, struct ox_ledger, link));
    return place->handles.count;
}

// The place at an index for a use, or why it can't be used.
static enum ox_err router_use(const struct ox_router *r, uint32_t index, struct ox_place **ret)
{
    if (index >= r->count)
        return OX_E_NO_PLACE;
    *ret = r->slots[index].place;
    return *ret ? OX_OK : r->slots[index].err;
}

static void router_create_next(struct ox_router_create *c);

static void router_create_finish(struct ox_router_create *c, enum ox_err err)
{
    ox_kv_fini(&c->custom);
    ox_op_finish(&c->op, err);
}

static void router_created(struct ox_op *op)
{
    struct ox_router_create *c = CONTAINER_OF(op, struct ox_router_create, create.op);
    if (op->err == OX_E_LEDGER_EXISTS && c->tries++ < ROUTER_ID_TRIES) {
        c->above = c->copy ? 0 : c->location.id;
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

static void router_create_at(struct ox_router_create *c, struct ox_place *place, int64_t physical)
{
    c->location.physical = physical;
    ox_op_init(&c->create.op, c->router->loop, router_created, "create ledger");
    ox_ledger_create(place, &c->create, physical, &c->custom);
}

// An id that is not above every id of the topic and of this process is thrown away. A copy's physical id may be any.
static void router_id_taken(struct ox_op *op)
{
    struct ox_router_create *c = CONTAINER_OF(op, struct ox_router_create, next.op);
    struct ox_router *r = c->router;
    struct ox_place *place = NULL;
    enum ox_err err = op->err == OX_OK ? router_use(r, c->location.place, &place) : op->err;
    int64_t floor = OX_MAX(c->above, r->id_floor);
    if (err != OX_OK) {
        router_create_finish(c, err);
    } else if (c->copy) {
        router_create_at(c, place, c->next.id);
    } else if (c->next.id <= floor) {
        ox_op_init(&c->push, r->loop, router_pushed, "push id");
        ox_place_push_id(place, &c->push, floor);
    } else {
        c->location.id = r->id_floor = c->next.id;
        router_create_at(c, place, c->next.id);
    }
}

static void router_create_next(struct ox_router_create *c)
{
    struct ox_place *place = NULL;
    enum ox_err err = router_use(c->router, c->location.place, &place);
    if (err != OX_OK) {
        router_create_finish(c, err);
        return;
    }
    ox_op_init(&c->next.op, c->router->loop, router_id_taken, "next id");
    ox_place_next_id(place, &c->next);
}

static void router_create_begin(struct ox_router *r, struct ox_router_create *op, uint32_t place, const struct ox_kv *custom)
{
    ox_op_begin(&op->op);
    op->router = r;
    op->ledger = NULL;
    op->tries = 0;
    op->location = (struct ox_location){.place = place};
    op->custom = (struct ox_kv){0};
    ox_kv_copy(&op->custom, custom);
}

void ox_router_create(struct ox_router *r, struct ox_router_create *op, int64_t above, const struct ox_kv *custom)
{
    ox_router_create_in(r, op, r->active, above, custom);
}

void ox_router_create_in(struct ox_router *r, struct ox_router_create *op, uint32_t place, int64_t above,
                         const struct ox_kv *custom)
{
    router_create_begin(r, op, place, custom);
    op->copy = false;
    op->above = above;
    router_create_next(op);
}

void ox_router_create_copy(struct ox_router *r, struct ox_router_create *op, uint32_t place, int64_t id,
                           const struct ox_kv *custom)
{
    router_create_begin(r, op, place, custom);
    op->copy = true;
    op->above = 0;
    op->location.id = id;
    struct ox_place *target = NULL;
    enum ox_err err = router_use(r, place, &target);
    if (err == OX_OK)
        router_create_at(op, target, id);
    else
        router_create_finish(op, err);
}

void ox_router_open(struct ox_router *r, struct ox_ledger_open *op, struct ox_location where, enum ox_open_mode mode,
                    const struct ox_kv *expected)
{
    struct ox_place *place = NULL;
    enum ox_err err = router_use(r, where.place, &place);
    if (err == OX_OK && mode == OX_OPEN_READ_ONLY && r->slots[where.place].reads_blocked)
        err = OX_E_PLACE_BLOCKED;
    if (err == OX_OK) {
        ox_ledger_open(place, op, where.physical, mode, expected);
        return;
    }
    ox_op_begin(&op->op);
    op->ledger = NULL;
    ox_op_finish(&op->op, err);
}

void ox_router_delete(struct ox_router *r, struct ox_ledger_delete *op, struct ox_location where, const struct ox_kv *expected)
{
    struct ox_place *place = NULL;
    enum ox_err err = router_use(r, where.place, &place);
    if (err == OX_OK) {
        ox_ledger_delete(place, op, where.physical, expected);
        return;
    }
    ox_op_begin(&op->op);
    ox_op_finish(&op->op, err);
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

static void router_free_slots(struct ox_router *r)
{
    for (uint32_t i = 0; i < r->count; i++)
        ox_free(r->slots[i].name);
    ox_free(r->slots);
    r->slots = NULL;
    r->count = 0;
}

static void router_close_next(struct router_closing *c)
{
    struct ox_router *r = c->router;
    while (c->index < r->count && !r->slots[c->index].place)
        c->index++;
    if (c->index < r->count) {
        ox_op_init(&c->place_op, r->loop, router_place_closed, "close place");
        ox_place_close(r->slots[c->index].place, &c->place_op);
        return;
    }
    router_free_slots(r);
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
