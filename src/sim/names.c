// names.c - directories in memory and on the platter, and the changes between the two.
#include "sim/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

enum change_kind { CHANGE_LINK, CHANGE_UNLINK, CHANGE_RENAME };

struct change {
    enum change_kind kind;
    char *path, *to;         // to: of a rename
    struct sim_inode *inode; // of a link or rename, a reference
    struct ox_link link;
};

static struct sim_name *names_in(const struct ox_map *map, const char *path)
{
    struct ox_map_node *node = ox_map_find_str(map, path);
    return node ? CONTAINER_OF(node, struct sim_name, node) : NULL;
}

static void names_remove(struct sim_names *t, struct ox_map *map, const char *path)
{
    struct sim_name *name = names_in(map, path);
    if (!name)
        return;
    ox_map_remove(map, &name->node);
    if (name->inode)
        sim_inode_unref(t->inodes, name->inode);
    ox_free(name->path);
    ox_free(name);
}

static void names_set(struct sim_names *t, struct ox_map *map, const char *path, struct sim_inode *inode)
{
    if (inode)
        sim_inode_ref(inode);
    names_remove(t, map, path);
    struct sim_name *name = ox_malloc(sizeof(*name));
    name->path = ox_strdup(path);
    name->inode = inode;
    ox_map_put_str(map, &name->node, name->path);
}

static void names_clear(struct sim_names *t, struct ox_map *map)
{
    for (struct ox_map_node *node; (node = ox_map_first(map));)
        names_remove(t, map, CONTAINER_OF(node, struct sim_name, node)->path);
}

void sim_names_init(struct sim_names *t, struct ox_list *inodes)
{
    *t = (struct sim_names){.inodes = inodes};
    ox_list_init(&t->pending);
    names_set(t, &t->dirs, "", NULL);
}

static void change_add(struct sim_names *t, enum change_kind kind, const char *path, const char *to, struct sim_inode *inode)
{
    struct change *c = ox_malloc(sizeof(*c));
    c->kind = kind;
    c->path = ox_strdup(path);
    c->to = to ? ox_strdup(to) : NULL;
    c->inode = inode ? sim_inode_ref(inode) : NULL;
    ox_list_push_back(&t->pending, &c->link);
}

static void change_free(struct sim_names *t, struct change *c)
{
    ox_list_remove(&t->pending, &c->link);
    if (c->inode)
        sim_inode_unref(t->inodes, c->inode);
    ox_free(c->path);
    ox_free(c->to);
    ox_free(c);
}

static void change_apply(struct sim_names *t, struct change *c)
{
    if (c->kind == CHANGE_LINK)
        names_set(t, &t->platter, c->path, c->inode);
    else
        names_remove(t, &t->platter, c->path);
    if (c->kind == CHANGE_RENAME)
        names_set(t, &t->platter, c->to, c->inode);
    change_free(t, c);
}

void sim_names_fini(struct sim_names *t)
{
    OX_LIST_EACH(&t->pending, link)
        change_free(t, CONTAINER_OF(link, struct change, link));
    names_clear(t, &t->now);
    names_clear(t, &t->platter);
    names_clear(t, &t->dirs);
}

char *sim_names_normal(const char *path)
{
    char *out = ox_malloc(strlen(path) + 1), *to = out;
    while (*path) {
        size_t n = strcspn(path, "/");
        if (n > 0 && !(n == 1 && path[0] == '.')) {
            if (to != out)
                *to++ = '/';
            memcpy(to, path, n);
            to += n;
        }
        path += n + (path[n] == '/');
    }
    *to = 0;
    return out;
}

struct sim_inode *sim_names_find(const struct sim_names *t, const char *path)
{
    struct sim_name *name = names_in(&t->now, path);
    return name ? name->inode : NULL;
}

bool sim_names_is_dir(const struct sim_names *t, const char *path)
{
    return names_in(&t->dirs, path) != NULL;
}

static size_t path_parent_len(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) : 0;
}

// True if the path's last part stands right in directory dir.
static bool path_is_in(const char *path, const char *dir)
{
    size_t n = path_parent_len(path);
    return n == strlen(dir) && memcmp(path, dir, n) == 0 && *path;
}

bool sim_names_has_parent(const struct sim_names *t, const char *path)
{
    return ox_map_find(&t->dirs, path, path_parent_len(path)) != NULL;
}

enum ox_err sim_names_mkdir(struct sim_names *t, const char *path)
{
    if (names_in(&t->now, path))
        return OX_E_EXISTS;
    if (!sim_names_has_parent(t, path))
        return OX_E_NOT_FOUND;
    if (!sim_names_is_dir(t, path))
        names_set(t, &t->dirs, path, NULL);
    return OX_OK;
}

void sim_names_link(struct sim_names *t, const char *path, struct sim_inode *inode)
{
    names_set(t, &t->now, path, inode);
    change_add(t, CHANGE_LINK, path, NULL, inode);
}

enum ox_err sim_names_unlink(struct sim_names *t, const char *path)
{
    if (!names_in(&t->now, path))
        return OX_E_NOT_FOUND;
    names_remove(t, &t->now, path);
    change_add(t, CHANGE_UNLINK, path, NULL, NULL);
    return OX_OK;
}

enum ox_err sim_names_rename(struct sim_names *t, const char *from, const char *to)
{
    struct sim_inode *inode = sim_names_find(t, from);
    if (!inode || !sim_names_has_parent(t, to))
        return OX_E_NOT_FOUND;
    if (strcmp(from, to) == 0)
        return OX_OK;
    change_add(t, CHANGE_RENAME, from, to, inode);
    names_remove(t, &t->now, from);
    names_set(t, &t->now, to, inode);
    return OX_OK;
}

static int dirent_compare(const void *a, const void *b)
{
    return strcmp(((const struct ox_dirent *)a)->name, ((const struct ox_dirent *)b)->name);
}

static void names_list_map(const struct ox_map *map, const char *dir, struct ox_dirlist *list)
{
    OX_MAP_EACH(map, node) {
        struct sim_name *name = CONTAINER_OF(node, struct sim_name, node);
        if (!path_is_in(name->path, dir))
            continue;
        list->items = ox_realloc(list->items, list->count + 1, sizeof(*list->items));
        const char *last = strrchr(name->path, '/');
        list->items[list->count++] = (struct ox_dirent){.name = ox_strdup(last ? last + 1 : name->path),
                                                        .size = name->inode ? name->inode->size : 0,
                                                        .is_dir = !name->inode};
    }
}

enum ox_err sim_names_list(const struct sim_names *t, const char *path, struct ox_dirlist *ret)
{
    if (!sim_names_is_dir(t, path))
        return OX_E_NOT_FOUND;
    *ret = (struct ox_dirlist){0};
    names_list_map(&t->now, path, ret);
    names_list_map(&t->dirs, path, ret);
    if (ret->count)
        qsort(ret->items, ret->count, sizeof(*ret->items), dirent_compare);
    return OX_OK;
}

enum ox_err sim_names_sync(struct sim_names *t, const char *path)
{
    if (!sim_names_is_dir(t, path))
        return OX_E_NOT_FOUND;
    OX_LIST_EACH(&t->pending, link) {
        struct change *c = CONTAINER_OF(link, struct change, link);
        if (path_is_in(c->path, path) || (c->to && path_is_in(c->to, path)))
            change_apply(t, c);
    }
    return OX_OK;
}

void sim_names_crash(struct sim_names *t, size_t keep)
{
    OX_LIST_EACH(&t->pending, link) {
        struct change *c = CONTAINER_OF(link, struct change, link);
        if (keep > 0 && keep--)
            change_apply(t, c);
        else
            change_free(t, c);
    }
    names_clear(t, &t->now);
    OX_MAP_EACH(&t->platter, node) {
        struct sim_name *name = CONTAINER_OF(node, struct sim_name, node);
        names_set(t, &t->now, name->path, name->inode);
    }
}
