// lanes.c - helper threads: each takes one job at a time from its lane; finished jobs come back to the loop in batches.
#include "base/assert.h"
#include "io/posix/posix_int.h"

static struct ox_job *lane_take(struct posix_lane *lane)
{
    uv_mutex_lock(&lane->mutex);
    while (ox_list_empty(&lane->jobs) && !lane->stopping)
        uv_cond_wait(&lane->wake, &lane->mutex);
    struct ox_link *link = ox_list_pop_front(&lane->jobs);
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
    for (struct ox_job *job; (job = lane_take(lane));) {
        job->run(job);
        lane_give_back(lane->owner, job);
    }
}

static void lane_start(struct posix_lane *lane, int threads)
{
    while (lane->thread_count < threads)
        OX_ASSERT(uv_thread_create(&lane->threads[lane->thread_count++], lane_thread, lane) == 0);
}

void posix_submit(struct ox_loop *loop, struct ox_job *job)
{
    struct posix_lane *lane = &posix_of(loop)->lanes[job->lane];
    lane_start(lane, 1); // unless it has them already
    uv_mutex_lock(&lane->mutex);
    ox_list_push_back(&lane->jobs, &job->op.link);
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
    for (struct ox_link *link; (link = ox_list_pop_front(&done));)
        ox_op_finish(CONTAINER_OF(link, struct ox_op, link), OX_OK);
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
