// operator.h - a simulated operator: registers bookie clusters, switches, moves data, pauses, cleans up, at random; and, once the world is healed, ends what was begun.
#ifndef TESTS_SIM_OPERATOR_H
#define TESTS_SIM_OPERATOR_H

#include "base/random.h"
#include "world.h"

// What an operator has been told. Its own generator: seeds without moves run as they would without it.
struct world_operator {
    struct world *world;
    struct ox_random random;
    uint32_t pending;                   // calls in flight
    char target[65];                    // of the last switch that was answered; "default" before any
    int64_t epoch;                      // of it; 0: none
    bool uncertain;                     // a switch whose outcome nobody knows was asked for after it
    uint32_t switches, moves, cleanups; // answered with OK
};

// Prepares it; after world_choose.
struct world_operator *operator_new(struct world *w);
void operator_free(struct world_operator *o);
// Perhaps one order, while the broker serves.
void operator_tick(struct world_operator *o);
// In a healed world, first: everything may be read again, at full speed.
void operator_restore(struct world_operator *o);
// In a healed world: lets what is unfinished go on, waits until it is over, and holds what then must be true: directive, open ledgers, references.
void operator_settle(struct world_operator *o);
// What the seed chose for the end: move the data, clean up, unregister; each with what it promises.
void operator_finale(struct world_operator *o);

#endif
