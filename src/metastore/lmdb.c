// lmdb.c - the store in an LMDB file: many queued calls share one job, one transaction and one sync.
#include "metastore/lmdb.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "metastore/lmdb_nodes.h"
#include "metastore/request.h"

#define LMDB_MAP_BYTES (UINT64_C(64) << 30)
#define LMDB_MAP_BYTES_MIN (UINT64_C(2) << 20)
#define LMDB_RESERVE_BYTES_MAX (UINT64_C(4) << 20)
#define LMDB_GROW_BYTES (UINT64_C(1) << 20)
#define LMDB_BATCH_MAX 1024
#define LMDB_BATCH_BYTES (16u << 20)
#define LMDB_PUT_OVERHEAD_BYTES (64u << 10) // pages that one put may copy on its way to the root

// What is open, used by jobs only.
struct lmdb_file {
    char *dir;
    bool readonly;
    uint64_t map_bytes, reserve_bytes;
    int lock_fd;
    MDB_env *env;
    struct ox_meta_lmdb_nodes nodes;
    uint64_t allocated_bytes; // of the file, so that a commit doesn't find the disk full
    uint64_t room_bytes;      // what puts may still take in this job
    bool failed;              // a commit failed in a way that leaves its outcome unknown: nothing more is written
    const char *why;          // static: more about an error of opening
};

struct lmdb {
    struct ox_meta_store store;
    struct ox_job job;
    bool busy;
    struct ox_turn_hook cut;
    struct ox_list queue; // requests that wait for the next job
    struct ox_meta_request *batch[LMDB_BATCH_MAX];
    size_t batch_count;
    bool failure_logged;
    struct lmdb_file file;
    struct ox_op *open_op;
    struct ox_meta **open_ret;
    enum ox_err open_err;
};

static enum ox_err file_make_dir(char *path)
{
    for (char *p = path + 1;; p++) {
        if (*p != '/' && *p != '\0')
            continue;
        char end = *p;
        *p = '\0';
        int rc = mkdir(path, 0700), e = errno;
        *p = end;
        if (rc != 0 && e != EEXIST)
            return ox_err_from_errno(e);
        if (end == '\0')
            return OX_OK;
    }
}

// Makes what was created in a directory durable.
static enum ox_err file_sync_dir(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return ox_err_from_errno(errno);
    enum ox_err err = fsync(fd) == 0 ? OX_OK : ox_err_from_errno(errno);
    close(fd);
    return err;
}

static enum ox_err file_lock(struct lmdb_file *f)
{
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("%s/lock", f->dir);
    f->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (f->lock_fd < 0)
        return ox_err_from_errno(errno);
    struct flock whole = {.l_type = f->readonly ? F_RDLCK : F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(f->lock_fd, F_OFD_SETLK, &whole) == 0)
        return OX_OK;
    if (errno != EAGAIN && errno != EACCES)
        return ox_err_from_errno(errno);
    f->why = "another process uses this directory: stop it or choose another one";
    return OX_E_LOCKED;
}

static enum ox_err file_open_env(struct lmdb_file *f)
{
    // Our lock and the one thread of the lane stand for LMDB's own locks.
    unsigned flags = MDB_NOTLS | MDB_NOLOCK | MDB_NORDAHEAD | (f->readonly ? MDB_RDONLY : 0);
    int rc = mdb_env_create(&f->env);
    if (rc == MDB_SUCCESS)
        rc = mdb_env_set_maxdbs(f->env, 4);
    if (rc == MDB_SUCCESS)
        rc = mdb_env_set_mapsize(f->env, f->map_bytes);
    if (rc == MDB_SUCCESS)
        rc = mdb_env_open(f->env, f->dir, flags, 0600);
    if (rc == ENOMEM)
        f->why = "no address space for the map: raise the limit (ulimit -v)";
    return ox_meta_lmdb_err(rc);
}

// Runs fn in a transaction of its own.
static enum ox_err file_transaction(struct lmdb_file *f, unsigned flags, enum ox_err (*fn)(struct lmdb_file *f))
{
    int rc = mdb_txn_begin(f->env, NULL, flags, &f->nodes.txn);
    if (rc != MDB_SUCCESS)
        return ox_meta_lmdb_err(rc);
    enum ox_err err = fn(f);
    if (err == OX_OK)
        return ox_meta_lmdb_err(mdb_txn_commit(f->nodes.txn));
    mdb_txn_abort(f->nodes.txn);
    return err;
}

static enum ox_err file_begin_session(struct lmdb_file *f)
{
    enum ox_err err = ox_meta_lmdb_prepare(&f->nodes, f->readonly);
    if (f->readonly) {
        f->nodes.nodes.session_id = 1;
        return err;
    }
    if (err == OX_OK)
        err = ox_meta_lmdb_remove_ephemerals(&f->nodes);
    if (err == OX_OK)
        err = ox_meta_lmdb_new_session(&f->nodes, &f->nodes.nodes.session_id);
    return err;
}

static enum ox_err file_end_session(struct lmdb_file *f)
{
    return ox_meta_lmdb_remove_ephemerals(&f->nodes);
}

static enum ox_err file_sync_dirs(struct lmdb_file *f)
{
    enum ox_err err = file_sync_dir(f->dir);
    OX_CLEANUP(ox_free_ptr)
    char *parent = ox_asprintf("%s/..", f->dir);
    return err == OX_OK ? file_sync_dir(parent) : err;
}

static enum ox_err file_open(struct lmdb_file *f)
{
    enum ox_err err = f->readonly ? OX_OK : file_make_dir(f->dir);
    if (err == OX_OK)
        err = file_lock(f);
    if (err == OX_OK)
        err = file_open_env(f);
    if (err == OX_OK)
        err = file_transaction(f, f->readonly ? MDB_RDONLY : 0, file_begin_session);
    if (err == OX_OK && !f->readonly)
        err = file_sync_dirs(f);
    if (err == OX_E_NO_SPACE)
        f->why = "the disk is full: free some space";
    return err == OX_E_METADATA_FULL ? OX_E_NO_SPACE : err;
}

static void file_close(struct lmdb_file *f)
{
    if (f->env)
        mdb_env_close(f->env);
    f->env = NULL;
    if (f->lock_fd >= 0)
        close(f->lock_fd);
    f->lock_fd = -1;
}

static uint64_t file_used_bytes(const struct lmdb_file *f)
{
    MDB_envinfo info;
    MDB_stat stat;
    (void)mdb_env_info(f->env, &info);
    (void)mdb_env_stat(f->env, &stat);
    return (info.me_last_pgno + 1) * stat.ms_psize;
}

// Bytes of pages that deletes have left. The free list is LMDB's table 0: transaction -> count and page numbers, in machine words.
static uint64_t file_free_bytes(const struct lmdb_file *f)
{
    MDB_txn *txn;
    MDB_cursor *cursor;
    uint64_t pages = 0;
    if (mdb_txn_begin(f->env, NULL, MDB_RDONLY, &txn) != MDB_SUCCESS)
        return 0;
    if (mdb_cursor_open(txn, 0, &cursor) == MDB_SUCCESS) {
        MDB_val key, value;
        while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == MDB_SUCCESS) {
            size_t count;
            memcpy(&count, value.mv_data, sizeof count);
            pages += count;
        }
        mdb_cursor_close(cursor);
    }
    mdb_txn_abort(txn);
    MDB_stat stat;
    (void)mdb_env_stat(f->env, &stat);
    return pages * stat.ms_psize;
}

// Allocates the file ahead of its use; false if the disk has no room.
static bool file_grow(struct lmdb_file *f, uint64_t to_bytes)
{
    to_bytes = OX_MIN(to_bytes, f->map_bytes);
    if (to_bytes <= f->allocated_bytes)
        return true;
    int fd;
    (void)mdb_env_get_fd(f->env, &fd);
    to_bytes = (to_bytes + LMDB_GROW_BYTES - 1) / LMDB_GROW_BYTES * LMDB_GROW_BYTES;
    int rc = fallocate(fd, 0, 0, (off_t)to_bytes);
    if (rc != 0 && errno == ENOSPC)
        return false;
    f->allocated_bytes = to_bytes; // where the file system cannot allocate ahead, the commit finds out
    return true;
}

// Works out what the puts of a job may take: up to the reserve below the map's end, or what deletes have left beyond the reserve.
static void file_measure(struct lmdb_file *f, uint64_t wanted_bytes)
{
    uint64_t used = file_used_bytes(f), limit = f->map_bytes - f->reserve_bytes;
    uint64_t room = used < limit ? limit - used : 0;
    if (room < wanted_bytes || !file_grow(f, used + wanted_bytes + f->reserve_bytes)) {
        uint64_t left = file_free_bytes(f);
        room = left > f->reserve_bytes ? left - f->reserve_bytes : 0;
    }
    f->room_bytes = room;
}

static bool request_puts(const struct ox_meta_request *r)
{
    for (size_t i = 0; i < r->edit_count; i++)
        if (r->edits[i].kind == OX_META_PUT)
            return true;
    return false;
}

static uint64_t request_need(const struct ox_meta_request *r)
{
    return request_puts(r) ? ox_meta_request_bytes(r) + r->edit_count * LMDB_PUT_OVERHEAD_BYTES : 0;
}

// All edits or none, whatever else the transaction holds.
static enum ox_err file_apply_nested(struct lmdb_file *f, struct ox_meta_request *r)
{
    MDB_txn *outer = f->nodes.txn;
    int rc = mdb_txn_begin(f->env, outer, 0, &f->nodes.txn);
    enum ox_err err = ox_meta_lmdb_err(rc);
    if (rc == MDB_SUCCESS) {
        err = ox_meta_apply(&f->nodes.nodes, r);
        if (err == OX_OK)
            rc = mdb_txn_commit(f->nodes.txn);
        else
            mdb_txn_abort(f->nodes.txn);
    }
    f->nodes.txn = outer;
    if (rc != MDB_SUCCESS) {
        f->nodes.broken = rc;
        err = ox_meta_lmdb_err(rc);
    }
    return err;
}

static enum ox_err file_apply_write(struct lmdb_file *f, struct ox_meta_request *r)
{
    if (f->readonly)
        return OX_E_ACCESS;
    if (f->failed)
        return OX_E_IO;
    uint64_t need = request_need(r);
    if (need > f->room_bytes)
        return OX_E_METADATA_FULL;
    f->room_bytes -= need;
    return r->edit_count > 1 ? file_apply_nested(f, r) : ox_meta_apply(&f->nodes.nodes, r);
}

static void file_apply(struct lmdb_file *f, struct ox_meta_request *r)
{
    r->err = r->kind == OX_META_REQ_WRITE ? file_apply_write(f, r) : ox_meta_apply(&f->nodes.nodes, r);
}

static bool batch_writes(const struct lmdb_file *f, struct ox_meta_request *const *rs, size_t count)
{
    for (size_t i = 0; i < count && !f->readonly && !f->failed; i++)
        if (rs[i]->kind == OX_META_REQ_WRITE)
            return true;
    return false;
}

// Nobody can tell whether the batch is on the disk.
static void file_fail(struct lmdb_file *f, struct ox_meta_request **rs, size_t count)
{
    f->failed = true;
    for (size_t i = 0; i < count; i++) {
        bool write = rs[i]->kind == OX_META_REQ_WRITE;
        if (rs[i]->err == OX_OK || !write)
            rs[i]->err = write ? OX_E_UNKNOWN_OUTCOME : OX_E_IO;
    }
}

// Runs requests in one transaction. False: nothing has happened, f->nodes.broken says why.
static bool file_transact(struct lmdb_file *f, struct ox_meta_request **rs, size_t count)
{
    bool write = batch_writes(f, rs, count);
    f->nodes.broken = mdb_txn_begin(f->env, NULL, write ? 0 : MDB_RDONLY, &f->nodes.txn);
    if (f->nodes.broken)
        return false;
    for (size_t i = 0; i < count && !f->nodes.broken; i++)
        file_apply(f, rs[i]);
    if (f->nodes.broken || !write) {
        mdb_txn_abort(f->nodes.txn);
        return !f->nodes.broken;
    }
    int rc = mdb_txn_commit(f->nodes.txn);
    if (rc == ENOSPC || rc == EDQUOT || rc == MDB_MAP_FULL || rc == MDB_TXN_FULL) {
        f->nodes.broken = rc;
        return false;
    }
    if (rc != MDB_SUCCESS)
        file_fail(f, rs, count);
    return true;
}

// Once more, each in a transaction of its own: where one finds no room, another one (a delete, a read) still may.
static void file_retry(struct lmdb_file *f, struct ox_meta_request *r)
{
    ox_meta_request_reset(r);
    file_measure(f, request_need(r));
    if (file_transact(f, &r, 1))
        return;
    r->err = ox_meta_lmdb_err(f->nodes.broken);
    if (r->err == OX_E_NO_SPACE)
        r->err = OX_E_METADATA_FULL;
}

static void lmdb_run_batch(struct ox_job *job)
{
    struct lmdb *m = CONTAINER_OF(job, struct lmdb, job);
    struct lmdb_file *f = &m->file;
    uint64_t wanted = 0;
    for (size_t i = 0; i < m->batch_count; i++)
        wanted += request_need(m->batch[i]);
    if (wanted)
        file_measure(f, wanted);
    if (!file_transact(f, m->batch, m->batch_count))
        for (size_t i = 0; i < m->batch_count; i++)
            file_retry(f, m->batch[i]);
    if (m->batch[m->batch_count - 1]->kind != OX_META_REQ_CLOSE)
        return;
    if (!f->readonly && !f->failed)
        (void)file_transaction(f, 0, file_end_session); // the next open does it otherwise
    file_close(f);
}

static void lmdb_free(struct lmdb *m)
{
    ox_turn_end_cancel(m->store.base.loop, &m->cut);
    ox_meta_fini(&m->store.base);
    ox_free(m->file.dir);
    ox_free(m);
}

static void lmdb_cut_batch(struct lmdb *m);

static void lmdb_finish_request(struct lmdb *m, struct ox_meta_request *r)
{
    for (size_t i = 0; r->err == OX_OK && i < r->note_count; i++)
        ox_meta_fire(&m->store.base, r->notes[i].path, r->notes[i].event);
    ox_meta_request_finish(r);
}

static void lmdb_log_failure(struct lmdb *m)
{
    if (!m->file.failed || m->failure_logged)
        return;
    m->failure_logged = true;
    ox_error(m->store.base.loop->log, "metastore.failed",
             "dir=\"%s\" reason=\"a commit failed; nothing more is written: check the disk, then restart\"", m->file.dir);
}

static void lmdb_batch_done(struct ox_op *op)
{
    struct lmdb *m = CONTAINER_OF(op, struct lmdb, job.op);
    lmdb_log_failure(m);
    bool closed = false;
    for (size_t i = 0; i < m->batch_count; i++) {
        struct ox_meta_request *r = m->batch[i];
        if (op->err != OX_OK)
            r->err = OX_E_SHUTDOWN;
        closed = closed || r->kind == OX_META_REQ_CLOSE;
        lmdb_finish_request(m, r);
    }
    m->batch_count = 0;
    m->busy = false;
    if (closed)
        lmdb_free(m);
    else
        lmdb_cut_batch(m);
}

static void lmdb_cut_batch(struct lmdb *m)
{
    size_t bytes = 0;
    struct ox_link *link;
    while (m->batch_count < LMDB_BATCH_MAX && bytes < LMDB_BATCH_BYTES && (link = ox_list_pop_front(&m->queue))) {
        struct ox_meta_request *r = CONTAINER_OF(link, struct ox_meta_request, link);
        m->batch[m->batch_count++] = r;
        bytes += ox_meta_request_bytes(r);
        if (r->kind == OX_META_REQ_CLOSE)
            break;
    }
    if (m->batch_count == 0)
        return;
    m->busy = true;
    m->file.nodes.nodes.now_ms = ox_wall_ms(m->store.base.loop);
    ox_op_init(&m->job.op, m->store.base.loop, lmdb_batch_done, "metastore.batch");
    m->job.run = lmdb_run_batch;
    ox_job_submit(m->store.base.loop, &m->job);
}

static void lmdb_turn_end(struct ox_turn_hook *hook)
{
    struct lmdb *m = CONTAINER_OF(hook, struct lmdb, cut);
    if (!m->busy)
        lmdb_cut_batch(m);
}

static void lmdb_submit(struct ox_meta_store *store, struct ox_meta_request *r)
{
    struct lmdb *m = CONTAINER_OF(store, struct lmdb, store);
    ox_list_push_back(&m->queue, &r->link);
    if (!m->busy)
        ox_turn_end(store->base.loop, &m->cut);
}

static const struct ox_meta_body lmdb_body = {
    .get = ox_meta_request_get,
    .put = ox_meta_request_put,
    .del = ox_meta_request_del,
    .children = ox_meta_request_children,
    .multi = ox_meta_request_multi,
    .watch = ox_meta_request_watch,
    .unwatch = ox_meta_request_watch,
    .close = ox_meta_request_close,
};

static void lmdb_run_open(struct ox_job *job)
{
    struct lmdb *m = CONTAINER_OF(job, struct lmdb, job);
    m->open_err = file_open(&m->file);
    if (m->open_err != OX_OK)
        file_close(&m->file);
}

static void lmdb_open_done(struct ox_op *job_op)
{
    struct lmdb *m = CONTAINER_OF(job_op, struct lmdb, job.op);
    struct ox_op *op = m->open_op;
    enum ox_err err = job_op->err == OX_OK ? m->open_err : job_op->err;
    m->busy = false;
    if (err == OX_OK) {
        m->store.base.session_id = m->file.nodes.nodes.session_id;
        *m->open_ret = &m->store.base;
    } else {
        ox_error(m->store.base.loop->log, "metastore.open", "dir=\"%s\" err=%s reason=\"%s\"", m->file.dir,
                 ox_err_name(err), m->file.why ? m->file.why : ox_err_text(err));
        lmdb_free(m);
    }
    ox_op_finish(op, err);
}

void ox_meta_lmdb_open(struct ox_loop *loop, struct ox_op *op, const struct ox_meta_lmdb_config *config, struct ox_meta **ret)
{
    ox_op_begin(op);
    struct lmdb *m = ox_malloc(sizeof *m);
    ox_meta_init(&m->store.base, &lmdb_body, loop);
    m->store.submit = lmdb_submit;
    ox_list_init(&m->queue);
    m->cut.run = lmdb_turn_end;
    m->file.dir = ox_strdup(config->dir);
    m->file.readonly = config->readonly;
    m->file.map_bytes = OX_MAX(config->map_bytes ? config->map_bytes : LMDB_MAP_BYTES, LMDB_MAP_BYTES_MIN);
    m->file.reserve_bytes = OX_MIN(m->file.map_bytes / 16, LMDB_RESERVE_BYTES_MAX);
    m->file.lock_fd = -1;
    ox_meta_lmdb_nodes_init(&m->file.nodes);
    m->open_op = op;
    m->open_ret = ret;
    m->busy = true;
    ox_op_init(&m->job.op, loop, lmdb_open_done, "metastore.open");
    m->job.run = lmdb_run_open;
    m->job.lane = OX_LANE_META;
    ox_job_submit(loop, &m->job);
}
