// router.h - the one door to ledgers: a location names place and ledger, the router finds the place.
#ifndef LEDGER_ROUTER_H
#define LEDGER_ROUTER_H

#include "ledger/place.h"

// The only reference to a ledger anywhere. place: index in the router's registry (0 = the bootstrap place). id: the logical id, as in message ids.
// physical: the id in the place, the same unless the place refused it.
struct ox_location {
    uint32_t place;
    int64_t id;
    int64_t physical;
};

// What became of the reads that went to a place. Noted by whoever reads, shown as metrics.
struct ox_router_reads {
    int64_t answered, failed;
    int64_t misrouted; // of the failed: what is there is somebody else's
};

// One registered place. Its index is kept for the life of the process, whatever becomes of the place.
struct ox_router_slot {
    char *name;             // as registered
    struct ox_place *place; // or NULL: not open here
    enum ox_err err; // what every use answers while place is NULL: PLACE_CLOSED, PLACE_CHANGED; NO_PLACE once it is unregistered
    struct ox_router_reads reads; // since the start
    uint32_t openings;            // how often it was added or attached
    bool reads_blocked;           // by the read mode: opens for reading answer PLACE_BLOCKED
};

// The registered places of this process; level 4 and above hold a router, never a place.
struct ox_router {
    struct ox_loop *loop;         // read-only
    struct ox_router_slot *slots; // private
    uint32_t count;               // read-only: slots, whatever their state
    uint32_t active;              // read-only: index of the place where new ledgers are made; ox_router_activate
    int64_t id_floor;             // private: largest id seen in this process
};

// Makes a router without places.
void ox_router_init(struct ox_router *r, struct ox_loop *loop);
// Registers an open place (taken over) and returns its index; the first one is the bootstrap place and active.
uint32_t ox_router_add(struct ox_router *r, struct ox_place *take_place);
// Registers a place that is not open: everything that needs it answers err until ox_router_attach. Returns its index (that of the name if it is known).
uint32_t ox_router_reserve(struct ox_router *r, const char *name, enum ox_err err);
// The place of a reserved index is open now (taken over); its name must be the slot's (asserted).
void ox_router_attach(struct ox_router *r, uint32_t index, struct ox_place *take_place);
// Closes a place whose handles have all been released and where no call is under way, which may end with a handle (else BUSY, nothing changes; see
// ox_router_holders); from then on its uses answer err. The active one: CONFLICT.
void ox_router_detach(struct ox_router *r, struct ox_op *op, uint32_t index, enum ox_err err);
// A slot that is not open is unregistered: its name is not found any more, its uses answer NO_PLACE.
void ox_router_forget(struct ox_router *r, uint32_t index);
// New ledgers are made in this place from now on; it must be open (asserted). Creates that have begun elsewhere end there, and say so in their location.
void ox_router_activate(struct ox_router *r, uint32_t index);
// The read mode lets nobody open ledgers of a place for reading (on), or lets them again.
void ox_router_block_reads(struct ox_router *r, uint32_t index, bool on);
// The index of a named place. Errors: NO_PLACE.
enum ox_err ox_router_find(const struct ox_router *r, const char *name, uint32_t *ret_index) OX_CHECKED;
// A registered place, or NULL while it is not open here. Borrowed.
struct ox_place *ox_router_place(const struct ox_router *r, uint32_t index);
// Which opening of a registered place this is, from 1; 0 while it is not open here.
uint32_t ox_router_opening(const struct ox_router *r, uint32_t index);
// Notes the outcome of a read (or of the open before it) at a place.
void ox_router_note_read(struct ox_router *r, uint32_t index, enum ox_err err);
// What has been noted. Borrowed for the moment.
const struct ox_router_reads *ox_router_reads(const struct ox_router *r, uint32_t index);
// A registered place's name, open or not. Borrowed.
const char *ox_router_name(const struct ox_router *r, uint32_t index);
// Who holds open handles on ledgers of a place: visit is called for each (ledger handles are borrowed for the call). Returns how many there are.
size_t ox_router_holders(const struct ox_router *r, uint32_t index, void (*visit)(void *ctx, const struct ox_ledger *l),
                         void *ctx);

// Makes a ledger in the active place: takes an id above `above` (an id that isn't is thrown away and the generator pushed past it), creates it, and returns location and handle as one value.
struct ox_router_create {
    struct ox_op op;                // Errors: those of next_id, push_id and create
    struct ox_location location;    // result
    struct ox_ledger *ledger;       // result
    struct ox_router *router;       // private
    int64_t above;                  // private
    uint32_t tries;                 // private: ids that were taken already
    bool copy;                      // private: the logical id is given
    struct ox_kv custom;            // private
    struct ox_next_id next;         // private
    struct ox_ledger_create create; // private
    struct ox_op push;              // private
};
void ox_router_create(struct ox_router *r, struct ox_router_create *op, int64_t above, const struct ox_kv *custom);
// The same in a chosen place, active or not. Errors: also those of places that are not open; no other place is taken instead.
void ox_router_create_in(struct ox_router *r, struct ox_router_create *op, uint32_t place, int64_t above,
                         const struct ox_kv *custom);
// Makes a ledger of a chosen logical id in a chosen place, for a copy: the physical id is the same where it is free there else the next of that place's generator. custom must tell the copy apart. Errors: those of next_id and create, and of places that are not open.
void ox_router_create_copy(struct ox_router *r, struct ox_router_create *op, uint32_t place, int64_t id,
                           const struct ox_kv *custom);
// Opens the ledger at a location. Errors: NO_PLACE, PLACE_CLOSED, PLACE_CHANGED, PLACE_BLOCKED (mode READ_ONLY), and those of ox_ledger_open.
void ox_router_open(struct ox_router *r, struct ox_ledger_open *op, struct ox_location where, enum ox_open_mode mode,
                    const struct ox_kv *expected);
// Deletes the ledger at a location. Errors: NO_PLACE, PLACE_CLOSED, PLACE_CHANGED, and those of ox_ledger_delete.
void ox_router_delete(struct ox_router *r, struct ox_ledger_delete *op, struct ox_location where,
                      const struct ox_kv *expected);
// Closes all places one after another.
void ox_router_close(struct ox_router *r, struct ox_op *op);

#endif
