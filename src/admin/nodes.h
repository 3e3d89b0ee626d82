// nodes.h - all JSON nodes below one: read one after the other, however many they are. For this folder only.
#ifndef ADMIN_NODES_H
#define ADMIN_NODES_H

#include "admin/request.h"
#include "io/seq.h"

// One request's walk. `result` begins as {}, is the caller's to fill or replace, and may be taken from done by json_incref.
struct admin_nodes {
    struct admin_request *request;
    const void *arg; // the caller's
    json_t *result;  // the caller's
    char **names;    // read-only in done: paths of what was found below the root
    size_t count;    // read-only in done
    bool (*see)(struct admin_nodes *n, const char *name, const json_t *value); // private
    void (*done)(struct admin_nodes *n);                                       // private
    char *root;                                                                // private
    unsigned depth;                                                            // private: levels still to go down
    bool ended;                                                                // private: it has been answered
    size_t at;                                                                 // private
    char **next;                                                               // private: names of the next level
    size_t next_count;                                                         // private
    struct ox_meta_children children;                                          // private
    struct ox_meta_get get;                                                    // private
    struct ox_seq seq;                                                         // private
};

// Finds the nodes `depth` levels below a root (which need not be there), lets `see` look at each that holds JSON (NULL: none is read), then calls `done`, which answers or hands the
// request on. `see` returns false where it has answered: that is the end. Errors of the store are answered here. A name is relative to the root ("tenant/ns").
void admin_nodes_read(struct admin_request *r, char *take_root, unsigned depth, const void *arg,
                      bool (*see)(struct admin_nodes *n, const char *name, const json_t *value),
                      void (*done)(struct admin_nodes *n));
// Answers with the names below a root; [] where there is none.
void admin_nodes_list(struct admin_request *r, char *take_root);

#endif
