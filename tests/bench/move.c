// move.c - moves ledgers from one embedded store to another on the real loop, beside a plain copy of the same files in the same run.
//
// oxbow-bench-move DIR LEDGERS ENTRIES BYTES [BYTES_PER_S [PER_LOG]]: makes that many ledgers of ENTRIES entries of BYTES each in DIR/a (PER_LOG of them in a log), copies DIR/a's segment files
// (read, write, fdatasync after each 64 MiB), then moves the ledgers to DIR/b. Before each of the two the source's pages are dropped from the cache.
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "io/posix/posix.h"
#include "ledger/store/store.h"
#include "mledger/record.h"
#include "move/storage/control_int.h"
#include "move/storage/data_int.h"

#define DEPTH 256u                     // appends outstanding while filling
#define FILLERS 32u                    // ledgers filled at once
#define FILL_BYTES (UINT64_C(2) << 20) // outstanding of each
#define COPY_BYTES (1u << 20)
#define COPY_SYNC (64u << 20)

struct bench {
    struct ox_loop *loop;
    struct ox_log log;
    struct ox_metrics metrics;
    struct ox_meta *meta;
    struct ox_router router;
    struct ox_ml_factory factory;
    struct ox_storage st;
    struct storage_control control;
    uint64_t ledgers, entries, bytes, per_log, started, filled;
    struct ox_buf payload;
    struct ox_op fill;
};

static void bench_die(const char *what, const char *why)
{
    fprintf(stderr, "move: %s: %s\n", what, why);
    exit(1);
}

static void bench_done(struct ox_op *op)
{
    ox_posix_stop(op->loop);
}

static void bench_op(struct bench *b, struct ox_op *op, const char *name)
{
    ox_op_init(op, b->loop, bench_done, name);
}

static void bench_wait(struct bench *b, struct ox_op *op)
{
    while (ox_op_pending(op))
        ox_posix_run(b->loop);
    if (op->err != OX_OK)
        bench_die(op->name, ox_err_text(op->err));
}

static double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

// ---- filling

struct filler {
    struct bench *b;
    struct ox_router_create create;
    struct ox_ledger_close close;
    struct filler_append {
        struct ox_append append;
        struct filler *filler;
    } appends[DEPTH];
    uint64_t given, stored;
};

static char *bench_log(const struct bench *b, uint64_t ledger)
{
    return ox_asprintf("public/default/persistent/t%06llu", (unsigned long long)(ledger / b->per_log));
}

static void filler_next(struct filler *f);

static void filler_closed(struct ox_op *op)
{
    struct filler *f = CONTAINER_OF(op, struct filler, close.op);
    struct bench *b = f->b;
    if (op->err != OX_OK)
        bench_die("close", ox_err_text(op->err));
    ox_ledger_release(f->create.ledger);
    b->filled++;
    filler_next(f);
}

static void filler_appended(struct ox_op *op);

static void filler_append(struct filler *f, struct filler_append *a)
{
    struct bench *b = f->b;
    a->filler = f;
    a->append = (struct ox_append){.entry = (int64_t)f->given++, .parts = {b->payload}, .part_count = 1};
    ox_op_init(&a->append.op, b->loop, filler_appended, "append");
    ox_ledger_append(f->create.ledger, &a->append);
}

static void filler_appended(struct ox_op *op)
{
    struct filler_append *a = CONTAINER_OF(op, struct filler_append, append.op);
    struct filler *f = a->filler;
    if (op->err != OX_OK)
        bench_die("append", ox_err_text(op->err));
    if (f->given < f->b->entries)
        filler_append(f, a);
    if (++f->stored < f->b->entries)
        return;
    ox_op_init(&f->close.op, f->b->loop, filler_closed, "close");
    ox_ledger_close(f->create.ledger, &f->close);
}

static void filler_created(struct ox_op *op)
{
    struct filler *f = CONTAINER_OF(op, struct filler, create.op);
    if (op->err != OX_OK)
        bench_die("create", ox_err_text(op->err));
    f->given = f->stored = 0;
    uint64_t depth = OX_MIN(OX_MAX(FILL_BYTES / f->b->bytes, UINT64_C(1)), (uint64_t)DEPTH);
    for (uint32_t i = 0; i < depth && i < f->b->entries; i++)
        filler_append(f, &f->appends[i]);
}

static void filler_next(struct filler *f)
{
    struct bench *b = f->b;
    if (b->started >= b->ledgers) {
        ox_free(f);
        if (b->filled == b->ledgers)
            ox_op_finish(&b->fill, OX_OK);
        return;
    }
    struct ox_kv owner = {0};
    OX_CLEANUP(ox_free_ptr)
    char *log = bench_log(b, b->started++);
    ox_ml_owner(&b->factory, log, NULL, &owner);
    ox_op_init(&f->create.op, b->loop, filler_created, "create");
    ox_router_create_copy(&b->router, &f->create, 0, (int64_t)b->started, &owner); // ids 1, 2, ...
    ox_kv_fini(&owner);
}

static void bench_record(struct bench *b, uint64_t first)
{
    struct ox_record *record = ox_record_new();
    OX_CLEANUP(ox_free_ptr)
    char *log = bench_log(b, first);
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("/managed-ledgers/%s", log);
    for (uint64_t i = first; i < b->ledgers && i < first + b->per_log; i++) {
        ox_record_append_open(record, (int64_t)i + 1);
        ox_record_seal(record, (int64_t)i + 1, (int64_t)b->entries, b->entries * b->bytes, 1000);
    }
    struct ox_meta_put put;
    struct ox_buf value = ox_record_encode(record, false, "a");
    bench_op(b, &put.op, "put record");
    ox_meta_put(b->meta, &put, path, value, OX_META_ABSENT, 0);
    bench_wait(b, &put.op);
    ox_free(put.path);
    ox_buf_unref(&value);
    ox_record_free(record);
}

static void bench_fill(struct bench *b)
{
    bench_op(b, &b->fill, "fill");
    ox_op_begin(&b->fill);
    for (uint32_t i = 0; i < FILLERS && i < b->ledgers; i++) {
        struct filler *f = ox_malloc(sizeof *f);
        f->b = b;
        filler_next(f);
    }
    bench_wait(b, &b->fill);
    for (uint64_t i = 0; i < b->ledgers; i += b->per_log)
        bench_record(b, i);
}

// ---- the plain copy

static void plain_files(const char *dir, void (*visit)(void *ctx, const char *path), void *ctx)
{
    DIR *d = opendir(dir);
    if (!d)
        bench_die(dir, "can't be listed");
    for (struct dirent *e; (e = readdir(d));) {
        OX_CLEANUP(ox_free_ptr)
        char *path = ox_asprintf("%s/%s", dir, e->d_name);
        if (strncmp(e->d_name, "seg-", 4) == 0)
            visit(ctx, path);
    }
    closedir(d);
}

static void plain_drop(void *ctx, const char *path)
{
    (void)ctx;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fsync(fd) != 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
        bench_die(path, "can't be dropped from the cache");
    close(fd);
}

struct plain {
    int to;
    uint64_t bytes, unsynced, limit;
    char *memory;
};

static void plain_copy_file(void *ctx, const char *path)
{
    struct plain *p = ctx;
    int from = open(path, O_RDONLY);
    ssize_t n;
    if (from < 0)
        bench_die(path, "can't be opened");
    while (p->bytes < p->limit && (n = read(from, p->memory, COPY_BYTES)) > 0) {
        if (write(p->to, p->memory, (size_t)n) != n)
            bench_die("plain copy", "write failed");
        p->bytes += (uint64_t)n;
        p->unsynced += (uint64_t)n;
        if (p->unsynced >= COPY_SYNC && fdatasync(p->to) == 0)
            p->unsynced = 0;
    }
    close(from);
}

static double plain_copy(const char *dir, const char *to, uint64_t bytes)
{
    struct plain p = {.to = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600), .limit = bytes, .memory = ox_malloc(COPY_BYTES)};
    double begun = bench_now();
    if (p.to < 0)
        bench_die(to, "can't be made");
    plain_files(dir, plain_copy_file, &p);
    if (fdatasync(p.to) != 0)
        bench_die(to, "sync failed");
    double seconds = bench_now() - begun;
    close(p.to);
    unlink(to);
    ox_free(p.memory);
    return (double)p.bytes / 1e6 / seconds;
}

// ---- the move

static void bench_place(struct bench *b, const char *dir, const char *name)
{
    struct ox_store_config config;
    struct ox_place *place = NULL;
    struct ox_op op;
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("%s/%s", dir, name);
    ox_store_config_init(&config, path);
    config.name = name;
    bench_op(b, &op, "open store");
    ox_store_open(b->loop, ox_posix_fs(b->loop), &op, &config, &place);
    bench_wait(b, &op);
    ox_router_add(&b->router, place);
}

static void bench_open(struct bench *b, const char *dir)
{
    struct ox_op op;
    ox_posix_log_init(&b->log, OX_LOG_WARN);
    b->loop = ox_posix_loop_new(&b->log);
    ox_metrics_init(&b->metrics);
    OX_CLEANUP(ox_free_ptr)
    char *url = ox_asprintf("lmdb:%s/meta", dir);
    bench_op(b, &op, "open metadata");
    ox_meta_open(b->loop, &op, url, &b->meta);
    bench_wait(b, &op);
    ox_router_init(&b->router, b->loop);
    bench_place(b, dir, "a");
    bench_place(b, dir, "b");
    b->factory = (struct ox_ml_factory){
        .loop = b->loop, .log = &b->log, .meta = b->meta, .router = &b->router, .metrics = &b->metrics, .instance = "bench"};
    ox_ml_settings_init(&b->factory.settings);
    b->factory.settings.stamps = true;
    ox_ml_factory_init(&b->factory, 1 << 20);
    b->st = (struct ox_storage){
        .p = {.loop = b->loop, .log = &b->log, .meta = b->meta, .router = &b->router, .metrics = &b->metrics},
        .factory = &b->factory,
        .activated = true,
        .state = STORAGE_RUNNING,
        .move_data = true};
    ox_storage_config_init(&b->st.p.config);
    b->st.control = &b->control;
    ox_list_init(&b->st.failures);
}

static double bench_move(struct bench *b)
{
    struct ox_op op;
    double begun = bench_now();
    ox_router_activate(&b->router, 1);
    bench_op(b, &op, "move");
    storage_data_run(&b->st, &op);
    bench_wait(b, &op);
    if (b->st.data.done != b->ledgers || b->st.data.failures > 0)
        bench_die("move", "not every ledger was moved");
    return bench_now() - begun;
}

static void bench_close(struct bench *b)
{
    struct ox_op op;
    storage_data_fini(&b->st);
    bench_op(b, &op, "drain");
    ox_ml_factory_drain(&b->factory, &op);
    bench_wait(b, &op);
    bench_op(b, &op, "close stores");
    ox_router_close(&b->router, &op);
    bench_wait(b, &op);
    ox_ml_factory_fini(&b->factory);
    bench_op(b, &op, "close metadata");
    ox_meta_close(b->meta, &op);
    bench_wait(b, &op);
    ox_posix_loop_free(b->loop);
}

static double bench_rss(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: oxbow-bench-move DIR LEDGERS ENTRIES BYTES [BYTES_PER_S [PER_LOG]]\n");
        return 2;
    }
    struct bench *b = ox_malloc(sizeof *b);
    uint8_t *data = NULL;
    b->ledgers = strtoull(argv[2], NULL, 10);
    b->entries = strtoull(argv[3], NULL, 10);
    b->bytes = strtoull(argv[4], NULL, 10);
    b->per_log = argc > 6 ? strtoull(argv[6], NULL, 10) : 1000;
    b->payload = ox_buf_new((size_t)b->bytes, &data);
    memset(data, 'x', (size_t)b->bytes);
    bench_open(b, argv[1]);
    b->st.bytes_per_s = argc > 5 ? strtoull(argv[5], NULL, 10) : 0;
    bench_fill(b);
    OX_CLEANUP(ox_free_ptr)
    char *from = ox_asprintf("%s/a", argv[1]);
    OX_CLEANUP(ox_free_ptr)
    char *plain = ox_asprintf("%s/plain", argv[1]);
    double bytes = (double)(b->ledgers * b->entries * b->bytes);
    plain_files(from, plain_drop, NULL);
    double plain_rate = plain_copy(from, plain, (uint64_t)bytes);
    plain_files(from, plain_drop, NULL);
    double seconds = bench_move(b);
    printf("move ledgers=%llu entries=%llu bytes=%llu seconds=%.2f ledgers_per_s=%.0f MB_per_s=%.1f "
           "plain_MB_per_s=%.1f ratio=%.2f rss_MB=%.0f\n",
           (unsigned long long)b->ledgers, (unsigned long long)b->entries, (unsigned long long)b->bytes, seconds,
           (double)b->ledgers / seconds, bytes / 1e6 / seconds, plain_rate, bytes / 1e6 / seconds / plain_rate,
           bench_rss());
    bench_close(b);
    ox_buf_unref(&b->payload);
    ox_free(b);
    return 0;
}
