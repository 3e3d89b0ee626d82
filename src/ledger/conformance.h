// conformance.h - what every kind of place must do, as tests: run by the embedded engine's tests, and by any other body's.
#ifndef LEDGER_CONFORMANCE_H
#define LEDGER_CONFORMANCE_H

#include "ledger/place.h"

// What a body's tests supply.
struct ox_conformance {
    struct ox_place *place;                                          // an open, empty place at the start of each test
    enum ox_err (*wait)(struct ox_conformance *c, struct ox_op *op); // drives the loop until op is over; returns its outcome
    void (*reopen)(struct ox_conformance *c); // closes the place in good order and opens it again (place changes)
    void *ctx;
};
// One test; asserts with cmocka.
struct ox_conformance_test {
    const char *name;
    void (*run)(struct ox_conformance *c);
};
// All tests, ended by a NULL name.
extern const struct ox_conformance_test ox_conformance_tests[];

#endif
