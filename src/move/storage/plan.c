// plan.c - what moving to a place would do: how much, how long, whether it fits, which ids are taken there.
#include <string.h>

#include "move/storage/data_int.h"

#define PLAN_CONFLICTS 100u // ids listed

struct plan {
    struct ox_storage *st;
    struct ox_storage_call *call;
    struct ox_seq seq;
    uint32_t target;
    uint64_t bytes_per_s;
    struct ox_ml_walk walk;
    bool walking;
    size_t at;
    struct ox_ledger_open probe;
    uint64_t ledgers, cursors, bytes, topics, kept, conflict_count;
    json_t *conflicts;
    char *last_topic;
};

static ox_step plan_walk(struct ox_seq *q);
static ox_step plan_walked(struct ox_seq *q);
static ox_step plan_item(struct ox_seq *q);
static ox_step plan_probed(struct ox_seq *q);
static ox_step plan_answer(struct ox_seq *q);

static struct plan *plan_of(struct ox_seq *q)
{
    return CONTAINER_OF(q, struct plan, seq);
}

static void plan_done(struct ox_seq *q, enum ox_err err)
{
    struct plan *p = plan_of(q);
    if (err != OX_OK)
        storage_call_fail(p->st, p->call, err, "no plan can be made: %s; try again", ox_err_text(err));
    ox_ml_walk_end(&p->walk);
    json_decref(p->conflicts);
    ox_free(p->last_topic);
    ox_free(p);
}

void ox_storage_plan(struct ox_storage *st, struct ox_storage_call *c, const char *target, int64_t bytes_per_s)
{
    uint32_t index = 0;
    if (!storage_call_begin(st, c))
        return;
    if (ox_router_find(st->p.router, target, &index) != OX_OK) {
        storage_call_fail(st, c, OX_E_NOT_FOUND, "no bookie cluster %s is registered", target);
        return;
    }
    if (!ox_router_place(st->p.router, index)) {
        storage_call_fail(st, c, OX_E_PLACE_CLOSED, "bookie cluster %s is not open here: see the log for the reason", target);
        return;
    }
    struct plan *p = ox_malloc(sizeof *p);
    p->st = st;
    p->call = c;
    p->target = index;
    p->bytes_per_s = bytes_per_s > 0 ? (uint64_t)bytes_per_s : 0;
    p->conflicts = json_array();
    ox_ml_walk_begin(st->factory, &p->walk, true);
    ox_seq_start(&p->seq, st->p.loop, "storage.plan", plan_walk, plan_done);
}

static ox_step plan_walk(struct ox_seq *q)
{
    struct plan *p = plan_of(q);
    if (p->st->stopping)
        return OX_FINISH(q, OX_E_SHUTDOWN);
    p->at = 0;
    ox_seq_bind(q, &p->walk.op, "storage.plan.walk");
    ox_ml_walk_next(&p->walk);
    return OX_WAIT(q, plan_walked);
}

static ox_step plan_walked(struct ox_seq *q)
{
    struct plan *p = plan_of(q);
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    return p->walk.log ? OX_GOTO(q, plan_item) : OX_GOTO(q, plan_answer);
}

static void plan_count_topic(struct plan *p)
{
    if (p->last_topic && strcmp(p->last_topic, p->walk.log) == 0)
        return;
    p->topics++;
    ox_free(p->last_topic);
    p->last_topic = ox_strdup(p->walk.log);
}

// True if a found ledger would have to be copied.
static bool plan_take(struct plan *p, const struct ox_ml_found *f)
{
    if ((f->known && f->where.place == p->target) || storage_home_if(p->st, p->walk.log, p->target) != p->target)
        return false; // there, or its target is another place
    plan_count_topic(p);
    if (f->kind == OX_ML_KIND_CURSOR) {
        p->cursors++;
        return false;
    }
    p->ledgers++;
    if (f->kind == OX_ML_KIND_COMPACTED)
        return false; // its topic makes a new one
    for (size_t i = 0; i < f->copy_count; i++)
        if (strcmp(f->copies[i].place, ox_router_name(p->st->p.router, p->target)) == 0) {
            p->kept++;
            return false;
        }
    p->bytes += f->bytes;
    return f->known && !f->open;
}

static ox_step plan_item(struct ox_seq *q)
{
    struct plan *p = plan_of(q);
    while (p->at < p->walk.count) {
        const struct ox_ml_found *f = &p->walk.found[p->at++];
        if (!plan_take(p, f))
            continue;
        struct ox_kv expected = {0};
        data_marker(p->st, &expected, p->walk.log, f->where, -1);
        ox_seq_bind(q, &p->probe.op, "storage.plan.probe");
        ox_router_open(p->st->p.router, &p->probe, (struct ox_location){p->target, f->where.id, f->where.id},
                       OX_OPEN_READ_ONLY, &expected);
        ox_kv_fini(&expected);
        return OX_WAIT(q, plan_probed);
    }
    return OX_GOTO(q, plan_walk);
}

static ox_step plan_probed(struct ox_seq *q)
{
    struct plan *p = plan_of(q);
    if (q->err == OX_OK) {
        ox_ledger_release(p->probe.ledger); // an earlier run's copy
    } else if (q->err == OX_E_IDENTITY_MISMATCH || q->err == OX_E_CORRUPT) {
        if (p->conflict_count++ < PLAN_CONFLICTS)
            json_array_append_new(p->conflicts, json_pack("{s:s, s:I, s:s}", "topic", p->walk.log, "ledger",
                                                          (json_int_t)p->walk.found[p->at - 1].where.id, "reason",
                                                          "the id is taken there: the copy gets another physical id"));
    } else if (q->err != OX_E_NO_LEDGER) {
        return OX_FINISH(q, q->err);
    }
    return OX_GOTO(q, plan_item);
}

static ox_step plan_answer(struct ox_seq *q)
{
    struct plan *p = plan_of(q);
    struct ox_place *place = ox_router_place(p->st->p.router, p->target);
    struct ox_capacity has = {0};
    if (place)
        ox_place_capacity(place, &has);
    uint64_t keep = storage_keep_free(&has);
    int64_t seconds = data_seconds(data_get(p->st), p->bytes, p->bytes_per_s);
    json_t *answer =
        json_pack("{s:I, s:I, s:I, s:I, s:o, s:O, s:I, s:I, s:b, s:I}", "ledgers", (json_int_t)p->ledgers, "cursors",
                  (json_int_t)p->cursors, "bytes", (json_int_t)p->bytes, "withoutCopying", (json_int_t)p->kept,
                  "seconds", seconds >= 0 ? json_integer(seconds) : json_null(), "conflicts", p->conflicts,
                  "conflictCount", (json_int_t)p->conflict_count, "bytesAvailable", (json_int_t)has.available, "fits",
                  has.writable && has.available >= keep + p->bytes, "topics", (json_int_t)p->topics);
    storage_call_answer(p->st, p->call, answer);
    return OX_FINISH(q, OX_OK);
}
