// file.h - the file port: positional reads and vectored writes as operations on a lane of helper threads.
#ifndef IO_FILE_H
#define IO_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/str.h"
#include "io/direct.h"
#include "io/loop.h"

struct ox_fs;
struct ox_file;

#define OX_IOV_MAX 1024 // parts of one vectored write

enum ox_open_flags {
    OX_OPEN_READ = 1,
    OX_OPEN_WRITE = 2,     // read and write
    OX_OPEN_CREATE = 4,    // make it if it is not there
    OX_OPEN_EXCLUSIVE = 8, // with CREATE: EXISTS if it is there
    OX_OPEN_DIRECT = 16, // a hint: large or synced writes whose parts and offset are multiples of OX_DIRECT_ALIGN, in memory aligned to it, go past the page cache
};

// A directory entry.
struct ox_dirent {
    char *name;
    uint64_t size; // bytes
    bool is_dir;
};
struct ox_dirlist {
    struct ox_dirent *items;
    size_t count;
};
void ox_dirlist_fini(struct ox_dirlist *list);

// Free space of a file system.
struct ox_space {
    uint64_t total, available; // bytes
};

// What a body supplies. Each call begins `op` and finishes it later; out parameters are written before the finish, on success only; buffers stay the caller's
// and must live until then. Errors: NOT_FOUND, EXISTS, NO_SPACE, ACCESS, IO, LOCKED, SHUTDOWN (the process is dead).
struct ox_fs_body {
    void (*open)(struct ox_fs *fs, struct ox_op *op, enum ox_lane lane, const char *path, int flags,
                 struct ox_file **ret_file, uint64_t *ret_size);
    void (*mkdir)(struct ox_fs *fs, struct ox_op *op, const char *path);
    void (*list)(struct ox_fs *fs, struct ox_op *op, const char *path, struct ox_dirlist *ret_list);
    void (*rename)(struct ox_fs *fs, struct ox_op *op, const char *from, const char *to);
    void (*unlink)(struct ox_fs *fs, struct ox_op *op, const char *path);
    void (*sync_dir)(struct ox_fs *fs, struct ox_op *op, const char *path);
    void (*space)(struct ox_fs *fs, struct ox_op *op, const char *path, struct ox_space *ret_space);
    void (*lock)(struct ox_fs *fs, struct ox_op *op, const char *path,
                 struct ox_file **ret_lock); // exclusive, for the life of the file; LOCKED if another process holds it
    void (*read)(struct ox_file *f, struct ox_op *op, void *buf, size_t len, uint64_t offset, size_t *ret_len);
    void (*write)(struct ox_file *f, struct ox_op *op, const struct iovec *iov, int iov_count, uint64_t offset, bool sync);
    void (*sync)(struct ox_file *f, struct ox_op *op);
    void (*zero)(struct ox_file *f, struct ox_op *op, uint64_t offset, uint64_t len);
    void (*reserve)(struct ox_file *f, struct ox_op *op, uint64_t size);
    void (*truncate)(struct ox_file *f, struct ox_op *op, uint64_t size);
    void (*close)(struct ox_file *f); // at once for the caller; frees f when its pending operations are over
};

// A file system; bodies embed it first.
struct ox_fs {
    const struct ox_fs_body *body;
    struct ox_loop *loop;
};
// An open file; bodies embed it first. Operations on one file in one lane run in the order in which they were started (JOURNAL, META) or in any order (POOL).
struct ox_file {
    struct ox_fs *fs;
    enum ox_lane lane;
};

// Opens (or creates) a file whose operations run on `lane`; *ret_size is its size in bytes.
void ox_file_open(struct ox_fs *fs, struct ox_op *op, enum ox_lane lane, const char *path, int flags,
                  struct ox_file **ret_file, uint64_t *ret_size);
// Reads up to len bytes at offset; *ret_len is shorter only at the end of the file.
void ox_file_read(struct ox_file *f, struct ox_op *op, void *buf, size_t len, uint64_t offset, size_t *ret_len);
// Writes all parts at offset (at most OX_IOV_MAX), then, if `sync`, makes them durable (fdatasync) in the same job. After an error nothing is known of the range.
void ox_file_write(struct ox_file *f, struct ox_op *op, const struct iovec *iov, int iov_count, uint64_t offset, bool sync);
// fdatasync.
void ox_file_sync(struct ox_file *f, struct ox_op *op);
// Writes zeros over offset..offset+len (really written, so that later writes change no metadata).
void ox_file_zero(struct ox_file *f, struct ox_op *op, uint64_t offset, uint64_t len);
// Makes the file at least so long and takes the space for it from the disk; what is new reads as zeros. Durable with the next sync.
void ox_file_reserve(struct ox_file *f, struct ox_op *op, uint64_t size);
// Sets the size.
void ox_file_truncate(struct ox_file *f, struct ox_op *op, uint64_t size);
// Closes; the pointer is dead for the caller at once.
void ox_file_close(struct ox_file *f);
// Makes a directory; success if it is there already.
void ox_fs_mkdir(struct ox_fs *fs, struct ox_op *op, const char *path);
// Lists a directory (no "." and ".."), sorted by name.
void ox_fs_list(struct ox_fs *fs, struct ox_op *op, const char *path, struct ox_dirlist *ret_list);
// Renames within one file system, replacing the target.
void ox_fs_rename(struct ox_fs *fs, struct ox_op *op, const char *from, const char *to);
// Removes a file. NOT_FOUND if it is not there.
void ox_fs_unlink(struct ox_fs *fs, struct ox_op *op, const char *path);
// Makes creations, renames and removals in a directory durable.
void ox_fs_sync_dir(struct ox_fs *fs, struct ox_op *op, const char *path);
// Size and free space of the file system that holds path.
void ox_fs_space(struct ox_fs *fs, struct ox_op *op, const char *path, struct ox_space *ret_space);
// Takes an exclusive lock on a file (made if absent) for this process's life or until ox_file_close.
void ox_fs_lock(struct ox_fs *fs, struct ox_op *op, const char *path, struct ox_file **ret_lock);

#endif
