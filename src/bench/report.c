// report.c - figures as a table or as one line of JSON.
#include <stdio.h>

#include "bench/bench.h"

static double us(uint64_t ns)
{
    return (double)ns / 1e3;
}

static void json_quantiles(const char *name, const struct ox_hist *h)
{
    printf(",\"%s\":{\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,\"p999\":%.1f,\"max\":%.1f}", name,
           us(ox_hist_quantile(h, 0.5)), us(ox_hist_quantile(h, 0.9)), us(ox_hist_quantile(h, 0.99)),
           us(ox_hist_quantile(h, 0.999)), us(h->max));
}

static void table_quantiles(const char *name, const struct ox_hist *h)
{
    printf("%-12s p50 %.1f  p90 %.1f  p99 %.1f  p99.9 %.1f  max %.1f us\n", name, us(ox_hist_quantile(h, 0.5)),
           us(ox_hist_quantile(h, 0.9)), us(ox_hist_quantile(h, 0.99)), us(ox_hist_quantile(h, 0.999)), us(h->max));
}

static void report_json(const struct bench_result *r, double seconds)
{
    printf("{\"mode\":\"%s\",\"target\":\"%s\",\"seconds\":%.3f,\"sent\":%llu,\"done\":%llu,\"failed\":%llu", r->mode,
           r->target, seconds, (unsigned long long)r->sent, (unsigned long long)r->done, (unsigned long long)r->failed);
    printf(",\"perSecond\":%.1f,\"mbPerSecond\":%.3f", (double)r->done / seconds, (double)r->bytes / seconds / 1e6);
    json_quantiles("latencyUs", &r->latency);
    if (r->pauses.count)
        printf(",\"pauseMs\":{\"max\":%.3f,\"median\":%.3f,\"windows\":%zu}", us(bench_pauses_max(&r->pauses)) / 1e3,
               us(bench_pauses_median(&r->pauses)) / 1e3, r->pauses.count);
    if (r->consumed) {
        printf(",\"consumed\":%llu", (unsigned long long)r->consumed);
        json_quantiles("endToEndUs", &r->end_to_end);
    }
    if (r->error)
        printf(",\"error\":\"%s\"", r->error);
    printf("}\n");
}

static void report_table(const struct bench_result *r, double seconds)
{
    printf("%-12s %s, %.1f s: %llu done, %llu failed%s%s\n", r->mode, r->target, seconds, (unsigned long long)r->done,
           (unsigned long long)r->failed, r->error ? ", first: " : "", r->error ? r->error : "");
    printf("%-12s %.1f/s, %.3f MB/s\n", "throughput", (double)r->done / seconds, (double)r->bytes / seconds / 1e6);
    table_quantiles("latency", &r->latency);
    if (r->pauses.count)
        printf("%-12s longest %.3f ms, median of %zu windows %.3f ms\n", "pauses",
               us(bench_pauses_max(&r->pauses)) / 1e3, r->pauses.count, us(bench_pauses_median(&r->pauses)) / 1e3);
    if (!r->consumed)
        return;
    printf("%-12s %llu\n", "consumed", (unsigned long long)r->consumed);
    table_quantiles("end to end", &r->end_to_end);
}

void bench_report(const struct bench_options *o, const struct bench_result *r)
{
    double seconds = (double)r->elapsed_ns / 1e9;
    if (o->json)
        report_json(r, seconds);
    else
        report_table(r, seconds);
}
