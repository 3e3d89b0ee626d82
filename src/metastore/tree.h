// tree.h - the folder's own eyes: the rules of the tree (versions, parents, kinds, events), over whatever keeps its nodes.
#ifndef METASTORE_TREE_H
#define METASTORE_TREE_H

#include "metastore/request.h"

struct ox_meta_nodes;

#define OX_META_ROOT UINT64_C(1) // the root's id; its parent's is 0

// A node as a nodes body keeps it: found under its parent's id and its name.
struct ox_meta_node {
    uint64_t id; // never reused
    struct ox_meta_stat stat;
    struct ox_buf value; // of a found node: borrowed until the next change
};

// What keeps nodes. Within one call of ox_meta_apply all changes take effect or the caller undoes them. Errors of every function: CORRUPT, IO,
// METADATA_FULL, ...; find and remove also NOT_FOUND.
struct ox_meta_nodes_body {
    enum ox_err (*find)(struct ox_meta_nodes *n, uint64_t parent, const char *name, size_t len, struct ox_meta_node *ret);
    enum ox_err (*store)(struct ox_meta_nodes *n, uint64_t parent, const char *name, size_t len,
                         const struct ox_meta_node *node);
    enum ox_err (*remove)(struct ox_meta_nodes *n, uint64_t parent, const char *name, size_t len, uint64_t id);
    enum ox_err (*new_id)(struct ox_meta_nodes *n, uint64_t *ret);
    enum ox_err (*next_sequence)(struct ox_meta_nodes *n, uint64_t parent, uint64_t *ret);
    // Adds the names of a node's children to r, unsorted; r NULL: answers OK if there is one, else NOT_FOUND.
    enum ox_err (*children)(struct ox_meta_nodes *n, uint64_t id, struct ox_meta_request *r);
};

struct ox_meta_nodes {
    const struct ox_meta_nodes_body *body;
    uint64_t session_id; // whose ephemerals are made
    uint64_t now_ms;     // wall time of what is applied now
};

// Runs a get, children or write request; fills results and notes. r->err and the returned value are the outcome. After an error of a write with several
// edits the nodes may hold part of it, which the caller takes back; one edit changes nothing unless the body itself failed.
enum ox_err ox_meta_apply(struct ox_meta_nodes *n, struct ox_meta_request *r);

#endif
