// cursor_recover.c - opening the cursors of a log from their nodes and ledgers, and ending them all.
#include <string.h>

#include "mledger/cursor_impl.h"

struct cursor_recovery {
    struct ox_seq seq;
    struct ox_mledger *ml;
    struct ox_op *op;
    struct ox_meta_children children;
    size_t next;              // index of the next name
    struct ox_cursor *cursor; // being opened
    struct ox_location where; // its ledger
    struct ox_meta_get get;
    struct ox_ledger_open open;
    struct ox_read read;
    int64_t entry; // of the cursor ledger, being tried
};

static ox_step recovery_next(struct ox_seq *s);
static ox_step recovery_node(struct ox_seq *s);
static ox_step recovery_opened(struct ox_seq *s);
static ox_step recovery_try_entry(struct ox_seq *s);
static ox_step recovery_entry(struct ox_seq *s);
static ox_step recovery_settle(struct ox_seq *s);

static struct cursor_recovery *recovery_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct cursor_recovery, seq);
}

static struct ox_log *recovery_log(struct cursor_recovery *r)
{
    return r->ml->factory->log;
}

static ox_step recovery_names(struct ox_seq *s)
{
    if (s->err == OX_E_NOT_FOUND)
        return OX_FINISH(s, OX_OK);
    return s->err == OX_OK ? OX_GOTO(s, recovery_next) : OX_FINISH(s, s->err);
}

static ox_step recovery_start(struct ox_seq *s)
{
    struct cursor_recovery *r = recovery_of(s);
    ox_seq_bind(s, &r->children.op, "cursors.list");
    ox_meta_children(r->ml->factory->meta, &r->children, r->ml->path);
    return OX_WAIT(s, recovery_names);
}

static ox_step recovery_next(struct ox_seq *s)
{
    struct cursor_recovery *r = recovery_of(s);
    if (r->next == r->children.count)
        return OX_FINISH(s, OX_OK);
    const char *encoded = r->children.names[r->next++];
    struct ox_str name = {0};
    if (ox_name_decode(&name, encoded) != OX_OK) {
        ox_warn(recovery_log(r), "cursor.name.bad", "log=%s node=%s", r->ml->name, encoded);
        ox_mledger_hold_trim(r->ml); // whoever it belongs to, its position is not known
        ox_str_fini(&name);
        return OX_GOTO(s, recovery_next);
    }
    r->cursor = cursor_new(r->ml, ox_str_get(&name), true, ox_ml_clamp(r->ml, OX_POS_EARLIEST));
    ox_str_fini(&name);
    cursor_impl(r->cursor)->failed = OX_E_SHUTDOWN; // until its position is known nothing may be written for it
    ox_seq_bind(s, &r->get.op, "cursor.node.read");
    ox_meta_get(r->ml->factory->meta, &r->get, cursor_impl(r->cursor)->path);
    return OX_WAIT(s, recovery_node);
}

// A cursor that can't be read keeps the topic from opening: guessing a position would lose or repeat messages.
static ox_step recovery_failed(struct ox_seq *s, enum ox_err err, const char *what)
{
    struct cursor_recovery *r = recovery_of(s);
    ox_error(recovery_log(r), "cursor.recover.failed", "log=%s cursor=%s reading=%s error=%s", r->ml->name,
             r->cursor->name, what, ox_err_name(err));
    return OX_FINISH(s, err);
}

static ox_step recovery_node(struct ox_seq *s)
{
    struct cursor_recovery *r = recovery_of(s);
    if (s->err != OX_OK)
        return recovery_failed(s, s->err, "node");
    enum ox_err err = cursor_take_node(r->cursor, r->get.value, &r->where);
    ox_buf_unref(&r->get.value);
    if (err != OX_OK)
        return recovery_failed(s, err, "node");
    struct cursor_impl *impl = cursor_impl(r->cursor);
    impl->node_version = r->get.stat.version;
    impl->where = r->where;
    r->cursor->cursor_ledger = r->where.id;
    if (r->where.id < 0)
        return OX_GOTO(s, recovery_settle);
    struct ox_kv owner = {0};
    cursor_custom(r->cursor, &owner);
    ox_seq_bind(s, &r->open.op, "cursor.ledger.open");
    ox_router_open(r->ml->factory->router, &r->open, r->where, OX_OPEN_RECOVER, &owner);
    ox_kv_fini(&owner);
    return OX_WAIT(s, recovery_opened);
}

static ox_step recovery_opened(struct ox_seq *s)
{
    struct cursor_recovery *r = recovery_of(s);
    if (s->err == OX_E_NO_LEDGER) {
        ox_warn(recovery_log(r), "cursor.ledger.missing", "log=%s cursor=%s ledger=%lld going_on_from=" OX_POS_FMT,
                r->ml->name, r->cursor->name, (long long)r->where.id, OX_POS_ARG(r->cursor->mark_delete));
        return OX_GOTO(s, recovery_settle);
    }
    if (s->err != OX_OK)
        return recovery_failed(s, s->err, "ledger");
    r->entry = r->open.ledger->info.last_entry;
    return OX_GOTO(s, recovery_try_entry);
}

// From the last entry back to the first one that can be read; the node's snapshot if there is none.
static ox_step recovery_try_entry(struct ox_seq *s)
{
    struct cursor_recovery *r = recovery_of(s);
    if (r->entry < 0) {
        ox_warn(recovery_log(r), "cursor.ledger.empty", "log=%s cursor=%s ledger=%lld going_on_from=" OX_POS_FMT,
                r->ml->name, r->cursor->name, (long long)r->where.id, OX_POS_ARG(r->cursor->mark_delete));
        ox_ledger_release(r->open.ledger);
        return OX_GOTO(s, recovery_settle);
    }
    ox_seq_bind(s, &r->read.op, "cursor.ledger.read");
    r->read.first = r->read.last = r->entry;
    r->read.bytes_max = UINT64_MAX;
    ox_ledger_read(r->open.ledger, &r->read);
    return OX_WAIT(s, recovery_entry);
}

static ox_step recovery_entry(struct ox_seq *s)
{
    struct cursor_recovery *r = recovery_of(s);
    enum ox_err err = s->err;
    if (err == OX_OK) {
        err = cursor_take_position(r->cursor, r->read.entries[0]);
        ox_read_fini(&r->read);
    }
    if (err == OX_E_CORRUPT) {
        ox_warn(recovery_log(r), "cursor.entry.corrupt", "log=%s cursor=%s ledger=%lld entry=%lld where=\"%s\"",
                r->ml->name, r->cursor->name, (long long)r->where.id, (long long)r->entry, r->read.where);
        r->entry--;
        return OX_GOTO(s, recovery_try_entry);
    }
    ox_ledger_release(r->open.ledger);
    return err == OX_OK ? OX_GOTO(s, recovery_settle) : recovery_failed(s, err, "entry");
}

// Makes the position a legal one of this log. A ledger that was empty and dropped, at this opening or by a rollover, is no surprise; any other position that had
// to be moved is named, and stored anew with the next change or at the close.
static void recovery_clamp(struct cursor_recovery *r)
{
    struct ox_cursor *c = r->cursor;
    struct ox_pos found = c->mark_delete;
    c->mark_delete = ox_ml_clamp(r->ml, found);
    if (ox_pos_equal(found, c->mark_delete))
        return;
    cursor_impl(c)->version++;
    bool was_empty = found.ledger == r->ml->dropped || (found.entry < 0 && found.ledger < ox_ml_first(r->ml).ledger);
    if (!was_empty)
        ox_warn(recovery_log(r), "cursor.clamped", "log=%s cursor=%s found=" OX_POS_FMT " taken=" OX_POS_FMT,
                r->ml->name, c->name, OX_POS_ARG(found), OX_POS_ARG(c->mark_delete));
}

static ox_step recovery_settle(struct ox_seq *s)
{
    struct cursor_recovery *r = recovery_of(s);
    struct ox_cursor *c = r->cursor;
    recovery_clamp(r);
    cursor_settle(c);
    cursor_forget_parts(c);
    ox_cursor_rewind(c);
    cursor_impl(c)->stored_pos = c->mark_delete;
    cursor_impl(c)->failed = OX_OK;
    return OX_GOTO(s, recovery_next);
}

static void recovery_done(struct ox_seq *s, enum ox_err err)
{
    struct cursor_recovery *r = recovery_of(s);
    struct ox_op *op = r->op;
    ox_meta_names_free(r->children.names, r->children.count);
    ox_free(r);
    ox_op_finish(op, err);
}

void ox_cursors_recover(struct ox_mledger *ml, struct ox_op *op)
{
    struct cursor_recovery *r = ox_malloc(sizeof *r);
    ox_op_begin(op);
    r->ml = ml;
    r->op = op;
    ox_seq_start(&r->seq, ml->factory->loop, "cursors.recover", recovery_start, recovery_done);
}

// ---- the end of all cursors -----------------------------------------------------------------------------------------

struct cursor_ending {
    struct ox_mledger *ml;
    struct ox_op *op;
    struct ox_op one;
    enum ox_err err; // the first error
    bool remove;
};

static void ending_next(struct cursor_ending *e)
{
    struct ox_link *link = ox_list_first(&e->ml->cursors);
    if (!link) {
        struct ox_op *op = e->op;
        enum ox_err err = e->err;
        ox_free(e);
        ox_op_finish(op, err);
        return;
    }
    struct ox_cursor *c = CONTAINER_OF(link, struct ox_cursor, link);
    if (e->remove)
        ox_cursor_remove(c, &e->one);
    else
        ox_cursor_close(c, &e->one);
}

static void ending_one_done(struct ox_op *op)
{
    struct cursor_ending *e = CONTAINER_OF(op, struct cursor_ending, one);
    if (e->err == OX_OK)
        e->err = op->err;
    ending_next(e);
}

static void cursors_end(struct ox_mledger *ml, struct ox_op *op, bool remove)
{
    struct cursor_ending *e = ox_malloc(sizeof *e);
    ox_op_begin(op);
    e->ml = ml;
    e->op = op;
    e->remove = remove;
    ox_op_init(&e->one, ml->factory->loop, ending_one_done, "cursors.end");
    ending_next(e);
}

void ox_cursors_close(struct ox_mledger *ml, struct ox_op *op)
{
    cursors_end(ml, op, false);
}

void ox_cursors_remove(struct ox_mledger *ml, struct ox_op *op)
{
    cursors_end(ml, op, true);
}

void ox_cursors_fail(struct ox_mledger *ml, enum ox_err err)
{
    OX_LIST_EACH(&ml->cursors, link) {
        struct ox_cursor *c = CONTAINER_OF(link, struct ox_cursor, link);
        struct cursor_impl *impl = cursor_impl(c);
        if (impl->failed == OX_OK)
            impl->failed = err;
        cursor_follow_drop(impl, err);
        cursor_answer(c, err);
        if (impl->reading)
            ox_op_cancel(&impl->reading->op);
    }
}
