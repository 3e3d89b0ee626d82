// setup.h - the nodes that a cluster's first start makes, for this folder's own eyes.
#ifndef BROKER_SETUP_H
#define BROKER_SETUP_H

#include "broker/shard.h"

struct setup_node {
    char *path, *value;
};
// All nodes in order, and how far the start has come.
struct shard_setup {
    struct setup_node nodes[16];
    size_t count, at;
};
// The policies of a new namespace, and the bundles in them. The caller owns the references.
struct json_t *setup_policies(const struct ox_broker_config *c, uint32_t bundles);
struct json_t *setup_bundles(uint32_t count);
struct shard_setup *setup_new(const struct ox_broker_config *c);
void setup_free(struct shard_setup *setup);

#endif
