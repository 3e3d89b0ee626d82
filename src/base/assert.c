// assert.c - the end of a process whose invariants do not hold.
#include "base/assert.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

// The C library's calls can send a value to a process, but not to a thread of it.
static void abort_signal(const char *why)
{
    siginfo_t info = {.si_signo = SIGABRT, .si_code = SI_QUEUE};
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = (void *)(uintptr_t)why;
    (void)syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), SIGABRT, &info);
}

// Whoever handles the signal tells why, and may do better than wait for a reader of standard error.
static bool abort_is_handled(void)
{
    struct sigaction there;
    return sigaction(SIGABRT, NULL, &there) == 0 && there.sa_flags & SA_SIGINFO;
}

void ox_abort(const char *why)
{
    if (!abort_is_handled()) {
        fprintf(stderr, "%s\n", why);
        fflush(stderr);
    }
    abort_signal(why);
    abort();
}

void ox_assert_failed(const char *condition, const char *file, int line, const char *function)
{
    char why[512];
    snprintf(why, sizeof why, "%s:%d: %s: assertion failed: %s", file, line, function, condition);
    ox_abort(why);
}
