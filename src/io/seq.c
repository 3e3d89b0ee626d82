// seq.c - sequences: runs step functions until one waits or the job is over.
#include "io/seq.h"

#include "base/assert.h"
#include "base/mem.h"

static void seq_run(struct ox_seq *s, enum ox_err err)
{
    OX_ASSERT(s->active && s->next);
    ox_step how = OX_STEP_NEXT;
    s->err = err;
    while (how == OX_STEP_NEXT) {
        ox_step_fn step = s->next;
        OX_ASSERT(step);
        s->next = NULL;
        how = step(s);
    }
    if (how == OX_STEP_DONE)
        s->done(s, s->err);
}

static void seq_kicked(struct ox_op *op)
{
    seq_run(CONTAINER_OF(op, struct ox_seq, kick), op->err);
}

void ox_seq_start(struct ox_seq *s, struct ox_loop *loop, const char *name, ox_step_fn first,
                  void (*done)(struct ox_seq *s, enum ox_err err))
{
    OX_ASSERT(first && done);
    *s = (struct ox_seq){.loop = loop, .name = name, .step = name, .next = first, .done = done, .active = true};
    ox_op_init(&s->kick, loop, seq_kicked, name);
    ox_op_begin(&s->kick);
    ox_op_finish(&s->kick, OX_OK);
}

static void seq_op_done(struct ox_op *op)
{
    seq_run(op->seq, op->err);
}

void ox_seq_bind(struct ox_seq *s, struct ox_op *op, const char *what)
{
    ox_op_init(op, s->loop, seq_op_done, what);
    op->seq = s;
}

void ox_seq_resume(struct ox_seq *s, enum ox_err err)
{
    OX_ASSERT(s->active);
    ox_op_begin(&s->kick);
    ox_op_finish(&s->kick, err);
}

ox_step ox_seq_goto(struct ox_seq *s, ox_step_fn fn, const char *step, ox_step how)
{
    OX_ASSERT(s->active && !s->next);
    s->next = fn;
    s->step = step;
    return how;
}

ox_step ox_seq_finish(struct ox_seq *s, enum ox_err err)
{
    OX_ASSERT(s->active);
    s->active = false;
    s->err = err;
    return OX_STEP_DONE;
}
