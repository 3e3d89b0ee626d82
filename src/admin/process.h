// process.h - what this process uses of its machine. For this folder only.
#ifndef ADMIN_PROCESS_H
#define ADMIN_PROCESS_H

#include "admin/request.h"

struct admin_load {
    double cpu_percent;       // since somebody last looked, at least a second; 100 is one processor
    double cpu_limit_percent; // of all processors
    double cpu_seconds;       // since the process began
    uint64_t processors;
    uint64_t resident_bytes, memory_bytes;   // used, and there are so many
    uint64_t cache_bytes, cache_limit_bytes; // the tail cache
    double max_share;                        // the largest share of the above that is used, 0 to 1
    uint64_t started_ms;                     // wall time
};
// The figures of now. Zeroes where the program supplies none.
void admin_load_now(struct ox_admin *admin, struct admin_load *ret);

#endif
