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
#include "oxbowd/reports.h"
#include "oxbowd/service.h"
#include "oxbowd/settings.h"
#include "oxbowd/sources.h"

#define EXIT_USAGE 2

extern char **environ;

// What the command line asks for.
struct options {
    struct sources sources;
    const char *data_dir;
    const char **sets; // of sources
    bool check_only;
};

static const char usage[] =
    "usage: oxbowd [--config FILE] [--data DIR] [--set KEY=VALUE]... [--lenient] [--check-config]\n"
    "       oxbowd --help-config | --version | --help\n"
    "\n"
    "A streaming broker for Pulsar clients. With nothing configured it keeps everything under ./data and listens on\n"
    "127.0.0.1:6650 (clients) and 127.0.0.1:8080 (REST and metrics). SIGTERM ends it cleanly,\n"
    "SIGHUP makes it read its settings again.\n"
    "\n"
    "  --config FILE     lines KEY=VALUE, as in Pulsar's broker.conf\n"
    "  --data DIR        where metadata and ledgers are kept (default: data)\n"
    "  --set KEY=VALUE   one setting; stronger than the environment (OXBOW_KEY), that is stronger than the file\n"
    "  --lenient         keys in the file that Oxbow does not have are passed over with a warning: a broker.conf of "
    "Pulsar's\n"
    "                    can be used as it is. Those that look mistyped, or ask for TLS or authentication, still stop "
    "it\n"
    "  --check-config    look at all settings, say everything that is wrong, then exit: 0 good, 2 bad\n"
    "  --help-config     all keys with their defaults and ranges; \"live\" ones may change while it runs\n";

// One sentence for the user; the journal gets its priority, too.
static void say(const char *priority, const char *kind, const char *sentence)
{
    fprintf(stderr, "%soxbowd: %s%s\n", ox_posix_journal() ? priority : "", kind, sentence);
}

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
        o->sources.file = value;
    else if (take_value(argc, argv, i, "--data", &value))
        o->data_dir = value;
    else if (take_value(argc, argv, i, "--set", &value))
        o->sets[o->sources.set_count++] = value;
    else if (strcmp(name, "--lenient") == 0)
        return o->sources.lenient = true, -1;
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

// What runs beside the broker.
struct program {
    struct oxbowd broker;
    struct service service;
    struct reload reload;
    bool reload_wanted; // while starting
    bool stop_wanted;   // once the settings have been read
};

static void on_signal(void *ctx, int signo)
{
    struct program *p = (struct program *)ctx;
    struct oxbowd *b = &p->broker;
    ox_info(b->log, "oxbowd.signal", "signal=%s", signo == 15 ? "SIGTERM" : "SIGINT");
    if (p->stop_wanted)
        _exit(EXIT_FAILURE); // asked twice: at once
    p->stop_wanted = true;
    service_stopping(&p->service, (uint64_t)b->config->brokerShutdownTimeoutMs);
    if (!reload_busy(&p->reload)) // it uses what ends
        oxbowd_stop(b);
}

static void say_ready(struct program *p)
{
    struct ox_str status = {0};
    ox_str_addf(&status, "serving %s and %s", p->broker.service_url, p->broker.web_url);
    service_ready(&p->service, ox_str_get(&status));
    ox_str_fini(&status);
}

static void reload_over(struct reload *r)
{
    struct program *p = CONTAINER_OF(r, struct program, reload);
    r->again = r->again && !p->stop_wanted;
    if (p->stop_wanted)
        oxbowd_stop(&p->broker);
    else if (!r->again)
        say_ready(p);
}

static void reload_settings(struct program *p)
{
    service_reloading(&p->service);
    reload_start(&p->reload);
}

static void on_hangup(void *ctx)
{
    struct program *p = (struct program *)ctx;
    ox_info(p->broker.log, "oxbowd.hangup", "hint=\"the settings are read again\"");
    if (p->broker.running && !p->stop_wanted)
        reload_settings(p);
    else
        p->reload_wanted = true;
}

static void on_ready(struct oxbowd *b)
{
    struct program *p = CONTAINER_OF(b, struct program, broker);
    if (p->stop_wanted) // it has told that it ends
        return;
    say_ready(p);
    if (p->reload_wanted)
        reload_settings(p);
}

static void on_ended(struct oxbowd *b, enum ox_err err)
{
    (void)err;
    ox_posix_stop(b->loop);
}

// The clean end takes too long: what is acknowledged is on disk, the next start recovers.
static void on_late(struct oxbowd *b)
{
    OX_CLEANUP(ox_free_ptr)
    char *sentence = ox_asprintf(
        "no clean end within brokerShutdownTimeoutMs (waiting in %s); ending at once, the next start recovers", b->seq.step);
    say("<3>", "", sentence);
    _exit(EXIT_FAILURE);
}

static void run_ports(struct program *p, struct ox_log *log)
{
    struct oxbowd *b = &p->broker;
    b->loop = ox_posix_loop_new(log);
    ox_posix_journal_busy_wait(b->loop, b->config->journalBusyWait);
    b->fs = ox_posix_fs(b->loop);
    b->net = ox_posix_net(b->loop);
    b->rest = true;
    b->is_service = ox_posix_is_service();
    ox_posix_on_signal(b->loop, on_signal, p);
    ox_posix_on_hangup(b->loop, on_hangup, p);
}

static void run_loop(struct program *p, const struct options *o)
{
    struct oxbowd *b = &p->broker;
    p->reload =
        (struct reload){.loop = b->loop, .log = b->log, .sources = &o->sources, .live = &b->live, .over = reload_over};
    service_start(&p->service, b->loop);
    oxbowd_start(b);
    ox_posix_run(b->loop);
    service_fini(&p->service);
    ox_posix_loop_free(b->loop);
}

// Kept for the rest of the process's life: what ends may crash, too.
static void run_reports(struct ox_log *log, const char *give_dir)
{
    struct ox_posix_crash *crash = ox_malloc(sizeof *crash);
    log->ring = ox_malloc(sizeof *log->ring);
    *crash = (struct ox_posix_crash){.dir = give_dir, .version = "oxbowd " OX_VERSION, .ring = log->ring};
    ox_posix_crash_install(crash);
    reports_tell(log, give_dir);
}

static int run(struct ox_config *c, const struct options *o)
{
    struct ox_log log;
    char cwd[PATH_MAX];
    if (!getcwd(cwd, sizeof cwd)) {
        fprintf(stderr, "oxbowd: the working directory has no path: %s; start it from one that is there\n", strerror(errno));
        return EXIT_FAILURE;
    }
    struct program p = {
        .broker = {
            .config = c, .data_dir = o->data_dir, .cwd = cwd, .log = &log, .ended = on_ended, .ready = on_ready, .late = on_late}};
    ox_posix_log_init(&log, (enum ox_log_level)c->logLevel);
    run_reports(&log, opener_absolute(cwd, o->data_dir));
    run_ports(&p, &log);
    run_loop(&p, o);
    bool trouble = p.broker.trouble.len > 0;
    if (trouble)
        say("<3>", "", ox_str_get(&p.broker.trouble));
    ox_str_fini(&p.broker.trouble);
    return trouble ? EXIT_FAILURE : EXIT_SUCCESS;
}

// Each line of what is wrong, with the program's name.
static void print_lines(const char *priority, const char *kind, const struct ox_str *lines)
{
    OX_CLEANUP(ox_free_ptr)
    char *copy = ox_strdup(ox_str_get(lines));
    for (char *line = copy, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        say(priority, kind, line);
    }
}

static int configured(const struct options *o)
{
    struct ox_config c;
    struct ox_config_trouble trouble = {0};
    ox_config_init(&c);
    enum ox_err err = sources_read(&o->sources, &c, &trouble);
    print_lines("<4>", "warning: ", &trouble.warnings);
    print_lines("<3>", "", &trouble.errors);
    ox_config_trouble_fini(&trouble);
    int status = err != OX_OK ? EXIT_USAGE : o->check_only ? EXIT_SUCCESS : run(&c, o);
    ox_config_fini(&c);
    return status;
}

int main(int argc, char **argv)
{
    struct options o = {.data_dir = "data"};
    int status = -1;
    o.sets = ox_calloc((size_t)argc + 1, sizeof *o.sets);
    o.sources.sets = o.sets;
    o.sources.environment = environ;
    for (int i = 1; i < argc && status < 0; i++)
        status = parse_one(&o, argc, argv, &i);
    if (status < 0)
        status = configured(&o);
    ox_free(o.sets);
    return status;
}
