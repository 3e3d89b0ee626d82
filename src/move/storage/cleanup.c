// cleanup.c - deletes copies that were left behind once their window has ended, and copies that no record names.
//
// A copy is taken out of its record first, by compare-and-set: if it is primary again, that says so and nothing is deleted. Then it is deleted in its place,
// owner checked (mledger/relocate.c does both under the log's claim). Copies that no record names are found by listing a place and taking away what one walk over all records names.
#include <stdlib.h>
#include <string.h>

#include "move/storage/control_int.h"
#include "move/storage/data_int.h"

// Something to be deleted.
struct cleanup_target {
    char *log;
    struct ox_location where;
    uint64_t bytes, since_ms, due_ms;
    bool leftover;       // no record names it
    bool complete, seen; // leftover: closed with all its entries; its log has a record
    struct ox_kv kv;     // leftover: what it must carry
};

struct cleanup {
    struct ox_storage *st;
    struct ox_storage_call *call;
    struct storage_data *d;
    struct ox_seq seq;
    bool dry, force, listing; // listing: cleanup-targets
    uint32_t source;          // index, or UINT32_MAX: all places
    uint64_t max;             // deletes; 0: no limit
    bool sweeping;
    uint32_t place; // being listed
    struct ox_ledger_list list;
    struct cleanup_target *window;  // copies found by listing, by physical id
    struct cleanup_target **by_log; // the same, by log
    size_t window_count;
    bool list_over;
    struct data_walk walk;
    struct cleanup_target *targets;
    size_t count, cap, at;
    uint64_t due, not_due, beyond; // copies on record: due; kept until later; due and not among the targets
    uint64_t deleted, failed, handled, round_deleted;
    json_t *items;
    struct ox_ml_drop_copy drop;
    struct ox_ledger_delete del;
    struct ox_timer pause;
    int tries;
};

static ox_step cleanup_place(struct ox_seq *q);
static ox_step cleanup_page(struct ox_seq *q);
static ox_step cleanup_listed(struct ox_seq *q);
static ox_step cleanup_compared(struct ox_seq *q);
static ox_step cleanup_copies(struct ox_seq *q);
static ox_step cleanup_copies_found(struct ox_seq *q);
static ox_step cleanup_next(struct ox_seq *q);
static ox_step cleanup_drop(struct ox_seq *q);
static ox_step cleanup_dropped(struct ox_seq *q);
static ox_step cleanup_leftover_deleted(struct ox_seq *q);
static ox_step cleanup_answer(struct ox_seq *q);

static struct cleanup *cleanup_of(struct ox_seq *q)
{
    return CONTAINER_OF(q, struct cleanup, seq);
}

static void cleanup_target_fini(struct cleanup_target *t)
{
    ox_free(t->log);
    ox_kv_fini(&t->kv);
}

static void cleanup_targets_free(struct cleanup *k)
{
    for (size_t i = 0; i < k->count; i++)
        cleanup_target_fini(&k->targets[i]);
    k->count = 0;
}

static void cleanup_window_free(struct cleanup *k)
{
    for (size_t i = 0; i < k->window_count; i++)
        cleanup_target_fini(&k->window[i]);
    k->window_count = 0;
}

static void cleanup_done(struct ox_seq *q, enum ox_err err)
{
    struct cleanup *k = cleanup_of(q);
    if (err != OX_OK)
        storage_call_fail(k->st, k->call, err,
                          "cleanup has stopped after %llu deletes: %s; what is left is found again next time",
                          (unsigned long long)k->deleted, ox_err_text(err));
    if (k->sweeping)
        k->d->sweeps--;
    ox_timer_stop(&k->pause);
    ox_ledger_list_fini(&k->list);
    cleanup_window_free(k);
    cleanup_targets_free(k);
    ox_free(k->window);
    ox_free(k->by_log);
    ox_free(k->targets);
    json_decref(k->items);
    ox_free(k);
}

static void cleanup_again(struct ox_timer *t)
{
    ox_seq_resume(&CONTAINER_OF(t, struct cleanup, pause)->seq, OX_OK);
}

static struct cleanup *cleanup_start(struct ox_storage *st, struct ox_storage_call *c, const char *source)
{
    uint32_t index = UINT32_MAX;
    if (source && ox_router_find(st->p.router, source, &index) != OX_OK) {
        storage_call_fail(st, c, OX_E_NOT_FOUND, "no bookie cluster %s is registered", source);
        return NULL;
    }
    struct cleanup *k = ox_malloc(sizeof *k);
    k->st = st;
    k->call = c;
    k->d = data_get(st);
    k->source = index;
    k->items = json_array();
    ox_timer_init(&k->pause, st->p.loop, cleanup_again);
    k->sweeping = !k->d->run; // while copies are being made, who could tell which are left over?
    k->d->sweeps += k->sweeping;
    ox_seq_start(&k->seq, st->p.loop, "storage.cleanup", cleanup_place, cleanup_done);
    return k;
}

void ox_storage_cleanup_targets(struct ox_storage *st, struct ox_storage_call *c, const char *source)
{
    struct cleanup *k = storage_call_begin(st, c) ? cleanup_start(st, c, source) : NULL;
    if (!k)
        return;
    k->listing = k->dry = k->force = true;
}

void ox_storage_cleanup(struct ox_storage *st, struct ox_storage_call *c, const char *source, bool dry_run, bool force,
                        int64_t max)
{
    struct cleanup *k = storage_call_begin(st, c) ? cleanup_start(st, c, source) : NULL;
    if (!k)
        return;
    k->dry = dry_run;
    k->force = force;
    k->max = max > 0 ? (uint64_t)max : 0;
}

static bool cleanup_wants_place(const struct cleanup *k, uint32_t place)
{
    return (k->source == UINT32_MAX || k->source == place) && ox_router_place(k->st->p.router, place);
}

static struct cleanup_target *cleanup_add(struct cleanup *k)
{
    if (k->count == k->cap) {
        k->cap = k->cap ? 2 * k->cap : 64;
        k->targets = ox_realloc(k->targets, k->cap, sizeof *k->targets);
    }
    struct cleanup_target *t = &k->targets[k->count++];
    *t = (struct cleanup_target){0};
    return t;
}

// ---- copies that no record names

static ox_step cleanup_place(struct ox_seq *q)
{
    struct cleanup *k = cleanup_of(q);
    while (k->place < k->st->p.router->count && !cleanup_wants_place(k, k->place))
        k->place++;
    if (!k->sweeping || k->place >= k->st->p.router->count)
        return OX_GOTO(q, cleanup_copies);
    if (!k->window) {
        k->window = ox_calloc(DATA_WINDOW, sizeof *k->window);
        k->by_log = ox_calloc(DATA_WINDOW, sizeof(struct cleanup_target *));
    }
    k->list = (struct ox_ledger_list){.after = -1, .max = DATA_LIST_PAGE};
    k->list_over = false;
    return OX_GOTO(q, cleanup_page);
}

static ox_step cleanup_page(struct ox_seq *q)
{
    struct cleanup *k = cleanup_of(q);
    struct ox_place *place = ox_router_place(k->st->p.router, k->place);
    if (k->st->stopping || !place)
        return OX_FINISH(q, place ? OX_E_SHUTDOWN : OX_E_PLACE_CLOSED);
    ox_seq_bind(q, &k->list.op, "storage.cleanup.list");
    ox_ledger_list(place, &k->list);
    return OX_WAIT(q, cleanup_listed);
}

static void cleanup_window_add(struct cleanup *k, const struct ox_ledger_info *info)
{
    bool complete;
    int64_t of;
    const char *id = k->st->directive.switch_id, *made_for = ox_kv_find(&info->custom, OX_COPY_SWITCH);
    if (!data_marker_read(k->st, info, &complete, &of))
        return;
    bool running = (k->st->state == STORAGE_RUNNING || k->st->state == STORAGE_PAUSED) && storage_is_home(k->st, k->place);
    if (running && id && made_for && strcmp(id, made_for) == 0 && k->st->move_data)
        return; // its switch goes on with it
    struct cleanup_target *t = &k->window[k->window_count++];
    *t = (struct cleanup_target){.log = ox_strdup(ox_kv_find(&info->custom, "pulsar/managed-ledger")),
                                 .where = {k->place, info->id, info->id},
                                 .bytes = info->length,
                                 .leftover = true,
                                 .complete = complete};
    ox_kv_copy(&t->kv, &info->custom);
}

static int cleanup_by_id(const void *a, const void *b)
{
    const struct cleanup_target *x = a, *y = b;
    return (x->where.physical > y->where.physical) - (x->where.physical < y->where.physical);
}

static void cleanup_named(struct cleanup *k, const char *place, int64_t physical)
{
    if (strcmp(place, ox_router_name(k->st->p.router, k->place)) != 0)
        return;
    struct cleanup_target key = {.where.physical = physical};
    struct cleanup_target *t = bsearch(&key, k->window, k->window_count, sizeof key, cleanup_by_id);
    if (t)
        t->leftover = false;
}

static int cleanup_by_log(const void *a, const void *b)
{
    const struct cleanup_target *const *x = a, *const *y = b;
    return strcmp((*x)->log, (*y)->log);
}

// The log has a record; if that can't be understood, nobody knows what it names.
static void cleanup_see_log(struct cleanup *k, const struct ox_ml_walk *w)
{
    struct cleanup_target key = {.log = (char *)(uintptr_t)w->log}, *keys = &key;
    struct cleanup_target **t = bsearch(&keys, k->by_log, k->window_count, sizeof keys, cleanup_by_log);
    while (t && t > k->by_log && strcmp(t[-1]->log, w->log) == 0)
        t--;
    for (; t && t < k->by_log + k->window_count && strcmp((*t)->log, w->log) == 0; t++) {
        (*t)->seen = true;
        (*t)->leftover &= w->log_err == OX_OK;
    }
}

static void cleanup_compare(void *ctx, const struct ox_ml_walk *w)
{
    struct cleanup *k = ctx;
    cleanup_see_log(k, w);
    for (size_t i = 0; i < w->count; i++) {
        const struct ox_ml_found *f = &w->found[i];
        bool lost = storage_lost_stamp(k->st, f); // it may be in any place
        cleanup_named(k, lost ? ox_router_name(k->st->p.router, k->place) : f->place, f->where.physical);
        for (size_t n = 0; n < f->copy_count; n++)
            cleanup_named(k, f->copies[n].place, f->copies[n].physical);
    }
}

static ox_step cleanup_listed(struct ox_seq *q)
{
    struct cleanup *k = cleanup_of(q);
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    for (size_t i = 0; i < k->list.count; i++)
        cleanup_window_add(k, &k->list.items[i]);
    k->list_over = k->list.count < k->list.max;
    if (k->list.count > 0)
        k->list.after = k->list.items[k->list.count - 1].id;
    ox_ledger_list_fini(&k->list);
    if (!k->list_over && k->window_count + DATA_LIST_PAGE <= DATA_WINDOW)
        return OX_GOTO(q, cleanup_page);
    for (size_t i = 0; i < k->window_count; i++)
        k->by_log[i] = &k->window[i];
    if (k->window_count > 0)
        qsort(k->by_log, k->window_count, sizeof k->by_log[0], cleanup_by_log);
    k->walk = (struct data_walk){.st = k->st, .visit = cleanup_compare, .ctx = k};
    ox_seq_bind(q, &k->walk.op, "storage.cleanup.compare");
    data_walk_start(&k->walk, false);
    return OX_WAIT(q, cleanup_compared);
}

// A finished copy whose log has no record at all is kept: the metadata may be what was lost.
static bool cleanup_is_leftover(const struct cleanup_target *t)
{
    return t->leftover && (t->seen || !t->complete);
}

static ox_step cleanup_compared(struct ox_seq *q)
{
    struct cleanup *k = cleanup_of(q);
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    for (size_t i = 0; i < k->window_count; i++) {
        if (cleanup_is_leftover(&k->window[i]) && k->count < DATA_ITEMS_MAX)
            *cleanup_add(k) = k->window[i];
        else
            cleanup_target_fini(&k->window[i]);
    }
    k->window_count = 0;
    k->place += k->list_over;
    return k->list_over ? OX_GOTO(q, cleanup_place) : OX_GOTO(q, cleanup_page);
}

// ---- copies on record

static void cleanup_found(struct cleanup *k, const char *log, const struct ox_ml_found *f, const struct ox_ml_copy *c)
{
    uint32_t place = 0;
    uint64_t due_ms = c->since_ms + k->st->p.config.window_ms, now_ms = ox_wall_ms(k->st->p.loop);
    bool known = ox_router_find(k->st->p.router, c->place, &place) == OX_OK;
    if (k->source != UINT32_MAX && (!known || place != k->source))
        return;
    if (due_ms > now_ms && !k->force) {
        k->not_due++;
        return;
    }
    k->due++;
    bool limit = k->max > 0 && k->handled + k->count >= k->max;
    if (!known || !ox_router_place(k->st->p.router, place) || limit || k->count >= DATA_ITEMS_MAX) {
        k->beyond++;
        return;
    }
    struct cleanup_target *t = cleanup_add(k);
    t->log = ox_strdup(log);
    t->where = (struct ox_location){place, f->where.id, c->physical};
    t->bytes = f->bytes;
    t->since_ms = c->since_ms;
    t->due_ms = due_ms;
}

static void cleanup_visit(void *ctx, const struct ox_ml_walk *w)
{
    for (size_t i = 0; i < w->count; i++)
        for (size_t n = 0; n < w->found[i].copy_count; n++)
            if (w->found[i].kind == OX_ML_KIND_DATA)
                cleanup_found(ctx, w->log, &w->found[i], &w->found[i].copies[n]);
}

static ox_step cleanup_copies(struct ox_seq *q)
{
    struct cleanup *k = cleanup_of(q);
    if (k->max > 0)
        while (k->count > k->max - OX_MIN(k->max, k->handled)) // leftovers count too
            cleanup_target_fini(&k->targets[--k->count]);
    k->due = k->not_due = k->beyond = 0;
    k->walk = (struct data_walk){.st = k->st, .visit = cleanup_visit, .ctx = k};
    ox_seq_bind(q, &k->walk.op, "storage.cleanup.walk");
    data_walk_start(&k->walk, false);
    return OX_WAIT(q, cleanup_copies_found);
}

static ox_step cleanup_copies_found(struct ox_seq *q)
{
    struct cleanup *k = cleanup_of(q);
    if (q->err != OX_OK)
        return OX_FINISH(q, q->err);
    k->at = 0;
    k->round_deleted = 0;
    return OX_GOTO(q, cleanup_next);
}

// ---- deleting

static void cleanup_item(struct cleanup *k, const struct cleanup_target *t, const char *error)
{
    if (json_array_size(k->items) >= DATA_ITEMS_MAX)
        return;
    json_t *item =
        json_pack("{s:s, s:I, s:I, s:s, s:I, s:I, s:I}", "place", ox_router_name(k->st->p.router, t->where.place),
                  "ledger", (json_int_t)t->where.id, "physical", (json_int_t)t->where.physical, "topic", t->log,
                  "bytes", (json_int_t)t->bytes, "since", (json_int_t)t->since_ms, "due", (json_int_t)t->due_ms);
    if (t->leftover)
        json_object_set_new(item, "leftover", json_true());
    if (error)
        json_object_set_new(item, "error", json_string(error));
    json_array_append_new(k->items, item);
}

static ox_step cleanup_next(struct ox_seq *q)
{
    struct cleanup *k = cleanup_of(q);
    if (k->st->stopping || q->loop->dead)
        return OX_FINISH(q, OX_E_SHUTDOWN);
    if (k->at >= k->count)
        return OX_GOTO(q, cleanup_answer);
    k->tries = 0;
    const struct cleanup_target *t = &k->targets[k->at];
    if (k->dry) {
        cleanup_item(k, t, NULL);
        k->at++;
        return OX_GOTO(q, cleanup_next);
    }
    if (!t->leftover)
        return OX_GOTO(q, cleanup_drop);
    ox_seq_bind(q, &k->del.op, "storage.cleanup.leftover");
    ox_router_delete(k->st->p.router, &k->del, t->where, &t->kv);
    return OX_WAIT(q, cleanup_leftover_deleted);
}

// One target is over, deleted or not.
static ox_step cleanup_over(struct cleanup *k, enum ox_err err)
{
    const struct cleanup_target *t = &k->targets[k->at++];
    bool gone = err == OX_OK || err == OX_E_NO_LEDGER;
    k->deleted += gone;
    k->round_deleted += gone;
    k->failed += !gone;
    k->handled++;
    if (!gone)
        ox_warn(k->st->p.log, "storage.cleanup.kept", "place=%s log=\"%s\" ledger=%lld physical=%lld error=%s",
                ox_router_name(k->st->p.router, t->where.place), t->log, (long long)t->where.id,
                (long long)t->where.physical, ox_err_name(err));
    cleanup_item(k, t, gone ? NULL : ox_err_text(err));
    return OX_GOTO(&k->seq, cleanup_next);
}

static ox_step cleanup_leftover_deleted(struct ox_seq *q)
{
    struct cleanup *k = cleanup_of(q);
    OX_CRASHPOINT(q->loop, "cleanup.after_leftover");
    return cleanup_over(k, q->err);
}

static ox_step cleanup_drop(struct ox_seq *q)
{
    struct cleanup *k = cleanup_of(q);
    const struct cleanup_target *t = &k->targets[k->at];
    if (k->st->stopping)
        return OX_FINISH(q, OX_E_SHUTDOWN);
    k->drop = (struct ox_ml_drop_copy){.log = t->log,
                                       .ledger = t->where.id,
                                       .place = ox_router_name(k->st->p.router, t->where.place),
                                       .physical = t->where.physical};
    ox_seq_bind(q, &k->drop.op, "storage.cleanup.drop");
    ox_ml_drop_copy(k->st->factory, &k->drop);
    return OX_WAIT(q, cleanup_dropped);
}

// CONFLICT: it is the primary again, and stays. NOT_FOUND: the record, or the copy in it, went meanwhile; who took it out deletes it.
static ox_step cleanup_dropped(struct ox_seq *q)
{
    struct cleanup *k = cleanup_of(q);
    if (q->err == OX_E_BUSY && ++k->tries < DATA_BUSY_TRIES) {
        ox_timer_start(&k->pause, DATA_BUSY_NS);
        return OX_WAIT(q, cleanup_drop);
    }
    if (q->err == OX_OK)
        OX_CRASHPOINT(q->loop, "cleanup.after_delete");
    return cleanup_over(k, q->err == OX_OK ? k->drop.left : q->err == OX_E_NOT_FOUND ? OX_E_NO_LEDGER : q->err);
}

// ---- the answer

static ox_step cleanup_answer(struct ox_seq *q)
{
    struct cleanup *k = cleanup_of(q);
    bool more = k->beyond > 0 && k->round_deleted > 0 && (k->max == 0 || k->handled < k->max);
    cleanup_targets_free(k);
    if (!k->dry && more) // there were more than one portion
        return OX_GOTO(q, cleanup_copies);
    if (k->listing) {
        storage_call_answer(k->st, k->call, json_incref(k->items));
    } else if (!k->dry && k->handled == 0 && k->due == 0 && k->not_due > 0) {
        storage_call_fail(k->st, k->call, OX_E_CONFLICT,
                          "the window is open: %llu copies are kept for switching back; ask again later, or force it",
                          (unsigned long long)k->not_due);
    } else {
        storage_call_answer(k->st, k->call,
                            json_pack("{s:b, s:I, s:I, s:O}", "dryRun", k->dry, "deleted", (json_int_t)k->deleted,
                                      "left", (json_int_t)(k->not_due + k->beyond + k->failed), "items", k->items));
    }
    return OX_FINISH(q, OX_OK);
}
