// op.c - operations: begin, finish through the loop's ready queue, cancel.
#include "io/op.h"

#include "base/assert.h"
#include "io/loop.h"

void ox_op_init(struct ox_op *op, struct ox_loop *loop, ox_op_fn done, const char *name)
{
    OX_ASSERT(loop && done && name);
    *op = (struct ox_op){.loop = loop, .done = done, .name = name};
}

void ox_op_begin(struct ox_op *op)
{
    OX_ASSERT(op->state == OX_OP_IDLE && op->done);
    op->state = OX_OP_PENDING;
    op->err = OX_OK;
    op->cancel = NULL;
}

void ox_op_finish(struct ox_op *op, enum ox_err err)
{
    OX_ASSERT(op->state == OX_OP_PENDING);
    op->state = OX_OP_FINISHING;
    op->err = err;
    op->cancel = NULL;
    ox_list_push_back(&op->loop->ready, &op->link);
}

void ox_op_cancel(struct ox_op *op)
{
    if (op->state == OX_OP_PENDING && op->cancel)
        op->cancel(op);
}
