// rig_test.h - for this folder's tests: a real loop, and waiting for an operation or a condition on it.
#ifndef IO_POSIX_RIG_TEST_H
#define IO_POSIX_RIG_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "io/posix/posix.h"

#define RIG_LIMIT_NS (20 * OX_SEC) // a test that waits longer has failed

static inline void rig_op_done(struct ox_op *op)
{
    ox_posix_stop(op->loop);
}

static inline void rig_overdue(struct ox_timer *t)
{
    ox_posix_stop(t->loop);
    fail_msg("the test waits for something that does not happen");
}

// Runs the loop until somebody stops it.
static inline void rig_run(struct ox_loop *loop)
{
    struct ox_timer limit;
    ox_timer_init(&limit, loop, rig_overdue);
    ox_timer_start(&limit, RIG_LIMIT_NS);
    ox_posix_run(loop);
    ox_timer_stop(&limit);
}

// Runs the loop until the operation, bound to rig_op_done, is over.
static inline enum ox_err rig_wait(struct ox_op *op)
{
    while (ox_op_pending(op))
        rig_run(op->loop);
    return op->err;
}

#endif
