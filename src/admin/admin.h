// admin.h - the REST door: validate, call the broker, answer. Paths, bodies and codes are those of Pulsar's /admin/v2.
#ifndef ADMIN_ADMIN_H
#define ADMIN_ADMIN_H

#include "broker/shard.h"

struct ox_admin;
struct ox_storage;

// How the HTTP library's file descriptor is watched; supplied by the program, since watching is a port.
struct ox_admin_poll {
    void *(*start)(void *ctx, int fd, void (*readable)(void *arg),
                   void *arg); // calls readable(arg) from the loop; returns a handle, NULL on failure
    void (*stop)(void *handle);
    void *ctx;
};

struct ox_admin_config {
    struct ox_shard *shard;
    struct ox_storage *storage; // the bookie clusters; NULL: the feature is off (404). It must outlive the drain
    const char *host;           // address to listen on, borrowed for the call
    uint16_t port;              // 0: any
    struct ox_admin_poll poll;
};

// Starts serving. Errors: ADDRESS_IN_USE, INVALID (host is not an address), IO.
enum ox_err ox_admin_open(const struct ox_admin_config *config, struct ox_admin **ret) OX_CHECKED;
// The real port.
uint16_t ox_admin_port(const struct ox_admin *admin);
// From here on each new request is answered 503; op finishes (OK) when every request that the broker works for has its answer. Once, before a close.
void ox_admin_drain(struct ox_admin *admin, struct ox_op *op);
// Stops serving, frees it. It must have been drained if it served at all: no request may be in work (asserted).
void ox_admin_close(struct ox_admin *admin);

#endif
