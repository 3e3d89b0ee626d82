// place.c - the calls of places and ledgers, handed to the body of the place's kind.
#include "ledger/place.h"

#include "base/assert.h"
#include "base/mem.h"

void ox_ledger_info_fini(struct ox_ledger_info *info)
{
    ox_kv_fini(&info->custom);
}

void ox_place_init(struct ox_place *p)
{
    ox_list_init(&p->handles);
}

void ox_ledger_attach(struct ox_ledger *l, struct ox_place *p, bool writer)
{
    l->place = p;
    l->writer = writer;
    ox_list_push_back(&p->handles, &l->link);
}

void ox_ledger_detach(struct ox_ledger *l)
{
    ox_list_remove(&l->place->handles, &l->link);
    ox_ledger_info_fini(&l->info);
}

uint64_t ox_append_bytes(const struct ox_append *a)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < a->part_count; i++)
        bytes += a->parts[i].len;
    return bytes;
}

void ox_read_fini(struct ox_read *r)
{
    for (size_t i = 0; i < r->count; i++)
        ox_buf_unref(&r->entries[i]);
    ox_free(r->entries);
    r->entries = NULL;
    r->count = 0;
}

void ox_ledger_list_fini(struct ox_ledger_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        ox_ledger_info_fini(&l->items[i]);
    ox_free(l->items);
    l->items = NULL;
    l->count = 0;
}

void ox_ledger_create(struct ox_place *p, struct ox_ledger_create *op, int64_t id, const struct ox_kv *custom)
{
    ox_op_begin(&op->op);
    op->ledger = NULL;
    p->body->create(p, op, id, custom);
}

void ox_ledger_open(struct ox_place *p, struct ox_ledger_open *op, int64_t id, enum ox_open_mode mode,
                    const struct ox_kv *expected)
{
    ox_op_begin(&op->op);
    op->ledger = NULL;
    p->body->open(p, op, id, mode, expected);
}

void ox_ledger_append(struct ox_ledger *l, struct ox_append *op)
{
    OX_ASSERT(l->writer);
    OX_ASSERT(op->part_count <= OX_COUNT(op->parts));
    ox_op_begin(&op->op);
    op->ledger = l;
    l->place->body->append(l, op);
}

void ox_ledger_read(struct ox_ledger *l, struct ox_read *op)
{
    ox_op_begin(&op->op);
    op->entries = NULL;
    op->count = 0;
    op->where[0] = 0;
    l->place->body->read(l, op);
}

void ox_ledger_close(struct ox_ledger *l, struct ox_ledger_close *op)
{
    OX_ASSERT(l->writer);
    ox_op_begin(&op->op);
    l->place->body->close_ledger(l, op);
}

void ox_ledger_release(struct ox_ledger *l)
{
    l->place->body->release(l);
}

void ox_ledger_delete(struct ox_place *p, struct ox_ledger_delete *op, int64_t id, const struct ox_kv *expected)
{
    OX_ASSERT(expected);
    ox_op_begin(&op->op);
    p->body->del(p, op, id, expected);
}

void ox_ledger_list(struct ox_place *p, struct ox_ledger_list *op)
{
    ox_op_begin(&op->op);
    op->items = NULL;
    op->count = 0;
    p->body->list(p, op);
}

void ox_place_next_id(struct ox_place *p, struct ox_next_id *op)
{
    ox_op_begin(&op->op);
    p->body->next_id(p, op);
}

void ox_place_push_id(struct ox_place *p, struct ox_op *op, int64_t above)
{
    ox_op_begin(op);
    p->body->push_id(p, op, above);
}

void ox_place_capacity(struct ox_place *p, struct ox_capacity *ret)
{
    p->body->capacity(p, ret);
}

void ox_place_close(struct ox_place *p, struct ox_op *op)
{
    ox_op_begin(op);
    p->body->close(p, op);
}
