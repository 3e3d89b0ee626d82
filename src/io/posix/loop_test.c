// loop_test.c - the real loop: timers, jobs, signals, crash points, watched descriptors.
#include "io/posix/rig_test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct tick {
    struct ox_timer timer;
    uint64_t fired_ns;
};

static void tick_fire(struct ox_timer *timer)
{
    CONTAINER_OF(timer, struct tick, timer)->fired_ns = ox_now_ns(timer->loop);
    ox_posix_stop(timer->loop);
}

static void test_posix_timer_never_fires_early(void **state)
{
    (void)state;
    struct ox_loop *loop = ox_posix_loop_new(NULL);
    struct tick k = {0};
    uint64_t start = ox_now_ns(loop);
    ox_timer_init(&k.timer, loop, tick_fire);
    ox_timer_start(&k.timer, 3 * OX_MS + 1);
    rig_run(loop);
    assert_true(k.fired_ns - start >= 3 * OX_MS + 1);
    ox_posix_loop_free(loop);
}

struct chain {
    struct ox_timer timer;
    int left;
};

static void chain_fire(struct ox_timer *timer)
{
    struct chain *c = CONTAINER_OF(timer, struct chain, timer);
    if (--c->left == 0)
        ox_posix_stop(timer->loop);
    else
        ox_timer_start(timer, (uint64_t)(c->left % 7) * OX_MS / 100);
}

// No other event ends the poll: a timer whose time comes just before it must not leave it waiting.
static void test_posix_timer_due_before_the_poll_ends_it(void **state)
{
    (void)state;
    struct ox_loop *loop = ox_posix_loop_new(NULL);
    struct chain c = {.left = 2000};
    ox_timer_init(&c.timer, loop, chain_fire);
    ox_timer_start(&c.timer, 1);
    alarm(60);
    ox_posix_run(loop);
    alarm(0);
    assert_int_equal(c.left, 0);
    ox_posix_loop_free(loop);
}

struct work {
    struct ox_job job;
    int *order;
    int place;
    int *left;
};

static void work_run(struct ox_job *job)
{
    struct work *w = CONTAINER_OF(job, struct work, job);
    if (w->order)
        w->place = ++*w->order;
}

static void work_done(struct ox_op *op)
{
    struct work *w = CONTAINER_OF(op, struct work, job.op);
    if (--*w->left == 0)
        ox_posix_stop(op->loop);
}

static void test_posix_jobs_run_in_their_lanes(void **state)
{
    (void)state;
    struct ox_loop *loop = ox_posix_loop_new(NULL);
    struct work works[300];
    int left = 300, journal = 0, meta = 0;
    for (int i = 0; i < 300; i++) {
        enum ox_lane lane = (enum ox_lane)(i % 3);
        works[i] = (struct work){.job = {.run = work_run, .lane = lane}, .left = &left};
        works[i].order = lane == OX_LANE_JOURNAL ? &journal : lane == OX_LANE_META ? &meta : NULL;
        ox_op_init(&works[i].job.op, loop, work_done, "work");
        ox_job_submit(loop, &works[i].job);
    }
    rig_run(loop);
    assert_int_equal(left, 0);
    for (int i = 0; i < 300; i++) {
        if (i % 3 != OX_LANE_POOL)
            assert_int_equal(works[i].place, i / 3 + 1);
    }
    ox_posix_loop_free(loop);
}

#define MEETING_LIMIT_S 10 // a lane that is held up so long has failed

// Jobs of several lanes that go on only when all of them are there.
struct meeting {
    pthread_mutex_t mutex;
    pthread_cond_t all;
    int wanted, arrived, left;
};

struct guest {
    struct ox_job job;
    struct meeting *meeting;
    bool met;
};

static void guest_run(struct ox_job *job)
{
    struct guest *g = CONTAINER_OF(job, struct guest, job);
    struct meeting *m = g->meeting;
    struct timespec until;
    int err = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += MEETING_LIMIT_S;
    pthread_mutex_lock(&m->mutex);
    if (++m->arrived == m->wanted)
        pthread_cond_broadcast(&m->all);
    while (m->arrived < m->wanted && err == 0)
        err = pthread_cond_timedwait(&m->all, &m->mutex, &until);
    g->met = m->arrived >= m->wanted;
    pthread_mutex_unlock(&m->mutex);
}

static void guest_done(struct ox_op *op)
{
    struct guest *g = CONTAINER_OF(op, struct guest, job.op);
    if (--g->meeting->left == 0)
        ox_posix_stop(op->loop);
}

static void guest_invite(struct guest *g, struct meeting *m, struct ox_loop *loop, enum ox_lane lane)
{
    *g = (struct guest){.job = {.run = guest_run, .lane = lane}, .meeting = m};
    m->wanted++;
    m->left++;
    ox_op_init(&g->job.op, loop, guest_done, "guest");
    ox_job_submit(loop, &g->job);
}

// A job that blocks in its lane does not hold up another lane: here each waits for all others. The mutex keeps them out until all
// have been invited.
static void test_posix_lanes_run_side_by_side(void **state)
{
    (void)state;
    static const enum ox_lane lanes[] = {OX_LANE_JOURNAL, OX_LANE_JOURNAL_2, OX_LANE_JOURNAL_3, OX_LANE_JOURNAL_4,
                                         OX_LANE_META,    OX_LANE_POOL,      OX_LANE_POOL};
    struct ox_loop *loop = ox_posix_loop_new(NULL);
    struct meeting m = {.mutex = PTHREAD_MUTEX_INITIALIZER, .all = PTHREAD_COND_INITIALIZER};
    struct guest guests[OX_COUNT(lanes)];
    pthread_mutex_lock(&m.mutex);
    for (size_t i = 0; i < OX_COUNT(lanes); i++)
        guest_invite(&guests[i], &m, loop, lanes[i]);
    pthread_mutex_unlock(&m.mutex);
    rig_run(loop);
    for (size_t i = 0; i < OX_COUNT(lanes); i++)
        assert_true(guests[i].met);
    ox_posix_loop_free(loop);
}

struct passage {
    struct ox_job job;
    atomic_int *inside; // of one lane
    int *left;
    bool alone;
};

static void passage_run(struct ox_job *job)
{
    struct passage *p = CONTAINER_OF(job, struct passage, job);
    p->alone = atomic_fetch_add(p->inside, 1) == 0;
    usleep(200);
    p->alone &= atomic_fetch_sub(p->inside, 1) == 1;
}

static void passage_done(struct ox_op *op)
{
    if (--*CONTAINER_OF(op, struct passage, job.op)->left == 0)
        ox_posix_stop(op->loop);
}

// The further journal lanes are one thread each, like the first.
static void test_posix_journal_lanes_run_one_job_at_a_time(void **state)
{
    (void)state;
    static const enum ox_lane lanes[] = {OX_LANE_JOURNAL, OX_LANE_JOURNAL_2, OX_LANE_JOURNAL_3, OX_LANE_JOURNAL_4};
    struct ox_loop *loop = ox_posix_loop_new(NULL);
    struct passage passages[200];
    atomic_int inside[OX_COUNT(lanes)] = {0};
    int left = 200;
    for (int i = 0; i < 200; i++) {
        size_t lane = (size_t)i % OX_COUNT(lanes);
        passages[i] =
            (struct passage){.job = {.run = passage_run, .lane = lanes[lane]}, .inside = &inside[lane], .left = &left};
        ox_op_init(&passages[i].job.op, loop, passage_done, "passage");
        ox_job_submit(loop, &passages[i].job);
    }
    rig_run(loop);
    for (int i = 0; i < 200; i++)
        assert_true(passages[i].alone);
    ox_posix_loop_free(loop);
}

struct release {
    struct ox_timer timer;
    struct meeting *meeting;
};

static void release_fire(struct ox_timer *t)
{
    struct meeting *m = CONTAINER_OF(t, struct release, timer)->meeting;
    pthread_mutex_lock(&m->mutex);
    m->arrived++;
    pthread_cond_broadcast(&m->all);
    pthread_mutex_unlock(&m->mutex);
}

// With busy waiting the loop goes on with all else while a journal job is on its way, before and after it has given up looking: here the
// job waits for one timer of each kind.
static void test_posix_busy_wait_is_not_for_the_job_alone(void **state)
{
    (void)state;
    struct ox_loop *loop = ox_posix_loop_new(NULL);
    struct meeting m = {.mutex = PTHREAD_MUTEX_INITIALIZER, .all = PTHREAD_COND_INITIALIZER, .wanted = 2};
    struct release soon = {.meeting = &m}, late = {.meeting = &m};
    struct guest guest;
    ox_posix_journal_busy_wait(loop, true);
    ox_timer_init(&soon.timer, loop, release_fire);
    ox_timer_init(&late.timer, loop, release_fire);
    ox_timer_start(&soon.timer, OX_MS / 10);
    ox_timer_start(&late.timer, 5 * OX_MS);
    guest_invite(&guest, &m, loop, OX_LANE_JOURNAL_2);
    rig_run(loop);
    assert_true(guest.met);
    ox_posix_loop_free(loop);
}

struct relay {
    struct ox_job job;
    int runs, left;
};

static void relay_run(struct ox_job *job)
{
    CONTAINER_OF(job, struct relay, job)->runs++;
}

static void relay_done(struct ox_op *op)
{
    struct relay *r = CONTAINER_OF(op, struct relay, job.op);
    if (--r->left == 0)
        ox_posix_stop(op->loop);
    else
        ox_job_submit(op->loop, &r->job);
}

// Each end starts the next one: loop and thread find each other's work while they look, or are woken if they have just given up.
static void test_posix_busy_wait_loses_no_job(void **state)
{
    (void)state;
    struct ox_loop *loop = ox_posix_loop_new(NULL);
    struct relay relays[2] = {0};
    ox_posix_journal_busy_wait(loop, true);
    for (int i = 0; i < 2; i++) {
        relays[i] = (struct relay){.job = {.run = relay_run, .lane = i ? OX_LANE_JOURNAL : OX_LANE_META}, .left = 2000};
        ox_op_init(&relays[i].job.op, loop, relay_done, "relay");
        ox_job_submit(loop, &relays[i].job);
    }
    while (relays[0].left > 0 || relays[1].left > 0)
        rig_run(loop);
    assert_int_equal(relays[0].runs, 2000);
    assert_int_equal(relays[1].runs, 2000);
    ox_posix_loop_free(loop);
}

static void on_signal(void *ctx, int signo)
{
    struct ox_loop *loop = ctx;
    assert_int_equal(signo, SIGTERM);
    ox_posix_stop(loop);
}

static void test_posix_sigterm_reaches_the_callback(void **state)
{
    (void)state;
    struct ox_loop *loop = ox_posix_loop_new(NULL);
    ox_posix_on_signal(loop, on_signal, loop);
    assert_int_equal(kill(getpid(), SIGTERM), 0);
    rig_run(loop);
    ox_posix_loop_free(loop);
}

// Counts passes of a crash point in a child; returns the child's exit status.
static int crash_child(const char *setting, int passes)
{
    pid_t pid = fork();
    if (pid == 0) {
        setenv("OXBOW_CRASH_POINT", setting, 1);
        struct ox_loop *loop = ox_posix_loop_new(NULL);
        for (int i = 0; i < passes; i++) {
            OX_CRASHPOINT(loop, "test.other");
            OX_CRASHPOINT(loop, "test.point");
        }
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_posix_crash_point_ends_the_process_at_its_nth_pass(void **state)
{
    (void)state;
    assert_int_equal(crash_child("test.point", 1), 137);
    assert_int_equal(crash_child("test.point:3", 2), 0);
    assert_int_equal(crash_child("test.point:3", 3), 137);
    assert_int_equal(crash_child("test.point:x", 3), 0);
    assert_int_equal(crash_child("test.nowhere", 3), 0);
}

struct watched {
    struct ox_loop *loop;
    int fd, bytes;
};

static void watched_readable(void *ctx)
{
    struct watched *w = ctx;
    char c;
    assert_int_equal(read(w->fd, &c, 1), 1);
    if (++w->bytes == 3)
        ox_posix_stop(w->loop);
}

static void test_posix_watch_follows_a_descriptor(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    struct ox_loop *loop = ox_posix_loop_new(NULL);
    struct watched w = {.loop = loop, .fd = fds[0]};
    struct ox_posix_watch *watch = ox_posix_watch_new(loop, fds[0], watched_readable, &w);
    assert_int_equal(write(fds[1], "abc", 3), 3);
    rig_run(loop);
    assert_int_equal(w.bytes, 3);
    ox_posix_watch_free(watch);
    ox_posix_loop_free(loop);
    close(fds[0]);
    close(fds[1]);
}

static void test_posix_random_differs(void **state)
{
    (void)state;
    struct ox_loop *loop = ox_posix_loop_new(NULL);
    assert_true(ox_loop_random(loop) != ox_loop_random(loop));
    assert_true(ox_wall_ms(loop) > UINT64_C(1700000000000));
    ox_posix_loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_posix_timer_never_fires_early),
        cmocka_unit_test(test_posix_timer_due_before_the_poll_ends_it),
        cmocka_unit_test(test_posix_jobs_run_in_their_lanes),
        cmocka_unit_test(test_posix_lanes_run_side_by_side),
        cmocka_unit_test(test_posix_journal_lanes_run_one_job_at_a_time),
        cmocka_unit_test(test_posix_busy_wait_is_not_for_the_job_alone),
        cmocka_unit_test(test_posix_busy_wait_loses_no_job),
        cmocka_unit_test(test_posix_sigterm_reaches_the_callback),
        cmocka_unit_test(test_posix_crash_point_ends_the_process_at_its_nth_pass),
        cmocka_unit_test(test_posix_watch_follows_a_descriptor),
        cmocka_unit_test(test_posix_random_differs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
