// posix_int.h - what the files of this folder share.
#ifndef IO_POSIX_POSIX_INT_H
#define IO_POSIX_POSIX_INT_H

#include <stdatomic.h>

#include <uv.h>

#include "base/mem.h"
#include "io/posix/posix.h"

#define POSIX_THREADS_MAX 2
#define POSIX_SCRATCH_BYTES 65536u

struct posix_loop;

// The threads of one lane and the jobs that wait for them. All but `owner`, `journal` and `waiting` is under the mutex.
struct posix_lane {
    struct posix_loop *owner;
    bool journal;        // one of the journal lanes
    atomic_uint waiting; // jobs that wait: for a look without the mutex
    uv_thread_t threads[POSIX_THREADS_MAX];
    int thread_count;
    uv_mutex_t mutex;
    uv_cond_t wake;
    struct ox_list jobs; // by op.link
    bool stopping;
};

struct posix_loop {
    struct ox_loop loop;
    struct ox_fs fs;
    struct ox_net net;
    uv_loop_t uv;
    uv_timer_t timer;      // wakes the poll for the first timer
    uint64_t timer_due_ns; // what it is set to; UINT64_MAX: stopped
    uv_async_t jobs_done;
    uv_signal_t signals[3]; // SIGTERM, SIGINT, SIGHUP
    void (*on_signal)(void *ctx, int signo);
    void *on_signal_ctx;
    void (*on_hangup)(void *ctx);
    void *on_hangup_ctx;
    uint64_t wall_ms;          // as asked for first in this turn; 0: not asked for yet
    uint64_t turn_ns, idle_ns; // when the last turn ended, and how long the loop had slept by then
    bool stopping;
    struct posix_lane lanes[OX_LANES];
    bool busy_wait;         // see ox_posix_journal_busy_wait
    unsigned journal_jobs;  // of all journal lanes, from submission until they have come back
    uint64_t look_until_ns; // with busy_wait: until then the loop looks for the end of a journal job instead of sleeping
    bool journal_slow;      // the last one has not ended by then
    uv_mutex_t done_mutex;
    struct ox_list done;     // finished jobs, under done_mutex
    int accept_fd_end;       // accepted connections with this descriptor or a higher one are refused
    struct ox_list connects; // pending, of net.c
    struct ox_list spare;    // file jobs for the next operations, of file.c
    void *zeros;             // that are written ahead, of file.c; NULL until needed
    char *scratch;           // for bytes nobody wants, of stream.c; NULL until needed
    char *crash_name;
    unsigned long crash_nth;
};

static inline struct posix_loop *posix_of(struct ox_loop *loop)
{
    return CONTAINER_OF(loop, struct posix_loop, loop);
}

// The error of a libuv status (0 or negative).
static inline enum ox_err posix_err(int status)
{
    return ox_err_from_errno(-status);
}

void posix_lanes_start(struct posix_loop *p);
// Runs what is queued, then ends the threads.
void posix_lanes_stop(struct posix_loop *p);
void posix_submit(struct ox_loop *loop, struct ox_job *job);
// True while the loop should look for the end of a journal job instead of sleeping.
bool posix_lanes_look(const struct posix_loop *p);

// Gives the calling thread a stack for signal handlers, so that a crash report can be written when its own has run out. NULL: it has one already.
void *posix_crash_stack_new(void);
// Takes it away, in the same thread. stack may be NULL.
void posix_crash_stack_free(void *stack);

extern const struct ox_fs_body posix_fs_body;
void posix_file_fini(struct posix_loop *p);
extern const struct ox_net_body posix_net_body;

#endif
