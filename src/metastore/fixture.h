// fixture.h - for tests of stores: a loop with a clock set by hand, and calls that run it until they are answered.
#ifndef METASTORE_FIXTURE_H
#define METASTORE_FIXTURE_H

#include "metastore/metastore.h"

struct fixture {
    struct ox_loop loop; // jobs run inside submit
    uint64_t now_ns;
    uint64_t jobs; // how many were submitted
};

void fixture_init(struct fixture *f);
void fixture_fini(struct fixture *f);
// Runs the loop, moving the clock from timer to timer, until nothing is left to do.
void fixture_run(struct fixture *f);

// Calls and waits. The value is text; ret_path (may be NULL) is the caller's.
enum ox_err fixture_open(struct fixture *f, const char *url, struct ox_meta **ret);
enum ox_err fixture_close(struct fixture *f, struct ox_meta *meta);
enum ox_err fixture_put(struct fixture *f, struct ox_meta *meta, const char *path, const char *value, int64_t expected,
                        int flags);
enum ox_err fixture_put_path(struct fixture *f, struct ox_meta *meta, const char *path, int flags, char **ret_path);
enum ox_err fixture_del(struct fixture *f, struct ox_meta *meta, const char *path, int64_t expected);
// stat may be NULL.
enum ox_err fixture_get(struct fixture *f, struct ox_meta *meta, const char *path, char **ret_value,
                        struct ox_meta_stat *ret_stat);
// Names joined by commas.
enum ox_err fixture_children(struct fixture *f, struct ox_meta *meta, const char *path, char **ret_names);
enum ox_err fixture_multi(struct fixture *f, struct ox_meta *meta, struct ox_meta_step *steps, size_t count,
                          size_t *ret_failed);

// Asserts that a node has a value and version; that it is not there; that its children are these.
void expect_node(struct fixture *f, struct ox_meta *meta, const char *path, const char *value, int64_t version);
void expect_none(struct fixture *f, struct ox_meta *meta, const char *path);
void expect_children(struct fixture *f, struct ox_meta *meta, const char *path, const char *names);

#endif
