// header.c - the orchestrator's note of what the present switch is doing, and of what failed: written whenever it changes, the last state wins.
#include <stdlib.h>
#include <string.h>

#include "move/storage/control_int.h"

static ox_step save_header(struct ox_seq *s);
static ox_step save_header_written(struct ox_seq *s);
static ox_step save_header_read(struct ox_seq *s);
static ox_step save_failures_written(struct ox_seq *s);

static struct ox_storage *save_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct storage_saver, seq)->st;
}

static void save_pause_over(struct ox_timer *t)
{
    ox_seq_resume(&CONTAINER_OF(t, struct storage_saver, timer)->seq, OX_OK);
}

static void save_done(struct ox_seq *s, enum ox_err err)
{
    struct ox_storage *st = save_of(s);
    struct storage_saver *v = &st->control->saver;
    struct ox_link *link;
    ox_free(v->switch_id);
    v->switch_id = NULL;
    while ((link = ox_list_pop_front(&v->waiting)))
        ox_op_finish(CONTAINER_OF(link, struct ox_op, link), err);
    storage_settle(st);
}

void storage_header_save(struct ox_storage *st)
{
    struct storage_saver *v = &st->control->saver;
    v->wanted = true;
    if (v->seq.active || !st->directive.switch_id)
        return;
    v->st = st;
    ox_timer_init(&v->timer, st->p.loop, save_pause_over);
    ox_seq_start(&v->seq, st->p.loop, "storage.header", save_header, save_done);
}

void storage_header_wait(struct ox_storage *st, struct ox_op *op)
{
    ox_op_begin(op);
    if (!st->directive.switch_id) {
        ox_op_finish(op, OX_OK);
        return;
    }
    ox_list_push_back(&st->control->saver.waiting, &op->link);
    storage_header_save(st);
}

void storage_saver_stop(struct ox_storage *st)
{
    struct storage_saver *v = &st->control->saver;
    if (v->seq.active && ox_timer_started(&v->timer)) {
        ox_timer_stop(&v->timer);
        ox_seq_resume(&v->seq, OX_OK);
    }
}

void storage_saver_fini(struct ox_storage *st)
{
    OX_ASSERT(!st->control->saver.seq.active);
    json_decref(st->control->saver.raw);
}

void storage_header_take(struct ox_storage *st, const struct storage_header *h)
{
    st->state = h->state;
    st->move_data = h->move_data;
    st->started_ms = h->started_ms;
    st->finished_ms = h->finished_ms;
    if (h->bytes_per_s >= 0)
        st->bytes_per_s = (uint64_t)h->bytes_per_s;
    if (h->ops_per_s >= 0)
        st->ops_per_s = (uint64_t)h->ops_per_s;
}

// ---- writing ---------------------------------------------------------------------------------------------------------

static struct ox_buf save_text(const struct ox_storage *st)
{
    struct storage_header h = {
        .switch_id = st->directive.switch_id,
        .to = st->directive.target,
        .from = st->directive.previous,
        .epoch = st->directive.epoch,
        .state = st->state,
        .move_data = st->move_data,
        .started_ms = st->started_ms,
        .finished_ms = st->finished_ms,
        .bytes_per_s = (int64_t)st->bytes_per_s,
        .ops_per_s = (int64_t)st->ops_per_s,
        .failures = storage_failures_count(st),
    };
    return storage_header_text(&h, st->control->saver.raw);
}

static bool save_same_switch(const struct ox_storage *st)
{
    return !strcmp(st->control->saver.switch_id, st->directive.switch_id);
}

static ox_step save_header(struct ox_seq *s)
{
    struct ox_storage *st = save_of(s);
    struct storage_saver *v = &st->control->saver;
    v->wanted = false;
    ox_free(v->switch_id);
    v->switch_id = ox_strdup(st->directive.switch_id);
    OX_CLEANUP(ox_free_ptr)
    char *path = storage_path(st, "orchestrator/%s/header", v->switch_id);
    ox_seq_bind(s, &v->put.op, "storage.header.put");
    storage_put(st, &v->put, path, save_text(st), st->header_version >= 0 ? st->header_version : OX_META_ABSENT);
    return OX_WAIT(s, save_header_written);
}

static ox_step save_next(struct ox_seq *s)
{
    return save_of(s)->control->saver.wanted ? OX_GOTO(s, save_header) : OX_FINISH(s, OX_OK);
}

static ox_step save_later(struct ox_seq *s, enum ox_err err)
{
    struct ox_storage *st = save_of(s);
    struct storage_saver *v = &st->control->saver;
    if (!v->failed_once)
        ox_warn(st->p.log, "storage.header.failed", "switch=%s error=%s", v->switch_id, ox_err_name(err));
    v->failed_once = true;
    if (st->stopping || err == OX_E_SHUTDOWN)
        return OX_FINISH(s, err);
    ox_timer_start(&v->timer, STORAGE_RETRY_NS);
    return OX_WAIT(s, save_header);
}

static ox_step save_failures(struct ox_seq *s)
{
    struct ox_storage *st = save_of(s);
    struct storage_saver *v = &st->control->saver;
    if (ox_list_empty(&st->failures) && !v->failures_noted)
        return save_next(s);
    v->failures_noted = !ox_list_empty(&st->failures);
    json_t *list = storage_failures_json(st);
    char *text = json_dumps(list, JSON_COMPACT);
    json_decref(list);
    struct ox_buf value = ox_buf_copy(text, strlen(text));
    free(text);
    OX_CLEANUP(ox_free_ptr)
    char *path = storage_path(st, "orchestrator/%s/failures", v->switch_id);
    ox_seq_bind(s, &v->put.put.op, "storage.failures.put");
    ox_meta_put(st->p.meta, &v->put.put, path, value, OX_META_ANY, 0);
    ox_buf_unref(&value);
    return OX_WAIT(s, save_failures_written);
}

// Only a view: whoever asks this broker gets the list from memory.
static ox_step save_failures_written(struct ox_seq *s)
{
    struct ox_storage *st = save_of(s);
    if (s->err == OX_OK)
        ox_free(st->control->saver.put.put.path);
    else
        ox_warn(st->p.log, "storage.failures.failed", "switch=%s error=%s", st->control->saver.switch_id,
                ox_err_name(s->err));
    return save_next(s);
}

static ox_step save_header_written(struct ox_seq *s)
{
    struct ox_storage *st = save_of(s);
    struct storage_saver *v = &st->control->saver;
    if (!save_same_switch(st)) // superseded meanwhile
        return OX_GOTO(s, save_header);
    if (s->err == OX_E_BAD_VERSION) {
        OX_CLEANUP(ox_free_ptr)
        char *path = storage_path(st, "orchestrator/%s/header", v->switch_id);
        ox_seq_bind(s, &v->get.op, "storage.header.read");
        ox_meta_get(st->p.meta, &v->get, path);
        return OX_WAIT(s, save_header_read);
    }
    if (s->err != OX_OK)
        return save_later(s, s->err);
    v->failed_once = false;
    st->header_version = v->put.version;
    OX_CRASHPOINT(s->loop, "switch.after_header");
    return save_failures(s);
}

// Somebody else has written it, or it was removed by hand: ours goes over it, what we do not understand of it stays.
static ox_step save_header_read(struct ox_seq *s)
{
    struct ox_storage *st = save_of(s);
    struct storage_saver *v = &st->control->saver;
    if (s->err != OX_OK && s->err != OX_E_NOT_FOUND)
        return save_later(s, s->err);
    st->header_version = s->err == OX_OK ? v->get.stat.version : -1;
    if (s->err == OX_OK) {
        json_decref(v->raw);
        v->raw = json_loadb((const char *)v->get.value.data, v->get.value.len, 0, NULL);
        ox_buf_unref(&v->get.value);
    }
    return OX_GOTO(s, save_header);
}
