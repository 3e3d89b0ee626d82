// gauges.h - the figures of all that is loaded, for the metrics page: taken in one walk over the topics, in portions, and printed family by family.
#ifndef BROKER_GAUGES_H
#define BROKER_GAUGES_H

#include "base/metrics.h"
#include "broker/shard.h"
#include "gen/metric_columns.h"

#define OX_GAUGE_TABLES(X)   \
    X(broker, BROKER)        \
    X(namespaces, NAMESPACE) \
    X(topics, TOPIC) X(subscriptions, SUBSCRIPTION) X(consumers, CONSUMER) X(producers, PRODUCER) X(logs, LOG)

// Figures as of one walk; whoever prints them holds a reference. Which levels are there the shard's settings (metrics_...) say when it begins.
struct ox_gauges {
    // public: rows may be added to `broker`, text to `text`, until somebody prints
#define OX_X(member, level) struct ox_metric_table member;
    OX_GAUGE_TABLES(OX_X)
#undef OX_X
    struct ox_str text;       // of other families, printed first
    struct gauges_walk *walk; // private: until it is over
};

// Begins a walk over the topics that are loaded. To be given to ox_gauges_free.
struct ox_gauges *ox_gauges_new(struct ox_shard *sh);
// Goes on with the walk for about so many ns (0: one step: a topic's beginning, a subscription, or a topic's end); true: there is more of it. A topic that goes away or is loaded meanwhile is left out. The shard must live until the walk is over or the gauges are freed.
bool ox_gauges_collect(struct ox_gauges *g, uint64_t ns);
// A row of the broker's table with the label `cluster`, and others (`a="b"`) where more is not empty.
double *ox_gauges_broker_row(struct ox_gauges *g, const struct ox_shard *sh, const char *more);
// Frees it, however far it is.
void ox_gauges_free(struct ox_gauges *g);

// How far a page has been printed; zeroed: not at all.
struct ox_gauges_place {
    unsigned table;
    size_t at; // in the text
    struct ox_metric_place place;
};
// Prints whole lines from the place on, at most cap bytes (OX_METRIC_PIECE_MIN at least). Returns how many were written; 0: the page is at its end.
size_t ox_gauges_print(const struct ox_gauges *g, struct ox_gauges_place *place, char *data, size_t cap);

#endif
