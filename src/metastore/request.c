// request.c - turns calls on a store into requests and their results back into typed operations.
#include "metastore/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static struct ox_meta_request *request_new(struct ox_op *op, enum ox_meta_request_kind kind,
                                           void (*deliver)(struct ox_meta_request *r))
{
    struct ox_meta_request *r = ox_malloc(sizeof *r);
    r->kind = kind;
    r->op = op;
    r->deliver = deliver;
    return r;
}

static void request_submit(struct ox_meta *meta, struct ox_meta_request *r)
{
    struct ox_meta_store *store = CONTAINER_OF(meta, struct ox_meta_store, base);
    store->submit(store, r);
}

static struct ox_meta_edit *request_edits(struct ox_meta_request *r, size_t count)
{
    r->edits = ox_calloc(count, sizeof *r->edits);
    r->edit_count = count;
    return r->edits;
}

static void get_deliver(struct ox_meta_request *r)
{
    struct ox_meta_get *op = CONTAINER_OF(r->op, struct ox_meta_get, op);
    op->value = r->value;
    op->stat = r->stat;
    r->value = ox_buf_empty();
}

void ox_meta_request_get(struct ox_meta *meta, struct ox_meta_get *op, const char *path)
{
    struct ox_meta_request *r = request_new(&op->op, OX_META_REQ_GET, get_deliver);
    r->path = ox_strdup(path);
    request_submit(meta, r);
}

static void put_deliver(struct ox_meta_request *r)
{
    struct ox_meta_put *op = CONTAINER_OF(r->op, struct ox_meta_put, op);
    op->stat = r->edits[0].stat;
    op->path = r->edits[0].real_path;
    r->edits[0].real_path = NULL;
}

void ox_meta_request_put(struct ox_meta *meta, struct ox_meta_put *op, const char *path, struct ox_buf value,
                         int64_t expected, int flags)
{
    struct ox_meta_request *r = request_new(&op->op, OX_META_REQ_WRITE, put_deliver);
    *request_edits(r, 1) = (struct ox_meta_edit){
        .kind = OX_META_PUT, .path = ox_strdup(path), .value = ox_buf_ref(value), .expected = expected, .flags = flags};
    request_submit(meta, r);
}

void ox_meta_request_del(struct ox_meta *meta, struct ox_meta_del *op, const char *path, int64_t expected)
{
    struct ox_meta_request *r = request_new(&op->op, OX_META_REQ_WRITE, NULL);
    *request_edits(r, 1) = (struct ox_meta_edit){.kind = OX_META_DELETE, .path = ox_strdup(path), .expected = expected};
    request_submit(meta, r);
}

static void children_deliver(struct ox_meta_request *r)
{
    struct ox_meta_children *op = CONTAINER_OF(r->op, struct ox_meta_children, op);
    op->names = r->names;
    op->count = r->name_count;
    r->names = NULL;
    r->name_count = 0;
}

void ox_meta_request_children(struct ox_meta *meta, struct ox_meta_children *op, const char *path)
{
    struct ox_meta_request *r = request_new(&op->op, OX_META_REQ_CHILDREN, children_deliver);
    r->path = ox_strdup(path);
    request_submit(meta, r);
}

static void multi_deliver(struct ox_meta_request *r)
{
    struct ox_meta_multi *op = CONTAINER_OF(r->op, struct ox_meta_multi, op);
    op->failed = r->failed;
    for (size_t i = 0; i < r->edit_count && r->err == OX_OK; i++)
        op->steps[i].ret_version = r->edits[i].stat.version;
}

void ox_meta_request_multi(struct ox_meta *meta, struct ox_meta_multi *op)
{
    struct ox_meta_request *r = request_new(&op->op, OX_META_REQ_WRITE, multi_deliver);
    struct ox_meta_edit *edits = request_edits(r, op->count);
    for (size_t i = 0; i < op->count; i++) {
        const struct ox_meta_step *step = &op->steps[i];
        edits[i] = (struct ox_meta_edit){
            .kind = step->kind, .path = ox_strdup(step->path), .expected = step->expected, .flags = step->flags};
        if (step->kind == OX_META_PUT)
            edits[i].value = ox_buf_ref(step->value);
    }
    request_submit(meta, r);
}

void ox_meta_request_close(struct ox_meta *meta, struct ox_op *op)
{
    request_submit(meta, request_new(op, OX_META_REQ_CLOSE, NULL));
}

void ox_meta_request_watch(struct ox_meta *meta, struct ox_meta_watch *w)
{
    (void)meta;
    (void)w;
}

size_t ox_meta_request_bytes(const struct ox_meta_request *r)
{
    size_t bytes = 0;
    for (size_t i = 0; i < r->edit_count; i++)
        if (r->edits[i].kind == OX_META_PUT)
            bytes += r->edits[i].value.len + strlen(r->edits[i].path);
    return bytes;
}

void ox_meta_request_reset(struct ox_meta_request *r)
{
    ox_buf_unref(&r->value);
    ox_meta_names_free(r->names, r->name_count);
    r->names = NULL;
    r->name_count = r->name_cap = 0;
    for (size_t i = 0; i < r->note_count; i++)
        ox_free(r->notes[i].path);
    ox_free(r->notes);
    r->notes = NULL;
    r->note_count = r->note_cap = 0;
    for (size_t i = 0; i < r->edit_count; i++) {
        ox_free(r->edits[i].real_path);
        r->edits[i].real_path = NULL;
    }
    r->err = OX_OK;
    r->failed = 0;
}

static void request_free(struct ox_meta_request *r)
{
    ox_meta_request_reset(r);
    for (size_t i = 0; i < r->edit_count; i++) {
        ox_free(r->edits[i].path);
        ox_buf_unref(&r->edits[i].value);
    }
    ox_free(r->edits);
    ox_free(r->path);
    ox_free(r);
}

void ox_meta_request_finish(struct ox_meta_request *r)
{
    struct ox_op *op = r->op;
    enum ox_err err = r->err;
    if (r->deliver && (err == OX_OK || r->deliver == multi_deliver))
        r->deliver(r);
    request_free(r);
    ox_op_finish(op, err);
}

void ox_meta_request_note(struct ox_meta_request *r, const char *path, size_t path_len, enum ox_meta_event event)
{
    if (r->note_count == r->note_cap) {
        r->note_cap = r->note_cap ? r->note_cap * 2 : 8;
        r->notes = ox_realloc(r->notes, r->note_cap, sizeof *r->notes);
    }
    r->notes[r->note_count++] = (struct ox_meta_note){path_len ? ox_strndup(path, path_len) : ox_strdup("/"), event};
}

void ox_meta_request_add_name(struct ox_meta_request *r, const char *name, size_t len)
{
    if (r->name_count == r->name_cap) {
        r->name_cap = r->name_cap ? r->name_cap * 2 : 16;
        r->names = ox_realloc(r->names, r->name_cap, sizeof *r->names);
    }
    r->names[r->name_count++] = ox_strndup(name, len);
}

static int request_compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void ox_meta_request_sort_names(struct ox_meta_request *r)
{
    if (r->name_count)
        qsort(r->names, r->name_count, sizeof *r->names, request_compare_names);
}
