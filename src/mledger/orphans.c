// orphans.c - the sweep at process start, and of a place that is opened later: ledgers of this instance that no node names (a crash between create and record,
// or record and delete).
#include <string.h>

#include "mledger/deletes.h"
#include "mledger/named.h"
#include "mledger/offline.h"
#include "mledger/places.h"

#define SWEEP_PAGE 256

struct sweep;

// Ledgers of a place at or above an id were made after the sweep began.
struct sweep_bound {
    struct sweep *sweep;
    struct ox_next_id next;
    enum ox_err err; // not OK: the place is not swept
    bool late; // the process was at work when it was asked for: logs that are open here, or worked on, know what is theirs
};

struct sweep {
    struct ox_ml_factory *factory;
    struct ox_op *op;
    struct ox_seq seq;
    uint32_t place, end;        // places from `place` on, before `end`
    bool late;                  // not the start's, nor that again
    struct sweep_bound *bounds; // by place
    uint32_t bounds_pending;
    enum ox_err first; // error on the way
    struct ox_ledger_list list;
    size_t at; // in list.items
    struct ox_meta_get get;
    struct ox_ledger_delete del;
    struct ox_ledger_open namesake;
    struct ox_ledger_open again;
    char *path;       // node of the log (or cursor) that `at` belongs to
    char *known_path; // node whose answer is `known`
    struct ox_buf known;
    bool known_exists;
    bool topic_exists;
};

static ox_step sweep_place(struct ox_seq *s);
static ox_step sweep_page(struct ox_seq *s);
static ox_step sweep_listed(struct ox_seq *s);
static ox_step sweep_ledger(struct ox_seq *s);
static ox_step sweep_topic_read(struct ox_seq *s);
static ox_step sweep_intent_read(struct ox_seq *s);
static ox_step sweep_kept(struct ox_seq *s);
static ox_step sweep_cursor_read(struct ox_seq *s);
static ox_step sweep_namesake(struct ox_seq *s);
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
    ox_free(w->bounds);
    ox_buf_unref(&w->known);
    ox_free(w->known_path);
    ox_free(w->path);
    ox_free(w);
    ox_op_finish(op, err);
}

static void sweep_bounded(struct ox_op *op)
{
    struct sweep_bound *b = CONTAINER_OF(op, struct sweep_bound, next.op);
    b->err = op->err;
    if (op->err == OX_OK && !b->late)
        b->sweep->factory->sweep_bounds[b - b->sweep->bounds] = b->next.id;
    if (--b->sweep->bounds_pending == 0)
        ox_seq_resume(&b->sweep->seq, OX_OK);
}

// All places are asked at once, before anything else happens in this process: what is made from now on is above.
static void sweep_ask_bound(struct sweep *w, uint32_t place, bool first)
{
    struct ox_ml_factory *f = w->factory;
    struct sweep_bound *b = &w->bounds[place];
    *b = (struct sweep_bound){.sweep = w, .err = OX_E_PLACE_CLOSED, .late = !first};
    if (!ox_router_place(f->router, place)) {
        if (f->router->slots[place].err != OX_E_NO_PLACE) // a place that was unregistered is empty
            ox_warn(f->log, "mledger.sweep.place_away", "place=%s hint=" OX_LOG_Q, ox_router_name(f->router, place),
                    "not open: its ledgers are looked at when it is");
        return;
    }
    if (!w->late && place < f->sweep_bound_count && f->sweep_bounds[place] > 0) { // the start's sweep once more
        b->next.id = f->sweep_bounds[place];
        b->err = OX_OK;
        b->late = false;
        return;
    }
    w->bounds_pending++;
    ox_op_init(&b->next.op, f->loop, sweep_bounded, "mledger.sweep.bound");
    ox_place_next_id(ox_router_place(f->router, place), &b->next);
}

static ox_step sweep_start(struct ox_seq *s)
{
    return sweep_of(s)->bounds_pending ? OX_WAIT(s, sweep_place) : OX_GOTO(s, sweep_place);
}

static void sweep_begin(struct ox_ml_factory *f, struct ox_op *op, uint32_t first, uint32_t end, bool late)
{
    OX_ASSERT(f->instance);
    struct sweep *w = ox_malloc(sizeof *w);
    ox_op_begin(op);
    w->factory = f;
    w->op = op;
    w->place = first;
    w->end = end;
    w->late = late;
    w->bounds = ox_calloc(end, sizeof *w->bounds);
    bool start = !late && !f->sweep_bounds;
    if (start) {
        f->sweep_bounds = ox_calloc(end, sizeof *f->sweep_bounds);
        f->sweep_bound_count = end;
    }
    ox_seq_start(&w->seq, f->loop, "mledger.sweep", sweep_start, sweep_done);
    for (uint32_t place = first; place < end; place++)
        sweep_ask_bound(w, place, start);
}

void ox_ml_orphans_sweep(struct ox_ml_factory *f, struct ox_op *op)
{
    sweep_begin(f, op, 0, f->router->count, false);
}

void ox_ml_orphans_sweep_place(struct ox_ml_factory *f, struct ox_op *op, uint32_t place)
{
    sweep_begin(f, op, place, place + 1, true);
}

static ox_step sweep_place(struct ox_seq *s)
{
    struct sweep *w = sweep_of(s);
    if (w->place >= w->end)
        return OX_FINISH(s, w->first);
    enum ox_err err = w->bounds[w->place].err;
    if (err == OX_OK) {
        w->list.after = -1;
        return OX_GOTO(s, sweep_page);
    }
    if (err != OX_E_PLACE_CLOSED && w->first == OX_OK)
        w->first = err;
    w->place++;
    return OX_GOTO(s, sweep_place);
}

static ox_step sweep_page(struct ox_seq *s)
{
    struct sweep *w = sweep_of(s);
    if (!ox_router_place(w->factory->router, w->place)) { // closed meanwhile
        w->place++;
        return OX_GOTO(s, sweep_place);
    }
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

static int64_t sweep_below(const struct sweep *w)
{
    return w->bounds[w->place].next.id;
}

static ox_step sweep_page_over(struct ox_seq *s)
{
    struct sweep *w = sweep_of(s);
    bool last = w->list.count < SWEEP_PAGE || w->list.items[w->list.count - 1].id >= sweep_below(w);
    if (w->list.count > 0)
        w->list.after = w->list.items[w->list.count - 1].id;
    ox_ledger_list_fini(&w->list);
    if (!last)
        return OX_GOTO(s, sweep_page);
    w->place++;
    return OX_GOTO(s, sweep_place);
}

// What a ledger must carry to be looked at and to be deleted: this instance's name on a log's (or cursor's) ledger. A stranger's stays (rule 9).
static void sweep_owner(const struct sweep *w, const char *component, struct ox_kv *ret)
{
    ox_kv_set(ret, "component", component);
    ox_kv_set(ret, "oxbow/instance", w->factory->instance);
}

static bool sweep_is_compacted(const struct ox_ledger_info *info)
{
    const char *component = ox_kv_find(&info->custom, "component");
    return component && strcmp(component, OX_COMPONENT_COMPACTED) == 0;
}

static bool sweep_is_ours(const struct sweep *w, const struct ox_ledger_info *info)
{
    struct ox_kv owner = {0};
    sweep_owner(w, sweep_is_compacted(info) ? OX_COMPONENT_COMPACTED : "managed-ledger", &owner);
    bool ours = ox_kv_contains(&info->custom, &owner) && ox_kv_find(&info->custom, "pulsar/managed-ledger");
    ox_kv_fini(&owner);
    return ours && info->id < sweep_below(w);
}

// A ledger that tried out a place before a switch, left behind by a crash (move/storage/precheck.c). A later sweep leaves them: one may be at work.
static bool sweep_is_canary(const struct sweep *w, const struct ox_ledger_info *info)
{
    struct ox_kv canary = {0};
    sweep_owner(w, "canary", &canary);
    bool is = ox_kv_contains(&info->custom, &canary);
    ox_kv_fini(&canary);
    return is && !w->late && info->id < sweep_below(w);
}

// Somebody is at work with it: whoever moves storage adopts or deletes copies; a log that is open here, or whose nodes are being worked on, may be about to
// name what it has just made. Nothing that was made before the process began is named by it now but copies.
static bool sweep_is_in_hands(const struct sweep *w, const struct ox_ledger_info *info)
{
    const char *log = ox_kv_find(&info->custom, "pulsar/managed-ledger");
    if (ox_kv_find(&info->custom, OX_COPY_OF))
        return true;
    return w->bounds[w->place].late && (ml_is_claimed(w->factory, log) || ox_map_find_str(&w->factory->open, log));
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
    if (sweep_is_canary(w, info))
        return OX_GOTO(s, sweep_delete);
    if (!sweep_is_ours(w, info) || sweep_is_in_hands(w, info))
        return OX_GOTO(s, sweep_next);
    char *path = ox_asprintf("/managed-ledgers/%s", ox_kv_find(&info->custom, "pulsar/managed-ledger"));
    return sweep_read_node(s, path, sweep_topic_read, "sweep_topic_read");
}

// True if the node that was read names the ledger being looked at, or can't be understood.
static bool sweep_is_named(const struct sweep *w, bool cursor)
{
    const char *place = ox_router_name(w->factory->router, w->place);
    return ml_node_names(w->factory, w->known, cursor, place, w->list.items[w->at].id) != ML_NOT_NAMED;
}

// If the node says that the ledger of this id is elsewhere, that one must be there: where places were confused, this one may be the only one.
static ox_step sweep_unnamed(struct ox_seq *s, bool cursor)
{
    struct sweep *w = sweep_of(s);
    struct ox_location where;
    if (!ml_node_namesake(w->factory, w->known, cursor, w->list.items[w->at].id, &where))
        return OX_GOTO(s, sweep_delete);
    ox_seq_bind(s, &w->namesake.op, "mledger.sweep.namesake");
    ox_router_open(w->factory->router, &w->namesake, where, OX_OPEN_READ_ONLY, NULL);
    return OX_WAIT(s, sweep_namesake);
}

static ox_step sweep_namesake(struct ox_seq *s)
{
    struct sweep *w = sweep_of(s);
    if (s->err == OX_OK) {
        ox_ledger_release(w->namesake.ledger);
        return OX_GOTO(s, sweep_delete);
    }
    ox_error(w->factory->log, "mledger.sweep.contradiction", "ledger=%lld place=%s path=%s error=%s hint=" OX_LOG_Q,
             (long long)w->list.items[w->at].id, ox_router_name(w->factory->router, w->place), w->path,
             ox_err_name(s->err), "its node says that it is in another place, where it is not: kept");
    w->factory->kept_orphans.value++;
    return OX_GOTO(s, sweep_next);
}

static struct ox_location sweep_location(const struct sweep *w)
{
    int64_t id = w->list.items[w->at].id;
    return (struct ox_location){w->place, id, id};
}

// The topic may have been deleted; what could not be deleted with it waits as an intent.
static ox_step sweep_look_again(struct ox_seq *s)
{
    struct sweep *w = sweep_of(s);
    struct ox_kv owner = {0};
    ox_ml_owner(w->factory, ox_kv_find(&w->list.items[w->at].custom, "pulsar/managed-ledger"), NULL, &owner);
    ox_seq_bind(s, &w->get.op, "mledger.sweep.intent");
    ml_intent_get(w->factory, &w->get, ox_router_name(w->factory->router, w->place), sweep_location(w).physical, &owner);
    ox_kv_fini(&owner);
    return OX_WAIT(s, sweep_intent_read);
}

// Intents go after their ledgers: without one the ledger is gone since it was listed, or nobody deletes it.
static ox_step sweep_intent_read(struct ox_seq *s)
{
    struct sweep *w = sweep_of(s);
    if (s->err == OX_OK) {
        ox_buf_unref(&w->get.value);
        return OX_GOTO(s, sweep_next);
    }
    if (s->err != OX_E_NOT_FOUND)
        return OX_FINISH(s, s->err);
    ox_seq_bind(s, &w->again.op, "mledger.sweep.again");
    ox_router_open(w->factory->router, &w->again, sweep_location(w), OX_OPEN_READ_ONLY, NULL);
    return OX_WAIT(s, sweep_kept);
}

// Said only of a ledger that is still there and that nobody is deleting.
static ox_step sweep_kept(struct ox_seq *s)
{
    struct sweep *w = sweep_of(s);
    struct ox_location where = sweep_location(w);
    if (s->err == OX_OK)
        ox_ledger_release(w->again.ledger);
    if (s->err == OX_E_SHUTDOWN)
        return OX_FINISH(s, s->err);
    if (s->err == OX_E_NO_LEDGER || ml_is_discarded(w->factory, where))
        return OX_GOTO(s, sweep_next);
    ox_warn(w->factory->log, "mledger.sweep.kept", "ledger=%lld path=%s hint=" OX_LOG_Q, (long long)where.id, w->path,
            "its topic has no node: kept, since the metadata may be what was lost");
    w->factory->kept_orphans.value++;
    return OX_GOTO(s, sweep_next);
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
    if (!w->topic_exists)
        return sweep_look_again(s);
    return sweep_is_named(w, false) ? OX_GOTO(s, sweep_next) : sweep_unnamed(s, false);
}

static ox_step sweep_cursor_read(struct ox_seq *s)
{
    struct sweep *w = sweep_of(s);
    enum ox_err err = sweep_take_node(w, s->err);
    if (err != OX_OK)
        return OX_FINISH(s, err);
    if (!w->known_exists)
        return OX_GOTO(s, sweep_delete);
    return sweep_is_named(w, true) ? OX_GOTO(s, sweep_next) : sweep_unnamed(s, true);
}

static ox_step sweep_delete(struct ox_seq *s)
{
    struct sweep *w = sweep_of(s);
    const struct ox_ledger_info *info = &w->list.items[w->at];
    struct ox_kv owner = {0};
    const char *log = ox_kv_find(&info->custom, "pulsar/managed-ledger");
    const char *component = sweep_is_compacted(info) ? OX_COMPONENT_COMPACTED : "managed-ledger";
    sweep_owner(w, log ? component : "canary", &owner);
    if (log)
        ox_kv_set(&owner, "pulsar/managed-ledger", log);
    ox_info(w->factory->log, "mledger.sweep.orphan", "ledger=%lld path=%s", (long long)info->id, log ? w->path : "canary");
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
