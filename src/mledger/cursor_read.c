// cursor_read.c - reading on from a cursor's read position, without what is acknowledged.
#include "mledger/cursor_impl.h"

static void cursor_read_end(struct ox_cursor_read *r, enum ox_err err)
{
    cursor_impl(r->cursor)->reading = NULL;
    ox_op_finish(&r->op, err);
}

static void cursor_read_more(struct ox_cursor_read *r)
{
    r->read.from = r->cursor->read;
    r->read.entries_max = r->entries_max;
    r->read.bytes_max = r->bytes_max;
    r->epoch = r->cursor->ack_epoch;
    r->viewed = r->view && ox_pos_cmp(r->read.from, r->view->upto) <= 0;
    if (r->viewed)
        r->view->read(r->view, &r->read);
    else
        ox_mledger_read(r->cursor->ml, &r->read);
}

static void cursor_read_wake(struct ox_ml_waiter *w)
{
    struct ox_cursor_read *r = CONTAINER_OF(w, struct ox_cursor_read, waiter);
    if (r->cursor->ml->state == OX_ML_FENCED || r->cursor->ml->state == OX_ML_CLOSING)
        cursor_read_end(r, OX_E_FENCED);
    else
        cursor_read_more(r);
}

static void cursor_read_wait(struct ox_cursor_read *r)
{
    r->waiter.wake = cursor_read_wake;
    ox_mledger_wait(r->cursor->ml, &r->waiter, ox_ml_prev(r->cursor->ml, r->cursor->read));
}

// Keeps the entries that are not acknowledged, drops the rest.
static void cursor_read_filter(struct ox_cursor_read *r)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->read.count; i++) {
        struct ox_entry *e = &r->read.entries[i];
        if (ox_cursor_is_deleted(r->cursor, e->pos))
            ox_buf_unref(&e->data);
        else
            r->read.entries[kept++] = *e;
    }
    r->read.count = kept;
}

// The log has passed over damaged entries (skip_unrecoverable): they count as acknowledged, so that mark-delete gets past them too (trap S08).
static void cursor_read_lost(struct ox_cursor *c, struct ox_pos from, struct ox_pos next)
{
    const struct ox_ml_ledger *l = ox_ml_ledger(c->ml, from.ledger);
    int64_t last = next.ledger == from.ledger ? next.entry - 1 : l && l->sealed ? l->entries - 1 : -1;
    if (!l || l->lost || from.entry < 0 || last < from.entry || ox_pos_cmp(from, c->mark_delete) <= 0)
        return;
    cursor_add_hole(c, from.ledger, from.entry, last);
    cursor_settle(c);
    cursor_forget_parts(c);
    cursor_changed(c, NULL);
}

static void cursor_read_take(struct ox_cursor_read *r)
{
    r->cursor->read = r->read.next;
    if (r->read.count == 0 && !r->viewed)
        cursor_read_lost(r->cursor, r->read.from, r->read.next);
    cursor_read_filter(r);
    if (r->read.count == 0) {
        ox_ml_read_fini(&r->read);
        cursor_read_more(r);
        return;
    }
    r->entries = r->read.entries;
    r->count = r->read.count;
    r->read.entries = NULL;
    r->read.count = 0;
    cursor_read_end(r, OX_OK);
}

// The log has answered. A rewind or reset in between makes the answer stale.
static void cursor_read_done(struct ox_op *op)
{
    struct ox_cursor_read *r = CONTAINER_OF(op, struct ox_cursor_read, read.op);
    bool canceled = r->op.cancel == NULL;
    if (canceled || r->epoch != r->cursor->ack_epoch) {
        ox_ml_read_fini(&r->read);
        if (canceled)
            cursor_read_end(r, OX_E_CANCELED);
        else
            cursor_read_more(r);
    } else if (op->err == OX_OK) {
        cursor_read_take(r);
    } else if (op->err == OX_E_NO_ENTRY) {
        cursor_read_wait(r);
    } else {
        cursor_read_end(r, op->err);
    }
}

// Cancel: at once while waiting for entries, else when the read in flight is back (its cursor position stays).
static void cursor_read_cancel(struct ox_op *op)
{
    struct ox_cursor_read *r = CONTAINER_OF(op, struct ox_cursor_read, op);
    r->op.cancel = NULL;
    if (ox_op_pending(&r->read.op))
        return;
    ox_mledger_unwait(r->cursor->ml, &r->waiter);
    cursor_read_end(r, OX_E_CANCELED);
}

void ox_cursor_read(struct ox_cursor *c, struct ox_cursor_read *r)
{
    struct cursor_impl *impl = cursor_impl(c);
    OX_ASSERT(!impl->reading && r->entries_max > 0);
    impl->reading = r;
    ox_op_begin(&r->op);
    r->op.cancel = cursor_read_cancel;
    r->cursor = c;
    r->entries = NULL;
    r->count = 0;
    ox_op_init(&r->read.op, c->ml->factory->loop, cursor_read_done, "cursor.read");
    cursor_read_more(r);
}

void ox_cursor_read_fini(struct ox_cursor_read *r)
{
    for (size_t i = 0; i < r->count; i++)
        ox_buf_unref(&r->entries[i].data);
    ox_free(r->entries);
    r->entries = NULL;
    r->count = 0;
}

void ox_cursor_rewind(struct ox_cursor *c)
{
    struct ox_cursor_read *r = cursor_impl(c)->reading;
    c->read = cursor_after(c->ml, c->mark_delete);
    c->ack_epoch++;
    if (r && !ox_op_pending(&r->read.op) && r->op.state == OX_OP_PENDING) {
        ox_mledger_unwait(c->ml, &r->waiter);
        cursor_read_more(r);
    }
}

void ox_cursor_unread(struct ox_cursor *c, struct ox_pos p)
{
    OX_ASSERT(!cursor_impl(c)->reading);
    if (ox_pos_cmp(p, c->mark_delete) <= 0)
        p = cursor_after(c->ml, c->mark_delete);
    if (ox_pos_cmp(p, c->read) < 0)
        c->read = p;
}
