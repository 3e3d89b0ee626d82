// cursor_move.c - a cursor's position leaves a place that isn't the active one: by its owner if the log is open here, else from node to node without loading the
// log. At most settings.follow_max of the latter at once; the others wait, at no cost but their own memory.
#include "mledger/cursor_impl.h"
#include "mledger/offline.h"
#include "mledger/places.h"

#define MOVE_TRIES 3 // beginnings anew, when the node names another ledger than it did

struct cursor_move {
    struct ox_seq seq;
    struct ox_ml_factory *factory;
    struct ox_ml_cursor_move *m;
    char *path; // of the cursor's node
    struct ox_kv owner;
    struct ml_claim claim;
    bool claimed;
    struct ox_op follow; // of an open log's cursor
    struct ox_meta_get get;
    struct ox_buf node;      // as read
    struct ox_location from; // ledger that it names
    struct ox_ledger_open open;
    struct ox_read read;
    int64_t at;            // entry being read
    struct ox_buf entry;   // the position; empty: none was ever written
    struct ox_location to; // id -1: the node itself
    struct ox_router_create create;
    struct ox_append append;
    struct ox_ledger *handle; // of `to`; held until the node names it, so that nobody takes it for an orphan
    struct ml_node_edit edit;
    bool changed; // the node names another ledger than `from`
    int tries;
};

static ox_step move_claimed(struct ox_seq *s);
static ox_step move_followed(struct ox_seq *s);
static ox_step move_read(struct ox_seq *s);
static ox_step move_node(struct ox_seq *s);
static ox_step move_opened(struct ox_seq *s);
static ox_step move_entry(struct ox_seq *s);
static ox_step move_entry_read(struct ox_seq *s);
static ox_step move_choose(struct ox_seq *s);
static ox_step move_made(struct ox_seq *s);
static ox_step move_begun(struct ox_seq *s);
static ox_step move_write(struct ox_seq *s);
static ox_step move_written(struct ox_seq *s);

static struct cursor_move *move_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct cursor_move, seq);
}

static uint32_t move_target(const struct cursor_move *v)
{
    return ox_ml_target(v->factory, v->m->log);
}

// ---- how many at once -------------------------------------------------------------------------------------------------

static ox_step move_start(struct ox_seq *s)
{
    struct cursor_move *v = move_of(s);
    ox_seq_bind(s, &v->claim.op, "cursor.move.claim");
    ml_claim_shared(v->factory, &v->claim, v->m->log); // other cursors of the log may move meanwhile
    return OX_WAIT(s, move_claimed);
}

static void move_done(struct ox_seq *s, enum ox_err err);

static void move_begin(struct ox_ml_factory *f, struct ox_ml_cursor_move *m)
{
    struct cursor_move *v = ox_malloc(sizeof *v);
    struct ox_str path = {0};
    ox_str_addf(&path, "/managed-ledgers/%s/", m->log);
    ox_name_encode(&path, m->cursor);
    v->factory = f;
    v->m = m;
    m->private_ = v;
    v->path = ox_str_take(&path);
    ml_cursor_owner(f, m->log, m->cursor, &v->owner);
    f->follow->moves_active++;
    ox_seq_start(&v->seq, f->loop, "cursor.move", move_start, move_done);
}

static void move_begin_some(struct ox_ml_factory *f)
{
    struct ml_follow *t = f->follow;
    while (t->moves_active < OX_MAX(f->settings.follow_max, 1u) && !ox_list_empty(&t->moves))
        move_begin(f, CONTAINER_OF(ox_list_pop_front(&t->moves), struct ox_ml_cursor_move, op.link));
}

void ox_ml_cursor_move(struct ox_ml_factory *f, struct ox_ml_cursor_move *m)
{
    ox_op_begin(&m->op);
    m->already = false;
    m->private_ = NULL;
    ox_list_push_back(&f->follow->moves, &m->op.link);
    move_begin_some(f);
}

static void move_unclaim(struct cursor_move *v)
{
    if (v->claimed)
        ml_claim_release(&v->claim);
    v->claimed = false;
}

static void move_done(struct ox_seq *s, enum ox_err err)
{
    struct cursor_move *v = move_of(s);
    struct ox_ml_factory *f = v->factory;
    struct ox_ml_cursor_move *m = v->m;
    move_unclaim(v);
    ox_buf_unref(&v->node);
    ox_buf_unref(&v->entry);
    ox_kv_fini(&v->owner);
    ox_free(v->path);
    ox_free(v);
    f->follow->moves_active--;
    ox_op_finish(&m->op, err);
    move_begin_some(f);
}

// ---- whose it is ------------------------------------------------------------------------------------------------------

static ox_step move_is_done_already(struct ox_seq *s)
{
    move_of(s)->m->already = true;
    return OX_FINISH(s, OX_OK);
}

// An open log's cursor: its owner rolls it over.
static ox_step move_by_owner(struct ox_seq *s, struct ox_mledger *ml)
{
    struct cursor_move *v = move_of(s);
    struct ox_cursor *c = ox_cursor_find(ml, v->m->cursor);
    if (!c || !c->durable)
        return OX_FINISH(s, OX_E_NOT_FOUND);
    struct ox_location where = cursor_impl(c)->where;
    if (where.id < 0 || where.place == move_target(v))
        return OX_GOTO(s, move_is_done_already);
    if (v->m->expected >= 0 && v->m->expected != where.id)
        return OX_FINISH(s, OX_E_CONFLICT);
    if (!ox_cursor_is_elsewhere(c))
        return OX_FINISH(s, OX_E_BUSY); // it ends, or its log does
    move_unclaim(v);
    ox_seq_bind(s, &v->follow, "cursor.move.follow");
    ml_follower_now(ox_cursor_follower(c), &v->follow);
    return OX_WAIT(s, move_followed);
}

static ox_step move_followed(struct ox_seq *s)
{
    return OX_FINISH(s, s->err == OX_E_CLOSED ? OX_E_BUSY : s->err);
}

static ox_step move_claimed(struct ox_seq *s)
{
    struct cursor_move *v = move_of(s);
    struct ox_mledger *ml = NULL;
    v->claimed = true;
    switch (ml_presence(v->factory, v->m->log, &ml)) {
    case ML_AWAY: return OX_GOTO(s, move_read);
    case ML_HERE: return move_by_owner(s, ml);
    case ML_BETWEEN: break;
    }
    return OX_FINISH(s, OX_E_BUSY);
}

// ---- the position, as an opening would find it ------------------------------------------------------------------------

static ox_step move_failed(struct ox_seq *s, enum ox_err err, const char *what)
{
    struct cursor_move *v = move_of(s);
    ox_warn(v->factory->log, "cursor.move.failed", "log=%s cursor=%s at=%s place=%s ledger=%lld error=%s", v->m->log,
            v->m->cursor, what, ox_router_name(v->factory->router, v->from.place), (long long)v->from.id, ox_err_name(err));
    return OX_FINISH(s, err);
}

static ox_step move_read(struct ox_seq *s)
{
    struct cursor_move *v = move_of(s);
    v->changed = false;
    ox_buf_unref(&v->node);
    ox_buf_unref(&v->entry);
    ox_seq_bind(s, &v->get.op, "cursor.move.node");
    ox_meta_get(v->factory->meta, &v->get, v->path);
    return OX_WAIT(s, move_node);
}

static ox_step move_node(struct ox_seq *s)
{
    struct cursor_move *v = move_of(s);
    if (s->err != OX_OK)
        return OX_FINISH(s, s->err);
    v->node = v->get.value;
    enum ox_err err = cursor_node_find(v->factory, v->node, &v->from);
    if (err != OX_OK)
        return move_failed(s, err, "node");
    if (v->from.id < 0 || v->from.place == move_target(v))
        return OX_GOTO(s, move_is_done_already);
    if (v->m->expected >= 0 && v->m->expected != v->from.id)
        return OX_FINISH(s, OX_E_CONFLICT);
    ox_seq_bind(s, &v->open.op, "cursor.move.open");
    ox_router_open(v->factory->router, &v->open, v->from, OX_OPEN_RECOVER, &v->owner);
    return OX_WAIT(s, move_opened);
}

// A ledger that is not found, or cannot be reached, is not an empty one: nothing changes.
static ox_step move_opened(struct ox_seq *s)
{
    struct cursor_move *v = move_of(s);
    if (s->err != OX_OK)
        return move_failed(s, s->err, "ledger");
    v->at = v->open.ledger->info.last_entry;
    return v->at < 0 ? OX_GOTO(s, move_choose) : OX_GOTO(s, move_entry);
}

static ox_step move_entry(struct ox_seq *s)
{
    struct cursor_move *v = move_of(s);
    ox_seq_bind(s, &v->read.op, "cursor.move.entry");
    v->read.first = v->read.last = v->at;
    v->read.bytes_max = UINT64_MAX;
    ox_ledger_read(v->open.ledger, &v->read);
    return OX_WAIT(s, move_entry_read);
}

// From the last entry back to the first that can be understood. If there is none the ledger stays: whoever repairs it may find more than the node knows.
static ox_step move_entry_read(struct ox_seq *s)
{
    struct cursor_move *v = move_of(s);
    enum ox_err err = s->err;
    if (err == OX_OK) {
        v->entry = ox_buf_ref(v->read.entries[0]);
        ox_read_fini(&v->read);
        if (cursor_entry_is_position(v->entry))
            return OX_GOTO(s, move_choose);
        ox_buf_unref(&v->entry);
        err = OX_E_CORRUPT;
    }
    if (err == OX_E_CORRUPT && v->at > 0) {
        ox_warn(v->factory->log, "cursor.move.entry_corrupt", "log=%s cursor=%s ledger=%lld entry=%lld", v->m->log,
                v->m->cursor, (long long)v->from.id, (long long)v->at);
        v->at--;
        return OX_GOTO(s, move_entry);
    }
    ox_ledger_release(v->open.ledger);
    return move_failed(s, err, "entry");
}

// ---- its new home -----------------------------------------------------------------------------------------------------

static ox_step move_choose(struct ox_seq *s)
{
    struct cursor_move *v = move_of(s);
    ox_ledger_release(v->open.ledger);
    OX_CRASHPOINT(s->loop, "cursor_move.after_read");
    v->to = (struct ox_location){0, -1, -1};
    if (cursor_node_holds(v->factory, v->node, v->entry))
        return OX_GOTO(s, move_write);
    ox_seq_bind(s, &v->create.op, "cursor.move.create");
    ox_router_create_in(v->factory->router, &v->create, move_target(v), -1, &v->owner);
    return OX_WAIT(s, move_made);
}

// The very bytes of the last entry begin the next ledger.
static ox_step move_made(struct ox_seq *s)
{
    struct cursor_move *v = move_of(s);
    if (s->err != OX_OK)
        return move_failed(s, s->err, "create");
    v->handle = v->create.ledger;
    v->to = v->create.location;
    ox_seq_bind(s, &v->append.op, "cursor.move.append");
    v->append.entry = 0;
    v->append.parts[0] = v->entry;
    v->append.part_count = 1;
    ox_ledger_append(v->handle, &v->append);
    return OX_WAIT(s, move_begun);
}

// Lets go of the new ledger; certainly nothing names it: it is deleted.
static void move_let_go(struct cursor_move *v, bool discard)
{
    if (!v->handle)
        return;
    ox_ledger_release(v->handle);
    v->handle = NULL;
    if (discard)
        ml_discard(v->factory, v->to, &v->owner);
}

static ox_step move_begun(struct ox_seq *s)
{
    struct cursor_move *v = move_of(s);
    if (s->err != OX_OK) {
        enum ox_err err = s->err;
        move_let_go(v, true);
        return move_failed(s, err, "append");
    }
    OX_CRASHPOINT(s->loop, "cursor_move.after_ledger");
    return OX_GOTO(s, move_write);
}

static bool move_is_at(const struct ox_location *a, const struct ox_location *b)
{
    return a->id == b->id && (a->id < 0 || a->place == b->place);
}

// What the node is to be. Anything else than its home may have changed since it was read, and stays as it is now.
static enum ox_err move_edit(struct ml_node_edit *e, struct ox_buf value, struct ox_buf *ret_value)
{
    struct cursor_move *v = CONTAINER_OF(e, struct cursor_move, edit);
    struct ox_location now;
    enum ox_err err = cursor_node_find(v->factory, value, &now);
    if (err != OX_OK)
        return err;
    e->nothing = e->unsure && move_is_at(&now, &v->to);
    if (e->nothing)
        return OX_OK;
    v->changed = !move_is_at(&now, &v->from);
    return v->changed ? OX_E_CONFLICT : cursor_node_move(v->factory, value, v->entry, v->to, ret_value);
}

static ox_step move_write(struct ox_seq *s)
{
    struct cursor_move *v = move_of(s);
    v->edit.edit = move_edit;
    ox_seq_bind(s, &v->edit.op, "cursor.move.write");
    ml_node_edit_start(v->factory, &v->edit, v->path);
    return OX_WAIT(s, move_written);
}

static ox_step move_not_written(struct ox_seq *s)
{
    struct cursor_move *v = move_of(s);
    enum ox_err err = s->err;
    move_let_go(v, v->changed || !v->edit.unsure); // else the node may name it: the sweep for orphans finds out
    if (v->changed && ++v->tries < MOVE_TRIES)
        return OX_GOTO(s, move_read);
    return move_failed(s, v->changed ? OX_E_BUSY : err, "write");
}

static ox_step move_written(struct ox_seq *s)
{
    struct cursor_move *v = move_of(s);
    if (s->err != OX_OK)
        return OX_GOTO(s, move_not_written);
    OX_CRASHPOINT(s->loop, "cursor_move.after_node");
    move_let_go(v, false);
    ox_info(v->factory->log, "cursor.moved", "log=%s cursor=%s from=%s ledger=%lld to=%s", v->m->log, v->m->cursor,
            ox_router_name(v->factory->router, v->from.place), (long long)v->from.id,
            v->to.id < 0 ? "node" : ox_router_name(v->factory->router, v->to.place));
    ml_discard(v->factory, v->from, &v->owner);
    return OX_FINISH(s, OX_OK);
}
