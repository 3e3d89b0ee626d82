// topic_list.h - lists of a namespace's topics: names, patterns, the hash that clients compare, and watching for changes.
#ifndef BROKER_TOPIC_LIST_H
#define BROKER_TOPIC_LIST_H

#include "base/str.h"
#include "broker/namespaces.h"
#include "broker/topic_pattern.h"

enum ox_topics_mode { OX_TOPICS_PERSISTENT, OX_TOPICS_NON_PERSISTENT, OX_TOPICS_ALL };

// Lists the topics of a namespace by their full names, sorted; partitions appear one by one. Persistent ones are those in the metadata store, non-persistent ones those
// that are loaded. Errors: NAMESPACE_NOT_FOUND, those of the metadata store.
struct ox_topics_list {
    struct ox_op op;
    enum ox_topics_mode mode;         // in
    bool with_system;                 // in: topics that only brokers use too
    bool marked;                      // in: also of a namespace that is marked as deleted
    bool partitioned;                 // in: the partitioned topics instead, by their base names, loaded or not
    struct ox_topic_pattern *pattern; // in: only names that it matches; borrowed; NULL: all
    char **names;                     // result: free with ox_topics_list_fini
    size_t count;                     // result
    bool filtered;                    // result: false: these are all, the pattern takes too much work
    struct ox_shard *shard;           // private
    char *ns;                         // private
    struct ox_namespace_get get;      // private
    struct ox_meta_children children; // private
    size_t at;                        // private: in them
    struct ox_str full;               // private: the name at work
    struct ox_timer pause;            // private: between portions of a long list
    size_t cap;                       // private
    enum ox_domain domain;            // private: being listed
    struct ox_seq seq;                // private
};
void ox_topics_list(struct ox_shard *sh, struct ox_topics_list *op, const char *ns);
void ox_topics_list_fini(struct ox_topics_list *op);

// The hash of a sorted list as clients know it: CRC-32C of the names joined by commas, its bytes in hexadecimal, the lowest first; "00000000" for no names.
void ox_topics_hash(char *const *names, size_t count, char out[9]);

struct topic_board;

// Watches the persistent topics of a namespace whose names match a pattern. Zero it, set the public members. A namespace that does not exist has no topics.
struct ox_topics_watch {
    struct ox_op op; // of ox_topics_watch: finishes when `names` is known. Errors: those of the metadata store (the watch is closed then)
    // public: names have come and gone (sorted; borrowed for the call); w->names is the new list. Not before op has finished.
    void (*changed)(struct ox_topics_watch *w, char *const *added, size_t added_count, char *const *removed,
                    size_t removed_count);
    struct ox_topic_pattern *pattern; // public: owned by the caller, lives until closed
    void *owner;                      // public
    char **names;                     // read-only: matching ones, sorted; the strings are shared
    size_t count;                     // read-only
    struct topic_board *board;        // private
    struct ox_link link;              // private
    bool ready;                       // private: op has been finished
};
void ox_topics_watch(struct ox_shard *sh, struct ox_topics_watch *w, const char *ns);
// Ends a watch (its op has finished); nothing is called any more.
void ox_topics_unwatch(struct ox_topics_watch *w);

#endif
