// conformance.h - what every store must do; each implementation's test runs this list against itself.
#ifndef METASTORE_CONFORMANCE_H
#define METASTORE_CONFORMANCE_H

#include "metastore/fixture.h"

// One implementation under test. Each test gets a new, empty store.
struct conformance {
    struct fixture f;
    // Opens a store on what this test has written so far, with a new session.
    struct ox_meta *(*open)(struct conformance *c);
    struct ox_meta *meta; // open; a test that closes it sets NULL or another one
};

// Runs all tests on *c, which `setup` prepares (f, open, meta) before each and `teardown` takes down after it (meta may be NULL). Returns the number of
// failures. The group's state is *c.
int conformance_run(const char *name, struct conformance *c, void (*setup)(struct conformance *c),
                    void (*teardown)(struct conformance *c));

#endif
