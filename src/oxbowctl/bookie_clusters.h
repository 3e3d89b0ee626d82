// bookie_clusters.h - what the commands of "bookie-clusters" share: figures for people, tables, one request, watching a move.
#ifndef OXBOWCTL_BOOKIE_CLUSTERS_H
#define OXBOWCTL_BOOKIE_CLUSTERS_H

#include <jansson.h>
#include <stdio.h>

#include "base/str.h"
#include "oxbowctl/ctl.h"

// ---- figures.c

// Appends a size with its unit: "0 B", "1.5 KiB", "20.0 GiB".
void ctl_add_size(struct ox_str *out, double bytes);
// Appends a part of a size and the whole, in the unit of the whole: "1.5/20.0 GiB".
void ctl_add_size_of(struct ox_str *out, double bytes, double total);
// Appends a time with its unit: "0.4 s", "12 s", "3 min 20 s", "2 h 5 min", "3 d 4 h".
void ctl_add_time(struct ox_str *out, double seconds);
// Appends a point in time, ms since 1970, as "2026-01-31 12:00:00 UTC"; "-" for 0.
void ctl_add_date(struct ox_str *out, int64_t ms);
// A table for people. Zero it, set columns and right, add the heading, then the rows cell by cell.
struct ctl_table {
    size_t columns;
    unsigned right; // bit n: column n holds numbers
    char **cells;   // private
    size_t count;   // private
};
// Adds the next cell.
void ctl_table_add(struct ctl_table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Adds a cell that is taken from text, which is empty then.
void ctl_table_take(struct ctl_table *t, struct ox_str *text);
// Prints it with columns as wide as their widest cell, and frees it.
void ctl_table_print(struct ctl_table *t, FILE *to);

// A member of an answer: 0, "-", or "no" where there is none.
int64_t ctl_integer_of(const json_t *o, const char *name);
double ctl_number_of(const json_t *o, const char *name);
const char *ctl_text_of(const json_t *o, const char *name);

// ---- bookie_clusters.c

// Asks for a path below /admin/v2/bookie-clusters; as ctl_get.
int ctl_clusters_ask(struct ctl *ctl, const char *path, const char *what, json_t **ret);

// ---- clusters_show.c: the tables of answers, on standard output

void ctl_show_clusters(const json_t *list);
void ctl_show_cluster(const json_t *cluster);
void ctl_show_precheck(const json_t *precheck);
void ctl_show_plan(const json_t *plan);
void ctl_show_order(const json_t *answer);
void ctl_show_status(const json_t *status);
void ctl_show_target(const json_t *target);
void ctl_show_throttle(const json_t *throttle);
void ctl_show_inventory(const json_t *inventory);
void ctl_show_failures(const json_t *failures);
void ctl_show_verify(const json_t *verify);
void ctl_show_safe_to_release(const json_t *answer);
void ctl_show_cleanup_targets(const json_t *items);
void ctl_show_cleanup(const json_t *answer);

// ---- progress.c

// One stage as it is drawn.
struct ctl_stage {
    const char *name;    // of the stage, static
    bool known;          // the broker has said something about it
    bool over;           // nothing is left to do
    bool asked;          // it is, or will be, worked on
    bool in_bytes;       // done and total are bytes
    double done, total;  // of items, or of bytes
    double failures;     // could not be moved
    double rate;         // a second; 0: not known
    double left_seconds; // below 0: not known
};
// Appends one line without its end: with a bar of ASCII characters, never wider than width; or, width 0, as plain words.
void ctl_stage_draw(struct ox_str *out, const struct ctl_stage *stage, size_t width);
// Finds a stage in the broker's status.
struct ctl_stage ctl_stage_read(const json_t *status, const char *name);

enum ctl_verdict {
    CTL_VERDICT_GO_ON,    // not over yet
    CTL_VERDICT_OVER,     // what was asked for is done
    CTL_VERDICT_FAILED,   // it ended with failures
    CTL_VERDICT_ABORTED,  // somebody ended it
    CTL_VERDICT_REPLACED, // another switch has taken over
    CTL_VERDICT_NOTHING,  // there is no switch
};
// What a status means for somebody who waits until a stage of a switch is over; until NULL: the whole switch, switch_id NULL: whichever there is.
enum ctl_verdict ctl_progress_judge(const json_t *status, const char *until, const char *switch_id);
// Draws how a switch goes on until it is over, or Ctrl-C; prints the way on. Returns the exit status.
int ctl_progress_run(struct ctl *ctl, const char *until, const char *switch_id);

#endif
