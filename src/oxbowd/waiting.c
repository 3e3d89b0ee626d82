// waiting.c - one place after another, one at a time: what waits to be deleted in it.
#include "oxbowd/waiting.h"

#define WAITING_ROUND_NS (5 * OX_SEC) // between two rounds over all places

static void waiting_done(struct ox_op *op)
{
    struct waiting *w = CONTAINER_OF(op, struct waiting, op);
    if (w->over)
        w->over(w);
    else
        ox_timer_start(&w->timer, 0);
}

static void waiting_next(struct ox_timer *t)
{
    struct waiting *w = CONTAINER_OF(t, struct waiting, timer);
    const struct ox_router *router = w->factory->router;
    while (w->place < router->count && !ox_router_place(router, w->place))
        w->place++;
    if (router->count < 2 || w->place >= router->count) {
        w->place = 0;
        ox_timer_start(t, WAITING_ROUND_NS);
        return;
    }
    ox_op_init(&w->op, w->factory->loop, waiting_done, "oxbowd.waiting");
    ox_ml_deletes_retry(w->factory, &w->op, w->place++);
}

void waiting_start(struct waiting *w, struct ox_ml_factory *f)
{
    w->factory = f;
    ox_timer_init(&w->timer, f->loop, waiting_next);
    ox_timer_start(&w->timer, 0);
}

bool waiting_stop(struct waiting *w, void (*over)(struct waiting *w))
{
    ox_timer_stop(&w->timer);
    w->over = over;
    return !ox_op_pending(&w->op);
}
