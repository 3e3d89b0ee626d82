// store_rig.h - a store on a simulated node, for tests: open, crash, restart, and the plain calls waited for.
#ifndef LEDGER_STORE_STORE_RIG_H
#define LEDGER_STORE_STORE_RIG_H

#include "ledger/store/store.h"
#include "ledger/store/table_memory.h"
#include "sim/sim.h"
#include "sim/sim_disk.h"

struct store_rig {
    struct ox_sim *sim;
    struct ox_sim_node *node;
    struct ox_memory_table *table;
    struct ox_store_config config; // changed by the test before an open
    struct ox_metrics metrics;
    struct ox_place *place;
    struct ox_loop *loop; // of the place
};

// A world with a small store (256 KiB segments) in "store", not open.
void store_rig_init(struct store_rig *rig, uint64_t seed);
// Closes the place if it is open, and ends the world.
void store_rig_fini(struct store_rig *rig);
enum ox_err store_rig_open(struct store_rig *rig);
enum ox_err store_rig_close(struct store_rig *rig);
// Ends the process, tears its place down (all handles must have been released) and starts the next one; does not open.
void store_rig_crash(struct store_rig *rig, enum ox_sim_crash how);
enum ox_err store_rig_create(struct store_rig *rig, int64_t id, struct ox_ledger **ret);
enum ox_err store_rig_open_ledger(struct store_rig *rig, int64_t id, enum ox_open_mode mode, struct ox_ledger **ret);
// Appends `len` bytes made of ledger and entry.
enum ox_err store_rig_append(struct store_rig *rig, struct ox_ledger *l, int64_t entry, size_t len);
// Reads one entry; OK only if it holds what store_rig_append wrote.
enum ox_err store_rig_read(struct store_rig *rig, struct ox_ledger *l, int64_t entry, size_t len);
enum ox_err store_rig_delete(struct store_rig *rig, int64_t id);
// The bytes of an entry; a slice of its own.
struct ox_buf store_rig_bytes(int64_t ledger, int64_t entry, size_t len);
// The value of a metric such as "oxbow_store_corrupt_entries_total".
int64_t store_rig_metric(struct store_rig *rig, const char *name);

#endif
