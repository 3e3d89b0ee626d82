// loop.c - the part of the loop that every body shares: ready queue, timer heap, turn-end hooks, job dispatch.
#include "io/loop.h"

#include "base/assert.h"
#include "base/mem.h"

#define TURN_PASSES_MAX 16 // passes over ready queue, timers and hooks before the body may look at the outside again

void ox_loop_init(struct ox_loop *loop, const struct ox_loop_body *body, struct ox_log *log)
{
    *loop = (struct ox_loop){.body = body, .log = log};
    ox_list_init(&loop->ready);
    ox_list_init(&loop->turn_end);
}

void ox_loop_fini(struct ox_loop *loop)
{
    ox_free(loop->heap);
    loop->heap = NULL;
    loop->heap_count = loop->heap_cap = 0;
}

static bool timer_before(const struct ox_timer *a, const struct ox_timer *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->seq < b->seq;
}

static void heap_place(struct ox_loop *loop, size_t i, struct ox_timer *t)
{
    loop->heap[i] = t;
    t->index = i + 1;
}

static void heap_up(struct ox_loop *loop, size_t i, struct ox_timer *t)
{
    while (i > 0 && timer_before(t, loop->heap[(i - 1) / 2])) {
        heap_place(loop, i, loop->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    heap_place(loop, i, t);
}

static void heap_down(struct ox_loop *loop, size_t i, struct ox_timer *t)
{
    for (size_t child; (child = 2 * i + 1) < loop->heap_count; i = child) {
        if (child + 1 < loop->heap_count && timer_before(loop->heap[child + 1], loop->heap[child]))
            child++;
        if (!timer_before(loop->heap[child], t))
            break;
        heap_place(loop, i, loop->heap[child]);
    }
    heap_place(loop, i, t);
}

void ox_timer_init(struct ox_timer *t, struct ox_loop *loop, void (*fire)(struct ox_timer *t))
{
    OX_ASSERT(loop && fire);
    *t = (struct ox_timer){.loop = loop, .fire = fire};
}

void ox_timer_start(struct ox_timer *t, uint64_t delay_ns)
{
    struct ox_loop *loop = t->loop;
    uint64_t now = ox_now_ns(loop);
    ox_timer_stop(t);
    t->due_ns = delay_ns > UINT64_MAX - 1 - now ? UINT64_MAX - 1 : now + delay_ns;
    t->seq = loop->timer_seq++;
    if (loop->heap_count == loop->heap_cap) {
        loop->heap_cap = loop->heap_cap ? loop->heap_cap * 2 : 16;
        loop->heap = ox_realloc(loop->heap, loop->heap_cap, sizeof(*loop->heap));
    }
    heap_up(loop, loop->heap_count++, t);
}

void ox_timer_stop(struct ox_timer *t)
{
    if (!t->index)
        return;
    struct ox_loop *loop = t->loop;
    size_t i = t->index - 1;
    t->index = 0;
    struct ox_timer *last = loop->heap[--loop->heap_count];
    if (last == t)
        return;
    if (i > 0 && timer_before(last, loop->heap[(i - 1) / 2]))
        heap_up(loop, i, last);
    else
        heap_down(loop, i, last);
}

void ox_turn_end(struct ox_loop *loop, struct ox_turn_hook *hook)
{
    if (!ox_link_linked(&hook->link))
        ox_list_push_back(&loop->turn_end, &hook->link);
}

void ox_turn_end_cancel(struct ox_loop *loop, struct ox_turn_hook *hook)
{
    if (ox_link_linked(&hook->link))
        ox_list_remove(&loop->turn_end, &hook->link);
}

static void loop_run_ready(struct ox_loop *loop)
{
    for (struct ox_link *link; (link = ox_list_pop_front(&loop->ready));) {
        struct ox_op *op = CONTAINER_OF(link, struct ox_op, link);
        op->state = OX_OP_IDLE;
        op->done(op);
    }
}

// Timers that are started meanwhile have to wait for the next pass, even with a delay of 0.
static void loop_fire_due(struct ox_loop *loop)
{
    if (!loop->heap_count)
        return;
    uint64_t now = ox_now_ns(loop), started_before = loop->timer_seq;
    while (loop->heap_count && loop->heap[0]->due_ns <= now && loop->heap[0]->seq < started_before) {
        struct ox_timer *t = loop->heap[0];
        ox_timer_stop(t);
        t->fire(t);
    }
}

// Hooks that are armed meanwhile run in the next pass.
static void loop_run_hooks(struct ox_loop *loop)
{
    for (size_t n = loop->turn_end.count; n > 0; n--) {
        struct ox_link *link = ox_list_pop_front(&loop->turn_end);
        if (!link)
            break;
        struct ox_turn_hook *hook = CONTAINER_OF(link, struct ox_turn_hook, link);
        hook->run(hook);
    }
}

uint64_t ox_loop_turn(struct ox_loop *loop)
{
    bool more = true;
    for (int pass = 0; more && pass < TURN_PASSES_MAX; pass++) {
        loop_run_ready(loop);
        loop_fire_due(loop);
        loop_run_ready(loop);
        loop_run_hooks(loop);
        more = !ox_list_empty(&loop->ready) || !ox_list_empty(&loop->turn_end);
    }
    if (more)
        return 0;
    return loop->heap_count ? loop->heap[0]->due_ns : UINT64_MAX;
}

void ox_job_submit(struct ox_loop *loop, struct ox_job *job)
{
    OX_ASSERT(job->run && job->op.loop == loop);
    ox_op_begin(&job->op);
    if (loop->dead)
        ox_op_finish(&job->op, OX_E_SHUTDOWN);
    else
        loop->body->submit(loop, job);
}
