// metrics.h - a registry of counters, gauges and latencies, and tables of values by rows, printed in Prometheus' text format.
#ifndef BASE_METRICS_H
#define BASE_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/str.h"

struct ox_hist;

// A registry; one per shard. Zero-initialise with ox_metrics_init.
struct ox_metrics {
    struct ox_list families;  // private
    struct ox_list summaries; // private
    const char *cluster; // public: borrowed; NULL or what every family under one of Pulsar's names has as its label `cluster`
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
// Ends an interval of all summaries.
void ox_metrics_tick(struct ox_metrics *registry);

// Latencies, embedded in their owner: their quantiles over this interval and the last, how many there were and their sum since it began; printed in ms.
struct ox_summary {
    uint64_t count, sum_us;       // read-only
    struct ox_hist *now, *last;   // private: of intervals
    const char *name, *help;      // borrowed, static
    const char *const *quantiles; // borrowed, static: texts of numbers from 0 to 1, NULL behind the last
    struct ox_metrics *registry;  // private
    struct ox_link link;          // private
};
// Registers a zeroed summary.
void ox_summary_init(struct ox_summary *s, struct ox_metrics *registry, const char *name, const char *help,
                     const char *const *quantiles);
// Takes it out of its registry.
void ox_summary_fini(struct ox_summary *s);
// Adds a latency.
void ox_summary_add(struct ox_summary *s, uint64_t us);

// Appends a label's value: what may be any bytes as Prometheus wants it: quotes, backslashes and line ends escaped, bytes that are no UTF-8 as '?'.
void ox_metric_escape(struct ox_str *out, const char *value);

// ---- tables: many rows with the same columns, printed column by column

// A series of each row. Static.
struct ox_metric_column {
    const char *head; // "# HELP ...\n# TYPE ...\n" where a family begins, NULL for further series of the same one
    const char *name;
    const char *extra;  // labels beside the row's (`reason="x"`), or ""
    const char *summed; // likewise where rows are sums of others; NULL: a sum of these says nothing, it is not printed
};

struct ox_metric_block;

// Zero it, set the public members. Rows can only be added; they never move.
struct ox_metric_table {
    const struct ox_metric_column *columns; // public
    size_t column_count;                    // public
    bool summed;                            // public: rows are sums
    size_t row_count;                       // read-only
    struct ox_metric_block **blocks;        // private: of rows
    size_t block_cap;                       // private
};
void ox_metric_table_fini(struct ox_metric_table *t);
// Adds a row whose values are not there yet (NAN: no line); labels (`a="b"`) may be empty, and are copied. Returns its number.
size_t ox_metric_table_add(struct ox_metric_table *t, const char *labels, size_t len);
// The values of a row by column.
double *ox_metric_table_row(const struct ox_metric_table *t, size_t row);

// How far a table has been printed; zeroed: not at all.
struct ox_metric_place {
    size_t column, row;
    bool headed; // the family's first line is out
};
// The longest line must fit into a piece.
#define OX_METRIC_PIECE_MIN (64u * 1024)
// Prints whole lines from the place on into at most cap bytes (OX_METRIC_PIECE_MIN at least). Returns how many were written; 0: all is printed.
size_t ox_metric_table_print(const struct ox_metric_table *t, struct ox_metric_place *place, char *data, size_t cap);

#endif
