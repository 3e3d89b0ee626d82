// process.c - the load of this process, from what the program tells of it.
#include "admin/process.h"

#define LOAD_INTERVAL_NS OX_SEC // a shorter time says nothing of the load

// The processor time used between two looks that are far enough apart.
static double load_cpu(struct ox_admin *admin, uint64_t cpu_ns)
{
    struct admin_sample *s = &admin->sample;
    uint64_t now = ox_now_ns(admin->shard->loop);
    if (now - s->at_ns >= LOAD_INTERVAL_NS) {
        s->cpu_percent = 100.0 * (double)(cpu_ns - s->cpu_ns) / (double)(now - s->at_ns);
        s->at_ns = now;
        s->cpu_ns = cpu_ns;
    }
    return s->cpu_percent;
}

static double share(double used, double limit)
{
    return limit > 0 ? used / limit : 0;
}

void admin_load_now(struct ox_admin *admin, struct admin_load *ret)
{
    struct ox_admin_process process = {0};
    const struct ox_tail_cache *cache = &admin->shard->mledgers->cache;
    if (admin->process)
        admin->process(&process);
    *ret = (struct admin_load){.cpu_percent = load_cpu(admin, process.cpu_ns),
                               .cpu_limit_percent = 100.0 * process.processors,
                               .cpu_seconds = (double)process.cpu_ns / OX_SEC,
                               .processors = process.processors,
                               .resident_bytes = process.resident_bytes,
                               .memory_bytes = process.memory_bytes,
                               .cache_bytes = cache->bytes,
                               .cache_limit_bytes = cache->bytes_max,
                               .started_ms = admin->started_ms};
    ret->max_share = OX_MAX(share(ret->cpu_percent, ret->cpu_limit_percent),
                            share((double)process.resident_bytes, (double)process.memory_bytes));
}
