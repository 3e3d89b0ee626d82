// leftovers.c - copies that a crash has left in a place: unfinished ones are deleted, finished ones found again.
#include <string.h>

#include "move/storage/data_int.h"

static ox_step leftovers_page(struct ox_seq *q);
static ox_step leftovers_listed(struct ox_seq *q);
static ox_step leftovers_look(struct ox_seq *q);
static ox_step leftovers_deleted(struct ox_seq *q);

static struct data_leftovers *leftovers_of(struct ox_seq *q)
{
    return CONTAINER_OF(q, struct data_leftovers, seq);
}

static void leftovers_done(struct ox_seq *q, enum ox_err err)
{
    struct data_leftovers *l = leftovers_of(q);
    ox_ledger_list_fini(&l->list);
    ox_op_finish(&l->op, err);
}

void data_leftovers_start(struct data_leftovers *l)
{
    ox_op_begin(&l->op);
    l->list = (struct ox_ledger_list){.after = -1, .max = DATA_LIST_PAGE};
    ox_seq_start(&l->seq, l->st->p.loop, "storage.leftovers", leftovers_page, leftovers_done);
}

static ox_step leftovers_page(struct ox_seq *q)
{
    struct data_leftovers *l = leftovers_of(q);
    struct ox_place *place = ox_router_place(l->st->p.router, l->place);
    if (!place)
        return OX_FINISH(q, OX_E_PLACE_CLOSED);
    l->at = 0;
    ox_seq_bind(q, &l->list.op, "storage.list");
    ox_ledger_list(place, &l->list);
    return OX_WAIT(q, leftovers_listed);
}

static ox_step leftovers_listed(struct ox_seq *q)
{
    return q->err == OX_OK ? OX_GOTO(q, leftovers_look) : OX_FINISH(q, q->err);
}

static void leftovers_note(struct data_leftovers *l, const struct ox_ledger_info *info)
{
    const char *of = ox_kv_find(&info->custom, OX_COPY_OF);
    if (!l->remapped || ox_map_count(l->remapped) >= DATA_WINDOW || ox_map_find_str(l->remapped, of))
        return;
    struct data_remapped *r = ox_malloc(sizeof *r);
    r->of = ox_strdup(of);
    r->physical = info->id;
    ox_map_put_str(l->remapped, &r->node, r->of);
}

void data_remapped_fini(struct ox_map *remapped)
{
    OX_MAP_EACH(remapped, node) {
        struct data_remapped *r = CONTAINER_OF(node, struct data_remapped, node);
        ox_map_remove(remapped, node);
        ox_free(r->of);
        ox_free(r);
    }
}

static ox_step leftovers_delete(struct ox_seq *q, const struct ox_ledger_info *info)
{
    struct data_leftovers *l = leftovers_of(q);
    ox_info(l->st->p.log, "storage.leftover", "place=%s ledger=%lld log=\"%s\" entries=%lld",
            ox_router_name(l->st->p.router, l->place), (long long)info->id,
            ox_kv_find(&info->custom, "pulsar/managed-ledger"), (long long)info->last_entry + 1);
    ox_seq_bind(q, &l->del.op, "storage.leftover");
    ox_router_delete(l->st->p.router, &l->del, (struct ox_location){l->place, info->id, info->id}, &info->custom);
    return OX_WAIT(q, leftovers_deleted);
}

static ox_step leftovers_look(struct ox_seq *q)
{
    struct data_leftovers *l = leftovers_of(q);
    if (l->st->stopping)
        return OX_FINISH(q, OX_E_SHUTDOWN);
    while (l->at < l->list.count) {
        const struct ox_ledger_info *info = &l->list.items[l->at++];
        bool complete;
        int64_t of;
        if (!data_marker_read(l->st, info, &complete, &of))
            continue;
        if (!complete)
            return leftovers_delete(q, info);
        if (of != info->id)
            leftovers_note(l, info);
    }
    bool over = l->list.count < l->list.max;
    l->list.after = l->list.count > 0 ? l->list.items[l->list.count - 1].id : l->list.after;
    ox_ledger_list_fini(&l->list);
    return over ? OX_FINISH(q, OX_OK) : OX_GOTO(q, leftovers_page);
}

static ox_step leftovers_deleted(struct ox_seq *q)
{
    struct data_leftovers *l = leftovers_of(q);
    const struct ox_ledger_info *info = &l->list.items[l->at - 1];
    if (q->err == OX_E_SHUTDOWN)
        return OX_FINISH(q, q->err);
    if (q->err != OX_OK && q->err != OX_E_NO_LEDGER)
        ox_warn(l->st->p.log, "storage.leftover.failed", "place=%s ledger=%lld error=%s",
                ox_router_name(l->st->p.router, l->place), (long long)info->id, ox_err_name(q->err));
    return OX_GOTO(q, leftovers_look);
}
