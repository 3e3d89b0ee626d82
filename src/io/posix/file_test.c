// file_test.c - the file port over a real temporary folder.
#include "io/posix/rig_test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct files {
    struct ox_loop *loop;
    struct ox_fs *fs;
    struct ox_op op;
    char dir[64];
};

static void files_start(struct files *t)
{
    t->loop = ox_posix_loop_new(NULL);
    t->fs = ox_posix_fs(t->loop);
    strcpy(t->dir, "/tmp/oxbow-file-XXXXXX");
    assert_non_null(mkdtemp(t->dir));
    ox_op_init(&t->op, t->loop, rig_op_done, "file");
}

static void files_end(struct files *t)
{
    struct ox_dirlist list;
    ox_fs_list(t->fs, &t->op, t->dir, &list);
    assert_int_equal(rig_wait(&t->op), OX_OK);
    for (size_t i = 0; i < list.count; i++) {
        OX_CLEANUP(ox_free_ptr)
        char *path = ox_asprintf("%s/%s", t->dir, list.items[i].name);
        assert_int_equal(list.items[i].is_dir ? rmdir(path) : unlink(path), 0);
    }
    ox_dirlist_fini(&list);
    assert_int_equal(rmdir(t->dir), 0);
    ox_posix_loop_free(t->loop);
}

static char *files_path(struct files *t, const char *name)
{
    return ox_asprintf("%s/%s", t->dir, name);
}

static enum ox_err files_open(struct files *t, const char *name, int flags, struct ox_file **ret, uint64_t *ret_size)
{
    OX_CLEANUP(ox_free_ptr)
    char *path = files_path(t, name);
    ox_file_open(t->fs, &t->op, OX_LANE_JOURNAL, path, flags, ret, ret_size);
    return rig_wait(&t->op);
}

static void test_posix_file_reads_what_many_parts_wrote(void **state)
{
    (void)state;
    struct files t;
    files_start(&t);
    struct ox_file *f;
    uint64_t size = 1;
    assert_int_equal(files_open(&t, "f", OX_OPEN_WRITE | OX_OPEN_CREATE, &f, &size), OX_OK);
    assert_int_equal(size, 0);
    uint8_t data[OX_IOV_MAX * 3], back[sizeof(data) + 10];
    struct iovec iov[OX_IOV_MAX];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 31);
    for (size_t i = 0; i < OX_IOV_MAX; i++)
        iov[i] = (struct iovec){data + i * 3, 3};
    ox_file_write(f, &t.op, iov, OX_IOV_MAX, 5, true);
    memset(iov, 0, sizeof(iov));
    assert_int_equal(rig_wait(&t.op), OX_OK);
    size_t n = 0;
    ox_file_read(f, &t.op, back, sizeof(back), 5, &n);
    assert_int_equal(rig_wait(&t.op), OX_OK);
    assert_int_equal(n, sizeof(data));
    assert_memory_equal(back, data, n);
    ox_file_zero(f, &t.op, 8, 3000000);
    assert_int_equal(rig_wait(&t.op), OX_OK);
    ox_file_sync(f, &t.op);
    assert_int_equal(rig_wait(&t.op), OX_OK);
    ox_file_close(f);
    assert_int_equal(files_open(&t, "f", OX_OPEN_READ, &f, &size), OX_OK);
    assert_int_equal(size, 3000008);
    ox_file_read(f, &t.op, back, 6, 5, &n);
    assert_int_equal(rig_wait(&t.op), OX_OK);
    assert_memory_equal(back, data, 3);
    assert_int_equal(back[3] | back[4] | back[5], 0);
    ox_file_close(f);
    files_end(&t);
}

// Whether the file system can write past the page cache or not, the bytes are the same.
static void test_posix_direct_writes_are_like_others(void **state)
{
    (void)state;
    enum { BLOCK = OX_DIRECT_ALIGN, BYTES = 64 * BLOCK };
    struct files t;
    files_start(&t);
    struct ox_file *f;
    assert_int_equal(files_open(&t, "f", OX_OPEN_WRITE | OX_OPEN_CREATE | OX_OPEN_DIRECT, &f, NULL), OX_OK);
    uint8_t *data = aligned_alloc(BLOCK, BYTES + BLOCK), *back = malloc(3 * BYTES);
    for (size_t i = 0; i < BYTES + BLOCK; i++)
        data[i] = (uint8_t)(i * 31 >> 3);
    size_t n = 0;
    ox_file_reserve(f, &t.op, 3 * BYTES);
    assert_int_equal(rig_wait(&t.op), OX_OK);
    ox_file_write(f, &t.op, &(struct iovec){data, BYTES}, 1, 0, true); // aligned
    assert_int_equal(rig_wait(&t.op), OX_OK);
    ox_file_write(f, &t.op, &(struct iovec){data + 1, BYTES}, 1, BYTES, true); // not in memory
    assert_int_equal(rig_wait(&t.op), OX_OK);
    ox_file_zero(f, &t.op, BLOCK, BLOCK);
    assert_int_equal(rig_wait(&t.op), OX_OK);
    ox_file_write(f, &t.op, &(struct iovec){data + BLOCK, BLOCK}, 1, 2 * BYTES, false); // small: in the page cache
    assert_int_equal(rig_wait(&t.op), OX_OK);
    ox_file_write(f, &t.op, &(struct iovec){data, BLOCK}, 1, 2 * BYTES, true); // small and synced: past it, over the same bytes
    assert_int_equal(rig_wait(&t.op), OX_OK);
    ox_file_read(f, &t.op, back, 3 * BYTES, 0, &n);
    assert_int_equal(rig_wait(&t.op), OX_OK);
    assert_int_equal(n, 3 * BYTES);
    for (size_t i = 0; i < 3 * BYTES; i++) {
        bool zero = i >= 2 * BYTES + BLOCK || (i >= BLOCK && i < 2 * BLOCK);
        uint8_t wanted = zero ? 0 : i < BYTES ? data[i] : i < 2 * BYTES ? data[i - BYTES + 1] : data[i - 2 * BYTES];
        if (back[i] != wanted)
            fail_msg("byte %zu is %u, not %u", i, back[i], wanted);
    }
    ox_file_close(f);
    free(data);
    free(back);
    files_end(&t);
}

static void test_posix_reserve_never_shortens(void **state)
{
    (void)state;
    struct files t;
    files_start(&t);
    struct ox_file *f;
    uint64_t size = 0;
    uint8_t byte = 7;
    size_t n = 0;
    assert_int_equal(files_open(&t, "f", OX_OPEN_WRITE | OX_OPEN_CREATE, &f, NULL), OX_OK);
    ox_file_write(f, &t.op, &(struct iovec){&byte, 1}, 1, 9999, false);
    assert_int_equal(rig_wait(&t.op), OX_OK);
    ox_file_reserve(f, &t.op, 5000);
    assert_int_equal(rig_wait(&t.op), OX_OK);
    ox_file_read(f, &t.op, &byte, 1, 9999, &n);
    assert_int_equal(rig_wait(&t.op), OX_OK);
    assert_int_equal(n * byte, 7);
    ox_file_reserve(f, &t.op, 20000);
    assert_int_equal(rig_wait(&t.op), OX_OK);
    ox_file_close(f);
    assert_int_equal(files_open(&t, "f", OX_OPEN_READ, &f, &size), OX_OK);
    assert_int_equal(size, 20000);
    ox_file_close(f);
    files_end(&t);
}

static void test_posix_file_truncate_sets_the_size(void **state)
{
    (void)state;
    struct files t;
    files_start(&t);
    struct ox_file *f;
    uint64_t size = 0;
    assert_int_equal(files_open(&t, "f", OX_OPEN_WRITE | OX_OPEN_CREATE, &f, NULL), OX_OK);
    ox_file_truncate(f, &t.op, 12345);
    assert_int_equal(rig_wait(&t.op), OX_OK);
    ox_file_close(f);
    assert_int_equal(files_open(&t, "f", OX_OPEN_READ, &f, &size), OX_OK);
    assert_int_equal(size, 12345);
    ox_file_close(f);
    files_end(&t);
}

static void test_posix_fs_errors_are_ours(void **state)
{
    (void)state;
    struct files t;
    files_start(&t);
    struct ox_file *f;
    assert_int_equal(files_open(&t, "none", OX_OPEN_READ, &f, NULL), OX_E_NOT_FOUND);
    assert_int_equal(files_open(&t, "f", OX_OPEN_WRITE | OX_OPEN_CREATE, &f, NULL), OX_OK);
    ox_file_close(f);
    assert_int_equal(files_open(&t, "f", OX_OPEN_WRITE | OX_OPEN_CREATE | OX_OPEN_EXCLUSIVE, &f, NULL), OX_E_EXISTS);
    OX_CLEANUP(ox_free_ptr)
    char *from = files_path(&t, "f"), *to = files_path(&t, "g"), *sub = files_path(&t, "sub");
    ox_fs_rename(t.fs, &t.op, from, to);
    assert_int_equal(rig_wait(&t.op), OX_OK);
    ox_fs_unlink(t.fs, &t.op, from);
    assert_int_equal(rig_wait(&t.op), OX_E_NOT_FOUND);
    ox_fs_mkdir(t.fs, &t.op, sub);
    assert_int_equal(rig_wait(&t.op), OX_OK);
    ox_fs_mkdir(t.fs, &t.op, sub);
    assert_int_equal(rig_wait(&t.op), OX_OK);
    ox_fs_mkdir(t.fs, &t.op, to);
    assert_int_equal(rig_wait(&t.op), OX_E_EXISTS);
    ox_fs_sync_dir(t.fs, &t.op, t.dir);
    assert_int_equal(rig_wait(&t.op), OX_OK);
    struct ox_space space = {0};
    ox_fs_space(t.fs, &t.op, t.dir, &space);
    assert_int_equal(rig_wait(&t.op), OX_OK);
    assert_true(space.total >= space.available && space.total > 0);
    files_end(&t);
}

static void test_posix_lock_is_exclusive_until_closed(void **state)
{
    (void)state;
    struct files t;
    files_start(&t);
    OX_CLEANUP(ox_free_ptr)
    char *path = files_path(&t, "lock");
    struct ox_file *first, *second;
    ox_fs_lock(t.fs, &t.op, path, &first);
    assert_int_equal(rig_wait(&t.op), OX_OK);
    ox_fs_lock(t.fs, &t.op, path, &second);
    assert_int_equal(rig_wait(&t.op), OX_E_LOCKED);
    ox_file_close(first);
    do
        ox_fs_lock(t.fs, &t.op, path, &second); // the close runs on a thread of its own lane
    while (rig_wait(&t.op) == OX_E_LOCKED);
    assert_int_equal(t.op.err, OX_OK);
    ox_file_close(second);
    files_end(&t);
}

static void test_posix_full_disk_is_no_space(void **state)
{
    (void)state;
    struct files t;
    files_start(&t);
    struct ox_file *f;
    struct iovec iov = {"x", 1};
    ox_file_open(t.fs, &t.op, OX_LANE_POOL, "/dev/full", OX_OPEN_WRITE, &f, NULL);
    assert_int_equal(rig_wait(&t.op), OX_OK);
    ox_file_write(f, &t.op, &iov, 1, 0, false);
    ox_file_close(f);
    assert_int_equal(rig_wait(&t.op), OX_E_NO_SPACE);
    files_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_posix_file_reads_what_many_parts_wrote),
        cmocka_unit_test(test_posix_direct_writes_are_like_others),
        cmocka_unit_test(test_posix_reserve_never_shortens),
        cmocka_unit_test(test_posix_file_truncate_sets_the_size),
        cmocka_unit_test(test_posix_fs_errors_are_ours),
        cmocka_unit_test(test_posix_lock_is_exclusive_until_closed),
        cmocka_unit_test(test_posix_full_disk_is_no_space),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
