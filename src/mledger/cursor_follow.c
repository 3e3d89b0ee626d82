// cursor_follow.c - a cursor leaves a place that isn't the active one: its next ledger is made and begun beside the flushes, which go on in the old one; only
// then does a flush switch over (cursor_store.c). A failure on the way leaves it where it was.
#include "mledger/cursor_impl.h"
#include "mledger/mledger_int.h"

struct ox_cursor *ox_cursor_of_follower(const struct ml_follower *w)
{
    return CONTAINER_OF(w, const struct cursor_impl, follower)->cursor;
}

struct ml_follower *ox_cursor_follower(struct ox_cursor *c)
{
    return &cursor_impl(c)->follower;
}

static uint32_t cursor_target(const struct cursor_impl *impl)
{
    return ox_ml_target(impl->cursor->ml->factory, impl->cursor->ml->name);
}

static bool cursor_ledger_is_elsewhere(const struct cursor_impl *impl)
{
    return impl->where.id >= 0 && impl->where.place != cursor_target(impl);
}

bool ox_cursor_is_elsewhere(const struct ox_cursor *c)
{
    const struct cursor_impl *impl = cursor_impl(c);
    bool works = c->durable && impl->failed == OX_OK && !impl->ending && !impl->creating && ml_is_open(c->ml);
    return works && cursor_ledger_is_elsewhere(impl);
}

void ox_cursors_check(struct ox_mledger *ml)
{
    OX_LIST_EACH(&ml->cursors, link)
        ml_follower_check(&cursor_impl(CONTAINER_OF(link, struct ox_cursor, link))->follower);
}

// ---- the next ledger, begun -------------------------------------------------------------------------------------------

static ox_step follow_made(struct ox_seq *s);
static ox_step follow_begun(struct ox_seq *s);

static struct cursor_follow *follow_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct cursor_follow, seq);
}

static ox_step follow_make(struct ox_seq *s)
{
    struct cursor_follow *w = follow_of(s);
    struct ox_kv custom = {0};
    cursor_custom(w->impl->cursor, &custom);
    ox_seq_bind(s, &w->create.op, "cursor.follow.create");
    ox_router_create_in(w->impl->cursor->ml->factory->router, &w->create, cursor_target(w->impl), -1, &custom);
    ox_kv_fini(&custom);
    return OX_WAIT(s, follow_made);
}

// Its first entry is the position that is stored now: it also shows that the place takes entries, before anybody's acknowledgement depends on that.
static ox_step follow_made(struct ox_seq *s)
{
    struct cursor_follow *w = follow_of(s);
    if (s->err != OX_OK)
        return OX_FINISH(s, s->err);
    OX_CRASHPOINT(s->loop, "follow.after_cursor_create");
    w->handle = w->create.ledger;
    w->where = w->create.location;
    w->first_pos = w->impl->stored_pos;
    w->first = cursor_pack_position(w->impl->cursor, w->first_pos);
    ox_seq_bind(s, &w->append.op, "cursor.follow.append");
    w->append.entry = 0;
    w->append.parts[0] = w->first;
    w->append.part_count = 1;
    ox_ledger_append(w->handle, &w->append);
    return OX_WAIT(s, follow_begun);
}

static ox_step follow_begun(struct ox_seq *s)
{
    if (s->err == OX_OK)
        OX_CRASHPOINT(s->loop, "follow.after_cursor_entry");
    return OX_FINISH(s, s->err);
}

static void follow_ready(struct ox_seq *s, enum ox_err err)
{
    struct cursor_follow *w = follow_of(s);
    struct cursor_impl *impl = w->impl;
    if (err == OX_OK && impl->failed == OX_OK && !impl->ending) {
        w->step = CURSOR_FOLLOW_READY;
        cursor_schedule(impl->cursor);
        return;
    }
    cursor_follow_end(impl, err == OX_OK ? OX_E_CLOSED : err);
    cursor_end_if_quiet(impl);
}

void ox_cursor_follow(struct ox_cursor *c, struct ox_op *op)
{
    struct cursor_impl *impl = cursor_impl(c);
    struct cursor_follow *w = ox_malloc(sizeof *w);
    OX_ASSERT(!impl->follow);
    ox_op_begin(op);
    w->impl = impl;
    w->op = op;
    impl->follow = w;
    if (!impl->handle && cursor_fits_node(c)) { // nothing is appended to its ledger any more
        w->step = CURSOR_FOLLOW_INTO_NODE;
        cursor_schedule(c);
        return;
    }
    w->step = CURSOR_FOLLOW_MAKING;
    ox_seq_start(&w->seq, c->ml->factory->loop, "cursor.follow", follow_make, follow_ready);
}

// ---- switching over ---------------------------------------------------------------------------------------------------

bool cursor_follow_waits(const struct cursor_impl *impl)
{
    return impl->follow && (impl->follow->step == CURSOR_FOLLOW_READY || impl->follow->step == CURSOR_FOLLOW_INTO_NODE);
}

bool cursor_follow_is_making(const struct cursor_impl *impl)
{
    return impl->follow && impl->follow->step == CURSOR_FOLLOW_MAKING;
}

// The ledger that was begun is the right one only if the cursor is still elsewhere, the place still the active one, and the position has not been moved back
// behind the first entry: a reader that finds the rest damaged would take that.
bool cursor_follow_take(struct cursor_impl *impl)
{
    struct cursor_follow *w = impl->follow;
    if (!w || w->step != CURSOR_FOLLOW_READY)
        return false;
    bool right = cursor_ledger_is_elsewhere(impl) && w->where.place == cursor_target(impl) &&
                 ox_pos_cmp(impl->stored_pos, w->first_pos) >= 0;
    if (!right) {
        cursor_follow_end(impl, OX_OK);
        return false;
    }
    w->step = CURSOR_FOLLOW_SWITCHING;
    impl->new_handle = w->handle;
    impl->new_where = w->where;
    w->handle = NULL;
    return true;
}

bool cursor_follow_into_node(struct cursor_impl *impl)
{
    struct cursor_follow *w = impl->follow;
    if (!w || w->step != CURSOR_FOLLOW_INTO_NODE)
        return false;
    bool right = cursor_ledger_is_elsewhere(impl) && !impl->handle && cursor_fits_node(impl->cursor);
    if (right)
        w->step = CURSOR_FOLLOW_SWITCHING;
    else
        cursor_follow_end(impl, OX_OK);
    return right;
}

bool cursor_follow_is_switching(const struct cursor_impl *impl)
{
    return impl->follow && impl->follow->step == CURSOR_FOLLOW_SWITCHING;
}

void cursor_follow_end(struct cursor_impl *impl, enum ox_err err)
{
    struct cursor_follow *w = impl->follow;
    struct ox_op *op = w->op;
    OX_ASSERT(!w->seq.active);
    impl->follow = NULL;
    if (w->handle) {
        ox_ledger_release(w->handle);
        cursor_discard(impl, w->where);
    }
    ox_buf_unref(&w->first);
    ox_free(w);
    ox_op_finish(op, err);
}

void cursor_follow_drop(struct cursor_impl *impl, enum ox_err err)
{
    if (cursor_follow_waits(impl))
        cursor_follow_end(impl, err);
}
