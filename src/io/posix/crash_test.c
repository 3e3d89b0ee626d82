// crash_test.c - children that go wrong, each in its way, and what they leave behind.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/str.h"
#include "io/posix/posix.h"

static uint64_t test_ms(void *ctx)
{
    (void)ctx;
    return 0;
}

static void test_line(void *ctx, const char *line, unsigned len)
{
    (void)ctx;
    (void)line;
    (void)len;
}

// A child that installs the handler, notes more events than are kept, and does something bad. Returns how it ended; its report is in *ret.
static int child_dies(void (*die)(void), struct ox_str *ret)
{
    char dir[] = "crash-test-XXXXXX", path[600] = "";
    assert_non_null(mkdtemp(dir));
    pid_t pid = fork();
    if (pid == 0) {
        struct ox_log_ring *ring = ox_malloc(sizeof *ring);
        struct ox_log log = {.level = OX_LOG_ERROR, .write = test_line, .wall_ms = test_ms, .ring = ring};
        struct ox_posix_crash crash = {.dir = dir, .version = "test 1.2", .ring = ring};
        static const int ours[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
        for (size_t i = 0; i < OX_COUNT(ours); i++)
            signal(ours[i], SIG_DFL); // the test framework's, or a sanitizer's
        (void)!freopen("/dev/null", "w", stderr);
        ox_posix_crash_install(&crash);
        for (int i = 1; i <= 200; i++)
            ox_debug(&log, "test.event", "i=%d", i);
        die();
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    DIR *folder = opendir(dir);
    for (struct dirent *e; (e = readdir(folder));)
        if (e->d_name[0] != '.')
            snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
    closedir(folder);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    char block[4096];
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;)
        ox_str_add(ret, block, n);
    struct stat about;
    assert_int_equal(fstat(fileno(f), &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600); // events may name what is nobody else's business
    fclose(f);
    unlink(path);
    rmdir(dir);
    return status;
}

static void expect(const struct ox_str *report, const char *what)
{
    if (!strstr(ox_str_get(report), what))
        fail_msg("no \"%s\" in\n%s", what, ox_str_get(report));
}

static void die_by_assertion(void)
{
    OX_ASSERT(getpid() == 0);
}

static void test_crash_assertion_tells_where_version_and_the_last_events(void **state)
{
    (void)state;
    struct ox_str report = {0};
    int status = child_dies(die_by_assertion, &report);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    expect(&report, "signal SIGABRT\nwhy ");
    expect(&report, "crash_test.c:");
    expect(&report, "die_by_assertion: assertion failed: getpid() == 0");
    expect(&report, "version test 1.2\nbuild ");
    expect(&report, "test_io_posix_crash("); // a frame of the program
    expect(&report, "DEBUG test.event i=200\n\nbacktrace ");
    expect(&report, "---- end of the crash report\n");
    expect(&report, "\n1970-01-01T00:00:00.000Z DEBUG test.event i=73\n");
    assert_null(strstr(ox_str_get(&report), "i=72\n"));
    ox_str_fini(&report);
}

static void die_by_memory(void)
{
    ox_abort("out of memory");
}

static void test_crash_out_of_memory_goes_the_same_way(void **state)
{
    (void)state;
    struct ox_str report = {0};
    int status = child_dies(die_by_memory, &report);
    assert_int_equal(WTERMSIG(status), SIGABRT);
    expect(&report, "signal SIGABRT\nwhy out of memory\n");
    ox_str_fini(&report);
}

static void die_by_address(void)
{
    *(volatile int *)(uintptr_t)0x12340 = 1;
}

static void die_by_recursion(void)
{
    volatile char room[4096] = {0};
    void (*volatile again)(void) = die_by_recursion;
    again();
    room[0]++;
}

static void *thread_dies(void *arg)
{
    (void)arg;
    die_by_address();
    return NULL;
}

static void die_in_a_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, thread_dies, NULL);
    pthread_join(thread, NULL);
}

static void job_dies(struct ox_job *job)
{
    (void)job;
    die_by_recursion();
}

static void job_done(struct ox_op *op)
{
    (void)op;
}

static void die_by_recursion_in_a_job(void)
{
    struct ox_log log = {.level = OX_LOG_ERROR, .write = test_line, .wall_ms = test_ms};
    struct ox_loop *loop = ox_posix_loop_new(&log);
    struct ox_job job = {.run = job_dies, .lane = OX_LANE_POOL};
    ox_op_init(&job.op, loop, job_done, "test");
    ox_job_submit(loop, &job);
    ox_posix_run(loop);
}

static pthread_barrier_t together;

static void *thread_dies_together(void *arg)
{
    (void)arg;
    pthread_barrier_wait(&together);
    die_by_address();
    return NULL;
}

static void die_in_two_threads(void)
{
    pthread_t thread;
    pthread_barrier_init(&together, NULL, 2);
    pthread_create(&thread, NULL, thread_dies_together, NULL);
    thread_dies_together(NULL);
}

// A stack pointer to nowhere: whoever follows the stack from there faults, too.
static void die_without_a_stack(void)
{
#ifdef __x86_64__
    __asm__ volatile("mov $0x12348, %%rsp\n\tmov %%rsp, %%rbp\n\tpush %%rax" ::: "memory");
#else
    die_by_address();
#endif
}

static void test_crash_without_a_stack_still_tells_the_last_events(void **state)
{
    (void)state;
    struct ox_str report = {0};
    int status = child_dies(die_without_a_stack, &report);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
    expect(&report, "signal SIGSEGV\naddress 0x1234");
    expect(&report, "DEBUG test.event i=200\n");
    ox_str_fini(&report);
}

// Nobody reads what the process says.
static void stop_listening(void)
{
    int ends[2];
    char block[4096] = {0};
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    while (write(ends[1], block, sizeof block) > 0)
        ;
    fcntl(ends[1], F_SETFL, 0);
    dup2(ends[1], STDERR_FILENO);
}

static void die_unheard_by_address(void)
{
    stop_listening();
    die_by_address();
}

static void die_unheard_by_assertion(void)
{
    stop_listening();
    die_by_assertion();
}

static void test_crash_report_is_whole_though_standard_error_is_stuck(void **state)
{
    (void)state;
    void (*const ways[])(void) = {die_unheard_by_address, die_unheard_by_assertion};
    for (size_t i = 0; i < OX_COUNT(ways); i++) {
        struct ox_str report = {0};
        int status = child_dies(ways[i], &report);
        assert_true(WIFSIGNALED(status));
        expect(&report, "DEBUG test.event i=200\n");
        expect(&report, "---- end of the crash report\n");
        ox_str_fini(&report);
    }
}

static void test_crash_fault_tells_the_address(void **state)
{
    (void)state;
    void (*const ways[])(void) = {die_by_address, die_in_a_thread, die_in_two_threads, die_by_recursion,
                                  die_by_recursion_in_a_job};
    for (size_t i = 0; i < OX_COUNT(ways); i++) {
        struct ox_str report = {0};
        int status = child_dies(ways[i], &report);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGSEGV);
        expect(&report, "signal SIGSEGV\naddress 0x");
        expect(&report, ways[i] == die_by_recursion || ways[i] == die_by_recursion_in_a_job ? "address 0x7"
                                                                                            : "address 0x12340 code 1");
        expect(&report, "DEBUG test.event i=200\n");
        expect(&report, "---- end of the crash report\n");
        ox_str_fini(&report);
    }
}

static void die_by_mail(void)
{
    kill(getpid(), SIGABRT);
    pause();
}

static void test_crash_a_signal_that_was_sent_tells_by_whom(void **state)
{
    (void)state;
    struct ox_str report = {0};
    int status = child_dies(die_by_mail, &report);
    assert_int_equal(WTERMSIG(status), SIGABRT);
    expect(&report, "signal SIGABRT\nsent by process ");
    ox_str_fini(&report);
}

static void on_own(int signo)
{
    (void)signo;
    _exit(7);
}

static void die_by_own(void)
{
    kill(getpid(), SIGFPE);
    pause();
}

static void test_crash_a_handler_that_is_there_stays(void **state)
{
    (void)state;
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        struct ox_posix_crash crash = {.version = "test"};
        signal(SIGFPE, on_own);
        ox_posix_crash_install(&crash);
        die_by_own();
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crash_assertion_tells_where_version_and_the_last_events),
        cmocka_unit_test(test_crash_out_of_memory_goes_the_same_way),
        cmocka_unit_test(test_crash_fault_tells_the_address),
        cmocka_unit_test(test_crash_without_a_stack_still_tells_the_last_events),
        cmocka_unit_test(test_crash_report_is_whole_though_standard_error_is_stuck),
        cmocka_unit_test(test_crash_a_signal_that_was_sent_tells_by_whom),
        cmocka_unit_test(test_crash_a_handler_that_is_there_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
