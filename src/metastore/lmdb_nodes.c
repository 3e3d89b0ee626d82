// lmdb_nodes.c - nodes as records in an LMDB file.
#include "metastore/lmdb_nodes.h"

#include <openssl/sha.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/limits.h"
#include "base/mem.h"

#define META_FORMAT 1
#define META_RECORD_FORMAT 1
#define META_LONG_NAME 0xff

enum ox_err ox_meta_lmdb_err(int rc)
{
    switch (rc) {
    case MDB_SUCCESS: return OX_OK;
    case MDB_NOTFOUND: return OX_E_NOT_FOUND;
    case MDB_MAP_FULL:
    case MDB_TXN_FULL: return OX_E_METADATA_FULL;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
    case MDB_VERSION_MISMATCH: return OX_E_CORRUPT;
    default: return rc > 0 ? ox_err_from_errno(rc) : OX_E_IO;
    }
}

static struct ox_meta_lmdb_nodes *lmdb_of(struct ox_meta_nodes *n)
{
    return CONTAINER_OF(n, struct ox_meta_lmdb_nodes, nodes);
}

// Remembers what makes the transaction useless.
static enum ox_err lmdb_result(struct ox_meta_lmdb_nodes *l, int rc)
{
    if (rc != MDB_SUCCESS && rc != MDB_NOTFOUND)
        l->broken = rc;
    return ox_meta_lmdb_err(rc);
}

size_t ox_meta_record_key(uint8_t *key, uint64_t parent, const char *name, size_t len)
{
    ox_put_be64(key, parent);
    if (len <= OX_META_KEY_NAME_MAX) {
        memcpy(key + 8, name, len);
        return 8 + len;
    }
    key[8] = META_LONG_NAME;
    SHA256((const uint8_t *)name, len, key + 9);
    return 9 + SHA256_DIGEST_LENGTH;
}

static uint32_t record_checksum(MDB_val key, MDB_val record)
{
    uint32_t crc = ox_crc32c(0, key.mv_data, key.mv_size);
    return ox_crc32c(crc, (const uint8_t *)record.mv_data + 4, record.mv_size - 4);
}

void ox_meta_record_seal(MDB_val key, MDB_val record)
{
    ox_put_be32(record.mv_data, record_checksum(key, record));
}

enum ox_err ox_meta_record_decode(MDB_val key, MDB_val record, struct ox_meta_node *ret, const char **ret_name,
                                  size_t *ret_name_len)
{
    const uint8_t *p = record.mv_data;
    if (record.mv_size < OX_META_RECORD_HEADER || ox_get_be32(p) != record_checksum(key, record) || p[4] != META_RECORD_FORMAT)
        return OX_E_CORRUPT;
    size_t name_len = ox_get_be16(p + 6);
    if (name_len > record.mv_size - OX_META_RECORD_HEADER)
        return OX_E_CORRUPT;
    *ret = (struct ox_meta_node){.id = ox_get_be64(p + 8)};
    ret->stat.version = (int64_t)ox_get_be64(p + 16);
    ret->stat.created_ms = ox_get_be64(p + 24);
    ret->stat.modified_ms = ox_get_be64(p + 32);
    ret->stat.ephemeral_session = ox_get_be64(p + 40);
    *ret_name = name_len ? (const char *)p + OX_META_RECORD_HEADER : NULL;
    *ret_name_len = name_len;
    ret->value = ox_buf_static(p + OX_META_RECORD_HEADER + name_len, record.mv_size - OX_META_RECORD_HEADER - name_len);
    return ret->id && ret->stat.version >= 0 ? OX_OK : OX_E_CORRUPT;
}

static void record_encode(MDB_val key, MDB_val record, const struct ox_meta_node *node, const char *name, size_t name_len)
{
    uint8_t *p = record.mv_data;
    p[4] = META_RECORD_FORMAT;
    p[5] = 0;
    ox_put_be16(p + 6, (uint16_t)name_len);
    ox_put_be64(p + 8, node->id);
    ox_put_be64(p + 16, (uint64_t)node->stat.version);
    ox_put_be64(p + 24, node->stat.created_ms);
    ox_put_be64(p + 32, node->stat.modified_ms);
    ox_put_be64(p + 40, node->stat.ephemeral_session);
    memcpy(p + OX_META_RECORD_HEADER, name, name_len);
    if (node->value.len)
        memcpy(p + OX_META_RECORD_HEADER + name_len, node->value.data, node->value.len);
    ox_meta_record_seal(key, record);
}

static enum ox_err lmdb_find(struct ox_meta_nodes *n, uint64_t parent, const char *name, size_t len, struct ox_meta_node *ret)
{
    struct ox_meta_lmdb_nodes *l = lmdb_of(n);
    uint8_t bytes[OX_META_KEY_BYTES_MAX];
    MDB_val key = {ox_meta_record_key(bytes, parent, name, len), bytes}, record;
    enum ox_err err = lmdb_result(l, mdb_get(l->txn, l->table_nodes, &key, &record));
    if (err != OX_OK)
        return err;
    const char *full;
    size_t full_len;
    err = ox_meta_record_decode(key, record, ret, &full, &full_len);
    if (err == OX_OK && full && (full_len != len || memcmp(full, name, len) != 0))
        return OX_E_CORRUPT; // two names with one SHA-256
    return err;
}

static int lmdb_put_number(struct ox_meta_lmdb_nodes *l, MDB_dbi table, MDB_val key, uint64_t number)
{
    uint8_t bytes[8];
    ox_put_be64(bytes, number);
    MDB_val value = {sizeof bytes, bytes};
    return mdb_put(l->txn, table, &key, &value, 0);
}

// 0 where there is none.
static enum ox_err lmdb_get_number(struct ox_meta_lmdb_nodes *l, MDB_dbi table, MDB_val key, uint64_t *ret)
{
    MDB_val value;
    enum ox_err err = lmdb_result(l, mdb_get(l->txn, table, &key, &value));
    if (err == OX_E_NOT_FOUND) {
        *ret = 0;
        return OX_OK;
    }
    if (err == OX_OK && value.mv_size != 8)
        return OX_E_CORRUPT;
    if (err == OX_OK)
        *ret = ox_get_be64(value.mv_data);
    return err;
}

static enum ox_err lmdb_store(struct ox_meta_nodes *n, uint64_t parent, const char *name, size_t len,
                              const struct ox_meta_node *node)
{
    struct ox_meta_lmdb_nodes *l = lmdb_of(n);
    uint8_t bytes[OX_META_KEY_BYTES_MAX];
    MDB_val key = {ox_meta_record_key(bytes, parent, name, len), bytes};
    size_t name_len = len > OX_META_KEY_NAME_MAX ? len : 0;
    MDB_val record = {OX_META_RECORD_HEADER + name_len + node->value.len, NULL};
    enum ox_err err = lmdb_result(l, mdb_put(l->txn, l->table_nodes, &key, &record, MDB_RESERVE));
    if (err != OX_OK)
        return err;
    record_encode(key, record, node, name, name_len);
    if (!node->stat.ephemeral_session)
        return OX_OK;
    return lmdb_result(l, lmdb_put_number(l, l->table_ephemerals, key, node->stat.ephemeral_session));
}

static int lmdb_delete(struct ox_meta_lmdb_nodes *l, MDB_dbi table, MDB_val key)
{
    int rc = mdb_del(l->txn, table, &key, NULL);
    return rc == MDB_NOTFOUND ? MDB_SUCCESS : rc;
}

static enum ox_err lmdb_remove(struct ox_meta_nodes *n, uint64_t parent, const char *name, size_t len, uint64_t id)
{
    struct ox_meta_lmdb_nodes *l = lmdb_of(n);
    uint8_t bytes[OX_META_KEY_BYTES_MAX], id_bytes[8];
    MDB_val key = {ox_meta_record_key(bytes, parent, name, len), bytes};
    ox_put_be64(id_bytes, id);
    int rc = lmdb_delete(l, l->table_nodes, key);
    if (rc == MDB_SUCCESS)
        rc = lmdb_delete(l, l->table_ephemerals, key);
    if (rc == MDB_SUCCESS)
        rc = lmdb_delete(l, l->table_counters, (MDB_val){sizeof id_bytes, id_bytes});
    return lmdb_result(l, rc);
}

static MDB_val lmdb_info_key(const char *name)
{
    union {
        const char *in;
        void *out;
    } p = {name};
    return (MDB_val){strlen(name), p.out};
}

// Raises a number in the info table by one.
static enum ox_err lmdb_raise(struct ox_meta_lmdb_nodes *l, const char *name, uint64_t *ret)
{
    uint64_t number = 0;
    enum ox_err err = lmdb_get_number(l, l->table_info, lmdb_info_key(name), &number);
    if (err != OX_OK)
        return err;
    *ret = number + 1;
    return lmdb_result(l, lmdb_put_number(l, l->table_info, lmdb_info_key(name), number + 1));
}

static enum ox_err lmdb_new_id(struct ox_meta_nodes *n, uint64_t *ret)
{
    return lmdb_raise(lmdb_of(n), "id", ret);
}

static enum ox_err lmdb_next_sequence(struct ox_meta_nodes *n, uint64_t parent, uint64_t *ret)
{
    struct ox_meta_lmdb_nodes *l = lmdb_of(n);
    uint8_t bytes[8];
    ox_put_be64(bytes, parent);
    MDB_val key = {sizeof bytes, bytes};
    enum ox_err err = lmdb_get_number(l, l->table_counters, key, ret);
    return err == OX_OK ? lmdb_result(l, lmdb_put_number(l, l->table_counters, key, *ret + 1)) : err;
}

// Adds the name of the child under a cursor.
static enum ox_err lmdb_add_child(struct ox_meta_request *r, MDB_val key, MDB_val record)
{
    const char *name = (const char *)key.mv_data + 8;
    size_t len = key.mv_size - 8;
    if ((uint8_t)name[0] == META_LONG_NAME) {
        struct ox_meta_node node;
        enum ox_err err = ox_meta_record_decode(key, record, &node, &name, &len);
        if (err != OX_OK || !name)
            return OX_E_CORRUPT;
    }
    ox_meta_request_add_name(r, name, len);
    return OX_OK;
}

static enum ox_err lmdb_walk_children(struct ox_meta_lmdb_nodes *l, MDB_cursor *cursor, const uint8_t *id,
                                      struct ox_meta_request *r)
{
    uint8_t start[9];
    memcpy(start, id, 8);
    start[8] = 0;
    MDB_val key = {sizeof start, start}, record;
    int rc = mdb_cursor_get(cursor, &key, &record, MDB_SET_RANGE);
    while (rc == MDB_SUCCESS && key.mv_size > 8 && memcmp(key.mv_data, id, 8) == 0) {
        enum ox_err err = r ? lmdb_add_child(r, key, record) : OX_OK;
        if (err != OX_OK || !r)
            return err;
        rc = mdb_cursor_get(cursor, &key, &record, MDB_NEXT);
    }
    if (rc != MDB_SUCCESS && rc != MDB_NOTFOUND)
        return lmdb_result(l, rc);
    return r ? OX_OK : OX_E_NOT_FOUND;
}

static enum ox_err lmdb_children(struct ox_meta_nodes *n, uint64_t id, struct ox_meta_request *r)
{
    struct ox_meta_lmdb_nodes *l = lmdb_of(n);
    MDB_cursor *cursor;
    enum ox_err err = lmdb_result(l, mdb_cursor_open(l->txn, l->table_nodes, &cursor));
    if (err != OX_OK)
        return err;
    uint8_t bytes[8];
    ox_put_be64(bytes, id);
    err = lmdb_walk_children(l, cursor, bytes, r);
    mdb_cursor_close(cursor);
    return err;
}

static const struct ox_meta_nodes_body lmdb_nodes = {
    .find = lmdb_find,
    .store = lmdb_store,
    .remove = lmdb_remove,
    .new_id = lmdb_new_id,
    .next_sequence = lmdb_next_sequence,
    .children = lmdb_children,
};

void ox_meta_lmdb_nodes_init(struct ox_meta_lmdb_nodes *l)
{
    l->nodes.body = &lmdb_nodes;
}

static enum ox_err lmdb_open_tables(struct ox_meta_lmdb_nodes *l, unsigned flags)
{
    int rc = mdb_dbi_open(l->txn, "nodes", flags, &l->table_nodes);
    if (rc == MDB_SUCCESS)
        rc = mdb_dbi_open(l->txn, "counters", flags, &l->table_counters);
    if (rc == MDB_SUCCESS)
        rc = mdb_dbi_open(l->txn, "ephemerals", flags, &l->table_ephemerals);
    if (rc == MDB_SUCCESS)
        rc = mdb_dbi_open(l->txn, "info", flags, &l->table_info);
    return lmdb_result(l, rc);
}

static enum ox_err lmdb_make_root(struct ox_meta_lmdb_nodes *l)
{
    uint64_t id;
    enum ox_err err = lmdb_raise(l, "id", &id);
    if (err != OX_OK)
        return err;
    OX_ASSERT(id == OX_META_ROOT);
    struct ox_meta_node root = {.id = id};
    err = lmdb_store(&l->nodes, 0, "", 0, &root);
    if (err != OX_OK)
        return err;
    return lmdb_result(l, lmdb_put_number(l, l->table_info, lmdb_info_key("format"), META_FORMAT));
}

enum ox_err ox_meta_lmdb_prepare(struct ox_meta_lmdb_nodes *l, bool readonly)
{
    enum ox_err err = lmdb_open_tables(l, readonly ? 0 : MDB_CREATE);
    uint64_t format = 0;
    if (err == OX_OK)
        err = lmdb_get_number(l, l->table_info, lmdb_info_key("format"), &format);
    if (err != OX_OK)
        return err;
    if (format == 0)
        return readonly ? OX_E_NOT_FOUND : lmdb_make_root(l);
    return format == META_FORMAT ? OX_OK : OX_E_UNSUPPORTED;
}

enum ox_err ox_meta_lmdb_new_session(struct ox_meta_lmdb_nodes *l, uint64_t *ret)
{
    return lmdb_raise(l, "session", ret);
}

enum ox_err ox_meta_lmdb_remove_ephemerals(struct ox_meta_lmdb_nodes *l)
{
    MDB_cursor *cursor;
    enum ox_err err = lmdb_result(l, mdb_cursor_open(l->txn, l->table_ephemerals, &cursor));
    if (err != OX_OK)
        return err;
    MDB_val key, value;
    int rc;
    while ((rc = mdb_cursor_get(cursor, &key, &value, MDB_FIRST)) == MDB_SUCCESS) {
        rc = lmdb_delete(l, l->table_nodes, key);
        if (rc == MDB_SUCCESS)
            rc = mdb_cursor_del(cursor, 0);
        if (rc != MDB_SUCCESS)
            break;
    }
    mdb_cursor_close(cursor);
    return rc == MDB_NOTFOUND ? OX_OK : lmdb_result(l, rc);
}
