// waiting.h - what waits for a place while the broker runs: deletes that could not reach it, and the sweep of one that is opened late.
#ifndef OXBOWD_WAITING_H
#define OXBOWD_WAITING_H

#include "mledger/places.h"

// What is known of one place, by its index.
struct waiting_place {
    uint32_t swept;                              // the opening that was swept (ox_router_opening); 0: none
    bool shown;                                  // private: the metrics are registered
    struct ox_metric pending;                    // private: bookie_cluster_pending_deletes
    struct ox_metric bytes;                      // private: bookie_cluster_bytes
    struct ox_metric open_data, open_cursors;    // private: bookie_cluster_open_ledgers
    struct ox_metric reads, reads_failed, wrong; // private: bookie_cluster_reads_total, bookie_cluster_misroute_total
};

// Embedded in the program's state; zeroed before waiting_start.
struct waiting {
    struct ox_ml_factory *factory; // private
    struct ox_timer timer;         // private: the pause between two rounds
    struct ox_seq seq;             // private: a round
    struct ox_op op;               // private: of the place that it is at
    struct ox_ml_deletes_count count;
    struct waiting_place **places;   // private
    uint32_t place_count, place;     // private: how many; which one it is at
    void (*over)(struct waiting *w); // private
};
// From now on, again and again: in each open place the deletes that wait for it are tried again, a place that was opened since is swept once, and for each
// place, open or not, the deletes that still wait are counted. The places that are open now are the start's sweep's. With one place alone nothing is done.
void waiting_start(struct waiting *w, struct ox_ml_factory *f);
// Stops. True: nothing is in flight; else over is called when that is so. No effect, and true, if it was not started.
bool waiting_stop(struct waiting *w, void (*over)(struct waiting *w));
// Frees what it knows; it must have stopped, or never started.
void waiting_fini(struct waiting *w);

#endif
