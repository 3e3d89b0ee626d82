// switch.c - which place is active is changed by one compare-and-set on the directive; everything else follows from it.
#include <inttypes.h>
#include <string.h>

#include "move/storage/control_int.h"

struct switching {
    struct ox_seq seq;
    struct ox_storage *st;
    struct ox_storage_call *call;
    char *target;
    bool supersede;
    struct storage_precheck check;
    struct storage_directive next;
    struct storage_put put;
    struct ox_op op;
};

static ox_step switch_precheck(struct ox_seq *s);
static ox_step switch_checked(struct ox_seq *s);
static ox_step switch_write(struct ox_seq *s);
static ox_step switch_written(struct ox_seq *s);
static ox_step switch_noted(struct ox_seq *s);

static struct switching *switch_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct switching, seq);
}

static json_t *switch_json(const struct storage_directive *d, const char *target)
{
    return json_pack("{s:s?,s:I,s:s,s:s?}", "switchId", d->switch_id, "epoch", (json_int_t)d->epoch, "target", target,
                     "previous", d->previous);
}

static void switch_done(struct ox_seq *s, enum ox_err err)
{
    struct switching *w = switch_of(s);
    if (w->st->control->busy && !strcmp(w->st->control->busy, "switch"))
        storage_turn_give(w->st);
    storage_watch_kick(w->st);
    if (err == OX_OK)
        storage_call_answer(w->st, w->call, switch_json(&w->next, w->target));
    else
        storage_call_fail(w->st, w->call, err, "%s", "");
    storage_precheck_fini(&w->check);
    storage_directive_fini(&w->next);
    ox_free(w->target);
    ox_free(w);
}

static ox_step switch_refuse(struct ox_seq *s, enum ox_err err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static ox_step switch_refuse(struct ox_seq *s, enum ox_err err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    ox_str_addv(&switch_of(s)->call->why, format, args);
    va_end(args);
    return OX_FINISH(s, err);
}

// To where we are already: what had failed is tried again.
static void switch_noop(struct ox_storage *st, struct ox_storage_call *c, const char *target)
{
    json_t *answer = switch_json(&st->directive, target);
    json_object_set_new(answer, "noop", json_true());
    if (st->state == STORAGE_DONE_WITH_FAILURES || st->state == STORAGE_ABORTED) {
        storage_failures_clear(st);
        st->state = STORAGE_RUNNING;
        storage_header_save(st);
    }
    ox_ml_follow(st->factory);
    storage_orchestrate(st);
    storage_call_answer(st, c, answer);
}

void ox_storage_switch(struct ox_storage *st, struct ox_storage_call *c, const char *target, bool supersede)
{
    if (!storage_call_begin(st, c))
        return;
    if (!storage_place_find(st, target)) {
        storage_call_fail(st, c, OX_E_NO_PLACE, "no bookie cluster is registered as %s: register it first", target);
        return;
    }
    if (!strcmp(target, storage_active(st))) {
        switch_noop(st, c, target);
        return;
    }
    if (!storage_turn_take(st, c, "switch"))
        return;
    struct switching *w = ox_malloc(sizeof *w);
    w->st = st;
    w->call = c;
    w->target = ox_strdup(target);
    w->supersede = supersede;
    w->next.version = -1;
    ox_seq_start(&w->seq, st->p.loop, "storage.switch", switch_precheck, switch_done);
}

void ox_storage_rollback(struct ox_storage *st, struct ox_storage_call *c)
{
    const char *previous = st->directive.previous;
    if (previous && storage_place_find(st, previous)) {
        ox_storage_switch(st, c, previous, true);
        return;
    }
    if (storage_call_begin(st, c))
        storage_call_fail(st, c, OX_E_CONFLICT, "there is nothing to go back to: %s%s",
                          previous ? previous : "no switch was made yet",
                          previous ? " was unregistered; register another one and switch to it" : "");
}

static ox_step switch_precheck(struct ox_seq *s)
{
    struct switching *w = switch_of(s);
    ox_seq_bind(s, &w->check.op, "storage.switch.precheck");
    storage_precheck_run(w->st, &w->check, w->target, w->supersede);
    return OX_WAIT(s, switch_checked);
}

static ox_step switch_checked(struct ox_seq *s)
{
    struct switching *w = switch_of(s);
    struct ox_storage *st = w->st;
    if (s->err != OX_OK)
        return switch_refuse(s, s->err, "the precheck of %s was cut off: %s", w->target, ox_err_text(s->err));
    if (!w->check.ready) {
        st->control->switch_refused.value++;
        return switch_refuse(s, OX_E_CONFLICT, "%s is not ready, nothing has changed: %s", w->target,
                             ox_str_get(&w->check.why));
    }
    OX_CRASHPOINT(s->loop, "switch.after_precheck");
    return OX_GOTO(s, switch_write);
}

static ox_step switch_write(struct ox_seq *s)
{
    struct switching *w = switch_of(s);
    struct ox_storage *st = w->st;
    w->next = (struct storage_directive){
        .version = -1,
        .epoch = st->directive.epoch + 1,
        .target = ox_strdup(w->target),
        .previous = ox_strdup(storage_active(st)),
        .origin = ox_asprintf("http://%s", st->p.config.broker),
        .switch_id = ox_asprintf("%016" PRIx64 "%016" PRIx64, ox_loop_random(s->loop), ox_loop_random(s->loop)),
        .ts_ms = ox_wall_ms(s->loop),
    };
    OX_CLEANUP(ox_free_ptr)
    char *path = storage_path(st, "switch-target");
    ox_seq_bind(s, &w->put.op, "storage.switch.write");
    storage_put(st, &w->put, path, storage_directive_text(&w->next),
                st->directive.version >= 0 ? st->directive.version : OX_META_ABSENT);
    return OX_WAIT(s, switch_written);
}

static ox_step switch_unwritten(struct ox_seq *s)
{
    struct switching *w = switch_of(s);
    w->st->control->switch_lost.value++;
    if (s->err == OX_E_BAD_VERSION)
        return switch_refuse(
            s, OX_E_CONFLICT,
            "another switch was quicker, this one to %s has changed nothing: see status, then ask again", w->target);
    return switch_refuse(s, s->err, "the metadata store does not answer (%s): ask status whether the switch to %s was made",
                         ox_err_text(s->err), w->target);
}

static ox_step switch_written(struct ox_seq *s)
{
    struct switching *w = switch_of(s);
    struct ox_storage *st = w->st;
    if (s->err != OX_OK)
        return switch_unwritten(s);
    OX_CRASHPOINT(s->loop, "switch.after_directive");
    w->next.version = w->put.version;
    st->control->switch_ok.value++;
    storage_turn_give(st);
    const struct storage_place *p = storage_place_find(st, w->target);
    if (!p || !ox_router_place(st->p.router, p->index)) // closed since the precheck: the watch opens it again, then follows
        return OX_FINISH(s, OX_OK);
    storage_adopt(st, &w->next);
    ox_seq_bind(s, &w->op, "storage.switch.header");
    storage_header_wait(st, &w->op);
    return OX_WAIT(s, switch_noted);
}

// The header is a note: the switch is made, whether it is written or not.
static ox_step switch_noted(struct ox_seq *s)
{
    return OX_FINISH(s, OX_OK);
}
