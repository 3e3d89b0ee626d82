// crash.c - a report of a process that goes wrong, written by its signal handler: nothing here allocates, locks or formats with stdio once it has happened.
#include <elf.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "io/posix/posix_int.h"

#define FRAMES_MAX 64
#define STACK_BYTES (64u * 1024) // of the handler: the thread's own may be what has run out
#define REPORT_SECONDS 10        // a report that hangs is cut

static const int crash_signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

struct crash_state {
    const struct ox_posix_crash *about;
    atomic_flag reporting;
    char build_id[64 + 1];
};

// A handler is given nothing of its owner's: the one variable of the program that many can reach. Set once, at the start.
static struct crash_state *crash_state;

// ---- writing

static void report_bytes(int fd, const char *data, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = write(fd, data + done, len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        done += (size_t)n;
    }
}

static void report_text(int fd, const char *text)
{
    report_bytes(fd, text, strlen(text));
}

// Digits of a number in a base up to 16, at least `width` of them. Returns behind the last; ends with a zero.
static char *crash_digits(char *to, uint64_t value, unsigned base, unsigned width)
{
    char reversed[32];
    unsigned n = 0;
    for (; value || n < width; value /= base)
        reversed[n++] = "0123456789abcdef"[value % base];
    while (n > 0)
        *to++ = reversed[--n];
    *to = 0;
    return to;
}

static void report_number(int fd, const char *before, uint64_t value, unsigned base)
{
    char text[32];
    crash_digits(text, value, base, 1);
    report_text(fd, before);
    report_text(fd, text);
}

// ---- time: gmtime may not be called in a handler

// "20261201T130501Z" of seconds since 1970, by the days of years that begin in March.
static void crash_time(char out[24], uint64_t seconds)
{
    uint64_t days = seconds / 86400 + 719468, era = days / 146097, of_era = days % 146097;
    uint64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    uint64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    uint64_t month = (5 * of_year + 2) / 153, day = of_year - (153 * month + 2) / 5 + 1;
    month = month < 10 ? month + 3 : month - 9;
    char *p = crash_digits(out, year + era * 400 + (month <= 2), 10, 4);
    p = crash_digits(p, month, 10, 2);
    p = crash_digits(p, day, 10, 2);
    *p++ = 'T';
    p = crash_digits(p, seconds / 3600 % 24, 10, 2);
    p = crash_digits(p, seconds / 60 % 60, 10, 2);
    p = crash_digits(p, seconds % 60, 10, 2);
    *p++ = 'Z';
    *p = 0;
}

// ---- the report

static const char *crash_name(int signo)
{
    switch (signo) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGFPE: return "SIGFPE";
    case SIGILL: return "SIGILL";
    case SIGABRT: return "SIGABRT";
    default: return "?";
    }
}

static void crash_append(char **at, const char *end, const char *text)
{
    while (*text && *at < end)
        *(*at)++ = *text++;
    **at = 0;
}

static int crash_open(const struct ox_posix_crash *about, const char *time)
{
    char path[4096], digits[32], *at = path, *end = path + sizeof path - 1;
    if (!about->dir)
        return -1;
    crash_digits(digits, (uint64_t)getpid(), 10, 1);
    const char *parts[] = {about->dir, "/crash-", time, "-", digits, ".txt"};
    for (size_t i = 0; i < OX_COUNT(parts); i++)
        crash_append(&at, end, parts[i]);
    return open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
}

// Who has sent it, or what the memory was; for ox_abort the text.
static void report_cause(int fd, const siginfo_t *info)
{
    bool own = info->si_code == SI_QUEUE && info->si_pid == getpid();
    if (own && info->si_value.sival_ptr) {
        report_text(fd, "\nwhy ");
        report_text(fd, info->si_value.sival_ptr);
    } else if (info->si_code <= 0) {
        report_number(fd, "\nsent by process ", (uint64_t)info->si_pid, 10);
        report_number(fd, " of user ", info->si_uid, 10);
    } else {
        report_number(fd, "\naddress 0x", (uint64_t)(uintptr_t)info->si_addr, 16);
        report_number(fd, " code ", (uint64_t)info->si_code, 10);
    }
}

static void report_head(int fd, const struct crash_state *c, int signo, const siginfo_t *info, const char *time)
{
    report_text(fd, "\n---- crash report\ntime ");
    report_text(fd, time);
    report_text(fd, "\nversion ");
    report_text(fd, c->about->version);
    report_text(fd, "\nbuild ");
    report_text(fd, c->build_id);
    report_number(fd, "\nprocess ", (uint64_t)getpid(), 10);
    report_number(fd, " thread ", (uint64_t)syscall(SYS_gettid), 10);
    report_text(fd, "\nsignal ");
    report_text(fd, crash_name(signo));
    report_cause(fd, info);
    report_text(fd, "\n");
}

static void report_backtrace(int fd)
{
    void *frames[FRAMES_MAX];
    int n = backtrace(frames, FRAMES_MAX);
    report_text(
        fd,
        "\nbacktrace (a line's place in the source: addr2line -fipe PROGRAM +0x..., with the program of this build)\n");
    backtrace_symbols_fd(frames, n, fd);
}

static void report_events(int fd, const struct ox_log_ring *ring)
{
    if (!ring)
        return;
    uint64_t first = ring->count - OX_MIN(ring->count, (uint64_t)OX_LOG_RING_LINES);
    report_text(fd, "\nlast events, those below the log's level too\n");
    for (uint64_t i = first; i < ring->count; i++) {
        const char *line = ring->lines[i % OX_LOG_RING_LINES];
        report_bytes(fd, line, strnlen(line, OX_LOG_RING_BYTES));
    }
}

// The backtrace comes last: a broken stack may end it, and us.
static void report_write(int fd, const struct crash_state *c, int signo, const siginfo_t *info, const char *time)
{
    report_head(fd, c, signo, info, time);
    report_events(fd, c->about->ring);
    report_backtrace(fd);
    report_text(fd, "---- end of the crash report\n");
}

// First into the file: standard error may be a pipe that nobody reads.
static void crash_report(const struct crash_state *c, int signo, const siginfo_t *info)
{
    struct timespec now;
    char time[24];
    clock_gettime(CLOCK_REALTIME, &now);
    crash_time(time, (uint64_t)now.tv_sec);
    const int fds[] = {crash_open(c->about, time), STDERR_FILENO};
    for (size_t i = 0; i < OX_COUNT(fds); i++)
        if (fds[i] >= 0)
            report_write(fds[i], c, signo, info, time);
}

// Afterwards the signal has its usual effect: a fault comes again when its instruction does, a signal that was sent has to be sent again. Until then
// other threads that fault come here, too, and one that faults within the handler ends the process, since these signals are blocked in it.
static void crash_came(int signo, siginfo_t *info, void *context)
{
    (void)context;
    struct crash_state *c = crash_state;
    if (atomic_flag_test_and_set(&c->reporting))
        for (unsigned left = REPORT_SECONDS; left > 0;) // another thread reports, and ends us all
            left = sleep(left);
    alarm(REPORT_SECONDS);
    crash_report(c, signo, info);
    signal(signo, SIG_DFL);
    if (info->si_code <= 0)
        raise(signo);
}

// ---- at the start

// The program's build id, as its linker has noted it.
static int crash_find_id(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    struct crash_state *c = arg;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        const char *at = (const char *)(info->dlpi_addr + segment->p_vaddr), *end = at + segment->p_memsz;
        while (segment->p_type == PT_NOTE && at + sizeof(ElfW(Nhdr)) <= end) {
            const ElfW(Nhdr) *note = (const void *)at;
            const char *name = at + sizeof *note;
            const uint8_t *value = (const uint8_t *)name + (note->n_namesz + 3) / 4 * 4;
            at = (const char *)value + (note->n_descsz + 3) / 4 * 4;
            if (note->n_type != NT_GNU_BUILD_ID || note->n_namesz != 4 || memcmp(name, "GNU", 4) != 0)
                continue;
            char *to = c->build_id;
            for (size_t b = 0; b < note->n_descsz && b < sizeof c->build_id / 2; b++)
                to = crash_digits(to, value[b], 16, 2);
        }
    }
    return 1; // the first object is the program
}

// A handler that is there already stays: a sanitizer tells more about what is its own.
static void crash_catch(int signo)
{
    struct sigaction action = {.sa_sigaction = crash_came, .sa_flags = SA_SIGINFO | SA_ONSTACK}, there;
    OX_ASSERT(sigaction(signo, NULL, &there) == 0);
    if (there.sa_flags & SA_SIGINFO || there.sa_handler != SIG_DFL)
        return;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < OX_COUNT(crash_signals); i++)
        sigaddset(&action.sa_mask, crash_signals[i]);
    OX_ASSERT(sigaction(signo, &action, NULL) == 0);
}

void *posix_crash_stack_new(void)
{
    stack_t stack = {.ss_size = STACK_BYTES}, there;
    if (sigaltstack(NULL, &there) == 0 && !(there.ss_flags & SS_DISABLE))
        return NULL;
    stack.ss_sp = ox_malloc(STACK_BYTES);
    OX_ASSERT(sigaltstack(&stack, NULL) == 0);
    return stack.ss_sp;
}

void posix_crash_stack_free(void *stack)
{
    const stack_t none = {.ss_flags = SS_DISABLE};
    if (stack)
        OX_ASSERT(sigaltstack(&none, NULL) == 0);
    ox_free(stack);
}

void ox_posix_crash_install(const struct ox_posix_crash *crash)
{
    void *frame;
    struct crash_state *c = ox_malloc(sizeof *c);
    c->about = crash;
    atomic_flag_clear(&c->reporting);
    strcpy(c->build_id, "unknown");
    dl_iterate_phdr(crash_find_id, c);
    (void)backtrace(&frame, 1); // loads what it needs
    crash_state = c;
    (void)posix_crash_stack_new(); // for the rest of the process's life
    for (size_t i = 0; i < OX_COUNT(crash_signals); i++)
        crash_catch(crash_signals[i]);
}
