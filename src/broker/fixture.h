// fixture.h - a world for tests of the broker and what stands on it: simulated loop, memory metadata, a place in memory, a shard; processes that crash and start again.
#ifndef BROKER_FIXTURE_H
#define BROKER_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "broker/consumer.h"
#include "broker/partitions.h"
#include "broker/producer.h"
#include "broker/subscription.h"
#include "broker/topic_list.h"
#include "metastore/memory.h"
#include "sim/place/sim_place.h"
#include "sim/sim.h"

struct rig {
    struct ox_sim *sim;
    struct ox_sim_node *node;
    struct ox_log log;
    struct ox_meta_memory_tree *tree;
    struct ox_sim_store *store;
    // What the hook does to calls of the place; NULL: nothing special.
    void (*on_place)(struct rig *r, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                     struct ox_sim_place_fault *fault);
    void *ctx;
    struct ox_sim_place_faults faults;
    bool (*fails)(const char *path); // metadata calls on such a path fail; NULL: none
    struct ox_meta_memory_faults meta_faults;
    char edges[64][32]; // state changes logged so far: "topic LOADING OPEN"
    size_t edge_count;
    struct ox_broker_config config; // for the next start
    struct ox_ml_settings settings; // for the next start
    // The process.
    struct ox_loop *loop;
    struct ox_meta *meta;
    struct ox_router router;
    struct ox_metrics metrics;
    struct ox_ml_factory factory;
    struct ox_shard shard;
};

// A world with one running broker.
void rig_init(struct rig *r);
// Stops broker and world.
void rig_fini(struct rig *r);
// Stops the broker, the world goes on.
void rig_stop_shard(struct rig *r);
// Stops what runs (or has crashed) and starts a fresh process.
void rig_restart(struct rig *r);
// kill -9 and start again.
void rig_crash(struct rig *r);
void rig_op(struct rig *r, struct ox_op *op);
enum ox_err rig_wait(struct rig *r, struct ox_op *op);
// Lets everything finish that is on its way (a second of virtual time).
void rig_settle(struct rig *r);
// Lays the members of a JSON object over the policies of public/default, as somebody else who writes the node would; loaded topics have followed when it returns.
void rig_policies(struct rig *r, const char *json);
// The topic of a name, held; the outcome must be OK.
struct ox_topic *rig_topic(struct rig *r, const char *name);
enum ox_err rig_topic_err(struct rig *r, const char *name, bool create);

// A producer's owner that notes what it is told.
struct rig_producer {
    struct rig *rig;
    struct ox_producer *producer; // NULL once closed
    struct ox_receipt receipts[256];
    size_t receipt_count;
    unsigned closed, unblocked;
    bool dead; // answers no probe
};
// Attaches; the outcome.
enum ox_err rig_produce(struct rig *r, struct rig_producer *p, struct ox_topic *t, const char *name, bool reconnect);
// True if that state change was logged.
bool rig_took(const struct rig *r, const char *edge);
// An entry as a client makes it; the caller owns the reference.
struct ox_buf rig_entry(const char *name, uint64_t sequence_id, const char *payload, int32_t batch);
// The number behind the first letter of a payload ("m17": 17); payloads do not end with a NUL.
uint64_t rig_number(struct ox_buf payload);
// Sends "payload"; returns what ox_producer_publish does.
bool rig_send(struct rig_producer *p, uint64_t sequence_id, const char *payload);
// Sends with a key (NULL: none), not to be delivered before a time (ms, 0: at once).
bool rig_send_keyed(struct rig_producer *p, uint64_t sequence_id, const char *payload, const char *key,
                    uint64_t deliver_at_ms);

// A consumer's owner that notes what it is told.
struct rig_consumer {
    struct rig *rig;
    struct ox_consumer *consumer; // NULL once closed
    struct {
        struct ox_pos pos;
        char payload[32];
        uint64_t ack_set;
        bool has_set;
        uint32_t redeliveries;
        uint64_t epoch;
    } got[256];
    size_t got_count;
    unsigned closed;
    enum ox_err why;
    bool active;          // Failover: the last thing it was told
    unsigned active_told; // how often
    unsigned ends;        // end of topic
    bool full;            // takes no more
    size_t full_after;    // likewise, once it has got so many; 0: never
    bool dead;            // answers no probe
};
enum ox_err rig_subscribe(struct rig *r, struct rig_consumer *c, struct ox_topic *t, const char *subscription,
                          bool from_earliest);
// Prepares a subscribe with this consumer as owner.
struct ox_subscribe rig_subscribe_op(struct rig_consumer *c, const char *subscription);
enum ox_err rig_ack(struct rig_consumer *c, bool cumulative, struct ox_pos pos, uint64_t set, bool has_set);

#endif
