// lmdb.h - the store in an LMDB file on this machine: its settings, for those who need other ones than a URL gives.
#ifndef METASTORE_LMDB_H
#define METASTORE_LMDB_H

#include "metastore/metastore.h"

struct ox_meta_lmdb_config {
    const char *dir;    // made with its parents if it is not there; borrowed until the operation is done
    uint64_t map_bytes; // the file's largest size; 0: 64 GiB (sparse: costs address space only). At least 2 MiB
    bool readonly;      // for tools: no session, ephemerals stay, every write answers ACCESS
};

// Opens the store in config->dir. *ret is set before op finishes with OK. Errors: as ox_meta_open.
// A sixteenth of map_bytes, at most 4 MiB, is kept for deletes: a put that would need it answers METADATA_FULL.
void ox_meta_lmdb_open(struct ox_loop *loop, struct ox_op *op, const struct ox_meta_lmdb_config *config,
                       struct ox_meta **ret);

#endif
