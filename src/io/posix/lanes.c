// lanes.c - helper threads: each takes one job at a time from its lane; finished jobs come back to the loop in batches.
#include <sched.h>

#include "base/assert.h"
#include "io/posix/posix_int.h"

#define LOOP_LOOK_NS (300 * OX_MS / 1000) // the loop looks so long for the end of a journal job before it sleeps
#define LANE_LOOK_NS (50 * OX_MS / 1000)  // a journal lane so long for its next job

// Looks for the next job for a while: who answers an append at once wakes no sleeping thread. Whoever else can run on this processor goes first.
static void lane_look(struct posix_lane *lane)
{
    if (!lane->owner->busy_wait || !lane->journal)
        return;
    uint64_t until = uv_hrtime() + LANE_LOOK_NS;
    while (atomic_load_explicit(&lane->waiting, memory_order_relaxed) == 0 && uv_hrtime() < until)
        sched_yield();
}

static struct ox_job *lane_take(struct posix_lane *lane)
{
    uv_mutex_lock(&lane->mutex);
    while (ox_list_empty(&lane->jobs) && !lane->stopping)
        uv_cond_wait(&lane->wake, &lane->mutex);
    struct ox_link *link = ox_list_pop_front(&lane->jobs);
    if (link)
        atomic_fetch_sub_explicit(&lane->waiting, 1, memory_order_relaxed);
    uv_mutex_unlock(&lane->mutex);
    return link ? CONTAINER_OF(link, struct ox_job, op.link) : NULL;
}

static void lane_give_back(struct posix_loop *p, struct ox_job *job)
{
    uv_mutex_lock(&p->done_mutex);
    bool first = ox_list_empty(&p->done);
    ox_list_push_back(&p->done, &job->op.link);
    uv_mutex_unlock(&p->done_mutex);
    if (first)
        uv_async_send(&p->jobs_done);
}

static void lane_thread(void *arg)
{
    struct posix_lane *lane = arg;
    void *stack = posix_crash_stack_new();
    for (struct ox_job *job; (job = lane_take(lane));) {
        job->run(job);
        lane_give_back(lane->owner, job);
        lane_look(lane);
    }
    posix_crash_stack_free(stack);
}

static void lane_start(struct posix_lane *lane, int threads)
{
    while (lane->thread_count < threads)
        OX_ASSERT(uv_thread_create(&lane->threads[lane->thread_count++], lane_thread, lane) == 0);
}

bool posix_lanes_look(const struct posix_loop *p)
{
    if (!p->busy_wait || p->journal_slow || p->journal_jobs == 0 || uv_hrtime() >= p->look_until_ns)
        return false;
    sched_yield(); // the journal's thread may wait for this very processor
    return true;
}

// A journal job has begun, or the one before it is over.
static void lane_journal_step(struct posix_loop *p)
{
    if (p->busy_wait)
        p->look_until_ns = uv_hrtime() + LOOP_LOOK_NS;
}

// Where one has taken too long, looking for the next one's end would most likely be in vain.
static void lane_journal_over(struct posix_loop *p)
{
    if (p->busy_wait)
        p->journal_slow = uv_hrtime() >= p->look_until_ns;
    if (--p->journal_jobs > 0)
        lane_journal_step(p);
}

void posix_submit(struct ox_loop *loop, struct ox_job *job)
{
    struct posix_loop *p = posix_of(loop);
    struct posix_lane *lane = &p->lanes[job->lane];
    lane_start(lane, 1); // unless it has them already
    if (lane->journal && p->journal_jobs++ == 0)
        lane_journal_step(p);
    uv_mutex_lock(&lane->mutex);
    ox_list_push_back(&lane->jobs, &job->op.link);
    atomic_fetch_add_explicit(&lane->waiting, 1, memory_order_relaxed);
    uv_mutex_unlock(&lane->mutex);
    uv_cond_signal(&lane->wake);
}

static void lanes_finished(uv_async_t *async)
{
    struct posix_loop *p = async->data;
    struct ox_list done;
    ox_list_init(&done);
    uv_mutex_lock(&p->done_mutex);
    ox_list_splice(&done, &p->done);
    uv_mutex_unlock(&p->done_mutex);
    for (struct ox_link *link; (link = ox_list_pop_front(&done));) {
        struct ox_job *job = CONTAINER_OF(link, struct ox_job, op.link);
        if (p->lanes[job->lane].journal)
            lane_journal_over(p);
        ox_op_finish(&job->op, OX_OK);
    }
}

static bool lane_is_journal(int lane)
{
    return lane == OX_LANE_JOURNAL || (lane >= OX_LANE_JOURNAL_2 && lane <= OX_LANE_JOURNAL_4);
}

void posix_lanes_start(struct posix_loop *p)
{
    static const int threads[OX_LANES] = {[OX_LANE_JOURNAL] = 1, [OX_LANE_META] = 1, [OX_LANE_POOL] = 2};
    ox_list_init(&p->done);
    OX_ASSERT(uv_mutex_init(&p->done_mutex) == 0);
    OX_ASSERT(uv_async_init(&p->uv, &p->jobs_done, lanes_finished) == 0);
    p->jobs_done.data = p;
    for (int i = 0; i < OX_LANES; i++) {
        struct posix_lane *lane = &p->lanes[i];
        lane->owner = p;
        lane->journal = lane_is_journal(i);
        ox_list_init(&lane->jobs);
        OX_ASSERT(uv_mutex_init(&lane->mutex) == 0 && uv_cond_init(&lane->wake) == 0);
        lane_start(lane, threads[i]);
    }
}

void posix_lanes_stop(struct posix_loop *p)
{
    for (int i = 0; i < OX_LANES; i++) {
        struct posix_lane *lane = &p->lanes[i];
        uv_mutex_lock(&lane->mutex);
        lane->stopping = true;
        uv_cond_broadcast(&lane->wake);
        uv_mutex_unlock(&lane->mutex);
        for (int k = 0; k < lane->thread_count; k++)
            uv_thread_join(&lane->threads[k]);
        uv_cond_destroy(&lane->wake);
        uv_mutex_destroy(&lane->mutex);
    }
}
