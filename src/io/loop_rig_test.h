// loop_rig_test.h - a loop body for this folder's tests: a clock that is set by hand, jobs that run inside submit.
#ifndef IO_LOOP_RIG_TEST_H
#define IO_LOOP_RIG_TEST_H

#include "base/mem.h"
#include "io/loop.h"

struct test_loop {
    struct ox_loop loop;
    uint64_t now_ns;
};

static inline uint64_t test_loop_now(struct ox_loop *loop)
{
    return CONTAINER_OF(loop, struct test_loop, loop)->now_ns;
}

static inline uint64_t test_loop_zero(struct ox_loop *loop)
{
    (void)loop;
    return 0;
}

static inline void test_loop_submit(struct ox_loop *loop, struct ox_job *job)
{
    (void)loop;
    job->run(job);
    ox_op_finish(&job->op, OX_OK);
}

static const struct ox_loop_body test_loop_body = {
    .now_ns = test_loop_now, .wall_ms = test_loop_zero, .random = test_loop_zero, .submit = test_loop_submit};

static inline void test_loop_init(struct test_loop *t)
{
    *t = (struct test_loop){0};
    ox_loop_init(&t->loop, &test_loop_body, NULL);
}

#endif
