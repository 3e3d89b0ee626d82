// admin.h - the REST door: validate, call the broker, answer. Paths, bodies and codes are those of Pulsar's /admin/v2.
#ifndef ADMIN_ADMIN_H
#define ADMIN_ADMIN_H

#include "base/kv.h"
#include "base/str.h"
#include "broker/shard.h"
#include "io/stream.h"

struct ox_admin;
struct ox_storage;

// What clients may take; 0: the default.
struct ox_admin_limits {
    uint32_t connections; // open at once; more wait until one ends, or until one that has sent no whole request can be closed
    uint32_t head_bytes; // of a request
    uint64_t request_ns; // for a whole request, from its first byte
    uint64_t idle_ns;    // between requests
    uint64_t answer_ns;  // in which a client takes nothing of its answer
};

// A change of one setting, as an operator asks for it.
struct ox_admin_setting_put {
    struct ox_op op; // Errors: NOT_FOUND (no setting that may change while the broker runs), INVALID (not allowed), those of the metadata store
    const char *name, *value; // in, borrowed until done; value NULL: what was set is removed
    struct ox_str why;        // result of the first two errors and of CORRUPT: the reason; the caller's
};
// The program's settings; supplied by it, since what they are is not known here. Zeroed: there are none to be seen.
struct ox_admin_settings {
    // Calls fn for each, with the value in force; `live`: only those that may change.
    void (*list)(void *ctx, bool live, void (*fn)(void *arg, const char *name, const char *value), void *arg);
    const struct ox_kv *(*record)(void *ctx); // what was set, as it was written. Borrowed for this turn
    void (*put)(void *ctx, struct ox_admin_setting_put *p);
    void *ctx;
};

// What the process uses of its machine.
struct ox_admin_process {
    uint64_t cpu_ns;         // processor time since it began
    uint64_t resident_bytes; // memory
    uint64_t memory_bytes;   // the machine's, or what the process is allowed
    uint32_t processors;
    bool wants_files; // in: so are files_open and virtual_bytes, which takes time; it may be asked from a helper thread then
    uint64_t virtual_bytes; // address space
    uint32_t files_open;    // descriptors
    uint64_t files_max;     // that may be open
};

struct ox_admin_config {
    struct ox_shard *shard;
    struct ox_storage *storage; // the bookie clusters; NULL: the feature is off (404). It must outlive the drain
    const char *host;           // address to listen on, borrowed for the call
    uint16_t port;              // 0: any
    struct ox_net *net;
    struct ox_admin_limits limits;
    struct ox_admin_settings settings;
    void (*process)(struct ox_admin_process *ret); // tells of the process; NULL: nothing is known
};

// Starts serving. Errors: ADDRESS_IN_USE, INVALID (host is not an address), IO.
enum ox_err ox_admin_open(const struct ox_admin_config *config, struct ox_admin **ret) OX_CHECKED;
// The real port.
uint16_t ox_admin_port(const struct ox_admin *admin);
// From here on each new request is answered 503; op finishes (OK) when every request that the broker works for has its answer, and clients have taken what is on its way, for which they have a second. Once, before a close.
void ox_admin_drain(struct ox_admin *admin, struct ox_op *op);
// Stops serving, frees it. It must have been drained if it served at all: no request may be in work (asserted).
void ox_admin_close(struct ox_admin *admin);

#endif
