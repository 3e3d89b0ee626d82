// policy_scope.h - a namespace while topics of it are loaded: its policies and its topics' own ones, followed as they change.
#ifndef BROKER_POLICY_SCOPE_H
#define BROKER_POLICY_SCOPE_H

#include <jansson.h>

#include "broker/topic.h"

#define SCOPE_STATES(X)                                                                \
    X(NEW)     /* nothing is known: the next user begins to read */                    \
    X(READING) /* the namespace's node is being read */                                \
    X(READ)    /* the namespace's policies are known: its system topics can be used */ \
    X(LOADING) /* the topics' own policies are being read */                           \
    X(READY)   /* all is known */
enum scope_state {
#define OX_X(name) SCOPE_##name,
    SCOPE_STATES(OX_X)
#undef OX_X
};

struct topic_events;

struct policy_scope {
    struct ox_shard *shard;
    char *ns;
    struct ox_map_node by_ns; // in shard->scopes
    enum scope_state state;
    unsigned refs;           // users: topics, operations under way
    json_t *policies;        // the namespace's, as read last
    int64_t version;         // of the node
    struct ox_policies base; // the broker's settings and the namespace's policies
    struct ox_map own;       // topics' own policies, by full base name: struct own_policies
    struct ox_list topics;   // of struct ox_topic, in_scope
    struct ox_list waiters;  // of struct scope_get
    struct ox_meta_watch watch;
    struct ox_meta_get get;
    struct ox_timer refresh;      // the next portion of topics whose policies are to be computed anew
    struct ox_link *refresh_next; // the first of them, NULL: none
    bool stale;                   // the broker's settings have changed: base is to be computed anew before it is used
    bool get_again;               // the node changed while it was being read
    struct topic_events *events;  // reading and writing the log of the topics' own policies; NULL until it is needed
};

// A topic's own policies, as Pulsar's TopicPolicies in JSON.
struct own_policies {
    char *topic; // full base name
    json_t *policies;
    struct ox_map_node by_topic; // in scope->own
};

// Finds the scope of a namespace with everything that is in force there; for the namespace's system topics, only the namespace's own policies (the topics' are kept in one of them).
// The scope comes with a reference, to be given back with scope_put or kept by scope_join. Errors: NAMESPACE_NOT_FOUND, CORRUPT (not JSON), those of the stores.
struct scope_get {
    struct ox_op op;
    bool system;                // in: a system topic asks
    struct policy_scope *scope; // result; while pending: whom it waits for
    struct ox_link link;        // private
};
void scope_get(struct ox_shard *sh, struct scope_get *g, const char *ns);
// Gives a reference back; the last one ends the watch and frees it.
void scope_put(struct policy_scope *scope);

// The topic takes the reference of a scope: its policies are computed, now and whenever they change.
void scope_join(struct policy_scope *scope, struct ox_topic *t);
// It goes; no effect if it is in no scope.
void scope_leave(struct ox_topic *t);

// A namespace's policies of that version were read or written: what follows from them is computed anew, unless a later version is known. The JSON's reference is borrowed.
void scope_take(struct policy_scope *scope, json_t *policies, int64_t version);
// The scope of a namespace if one is there, or NULL. No reference is taken.
struct policy_scope *scope_find(struct ox_shard *sh, const char *ns);
// What is in force in a namespace before topics' own policies. Borrowed; of this turn only.
const struct ox_policies *scope_base(struct policy_scope *scope);
// A topic's own policies: borrowed; NULL if it has none.
json_t *scope_own(const struct policy_scope *scope, const char *base_name);
// Sets (a reference is taken) or, with NULL, removes them; the topics they are for follow at once.
void scope_set_own(struct policy_scope *scope, const char *base_name, json_t *policies);
// The broker's settings have changed: what is in force is computed anew for every loaded topic, a few at a time.
void scopes_settings_changed(struct ox_shard *sh);
// Forgets all of them.
void scope_clear_own(struct policy_scope *scope);
// The topics' own policies have been read, or could not be.
void scope_loaded(struct policy_scope *scope, enum ox_err err);

#endif
