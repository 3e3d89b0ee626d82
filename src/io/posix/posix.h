// posix.h - the real ports: loop, files and network on libuv and POSIX calls.
//
//     struct ox_log log;
//     ox_posix_log_init(&log, OX_LOG_INFO);
//     struct ox_loop *loop = ox_posix_loop_new(&log);
//     ... build everything on loop, ox_posix_fs(loop), ox_posix_net(loop) ...
//     ox_posix_run(loop);                       // until somebody calls ox_posix_stop
//     ox_posix_loop_free(loop);
#ifndef IO_POSIX_POSIX_H
#define IO_POSIX_POSIX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/stream.h"

// Prepares a log that writes each line with one write(2) to standard error; with priorities if that is the journal.
void ox_posix_log_init(struct ox_log *log, enum ox_log_level level);
// Whether standard error is systemd's journal (JOURNAL_STREAM names that very file): a line's priority may stand before it.
bool ox_posix_journal(void);

// A new loop with its helper threads (journal 1, meta 1, pool 2). Ignores SIGPIPE and raises the soft limit of open files to the hard one.
// OXBOW_CRASH_POINT=name[:nth] in the environment arms a crash point: a warning is logged, and at its nth pass the process ends at once with status 137.
// The log may be NULL; it is the caller's and must outlive the loop.
struct ox_loop *ox_posix_loop_new(struct ox_log *log);
// The loop's file system and network. Borrowed.
struct ox_fs *ox_posix_fs(struct ox_loop *loop);
struct ox_net *ox_posix_net(struct ox_loop *loop);
// While a journal job is on its way and nothing else is ready, the loop polls for up to 300 us instead of sleeping, unless the job before has taken longer, and a
// journal's thread looks 50 us for its next job: no sleeping processor has to be woken, at the price of the power it takes. Others that can run there go first.
// Off at first; to be called before the first job.
void ox_posix_journal_busy_wait(struct ox_loop *loop, bool on);
// Runs turns until ox_posix_stop.
void ox_posix_run(struct ox_loop *loop);
// Makes ox_posix_run return after the current turn.
void ox_posix_stop(struct ox_loop *loop);
// Ends the threads and frees everything. Streams, listeners and files must be closed and no operation pending.
void ox_posix_loop_free(struct ox_loop *loop);

// Has fn called from the loop for each SIGTERM and SIGINT, instead of their default. Once per loop.
void ox_posix_on_signal(struct ox_loop *loop, void (*fn)(void *ctx, int signo), void *ctx);

// Has fn called from the loop for each SIGHUP, instead of its default. Once per loop.
void ox_posix_on_hangup(struct ox_loop *loop, void (*fn)(void *ctx), void *ctx);

// ---- the service manager (sd_notify): what systemd is told, if it has asked for it by NOTIFY_SOCKET

struct ox_posix_notify;
// NULL if nobody has asked, or what was asked for is no socket's name. Never blocks.
struct ox_posix_notify *ox_posix_notify_new(void);
// Sends lines VARIABLE=VALUE ("READY=1\nSTATUS=..."). n may be NULL. False: nobody has taken it.
bool ox_posix_notify(struct ox_posix_notify *n, const char *lines);
// Closes the socket. n may be NULL.
void ox_posix_notify_free(struct ox_posix_notify *n);
// Whether systemd has started this process as a service (INVOCATION_ID): its unit then says what it may do.
bool ox_posix_is_service(void);
// How often WATCHDOG=1 is wanted at least, in ns (WATCHDOG_USEC, WATCHDOG_PID); 0: not at all.
uint64_t ox_posix_watchdog_ns(void);

// ---- the end of a process that goes wrong

// What a crash report says beside what has happened. Borrowed for the rest of the process's life.
struct ox_posix_crash {
    const char *dir; // reports go there: crash-<UTC time>-<pid>.txt; NULL, or cannot be written: to standard error only
    const char *version;            // of the program
    const struct ox_log_ring *ring; // the last events, or NULL
};
// From here on SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT (assertions, out of memory: ox_abort) write a report to standard error and into a file: signal,
// address, version, build id, last events, backtrace. Then the signal has its usual effect (a core dump). A signal that has a handler already keeps it: a sanitizer's are its own. Once, early.
void ox_posix_crash_install(const struct ox_posix_crash *crash);

// What the process uses of its machine; what cannot be told is 0.
struct ox_posix_usage {
    uint64_t cpu_ns;         // processor time since it began, all threads
    uint64_t resident_bytes; // memory
    uint64_t memory_bytes;   // the machine's, or what the process is allowed
    uint32_t processors;
};
void ox_posix_usage(struct ox_posix_usage *ret);
// Its address space in bytes, and its descriptors: open and allowed. Takes as long as there are many: for helper threads.
struct ox_posix_files {
    uint64_t virtual_bytes, max;
    uint32_t open;
};
void ox_posix_files(struct ox_posix_files *ret);

// A file descriptor of another library (an epoll of an HTTP server) that the loop watches for readability.
struct ox_posix_watch;
// Calls fn from the loop, with turns in between, as long as fd is readable. The descriptor stays the caller's and must outlive the watch.
struct ox_posix_watch *ox_posix_watch_new(struct ox_loop *loop, int fd, void (*fn)(void *ctx), void *ctx);
// Ends it; fn is not called any more.
void ox_posix_watch_free(struct ox_posix_watch *w);

#endif
