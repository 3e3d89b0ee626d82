// waiting.h - deletes that wait for a place that could not be reached are tried again while the broker runs.
#ifndef OXBOWD_WAITING_H
#define OXBOWD_WAITING_H

#include "mledger/places.h"

// Embedded in the program's state; zeroed before waiting_start.
struct waiting {
    struct ox_ml_factory *factory;   // private
    struct ox_timer timer;           // private
    struct ox_op op;                 // private: of the place being tried
    uint32_t place;                  // private: the next one
    void (*over)(struct waiting *w); // private
};
// From now on each open place is tried in turn: all soon, then again after a while. With one place alone nothing is ever done.
void waiting_start(struct waiting *w, struct ox_ml_factory *f);
// Stops. True: nothing is in flight; else over is called when that is so. No effect, and true, if it was not started.
bool waiting_stop(struct waiting *w, void (*over)(struct waiting *w));

#endif
