// table_lmdb.c - the ledger table's key-value store in an LMDB file.
#include <lmdb.h>
#include <string.h>

#include "base/mem.h"
#include "ledger/store/table.h"

#define LMDB_MAP_BYTES (UINT64_C(16) << 30) // sparse: the file grows as needed

struct lmdb_kv {
    struct ox_table_kv kv;
    MDB_env *env;
    MDB_dbi dbi;
    MDB_txn *txn;
};

static struct lmdb_kv *lmdb_of(struct ox_table_kv *kv)
{
    return CONTAINER_OF(kv, struct lmdb_kv, kv);
}

static enum ox_err lmdb_err(int rc)
{
    switch (rc) {
    case 0: return OX_OK;
    case MDB_NOTFOUND: return OX_E_NOT_FOUND;
    case MDB_MAP_FULL:
    case MDB_TXN_FULL: return OX_E_METADATA_FULL;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
    case MDB_PANIC: return OX_E_CORRUPT;
    case MDB_VERSION_MISMATCH: return OX_E_UNSUPPORTED;
    default: return rc > 0 ? ox_err_from_errno(rc) : OX_E_IO;
    }
}

static MDB_val lmdb_val(struct ox_buf b)
{
    return (MDB_val){.mv_size = b.len, .mv_data = (void *)(uintptr_t)b.data};
}

static enum ox_err lmdb_begin(struct ox_table_kv *kv, bool write)
{
    return lmdb_err(mdb_txn_begin(lmdb_of(kv)->env, NULL, write ? 0 : MDB_RDONLY, &lmdb_of(kv)->txn));
}

static enum ox_err lmdb_get(struct ox_table_kv *kv, struct ox_buf key, struct ox_buf *ret_value)
{
    MDB_val k = lmdb_val(key), v;
    int rc = mdb_get(lmdb_of(kv)->txn, lmdb_of(kv)->dbi, &k, &v);
    if (rc == 0)
        *ret_value = ox_buf_static(v.mv_data, v.mv_size);
    return lmdb_err(rc);
}

static enum ox_err lmdb_seek(struct ox_table_kv *kv, struct ox_buf key, struct ox_buf *ret_key, struct ox_buf *ret_value)
{
    MDB_cursor *cursor;
    MDB_val k = lmdb_val(key), v;
    int rc = mdb_cursor_open(lmdb_of(kv)->txn, lmdb_of(kv)->dbi, &cursor);
    if (rc != 0)
        return lmdb_err(rc);
    rc = mdb_cursor_get(cursor, &k, &v, MDB_SET_RANGE);
    mdb_cursor_close(cursor);
    if (rc == 0) {
        *ret_key = ox_buf_static(k.mv_data, k.mv_size);
        *ret_value = ox_buf_static(v.mv_data, v.mv_size);
    }
    return lmdb_err(rc);
}

static enum ox_err lmdb_put(struct ox_table_kv *kv, struct ox_buf key, struct ox_buf value)
{
    MDB_val k = lmdb_val(key), v = lmdb_val(value);
    return lmdb_err(mdb_put(lmdb_of(kv)->txn, lmdb_of(kv)->dbi, &k, &v, 0));
}

static enum ox_err lmdb_del(struct ox_table_kv *kv, struct ox_buf key)
{
    MDB_val k = lmdb_val(key);
    int rc = mdb_del(lmdb_of(kv)->txn, lmdb_of(kv)->dbi, &k, NULL);
    return rc == MDB_NOTFOUND ? OX_OK : lmdb_err(rc);
}

static enum ox_err lmdb_commit(struct ox_table_kv *kv)
{
    MDB_txn *txn = lmdb_of(kv)->txn;
    lmdb_of(kv)->txn = NULL;
    return lmdb_err(mdb_txn_commit(txn));
}

static void lmdb_abort(struct ox_table_kv *kv)
{
    mdb_txn_abort(lmdb_of(kv)->txn);
    lmdb_of(kv)->txn = NULL;
}

static void lmdb_close(struct ox_table_kv *kv)
{
    mdb_env_close(lmdb_of(kv)->env);
    ox_free(lmdb_of(kv));
}

static const struct ox_table_kv_body lmdb_body = {
    .begin = lmdb_begin,
    .get = lmdb_get,
    .seek = lmdb_seek,
    .put = lmdb_put,
    .del = lmdb_del,
    .commit = lmdb_commit,
    .abort = lmdb_abort,
    .close = lmdb_close,
};

// The directory's lock and the one thread of the metadata lane stand for LMDB's own locks, whose file would be written through a map: on a full disk that kills.
static int lmdb_open_env(struct lmdb_kv *l, const char *path)
{
    MDB_txn *txn;
    int rc = mdb_env_create(&l->env);
    if (rc == 0)
        rc = mdb_env_set_mapsize(l->env, LMDB_MAP_BYTES);
    if (rc == 0)
        rc = mdb_env_open(l->env, path, MDB_NOSUBDIR | MDB_NOTLS | MDB_NOLOCK | MDB_NORDAHEAD, 0644);
    if (rc == 0)
        rc = mdb_txn_begin(l->env, NULL, 0, &txn);
    if (rc != 0)
        return rc;
    rc = mdb_dbi_open(txn, NULL, 0, &l->dbi);
    if (rc == 0)
        return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return rc;
}

static enum ox_err lmdb_open(void *ctx, const char *dir, struct ox_table_kv **ret)
{
    (void)ctx;
    struct lmdb_kv *l = ox_malloc(sizeof *l);
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("%s/table.mdb", dir);
    l->kv.body = &lmdb_body;
    int rc = lmdb_open_env(l, path);
    if (rc != 0) {
        if (l->env)
            mdb_env_close(l->env);
        ox_free(l);
        return lmdb_err(rc);
    }
    *ret = &l->kv;
    return OX_OK;
}

struct ox_table_source ox_table_lmdb(void)
{
    return (struct ox_table_source){lmdb_open, NULL};
}
