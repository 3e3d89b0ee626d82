// engine.c - appends through the embedded engine alone, on the real loop: rate and latency for one size and depth.
//
// oxbow-bench-engine DIR BYTES DEPTH SECONDS [start|recycle|apart|busy]: BYTES of a batch at depth 1 (the entry is smaller by the batch's own bytes); prints one line.
// With `start` it opens and closes the store and prints how long the open took. With `recycle` it is measured as it goes on where messages are consumed as fast
// as they come: each ledger is closed and deleted after some megabytes, and what is measured begins when emptied segments are written again. With `apart` no two
// appends share a batch, however many wait: each batch is just BYTES large. With `busy` the threads look for each other's work before they sleep (journalBusyWait).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hist.h"
#include "base/mem.h"
#include "io/posix/posix.h"
#include "ledger/store/store.h"

#define BATCH_OVERHEAD 160u // batch header, record header, directory item, rounding
#define DEPTH_MAX 4096u
#define ROLL_BYTES (16u << 20)      // of a ledger, with `recycle`
#define RECYCLE_WARM (512ull << 20) // bytes before what is measured, with `recycle`: eight segments

struct bench;
struct bench_append {
    struct ox_append append;
    struct bench *bench;
    uint64_t begun_ns;
};
struct bench {
    struct ox_loop *loop;
    struct ox_place *place;
    struct ox_ledger *ledger;
    struct ox_op op;
    struct ox_ledger_create create;
    struct ox_next_id id;
    struct ox_ledger_close close;
    struct ox_ledger_delete del;
    struct ox_metrics metrics;
    struct bench_append *appends;
    struct ox_buf payload;
    uint32_t depth, pending;
    uint64_t bytes;
    bool start_only, recycle, apart, busy;
    uint32_t resting; // appends that wait for the next ledger
    int64_t next;
    uint64_t begun_ns, until_ns, warm_ns, seconds, count, sent;
    struct ox_hist latency;
};

static void bench_fail(const char *what, enum ox_err err)
{
    fprintf(stderr, "engine: %s: %s\n", what, ox_err_text(err));
    exit(1);
}

static void bench_closed(struct ox_op *op)
{
    struct bench *b = CONTAINER_OF(op, struct bench, op);
    if (op->err != OX_OK)
        bench_fail("close", op->err);
    ox_posix_stop(b->loop);
}

static void bench_close(struct bench *b)
{
    if (b->ledger)
        ox_ledger_release(b->ledger);
    ox_op_init(&b->op, b->loop, bench_closed, "close");
    ox_place_close(b->place, &b->op);
}

static void bench_report(struct bench *b)
{
    double seconds = (double)(ox_now_ns(b->loop) - b->warm_ns) / 1e9;
    double rate = (double)b->count / seconds;
    printf("engine bytes=%llu depth=%u appends_per_s=%.0f MB_per_s=%.1f p50_us=%.0f p99_us=%.0f\n",
           (unsigned long long)b->bytes, b->depth, rate, rate * (double)b->bytes / 1e6,
           (double)ox_hist_quantile(&b->latency, 0.5) / 1e3, (double)ox_hist_quantile(&b->latency, 0.99) / 1e3);
}

static void bench_append(struct bench_append *a);
static void bench_next_ledger(struct bench *b);

static void bench_deleted(struct ox_op *op)
{
    struct bench *b = CONTAINER_OF(op, struct bench, del.op);
    if (op->err != OX_OK)
        bench_fail("delete", op->err);
    bench_next_ledger(b);
}

static void bench_ledger_closed(struct ox_op *op)
{
    static const struct ox_kv all = {0};
    struct bench *b = CONTAINER_OF(op, struct bench, close.op);
    if (op->err != OX_OK)
        bench_fail("close ledger", op->err);
    ox_ledger_release(b->ledger);
    b->ledger = NULL;
    ox_op_init(&b->del.op, b->loop, bench_deleted, "delete");
    ox_ledger_delete(b->place, &b->del, b->id.id, &all);
}

static void bench_roll(struct bench *b)
{
    ox_op_init(&b->close.op, b->loop, bench_ledger_closed, "close ledger");
    ox_ledger_close(b->ledger, &b->close);
}

// What is measured begins after a while.
static void bench_warm(struct bench *b, uint64_t now)
{
    b->sent += b->bytes;
    bool warm = b->recycle ? b->sent >= RECYCLE_WARM : now - b->begun_ns > b->seconds * OX_SEC / 5;
    if (b->warm_ns || !warm)
        return;
    b->warm_ns = now;
    b->until_ns = now + b->seconds * OX_SEC;
}

static void bench_appended(struct ox_op *op)
{
    struct bench_append *a = CONTAINER_OF(op, struct bench_append, append.op);
    struct bench *b = a->bench;
    uint64_t now = ox_now_ns(b->loop);
    if (op->err != OX_OK)
        bench_fail("append", op->err);
    bench_warm(b, now);
    if (b->warm_ns && a->begun_ns >= b->warm_ns) {
        b->count++;
        ox_hist_add(&b->latency, now - a->begun_ns);
    }
    if (now < b->until_ns && b->recycle && (uint64_t)b->next * b->bytes >= ROLL_BYTES) {
        if (++b->resting == b->pending)
            bench_roll(b);
    } else if (now < b->until_ns) {
        bench_append(a);
    } else if (--b->pending == 0) {
        bench_report(b);
        bench_close(b);
    }
}

static void bench_append(struct bench_append *a)
{
    struct bench *b = a->bench;
    a->append.entry = b->next++;
    a->append.parts[0] = b->payload;
    a->append.part_count = 1;
    a->begun_ns = ox_now_ns(b->loop);
    ox_op_init(&a->append.op, b->loop, bench_appended, "append");
    ox_ledger_append(b->ledger, &a->append);
}

static void bench_created(struct ox_op *op)
{
    struct bench *b = CONTAINER_OF(op, struct bench, create.op);
    if (op->err != OX_OK)
        bench_fail("create", op->err);
    b->ledger = b->create.ledger;
    b->next = 0;
    b->resting = 0;
    for (uint32_t i = 0; i < b->pending; i++) {
        b->appends[i].bench = b;
        bench_append(&b->appends[i]);
    }
}

static void bench_id(struct ox_op *op)
{
    struct bench *b = CONTAINER_OF(op, struct bench, id.op);
    struct ox_kv custom = {0};
    if (op->err != OX_OK)
        bench_fail("next id", op->err);
    ox_op_init(&b->create.op, b->loop, bench_created, "create");
    ox_ledger_create(b->place, &b->create, b->id.id, &custom);
}

static void bench_next_ledger(struct bench *b)
{
    ox_op_init(&b->id.op, b->loop, bench_id, "next id");
    ox_place_next_id(b->place, &b->id);
}

static void bench_opened(struct ox_op *op)
{
    struct bench *b = CONTAINER_OF(op, struct bench, op);
    if (op->err != OX_OK)
        bench_fail("open", op->err);
    if (b->start_only) {
        printf("engine open_ms=%.1f\n", (double)(ox_now_ns(b->loop) - b->begun_ns) / 1e6);
        bench_close(b);
        return;
    }
    b->pending = b->depth;
    b->begun_ns = ox_now_ns(b->loop);
    b->until_ns = UINT64_MAX;
    bench_next_ledger(b);
}

static void bench_run(struct bench *b, const char *dir)
{
    struct ox_log log;
    struct ox_store_config config;
    ox_posix_log_init(&log, OX_LOG_WARN);
    b->loop = ox_posix_loop_new(&log);
    ox_posix_journal_busy_wait(b->loop, b->busy);
    ox_metrics_init(&b->metrics);
    ox_store_config_init(&config, dir);
    config.metrics = &b->metrics;
    if (b->apart)
        config.batch_bytes_max = b->bytes;
    b->begun_ns = ox_now_ns(b->loop);
    ox_op_init(&b->op, b->loop, bench_opened, "open");
    ox_store_open(b->loop, ox_posix_fs(b->loop), &b->op, &config, &b->place);
    ox_posix_run(b->loop);
    ox_posix_loop_free(b->loop);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: oxbow-bench-engine DIR BYTES DEPTH SECONDS [start|recycle|apart|busy]\n");
        return 2;
    }
    struct bench *b = ox_malloc(sizeof *b);
    b->bytes = strtoull(argv[2], NULL, 10);
    b->depth = (uint32_t)strtoul(argv[3], NULL, 10);
    b->seconds = strtoull(argv[4], NULL, 10);
    b->start_only = argc > 5 && strcmp(argv[5], "start") == 0;
    b->recycle = argc > 5 && strcmp(argv[5], "recycle") == 0;
    b->apart = argc > 5 && strcmp(argv[5], "apart") == 0;
    b->busy = argc > 5 && strcmp(argv[5], "busy") == 0;
    if (b->bytes <= BATCH_OVERHEAD || b->depth == 0 || b->depth > DEPTH_MAX) {
        fprintf(stderr, "engine: BYTES must be above %u, DEPTH within 1..%u\n", BATCH_OVERHEAD, DEPTH_MAX);
        return 2;
    }
    uint8_t *data;
    b->appends = ox_calloc(b->depth, sizeof *b->appends);
    b->payload = ox_buf_new((size_t)b->bytes - BATCH_OVERHEAD, &data);
    memset(data, 'x', b->payload.len);
    bench_run(b, argv[1]);
    ox_buf_unref(&b->payload);
    ox_free(b->appends);
    ox_free(b);
    return 0;
}
