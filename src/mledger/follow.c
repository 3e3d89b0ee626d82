// follow.c - what is open follows the active place: a queue, a few rollovers at once, another try of what failed; never a full scan in one turn.
#include "mledger/follow.h"

#include <stdio.h>

#include "mledger/mledger_int.h"
#include "mledger/places.h"

static struct ox_mledger *follower_log(const struct ml_follower *w)
{
    if (w->is_cursor)
        return ox_cursor_of_follower(w)->ml;
    return CONTAINER_OF(w, const struct mledger_impl, follower)->ml;
}

static const char *follower_cursor_name(const struct ml_follower *w)
{
    return w->is_cursor ? ox_cursor_of_follower(w)->name : "-";
}

// True if a log makes its entries durable elsewhere. One that takes none is not waited for.
static bool follow_log_is_elsewhere(const struct mledger_impl *impl)
{
    const struct ox_mledger *ml = impl->ml;
    if (!ml_is_open(ml) || impl->fail_err != OX_OK || impl->term || ml->terminated || ml->full || !impl->current)
        return false;
    return impl->current->where.place != ox_ml_target(ml->factory, ml->name);
}

static bool follower_is_elsewhere(const struct ml_follower *w)
{
    if (w->is_cursor)
        return ox_cursor_is_elsewhere(ox_cursor_of_follower(w));
    return follow_log_is_elsewhere(CONTAINER_OF(w, const struct mledger_impl, follower));
}

// False while a rollover of the log's own runs; at its end it looks again.
static bool follower_is_free(const struct ml_follower *w)
{
    return w->is_cursor || follower_log(w)->state == OX_ML_OPEN;
}

// ---- turns -----------------------------------------------------------------------------------------------------------

static void follow_pump(struct ml_follow *t);

static void follower_unqueue(struct ml_follower *w)
{
    struct ml_follow *t = w->factory->follow;
    if (w->state == ML_FOLLOW_QUEUED)
        ox_list_remove(&t->queue, &w->turn);
    else if (w->state == ML_FOLLOW_PAUSED)
        ox_list_remove(&t->paused, &w->turn);
    w->state = ML_FOLLOW_IDLE;
}

static void follower_queue(struct ml_follower *w)
{
    ox_list_push_back(&w->factory->follow->queue, &w->turn);
    w->state = ML_FOLLOW_QUEUED;
}

static void follower_start(struct ml_follower *w)
{
    w->state = ML_FOLLOW_RUNNING;
    w->factory->follow->running++;
    if (w->is_cursor)
        ox_cursor_follow(ox_cursor_of_follower(w), &w->op);
    else
        ox_mledger_roll(follower_log(w), &w->op);
}

// How many may run: one at a time, with pauses, while nothing but failures is seen, so that a place which is full or gone is not stormed.
static uint32_t follow_limit(const struct ml_follow *t)
{
    uint32_t max = OX_MAX(t->factory->settings.follow_max, 1u);
    return t->failures < max ? max : 1;
}

static bool follow_may_start(const struct ml_follow *t)
{
    struct ox_ml_factory *f = t->factory;
    if (t->held || t->running >= follow_limit(t) || ox_list_empty(&t->queue))
        return false;
    return f->meta->session == OX_META_CONNECTED && (follow_limit(t) > 1 || ox_now_ns(f->loop) >= t->probe_ns);
}

// Sets the timer for the next thing that time brings.
static void follow_arm(struct ml_follow *t)
{
    uint64_t now = ox_now_ns(t->factory->loop), due = UINT64_MAX;
    if (t->held)
        return;
    struct ox_link *first = ox_list_first(&t->paused);
    if (first)
        due = CONTAINER_OF(first, struct ml_follower, turn)->again_ns;
    if (!ox_list_empty(&t->queue) && t->running < follow_limit(t))
        due = OX_MIN(due, now + ML_FOLLOW_PROBE_NS); // it waits for a probe, or for the session
    if (due != UINT64_MAX && (!ox_timer_started(&t->again) || due < t->again.due_ns))
        ox_timer_start(&t->again, due > now ? due - now : 0);
}

// Those that failed long enough ago have another turn.
static void follow_take_paused(struct ml_follow *t)
{
    uint64_t now = ox_now_ns(t->factory->loop);
    for (struct ox_link *link; (link = ox_list_first(&t->paused));) {
        struct ml_follower *w = CONTAINER_OF(link, struct ml_follower, turn);
        if (w->again_ns > now)
            return;
        follower_unqueue(w);
        follower_queue(w);
    }
}

static void follow_pump(struct ml_follow *t)
{
    int looked = 0;
    while (follow_may_start(t) && looked++ < ML_FOLLOW_SLICE) {
        struct ml_follower *w = CONTAINER_OF(ox_list_first(&t->queue), struct ml_follower, turn);
        follower_unqueue(w);
        if (follower_is_elsewhere(w) && follower_is_free(w))
            follower_start(w);
    }
    if (looked > ML_FOLLOW_SLICE && !ox_timer_started(&t->slice))
        ox_timer_start(&t->slice, ML_FOLLOW_YIELD_NS);
    follow_arm(t);
}

static void follow_again(struct ox_timer *timer)
{
    struct ml_follow *t = CONTAINER_OF(timer, struct ml_follow, again);
    follow_take_paused(t);
    follow_pump(t);
}

// ---- the end of a rollover -------------------------------------------------------------------------------------------

static void follower_failed(struct ml_follower *w, enum ox_err err)
{
    struct ml_follow *t = w->factory->follow;
    uint64_t now = ox_now_ns(w->factory->loop);
    if (!w->warned)
        ox_warn(w->factory->log, "mledger.follow.failed", "log=%s cursor=%s error=%s hint=" OX_LOG_Q,
                follower_log(w)->name, follower_cursor_name(w), ox_err_name(err),
                "it goes on where it is and is tried again until it works or another place is active");
    w->warned = true;
    w->err = err;
    w->again_ns = now + ML_FOLLOW_RETRY_NS;
    w->state = ML_FOLLOW_PAUSED;
    ox_list_push_back(&t->paused, &w->turn);
    t->last = w;
    t->failures++;
    t->probe_ns = now + ML_FOLLOW_PROBE_NS;
    t->failed.value++;
}

static void follower_worked(struct ml_follower *w)
{
    struct ml_follow *t = w->factory->follow;
    w->err = OX_OK;
    w->warned = false;
    t->failures = 0;
    t->rolled.value++;
    if (w->is_cursor)
        OX_CRASHPOINT(w->factory->loop, "follow.after_cursor");
    else
        OX_CRASHPOINT(w->factory->loop, "follow.after_log");
    ml_follower_check(w);
}

static void follower_answer(struct ml_follower *w, enum ox_err err)
{
    for (struct ox_link *link; (link = ox_list_pop_front(&w->waiting));)
        ox_op_finish(CONTAINER_OF(link, struct ox_op, link), err);
}

static void follower_over(struct ox_op *op)
{
    struct ml_follower *w = CONTAINER_OF(op, struct ml_follower, op);
    struct ml_follow *t = w->factory->follow;
    enum ox_err err = op->err;
    t->running--;
    w->state = ML_FOLLOW_IDLE;
    if (err == OX_OK)
        follower_worked(w);
    else if (follower_is_elsewhere(w) && follower_is_free(w) && err != OX_E_SHUTDOWN)
        follower_failed(w, err);
    follower_answer(w, err == OX_OK && follower_is_elsewhere(w) ? OX_E_BUSY : err);
    follow_pump(t);
}

void ml_follower_check(struct ml_follower *w)
{
    if (w->state != ML_FOLLOW_IDLE || !ox_link_linked(&w->all) || !follower_is_elsewhere(w))
        return;
    follower_queue(w);
    follow_pump(w->factory->follow);
}

void ml_follower_now(struct ml_follower *w, struct ox_op *op)
{
    ox_op_begin(op);
    if (w->state != ML_FOLLOW_RUNNING && !follower_is_elsewhere(w)) {
        ox_op_finish(op, OX_OK);
    } else if (w->state != ML_FOLLOW_RUNNING && !follower_is_free(w)) {
        ox_op_finish(op, OX_E_BUSY);
    } else {
        ox_list_push_back(&w->waiting, &op->link);
        if (w->state == ML_FOLLOW_RUNNING)
            return;
        follower_unqueue(w);
        follower_start(w);
    }
}

// ---- the scan after a change of the active place -----------------------------------------------------------------------

static void follow_look(struct ox_timer *timer)
{
    struct ml_follow *t = CONTAINER_OF(timer, struct ml_follow, slice);
    for (int n = 0; t->scan && n < ML_FOLLOW_SLICE; n++) {
        struct ml_follower *w = CONTAINER_OF(t->scan, struct ml_follower, all);
        t->scan = ox_list_next(&t->all, t->scan);
        if (w->state == ML_FOLLOW_PAUSED)
            follower_unqueue(w); // what had failed is tried again at once
        if (w->state == ML_FOLLOW_IDLE && follower_is_elsewhere(w))
            follower_queue(w);
    }
    if (t->scan)
        ox_timer_start(&t->slice, ML_FOLLOW_YIELD_NS);
    follow_pump(t);
}

void ox_ml_follow(struct ox_ml_factory *f)
{
    struct ml_follow *t = f->follow;
    t->scan = ox_list_first(&t->all);
    t->failures = 0;
    if (t->scan)
        ox_timer_start(&t->slice, 0);
}

void ox_ml_follow_pause(struct ox_ml_factory *f, bool on)
{
    f->follow->held = on;
    if (!on)
        follow_pump(f->follow);
}

void ox_ml_follow_left(const struct ox_ml_factory *f, struct ox_ml_left *ret)
{
    struct ml_follow *t = f->follow;
    *ret = (struct ox_ml_left){0};
    OX_LIST_EACH(&t->all, link) {
        const struct ml_follower *w = CONTAINER_OF(link, struct ml_follower, all);
        if (!follower_is_elsewhere(w))
            continue;
        ret->logs += !w->is_cursor;
        ret->cursors += w->is_cursor;
        if (w->err == OX_OK)
            continue;
        ret->failing++;
        if (ret->err != OX_OK && w != t->last)
            continue;
        ret->err = w->err;
        snprintf(ret->log, sizeof ret->log, "%s", follower_log(w)->name);
    }
}

// ---- lives -----------------------------------------------------------------------------------------------------------

void ml_follower_init(struct ml_follower *w, struct ox_ml_factory *f, bool is_cursor)
{
    w->factory = f;
    w->is_cursor = is_cursor;
    ox_list_init(&w->waiting);
    ox_op_init(&w->op, f->loop, follower_over, is_cursor ? "cursor.follow" : "mledger.follow");
    ox_list_push_back(&f->follow->all, &w->all);
}

void ml_follower_fini(struct ml_follower *w, enum ox_err err)
{
    struct ml_follow *t = w->factory->follow;
    OX_ASSERT(w->state != ML_FOLLOW_RUNNING && !ox_op_pending(&w->op));
    follower_unqueue(w);
    follower_answer(w, err);
    if (t->scan == &w->all)
        t->scan = ox_list_next(&t->all, t->scan);
    if (t->last == w)
        t->last = NULL;
    ox_list_remove(&t->all, &w->all);
}

void ml_follow_init(struct ox_ml_factory *f)
{
    struct ml_follow *t = ox_malloc(sizeof *t);
    t->factory = f;
    f->follow = t;
    ox_list_init(&t->all);
    ox_list_init(&t->queue);
    ox_list_init(&t->paused);
    ox_list_init(&t->moves);
    ox_timer_init(&t->slice, f->loop, follow_look);
    ox_timer_init(&t->again, f->loop, follow_again);
    ox_metric_init(&t->rolled, f->metrics, OX_METRIC_COUNTER, "oxbow_ml_followed_total",
                   "Ledgers of logs and cursors that were replaced because another place is active", NULL);
    ox_metric_init(&t->failed, f->metrics, OX_METRIC_COUNTER, "oxbow_ml_follow_failures_total",
                   "Such replacements that failed, to be tried again", NULL);
}

void ml_follow_fini(struct ox_ml_factory *f)
{
    struct ml_follow *t = f->follow;
    OX_ASSERT(ox_list_empty(&t->all) && t->running == 0 && ox_list_empty(&t->moves) && t->moves_active == 0);
    ox_timer_stop(&t->slice);
    ox_timer_stop(&t->again);
    ox_metric_fini(&t->rolled);
    ox_metric_fini(&t->failed);
    ox_free(t);
    f->follow = NULL;
}
