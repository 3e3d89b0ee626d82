// control_fixture.h - a world for the tests of the half that decides: brokers on one metadata tree, stores that can be out of reach or be exchanged.
#ifndef MOVE_STORAGE_CONTROL_FIXTURE_H
#define MOVE_STORAGE_CONTROL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "metastore/memory.h"
#include "mledger/cursor.h"
#include "mledger/mledger.h"
#include "move/storage/control_int.h"
#include "sim/place/sim_place.h"
#include "sim/sim.h"

#define ROOT "/admin/bookie-clusters"
#define CLUSTER_STORES 4

struct cluster;

// One broker; a node of the simulator with a process that can be killed.
struct broker {
    struct cluster *cluster;
    struct ox_sim_node *node;
    char name[32];
    struct ox_storage_config config; // for the next start
    struct ox_ml_settings settings;  // for the next start
    // The process.
    bool up;
    bool stopped; // the test has stopped its storage already
    struct ox_loop *loop;
    struct ox_meta *meta;
    struct ox_router router;
    struct ox_metrics metrics;
    struct ox_ml_factory factory;
    struct ox_storage *st;
    struct ox_place_opener opener;
    struct ox_sim_place_faults place_faults;
    struct ox_meta_memory_faults meta_faults;
    struct ox_place_body room_body; // of places with the room that the test gives them
    struct ox_str trouble;
};

struct cluster {
    struct ox_sim *sim;
    struct ox_log log;
    struct ox_meta_memory_tree *tree;
    struct ox_sim_store *stores[CLUSTER_STORES]; // "sim:a", "sim:b", ...
    bool away[CLUSTER_STORES];                   // cannot be opened
    struct ox_capacity room[CLUSTER_STORES];     // total 0: plenty
    struct broker brokers[2];
    // Hooks; NULL: nothing special.
    void (*on_meta)(struct cluster *c, bool write, const char *path, struct ox_meta_fault *fault);
    void (*on_place)(struct cluster *c, enum ox_sim_place_call call, int64_t ledger, struct ox_sim_place_fault *fault);
    int hook_count;      // for hooks
    struct ox_str lines; // what was logged as warning or error since cluster_forget
};

// A world with broker 0 running, alone in the store "sim:a".
void cluster_init(struct cluster *c);
void cluster_fini(struct cluster *c);
// Starts a broker; its outcome. The sentence for the user is in b->trouble.
enum ox_err broker_start(struct cluster *c, int i);
// Stops it, closing the logs that are open; a dead one is only taken apart.
void broker_stop(struct cluster *c, int i);
// kill -9, taken apart; its session is over.
void broker_kill(struct cluster *c, int i);
// Stops (or takes apart what is dead) and starts again; must work.
void broker_restart(struct cluster *c, int i);
void cluster_forget(struct cluster *c);
bool cluster_logged(const struct cluster *c, const char *text);

// Verbs; the answer's text (JSON, or the sentence) is in b->trouble.
enum ox_err broker_register(struct broker *b, const char *name, const char *uri);
enum ox_err broker_unregister(struct broker *b, const char *name);
enum ox_err broker_switch(struct broker *b, const char *target, bool supersede);
enum ox_err broker_precheck(struct broker *b, const char *target);
enum ox_err broker_call(struct broker *b, void (*verb)(struct ox_storage *st, struct ox_storage_call *c));
// Waits until the present switch is over; its state.
enum storage_state broker_wait_over(struct broker *b);
const char *broker_active(struct broker *b);
bool broker_says(struct broker *b, const char *text);

// A node's bytes as text, to be freed; NULL: no such node.
char *cluster_node(struct cluster *c, int i, const char *path);
bool cluster_node_has(struct cluster *c, int i, const char *path, const char *text);
void cluster_put(struct cluster *c, int i, const char *path, const char *text);
void cluster_delete(struct cluster *c, int i, const char *path);
// Paths of all nodes below a path with their values, one a line; to be freed.
char *cluster_tree(struct cluster *c, int i, const char *path);
void cluster_sleep(struct cluster *c, uint64_t ns);

// Logs.
struct ox_mledger *broker_log(struct broker *b, const char *name);
void broker_append(struct broker *b, struct ox_mledger *ml, const char *text);
char *broker_read(struct broker *b, struct ox_mledger *ml);
void broker_log_close(struct broker *b, struct ox_mledger *ml);

#endif
