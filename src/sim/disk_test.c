// disk_test.c - what the simulated disk keeps and loses.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "sim/sim_disk.h"

struct rig {
    struct ox_sim *sim;
    struct ox_sim_node *node;
    struct ox_op op;
};

static void rig_start(struct rig *r, uint64_t seed)
{
    r->sim = ox_sim_new(seed, NULL);
    r->node = ox_sim_node_new(r->sim, "a");
    ox_op_init(&r->op, ox_sim_loop(r->node), ox_sim_done, "op");
}

static enum ox_err rig_wait(struct rig *r)
{
    return ox_sim_wait(r->sim, &r->op);
}

static void rig_restart(struct rig *r, enum ox_sim_crash how)
{
    ox_sim_node_crash(r->node, how);
    ox_sim_node_restart(r->node);
    ox_op_init(&r->op, ox_sim_loop(r->node), ox_sim_done, "op");
}

static struct ox_file *rig_open(struct rig *r, const char *path, int flags)
{
    struct ox_file *f = NULL;
    ox_file_open(ox_sim_fs(r->node), &r->op, OX_LANE_JOURNAL, path, flags, &f, NULL);
    return rig_wait(r) == OX_OK ? f : NULL;
}

static enum ox_err rig_write(struct rig *r, struct ox_file *f, const void *data, size_t len, uint64_t offset, bool sync)
{
    struct iovec iov = {(void *)(uintptr_t)data, len};
    ox_file_write(f, &r->op, &iov, 1, offset, sync);
    return rig_wait(r);
}

static enum ox_err rig_sync_dir(struct rig *r, const char *path)
{
    ox_fs_sync_dir(ox_sim_fs(r->node), &r->op, path);
    return rig_wait(r);
}

static void test_disk_reads_what_was_written(void **state)
{
    (void)state;
    struct rig r;
    rig_start(&r, 1);
    struct ox_file *f = rig_open(&r, "./f", OX_OPEN_WRITE | OX_OPEN_CREATE);
    uint8_t data[10000], back[12000];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 7);
    assert_int_equal(rig_write(&r, f, data, sizeof(data), 100, false), OX_OK);
    ox_file_zero(f, &r.op, 4000, 200);
    assert_int_equal(rig_wait(&r), OX_OK);
    memset(data + 3900, 0, 200);
    size_t n = 0;
    ox_file_read(f, &r.op, back, sizeof(back), 100, &n);
    assert_int_equal(rig_wait(&r), OX_OK);
    assert_int_equal(n, sizeof(data));
    assert_memory_equal(back, data, n);
    ox_file_truncate(f, &r.op, 50);
    assert_int_equal(rig_wait(&r), OX_OK);
    ox_file_truncate(f, &r.op, 300);
    assert_int_equal(rig_wait(&r), OX_OK);
    ox_file_read(f, &r.op, back, sizeof(back), 0, &n);
    assert_int_equal(rig_wait(&r), OX_OK);
    assert_int_equal(n, 300);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(back[i], 0);
    ox_file_reserve(f, &r.op, 100);
    assert_int_equal(rig_wait(&r), OX_OK);
    ox_file_reserve(f, &r.op, 400);
    assert_int_equal(rig_wait(&r), OX_OK);
    ox_file_read(f, &r.op, back, sizeof(back), 0, &n);
    assert_int_equal(rig_wait(&r), OX_OK);
    assert_int_equal(n, 400); // the smaller size has shortened nothing
    ox_file_close(f);
    ox_sim_free(r.sim);
}

static void test_disk_process_crash_keeps_the_page_cache(void **state)
{
    (void)state;
    struct rig r;
    rig_start(&r, 2);
    struct ox_file *f = rig_open(&r, "f", OX_OPEN_WRITE | OX_OPEN_CREATE);
    assert_int_equal(rig_write(&r, f, "hello", 5, 0, false), OX_OK);
    rig_restart(&r, OX_SIM_CRASH_PROCESS);
    ox_file_close(f);
    char back[5];
    ox_sim_disk_peek(r.node, "f", 0, back, 5);
    assert_memory_equal(back, "hello", 5);
    ox_sim_free(r.sim);
}

// Over many seeds: synced bytes always survive a power cut, unsynced ones sometimes, torn ones by whole sectors.
static void test_disk_machine_crash_keeps_synced_bytes_and_tears_by_sector(void **state)
{
    (void)state;
    int lost = 0, kept = 0, torn = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct rig r;
        rig_start(&r, seed);
        struct ox_file *f = rig_open(&r, "f", OX_OPEN_WRITE | OX_OPEN_CREATE);
        uint8_t old[8192], fresh[8192], back[8192];
        memset(old, 'o', sizeof(old));
        memset(fresh, 'n', sizeof(fresh));
        assert_int_equal(rig_write(&r, f, old, sizeof(old), 0, true), OX_OK);
        assert_int_equal(rig_sync_dir(&r, "."), OX_OK);
        assert_int_equal(rig_write(&r, f, fresh, 5120, 1024, false), OX_OK);
        rig_restart(&r, OX_SIM_CRASH_MACHINE);
        ox_file_close(f);
        ox_sim_disk_peek(r.node, "f", 0, back, sizeof(back));
        int news = 0;
        for (size_t s = 0; s < 16; s++) {
            uint8_t first = back[s * 512];
            for (size_t i = 0; i < 512; i++)
                assert_int_equal(back[s * 512 + i], first);
            assert_true(first == 'o' || (first == 'n' && s >= 2 && s < 12));
            news += first == 'n';
        }
        lost += news == 0;
        kept += news == 10;
        torn += news > 0 && news < 10;
        ox_sim_free(r.sim);
    }
    assert_true(lost > 10 && kept > 10 && torn > 10);
}

static void test_disk_names_may_be_lost_until_their_directory_is_synced(void **state)
{
    (void)state;
    int lost = 0, kept = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct rig r;
        rig_start(&r, seed);
        uint64_t size;
        ox_fs_mkdir(ox_sim_fs(r.node), &r.op, "d");
        assert_int_equal(rig_wait(&r), OX_OK);
        struct ox_file *safe = rig_open(&r, "d/safe", OX_OPEN_WRITE | OX_OPEN_CREATE);
        assert_int_equal(rig_write(&r, safe, "x", 1, 0, true), OX_OK);
        assert_int_equal(rig_sync_dir(&r, "d"), OX_OK);
        struct ox_file *risky = rig_open(&r, "d/risky", OX_OPEN_WRITE | OX_OPEN_CREATE);
        assert_int_equal(rig_write(&r, risky, "x", 1, 0, true), OX_OK);
        rig_restart(&r, OX_SIM_CRASH_MACHINE);
        ox_file_close(safe);
        ox_file_close(risky);
        assert_true(ox_sim_disk_stat(r.node, "d/safe", &size));
        assert_int_equal(size, 1);
        if (ox_sim_disk_stat(r.node, "d/risky", &size))
            kept++;
        else
            lost++;
        ox_sim_free(r.sim);
    }
    assert_true(lost > 5 && kept > 5);
}

static void test_disk_rename_and_unlink_come_back_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct rig r;
        rig_start(&r, seed);
        uint64_t size;
        struct ox_file *a = rig_open(&r, "a", OX_OPEN_WRITE | OX_OPEN_CREATE);
        assert_int_equal(rig_write(&r, a, "aa", 2, 0, true), OX_OK);
        assert_int_equal(rig_sync_dir(&r, ""), OX_OK);
        ox_fs_rename(ox_sim_fs(r.node), &r.op, "a", "b");
        assert_int_equal(rig_wait(&r), OX_OK);
        ox_fs_unlink(ox_sim_fs(r.node), &r.op, "b");
        assert_int_equal(rig_wait(&r), OX_OK);
        ox_fs_unlink(ox_sim_fs(r.node), &r.op, "b");
        assert_int_equal(rig_wait(&r), OX_E_NOT_FOUND);
        rig_restart(&r, OX_SIM_CRASH_MACHINE);
        ox_file_close(a);
        assert_false(ox_sim_disk_stat(r.node, "a", &size) && ox_sim_disk_stat(r.node, "b", &size));
        ox_sim_free(r.sim);
    }
}

static void test_disk_failed_sync_drops_its_pages_for_good(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct rig r;
        rig_start(&r, seed);
        struct ox_file *f = rig_open(&r, "f", OX_OPEN_WRITE | OX_OPEN_CREATE);
        uint8_t data[4096] = {1}, back[4096];
        assert_int_equal(rig_write(&r, f, data, sizeof(data), 0, true), OX_OK);
        assert_int_equal(rig_sync_dir(&r, ""), OX_OK);
        data[0] = 2;
        assert_int_equal(rig_write(&r, f, data, sizeof(data), 0, false), OX_OK);
        ox_sim_disk_fail(r.node, OX_SIM_DISK_SYNC, 1);
        ox_file_sync(f, &r.op);
        assert_int_equal(rig_wait(&r), OX_E_IO);
        ox_file_sync(f, &r.op);
        assert_int_equal(rig_wait(&r), OX_OK);
        rig_restart(&r, OX_SIM_CRASH_MACHINE);
        ox_file_close(f);
        ox_sim_disk_peek(r.node, "f", 0, back, sizeof(back));
        assert_int_equal(back[0], 1);
        ox_sim_free(r.sim);
    }
}

static void test_disk_full_refuses_growth_and_goes_on(void **state)
{
    (void)state;
    struct rig r;
    rig_start(&r, 5);
    ox_sim_disk_set_capacity(r.node, 6000);
    struct ox_file *f = rig_open(&r, "f", OX_OPEN_WRITE | OX_OPEN_CREATE);
    uint8_t data[5000] = {0};
    assert_int_equal(rig_write(&r, f, data, sizeof(data), 0, true), OX_OK);
    assert_int_equal(rig_write(&r, f, data, sizeof(data), 2000, true), OX_E_NO_SPACE);
    assert_int_equal(rig_write(&r, f, data, sizeof(data), 0, true), OX_OK);
    struct ox_space space;
    ox_fs_space(ox_sim_fs(r.node), &r.op, "f", &space);
    assert_int_equal(rig_wait(&r), OX_OK);
    assert_int_equal(space.available, 1000);
    ox_file_close(f);
    ox_fs_unlink(ox_sim_fs(r.node), &r.op, "f");
    assert_int_equal(rig_wait(&r), OX_OK);
    assert_int_equal(rig_sync_dir(&r, ""), OX_OK);
    assert_int_equal(ox_sim_disk_used(r.node), 0);
    ox_sim_free(r.sim);
}

static void test_disk_errors_and_listing_are_those_of_a_file_system(void **state)
{
    (void)state;
    struct rig r;
    rig_start(&r, 6);
    struct ox_fs *fs = ox_sim_fs(r.node);
    assert_null(rig_open(&r, "none", OX_OPEN_READ));
    assert_int_equal(r.op.err, OX_E_NOT_FOUND);
    assert_null(rig_open(&r, "no/dir", OX_OPEN_WRITE | OX_OPEN_CREATE));
    assert_int_equal(r.op.err, OX_E_NOT_FOUND);
    ox_fs_mkdir(fs, &r.op, "d");
    assert_int_equal(rig_wait(&r), OX_OK);
    ox_fs_mkdir(fs, &r.op, "d/");
    assert_int_equal(rig_wait(&r), OX_OK);
    ox_fs_mkdir(fs, &r.op, "d/sub");
    assert_int_equal(rig_wait(&r), OX_OK);
    struct ox_file *b = rig_open(&r, "d/b", OX_OPEN_WRITE | OX_OPEN_CREATE | OX_OPEN_EXCLUSIVE);
    struct ox_file *a = rig_open(&r, "d//a", OX_OPEN_WRITE | OX_OPEN_CREATE);
    assert_null(rig_open(&r, "d/b", OX_OPEN_WRITE | OX_OPEN_CREATE | OX_OPEN_EXCLUSIVE));
    assert_int_equal(r.op.err, OX_E_EXISTS);
    assert_int_equal(rig_write(&r, a, "abc", 3, 0, false), OX_OK);
    struct ox_dirlist list;
    ox_fs_list(fs, &r.op, "d", &list);
    assert_int_equal(rig_wait(&r), OX_OK);
    assert_int_equal(list.count, 3);
    assert_string_equal(list.items[0].name, "a");
    assert_int_equal(list.items[0].size, 3);
    assert_string_equal(list.items[1].name, "b");
    assert_true(list.items[2].is_dir);
    ox_dirlist_fini(&list);
    ox_file_close(a);
    ox_file_close(b);
    ox_sim_free(r.sim);
}

static void test_disk_lock_is_exclusive_and_ends_with_its_process(void **state)
{
    (void)state;
    struct rig r;
    rig_start(&r, 7);
    struct ox_file *lock = NULL, *second = NULL;
    ox_fs_lock(ox_sim_fs(r.node), &r.op, "lock", &lock);
    assert_int_equal(rig_wait(&r), OX_OK);
    ox_fs_lock(ox_sim_fs(r.node), &r.op, "lock", &second);
    assert_int_equal(rig_wait(&r), OX_E_LOCKED);
    rig_restart(&r, OX_SIM_CRASH_PROCESS);
    ox_fs_lock(ox_sim_fs(r.node), &r.op, "lock", &second);
    assert_int_equal(rig_wait(&r), OX_OK);
    ox_file_close(lock);
    ox_file_close(second);
    ox_sim_free(r.sim);
}

static void test_disk_flip_changes_one_bit_that_a_restart_keeps(void **state)
{
    (void)state;
    struct rig r;
    rig_start(&r, 8);
    struct ox_file *f = rig_open(&r, "f", OX_OPEN_WRITE | OX_OPEN_CREATE);
    uint8_t data[9000] = {0}, back[9000];
    assert_int_equal(rig_write(&r, f, data, sizeof(data), 0, true), OX_OK);
    assert_int_equal(rig_sync_dir(&r, ""), OX_OK);
    assert_true(ox_sim_disk_flip(r.node, "f", 5000, 10));
    rig_restart(&r, OX_SIM_CRASH_MACHINE);
    ox_file_close(f);
    ox_sim_disk_peek(r.node, "f", 0, back, sizeof(back));
    int bits = 0;
    for (size_t i = 0; i < sizeof(back); i++) {
        bits += __builtin_popcount(back[i]);
        assert_true(!back[i] || (i >= 5000 && i < 5010));
    }
    assert_int_equal(bits, 1);
    ox_sim_free(r.sim);
}

static void test_disk_write_under_way_at_a_crash_happens_in_part(void **state)
{
    (void)state;
    int none = 0, some = 0, all = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct rig r;
        rig_start(&r, seed);
        struct ox_file *f = rig_open(&r, "f", OX_OPEN_WRITE | OX_OPEN_CREATE);
        uint8_t data[3000];
        memset(data, 1, sizeof(data));
        struct iovec iov = {data, sizeof(data)};
        ox_file_write(f, &r.op, &iov, 1, 0, true);
        ox_sim_node_crash(r.node, OX_SIM_CRASH_PROCESS);
        assert_int_equal(rig_wait(&r), OX_E_SHUTDOWN);
        uint64_t size = 0;
        assert_true(ox_sim_disk_stat(r.node, "f", &size));
        none += size == 0;
        all += size == sizeof(data);
        some += size > 0 && size < sizeof(data);
        ox_file_close(f);
        ox_sim_free(r.sim);
    }
    assert_true(none > 10 && some > 10 && all > 10);
}

#define MODEL_SECTORS 48

// What a sector may hold after a power cut: the value of the last good sync, or any written since.
struct model {
    uint8_t synced[MODEL_SECTORS], now[MODEL_SECTORS];
    bool maybe[MODEL_SECTORS][256];
};

static void model_settle(struct model *m, size_t s, uint8_t value)
{
    memset(m->maybe[s], 0, sizeof(m->maybe[s]));
    m->maybe[s][value] = true;
    m->now[s] = m->synced[s] = value;
}

static void model_write(struct rig *r, struct ox_file *f, struct model *m, struct ox_random *random, bool sync)
{
    uint8_t data[MODEL_SECTORS * 512], value = (uint8_t)ox_random_next(random);
    size_t first = ox_random_below(random, MODEL_SECTORS), count = ox_random_below(random, MODEL_SECTORS - first) + 1;
    memset(data, value, sizeof(data));
    assert_int_equal(rig_write(r, f, data, count * 512, first * 512, sync), OX_OK);
    for (size_t s = first; s < first + count; s++) {
        m->now[s] = value;
        m->maybe[s][value] = true;
    }
    for (size_t s = 0; sync && s < MODEL_SECTORS; s++)
        model_settle(m, s, m->now[s]);
}

static void model_check(struct rig *r, struct model *m, bool power_cut)
{
    uint8_t back[MODEL_SECTORS * 512];
    ox_sim_disk_peek(r->node, "f", 0, back, sizeof(back));
    for (size_t s = 0; s < MODEL_SECTORS; s++) {
        uint8_t value = back[s * 512];
        assert_true(power_cut ? m->maybe[s][value] : value == m->now[s]);
        assert_int_equal(value, back[s * 512 + 511]);
        if (power_cut)
            model_settle(m, s, value);
    }
}

static void test_disk_random_writes_and_power_cuts_agree_with_the_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct rig r;
        struct model m = {0};
        struct ox_random *random;
        rig_start(&r, seed);
        random = ox_sim_random(r.sim);
        struct ox_file *f = rig_open(&r, "f", OX_OPEN_WRITE | OX_OPEN_CREATE);
        ox_file_zero(f, &r.op, 0, MODEL_SECTORS * 512);
        assert_int_equal(rig_wait(&r), OX_OK);
        ox_file_sync(f, &r.op);
        assert_int_equal(rig_wait(&r), OX_OK);
        assert_int_equal(rig_sync_dir(&r, ""), OX_OK);
        for (size_t s = 0; s < MODEL_SECTORS; s++)
            model_settle(&m, s, 0);
        for (int i = 0; i < 60; i++) {
            uint64_t what = ox_random_below(random, 10);
            if (what < 8) {
                model_write(&r, f, &m, random, what < 3);
                model_check(&r, &m, false);
                continue;
            }
            rig_restart(&r, what == 8 ? OX_SIM_CRASH_MACHINE : OX_SIM_CRASH_PROCESS);
            ox_file_close(f);
            model_check(&r, &m, what == 8);
            f = rig_open(&r, "f", OX_OPEN_WRITE);
        }
        ox_file_close(f);
        ox_sim_free(r.sim);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_disk_reads_what_was_written),
        cmocka_unit_test(test_disk_process_crash_keeps_the_page_cache),
        cmocka_unit_test(test_disk_machine_crash_keeps_synced_bytes_and_tears_by_sector),
        cmocka_unit_test(test_disk_names_may_be_lost_until_their_directory_is_synced),
        cmocka_unit_test(test_disk_rename_and_unlink_come_back_in_order),
        cmocka_unit_test(test_disk_failed_sync_drops_its_pages_for_good),
        cmocka_unit_test(test_disk_full_refuses_growth_and_goes_on),
        cmocka_unit_test(test_disk_errors_and_listing_are_those_of_a_file_system),
        cmocka_unit_test(test_disk_lock_is_exclusive_and_ends_with_its_process),
        cmocka_unit_test(test_disk_flip_changes_one_bit_that_a_restart_keeps),
        cmocka_unit_test(test_disk_write_under_way_at_a_crash_happens_in_part),
        cmocka_unit_test(test_disk_random_writes_and_power_cuts_agree_with_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
