// metastore.c - checks and dispatches calls on a store; watches and session listeners, which every body shares.
#include "metastore/metastore.h"

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "metastore/lmdb.h"
#include "metastore/request.h"

#define META_SEQUENCE_DIGITS 10

void ox_meta_open(struct ox_loop *loop, struct ox_op *op, const char *url, struct ox_meta **ret)
{
    if (strcmp(url, "memory:") == 0) {
        ox_meta_memory_open(loop, op, ret);
        return;
    }
    if (strncmp(url, "lmdb:", 5) == 0 && url[5] != '\0') {
        const char *dir = url + 5;
        size_t len = strlen(dir), suffix = strlen("?readonly");
        bool readonly = len > suffix && strcmp(dir + len - suffix, "?readonly") == 0;
        OX_CLEANUP(ox_free_ptr)
        char *plain = ox_strndup(dir, readonly ? len - suffix : len);
        struct ox_meta_lmdb_config config = {.dir = plain, .readonly = readonly};
        ox_meta_lmdb_open(loop, op, &config, ret);
        return;
    }
    ox_error(loop->log, "metastore.url", "url=\"%s\" reason=\"unknown scheme, use lmdb:DIR or memory:\"", url);
    ox_op_begin(op);
    ox_op_finish(op, OX_E_INVALID);
}

void ox_meta_close(struct ox_meta *meta, struct ox_op *op)
{
    ox_op_begin(op);
    meta->body->close(meta, op);
}

static bool meta_segment_valid(const char *segment, size_t len)
{
    if (len == 0 || len > OX_NODE_NAME_BYTES_MAX)
        return false;
    if (len <= 2 && segment[0] == '.' && segment[len - 1] == '.')
        return false;
    return ox_utf8_valid(segment, len);
}

bool ox_meta_path_valid(const char *path)
{
    if (path[0] != '/')
        return false;
    if (path[1] == '\0')
        return true;
    for (const char *segment = path + 1;;) {
        size_t len = strcspn(segment, "/");
        if (!meta_segment_valid(segment, len))
            return false;
        if (segment[len] == '\0')
            return true;
        segment += len + 1;
    }
}

static enum ox_err meta_check_edit(enum ox_meta_kind kind, const char *path, size_t value_len, int64_t expected, int flags)
{
    if (!ox_meta_path_valid(path) || expected < OX_META_ANY)
        return OX_E_INVALID;
    if (kind != OX_META_CHECK && path[1] == '\0')
        return OX_E_INVALID;
    if (kind == OX_META_DELETE && expected == OX_META_ABSENT)
        return OX_E_INVALID;
    if (kind != OX_META_PUT)
        return OX_OK;
    if (flags & ~(OX_META_EPHEMERAL | OX_META_SEQUENTIAL))
        return OX_E_INVALID;
    if ((flags & OX_META_SEQUENTIAL) &&
        (expected >= 0 || strlen(strrchr(path, '/') + 1) + META_SEQUENCE_DIGITS > OX_NODE_NAME_BYTES_MAX))
        return OX_E_INVALID;
    return value_len > OX_NODE_VALUE_BYTES_MAX ? OX_E_TOO_BIG : OX_OK;
}

void ox_meta_get(struct ox_meta *meta, struct ox_meta_get *op, const char *path)
{
    ox_op_begin(&op->op);
    if (ox_meta_path_valid(path))
        meta->body->get(meta, op, path);
    else
        ox_op_finish(&op->op, OX_E_INVALID);
}

void ox_meta_put(struct ox_meta *meta, struct ox_meta_put *op, const char *path, struct ox_buf value, int64_t expected,
                 int flags)
{
    ox_op_begin(&op->op);
    enum ox_err err = meta_check_edit(OX_META_PUT, path, value.len, expected, flags);
    if (err == OX_OK)
        meta->body->put(meta, op, path, value, expected, flags);
    else
        ox_op_finish(&op->op, err);
}

void ox_meta_del(struct ox_meta *meta, struct ox_meta_del *op, const char *path, int64_t expected)
{
    ox_op_begin(&op->op);
    enum ox_err err = meta_check_edit(OX_META_DELETE, path, 0, expected, 0);
    if (err == OX_OK)
        meta->body->del(meta, op, path, expected);
    else
        ox_op_finish(&op->op, err);
}

void ox_meta_children(struct ox_meta *meta, struct ox_meta_children *op, const char *path)
{
    ox_op_begin(&op->op);
    if (ox_meta_path_valid(path))
        meta->body->children(meta, op, path);
    else
        ox_op_finish(&op->op, OX_E_INVALID);
}

void ox_meta_multi(struct ox_meta *meta, struct ox_meta_multi *op)
{
    ox_op_begin(&op->op);
    for (size_t i = 0; i < op->count; i++) {
        const struct ox_meta_step *step = &op->steps[i];
        enum ox_err err = meta_check_edit(step->kind, step->path, step->value.len, step->expected, step->flags);
        if (err != OX_OK) {
            op->failed = i;
            ox_op_finish(&op->op, err);
            return;
        }
    }
    meta->body->multi(meta, op);
}

void ox_meta_names_free(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ox_free(names[i]);
    ox_free(names);
}

void ox_meta_watch(struct ox_meta *meta, struct ox_meta_watch *w, const char *path)
{
    OX_ASSERT(ox_meta_path_valid(path));
    w->path = ox_strdup(path);
    w->meta = meta;
    ox_list_push_back(&meta->watches, &w->link);
    meta->body->watch(meta, w);
}

void ox_meta_unwatch(struct ox_meta_watch *w)
{
    if (!w->meta)
        return;
    w->meta->body->unwatch(w->meta, w);
    ox_list_remove(&w->meta->watches, &w->link);
    ox_free(w->path);
    w->path = NULL;
    w->meta = NULL;
}

void ox_meta_listen(struct ox_meta *meta, struct ox_meta_listener *l)
{
    ox_list_push_back(&meta->listeners, &l->link);
}

void ox_meta_unlisten(struct ox_meta *meta, struct ox_meta_listener *l)
{
    if (ox_link_linked(&l->link))
        ox_list_remove(&meta->listeners, &l->link);
}

void ox_meta_init(struct ox_meta *meta, const struct ox_meta_body *body, struct ox_loop *loop)
{
    meta->body = body;
    meta->loop = loop;
    meta->session = OX_META_CONNECTED;
    ox_list_init(&meta->listeners);
    ox_list_init(&meta->watches);
}

void ox_meta_fini(struct ox_meta *meta)
{
    OX_LIST_EACH(&meta->watches, link)
        ox_meta_unwatch(CONTAINER_OF(link, struct ox_meta_watch, link));
    OX_LIST_EACH(&meta->listeners, link)
        ox_list_remove(&meta->listeners, link);
}

// Calls fire() once for each watch that was there at the start, whatever watches are started and ended meanwhile: each is moved to the list's end before
// it is fired, so the walk is over when the marker is met.
static void meta_fire(struct ox_meta *meta, const char *path, enum ox_meta_event event)
{
    struct ox_meta_watch marker = {.path = NULL};
    ox_list_push_back(&meta->watches, &marker.link);
    for (struct ox_link *link = ox_list_first(&meta->watches); link != &marker.link; link = ox_list_first(&meta->watches)) {
        struct ox_meta_watch *w = CONTAINER_OF(link, struct ox_meta_watch, link);
        ox_list_remove(&meta->watches, link);
        ox_list_push_back(&meta->watches, link);
        if (!path || strcmp(w->path, path) == 0)
            w->fired(w, event);
    }
    ox_list_remove(&meta->watches, &marker.link);
}

void ox_meta_fire(struct ox_meta *meta, const char *path, enum ox_meta_event event)
{
    if (!ox_list_empty(&meta->watches))
        meta_fire(meta, path, event);
}

void ox_meta_fire_lost(struct ox_meta *meta)
{
    meta_fire(meta, NULL, OX_META_LOST);
}

void ox_meta_set_session(struct ox_meta *meta, enum ox_meta_session state)
{
    if (meta->session == state)
        return;
    meta->session = state;
    OX_LIST_EACH(&meta->listeners, link) {
        struct ox_meta_listener *l = CONTAINER_OF(link, struct ox_meta_listener, link);
        l->session(l, state);
    }
}
