// unregister.c - a place that nothing names any more goes out of the registry; whatever cannot be read is taken for a reference.
#include <string.h>

#include "move/storage/control_int.h"

struct leaving {
    struct ox_seq seq;
    struct ox_storage *st;
    struct ox_storage_call *call;
    char *name;
    uint64_t ledgers, cursors, copies;
    char *example; // a log that names it
    bool walking;
    struct ox_ml_walk walk;
    struct ox_ml_deletes_count count;
    struct ox_op op;
    struct ox_meta_del del;
};

static ox_step leave_walk(struct ox_seq *s);
static ox_step leave_walked(struct ox_seq *s);
static ox_step leave_deletes(struct ox_seq *s);
static ox_step leave_close(struct ox_seq *s);
static ox_step leave_identity(struct ox_seq *s);
static ox_step leave_entry(struct ox_seq *s);
static ox_step leave_forget(struct ox_seq *s);

static struct leaving *leave_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct leaving, seq);
}

static void leave_done(struct ox_seq *s, enum ox_err err)
{
    struct leaving *l = leave_of(s);
    struct ox_storage *st = l->st;
    storage_turn_give(st);
    if (l->walking)
        ox_ml_walk_end(&l->walk);
    if (err == OX_OK)
        storage_call_answer(st, l->call, NULL);
    else
        storage_call_fail(st, l->call, err, "%s", "");
    ox_free(l->name);
    ox_free(l->example);
    ox_free(l);
    storage_watch_kick(st);
}

static ox_step leave_refuse(struct ox_seq *s, enum ox_err err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static ox_step leave_refuse(struct ox_seq *s, enum ox_err err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    ox_str_addv(&leave_of(s)->call->why, format, args);
    va_end(args);
    return OX_FINISH(s, err);
}

void ox_storage_unregister(struct ox_storage *st, struct ox_storage_call *c, const char *name)
{
    if (!storage_call_begin(st, c))
        return;
    const struct storage_place *p = storage_place_find(st, name);
    bool unfinished = st->state == STORAGE_RUNNING || st->state == STORAGE_PAUSED;
    if (!p) {
        storage_call_fail(st, c, OX_E_NO_PLACE, "no bookie cluster is registered as %s: see the list", name);
    } else if (p->index == st->p.router->active) {
        storage_call_fail(st, c, OX_E_CONFLICT, "%s is active: switch to another one first", name);
    } else if (storage_target_user(st, p->index)) {
        storage_call_fail(st, c, OX_E_CONFLICT, "%s is the target of %s: set another one, or remove it", name,
                          storage_target_user(st, p->index));
    } else if (unfinished) {
        storage_call_fail(st, c, OX_E_CONFLICT, "the switch %s is not finished: wait for it, or abort it, before %s goes",
                          st->directive.switch_id, name);
    } else if (storage_turn_take(st, c, "unregistration")) {
        struct leaving *l = ox_malloc(sizeof *l);
        l->st = st;
        l->call = c;
        l->name = ox_strdup(name);
        l->walking = st->factory != NULL;
        if (l->walking)
            ox_ml_walk_begin(st->factory, &l->walk, true);
        ox_seq_start(&l->seq, st->p.loop, "storage.unregister", leave_walk, leave_done);
    }
}

// ---- is it named anywhere? -------------------------------------------------------------------------------------------

static ox_step leave_walk(struct ox_seq *s)
{
    struct leaving *l = leave_of(s);
    if (!l->walking)
        return leave_refuse(s, OX_E_BUSY, "the broker is starting: ask again");
    ox_seq_bind(s, &l->walk.op, "storage.unregister.walk");
    ox_ml_walk_next(&l->walk);
    return OX_WAIT(s, leave_walked);
}

static void leave_count(struct leaving *l, const struct ox_ml_found *f)
{
    bool primary = !strcmp(f->place, l->name), named = primary;
    l->cursors += primary && f->kind == OX_ML_KIND_CURSOR;
    l->ledgers += primary && f->kind != OX_ML_KIND_CURSOR;
    for (size_t i = 0; i < f->copy_count; i++)
        if (!strcmp(f->copies[i].place, l->name)) {
            l->copies++;
            named = true;
        }
    if (named && !l->example)
        l->example = ox_strdup(l->walk.log);
}

static ox_step leave_walked(struct ox_seq *s)
{
    struct leaving *l = leave_of(s);
    if (s->err != OX_OK)
        return leave_refuse(s, s->err, "it is not known what names %s: %s; ask again", l->name, ox_err_text(s->err));
    if (l->st->stopping)
        return leave_refuse(s, OX_E_SHUTDOWN, "the broker is stopping");
    if (!l->walk.log)
        return OX_GOTO(s, leave_deletes);
    if (l->walk.log_err != OX_OK)
        return leave_refuse(s, OX_E_CONFLICT, "the record of %s%s%s cannot be read (%s): it may name %s", l->walk.log,
                            l->walk.cursor ? ", cursor " : "", l->walk.cursor ? l->walk.cursor : "",
                            ox_err_text(l->walk.log_err), l->name);
    for (size_t i = 0; i < l->walk.count; i++) {
        if (storage_lost_stamp(l->st, &l->walk.found[i]))
            return leave_refuse(s, OX_E_CONFLICT, "the record of %s does not say where ledger %lld is: it may be in %s",
                                l->walk.log, (long long)l->walk.found[i].where.id, l->name);
        leave_count(l, &l->walk.found[i]);
    }
    return OX_GOTO(s, leave_walk);
}

static ox_step leave_deletes(struct ox_seq *s)
{
    struct leaving *l = leave_of(s);
    if (l->ledgers + l->cursors + l->copies > 0)
        return leave_refuse(s, OX_E_CONFLICT,
                            "%s holds %llu ledgers, %llu cursors' ledgers and %llu copies, for example of %s: move the "
                            "data away (move-data) and "
                            "let cleanup delete the copies",
                            l->name, (unsigned long long)l->ledgers, (unsigned long long)l->cursors,
                            (unsigned long long)l->copies, l->example);
    l->count = (struct ox_ml_deletes_count){.place = l->name};
    ox_seq_bind(s, &l->count.op, "storage.unregister.deletes");
    ox_ml_deletes_count(l->st->factory, &l->count);
    return OX_WAIT(s, leave_close);
}

// ---- it goes ---------------------------------------------------------------------------------------------------------

static void leave_holder(void *ctx, const struct ox_ledger *ledger)
{
    struct ox_str *out = ctx;
    const char *owner = ox_kv_find(&ledger->info.custom, "pulsar/managed-ledger");
    if (out->len < 200)
        ox_str_addf(out, "%sledger %lld of %s", out->len ? ", " : "", (long long)ledger->info.id, owner ? owner : "?");
}

static ox_step leave_held(struct ox_seq *s, const struct storage_place *p)
{
    struct leaving *l = leave_of(s);
    struct ox_str names = {0};
    ox_router_holders(l->st->p.router, p->index, leave_holder, &names);
    ox_step step =
        leave_refuse(s, OX_E_CONFLICT, "%s is being read: %s; ask again when that has ended", l->name, ox_str_get(&names));
    ox_str_fini(&names);
    return step;
}

static ox_step leave_close(struct ox_seq *s)
{
    struct leaving *l = leave_of(s);
    struct storage_place *p = storage_place_find(l->st, l->name);
    if (s->err != OX_OK)
        return leave_refuse(s, s->err, "it is not known which deletes wait for %s: %s; ask again", l->name,
                            ox_err_text(s->err));
    if (l->count.count > 0)
        return leave_refuse(s, OX_E_CONFLICT, "%zu deletes wait for %s: they are done when it can be reached",
                            l->count.count, l->name);
    if (ox_router_place(l->st->p.router, p->index) && ox_router_holders(l->st->p.router, p->index, NULL, NULL) > 0)
        return leave_held(s, p);
    ox_seq_bind(s, &l->op, "storage.unregister.close");
    ox_router_detach(l->st->p.router, &l->op, p->index, OX_E_PLACE_CLOSED);
    return OX_WAIT(s, leave_identity);
}

// Once it is closed, how that went does not matter: nothing is in it.
static ox_step leave_identity(struct ox_seq *s)
{
    struct leaving *l = leave_of(s);
    struct storage_place *p = storage_place_find(l->st, l->name);
    if (ox_router_place(l->st->p.router, p->index))
        return leave_refuse(s, s->err, "something is being done in %s: ask again", l->name);
    p->opened = false; // if it does not go after all, it is opened again
    OX_CRASHPOINT(s->loop, "unregister.after_close");
    OX_CLEANUP(ox_free_ptr)
    char *path = storage_identity_path(l->name);
    ox_seq_bind(s, &l->del.op, "storage.unregister.identity");
    ox_meta_del(l->st->p.meta, &l->del, path, OX_META_ANY);
    return OX_WAIT(s, leave_entry);
}

static ox_step leave_entry(struct ox_seq *s)
{
    struct leaving *l = leave_of(s);
    if (s->err != OX_OK && s->err != OX_E_NOT_FOUND)
        return leave_refuse(s, s->err, "the identity of %s could not be removed: %s; unregister it again", l->name,
                            ox_err_text(s->err));
    OX_CRASHPOINT(s->loop, "unregister.after_identity");
    OX_CLEANUP(ox_free_ptr)
    char *path = storage_path(l->st, "%s", l->name);
    ox_seq_bind(s, &l->del.op, "storage.unregister.entry");
    ox_meta_del(l->st->p.meta, &l->del, path, OX_META_ANY);
    return OX_WAIT(s, leave_forget);
}

static ox_step leave_forget(struct ox_seq *s)
{
    struct leaving *l = leave_of(s);
    struct ox_storage *st = l->st;
    if (s->err != OX_OK && s->err != OX_E_NOT_FOUND)
        return leave_refuse(s, s->err, "the entry of %s could not be removed: %s; unregister it again", l->name,
                            ox_err_text(s->err));
    struct storage_place *p = storage_place_find(st, l->name);
    ox_router_forget(st->p.router, p->index);
    storage_place_free(st, p);
    ox_info(st->p.log, "storage.unregistered", "place=%s", l->name);
    return OX_FINISH(s, OX_OK);
}
