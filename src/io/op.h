// op.h - operations: one asynchronous call each, completed exactly once, from the loop.
#ifndef IO_OP_H
#define IO_OP_H

#include <stdbool.h>

#include "base/err.h"
#include "base/list.h"

struct ox_loop;
struct ox_op;
struct ox_seq;

typedef void (*ox_op_fn)(struct ox_op *op);

enum ox_op_state { OX_OP_IDLE, OX_OP_PENDING, OX_OP_FINISHING };

// Embedded in its owner, or in a typed operation that adds results ("struct ox_meta_get { struct ox_op op; ... }").
// The owner keeps it alive until `done` has been called. `done` may start it again or free it.
struct ox_op {
    enum ox_err err;                  // read-only: the outcome, valid in and after done
    enum ox_op_state state;           // private
    struct ox_loop *loop;             // read-only
    ox_op_fn done;                    // read-only
    void (*cancel)(struct ox_op *op); // private: set by the callee that can cancel, cleared at finish
    struct ox_link link;              // for the callee's queues while pending, for the loop's while finishing
    const char *name;                 // read-only, static: what is waited for, shown in logs
    struct ox_seq *seq;               // private: the sequence that done resumes (ox_seq_bind), or NULL
};

// Prepares an operation (or re-binds an idle one); name is static text.
void ox_op_init(struct ox_op *op, struct ox_loop *loop, ox_op_fn done, const char *name);
// For callees: marks it pending. It must be idle (asserted).
void ox_op_begin(struct ox_op *op);
// For callees: the outcome is known. `done` runs from the loop's ready queue, never inside this call. Takes it off no queue: unlink it first.
void ox_op_finish(struct ox_op *op, enum ox_err err);
// For owners: asks that it ends soon, with CANCELED if it had not taken effect. `done` still comes, exactly once. No effect when idle or where the callee cannot.
void ox_op_cancel(struct ox_op *op);
// True between begin and the call of done.
static inline bool ox_op_pending(const struct ox_op *op)
{
    return op->state != OX_OP_IDLE;
}

#endif
