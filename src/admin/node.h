// node.h - a metadata node that holds a JSON object: read for an answer, or changed by compare-and-set. For this folder only.
#ifndef ADMIN_NODE_H
#define ADMIN_NODE_H

#include "admin/request.h"
#include "io/seq.h"

struct admin_node;

// One request's work on a node.
struct admin_node {
    struct admin_request *request;
    const void *arg;                       // the caller's
    json_t *value;                         // read-only for readers; the changer's to change
    int64_t version;                       // read-only: of the node; after a change, the new one
    char *path;                            // private
    const char *what;                      // private: static, "Tenant"
    void (*read)(struct admin_node *n);    // private
    bool (*change)(struct admin_node *n);  // private
    void (*changed)(struct admin_node *n); // private
    unsigned tries;                        // private
    bool no_tenant;                        // private: not even the namespace's tenant is there
    struct ox_meta_get get;                // private
    struct ox_meta_put put;                // private
    struct ox_seq seq;                     // private
};

// Reads the node and calls `read`, which answers the request or hands it on. 404 "<what> does not exist" where there is no node or it is marked as deleted; `what` is static.
void admin_node_read(struct admin_request *r, char *take_path, const char *what, const void *arg,
                     void (*read)(struct admin_node *n));
// Reads it, lets `change` change n->value, and writes it if nobody else has meanwhile, else all anew. Members that nobody here knows stay. Then `changed`
// answers (NULL: 204). `change` returns false where it has answered itself: nothing is written then.
void admin_node_change(struct admin_request *r, char *take_path, const char *what, const void *arg,
                       bool (*change)(struct admin_node *n), void (*changed)(struct admin_node *n));

// The node of a namespace. The caller's, to be given to ox_free.
char *admin_namespace_path(const char *ns);
// Changes the policies of request->ns; topics that are loaded follow before it is answered.
void admin_namespace_change(struct admin_request *r, bool (*change)(struct admin_node *n));
// The bundle of a namespace that holds a hash, from its policies: its bounds, and its name. False: the policies have no bundles that make sense.
bool admin_bundle_of(const json_t *policies, uint32_t hash, uint32_t *ret_low, uint32_t *ret_high, char name[32]) OX_CHECKED;
// A backlog quota with all the members that Pulsar keeps. Takes the reference; the caller's.
json_t *admin_quota_full(json_t *take_quota);

#endif
