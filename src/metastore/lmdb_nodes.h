// lmdb_nodes.h - the folder's own eyes: how nodes lie in an LMDB file.
#ifndef METASTORE_LMDB_NODES_H
#define METASTORE_LMDB_NODES_H

#include <lmdb.h>

#include "metastore/tree.h"

// Four tables. Numbers are big endian.
//
//   nodes       parent id (8), name                 -> record          names up to 480 bytes
//               parent id (8), 0xff, SHA-256 (32)   -> record          longer names (0xff is in no UTF-8 text)
//               0 (8)                               -> record          the root
//   counters    id (8)                              -> number (8)      next sequential child; there from the first one on
//   ephemerals  key in nodes                        -> session (8)     what to remove with the session
//   info        "format", "id", "session"           -> number (8)      format version; last node id; last session id
//
// Record:
//   0  4  CRC32C over the key and bytes 4..end
//   4  1  record format, 1
//   5  1  0
//   6  2  bytes of the name that follow; 0: the name is in the key
//   8  8  node id
//  16  8  version of the value
//  24  8  created, ms since 1970
//  32  8  modified, ms since 1970
//  40  8  session of an ephemeral; 0: persistent
//  48     name, value
//
// The next version of the file: raise META_FORMAT in lmdb_nodes.c and convert in ox_meta_lmdb_prepare, in one transaction.
#define OX_META_RECORD_HEADER 48
#define OX_META_KEY_NAME_MAX 480
#define OX_META_KEY_BYTES_MAX (8 + OX_META_KEY_NAME_MAX)

struct ox_meta_lmdb_nodes {
    struct ox_meta_nodes nodes; // first: is cast from the interface
    MDB_dbi table_nodes, table_counters, table_ephemerals, table_info;
    MDB_txn *txn; // the transaction that calls work in
    int broken;   // LMDB's error that makes the transaction useless; 0: none
};

// The error that a result of LMDB stands for.
enum ox_err ox_meta_lmdb_err(int rc);
// Writes the key of a node (OX_META_KEY_BYTES_MAX bytes) and returns its length.
size_t ox_meta_record_key(uint8_t *key, uint64_t parent, const char *name, size_t len);
// Reads a record; value and name (NULL if it is in the key) are borrowed from it. Errors: CORRUPT.
enum ox_err ox_meta_record_decode(MDB_val key, MDB_val record, struct ox_meta_node *ret, const char **ret_name,
                                  size_t *ret_name_len) OX_CHECKED;
// Sets the checksum of an otherwise complete record.
void ox_meta_record_seal(MDB_val key, MDB_val record);
// Prepares the interface.
void ox_meta_lmdb_nodes_init(struct ox_meta_lmdb_nodes *l);
// In l->txn: opens the tables, makes them and the root where the file is new. Errors: UNSUPPORTED (a newer format), CORRUPT, ...
enum ox_err ox_meta_lmdb_prepare(struct ox_meta_lmdb_nodes *l, bool readonly) OX_CHECKED;
// In l->txn: takes a new session id.
enum ox_err ox_meta_lmdb_new_session(struct ox_meta_lmdb_nodes *l, uint64_t *ret) OX_CHECKED;
// In l->txn: removes all ephemeral nodes.
enum ox_err ox_meta_lmdb_remove_ephemerals(struct ox_meta_lmdb_nodes *l) OX_CHECKED;

#endif
