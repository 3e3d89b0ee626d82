// inode.h - the bytes of one simulated file: a page cache over a platter, sector by sector.
#ifndef SIM_INODE_H
#define SIM_INODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/random.h"

#define SIM_PAGE_BYTES 4096u
#define SIM_SECTOR_BYTES 512u

struct sim_process;

// 4 KiB of a file. Pages of zeros that were never written are not stored.
struct sim_page {
    const uint8_t *platter; // the durable bytes where they differ from the cache (then the page is in `changed`), else NULL
    uint8_t dirty;          // a bit per sector: to be written by the next sync
    uint8_t stale;          // a bit per sector: differs, and no sync will write it (dropped by a failed one)
    struct ox_link link;
    uint8_t cache[SIM_PAGE_BYTES];
};

struct sim_inode {
    uint32_t refs;
    uint64_t size, platter_size; // bytes
    struct sim_page **pages;
    size_t page_count;
    struct ox_list changed;
    struct sim_process *locker; // who holds its lock, or NULL
    uint64_t *used;             // the disk's sum of sizes
    struct ox_link link;        // in the disk's list
};

// How much of what is unsynced survives a power cut.
enum sim_keep { SIM_KEEP_NONE, SIM_KEEP_ALL, SIM_KEEP_SOME, SIM_KEEP_FIRST, SIM_KEEP_COUNT };

// An empty file with one reference, in `list`; its size counts into *used.
struct sim_inode *sim_inode_new(struct ox_list *list, uint64_t *used);
struct sim_inode *sim_inode_ref(struct sim_inode *inode);
// One reference less; the last one frees it and takes it out of `list`.
void sim_inode_unref(struct ox_list *list, struct sim_inode *inode);
// Copies bytes out; offset + len must not pass the size.
void sim_inode_read(const struct sim_inode *inode, void *buf, size_t len, uint64_t offset);
// Writes bytes (NULL: zeros) into the cache; the file grows as needed.
void sim_inode_write(struct sim_inode *inode, const void *data, uint64_t offset, uint64_t len);
// Sets the size in the cache.
void sim_inode_resize(struct sim_inode *inode, uint64_t size);
// Makes dirty sectors and the size durable.
void sim_inode_sync(struct sim_inode *inode);
// A sync has failed: dirty sectors will not be written; with `at_once` readers see the old bytes from now on.
void sim_inode_drop(struct sim_inode *inode, bool at_once);
// A power cut: the cache becomes what the platter holds then.
void sim_inode_crash(struct sim_inode *inode, enum sim_keep keep, struct ox_random *random);
// Flips a bit in the cache and on the platter.
void sim_inode_flip(struct sim_inode *inode, uint64_t offset, unsigned bit);
// Writes bytes into the cache and onto the platter; the range must lie inside.
void sim_inode_poke(struct sim_inode *inode, const void *data, uint64_t offset, size_t len);

#endif
