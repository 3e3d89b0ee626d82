// walk.c - one walk over all logs, for questions that look at everything.
#include "move/storage/data_int.h"

static ox_step walk_next(struct ox_seq *q);
static ox_step walk_got(struct ox_seq *q);

static struct data_walk *walk_of(struct ox_seq *q)
{
    return CONTAINER_OF(q, struct data_walk, seq);
}

static void walk_done(struct ox_seq *q, enum ox_err err)
{
    struct data_walk *w = walk_of(q);
    ox_ml_walk_end(&w->walk);
    ox_op_finish(&w->op, err);
}

void data_walk_start(struct data_walk *w, bool cursors)
{
    ox_op_begin(&w->op);
    w->walk = (struct ox_ml_walk){0};
    ox_ml_walk_begin(w->st->factory, &w->walk, cursors);
    ox_seq_start(&w->seq, w->st->p.loop, "storage.walk", walk_next, walk_done);
}

static ox_step walk_next(struct ox_seq *q)
{
    struct data_walk *w = walk_of(q);
    if (w->st->stopping)
        return OX_FINISH(q, OX_E_SHUTDOWN);
    ox_seq_bind(q, &w->walk.op, "storage.walk");
    ox_ml_walk_next(&w->walk);
    return OX_WAIT(q, walk_got);
}

static ox_step walk_got(struct ox_seq *q)
{
    struct data_walk *w = walk_of(q);
    if (q->err != OX_OK || !w->walk.log)
        return OX_FINISH(q, q->err);
    w->visit(w->ctx, &w->walk);
    return OX_GOTO(q, walk_next);
}
