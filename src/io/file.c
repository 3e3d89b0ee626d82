// file.c - the file port's thin dispatch: a dead process gets SHUTDOWN, everything else goes to the body.
#include "io/file.h"

#include "base/assert.h"
#include "base/mem.h"

void ox_dirlist_fini(struct ox_dirlist *list)
{
    for (size_t i = 0; i < list->count; i++)
        ox_free(list->items[i].name);
    ox_free(list->items);
    *list = (struct ox_dirlist){0};
}

// True where the process is dead; the operation has its answer then.
static bool file_refused(struct ox_fs *fs, struct ox_op *op)
{
    if (!fs->loop->dead)
        return false;
    ox_op_begin(op);
    ox_op_finish(op, OX_E_SHUTDOWN);
    return true;
}

void ox_file_open(struct ox_fs *fs, struct ox_op *op, enum ox_lane lane, const char *path, int flags,
                  struct ox_file **ret_file, uint64_t *ret_size)
{
    OX_ASSERT(flags & (OX_OPEN_READ | OX_OPEN_WRITE));
    if (!file_refused(fs, op))
        fs->body->open(fs, op, lane, path, flags, ret_file, ret_size);
}

void ox_file_read(struct ox_file *f, struct ox_op *op, void *buf, size_t len, uint64_t offset, size_t *ret_len)
{
    if (!file_refused(f->fs, op))
        f->fs->body->read(f, op, buf, len, offset, ret_len);
}

void ox_file_write(struct ox_file *f, struct ox_op *op, const struct iovec *iov, int iov_count, uint64_t offset, bool sync)
{
    OX_ASSERT(iov_count >= 0 && iov_count <= OX_IOV_MAX);
    if (!file_refused(f->fs, op))
        f->fs->body->write(f, op, iov, iov_count, offset, sync);
}

void ox_file_sync(struct ox_file *f, struct ox_op *op)
{
    if (!file_refused(f->fs, op))
        f->fs->body->sync(f, op);
}

void ox_file_zero(struct ox_file *f, struct ox_op *op, uint64_t offset, uint64_t len)
{
    if (!file_refused(f->fs, op))
        f->fs->body->zero(f, op, offset, len);
}

void ox_file_reserve(struct ox_file *f, struct ox_op *op, uint64_t size)
{
    if (!file_refused(f->fs, op))
        f->fs->body->reserve(f, op, size);
}

void ox_file_truncate(struct ox_file *f, struct ox_op *op, uint64_t size)
{
    if (!file_refused(f->fs, op))
        f->fs->body->truncate(f, op, size);
}

void ox_file_close(struct ox_file *f)
{
    f->fs->body->close(f);
}

void ox_fs_mkdir(struct ox_fs *fs, struct ox_op *op, const char *path)
{
    if (!file_refused(fs, op))
        fs->body->mkdir(fs, op, path);
}

void ox_fs_list(struct ox_fs *fs, struct ox_op *op, const char *path, struct ox_dirlist *ret_list)
{
    if (!file_refused(fs, op))
        fs->body->list(fs, op, path, ret_list);
}

void ox_fs_rename(struct ox_fs *fs, struct ox_op *op, const char *from, const char *to)
{
    if (!file_refused(fs, op))
        fs->body->rename(fs, op, from, to);
}

void ox_fs_unlink(struct ox_fs *fs, struct ox_op *op, const char *path)
{
    if (!file_refused(fs, op))
        fs->body->unlink(fs, op, path);
}

void ox_fs_sync_dir(struct ox_fs *fs, struct ox_op *op, const char *path)
{
    if (!file_refused(fs, op))
        fs->body->sync_dir(fs, op, path);
}

void ox_fs_space(struct ox_fs *fs, struct ox_op *op, const char *path, struct ox_space *ret_space)
{
    if (!file_refused(fs, op))
        fs->body->space(fs, op, path, ret_space);
}

void ox_fs_lock(struct ox_fs *fs, struct ox_op *op, const char *path, struct ox_file **ret_lock)
{
    if (!file_refused(fs, op))
        fs->body->lock(fs, op, path, ret_lock);
}
