// bench.h - what the parts of oxbow-bench share.
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hist.h"
#include "base/str.h"
#include "io/loop.h"
#include "io/stream.h"

// What the command line asks for. Times in ns, sizes in bytes.
struct bench_options {
    const char *service_url, *topic, *compression, *dir, *host;
    int64_t port;
    const char *subscription;
    int64_t messages;
    int64_t topics, producers, connections, consumers;
    int64_t rate; // messages a second in all; 0: as fast as the windows allow
    uint64_t size, batch_bytes, file_bytes;
    int64_t batch, window;
    uint64_t batch_delay_ns, duration_ns, warmup_ns, pause_window_ns;
    bool json;
};
// Reads the options of a mode ("publish", "null", "disk"). False: a message was printed.
bool bench_options_parse(struct bench_options *o, int argc, char **argv);
// Prints what there is.
void bench_usage(void);

// ---- pauses.c: the longest gap between acknowledgements in each window of time

struct bench_pauses {
    uint64_t window_ns, window_end_ns, last_ns;
    uint64_t longest_ns; // of the current window
    uint64_t *windows;   // longest gaps of the windows that are over
    size_t count, cap;
};
// Starts at `now_ns`.
void bench_pauses_init(struct bench_pauses *p, uint64_t window_ns, uint64_t now_ns);
// An acknowledgement came. A gap counts in the window in which it ends.
void bench_pauses_note(struct bench_pauses *p, uint64_t now_ns);
// No more come: closes the windows up to now. Sorts them.
void bench_pauses_end(struct bench_pauses *p, uint64_t now_ns);
// The largest and the middle one of all windows; 0 if there are none.
uint64_t bench_pauses_max(const struct bench_pauses *p);
uint64_t bench_pauses_median(const struct bench_pauses *p);
void bench_pauses_fini(struct bench_pauses *p);

// ---- null.c: a server that answers everything at once and stores nothing

struct bench_null;
// Listens; url: what look-ups answer, "pulsar://host:port". Errors: those of ox_net_listen. Closed by the process's end, or bench_null_close once all clients are gone.
enum ox_err bench_null_open(struct ox_net *net, const char *host, uint16_t port, const char *url,
                            struct bench_null **ret) OX_CHECKED;
void bench_null_close(struct bench_null *n);

// ---- what is printed

struct bench_result {
    const char *mode, *target;
    uint64_t sent, done, failed, bytes; // of the measured span
    uint64_t elapsed_ns;
    struct ox_hist latency; // ns, from the intended time
    struct bench_pauses pauses;
    uint64_t consumed;
    struct ox_hist end_to_end; // ns
    const char *error;         // of the first failure, or NULL
};
void bench_report(const struct bench_options *o, const struct bench_result *r);

// ---- the modes; each returns the exit status

int bench_publish(const struct bench_options *o);
int bench_drain(const struct bench_options *o);
int bench_run_null(const struct bench_options *o);
int bench_disk(const struct bench_options *o);

#endif
