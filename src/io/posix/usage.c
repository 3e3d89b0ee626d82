// usage.c - what the process uses of its machine.
#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

#include "io/loop.h"
#include "io/posix/posix.h"

static uint64_t time_ns(const uv_timeval_t *t)
{
    return (uint64_t)t->tv_sec * OX_SEC + (uint64_t)t->tv_usec * 1000u;
}

void ox_posix_usage(struct ox_posix_usage *ret)
{
    uv_rusage_t used = {0};
    size_t resident = 0;
    uint64_t allowed = uv_get_constrained_memory(), all = uv_get_total_memory();
    (void)uv_getrusage(&used);
    (void)uv_resident_set_memory(&resident);
    *ret = (struct ox_posix_usage){.cpu_ns = time_ns(&used.ru_utime) + time_ns(&used.ru_stime),
                                   .resident_bytes = resident,
                                   .memory_bytes = allowed && allowed < all ? allowed : all,
                                   .processors = uv_available_parallelism()};
}

static uint32_t files_count(void)
{
    uint32_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    if (!dir)
        return 0;
    for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count ? count - 1 : 0; // the folder's own
}

static uint64_t virtual_bytes(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return 0;
    if (fscanf(file, "%llu", &pages) != 1)
        pages = 0;
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

void ox_posix_files(struct ox_posix_files *ret)
{
    struct rlimit limit = {0};
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    *ret = (struct ox_posix_files){.virtual_bytes = virtual_bytes(), .max = limit.rlim_cur, .open = files_count()};
}
