// main.c - oxbowd: command line, configuration, then the broker until a signal ends it.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/version.h"
#include "io/posix/posix.h"
#include "oxbowd/broker.h"
#include "oxbowd/settings.h"

#define EXIT_USAGE 2

extern char **environ;

// What the command line asks for.
struct options {
    const char *config_file;
    const char *data_dir;
    const char **sets; // KEY=VALUE, in order
    int set_count;
    bool check_only;
};

static const char usage[] =
    "usage: oxbowd [--config FILE] [--data DIR] [--set KEY=VALUE]... [--check-config]\n"
    "       oxbowd --help-config | --version | --help\n"
    "\n"
    "A streaming broker for Pulsar clients. With nothing configured it keeps everything under ./data and listens on\n"
    "127.0.0.1:6650 (clients) and 127.0.0.1:8080 (REST and metrics). SIGTERM ends it cleanly.\n"
    "\n"
    "  --config FILE     lines KEY=VALUE, as in Pulsar's broker.conf\n"
    "  --data DIR        where metadata and ledgers are kept (default: data)\n"
    "  --set KEY=VALUE   one setting; stronger than the environment (OXBOW_KEY), that is stronger than the file\n"
    "  --check-config    look at all settings, then exit: 0 good, 2 bad\n"
    "  --help-config     all keys with their defaults\n";

static int usage_error(const char *what, const char *argument)
{
    fprintf(stderr, "oxbowd: %s %s\n%s", what, argument, usage);
    return EXIT_USAGE;
}

static int print_config_help(void)
{
    struct ox_str text = {0};
    ox_config_describe(&text);
    fputs(ox_str_get(&text), stdout);
    ox_str_fini(&text);
    return 0;
}

// One option that takes a value. True if argv[*i] is it; *ret is NULL if the value is missing.
static bool take_value(int argc, char **argv, int *i, const char *name, const char **ret)
{
    size_t len = strlen(name);
    if (strncmp(argv[*i], name, len) != 0)
        return false;
    if (argv[*i][len] == '=') {
        *ret = argv[*i] + len + 1;
        return true;
    }
    if (argv[*i][len])
        return false;
    *ret = *i + 1 < argc ? argv[++*i] : NULL;
    return true;
}

// -1: go on; else the exit status.
static int parse_one(struct options *o, int argc, char **argv, int *i)
{
    const char *name = argv[*i], *value = NULL;
    if (take_value(argc, argv, i, "--config", &value))
        o->config_file = value;
    else if (take_value(argc, argv, i, "--data", &value))
        o->data_dir = value;
    else if (take_value(argc, argv, i, "--set", &value))
        o->sets[o->set_count++] = value;
    else if (strcmp(name, "--check-config") == 0)
        return o->check_only = true, -1;
    else if (strcmp(name, "--help-config") == 0)
        return print_config_help();
    else if (strcmp(name, "--version") == 0)
        return printf("oxbowd %s\n", OX_VERSION) < 0;
    else if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return fputs(usage, stdout) < 0;
    else
        return usage_error("unknown option", name);
    return value ? -1 : usage_error("a value is missing after", name);
}

static enum ox_err load_config(struct ox_config *c, const struct options *o, struct ox_str *error)
{
    enum ox_err err = o->config_file ? ox_config_load(c, o->config_file, error) : OX_OK;
    if (err == OX_OK)
        err = ox_config_environment(c, environ, error);
    for (int i = 0; i < o->set_count && err == OX_OK; i++)
        err = ox_config_set_pair(c, o->sets[i], error);
    return err == OX_OK ? settings_check(c, error) : err;
}

static void on_signal(void *ctx, int signo)
{
    struct oxbowd *b = (struct oxbowd *)ctx;
    ox_info(b->log, "oxbowd.signal", "signal=%s", signo == 15 ? "SIGTERM" : "SIGINT");
    if (b->stop_wanted)
        _exit(EXIT_FAILURE); // asked twice: at once
    oxbowd_stop(b);
}

static void on_ended(struct oxbowd *b, enum ox_err err)
{
    (void)err;
    ox_posix_stop(b->loop);
}

static void *poll_start(void *ctx, int fd, void (*readable)(void *arg), void *arg)
{
    return ox_posix_watch_new((struct ox_loop *)ctx, fd, readable, arg);
}

static void poll_stop(void *handle)
{
    ox_posix_watch_free((struct ox_posix_watch *)handle);
}

// The clean end takes too long: what is acknowledged is on disk, the next start recovers.
static void on_late(struct oxbowd *b)
{
    fprintf(stderr, "oxbowd: no clean end within brokerShutdownTimeoutMs (waiting in %s); ending at once, the next start recovers\n",
            b->seq.step);
    _exit(EXIT_FAILURE);
}

static int run(const struct ox_config *c, const struct options *o)
{
    struct ox_log log;
    char cwd[PATH_MAX];
    if (!getcwd(cwd, sizeof cwd)) {
        fprintf(stderr, "oxbowd: the working directory has no path: %s; start it from one that is there\n", strerror(errno));
        return EXIT_FAILURE;
    }
    struct oxbowd b = {.config = c, .data_dir = o->data_dir, .cwd = cwd, .log = &log, .ended = on_ended, .late = on_late};
    ox_posix_log_init(&log, (enum ox_log_level)c->logLevel);
    b.loop = ox_posix_loop_new(&log);
    ox_posix_journal_busy_wait(b.loop, c->journalBusyWait);
    b.fs = ox_posix_fs(b.loop);
    b.net = ox_posix_net(b.loop);
    b.poll = (struct ox_admin_poll){poll_start, poll_stop, b.loop};
    ox_posix_on_signal(b.loop, on_signal, &b);
    oxbowd_start(&b);
    ox_posix_run(b.loop);
    ox_posix_loop_free(b.loop);
    bool trouble = b.trouble.len > 0;
    if (trouble)
        fprintf(stderr, "oxbowd: %s\n", ox_str_get(&b.trouble));
    ox_str_fini(&b.trouble);
    return trouble ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int configured(const struct options *o)
{
    struct ox_config c;
    struct ox_str error = {0};
    ox_config_init(&c);
    int status = EXIT_USAGE;
    if (load_config(&c, o, &error) != OX_OK)
        fprintf(stderr, "oxbowd: %s\n", ox_str_get(&error));
    else
        status = o->check_only ? EXIT_SUCCESS : run(&c, o);
    ox_str_fini(&error);
    ox_config_fini(&c);
    return status;
}

int main(int argc, char **argv)
{
    struct options o = {.data_dir = "data"};
    int status = -1;
    o.sets = ox_calloc((size_t)argc + 1, sizeof *o.sets);
    for (int i = 1; i < argc && status < 0; i++)
        status = parse_one(&o, argc, argv, &i);
    if (status < 0)
        status = configured(&o);
    ox_free(o.sets);
    return status;
}
