// broker.h - the whole broker put together: ports, metadata, places of ledgers, managed ledgers, shard, front doors, moving storage; started and stopped step by step.
#ifndef OXBOWD_BROKER_H
#define OXBOWD_BROKER_H

#include "admin/admin.h"
#include "io/file.h"
#include "io/seq.h"
#include "io/stream.h"
#include "move/storage/storage.h"
#include "oxbowd/config.h"
#include "oxbowd/dynamic.h"
#include "oxbowd/live.h"
#include "oxbowd/opener.h"
#include "oxbowd/waiting.h"
#include "pulsar/pulsar.h"

#define OX_BROKER_ID_BYTES 300u

// Everything that runs. Zero it, set the public members, then oxbowd_start.
struct oxbowd {
    struct ox_loop *loop; // public
    struct ox_fs *fs;     // public
    struct ox_net *net;   // public
    bool rest;            // public: REST is served
    bool is_service;      // public: of systemd, whose unit says where it may write
    struct ox_meta *take_meta; // public: an open metadata store to be taken over instead of the configured one (simulator), or NULL
    struct ox_table_source table; // public: of the stores' ledger tables; zeroed: LMDB
    uint64_t segment_bytes; // public: of the stores' files, instead of the configured size (simulator); 0: as configured
    struct ox_log *log;     // public
    struct ox_config *config; // public: live keys of it change while it runs
    const char *data_dir;     // public
    const char *cwd;          // public: absolute; where relative directories of bookie clusters begin
    void (*ended)(struct oxbowd *b, enum ox_err err); // public: called once, when it has stopped or could not start; `trouble` says why
    void (*ready)(struct oxbowd *b);                  // public: it serves; NULL: nobody wants to know
    void (*late)(struct oxbowd *b); // public: the clean end takes longer than brokerShutdownTimeoutMs; NULL: wait on
    void *owner;                    // public

    struct ox_str trouble; // read-only: what to tell the user when it did not work
    bool running;          // read-only: ready and not stopping

    // private
    uint64_t started_ns;
    bool stop_wanted, starting;
    enum ox_err outcome;
    char *data_path, *metadata_url, *store_uri, *service_url, *web_url, *instance;
    char broker_id[OX_BROKER_ID_BYTES]; // "host:port" of REST, as this broker is known to others
    struct ox_metrics metrics;
    struct ox_meta *meta;
    struct opener opener;
    struct ox_router router;
    struct ox_storage *storage;
    struct ox_ml_factory mledgers;
    struct ox_shard shard;
    struct ox_pulsar pulsar;
    struct ox_admin *admin;
    bool router_made, storage_started, mledgers_made, shard_made, pulsar_made;
    size_t path_done; // of data_dir, while its folders are made
    char *folder;
    struct ox_seq seq;
    struct ox_op op;
    struct ox_op sweep;
    struct ox_timer sweep_again;
    struct waiting waiting;
    struct live live;       // from oxbowd_start on: give it new settings
    struct dynamic dynamic; // what was set over REST
    struct ox_meta_get get;
    struct ox_meta_put put;
    struct ox_timer deadline;
};

// Starts; `ended` follows if that fails. Logs "oxbowd.ready" with the ports and the time it took.
void oxbowd_start(struct oxbowd *b);
// Stops cleanly: clients are told, topics closed, stores closed; `ended` follows, at the latest after brokerShutdownTimeoutMs. May be called while starting.
void oxbowd_stop(struct oxbowd *b);

#endif
