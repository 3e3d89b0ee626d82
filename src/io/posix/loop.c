// loop.c - the loop's body on libuv: turns, the poll's timeout, signals, crash points, watched descriptors.
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/str.h"
#include "io/posix/posix_int.h"
#include "io/posix/stream.h"

#define CRASH_STATUS 137
#define FILES_KEPT 256 // descriptors that accepted connections leave for files; a quarter of a small limit

static uint64_t posix_now(struct ox_loop *loop)
{
    (void)loop;
    return uv_hrtime();
}

static uint64_t posix_wall(struct ox_loop *loop)
{
    struct posix_loop *p = posix_of(loop);
    if (p->wall_ms)
        return p->wall_ms;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    p->wall_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    return p->wall_ms;
}

static uint64_t posix_random(struct ox_loop *loop)
{
    (void)loop;
    uint64_t value;
    OX_ASSERT(getrandom(&value, sizeof(value), 0) == (ssize_t)sizeof(value));
    return value;
}

static void posix_crash_point(struct ox_loop *loop, const char *name)
{
    struct posix_loop *p = posix_of(loop);
    if (strcmp(name, p->crash_name) == 0 && --p->crash_nth == 0)
        _exit(CRASH_STATUS);
}

static const struct ox_loop_body posix_body = {
    .now_ns = posix_now, .wall_ms = posix_wall, .random = posix_random, .submit = posix_submit, .crash_point = posix_crash_point};

static void posix_arm_crash(struct posix_loop *p)
{
    const char *text = getenv("OXBOW_CRASH_POINT");
    if (!text || !*text)
        return;
    const char *colon = strrchr(text, ':');
    int64_t nth = 1;
    if (colon && ox_parse_i64(colon + 1, 1, INT32_MAX, &nth) != OX_OK) {
        ox_warn(p->loop.log, "posix.crash_point_ignored", "value=\"%s\" expected=name[:nth]", text);
        return;
    }
    p->crash_name = colon ? ox_strndup(text, (size_t)(colon - text)) : ox_strdup(text);
    p->crash_nth = (unsigned long)nth;
    p->loop.crash_armed = true;
    ox_warn(p->loop.log, "posix.crash_point_armed", "name=%s nth=%lu", p->crash_name, p->crash_nth);
}

// Raises the limit of open files, and keeps some descriptors from peers: without any, files could not be opened either.
static void posix_file_limit(struct posix_loop *p)
{
    struct rlimit limit;
    p->accept_fd_end = INT_MAX;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    if (limit.rlim_cur < limit.rlim_max) {
        struct rlimit raised = {limit.rlim_max, limit.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
            limit = raised;
    }
    if (limit.rlim_cur < INT_MAX)
        p->accept_fd_end = (int)(limit.rlim_cur - OX_MIN(limit.rlim_cur / 4, (rlim_t)FILES_KEPT));
}

// May be called before the poll of the same uv_run, when the time is up already: that poll must not block, since no timer is left to end it.
static void timer_fired(uv_timer_t *timer)
{
    struct posix_loop *p = timer->data;
    p->timer_due_ns = UINT64_MAX;
    uv_stop(&p->uv);
}

struct ox_loop *ox_posix_loop_new(struct ox_log *log)
{
    struct posix_loop *p = ox_malloc(sizeof(*p));
    ox_loop_init(&p->loop, &posix_body, log);
    p->fs = (struct ox_fs){.body = &posix_fs_body, .loop = &p->loop};
    p->net = (struct ox_net){.body = &posix_net_body, .loop = &p->loop};
    p->timer_due_ns = UINT64_MAX;
    ox_list_init(&p->connects);
    ox_list_init(&p->spare);
    signal(SIGPIPE, SIG_IGN);
    posix_file_limit(p);
    OX_ASSERT(uv_loop_init(&p->uv) == 0);
    OX_ASSERT(uv_loop_configure(&p->uv, UV_METRICS_IDLE_TIME) == 0);
    OX_ASSERT(uv_timer_init(&p->uv, &p->timer) == 0);
    p->timer.data = p;
    posix_lanes_start(p);
    posix_arm_crash(p);
    return &p->loop;
}

struct ox_fs *ox_posix_fs(struct ox_loop *loop)
{
    return &posix_of(loop)->fs;
}

struct ox_net *ox_posix_net(struct ox_loop *loop)
{
    return &posix_of(loop)->net;
}

// Sets the poll's timeout to the first timer, rounded up to whole milliseconds.
static void posix_set_timer(struct posix_loop *p, uint64_t due_ns)
{
    if (due_ns == p->timer_due_ns)
        return;
    p->timer_due_ns = due_ns;
    if (due_ns == UINT64_MAX) {
        uv_timer_stop(&p->timer);
        return;
    }
    uint64_t now = uv_hrtime(), wait_ns = due_ns > now ? due_ns - now : 0;
    uv_update_time(&p->uv);
    uv_timer_start(&p->timer, timer_fired, wait_ns / OX_MS + (wait_ns % OX_MS != 0), 0);
}

// A turn: from the end of the poll to the next one; sleep in the poll is none of it.
static void posix_turn_over(struct posix_loop *p)
{
    uint64_t now = uv_hrtime(), idle = uv_metrics_idle_time(&p->uv), busy = now - p->turn_ns - (idle - p->idle_ns);
    if (busy > p->loop.turn_longest_ns)
        p->loop.turn_longest_ns = busy;
    p->loop.turns_slow += busy > OX_TURN_SLOW_NS;
    p->turn_ns = now;
    p->idle_ns = idle;
}

void ox_posix_run(struct ox_loop *loop)
{
    struct posix_loop *p = posix_of(loop);
    p->stopping = false;
    p->turn_ns = uv_hrtime();
    while (true) {
        uint64_t due_ns = ox_loop_turn(loop);
        posix_turn_over(p);
        if (p->stopping)
            return;
        if (due_ns != 0)
            posix_set_timer(p, due_ns);
        p->wall_ms = 0;
        uv_run(&p->uv, due_ns == 0 || posix_lanes_look(p) ? UV_RUN_NOWAIT : UV_RUN_ONCE);
    }
}

void ox_posix_journal_busy_wait(struct ox_loop *loop, bool on)
{
    posix_of(loop)->busy_wait = on;
}

void ox_posix_stop(struct ox_loop *loop)
{
    posix_of(loop)->stopping = true;
}

// Streams that their owners have closed may still be reading their peers' last bytes away.
static void handle_close(uv_handle_t *handle, void *arg)
{
    (void)arg;
    if (uv_is_closing(handle))
        return;
    if (handle->type == UV_TCP && handle->data)
        posix_stream_kill(handle->data, OX_E_SHUTDOWN);
    else
        uv_close(handle, NULL);
}

void ox_posix_loop_free(struct ox_loop *loop)
{
    struct posix_loop *p = posix_of(loop);
    posix_lanes_stop(p);
    uv_run(&p->uv, UV_RUN_NOWAIT);
    (void)ox_loop_turn(loop);
    uv_walk(&p->uv, handle_close, NULL);
    uv_run(&p->uv, UV_RUN_DEFAULT);
    OX_ASSERT(uv_loop_close(&p->uv) == 0);
    uv_mutex_destroy(&p->done_mutex);
    posix_file_fini(p);
    ox_loop_fini(loop);
    ox_free(p->scratch);
    ox_free(p->crash_name);
    ox_free(p);
}

static void signal_came(uv_signal_t *handle, int signo)
{
    struct posix_loop *p = handle->data;
    p->on_signal(p->on_signal_ctx, signo);
}

static void posix_catch(struct posix_loop *p, uv_signal_t *handle, uv_signal_cb came, int signo)
{
    OX_ASSERT(uv_signal_init(&p->uv, handle) == 0);
    handle->data = p;
    OX_ASSERT(uv_signal_start(handle, came, signo) == 0);
}

static void hangup_came(uv_signal_t *handle, int signo)
{
    struct posix_loop *p = handle->data;
    (void)signo;
    p->on_hangup(p->on_hangup_ctx);
}

void ox_posix_on_hangup(struct ox_loop *loop, void (*fn)(void *ctx), void *ctx)
{
    struct posix_loop *p = posix_of(loop);
    OX_ASSERT(!p->on_hangup && fn);
    p->on_hangup = fn;
    p->on_hangup_ctx = ctx;
    posix_catch(p, &p->signals[2], hangup_came, SIGHUP);
}

void ox_posix_on_signal(struct ox_loop *loop, void (*fn)(void *ctx, int signo), void *ctx)
{
    static const int numbers[2] = {SIGTERM, SIGINT};
    struct posix_loop *p = posix_of(loop);
    OX_ASSERT(!p->on_signal && fn);
    p->on_signal = fn;
    p->on_signal_ctx = ctx;
    for (int i = 0; i < 2; i++)
        posix_catch(p, &p->signals[i], signal_came, numbers[i]);
}

struct ox_posix_watch {
    uv_poll_t poll;
    void (*fn)(void *ctx);
    void *ctx;
};

static void watch_ready(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    struct ox_posix_watch *w = CONTAINER_OF(poll, struct ox_posix_watch, poll);
    w->fn(w->ctx);
}

static void watch_closed(uv_handle_t *handle)
{
    ox_free(CONTAINER_OF((uv_poll_t *)handle, struct ox_posix_watch, poll));
}

struct ox_posix_watch *ox_posix_watch_new(struct ox_loop *loop, int fd, void (*fn)(void *ctx), void *ctx)
{
    struct ox_posix_watch *w = ox_malloc(sizeof(*w));
    w->fn = fn;
    w->ctx = ctx;
    OX_ASSERT(uv_poll_init(&posix_of(loop)->uv, &w->poll, fd) == 0);
    OX_ASSERT(uv_poll_start(&w->poll, UV_READABLE, watch_ready) == 0);
    return w;
}

void ox_posix_watch_free(struct ox_posix_watch *w)
{
    uv_poll_stop(&w->poll);
    uv_close((uv_handle_t *)&w->poll, watch_closed);
}
