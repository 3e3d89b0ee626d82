// put.c - writes of metadata whose outcome is always known in the end.
#include <string.h>

#include "move/storage/control_int.h"

#define PUT_TRIES 30

static ox_step put_write(struct ox_seq *s);
static ox_step put_written(struct ox_seq *s);
static ox_step put_again(struct ox_seq *s);
static ox_step put_read(struct ox_seq *s);

char *storage_path(const struct ox_storage *st, const char *format, ...)
{
    struct ox_str path = {0};
    va_list args;
    ox_str_addf(&path, "%s/", st->p.config.root);
    va_start(args, format);
    ox_str_addv(&path, format, args);
    va_end(args);
    return ox_str_take(&path);
}

static struct storage_put *put_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct storage_put, seq);
}

static void put_done(struct ox_seq *s, enum ox_err err)
{
    struct storage_put *p = put_of(s);
    ox_buf_unref(&p->value);
    ox_free(p->path);
    ox_op_finish(&p->op, err);
}

static void put_pause_over(struct ox_timer *t)
{
    ox_seq_resume(&CONTAINER_OF(t, struct storage_put, timer)->seq, OX_OK);
}

void storage_put(struct ox_storage *st, struct storage_put *p, const char *path, struct ox_buf give_value, int64_t expected)
{
    ox_op_begin(&p->op);
    p->st = st;
    p->path = ox_strdup(path);
    p->value = give_value;
    p->expected = expected;
    p->tries = 0;
    p->err = OX_OK;
    ox_timer_init(&p->timer, st->p.loop, put_pause_over);
    ox_seq_start(&p->seq, st->p.loop, "storage.put", put_write, put_done);
}

static ox_step put_write(struct ox_seq *s)
{
    struct storage_put *p = put_of(s);
    ox_seq_bind(s, &p->put.op, "storage.put.write");
    ox_meta_put(p->st->p.meta, &p->put, p->path, p->value, p->expected, 0);
    return OX_WAIT(s, put_written);
}

static bool put_may_pass(enum ox_err err)
{
    return err == OX_E_DISCONNECTED || err == OX_E_SESSION_EXPIRED || err == OX_E_UNKNOWN_OUTCOME;
}

// Something that may pass has happened: after a pause the node is looked at first.
static ox_step put_later(struct ox_seq *s, enum ox_err err)
{
    struct storage_put *p = put_of(s);
    if (p->err != OX_E_UNKNOWN_OUTCOME)
        p->err = err;
    if (p->tries++ >= PUT_TRIES || p->st->stopping)
        return OX_FINISH(s, p->err);
    ox_timer_start(&p->timer, p->tries == 1 ? 10 * OX_MS : STORAGE_RETRY_NS);
    return OX_WAIT(s, put_again);
}

static ox_step put_again(struct ox_seq *s)
{
    struct storage_put *p = put_of(s);
    ox_seq_bind(s, &p->get.op, "storage.put.read");
    ox_meta_get(p->st->p.meta, &p->get, p->path);
    return OX_WAIT(s, put_read);
}

static ox_step put_written(struct ox_seq *s)
{
    struct storage_put *p = put_of(s);
    if (s->err == OX_OK) {
        ox_free(p->put.path);
        p->version = p->put.stat.version;
        return OX_FINISH(s, OX_OK);
    }
    if (s->err == OX_E_BAD_VERSION)
        return OX_GOTO(s, put_again);
    return put_may_pass(s->err) ? put_later(s, s->err) : OX_FINISH(s, s->err);
}

static ox_step put_read(struct ox_seq *s)
{
    struct storage_put *p = put_of(s);
    if (s->err == OX_E_NOT_FOUND)
        return p->expected == OX_META_ABSENT ? OX_GOTO(s, put_write) : OX_FINISH(s, OX_E_BAD_VERSION);
    if (s->err != OX_OK)
        return put_may_pass(s->err) ? put_later(s, s->err) : OX_FINISH(s, s->err);
    bool same = ox_buf_equal(p->get.value, p->value);
    ox_buf_unref(&p->get.value);
    p->version = p->get.stat.version;
    if (same)
        return OX_FINISH(s, OX_OK);
    return p->version == p->expected ? OX_GOTO(s, put_write) : OX_FINISH(s, OX_E_BAD_VERSION);
}
