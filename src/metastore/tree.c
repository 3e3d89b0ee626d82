// tree.c - the rules of the metadata tree: walking paths, versions, missing parents, sequences, ephemerals, and the events that a change causes.
#include "metastore/tree.h"

#include <string.h>

#include "base/mem.h"

// Where a walk along a path ended.
struct tree_walk {
    uint64_t parent; // id of the node above `name`
    bool parent_ephemeral;
    const char *name;         // the last segment, or the first one that is missing
    size_t len;               // of name
    bool found;               // the whole path exists
    struct ox_meta_node node; // if found; else the deepest node that exists
};

static size_t tree_segment(const char *segment)
{
    return strcspn(segment, "/");
}

// Walks the first path_len bytes of a path as far as nodes exist.
static enum ox_err tree_walk(struct ox_meta_nodes *n, const char *path, size_t path_len, struct tree_walk *w)
{
    *w = (struct tree_walk){.name = path};
    enum ox_err err = n->body->find(n, 0, "", 0, &w->node);
    if (err != OX_OK)
        return err == OX_E_NOT_FOUND ? OX_E_CORRUPT : err;
    const char *end = path + path_len, *segment = path + 1;
    while (segment < end) {
        w->parent = w->node.id;
        w->parent_ephemeral = w->node.stat.ephemeral_session != 0;
        w->name = segment;
        w->len = tree_segment(segment);
        err = n->body->find(n, w->parent, w->name, w->len, &w->node);
        if (err != OX_OK)
            return err == OX_E_NOT_FOUND ? OX_OK : err;
        segment += w->len + 1;
    }
    w->found = true;
    return OX_OK;
}

static enum ox_err tree_find(struct ox_meta_nodes *n, const char *path, struct ox_meta_node *ret)
{
    struct tree_walk w;
    enum ox_err err = tree_walk(n, path, strlen(path), &w);
    if (err == OX_OK && !w.found)
        err = OX_E_NOT_FOUND;
    if (err == OX_OK)
        *ret = w.node;
    return err;
}

static enum ox_err tree_get(struct ox_meta_nodes *n, struct ox_meta_request *r)
{
    struct ox_meta_node node;
    enum ox_err err = tree_find(n, r->path, &node);
    if (err != OX_OK)
        return err;
    r->stat = node.stat;
    r->value = ox_buf_copy(node.value.data, node.value.len);
    return OX_OK;
}

static enum ox_err tree_children(struct ox_meta_nodes *n, struct ox_meta_request *r)
{
    struct ox_meta_node node;
    enum ox_err err = tree_find(n, r->path, &node);
    if (err == OX_OK)
        err = n->body->children(n, node.id, r);
    if (err == OX_OK)
        ox_meta_request_sort_names(r);
    return err;
}

// Notes that the node whose path is the first `len` bytes came or went.
static void tree_note_birth(struct ox_meta_request *r, const char *path, size_t len, enum ox_meta_event event)
{
    ox_meta_request_note(r, path, len, event);
    while (path[len - 1] != '/')
        len--;
    ox_meta_request_note(r, path, len - 1, OX_META_CHILDREN_CHANGED);
}

static enum ox_err tree_create(struct ox_meta_nodes *n, struct ox_meta_request *r, const char *path,
                               struct tree_walk *w, struct ox_meta_node *node)
{
    enum ox_err err = n->body->new_id(n, &node->id);
    if (err != OX_OK)
        return err;
    node->stat.version = 0;
    node->stat.created_ms = node->stat.modified_ms = n->now_ms;
    err = n->body->store(n, w->parent, w->name, w->len, node);
    if (err == OX_OK)
        tree_note_birth(r, path, (size_t)(w->name + w->len - path), OX_META_CHANGED);
    return err;
}

// Makes the nodes that are missing above the last segment of a path whose walk ended early; w stands at the last segment then.
static enum ox_err tree_make_parents(struct ox_meta_nodes *n, struct ox_meta_request *r, const char *path,
                                     struct tree_walk *w)
{
    if (w->parent_ephemeral)
        return OX_E_INVALID;
    while (w->name[w->len] == '/') {
        struct ox_meta_node node = {0};
        enum ox_err err = tree_create(n, r, path, w, &node);
        if (err != OX_OK)
            return err;
        w->parent = node.id;
        w->name += w->len + 1;
        w->len = tree_segment(w->name);
    }
    return OX_OK;
}

static bool tree_version_matches(int64_t expected, bool exists, int64_t version)
{
    if (expected == OX_META_ANY)
        return true;
    return expected == OX_META_ABSENT ? !exists : exists && version == expected;
}

static enum ox_err tree_put_at(struct ox_meta_nodes *n, struct ox_meta_request *r, struct ox_meta_edit *e,
                               const char *path, int64_t expected)
{
    struct tree_walk w;
    enum ox_err err = tree_walk(n, path, strlen(path), &w);
    if (err != OX_OK)
        return err;
    if (!tree_version_matches(expected, w.found, w.node.stat.version))
        return OX_E_BAD_VERSION;
    struct ox_meta_node node = {.value = e->value};
    if (w.found) {
        node.id = w.node.id;
        node.stat = w.node.stat;
        node.stat.version++;
        node.stat.modified_ms = n->now_ms;
        err = n->body->store(n, w.parent, w.name, w.len, &node);
        if (err == OX_OK)
            ox_meta_request_note(r, path, strlen(path), OX_META_CHANGED);
    } else {
        node.stat.ephemeral_session = e->flags & OX_META_EPHEMERAL ? n->session_id : 0;
        err = tree_make_parents(n, r, path, &w);
        if (err == OX_OK)
            err = tree_create(n, r, path, &w, &node);
    }
    e->stat = node.stat;
    return err;
}

// Takes the next number of the path's parent, which is made if it is missing.
static enum ox_err tree_sequence(struct ox_meta_nodes *n, struct ox_meta_request *r, const char *path, uint64_t *ret)
{
    size_t parent_len = (size_t)(strrchr(path, '/') - path);
    struct tree_walk w;
    enum ox_err err = tree_walk(n, path, parent_len, &w);
    if (err != OX_OK)
        return err;
    if (w.found && w.node.stat.ephemeral_session)
        return OX_E_INVALID;
    uint64_t id = w.node.id;
    if (!w.found) {
        err = tree_make_parents(n, r, path, &w);
        id = w.parent;
    }
    return err == OX_OK ? n->body->next_sequence(n, id, ret) : err;
}

static enum ox_err tree_put(struct ox_meta_nodes *n, struct ox_meta_request *r, struct ox_meta_edit *e)
{
    if (!(e->flags & OX_META_SEQUENTIAL)) {
        e->real_path = ox_strdup(e->path);
        return tree_put_at(n, r, e, e->path, e->expected);
    }
    enum ox_err err;
    do { // a node of that name may have been made without the flag
        uint64_t number;
        err = tree_sequence(n, r, e->path, &number);
        if (err != OX_OK)
            return err;
        ox_free(e->real_path);
        e->real_path = ox_asprintf("%s%010llu", e->path, (unsigned long long)number);
        err = tree_put_at(n, r, e, e->real_path, OX_META_ABSENT);
    } while (err == OX_E_BAD_VERSION);
    return err;
}

static enum ox_err tree_delete(struct ox_meta_nodes *n, struct ox_meta_request *r, const struct ox_meta_edit *e)
{
    struct tree_walk w;
    enum ox_err err = tree_walk(n, e->path, strlen(e->path), &w);
    if (err != OX_OK)
        return err;
    if (!w.found)
        return OX_E_NOT_FOUND;
    if (!tree_version_matches(e->expected, true, w.node.stat.version))
        return OX_E_BAD_VERSION;
    uint64_t id = w.node.id;
    err = n->body->children(n, id, NULL);
    if (err != OX_E_NOT_FOUND)
        return err == OX_OK ? OX_E_NOT_EMPTY : err;
    err = n->body->remove(n, w.parent, w.name, w.len, id);
    if (err == OX_OK)
        tree_note_birth(r, e->path, strlen(e->path), OX_META_DELETED);
    return err;
}

static enum ox_err tree_check(struct ox_meta_nodes *n, const struct ox_meta_edit *e)
{
    struct tree_walk w;
    enum ox_err err = tree_walk(n, e->path, strlen(e->path), &w);
    if (err != OX_OK)
        return err;
    return tree_version_matches(e->expected, w.found, w.node.stat.version) ? OX_OK : OX_E_BAD_VERSION;
}

static enum ox_err tree_edit(struct ox_meta_nodes *n, struct ox_meta_request *r, struct ox_meta_edit *e)
{
    switch (e->kind) {
    case OX_META_CHECK: return tree_check(n, e);
    case OX_META_PUT: return tree_put(n, r, e);
    case OX_META_DELETE: return tree_delete(n, r, e);
    }
    OX_UNREACHABLE("edit kind");
}

static enum ox_err tree_write(struct ox_meta_nodes *n, struct ox_meta_request *r)
{
    for (size_t i = 0; i < r->edit_count; i++) {
        enum ox_err err = tree_edit(n, r, &r->edits[i]);
        if (err != OX_OK) {
            r->failed = i;
            return err;
        }
    }
    return OX_OK;
}

enum ox_err ox_meta_apply(struct ox_meta_nodes *n, struct ox_meta_request *r)
{
    switch (r->kind) {
    case OX_META_REQ_GET: return r->err = tree_get(n, r);
    case OX_META_REQ_CHILDREN: return r->err = tree_children(n, r);
    case OX_META_REQ_WRITE: return r->err = tree_write(n, r);
    case OX_META_REQ_CLOSE: return r->err = OX_OK;
    }
    OX_UNREACHABLE("request kind");
}
