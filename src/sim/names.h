// names.h - the directory tree of a simulated disk: the names as programs see them and as a power cut would leave them.
#ifndef SIM_NAMES_H
#define SIM_NAMES_H

#include "base/map.h"
#include "io/file.h"
#include "sim/inode.h"

// A name of a file, in one of two maps.
struct sim_name {
    struct ox_map_node node;
    char *path;
    struct sim_inode *inode; // a reference
};

struct sim_names {
    struct ox_map now, platter; // struct sim_name by normalised path
    struct ox_map dirs;         // struct sim_name without inode
    struct ox_list pending;     // changes of `now` that `platter` does not have yet, in order
    struct ox_list *inodes;     // the disk's
};

// An empty tree with a root only; files are freed from `inodes`.
void sim_names_init(struct sim_names *t, struct ox_list *inodes);
void sim_names_fini(struct sim_names *t);
// A path without double slashes, "./" and a slash at the end ("" is the root). To be given to ox_free.
char *sim_names_normal(const char *path);
// The file of a normalised path, or NULL. Borrowed.
struct sim_inode *sim_names_find(const struct sim_names *t, const char *path);
// True if the path is a directory.
bool sim_names_is_dir(const struct sim_names *t, const char *path);
// True if the directory that would hold the path is there.
bool sim_names_has_parent(const struct sim_names *t, const char *path);
// Makes a directory. Errors: NOT_FOUND (its parent), EXISTS (a file of that name).
enum ox_err sim_names_mkdir(struct sim_names *t, const char *path) OX_CHECKED;
// Names a file (one more reference).
void sim_names_link(struct sim_names *t, const char *path, struct sim_inode *inode);
// Removes a name. Errors: NOT_FOUND.
enum ox_err sim_names_unlink(struct sim_names *t, const char *path) OX_CHECKED;
// Renames. Errors: NOT_FOUND.
enum ox_err sim_names_rename(struct sim_names *t, const char *from, const char *to) OX_CHECKED;
// Lists a directory, sorted. Errors: NOT_FOUND.
enum ox_err sim_names_list(const struct sim_names *t, const char *path, struct ox_dirlist *ret) OX_CHECKED;
// Makes the changes in a directory durable. Errors: NOT_FOUND.
enum ox_err sim_names_sync(struct sim_names *t, const char *path) OX_CHECKED;
// A power cut: of the pending changes the first `keep` survive; the names as seen are the durable ones then.
void sim_names_crash(struct sim_names *t, size_t keep);

#endif
