// rows.c - ledgers as changed behind the table: records make rows and index items of the tail they stand in.
#include "base/assert.h"
#include "ledger/store/store_int.h"

static struct tail_row *rows_find(const struct tail *t, int64_t id)
{
    struct ox_map_node *node = ox_map_find_u64(&t->rows, (uint64_t)id);
    return node ? CONTAINER_OF(node, struct tail_row, node) : NULL;
}

static struct ox_table_row *rows_get(struct tail *t, int64_t id)
{
    struct tail_row *found = rows_find(t, id);
    if (found)
        return &found->row;
    struct tail_row *row = ox_malloc(sizeof *row);
    row->row = (struct ox_table_row){.id = id, .state = OX_LEDGER_OPEN, .last_entry = -1};
    ox_map_put_u64(&t->rows, &row->node, (uint64_t)id);
    return &row->row;
}

static void rows_overlay_one(const struct ox_table_row *change, struct ox_table_row *row, bool *found, enum rows_known *known)
{
    if (change->deleted) {
        *found = false;
        *known = ROWS_DELETED;
        return;
    }
    if (change->created) {
        ox_kv_copy(&row->custom, &change->custom);
        *found = true;
        *known = ROWS_WHOLE;
    } else if (*known == ROWS_NOTHING) {
        *known = ROWS_CHANGED;
    }
    row->id = change->id;
    row->state = change->state;
    row->last_entry = change->last_entry;
    row->length = change->length;
}

enum rows_known rows_overlay(const struct store *s, int64_t id, struct ox_table_row *row, bool *found)
{
    enum rows_known known = ROWS_NOTHING;
    for (struct ox_link *link = s->tails.head.next; link != &s->tails.head; link = link->next) {
        struct tail_row *change = rows_find(CONTAINER_OF(link, struct tail, link), id);
        if (change)
            rows_overlay_one(&change->row, row, found, &known);
    }
    return known;
}

static void rows_create(struct store *s, struct tail *t, int64_t id, const struct ox_kv *custom)
{
    struct ox_table_row *row = rows_get(t, id);
    row->created = true;
    row->deleted = false;
    row->state = OX_LEDGER_OPEN;
    row->last_entry = -1;
    row->length = 0;
    ox_index_drop(&t->index, id); // copies of an older ledger of this id
    ox_kv_copy(&row->custom, custom);
    s->id_max = OX_MAX(s->id_max, id);
    s->id_next = OX_MAX(s->id_next, id + 1);
}

static void rows_delete(struct store *s, struct tail *t, int64_t id)
{
    OX_LIST_EACH(&s->tails, link) {
        struct tail *older = CONTAINER_OF(link, struct tail, link);
        struct tail_row *row = rows_find(older, id);
        if (row) {
            row->row.deleted = true;
            row->row.created = false;
        }
        ox_index_drop(&older->index, id);
    }
    rows_get(t, id)->deleted = true;
    maintain_delete(s, id);
}

static void rows_entry(struct tail *t, const struct ox_segment_record *r, uint32_t offset)
{
    struct ox_table_row *row = rows_get(t, r->ledger);
    if (row->deleted)
        return;
    ox_index_add(&t->index, r->ledger, r->entry, (struct ox_item){offset, r->length});
    if (r->entry > row->last_entry) {
        row->last_entry = r->entry;
        row->length = r->arg;
    }
}

static void rows_close(struct tail *t, const struct ox_segment_record *r)
{
    struct ox_table_row *row = rows_get(t, r->ledger);
    row->state = OX_LEDGER_CLOSED;
    row->last_entry = r->entry;
    row->length = r->arg;
}

void rows_apply(struct store *s, struct tail *t, const struct ox_segment_record *r, uint32_t offset, const struct ox_kv *custom)
{
    switch (r->type) {
    case OX_REC_ENTRY: rows_entry(t, r, offset); break;
    case OX_REC_CREATE: rows_create(s, t, r->ledger, custom); break;
    case OX_REC_CLOSE: rows_close(t, r); break;
    case OX_REC_DELETE: rows_delete(s, t, r->ledger); break;
    case OX_REC_ID: s->id_ceiling = OX_MAX(s->id_ceiling, r->entry); break;
    case OX_REC_MOVED: {
        struct tail_row *row = rows_find(t, r->ledger);
        if (!row || !row->row.deleted)
            ox_index_add(&t->index, r->ledger, r->entry, (struct ox_item){offset, r->length});
        break;
    }
    }
}
