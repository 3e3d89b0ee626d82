// sim_place.h - a place in memory with faults on demand; what it keeps outlives the processes that use it.
#ifndef SIM_PLACE_SIM_PLACE_H
#define SIM_PLACE_SIM_PLACE_H

#include "ledger/place.h"

// What is kept.
struct ox_sim_store;

// An empty store; number goes into its identity.
struct ox_sim_store *ox_sim_store_new(uint32_t number);
// Frees it; no place may be open on it (asserted).
void ox_sim_store_free(struct ox_sim_store *store);

enum ox_sim_place_call {
    OX_SIM_CALL_CREATE,
    OX_SIM_CALL_OPEN,
    OX_SIM_CALL_APPEND,
    OX_SIM_CALL_READ,
    OX_SIM_CALL_CLOSE,
    OX_SIM_CALL_DELETE,
    OX_SIM_CALL_LIST,
    OX_SIM_CALL_ID,
};
// What becomes of one call.
struct ox_sim_place_fault {
    uint64_t before_ns; // until it takes effect
    uint64_t after_ns;  // from then until the answer
    enum ox_err err;    // not OK: answered instead of the outcome
    bool effect;        // with err: it takes effect all the same
    bool garble;        // an append stores other bytes, as many as it was given (and says nothing)
};
// Chooses; embedded in its owner, which outlives the place.
struct ox_sim_place_faults {
    // entry: of an append, else -1. *fault is zeroed (at once, the true outcome) before.
    void (*choose)(struct ox_sim_place_faults *f, enum ox_sim_place_call call, int64_t ledger, int64_t entry,
                   struct ox_sim_place_fault *fault);
};

// Opens a place on a store (borrowed) under a name; faults NULL: none. Closed by ox_place_close.
struct ox_place *ox_sim_place_new(struct ox_loop *loop, struct ox_sim_store *store, const char *name,
                                  struct ox_sim_place_faults *faults);

// How many ledgers the store has.
size_t ox_sim_store_count(const struct ox_sim_store *store);
// True if it has a ledger.
bool ox_sim_store_has(const struct ox_sim_store *store, int64_t ledger);
// What is known of a ledger, or NULL. Borrowed until it changes.
const struct ox_ledger_info *ox_sim_store_find(const struct ox_sim_store *store, int64_t ledger);
// Loses a ledger behind everybody's back; false if it was not there.
bool ox_sim_store_lose(struct ox_sim_store *store, int64_t ledger);
// Damages an entry (reads answer CORRUPT), or with -1 the whole ledger (opening answers CORRUPT).
void ox_sim_store_damage(struct ox_sim_store *store, int64_t ledger, int64_t entry);
// Makes a ledger by hand, closed, with `entries` entries of one byte each.
void ox_sim_store_make(struct ox_sim_store *store, int64_t ledger, const struct ox_kv *custom, int64_t entries);

#endif
