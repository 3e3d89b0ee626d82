// metrics.h - a registry of counters, gauges and histograms, printed in Prometheus' text format.
#ifndef BASE_METRICS_H
#define BASE_METRICS_H

#include <stdint.h>

#include "base/list.h"
#include "base/str.h"

// A registry; one per shard. Zero-initialise with ox_metrics_init.
struct ox_metrics {
    struct ox_list families; // private
};

enum ox_metric_kind { OX_METRIC_COUNTER, OX_METRIC_GAUGE };

// One value, embedded in its owner; counting is `m->value += n`.
struct ox_metric {
    int64_t value;
    struct ox_link link;         // private
    struct ox_metrics *registry; // private
    const char *name, *help;     // borrowed, static
    char *labels;                // private: `topic="x"` or NULL
    enum ox_metric_kind kind;
};

// Makes an empty registry.
void ox_metrics_init(struct ox_metrics *registry);
// Registers a zeroed metric under a static name; labels (`a="b",c="d"`, copied) may be NULL.
void ox_metric_init(struct ox_metric *m, struct ox_metrics *registry, enum ox_metric_kind kind, const char *name,
                    const char *help, const char *labels);
// Takes a metric out of its registry.
void ox_metric_fini(struct ox_metric *m);
// Appends the whole page: values of one name stand together, HELP and TYPE once.
void ox_metrics_print(const struct ox_metrics *registry, struct ox_str *out);

#endif
