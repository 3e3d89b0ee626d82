// disk.c - the simulated file system body: operations as tasks in lanes, with latencies, faults and a capacity.
#include "sim/sim_disk.h"

#include <string.h>

#include "base/assert.h"
#include "sim/inode.h"
#include "sim/names.h"
#include "sim/sim_int.h"

#define DISK_CAPACITY_DEFAULT (UINT64_C(1) << 40)
#define DISK_IOV_SMALL 4

struct sim_disk {
    struct ox_sim *sim;
    struct ox_sim_node *node;
    struct sim_names names;
    struct ox_list inodes;
    uint64_t capacity, used, flips;
    uint32_t fail_nth[3]; // by enum ox_sim_disk_op; 0: none
};

struct sim_file {
    struct ox_file file;
    struct sim_disk *disk;
    struct sim_inode *inode; // a reference
    size_t pending;
    bool closed, lock;
};

struct disk_task {
    struct sim_task task;
    struct sim_disk *disk;
    struct sim_file *file; // or NULL
    char *path, *to;       // normalised
    int flags;             // enum ox_open_flags
    enum ox_lane lane;     // of the file to open
    struct iovec *iov, small[DISK_IOV_SMALL];
    int iov_count;
    uint64_t offset, len;
    bool sync;
    void *buf;
    union {
        struct ox_file **file;
        struct ox_dirlist *list;
        struct ox_space *space;
        size_t *len;
    } ret;
    uint64_t *ret_size;
};

struct sim_disk *sim_disk_new(struct ox_sim_node *node)
{
    struct sim_disk *d = ox_malloc(sizeof(*d));
    d->sim = node->sim;
    d->node = node;
    d->capacity = DISK_CAPACITY_DEFAULT;
    ox_list_init(&d->inodes);
    sim_names_init(&d->names, &d->inodes);
    return d;
}

void sim_disk_free(struct sim_disk *d)
{
    sim_names_fini(&d->names);
    OX_LIST_EACH(&d->inodes, link) {
        struct sim_inode *inode = CONTAINER_OF(link, struct sim_inode, link);
        inode->refs = 1;
        sim_inode_unref(&d->inodes, inode);
    }
    ox_free(d);
}

void sim_disk_crash(struct sim_disk *d)
{
    static const uint64_t modes = 3;
    struct ox_random *r = &d->sim->random;
    size_t pending = d->names.pending.count;
    size_t some = (size_t)ox_random_below(r, pending + 1);
    uint64_t mode = ox_random_below(r, modes);
    sim_names_crash(&d->names, mode == 0 ? 0 : mode == 1 ? pending : some);
    OX_LIST_EACH(&d->inodes, link) {
        struct sim_inode *inode = CONTAINER_OF(link, struct sim_inode, link);
        sim_inode_crash(inode, (enum sim_keep)ox_random_below(r, SIM_KEEP_COUNT), r);
    }
}

static bool disk_fails(struct sim_disk *d, enum ox_sim_disk_op kind)
{
    const struct ox_sim_faults *f = &d->sim->faults;
    uint32_t rate = kind == OX_SIM_DISK_WRITE ? f->write_fail : kind == OX_SIM_DISK_SYNC ? f->sync_fail : f->read_fail;
    if (d->fail_nth[kind] && --d->fail_nth[kind] == 0)
        return true;
    return sim_chance(d->sim, rate);
}

static void file_unref(struct sim_file *f)
{
    if (!f->closed || f->pending)
        return;
    sim_inode_unref(&f->disk->inodes, f->inode);
    ox_free(f);
}

static void disk_task_end(struct sim_task *task)
{
    struct disk_task *t = CONTAINER_OF(task, struct disk_task, task);
    if (t->file) {
        t->file->pending--;
        file_unref(t->file);
    }
    if (t->iov != t->small)
        ox_free(t->iov);
    ox_free(t->path);
    ox_free(t->to);
    ox_free(t);
}

static struct disk_task *disk_task_new(struct ox_fs *fs, struct sim_file *f, struct ox_op *op,
                                       enum ox_err (*run)(struct sim_task *t))
{
    struct disk_task *t = ox_malloc(sizeof(*t));
    t->task = (struct sim_task){.op = op, .run = run, .end = disk_task_end};
    t->disk = sim_process_of(fs->loop)->node->disk;
    t->file = f;
    t->iov = t->small;
    if (f)
        f->pending++;
    return t;
}

static void disk_task_start(struct disk_task *t, struct ox_fs *fs, enum ox_lane lane, uint64_t min_ns, uint64_t max_ns)
{
    struct ox_sim *sim = t->disk->sim;
    uint64_t time = sim_between(sim, min_ns, max_ns);
    if (sim_chance(sim, sim->faults.slow_disk))
        time += sim_between(sim, 0, OX_SEC);
    ox_op_begin(t->task.op);
    sim_task_start(&t->task, sim_process_of(fs->loop), lane, time);
}

// Tasks that touch no platter: what the page cache or the directory cache answers.
static void disk_task_start_quick(struct disk_task *t, struct ox_fs *fs, enum ox_lane lane)
{
    disk_task_start(t, fs, lane, 1000, 30000);
}

static void disk_task_start_slow(struct disk_task *t, struct ox_fs *fs, enum ox_lane lane, uint64_t bytes)
{
    disk_task_start(t, fs, lane, t->disk->sim->disk_min_ns + bytes, t->disk->sim->disk_max_ns + bytes);
}

static struct ox_file *file_new(struct ox_fs *fs, struct sim_disk *d, enum ox_lane lane, struct sim_inode *inode)
{
    struct sim_file *f = ox_malloc(sizeof(*f));
    f->file = (struct ox_file){.fs = fs, .lane = lane};
    f->disk = d;
    f->inode = sim_inode_ref(inode);
    return &f->file;
}

// The file of a path, made if `create`; *ret is borrowed from its name.
static enum ox_err disk_look_up(struct sim_disk *d, const char *path, bool create, struct sim_inode **ret)
{
    if (sim_names_is_dir(&d->names, path))
        return OX_E_ACCESS;
    *ret = sim_names_find(&d->names, path);
    if (*ret)
        return OX_OK;
    if (!create || !sim_names_has_parent(&d->names, path))
        return OX_E_NOT_FOUND;
    *ret = sim_inode_new(&d->inodes, &d->used);
    sim_names_link(&d->names, path, *ret);
    sim_inode_unref(&d->inodes, *ret);
    return OX_OK;
}

static enum ox_err open_run(struct sim_task *task)
{
    struct disk_task *t = CONTAINER_OF(task, struct disk_task, task);
    if ((t->flags & OX_OPEN_EXCLUSIVE) && sim_names_find(&t->disk->names, t->path))
        return OX_E_EXISTS;
    struct sim_inode *inode;
    enum ox_err err = disk_look_up(t->disk, t->path, t->flags & OX_OPEN_CREATE, &inode);
    if (err)
        return err;
    *t->ret.file = file_new(&task->process->fs, t->disk, t->lane, inode);
    if (t->ret_size)
        *t->ret_size = inode->size;
    return OX_OK;
}

static void fs_open(struct ox_fs *fs, struct ox_op *op, enum ox_lane lane, const char *path, int flags,
                    struct ox_file **ret_file, uint64_t *ret_size)
{
    struct disk_task *t = disk_task_new(fs, NULL, op, open_run);
    t->path = sim_names_normal(path);
    t->flags = flags;
    t->lane = lane;
    t->ret.file = ret_file;
    t->ret_size = ret_size;
    disk_task_start_quick(t, fs, lane);
}

static enum ox_err lock_run(struct sim_task *task)
{
    struct disk_task *t = CONTAINER_OF(task, struct disk_task, task);
    struct sim_inode *inode;
    enum ox_err err = disk_look_up(t->disk, t->path, true, &inode);
    if (err)
        return err;
    if (inode->locker && !inode->locker->loop.dead)
        return OX_E_LOCKED;
    inode->locker = task->process;
    *t->ret.file = file_new(&task->process->fs, t->disk, OX_LANE_POOL, inode);
    CONTAINER_OF(*t->ret.file, struct sim_file, file)->lock = true;
    return OX_OK;
}

static void fs_lock(struct ox_fs *fs, struct ox_op *op, const char *path, struct ox_file **ret_lock)
{
    struct disk_task *t = disk_task_new(fs, NULL, op, lock_run);
    t->path = sim_names_normal(path);
    t->ret.file = ret_lock;
    disk_task_start_quick(t, fs, OX_LANE_POOL);
}

static enum ox_err mkdir_run(struct sim_task *task)
{
    struct disk_task *t = CONTAINER_OF(task, struct disk_task, task);
    return sim_names_mkdir(&t->disk->names, t->path);
}

static void fs_mkdir(struct ox_fs *fs, struct ox_op *op, const char *path)
{
    struct disk_task *t = disk_task_new(fs, NULL, op, mkdir_run);
    t->path = sim_names_normal(path);
    disk_task_start_quick(t, fs, OX_LANE_POOL);
}

static enum ox_err list_run(struct sim_task *task)
{
    struct disk_task *t = CONTAINER_OF(task, struct disk_task, task);
    return sim_names_list(&t->disk->names, t->path, t->ret.list);
}

static void fs_list(struct ox_fs *fs, struct ox_op *op, const char *path, struct ox_dirlist *ret_list)
{
    struct disk_task *t = disk_task_new(fs, NULL, op, list_run);
    t->path = sim_names_normal(path);
    t->ret.list = ret_list;
    disk_task_start_quick(t, fs, OX_LANE_POOL);
}

// A change of names that was under way at a crash may have happened.
static void names_cut(struct sim_task *task)
{
    if (ox_random_below(&task->process->sim->random, 2))
        (void)task->run(task);
}

static enum ox_err rename_run(struct sim_task *task)
{
    struct disk_task *t = CONTAINER_OF(task, struct disk_task, task);
    return sim_names_rename(&t->disk->names, t->path, t->to);
}

static void fs_rename(struct ox_fs *fs, struct ox_op *op, const char *from, const char *to)
{
    struct disk_task *t = disk_task_new(fs, NULL, op, rename_run);
    t->task.cut = names_cut;
    t->path = sim_names_normal(from);
    t->to = sim_names_normal(to);
    disk_task_start_quick(t, fs, OX_LANE_POOL);
}

static enum ox_err unlink_run(struct sim_task *task)
{
    struct disk_task *t = CONTAINER_OF(task, struct disk_task, task);
    return sim_names_unlink(&t->disk->names, t->path);
}

static void fs_unlink(struct ox_fs *fs, struct ox_op *op, const char *path)
{
    struct disk_task *t = disk_task_new(fs, NULL, op, unlink_run);
    t->task.cut = names_cut;
    t->path = sim_names_normal(path);
    disk_task_start_quick(t, fs, OX_LANE_POOL);
}

static enum ox_err sync_dir_run(struct sim_task *task)
{
    struct disk_task *t = CONTAINER_OF(task, struct disk_task, task);
    if (disk_fails(t->disk, OX_SIM_DISK_SYNC))
        return OX_E_IO;
    return sim_names_sync(&t->disk->names, t->path);
}

static void fs_sync_dir(struct ox_fs *fs, struct ox_op *op, const char *path)
{
    struct disk_task *t = disk_task_new(fs, NULL, op, sync_dir_run);
    t->path = sim_names_normal(path);
    disk_task_start_slow(t, fs, OX_LANE_POOL, 0);
}

static enum ox_err space_run(struct sim_task *task)
{
    struct disk_task *t = CONTAINER_OF(task, struct disk_task, task);
    struct sim_disk *d = t->disk;
    *t->ret.space = (struct ox_space){.total = d->capacity, .available = d->used < d->capacity ? d->capacity - d->used : 0};
    return OX_OK;
}

static void fs_space(struct ox_fs *fs, struct ox_op *op, const char *path, struct ox_space *ret_space)
{
    (void)path;
    struct disk_task *t = disk_task_new(fs, NULL, op, space_run);
    t->ret.space = ret_space;
    disk_task_start_quick(t, fs, OX_LANE_POOL);
}

static enum ox_err read_run(struct sim_task *task)
{
    struct disk_task *t = CONTAINER_OF(task, struct disk_task, task);
    const struct sim_inode *inode = t->file->inode;
    if (disk_fails(t->disk, OX_SIM_DISK_READ))
        return OX_E_IO;
    size_t there = t->offset < inode->size ? (size_t)OX_MIN(t->len, inode->size - t->offset) : 0;
    if (there)
        sim_inode_read(inode, t->buf, there, t->offset);
    *t->ret.len = there;
    return OX_OK;
}

static struct sim_file *sim_file_of(struct ox_file *f)
{
    return CONTAINER_OF(f, struct sim_file, file);
}

static void file_read(struct ox_file *f, struct ox_op *op, void *buf, size_t len, uint64_t offset, size_t *ret_len)
{
    struct disk_task *t = disk_task_new(f->fs, sim_file_of(f), op, read_run);
    t->buf = buf;
    t->len = len;
    t->offset = offset;
    t->ret.len = ret_len;
    if (ox_random_below(&t->disk->sim->random, 2))
        disk_task_start_quick(t, f->fs, f->lane);
    else
        disk_task_start_slow(t, f->fs, f->lane, len);
}

// The first `bytes` of a write (of zeros if it has no parts) go to the cache.
static void write_apply(struct disk_task *t, uint64_t bytes)
{
    uint64_t at = t->offset;
    if (t->iov_count == 0)
        sim_inode_write(t->file->inode, NULL, at, bytes);
    for (int i = 0; i < t->iov_count && bytes > 0; i++) {
        uint64_t n = OX_MIN((uint64_t)t->iov[i].iov_len, bytes);
        sim_inode_write(t->file->inode, t->iov[i].iov_base, at, n);
        at += n;
        bytes -= n;
    }
}

static bool disk_has_room(const struct sim_disk *d, const struct sim_inode *inode, uint64_t end)
{
    return end <= inode->size || (d->used <= d->capacity && end - inode->size <= d->capacity - d->used);
}

static enum ox_err disk_sync(struct sim_disk *d, struct sim_inode *inode)
{
    if (disk_fails(d, OX_SIM_DISK_SYNC)) {
        sim_inode_drop(inode, ox_random_below(&d->sim->random, 2));
        return OX_E_IO;
    }
    sim_inode_sync(inode);
    return OX_OK;
}

static enum ox_err write_run(struct sim_task *task)
{
    struct disk_task *t = CONTAINER_OF(task, struct disk_task, task);
    struct sim_disk *d = t->disk;
    struct sim_inode *inode = t->file->inode;
    if (!disk_has_room(d, inode, t->offset + t->len))
        return OX_E_NO_SPACE;
    if (disk_fails(d, OX_SIM_DISK_WRITE)) {
        write_apply(t, sim_between(d->sim, 0, t->len));
        return OX_E_IO;
    }
    write_apply(t, t->len);
    if (t->len && sim_chance(d->sim, d->sim->faults.flip)) {
        sim_inode_flip(inode, t->offset + sim_between(d->sim, 0, t->len - 1), (unsigned)sim_between(d->sim, 0, 7));
        d->flips++;
    }
    return t->sync ? disk_sync(d, inode) : OX_OK;
}

static void write_cut(struct sim_task *task)
{
    struct disk_task *t = CONTAINER_OF(task, struct disk_task, task);
    uint64_t how = sim_between(t->disk->sim, 0, 2);
    uint64_t bytes = how == 0 ? 0 : how == 1 ? t->len : sim_between(t->disk->sim, 0, t->len);
    if (bytes && disk_has_room(t->disk, t->file->inode, t->offset + bytes))
        write_apply(t, bytes);
}

static void file_write(struct ox_file *f, struct ox_op *op, const struct iovec *iov, int iov_count, uint64_t offset, bool sync)
{
    struct disk_task *t = disk_task_new(f->fs, sim_file_of(f), op, write_run);
    t->task.cut = write_cut;
    if (iov_count > DISK_IOV_SMALL)
        t->iov = ox_calloc((size_t)iov_count, sizeof(*iov));
    for (int i = 0; i < iov_count; i++) {
        t->iov[i] = iov[i];
        t->len += iov[i].iov_len;
    }
    t->iov_count = iov_count;
    t->offset = offset;
    t->sync = sync;
    if (sync)
        disk_task_start_slow(t, f->fs, f->lane, t->len);
    else
        disk_task_start_quick(t, f->fs, f->lane);
}

static void file_zero(struct ox_file *f, struct ox_op *op, uint64_t offset, uint64_t len)
{
    struct disk_task *t = disk_task_new(f->fs, sim_file_of(f), op, write_run);
    t->task.cut = write_cut;
    t->offset = offset;
    t->len = len;
    disk_task_start_quick(t, f->fs, f->lane);
}

static enum ox_err sync_run(struct sim_task *task)
{
    struct disk_task *t = CONTAINER_OF(task, struct disk_task, task);
    return disk_sync(t->disk, t->file->inode);
}

static void file_sync(struct ox_file *f, struct ox_op *op)
{
    disk_task_start_slow(disk_task_new(f->fs, sim_file_of(f), op, sync_run), f->fs, f->lane, 0);
}

static enum ox_err reserve_run(struct sim_task *task)
{
    struct disk_task *t = CONTAINER_OF(task, struct disk_task, task);
    if (!disk_has_room(t->disk, t->file->inode, t->len))
        return OX_E_NO_SPACE;
    if (t->len > t->file->inode->size)
        sim_inode_resize(t->file->inode, t->len);
    return OX_OK;
}

static void file_reserve(struct ox_file *f, struct ox_op *op, uint64_t size)
{
    struct disk_task *t = disk_task_new(f->fs, sim_file_of(f), op, reserve_run);
    t->task.cut = names_cut;
    t->len = size;
    disk_task_start_quick(t, f->fs, f->lane);
}

static enum ox_err truncate_run(struct sim_task *task)
{
    struct disk_task *t = CONTAINER_OF(task, struct disk_task, task);
    if (!disk_has_room(t->disk, t->file->inode, t->len))
        return OX_E_NO_SPACE;
    sim_inode_resize(t->file->inode, t->len);
    return OX_OK;
}

static void file_truncate(struct ox_file *f, struct ox_op *op, uint64_t size)
{
    struct disk_task *t = disk_task_new(f->fs, sim_file_of(f), op, truncate_run);
    t->task.cut = names_cut;
    t->len = size;
    disk_task_start_quick(t, f->fs, f->lane);
}

static void file_close(struct ox_file *file)
{
    struct sim_file *f = sim_file_of(file);
    OX_ASSERT(!f->closed);
    f->closed = true;
    if (f->lock && f->inode->locker == sim_process_of(file->fs->loop))
        f->inode->locker = NULL;
    file_unref(f);
}

const struct ox_fs_body sim_fs_body = {
    .open = fs_open,
    .mkdir = fs_mkdir,
    .list = fs_list,
    .rename = fs_rename,
    .unlink = fs_unlink,
    .sync_dir = fs_sync_dir,
    .space = fs_space,
    .lock = fs_lock,
    .read = file_read,
    .write = file_write,
    .sync = file_sync,
    .zero = file_zero,
    .reserve = file_reserve,
    .truncate = file_truncate,
    .close = file_close,
};

void ox_sim_disk_set_capacity(struct ox_sim_node *node, uint64_t bytes)
{
    node->disk->capacity = bytes;
}

uint64_t ox_sim_disk_used(const struct ox_sim_node *node)
{
    return node->disk->used;
}

uint64_t ox_sim_disk_flips(const struct ox_sim_node *node)
{
    return node->disk->flips;
}

void ox_sim_disk_fail(struct ox_sim_node *node, enum ox_sim_disk_op kind, uint32_t nth)
{
    node->disk->fail_nth[kind] = nth;
}

static struct sim_inode *disk_inode(const struct ox_sim_node *node, const char *path)
{
    OX_CLEANUP(ox_free_ptr)
    char *normal = sim_names_normal(path);
    return sim_names_find(&node->disk->names, normal);
}

bool ox_sim_disk_flip(struct ox_sim_node *node, const char *path, uint64_t offset, uint64_t len)
{
    struct sim_inode *inode = disk_inode(node, path);
    if (!inode || offset >= inode->size || !len)
        return false;
    uint64_t last = OX_MIN(len, inode->size - offset) - 1;
    sim_inode_flip(inode, offset + sim_between(node->sim, 0, last), (unsigned)sim_between(node->sim, 0, 7));
    node->disk->flips++;
    return true;
}

bool ox_sim_disk_stat(const struct ox_sim_node *node, const char *path, uint64_t *ret_size)
{
    struct sim_inode *inode = disk_inode(node, path);
    if (inode)
        *ret_size = inode->size;
    return inode != NULL;
}

void ox_sim_disk_peek(const struct ox_sim_node *node, const char *path, uint64_t offset, void *buf, size_t len)
{
    struct sim_inode *inode = disk_inode(node, path);
    OX_ASSERT(inode);
    sim_inode_read(inode, buf, len, offset);
}

void ox_sim_disk_poke(struct ox_sim_node *node, const char *path, uint64_t offset, const void *buf, size_t len)
{
    struct sim_inode *inode = disk_inode(node, path);
    OX_ASSERT(inode);
    sim_inode_poke(inode, buf, offset, len);
}
