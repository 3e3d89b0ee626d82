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

// The registered places of this process; level 4 and above hold a router, never a place.
struct ox_router {
    struct ox_loop *loop;     // read-only
    struct ox_place **places; // private
    uint32_t count;           // read-only
    uint32_t active;          // private: index of the place where new ledgers are made
    int64_t id_floor;         // private: largest id seen in this process
};

// Makes a router without places.
void ox_router_init(struct ox_router *r, struct ox_loop *loop);
// Registers an open place (taken over) and returns its index; the first one is the bootstrap place and active.
uint32_t ox_router_add(struct ox_router *r, struct ox_place *take_place);
// The index of a named place. Errors: NO_PLACE.
enum ox_err ox_router_find(const struct ox_router *r, const char *name, uint32_t *ret_index) OX_CHECKED;
// A registered place. Borrowed.
struct ox_place *ox_router_place(const struct ox_router *r, uint32_t index);

// Makes a ledger in the active place: takes an id above `above` (an id that isn't is thrown away and the generator pushed past it), creates it, and returns location and handle as one value.
struct ox_router_create {
    struct ox_op op;                // Errors: those of next_id, push_id and create
    struct ox_location location;    // result
    struct ox_ledger *ledger;       // result
    struct ox_router *router;       // private
    int64_t above;                  // private
    uint32_t tries;                 // private: ids that were taken already
    struct ox_kv custom;            // private
    struct ox_next_id next;         // private
    struct ox_ledger_create create; // private
    struct ox_op push;              // private
};
void ox_router_create(struct ox_router *r, struct ox_router_create *op, int64_t above, const struct ox_kv *custom);
// Opens the ledger at a location. Errors: NO_PLACE, and those of ox_ledger_open.
void ox_router_open(struct ox_router *r, struct ox_ledger_open *op, struct ox_location where, enum ox_open_mode mode,
                    const struct ox_kv *expected);
// Deletes the ledger at a location. Errors: NO_PLACE, and those of ox_ledger_delete.
void ox_router_delete(struct ox_router *r, struct ox_ledger_delete *op, struct ox_location where,
                      const struct ox_kv *expected);
// Closes all places one after another.
void ox_router_close(struct ox_router *r, struct ox_op *op);

#endif
