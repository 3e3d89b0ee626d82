// main.c - oxbow-bench: which mode runs.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "bench/bench.h"
#include "io/posix/posix.h"

static void null_signal(void *ctx, int signo)
{
    (void)signo;
    ox_posix_stop(ctx);
}

int bench_run_null(const struct bench_options *o)
{
    struct ox_log log;
    struct bench_null *n;
    ox_posix_log_init(&log, OX_LOG_ERROR);
    struct ox_loop *loop = ox_posix_loop_new(&log);
    OX_CLEANUP(ox_free_ptr)
    char *url = ox_asprintf("pulsar://%s:%lld", o->host, (long long)o->port);
    enum ox_err err = bench_null_open(ox_posix_net(loop), o->host, (uint16_t)o->port, url, &n);
    if (err != OX_OK) {
        fprintf(stderr, "oxbow-bench: %s: %s\n", url, ox_err_text(err));
        return 1;
    }
    ox_posix_on_signal(loop, null_signal, loop);
    printf("%s answers everything and stores nothing\n", url);
    fflush(stdout);
    ox_posix_run(loop);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(const struct bench_options *o);
    } modes[] = {{"publish", bench_publish}, {"drain", bench_drain}, {"null", bench_run_null}, {"disk", bench_disk}};
    struct bench_options o;
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        bench_usage();
        return argc < 2 ? 2 : 0;
    }
    for (size_t i = 0; i < OX_COUNT(modes); i++)
        if (strcmp(modes[i].name, argv[1]) == 0)
            return bench_options_parse(&o, argc - 2, argv + 2) ? modes[i].run(&o) : 2;
    fprintf(stderr, "oxbow-bench: there is no mode '%s': publish, drain, null or disk (oxbow-bench --help)\n", argv[1]);
    return 2;
}
