// nodes.c - walks the metadata tree, opened read-only: each node, then its children.
#include <inttypes.h>
#include <string.h>

#include "inspect/inspect_int.h"
#include "metastore/lmdb.h"

struct inspect_nodes {
    char *dir;
    struct ox_meta *meta;
    char **stack; // paths still to be shown, the next one last
    size_t count, cap;
    char *path; // being shown
    struct ox_meta_get get;
    struct ox_meta_children children;
    struct ox_str line;
};

static ox_step nodes_opened(struct ox_seq *s);
static ox_step nodes_next(struct ox_seq *s);
static ox_step nodes_got(struct ox_seq *s);
static ox_step nodes_children(struct ox_seq *s);
static ox_step nodes_closed(struct ox_seq *s);

static void nodes_push(struct inspect_nodes *n, char *give_path)
{
    if (n->count == n->cap) {
        n->cap = n->cap ? 2 * n->cap : 16;
        n->stack = ox_realloc(n->stack, n->cap, sizeof *n->stack);
    }
    n->stack[n->count++] = give_path;
}

// "/a/" is "/a".
static char *nodes_first_path(const char *prefix)
{
    size_t len = strlen(prefix);
    while (len > 1 && prefix[len - 1] == '/')
        len--;
    return ox_strndup(prefix, len);
}

ox_step inspect_nodes_start(struct ox_seq *s)
{
    struct inspect *i = inspect_of(s);
    struct inspect_nodes *n = i->nodes = ox_malloc(sizeof *n);
    n->dir = ox_asprintf("%s/metadata", i->dir);
    n->path = nodes_first_path(i->prefix ? i->prefix : "/");
    if (!ox_meta_path_valid(n->path) && strcmp(n->path, "/") != 0)
        return inspect_failed(i, OX_E_INVALID, n->path);
    struct ox_meta_lmdb_config config = {.dir = n->dir, .readonly = true};
    ox_seq_bind(s, &i->op, "inspect.metadata.open");
    ox_meta_lmdb_open(i->loop, &i->op, &config, &n->meta);
    return OX_WAIT(s, nodes_opened);
}

static ox_step nodes_opened(struct ox_seq *s)
{
    struct inspect *i = inspect_of(s);
    if (s->err != OX_OK)
        return inspect_failed(i, s->err, i->nodes->dir);
    nodes_push(i->nodes, i->nodes->path);
    i->nodes->path = NULL;
    return OX_GOTO(s, nodes_next);
}

static ox_step nodes_next(struct ox_seq *s)
{
    struct inspect *i = inspect_of(s);
    struct inspect_nodes *n = i->nodes;
    if (n->count == 0) {
        ox_seq_bind(s, &i->op, "inspect.metadata.close");
        ox_meta_close(n->meta, &i->op);
        return OX_WAIT(s, nodes_closed);
    }
    n->path = n->stack[--n->count];
    ox_seq_bind(s, &n->get.op, "inspect.node");
    ox_meta_get(n->meta, &n->get, n->path);
    return OX_WAIT(s, nodes_got);
}

static void nodes_show(struct inspect *i)
{
    struct inspect_nodes *n = i->nodes;
    if (strcmp(n->path, "/") != 0) {
        ox_str_adds(&n->line, "{\"path\":");
        line_string(&n->line, n->path);
        ox_str_addf(&n->line, ",\"version\":%" PRId64 ",\"hex\":", n->get.stat.version);
        line_hex(&n->line, n->get.value);
        ox_str_adds(&n->line, "}");
        line_emit(i, &n->line);
    }
    ox_buf_unref(&n->get.value);
}

// This node's part of the tree cannot be shown; the rest can.
static ox_step nodes_skip(struct inspect *i, enum ox_err err)
{
    struct inspect_nodes *n = i->nodes;
    OX_CLEANUP(ox_free_ptr)
    char *what = ox_asprintf("%s: node %s", n->dir, n->path);
    inspect_note(i, err, what);
    ox_free(n->path);
    n->path = NULL;
    return OX_GOTO(&i->seq, nodes_next);
}

static ox_step nodes_got(struct ox_seq *s)
{
    struct inspect *i = inspect_of(s);
    struct inspect_nodes *n = i->nodes;
    if (s->err != OX_OK)
        return nodes_skip(i, s->err);
    nodes_show(i);
    ox_seq_bind(s, &n->children.op, "inspect.children");
    ox_meta_children(n->meta, &n->children, n->path);
    return OX_WAIT(s, nodes_children);
}

static ox_step nodes_children(struct ox_seq *s)
{
    struct inspect *i = inspect_of(s);
    struct inspect_nodes *n = i->nodes;
    if (s->err != OX_OK)
        return nodes_skip(i, s->err);
    const char *parent = strcmp(n->path, "/") == 0 ? "" : n->path;
    for (size_t c = n->children.count; c-- > 0;)
        nodes_push(n, ox_asprintf("%s/%s", parent, n->children.names[c]));
    ox_meta_names_free(n->children.names, n->children.count);
    ox_free(n->path);
    n->path = NULL;
    return OX_GOTO(s, nodes_next);
}

static ox_step nodes_closed(struct ox_seq *s)
{
    return inspect_finished(inspect_of(s));
}

void inspect_nodes_free(struct inspect_nodes *n)
{
    if (!n)
        return;
    while (n->count > 0)
        ox_free(n->stack[--n->count]);
    ox_free(n->stack);
    ox_free(n->path);
    ox_free(n->dir);
    ox_str_fini(&n->line);
    ox_free(n);
}
