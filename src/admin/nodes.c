// nodes.c - walking over the nodes below one.
#include "admin/nodes.h"

#include <string.h>

static ox_step nodes_down(struct ox_seq *s);
static ox_step nodes_get(struct ox_seq *s);

static struct admin_nodes *nodes_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct admin_nodes, seq);
}

static char *nodes_path(const struct admin_nodes *n)
{
    const char *name = n->names[n->at];
    return *name ? ox_asprintf("%s/%s", n->root, name) : ox_strdup(n->root);
}

static void nodes_found(struct admin_nodes *n)
{
    const char *above = n->names[n->at];
    n->next = ox_realloc(n->next, n->next_count + n->children.count + 1, sizeof *n->next);
    for (size_t i = 0; i < n->children.count; i++)
        n->next[n->next_count++] =
            *above ? ox_asprintf("%s/%s", above, n->children.names[i]) : ox_strdup(n->children.names[i]);
    ox_meta_names_free(n->children.names, n->children.count);
}

static ox_step nodes_listed(struct ox_seq *s)
{
    struct admin_nodes *n = nodes_of(s);
    if (s->err && s->err != OX_E_NOT_FOUND)
        return OX_FINISH(s, s->err);
    if (!s->err)
        nodes_found(n);
    n->at++;
    return OX_GOTO(s, nodes_down);
}

static void nodes_level(struct admin_nodes *n)
{
    ox_meta_names_free(n->names, n->count);
    n->names = n->next;
    n->count = n->next_count;
    n->next = NULL;
    n->at = n->next_count = 0;
    n->depth--;
}

static ox_step nodes_down(struct ox_seq *s)
{
    struct admin_nodes *n = nodes_of(s);
    if (n->at == n->count)
        nodes_level(n);
    if (n->depth == 0)
        return n->see ? OX_GOTO(s, nodes_get) : OX_FINISH(s, OX_OK);
    if (n->count == 0)
        return OX_FINISH(s, OX_OK);
    OX_CLEANUP(ox_free_ptr)
    char *path = nodes_path(n);
    n->children = (struct ox_meta_children){0};
    ox_seq_bind(s, &n->children.op, "nodes.children");
    ox_meta_children(n->request->admin->shard->meta, &n->children, path);
    return OX_WAIT(s, nodes_listed);
}

// A node that has gone meanwhile, or holds no JSON, is passed over.
static ox_step nodes_got(struct ox_seq *s)
{
    struct admin_nodes *n = nodes_of(s);
    if (s->err && s->err != OX_E_NOT_FOUND)
        return OX_FINISH(s, s->err);
    if (!s->err) {
        json_t *value = json_loadb((const char *)n->get.value.data, n->get.value.len, 0, NULL);
        ox_buf_unref(&n->get.value);
        n->ended = value && !n->see(n, n->names[n->at], value);
        json_decref(value);
    }
    n->at++;
    return n->ended ? OX_FINISH(s, OX_OK) : OX_GOTO(s, nodes_get);
}

static ox_step nodes_get(struct ox_seq *s)
{
    struct admin_nodes *n = nodes_of(s);
    if (n->at == n->count)
        return OX_FINISH(s, OX_OK);
    OX_CLEANUP(ox_free_ptr)
    char *path = nodes_path(n);
    ox_seq_bind(s, &n->get.op, "nodes.get");
    ox_meta_get(n->request->admin->shard->meta, &n->get, path);
    return OX_WAIT(s, nodes_got);
}

static void nodes_done(struct ox_seq *s, enum ox_err err)
{
    struct admin_nodes *n = nodes_of(s);
    if (err)
        admin_error(n->request, err, n->root, NULL);
    else if (!n->ended)
        n->done(n);
    ox_meta_names_free(n->names, n->count);
    ox_meta_names_free(n->next, n->next_count);
    json_decref(n->result);
    ox_free(n->root);
    ox_free(n);
}

void admin_nodes_read(struct admin_request *r, char *take_root, unsigned depth, const void *arg,
                      bool (*see)(struct admin_nodes *n, const char *name, const json_t *value),
                      void (*done)(struct admin_nodes *n))
{
    struct admin_nodes *n = ox_malloc(sizeof *n);
    n->request = r;
    n->root = take_root;
    n->depth = depth;
    n->arg = arg;
    n->see = see;
    n->done = done;
    n->result = json_object();
    n->names = ox_malloc(sizeof *n->names);
    n->names[n->count++] = ox_strdup("");
    ox_seq_start(&n->seq, r->admin->shard->loop, "admin.nodes", nodes_down, nodes_done);
}

static void nodes_answer(struct admin_nodes *n)
{
    admin_json(n->request, HTTP_OK, admin_names(n->names, n->count));
}

void admin_nodes_list(struct admin_request *r, char *take_root)
{
    admin_nodes_read(r, take_root, 1, NULL, NULL, nodes_answer);
}
