// dynamic.h - settings that were set over REST: the metadata node /admin/configuration, followed and changed by compare-and-set.
#ifndef OXBOWD_DYNAMIC_H
#define OXBOWD_DYNAMIC_H

#include "admin/admin.h"
#include "metastore/metastore.h"
#include "oxbowd/live.h"

// Pulsar's node: a JSON object of texts, key to value. Names that Oxbow does not have stay in it.
#define DYNAMIC_PATH "/admin/configuration"

// Zero it, set the public members, then dynamic_open.
struct dynamic {
    struct ox_loop *loop; // public
    struct ox_log *log;   // public
    struct ox_meta *meta; // public
    struct live *live;    // public

    // private
    struct ox_meta_watch watch;
    struct ox_meta_get get;
    struct ox_op *first; // of dynamic_open, until the first read has ended
    int64_t version;     // of the node as taken last; -1: none
    bool again;          // it changed while it was being read
    bool open;
};

// Reads the node, then follows it. op is always OK: what cannot be read or understood is logged, and the settings stay as given.
void dynamic_open(struct dynamic *d, struct ox_op *op);
// Ends that; calls of the port must have ended.
void dynamic_close(struct dynamic *d);
// What REST is given.
struct ox_admin_settings dynamic_port(struct dynamic *d);

#endif
