// disk.c - the disk's ceiling: a bare loop of write and fdatasync into a preallocated file.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "bench/bench.h"

#define DISK_FILL_BYTES (1u << 20)

static uint64_t disk_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * OX_SEC + (uint64_t)t.tv_nsec;
}

static void disk_sleep_until(uint64_t ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / OX_SEC), .tv_nsec = (long)(ns % OX_SEC)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        continue;
}

// Writes the whole file once, so that later writes change data only.
static bool disk_fill(int fd, uint64_t bytes)
{
    OX_CLEANUP(ox_free_ptr)
    char *zeros = ox_malloc(DISK_FILL_BYTES);
    for (uint64_t at = 0; at < bytes; at += DISK_FILL_BYTES) {
        size_t n = (size_t)OX_MIN((uint64_t)DISK_FILL_BYTES, bytes - at);
        if (pwrite(fd, zeros, n, (off_t)at) != (ssize_t)n)
            return false;
    }
    return fsync(fd) == 0;
}

static bool disk_write(int fd, const char *block, size_t size, uint64_t at)
{
    return pwrite(fd, block, size, (off_t)at) == (ssize_t)size && fdatasync(fd) == 0;
}

static bool disk_loop(const struct bench_options *o, int fd, struct bench_result *r)
{
    OX_CLEANUP(ox_free_ptr)
    char *block = ox_malloc(o->size);
    memset(block, 'd', o->size);
    uint64_t start = disk_now(), measured = start + o->warmup_ns, end = measured + o->duration_ns;
    uint64_t slots = o->file_bytes / o->size;
    for (uint64_t i = 0;; i++) {
        uint64_t intended = o->rate ? start + i * OX_SEC / (uint64_t)o->rate : disk_now();
        if (intended >= end)
            break;
        if (o->rate && intended > disk_now())
            disk_sleep_until(intended);
        if (!disk_write(fd, block, o->size, i % slots * o->size))
            return false;
        if (intended < measured)
            continue;
        ox_hist_add(&r->latency, disk_now() - intended);
        r->sent++;
        r->done++;
        r->bytes += o->size;
    }
    r->elapsed_ns = disk_now() - measured;
    return true;
}

int bench_disk(const struct bench_options *o)
{
    struct bench_result r = {.mode = "disk", .target = o->dir};
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("%s/oxbow-bench.%ld", o->dir, (long)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool good = fd >= 0 && unlink(path) == 0 && disk_fill(fd, o->file_bytes) && disk_loop(o, fd, &r);
    if (good)
        bench_report(o, &r);
    else
        fprintf(stderr, "oxbow-bench: %s: %s\n", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return good ? 0 : 1;
}
