// pulsar.h - the front door for Pulsar's clients: a listener and its sessions.
#ifndef PULSAR_PULSAR_H
#define PULSAR_PULSAR_H

#include "broker/shard.h"
#include "io/stream.h"
#include "wire/proto.h"

// Settings; names in comments are the configuration keys. ox_pulsar_config_init gives the defaults. Strings are borrowed for the server's life.
struct ox_pulsar_config {
    const char *host;         // bindAddress "127.0.0.1"
    const char *advertised;   // advertisedAddress: what metrics call this broker; NULL: host
    uint16_t port;            // brokerServicePort 6650; 0: any free one
    uint32_t connections_max; // brokerMaxConnections OX_CONNECTIONS_MAX
    uint64_t keep_alive_ns; // keepAliveIntervalSeconds 30: a ping after so long, the end after twice that without an answer
    uint32_t requests_max; // requests of one connection that wait for an answer; beyond it the connection is not read: 1,000
    size_t turn_bytes; // of one connection that are handled before the others have their turn: OX_CONN_TURN_BYTES
};
// Fills in the defaults.
void ox_pulsar_config_init(struct ox_pulsar_config *c);

// A server. Zero it, set the public members, then ox_pulsar_listen.
struct ox_pulsar {
    struct ox_shard *shard;         // public
    struct ox_net *net;             // public
    struct ox_pulsar_config config; // public
    uint16_t port;                  // read-only: the real one

    struct ox_listener *listener; // private
    struct ox_list sessions;      // private
    struct ox_list closing;       // private: sessions that have ended and whose stream or requests have not
    struct ox_arena arena;        // private: of the command at work
    struct ox_op *close_op;       // private
    struct ox_metric connections, connections_total, connections_accepted, connections_refused, connections_closed,
        bad_frames;                                                                      // private
    struct ox_metric lookups_pending, lookup_answers, lookup_failures, lookup_redirects; // private
    struct ox_summary lookup_latency;                                                    // private
};

// Listens. Errors: ADDRESS_IN_USE, ACCESS, INVALID (host).
enum ox_err ox_pulsar_listen(struct ox_pulsar *p) OX_CHECKED;
// Stops accepting; connections live on.
void ox_pulsar_unlisten(struct ox_pulsar *p);
// Closes all connections; op finishes when they are gone. Stop the shard first if clients shall be told why.
void ox_pulsar_close(struct ox_pulsar *p, struct ox_op *op);
// Frees what is left of a closed server.
void ox_pulsar_fini(struct ox_pulsar *p);

#endif
