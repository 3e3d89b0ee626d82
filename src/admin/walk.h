// walk.h - all topics that are loaded, by namespace and bundle, a portion a turn. For this folder only.
#ifndef ADMIN_WALK_H
#define ADMIN_WALK_H

#include "admin/request.h"
#include "broker/topic.h"

// Figures of several topics.
struct walk_sums {
    uint64_t topics, logs, producers, consumers, subscriptions; // logs: topics that are not non-persistent
    double messages_in, bytes_in, messages_out, bytes_out;      // a second
    uint64_t backlog_entries;                                   // of all subscriptions
    uint64_t storage_bytes;
};

// A bundle with topics in it.
struct walk_bundle {
    char name[32]; // "0x00000000_0x40000000"
    struct walk_sums sums;
    struct ox_str text[2];      // the visitor's, by domain
    struct ox_map_node by_name; // private
};

struct walk_namespace {
    char *name;
    struct ox_map bundles;    // of struct walk_bundle, by_name
    struct ox_map_node by_ns; // private
};

// A walk at work.
struct admin_walk {
    struct admin_request *request;
    json_t *result; // the visitor's; freed with the walk
    void (*visit)(struct admin_walk *w, struct walk_bundle *bundle, const struct ox_topic *t); // in; NULL: figures only
    void (*join)(struct admin_walk *w,
                 struct walk_namespace *ns); // in: each namespace after the last visit, one a turn or several small ones; NULL: none
    void (*done)(struct admin_walk *w); // in: answers
    struct ox_map namespaces;           // of struct walk_namespace, by_ns
    size_t loaded;                      // read-only: topics visited
    char **names;                       // private: of the topics that were loaded when it began
    size_t count, at;                   // private
    struct ox_map_node *joined;         // private: the next namespace
    struct ox_link link;                // private: in admin->walks
    bool left;                          // private: its client has ended its side while it waited
    struct ox_seq seq;                  // private
    struct admin_pause pause;           // private
};

// A new one for a request.
struct admin_walk *walk_new(struct admin_request *r, void (*done)(struct admin_walk *w));
// Runs it after those that were started before, but before all whose clients have ended their side: most of these have hung up; the request is answered and the walk freed in the end. A topic that goes meanwhile, or is not open, is left out.
void walk_start(struct admin_walk *w);
// Adds figures to others.
void walk_add(struct walk_sums *to, const struct walk_sums *from);
// Those of a whole namespace, of all.
struct walk_sums walk_namespace_sums(const struct walk_namespace *ns);
struct walk_sums walk_all_sums(const struct admin_walk *w);

#define WALK_NAMESPACE_OF(node) CONTAINER_OF(node, struct walk_namespace, by_ns)
#define WALK_BUNDLE_OF(node) CONTAINER_OF(node, struct walk_bundle, by_name)

#endif
