// file.c - the file port's body: each operation is a job that makes POSIX calls on its lane.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/assert.h"
#include "io/posix/posix_int.h"

#define FILE_SPARE_MAX 256
#define FILE_ZERO_BYTES (1u << 20) // of one write of zeros
#define FILE_DIRECT_MIN 16384u     // smaller writes that nobody syncs stay in the page cache
#define FILE_IOV_KEEP 64           // a spare job keeps its array of parts up to this size

struct posix_file {
    struct ox_file file;
    int fd;
    int direct; // a second descriptor for large writes, or -1
    size_t pending;
    bool closed;
};

// One operation on its way to a lane and back.
struct file_job {
    struct ox_job job;
    struct ox_op *caller; // NULL: a close of our own
    enum ox_err err;
    struct posix_file *file; // or NULL
    char *path, *to;
    int flags;
    bool direct_wanted;
    enum ox_lane open_lane;
    int fd, direct; // opened
    struct iovec *iov;
    int iov_count, iov_cap;
    uint64_t offset, len;
    bool sync;
    void *buf;
    size_t *ret_len;
    size_t got;
    struct ox_file **ret_file;
    uint64_t *ret_size;
    uint64_t size;
    struct ox_dirlist *ret_list, list;
    struct ox_space *ret_space, space;
    struct ox_link spare;
};

static enum ox_err last_error(void)
{
    return ox_err_from_errno(errno);
}

static struct posix_file *posix_file_of(struct ox_file *f)
{
    return CONTAINER_OF(f, struct posix_file, file);
}

static void job_done(struct ox_op *op);

static struct file_job *job_take(struct posix_loop *p)
{
    struct ox_link *link = ox_list_pop_front(&p->spare);
    if (!link)
        return ox_malloc(sizeof(struct file_job));
    struct file_job *j = CONTAINER_OF(link, struct file_job, spare);
    *j = (struct file_job){.iov = j->iov, .iov_cap = j->iov_cap};
    return j;
}

static void job_free(struct file_job *j)
{
    ox_free(j->iov);
    ox_free(j);
}

static void job_give(struct posix_loop *p, struct file_job *j)
{
    ox_free(j->path);
    ox_free(j->to);
    j->path = j->to = NULL;
    if (j->iov_cap > FILE_IOV_KEEP || p->spare.count >= FILE_SPARE_MAX)
        job_free(j);
    else
        ox_list_push_back(&p->spare, &j->spare);
}

void posix_file_fini(struct posix_loop *p)
{
    for (struct ox_link *link; (link = ox_list_pop_front(&p->spare));)
        job_free(CONTAINER_OF(link, struct file_job, spare));
    ox_free(p->zeros);
}

static struct file_job *job_new(struct ox_fs *fs, struct posix_file *f, struct ox_op *op,
                                void (*run)(struct ox_job *job), enum ox_lane lane)
{
    struct file_job *j = job_take(posix_of(fs->loop));
    j->job.run = run;
    j->job.lane = lane;
    ox_op_init(&j->job.op, fs->loop, job_done, "posix.file");
    j->caller = op;
    j->file = f;
    j->fd = j->direct = -1;
    if (f)
        f->pending++;
    return j;
}

static void job_start(struct file_job *j)
{
    if (j->caller)
        ox_op_begin(j->caller);
    ox_job_submit(j->job.op.loop, &j->job);
}

static void close_run(struct ox_job *job)
{
    struct file_job *j = CONTAINER_OF(job, struct file_job, job);
    (void)close(j->fd);
    if (j->direct >= 0)
        (void)close(j->direct);
}

static void file_free_if_over(struct posix_file *f)
{
    if (!f->closed || f->pending)
        return;
    struct file_job *j = job_new(f->file.fs, NULL, NULL, close_run, f->file.lane);
    j->fd = f->fd;
    j->direct = f->direct;
    ox_free(f);
    job_start(j);
}

static struct ox_file *file_new(struct file_job *j)
{
    struct posix_file *f = ox_malloc(sizeof(*f));
    f->file = (struct ox_file){.fs = &posix_of(j->job.op.loop)->fs, .lane = j->open_lane};
    f->fd = j->fd;
    f->direct = j->direct;
    return &f->file;
}

static void job_hand_over(struct file_job *j)
{
    if (j->ret_file)
        *j->ret_file = file_new(j);
    if (j->ret_size)
        *j->ret_size = j->size;
    if (j->ret_len)
        *j->ret_len = j->got;
    if (j->ret_list)
        *j->ret_list = j->list;
    if (j->ret_space)
        *j->ret_space = j->space;
}

static void job_done(struct ox_op *op)
{
    struct file_job *j = CONTAINER_OF(op, struct file_job, job.op);
    struct posix_file *f = j->file;
    if (j->caller) {
        if (!j->err)
            job_hand_over(j);
        ox_op_finish(j->caller, j->err);
    }
    job_give(posix_of(op->loop), j);
    if (f) {
        f->pending--;
        file_free_if_over(f);
    }
}

static void open_run(struct ox_job *job)
{
    struct file_job *j = CONTAINER_OF(job, struct file_job, job);
    struct stat st;
    do
        j->fd = open(j->path, j->flags | O_CLOEXEC, 0644);
    while (j->fd < 0 && errno == EINTR);
    if (j->fd < 0) {
        j->err = last_error();
    } else if (fstat(j->fd, &st) != 0) {
        j->err = last_error();
        (void)close(j->fd);
    } else {
        j->size = (uint64_t)st.st_size;
        if (j->direct_wanted)
            j->direct = open(j->path, O_WRONLY | O_DIRECT | O_CLOEXEC); // not every file system can
    }
}

static void fs_open(struct ox_fs *fs, struct ox_op *op, enum ox_lane lane, const char *path, int flags,
                    struct ox_file **ret_file, uint64_t *ret_size)
{
    struct file_job *j = job_new(fs, NULL, op, open_run, lane);
    j->path = ox_strdup(path);
    j->flags = (flags & OX_OPEN_WRITE) ? O_RDWR : O_RDONLY;
    j->flags |= ((flags & OX_OPEN_CREATE) ? O_CREAT : 0) | ((flags & OX_OPEN_EXCLUSIVE) ? O_EXCL : 0);
    j->direct_wanted = (flags & OX_OPEN_DIRECT) != 0;
    j->open_lane = lane;
    j->ret_file = ret_file;
    j->ret_size = ret_size;
    job_start(j);
}

static void lock_run(struct ox_job *job)
{
    struct file_job *j = CONTAINER_OF(job, struct file_job, job);
    open_run(job);
    if (j->err || flock(j->fd, LOCK_EX | LOCK_NB) == 0)
        return;
    j->err = errno == EWOULDBLOCK ? OX_E_LOCKED : last_error();
    (void)close(j->fd);
}

static void fs_lock(struct ox_fs *fs, struct ox_op *op, const char *path, struct ox_file **ret_lock)
{
    struct file_job *j = job_new(fs, NULL, op, lock_run, OX_LANE_POOL);
    j->path = ox_strdup(path);
    j->flags = O_RDWR | O_CREAT;
    j->open_lane = OX_LANE_POOL;
    j->ret_file = ret_lock;
    job_start(j);
}

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void mkdir_run(struct ox_job *job)
{
    struct file_job *j = CONTAINER_OF(job, struct file_job, job);
    if (mkdir(j->path, 0755) == 0)
        return;
    j->err = last_error();
    if (j->err == OX_E_EXISTS && is_directory(j->path))
        j->err = OX_OK;
}

static void fs_mkdir(struct ox_fs *fs, struct ox_op *op, const char *path)
{
    struct file_job *j = job_new(fs, NULL, op, mkdir_run, OX_LANE_POOL);
    j->path = ox_strdup(path);
    job_start(j);
}

static int dirent_compare(const void *a, const void *b)
{
    return strcmp(((const struct ox_dirent *)a)->name, ((const struct ox_dirent *)b)->name);
}

// A file that vanishes between readdir and fstatat is left out.
static enum ox_err list_add(struct ox_dirlist *list, DIR *dir, const char *name)
{
    struct stat st;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return OX_OK;
    if (fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? OX_OK : last_error();
    list->items = ox_realloc(list->items, list->count + 1, sizeof(*list->items));
    list->items[list->count++] = (struct ox_dirent){
        .name = ox_strdup(name), .size = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0, .is_dir = S_ISDIR(st.st_mode)};
    return OX_OK;
}

static void list_run(struct ox_job *job)
{
    struct file_job *j = CONTAINER_OF(job, struct file_job, job);
    DIR *dir = opendir(j->path);
    if (!dir) {
        j->err = last_error();
        return;
    }
    errno = 0;
    for (struct dirent *d; !j->err && (d = readdir(dir)); errno = 0)
        j->err = list_add(&j->list, dir, d->d_name);
    if (!j->err && errno)
        j->err = last_error();
    (void)closedir(dir);
    if (j->err)
        ox_dirlist_fini(&j->list);
    else if (j->list.count)
        qsort(j->list.items, j->list.count, sizeof(*j->list.items), dirent_compare);
}

static void fs_list(struct ox_fs *fs, struct ox_op *op, const char *path, struct ox_dirlist *ret_list)
{
    struct file_job *j = job_new(fs, NULL, op, list_run, OX_LANE_POOL);
    j->path = ox_strdup(path);
    j->ret_list = ret_list;
    job_start(j);
}

static void rename_run(struct ox_job *job)
{
    struct file_job *j = CONTAINER_OF(job, struct file_job, job);
    if (rename(j->path, j->to) != 0)
        j->err = last_error();
}

static void fs_rename(struct ox_fs *fs, struct ox_op *op, const char *from, const char *to)
{
    struct file_job *j = job_new(fs, NULL, op, rename_run, OX_LANE_POOL);
    j->path = ox_strdup(from);
    j->to = ox_strdup(to);
    job_start(j);
}

static void unlink_run(struct ox_job *job)
{
    struct file_job *j = CONTAINER_OF(job, struct file_job, job);
    if (unlink(j->path) != 0)
        j->err = last_error();
}

static void fs_unlink(struct ox_fs *fs, struct ox_op *op, const char *path)
{
    struct file_job *j = job_new(fs, NULL, op, unlink_run, OX_LANE_POOL);
    j->path = ox_strdup(path);
    job_start(j);
}

static void sync_dir_run(struct ox_job *job)
{
    struct file_job *j = CONTAINER_OF(job, struct file_job, job);
    int fd = open(*j->path ? j->path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0)
        j->err = last_error();
    if (fd >= 0)
        (void)close(fd);
}

static void fs_sync_dir(struct ox_fs *fs, struct ox_op *op, const char *path)
{
    struct file_job *j = job_new(fs, NULL, op, sync_dir_run, OX_LANE_POOL);
    j->path = ox_strdup(path);
    job_start(j);
}

static void space_run(struct ox_job *job)
{
    struct file_job *j = CONTAINER_OF(job, struct file_job, job);
    struct statvfs v;
    if (statvfs(j->path, &v) != 0)
        j->err = last_error();
    else
        j->space = (struct ox_space){.total = v.f_blocks * v.f_frsize, .available = v.f_bavail * v.f_frsize};
}

static void fs_space(struct ox_fs *fs, struct ox_op *op, const char *path, struct ox_space *ret_space)
{
    struct file_job *j = job_new(fs, NULL, op, space_run, OX_LANE_POOL);
    j->path = ox_strdup(path);
    j->ret_space = ret_space;
    job_start(j);
}

static void read_run(struct ox_job *job)
{
    struct file_job *j = CONTAINER_OF(job, struct file_job, job);
    while (j->got < j->len) {
        ssize_t n = pread(j->file->fd, (char *)j->buf + j->got, (size_t)j->len - j->got, (off_t)(j->offset + j->got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            j->err = last_error();
        if (n <= 0)
            return;
        j->got += (size_t)n;
    }
}

static void file_read(struct ox_file *f, struct ox_op *op, void *buf, size_t len, uint64_t offset, size_t *ret_len)
{
    struct file_job *j = job_new(f->fs, posix_file_of(f), op, read_run, f->lane);
    j->buf = buf;
    j->len = len;
    j->offset = offset;
    j->ret_len = ret_len;
    job_start(j);
}

static enum ox_err fd_sync(int fd)
{
    while (fdatasync(fd) != 0) {
        if (errno != EINTR)
            return last_error();
    }
    return OX_OK;
}

// Drops n written bytes from the front of the parts; returns how many parts are gone.
static int iov_advance(struct iovec *iov, int count, size_t n)
{
    int done = 0;
    while (done < count && n >= iov[done].iov_len)
        n -= iov[done++].iov_len;
    if (done < count) {
        iov[done].iov_base = (char *)iov[done].iov_base + n;
        iov[done].iov_len -= n;
    }
    return done;
}

static enum ox_err fd_write(int fd, struct iovec *iov, int count, uint64_t offset)
{
    int done = iov_advance(iov, count, 0);
    uint64_t start = offset;
    while (done < count) {
        ssize_t n = pwritev(fd, iov + done, count - done, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) // INVALID only if nothing was written, so that it may be tried in another way: the parts are used up otherwise
            return n == 0 || (errno == EINVAL && offset != start) ? OX_E_IO : last_error();
        offset += (uint64_t)n;
        done += iov_advance(iov + done, count - done, (size_t)n);
    }
    return OX_OK;
}

static bool write_is_direct(const struct file_job *j)
{
    size_t bytes = 0, odd = (size_t)(j->offset % OX_DIRECT_ALIGN);
    for (int i = 0; j->file->direct >= 0 && i < j->iov_count; i++) {
        odd |= ((uintptr_t)j->iov[i].iov_base | j->iov[i].iov_len) % OX_DIRECT_ALIGN;
        bytes += j->iov[i].iov_len;
    }
    return (bytes >= FILE_DIRECT_MIN || (j->sync && bytes > 0)) && odd == 0;
}

static void write_run(struct ox_job *job)
{
    struct file_job *j = CONTAINER_OF(job, struct file_job, job);
    bool direct = write_is_direct(j);
    j->err = fd_write(direct ? j->file->direct : j->file->fd, j->iov, j->iov_count, j->offset);
    if (direct && j->err == OX_E_INVALID) // a file system with other ideas of alignment; nothing has been written
        j->err = fd_write(j->file->fd, j->iov, j->iov_count, j->offset);
    if (!j->err && j->sync)
        j->err = fd_sync(j->file->fd);
}

static void file_write(struct ox_file *f, struct ox_op *op, const struct iovec *iov, int iov_count, uint64_t offset, bool sync)
{
    struct file_job *j = job_new(f->fs, posix_file_of(f), op, write_run, f->lane);
    if (iov_count > j->iov_cap) {
        j->iov = ox_realloc(j->iov, (size_t)iov_count, sizeof(*iov));
        j->iov_cap = iov_count;
    }
    if (iov_count)
        memcpy(j->iov, iov, (size_t)iov_count * sizeof(*iov));
    j->iov_count = iov_count;
    j->offset = offset;
    j->sync = sync;
    job_start(j);
}

static void sync_run(struct ox_job *job)
{
    struct file_job *j = CONTAINER_OF(job, struct file_job, job);
    j->err = fd_sync(j->file->fd);
}

static void file_sync(struct ox_file *f, struct ox_op *op)
{
    job_start(job_new(f->fs, posix_file_of(f), op, sync_run, f->lane));
}

// Space is reserved first, so that a full disk shows before any byte is written; a file system that cannot reserve only writes.
static enum ox_err fd_reserve(int fd, uint64_t offset, uint64_t len)
{
    int err;
    do
        err = posix_fallocate(fd, (off_t)offset, (off_t)len);
    while (err == EINTR);
    return err == EINVAL || err == EOPNOTSUPP ? OX_OK : ox_err_from_errno(err);
}

// A second descriptor whose writes go past the page cache: zeros are many and nobody reads them. Falls back to the file's own.
static int fd_direct(int fd, uint64_t offset, uint64_t len)
{
    char path[64];
    if (offset % OX_DIRECT_ALIGN || len % OX_DIRECT_ALIGN)
        return fd;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int direct = open(path, O_WRONLY | O_DIRECT | O_CLOEXEC);
    return direct < 0 ? fd : direct;
}

static enum ox_err fd_zero(int fd, void *zeros, uint64_t offset, uint64_t len)
{
    enum ox_err err = OX_OK;
    for (uint64_t done = 0, n; !err && done < len; done += n) {
        n = OX_MIN((uint64_t)FILE_ZERO_BYTES, len - done);
        struct iovec part = {zeros, (size_t)n};
        err = fd_write(fd, &part, 1, offset + done);
    }
    return err;
}

static void zero_run(struct ox_job *job)
{
    struct file_job *j = CONTAINER_OF(job, struct file_job, job);
    if (!j->len)
        return;
    j->err = fd_reserve(j->file->fd, j->offset, j->len);
    if (j->err)
        return;
    int fd = fd_direct(j->file->fd, j->offset, j->len);
    j->err = fd_zero(fd, j->buf, j->offset, j->len);
    if (fd == j->file->fd)
        return;
    (void)close(fd);
    if (j->err == OX_E_INVALID) // the file system has other ideas of alignment
        j->err = fd_zero(j->file->fd, j->buf, j->offset, j->len);
}

// The zeros that all such writes share: in a large page, so that the disk gets each as one stretch.
static void *posix_zeros(struct posix_loop *p)
{
    size_t bytes;
    if (!p->zeros) {
        p->zeros = ox_direct_alloc(OX_DIRECT_PAGE, &bytes);
        memset(p->zeros, 0, FILE_ZERO_BYTES);
    }
    return p->zeros;
}

static void file_zero(struct ox_file *f, struct ox_op *op, uint64_t offset, uint64_t len)
{
    struct file_job *j = job_new(f->fs, posix_file_of(f), op, zero_run, f->lane);
    j->buf = posix_zeros(posix_of(f->fs->loop));
    j->offset = offset;
    j->len = len;
    job_start(j);
}

static void reserve_run(struct ox_job *job)
{
    struct file_job *j = CONTAINER_OF(job, struct file_job, job);
    if (j->len)
        j->err = fd_reserve(j->file->fd, 0, j->len);
}

static void file_reserve(struct ox_file *f, struct ox_op *op, uint64_t size)
{
    struct file_job *j = job_new(f->fs, posix_file_of(f), op, reserve_run, f->lane);
    j->len = size;
    job_start(j);
}

static void truncate_run(struct ox_job *job)
{
    struct file_job *j = CONTAINER_OF(job, struct file_job, job);
    while (ftruncate(j->file->fd, (off_t)j->len) != 0) {
        if (errno == EINTR)
            continue;
        j->err = last_error();
        return;
    }
}

static void file_truncate(struct ox_file *f, struct ox_op *op, uint64_t size)
{
    struct file_job *j = job_new(f->fs, posix_file_of(f), op, truncate_run, f->lane);
    j->len = size;
    job_start(j);
}

static void file_close(struct ox_file *file)
{
    struct posix_file *f = posix_file_of(file);
    OX_ASSERT(!f->closed);
    f->closed = true;
    file_free_if_over(f);
}

const struct ox_fs_body posix_fs_body = {
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
