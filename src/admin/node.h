// node.h - a metadata node that holds a JSON object: read for an answer, or changed by compare-and-set. For this folder only.
#ifndef ADMIN_NODE_H
#define ADMIN_NODE_H

#include "admin/request.h"
#include "io/seq.h"

struct admin_node;

// One request's work on a node.
struct admin_node {
    struct admin_request *request;
    const void *arg;  // the caller's
    json_t *value;    // read-only for readers; the changer's to change
    int64_t version;  // read-only: of the node (OX_META_ABSENT: there is none); after a change, the new one
    char *path;       // private
    const char *what; // private: static, "Tenant"
    json_t *initial;  // private: what a node that is not there is taken for; NULL: it must be there
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

// The same for nodes that need not be there: such a one is taken for `take_initial`, and a change makes it.
void admin_node_read_or(struct admin_request *r, char *take_path, json_t *take_initial, const void *arg,
                        void (*read)(struct admin_node *n));
void admin_node_change_or(struct admin_request *r, char *take_path, json_t *take_initial, const void *arg,
                          bool (*change)(struct admin_node *n), void (*changed)(struct admin_node *n));
// Removes a node and answers `status`, or 404 with `take_missing`.
void admin_node_delete(struct admin_request *r, const char *path, unsigned status, char *take_missing);
// Goes on if the cluster that a segment of the path names is there, else answers `status`.
void admin_cluster_check(struct admin_request *r, size_t segment, unsigned status, void (*go)(struct admin_request *r));
// True if a segment of the path can be the name of a node. False: answered with 412.
bool admin_node_name(struct admin_request *r, size_t segment, const char *what) OX_CHECKED;

// The node of a namespace. The caller's, to be given to ox_free.
char *admin_namespace_path(const char *ns);
// The node of a namespace's local policies, and what it is taken for where it is not there: the bundles are the policies'. Both the caller's.
char *admin_local_path(const char *ns);
json_t *admin_local_initial(const json_t *policies);
// Changes the policies of request->ns; topics that are loaded follow before it is answered.
void admin_namespace_change(struct admin_request *r, bool (*change)(struct admin_node *n));
// Whether a bundle with these bounds holds a hash: all below the upper one, the last bundle that one too.
bool admin_bundle_holds(uint32_t low, uint32_t high, uint32_t hash) OX_CHECKED;
// The bundle of a namespace that holds a hash, from its policies: its bounds, and its name. False: the policies have no bundles that make sense.
bool admin_bundle_of(const json_t *policies, uint32_t hash, uint32_t *ret_low, uint32_t *ret_high, char name[32]) OX_CHECKED;
// The bundle of that name among those of a namespace. False: there is none, and that is answered with 412.
bool admin_bundle_named(struct admin_request *r, const json_t *policies, const char *name, uint32_t *ret_low,
                        uint32_t *ret_high) OX_CHECKED;
// Unloads the topics of request->ns whose hashes lie in that range (bounds as of a bundle), then answers 204.
void admin_unload_range(struct admin_request *r, uint32_t low, uint32_t high);
// Checks the policies that a namespace is to be made with, and puts each into the form that is kept. False: answered.
bool admin_policies_fit(struct admin_request *r, json_t *policies) OX_CHECKED;
// Answers with the offload policies in a namespace's node; with nothing where it has none.
void admin_offload_answer(struct admin_node *n);
// A backlog quota with all the members that Pulsar keeps. Takes the reference; the caller's.
json_t *admin_quota_full(json_t *take_quota);

#endif
