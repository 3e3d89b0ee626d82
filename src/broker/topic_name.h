// topic_name.h - names of topics: parsing, canonical form, partitions, storage name and place in the hash ring.
#ifndef BROKER_TOPIC_NAME_H
#define BROKER_TOPIC_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define OX_TOPIC_NAME_BYTES_MAX 2048u // a whole name, as given

enum ox_domain { OX_DOMAIN_PERSISTENT, OX_DOMAIN_NON_PERSISTENT };

// A parsed name. All strings are owned by the struct; free with ox_topic_name_fini.
struct ox_topic_name {
    enum ox_domain domain;
    char *full;        // canonical: "persistent://public/default/t"
    char *tenant;      // "public"
    char *cluster;     // of a v1 name (tenant/cluster/namespace/local), else NULL
    char *ns;          // whole namespace: "public/default", of a v1 name "tenant/cluster/ns"
    char *local;       // "t", with the partition's suffix
    int32_t partition; // N of "-partition-N", or -1
};

// Parses a name in any form that clients use: "t" (public/default), "tenant/ns/t", "domain://tenant/ns/t", "domain://tenant/cluster/ns/t" (v1).
// The result is the caller's. Errors: INVALID_TOPIC_NAME (empty parts, unknown domain, bad characters, too long).
enum ox_err ox_topic_name_parse(struct ox_topic_name *ret, const char *text) OX_CHECKED;
// Frees the strings; zeroed memory is allowed.
void ox_topic_name_fini(struct ox_topic_name *name);
// `to` becomes a copy of `from`.
void ox_topic_name_copy(struct ox_topic_name *to, const struct ox_topic_name *from);
// The full name without its partition suffix. To be given to ox_free.
char *ox_topic_name_base(const struct ox_topic_name *name);
// The managed ledger's name: "public/default/persistent/<encoded local>". To be given to ox_free.
char *ox_topic_name_storage(const struct ox_topic_name *name);
// The metadata path of the base name's partition count: "/admin/partitioned-topics/<ns>/<domain>/<encoded base local>". To be given to ox_free.
char *ox_topic_name_partitions_path(const struct ox_topic_name *name);
// The place of the name in the hash ring: CRC-32 of the full name.
uint32_t ox_topic_name_hash(const struct ox_topic_name *name);
// Writes the name ("0x40000000_0x80000000") of the bundle that holds `hash` when the ring is cut into `count` equal bundles. `out` has room for 32 bytes.
void ox_bundle_name(uint32_t hash, uint32_t count, char *out);
// True if `text` is a namespace that may exist: "tenant/ns" or "tenant/cluster/ns" of allowed characters.
bool ox_namespace_valid(const char *text);
// True for names that only brokers use (local part begins with "__" or ends in a transaction log's suffix): hidden from lists of topics.
bool ox_topic_name_is_system(const struct ox_topic_name *name);

#endif
