// orphans.c - the sweep at process start: ledgers of this instance that no node names (a crash between create and record, or record and delete).
#include "mledger/mledger_int.h"

#include <string.h>

#define SWEEP_PAGE 256

struct sweep {
    struct ox_ml_factory *factory;
    struct ox_op *op;
    struct ox_seq seq;
    uint32_t place;
    int64_t below; // ledgers at or above it were made after the sweep began
    struct ox_next_id next;
    struct ox_ledger_list list;
    size_t at; // in list.items
    struct ox_meta_get get;
    struct ox_ledger_delete del;
    char *path;       // node of the log (or cursor) that `at` belongs to
    char *known_path; // node whose answer is `known`
    struct ox_buf known;
    bool known_exists;
    struct ox_record *record;
    bool topic_exists;
};

static ox_step sweep_place(struct ox_seq *s);
static ox_step sweep_bounded(struct ox_seq *s);
static ox_step sweep_page(struct ox_seq *s);
static ox_step sweep_listed(struct ox_seq *s);
static ox_step sweep_ledger(struct ox_seq *s);
static ox_step sweep_topic_read(struct ox_seq *s);
static ox_step sweep_cursor_read(struct ox_seq *s);
static ox_step sweep_delete(struct ox_seq *s);
static ox_step sweep_deleted(struct ox_seq *s);

static struct sweep *sweep_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct sweep, seq);
}

static void sweep_done(struct ox_seq *s, enum ox_err err)
{
    struct sweep *w = sweep_of(s);
    struct ox_op *op = w->op;
    ox_ledger_list_fini(&w->list);
    ox_record_free(w->record);
    ox_buf_unref(&w->known);
    ox_free(w->known_path);
    ox_free(w->path);
    ox_free(w);
    ox_op_finish(op, err);
}

void ox_ml_orphans_sweep(struct ox_ml_factory *f, struct ox_op *op)
{
    OX_ASSERT(f->instance);
    struct sweep *w = ox_malloc(sizeof *w);
    ox_op_begin(op);
    w->factory = f;
    w->op = op;
    w->record = ox_record_new();
    ox_seq_start(&w->seq, f->loop, "mledger.sweep", sweep_place, sweep_done);
}

static ox_step sweep_place(struct ox_seq *s)
{
    struct sweep *w = sweep_of(s);
    while (w->place < w->factory->router->count && !ox_router_place(w->factory->router, w->place))
        w->place++; // not open here
    if (w->place >= w->factory->router->count)
        return OX_FINISH(s, OX_OK);
    ox_seq_bind(s, &w->next.op, "mledger.sweep.bound");
    ox_place_next_id(ox_router_place(w->factory->router, w->place), &w->next);
    return OX_WAIT(s, sweep_bounded);
}

static ox_step sweep_bounded(struct ox_seq *s)
{
    struct sweep *w = sweep_of(s);
    if (s->err != OX_OK)
        return OX_FINISH(s, s->err);
    w->below = w->next.id;
    w->list.after = -1;
    return OX_GOTO(s, sweep_page);
}

static ox_step sweep_page(struct ox_seq *s)
{
    struct sweep *w = sweep_of(s);
    w->list.max = SWEEP_PAGE;
    ox_seq_bind(s, &w->list.op, "mledger.sweep.list");
    ox_ledger_list(ox_router_place(w->factory->router, w->place), &w->list);
    return OX_WAIT(s, sweep_listed);
}

static ox_step sweep_listed(struct ox_seq *s)
{
    struct sweep *w = sweep_of(s);
    if (s->err != OX_OK)
        return OX_FINISH(s, s->err);
    w->at = 0;
    return OX_GOTO(s, sweep_ledger);
}

static ox_step sweep_next(struct ox_seq *s)
{
    sweep_of(s)->at++;
    return OX_GOTO(s, sweep_ledger);
}

static ox_step sweep_page_over(struct ox_seq *s)
{
    struct sweep *w = sweep_of(s);
    bool last = w->list.count < SWEEP_PAGE || w->list.items[w->list.count - 1].id >= w->below;
    if (w->list.count > 0)
        w->list.after = w->list.items[w->list.count - 1].id;
    ox_ledger_list_fini(&w->list);
    if (!last)
        return OX_GOTO(s, sweep_page);
    w->place++;
    return OX_GOTO(s, sweep_place);
}

// What a ledger must carry to be looked at and to be deleted: this instance's name on a log's (or cursor's) ledger. A stranger's stays (rule 9).
static void sweep_owner(const struct sweep *w, struct ox_kv *ret)
{
    ox_kv_set(ret, "component", "managed-ledger");
    ox_kv_set(ret, "oxbow/instance", w->factory->instance);
}

static bool sweep_is_ours(const struct sweep *w, const struct ox_ledger_info *info)
{
    struct ox_kv owner = {0};
    sweep_owner(w, &owner);
    bool ours = ox_kv_contains(&info->custom, &owner) && ox_kv_find(&info->custom, "pulsar/managed-ledger");
    ox_kv_fini(&owner);
    return ours && info->id < w->below;
}

static ox_step sweep_read_node(struct ox_seq *s, char *take_path, ox_step_fn then, const char *name)
{
    struct sweep *w = sweep_of(s);
    ox_free(w->path);
    w->path = take_path;
    if (w->known_path && strcmp(w->known_path, w->path) == 0)
        return ox_seq_goto(s, then, name, OX_STEP_NEXT);
    ox_free(w->known_path);
    w->known_path = NULL;
    ox_buf_unref(&w->known);
    ox_seq_bind(s, &w->get.op, "mledger.sweep.node");
    ox_meta_get(w->factory->meta, &w->get, w->path);
    return ox_seq_goto(s, then, name, OX_STEP_WAIT);
}

// Keeps the answer, for the ledgers of the same log that follow.
static enum ox_err sweep_take_node(struct sweep *w, enum ox_err err)
{
    if (w->known_path)
        return OX_OK;
    if (err != OX_OK && err != OX_E_NOT_FOUND)
        return err;
    w->known_exists = err == OX_OK;
    w->known = w->known_exists ? w->get.value : ox_buf_empty();
    w->known_path = ox_strdup(w->path);
    return OX_OK;
}

static ox_step sweep_ledger(struct ox_seq *s)
{
    struct sweep *w = sweep_of(s);
    if (w->factory->sweep_stop)
        return OX_FINISH(s, OX_E_CANCELED);
    if (w->at >= w->list.count)
        return OX_GOTO(s, sweep_page_over);
    const struct ox_ledger_info *info = &w->list.items[w->at];
    if (!sweep_is_ours(w, info))
        return OX_GOTO(s, sweep_next);
    char *path = ox_asprintf("/managed-ledgers/%s", ox_kv_find(&info->custom, "pulsar/managed-ledger"));
    return sweep_read_node(s, path, sweep_topic_read, "sweep_topic_read");
}

// True if a record names a ledger, by whichever of its ids.
static bool sweep_record_names(const struct ox_record *r, int64_t id)
{
    for (size_t i = 0; i < ox_record_count(r); i++) {
        struct ox_record_ledger l = ox_record_get(r, i);
        if (l.id == id || l.physical == id)
            return true;
    }
    return false;
}

static ox_step sweep_topic_read(struct ox_seq *s)
{
    struct sweep *w = sweep_of(s);
    const struct ox_ledger_info *info = &w->list.items[w->at];
    enum ox_err err = sweep_take_node(w, s->err);
    if (err != OX_OK)
        return OX_FINISH(s, err);
    w->topic_exists = w->known_exists;
    const char *cursor = ox_kv_find(&info->custom, "pulsar/cursor");
    if (cursor)
        return sweep_read_node(s, ox_asprintf("%s/%s", w->path, cursor), sweep_cursor_read, "sweep_cursor_read");
    if (!w->topic_exists) {
        ox_warn(w->factory->log, "mledger.sweep.kept", "ledger=%lld path=%s hint=" OX_LOG_Q, (long long)info->id,
                w->path, "its topic has no node: kept, since the metadata may be what was lost");
        w->factory->kept_orphans.value++;
        return OX_GOTO(s, sweep_next);
    }
    if (ox_record_decode(w->record, w->known) != OX_OK || sweep_record_names(w->record, info->id))
        return OX_GOTO(s, sweep_next);
    return OX_GOTO(s, sweep_delete);
}

// True if a cursor's node names the ledger, or can't be understood.
static bool sweep_cursor_names(const struct sweep *w, int64_t ledger)
{
    struct ox_arena arena;
    Mldata__ManagedCursorInfo *info;
    ox_arena_init(&arena, OX_NODE_VALUE_BYTES_MAX * 16u);
    bool names = ox_cursor_decode(&arena, w->known, &info, NULL) != OX_OK || info->cursors_ledger_id == ledger;
    ox_arena_fini(&arena);
    return names;
}

static ox_step sweep_cursor_read(struct ox_seq *s)
{
    struct sweep *w = sweep_of(s);
    enum ox_err err = sweep_take_node(w, s->err);
    if (err != OX_OK)
        return OX_FINISH(s, err);
    if (w->known_exists && sweep_cursor_names(w, w->list.items[w->at].id))
        return OX_GOTO(s, sweep_next);
    return OX_GOTO(s, sweep_delete);
}

static ox_step sweep_delete(struct ox_seq *s)
{
    struct sweep *w = sweep_of(s);
    const struct ox_ledger_info *info = &w->list.items[w->at];
    struct ox_kv owner = {0};
    sweep_owner(w, &owner);
    ox_kv_set(&owner, "pulsar/managed-ledger", ox_kv_find(&info->custom, "pulsar/managed-ledger"));
    ox_info(w->factory->log, "mledger.sweep.orphan", "ledger=%lld path=%s", (long long)info->id, w->path);
    ox_seq_bind(s, &w->del.op, "mledger.sweep.delete");
    ox_router_delete(w->factory->router, &w->del, (struct ox_location){w->place, info->id, info->id}, &owner);
    ox_kv_fini(&owner);
    return OX_WAIT(s, sweep_deleted);
}

static ox_step sweep_deleted(struct ox_seq *s)
{
    struct sweep *w = sweep_of(s);
    if (s->err == OX_E_SHUTDOWN)
        return OX_FINISH(s, s->err);
    if (s->err == OX_OK)
        w->factory->orphans.value++;
    else if (s->err != OX_E_NO_LEDGER)
        ox_warn(w->factory->log, "mledger.sweep.failed", "ledger=%lld error=%s", (long long)w->list.items[w->at].id,
                ox_err_name(s->err));
    OX_CRASHPOINT(s->loop, "sweep.after_delete");
    return OX_GOTO(s, sweep_next);
}
