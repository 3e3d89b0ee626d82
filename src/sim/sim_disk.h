// sim_disk.h - what a test can do to a node's simulated disk.
//
// The model. Files have pages of 4 KiB in sectors of 512 bytes; writes go to the page cache, a sync makes a file's dirty sectors and its size durable. Names live in
// memory until ox_fs_sync_dir on their directory (a file's sync does not make its name durable). Directories are durable when made.
// A power cut keeps for each file, by seed: nothing unsynced, all of it, a random choice of sectors, or the first sectors; of unsynced directory operations the first
// few, none or all. A write that was under way at a crash has happened not at all, in its first bytes, or wholly (unsynced).
// A failed sync drops the dirty pages: by seed readers see the old bytes at once, or only after the next power cut; later syncs succeed and do not bring them back.
// Not modelled: file times, rights, links, holes (a size is taken from the capacity whether written or not).
#ifndef SIM_SIM_DISK_H
#define SIM_SIM_DISK_H

#include "sim/sim.h"

// The bytes that all files of the node may have together; writes beyond get NO_SPACE. Default 1 TiB.
void ox_sim_disk_set_capacity(struct ox_sim_node *node, uint64_t bytes);
// Bytes of all files together.
uint64_t ox_sim_disk_used(const struct ox_sim_node *node);
// Flips one random bit in offset..offset+len of a file, in the cache and on the platter. False if there is no such file or byte.
bool ox_sim_disk_flip(struct ox_sim_node *node, const char *path, uint64_t offset, uint64_t len);
// How many bits were flipped so far, by ox_sim_disk_flip and by the fault rate.
uint64_t ox_sim_disk_flips(const struct ox_sim_node *node);

enum ox_sim_disk_op { OX_SIM_DISK_WRITE, OX_SIM_DISK_SYNC, OX_SIM_DISK_READ };
// Makes the nth operation of that kind from now (1 = the next) fail once with IO, with the effects described at struct ox_sim_faults. A write that syncs counts as
// both; if its sync part fails, the write is in the cache and dropped.
void ox_sim_disk_fail(struct ox_sim_node *node, enum ox_sim_disk_op kind, uint32_t nth);

// Looks at a file as it is now, without time passing: its size, or false if it is not there.
bool ox_sim_disk_stat(const struct ox_sim_node *node, const char *path, uint64_t *ret_size);
// Copies len bytes at offset (which must lie inside) out of a file as it is now.
void ox_sim_disk_peek(const struct ox_sim_node *node, const char *path, uint64_t offset, void *buf, size_t len);
// Writes bytes into a file as it is now, durably: damage by hand. The range must lie inside.
void ox_sim_disk_poke(struct ox_sim_node *node, const char *path, uint64_t offset, const void *buf, size_t len);

#endif
