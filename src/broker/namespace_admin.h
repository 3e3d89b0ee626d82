// namespace_admin.h - making and deleting tenants and namespaces.
#ifndef BROKER_NAMESPACE_ADMIN_H
#define BROKER_NAMESPACE_ADMIN_H

#include "broker/partitions.h"
#include "broker/topic_list.h"

#define OX_NAMESPACE_BUNDLES_MAX 4096u // that can be asked for

// Makes a namespace with policies that are given as Pulsar's JSON ("" or NULL: the defaults). Errors: INVALID (the name; policies that are no JSON object), NOT_FOUND (no such
// tenant), EXISTS, those of the metadata store.
struct ox_namespace_create {
    struct ox_op op;
    const char *why;        // result on errors: static sentence or NULL
    struct ox_shard *shard; // private
    char *ns, *policies;    // private
    struct ox_meta_get get; // private
    struct ox_meta_put put; // private
    struct ox_seq seq;      // private
};
void ox_namespace_create(struct ox_shard *sh, struct ox_namespace_create *op, const char *ns, const char *policies);

// Deletes a namespace: marked first, then its topics, then its nodes, its policies last. Repeating it completes one that was cut off.
// Errors: NAMESPACE_NOT_FOUND, CONFLICT (it has topics, or got one meanwhile, and force is false; it is as it was), those of the stores.
struct ox_namespace_delete {
    struct ox_op op;
    bool force;                             // in: topics go too, with their clients
    const char *why;                        // result on errors: static sentence or NULL
    struct ox_shard *shard;                 // private
    char *ns;                               // private
    size_t at;                              // private: what is being deleted
    enum ox_domain domain;                  // private: whose partitioned topics
    struct ox_topics_list list;             // private
    struct ox_partitions_delete partitions; // private
    struct ox_topic_delete topic;           // private
    struct ox_topic_name name;              // private
    struct ox_buf before;                   // private: its policies without the mark
    struct ox_meta_get get;                 // private
    struct ox_meta_put put;                 // private
    struct ox_meta_del del;                 // private
    struct ox_meta_children children;       // private
    struct ox_seq seq;                      // private
};
void ox_namespace_delete(struct ox_shard *sh, struct ox_namespace_delete *op, const char *ns);

// The names of a tenant's namespaces ("tenant/ns"), sorted. Errors: NOT_FOUND (no such tenant), those of the metadata store.
struct ox_tenant_namespaces {
    struct ox_op op;
    char **names;                     // result: free with ox_tenant_namespaces_fini
    size_t count;                     // result
    struct ox_shard *shard;           // private
    char *tenant;                     // private
    size_t at;                        // private
    struct ox_meta_get get;           // private
    struct ox_meta_children children; // private
    struct ox_seq seq;                // private
};
void ox_tenant_namespaces(struct ox_shard *sh, struct ox_tenant_namespaces *op, const char *tenant);
void ox_tenant_namespaces_fini(struct ox_tenant_namespaces *op);

// Deletes a tenant. Errors: NOT_FOUND, CONFLICT (it has namespaces and force is false), those of the stores.
struct ox_tenant_delete {
    struct ox_op op;
    bool force;                         // in: its namespaces go too
    const char *why;                    // result on errors: static sentence or NULL
    struct ox_shard *shard;             // private
    char *tenant;                       // private
    size_t at;                          // private
    struct ox_tenant_namespaces list;   // private
    struct ox_namespace_delete delete_; // private
    struct ox_meta_del del;             // private
    struct ox_seq seq;                  // private
};
void ox_tenant_delete(struct ox_shard *sh, struct ox_tenant_delete *op, const char *tenant);

#endif
