// cursor.c - what a cursor knows in memory: the mark-delete position, acknowledged entries behind it, the backlog.
#include "mledger/cursor_impl.h"

#include <string.h>

struct cursor_impl *cursor_impl(const struct ox_cursor *c)
{
    struct cursor_impl *impl = (struct cursor_impl *)c->impl;
    OX_ASSERT(impl->magic == CURSOR_MAGIC);
    return impl;
}

static void cursor_timer(struct ox_timer *t)
{
    struct cursor_impl *impl = CONTAINER_OF(t, struct cursor_impl, timer);
    cursor_schedule(impl->cursor);
}

static void cursor_pause_over(struct ox_timer *t)
{
    ox_seq_resume(&CONTAINER_OF(t, struct cursor_impl, pause)->seq, OX_OK);
}

static char *cursor_path(const struct ox_mledger *ml, const char *name)
{
    struct ox_str path = {0};
    ox_str_addf(&path, "%s/", ml->path);
    ox_name_encode(&path, name);
    return ox_str_take(&path);
}

struct ox_cursor *cursor_new(struct ox_mledger *ml, const char *name, bool durable, struct ox_pos mark_delete)
{
    struct ox_cursor *c = ox_malloc(sizeof *c);
    struct cursor_impl *impl = ox_malloc(sizeof *impl);
    c->ml = ml;
    c->impl = impl;
    c->name = ox_strdup(name);
    c->durable = durable;
    c->state = OX_CURSOR_NO_LEDGER;
    c->mark_delete = mark_delete;
    c->read = cursor_after(ml, mark_delete);
    c->cursor_ledger = -1;
    c->last_active_ms = ox_wall_ms(ml->factory->loop);
    impl->magic = CURSOR_MAGIC;
    impl->path = cursor_path(ml, name);
    impl->node_version = OX_META_ABSENT;
    impl->where.id = impl->where.physical = -1;
    impl->cursor = c;
    ox_list_init(&impl->acks);
    ox_timer_init(&impl->timer, ml->factory->loop, cursor_timer);
    ox_timer_init(&impl->pause, ml->factory->loop, cursor_pause_over);
    ox_list_push_back(&ml->cursors, &c->link);
    if (durable)
        ml_follower_init(&impl->follower, ml->factory, true);
    return c;
}

struct ox_pos cursor_after(const struct ox_mledger *ml, struct ox_pos mark_delete)
{
    bool gone = ml->compacted && mark_delete.ledger < ox_ml_first(ml).ledger;
    return gone ? (struct ox_pos){mark_delete.ledger, mark_delete.entry + 1} : ox_ml_next(ml, mark_delete);
}

static void cursor_forget_holes(struct ox_cursor *c)
{
    for (size_t i = 0; i < c->hole_count; i++)
        ox_ranges_fini(&c->holes[i].acked);
    c->hole_count = 0;
    c->acked_behind = 0;
}

void cursor_free(struct ox_cursor *c)
{
    struct cursor_impl *impl = cursor_impl(c);
    OX_ASSERT(ox_list_empty(&impl->acks) && !impl->reading && !ox_timer_started(&impl->pause));
    ox_timer_stop(&impl->timer);
    if (c->durable)
        ml_follower_fini(&impl->follower, impl->unloading ? OX_E_NOT_FOUND : OX_E_BUSY);
    ox_list_remove(&c->ml->cursors, &c->link);
    if (impl->handle)
        ox_ledger_release(impl->handle);
    if (impl->new_handle)
        ox_ledger_release(impl->new_handle);
    cursor_forget_holes(c);
    ox_buf_unref(&impl->first_record);
    ox_buf_unref(&impl->node_value);
    ox_buf_unref(&impl->node_writing);
    ox_buf_unref(&impl->record);
    ox_kv_fini(&c->properties);
    ox_free(c->holes);
    ox_batch_acks_fini(&c->batches);
    ox_kv_fini(&c->position_properties);
    ox_free(impl->path);
    ox_free(c->name);
    impl->magic = 0;
    ox_free(impl);
    ox_free(c);
}

struct ox_cursor *ox_cursor_find(struct ox_mledger *ml, const char *name)
{
    OX_LIST_EACH(&ml->cursors, link) {
        struct ox_cursor *c = CONTAINER_OF(link, struct ox_cursor, link);
        if (strcmp(c->name, name) == 0 && c->state != OX_CURSOR_CLOSING && c->state != OX_CURSOR_CLOSED)
            return c;
    }
    return NULL;
}

void ml_cursor_owner(const struct ox_ml_factory *f, const char *log, const char *cursor, struct ox_kv *ret)
{
    struct ox_str encoded = {0};
    ox_name_encode(&encoded, cursor);
    ox_kv_set(ret, "application", "pulsar");
    ox_kv_set(ret, "component", "managed-ledger");
    ox_kv_set(ret, "pulsar/managed-ledger", log);
    ox_kv_set(ret, "pulsar/cursor", ox_str_get(&encoded));
    if (f->instance)
        ox_kv_set(ret, "oxbow/instance", f->instance);
    ox_str_fini(&encoded);
}

void cursor_custom(const struct ox_cursor *c, struct ox_kv *ret)
{
    ml_cursor_owner(c->ml->factory, c->ml->name, c->name, ret);
}

// Index of the first hole record at or behind a ledger.
static size_t cursor_hole_index(const struct ox_cursor *c, int64_t ledger)
{
    size_t low = 0, high = c->hole_count;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (c->holes[mid].ledger < ledger)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct ox_ranges *cursor_find_hole(const struct ox_cursor *c, int64_t ledger)
{
    size_t i = cursor_hole_index(c, ledger);
    return i < c->hole_count && c->holes[i].ledger == ledger ? &c->holes[i].acked : NULL;
}

static struct ox_ranges *cursor_make_hole(struct ox_cursor *c, int64_t ledger)
{
    size_t i = cursor_hole_index(c, ledger);
    if (i < c->hole_count && c->holes[i].ledger == ledger)
        return &c->holes[i].acked;
    if (c->hole_count == c->hole_cap) {
        c->hole_cap = c->hole_cap ? 2 * c->hole_cap : 4;
        c->holes = ox_realloc(c->holes, c->hole_cap, sizeof *c->holes);
    }
    memmove(c->holes + i + 1, c->holes + i, (c->hole_count - i) * sizeof *c->holes);
    c->holes[i] = (struct ox_cursor_holes){.ledger = ledger};
    c->hole_count++;
    return &c->holes[i].acked;
}

static void cursor_drop_hole(struct ox_cursor *c, size_t i)
{
    const struct ox_ranges *acked = &c->holes[i].acked;
    for (size_t n = 0; n < acked->count; n++)
        c->acked_behind -= (uint64_t)(acked->items[n].last - acked->items[n].first + 1);
    ox_ranges_fini(&c->holes[i].acked);
    c->hole_count--;
    memmove(c->holes + i, c->holes + i + 1, (c->hole_count - i) * sizeof *c->holes);
}

void cursor_add_hole(struct ox_cursor *c, int64_t ledger, int64_t first, int64_t last)
{
    c->acked_behind += ox_ranges_add(cursor_make_hole(c, ledger), first, last);
}

// Steps over acknowledged entries that follow mark_delete without a gap.
static void cursor_advance(struct ox_cursor *c)
{
    for (;;) {
        struct ox_pos next = ox_ml_next(c->ml, c->mark_delete);
        const struct ox_ranges *acked = cursor_find_hole(c, next.ledger);
        const struct ox_range *range = acked ? ox_ranges_at_or_after(acked, next.entry) : NULL;
        if (!range || range->first > next.entry)
            return;
        c->mark_delete = (struct ox_pos){next.ledger, range->last};
        c->advanced_ms = ox_wall_ms(c->ml->factory->loop);
    }
}

static void cursor_drop_passed(struct ox_cursor *c)
{
    while (c->hole_count && c->holes[0].ledger < c->mark_delete.ledger)
        cursor_drop_hole(c, 0);
    if (c->hole_count && c->holes[0].ledger == c->mark_delete.ledger && c->mark_delete.entry >= 0) {
        c->acked_behind -= ox_ranges_remove(&c->holes[0].acked, 0, c->mark_delete.entry);
        if (c->holes[0].acked.count == 0)
            cursor_drop_hole(c, 0);
    }
}

void cursor_settle(struct ox_cursor *c)
{
    cursor_advance(c);
    cursor_drop_passed(c);
    if (ox_pos_cmp(c->read, c->mark_delete) <= 0)
        c->read = cursor_after(c->ml, c->mark_delete);
}

// Answers an acknowledgement from the loop without touching the store.
static void cursor_end_ack(struct ox_cursor_ack *ack, enum ox_err err)
{
    if (!ack)
        return;
    ox_op_begin(&ack->op);
    ox_op_finish(&ack->op, err);
}

void cursor_changed(struct ox_cursor *c, struct ox_cursor_ack *ack)
{
    struct cursor_impl *impl = cursor_impl(c);
    impl->version++;
    c->last_active_ms = ox_wall_ms(c->ml->factory->loop);
    if (ack) {
        ox_op_begin(&ack->op);
        ack->version = impl->version;
        ox_list_push_back(&impl->acks, &ack->link);
    }
    if (c->durable) {
        cursor_schedule(c);
        return;
    }
    impl->stored_version = impl->version;
    cursor_answer(c, OX_OK);
}

void cursor_unchanged(struct ox_cursor *c, struct ox_cursor_ack *ack)
{
    struct cursor_impl *impl = cursor_impl(c);
    if (!ack)
        return;
    if (impl->stored_version == impl->version || !c->durable) {
        cursor_end_ack(ack, OX_OK);
        return;
    }
    ox_op_begin(&ack->op);
    ack->version = impl->version;
    ox_list_push_back(&impl->acks, &ack->link);
    cursor_schedule(c);
}

enum ox_err cursor_refuses(const struct ox_cursor *c)
{
    if (cursor_impl(c)->failed != OX_OK)
        return cursor_impl(c)->failed;
    return c->state == OX_CURSOR_CLOSING || c->state == OX_CURSOR_CLOSED ? OX_E_CLOSED : OX_OK;
}

// A cursor that has entered another ledger may let go of those behind it.
static void cursor_trim_behind(struct ox_cursor *c, struct ox_pos before)
{
    if (before.ledger != c->mark_delete.ledger)
        ox_mledger_trim(c->ml);
}

// properties: replaces those kept with the position, where that does not go back; NULL: they stay.
static void cursor_mark(struct ox_cursor *c, struct ox_cursor_ack *ack, struct ox_pos p, const struct ox_kv *properties)
{
    enum ox_err err = cursor_refuses(c);
    if (err != OX_OK) {
        cursor_end_ack(ack, err);
        return;
    }
    bool beyond = ox_pos_cmp(p, c->ml->last) > 0;
    struct ox_pos before = c->mark_delete, to = ox_ml_clamp(c->ml, p);
    if (beyond || ox_pos_cmp(to, before) < (properties ? 0 : 1)) {
        cursor_unchanged(c, ack);
        return;
    }
    if (properties)
        ox_kv_copy(&c->position_properties, properties);
    c->mark_delete = to;
    if (!ox_pos_equal(before, to))
        c->advanced_ms = ox_wall_ms(c->ml->factory->loop);
    cursor_drop_passed(c);
    cursor_settle(c);
    ox_batch_acks_forget_upto(&c->batches, to);
    cursor_changed(c, ack);
    cursor_trim_behind(c, before);
}

void ox_cursor_mark_delete(struct ox_cursor *c, struct ox_cursor_ack *ack, struct ox_pos p)
{
    cursor_mark(c, ack, p, NULL);
}

void ox_cursor_mark_delete_with(struct ox_cursor *c, struct ox_cursor_ack *ack, struct ox_pos p, const struct ox_kv *properties)
{
    cursor_mark(c, ack, p, properties);
}

// The last entry acknowledged when n more are, counted from the mark-delete position.
static struct ox_pos cursor_skip_target(const struct ox_cursor *c, uint64_t n)
{
    struct ox_pos p = ox_pos_max(c->mark_delete, (struct ox_pos){ox_ml_first(c->ml).ledger, -1});
    while (n > 0) {
        struct ox_pos next = ox_ml_next(c->ml, p);
        const struct ox_ml_ledger *l = ox_ml_ledger(c->ml, next.ledger);
        const struct ox_ranges *acked = cursor_find_hole(c, next.ledger);
        const struct ox_range *range = acked ? ox_ranges_at_or_after(acked, next.entry) : NULL;
        if (!l || next.entry >= l->entries || ox_pos_cmp(next, c->ml->last) > 0)
            return p;
        if (range && range->first <= next.entry) {
            p = (struct ox_pos){next.ledger, range->last};
            continue;
        }
        int64_t upto = range ? range->first : l->entries;
        uint64_t take = OX_MIN(n, (uint64_t)(upto - next.entry));
        p = (struct ox_pos){next.ledger, next.entry + (int64_t)take - 1};
        n -= take;
    }
    return p;
}

void ox_cursor_skip(struct ox_cursor *c, struct ox_cursor_ack *ack, uint64_t n)
{
    cursor_mark(c, ack, cursor_skip_target(c, n), NULL);
}

bool cursor_has_entry(const struct ox_cursor *c, struct ox_pos p)
{
    const struct ox_ml_ledger *ledger = ox_ml_ledger(c->ml, p.ledger);
    bool there = p.entry >= 0 && ledger && ox_pos_cmp(p, c->ml->last) <= 0 && (!ledger->sealed || p.entry < ledger->entries);
    return there && !ox_cursor_is_deleted(c, p);
}

// Adds one entry; true if it was not acknowledged before and exists.
static bool cursor_delete_one(struct ox_cursor *c, struct ox_pos p)
{
    if (!cursor_has_entry(c, p))
        return false;
    c->acked_behind += ox_ranges_add(cursor_make_hole(c, p.ledger), p.entry, p.entry);
    ox_batch_acks_forget(&c->batches, p);
    return true;
}

void ox_cursor_delete(struct ox_cursor *c, struct ox_cursor_ack *ack, const struct ox_pos *positions, size_t count)
{
    enum ox_err err = cursor_refuses(c);
    if (err != OX_OK) {
        cursor_end_ack(ack, err);
        return;
    }
    struct ox_pos before = c->mark_delete;
    bool changed = false;
    for (size_t i = 0; i < count; i++)
        changed |= cursor_delete_one(c, positions[i]);
    if (!changed) {
        cursor_unchanged(c, ack);
        return;
    }
    cursor_settle(c);
    cursor_changed(c, ack);
    cursor_trim_behind(c, before);
}

bool ox_cursor_is_deleted(const struct ox_cursor *c, struct ox_pos p)
{
    if (ox_pos_cmp(p, c->mark_delete) <= 0)
        return true;
    const struct ox_ranges *acked = cursor_find_hole(c, p.ledger);
    return acked && ox_ranges_has(acked, p.entry);
}

uint64_t ox_cursor_backlog(const struct ox_cursor *c)
{
    uint64_t behind = ox_ml_count(c->ml, c->mark_delete, c->ml->last);
    return behind > c->acked_behind ? behind - c->acked_behind : 0;
}

// A change that an operation of somebody else's waits for.
struct cursor_change {
    struct ox_cursor_ack ack;
    struct ox_op *op;
};

static void cursor_change_done(struct ox_op *op)
{
    struct cursor_change *change = CONTAINER_OF(op, struct cursor_change, ack.op);
    ox_op_finish(change->op, op->err);
    ox_free(change);
}

void cursor_change_with_op(struct ox_cursor *c, struct ox_op *op)
{
    struct cursor_change *change = ox_malloc(sizeof *change);
    ox_op_begin(op);
    change->op = op;
    ox_op_init(&change->ack.op, c->ml->factory->loop, cursor_change_done, "cursor.change");
    enum ox_err err = cursor_refuses(c);
    if (err == OX_OK)
        cursor_changed(c, &change->ack);
    else
        cursor_end_ack(&change->ack, err);
}

void ox_cursor_reset_into(struct ox_cursor *c, struct ox_op *op, struct ox_pos mark, struct ox_pos entry,
                          const uint64_t *bits, size_t words)
{
    if (cursor_refuses(c) == OX_OK) {
        cursor_forget_holes(c);
        ox_batch_acks_fini(&c->batches);
        c->mark_delete = ox_ml_clamp(c->ml, mark);
        ox_cursor_rewind(c);
        if (words && cursor_has_entry(c, entry))
            ox_batch_acks_set(&c->batches, entry, bits, words);
    }
    cursor_change_with_op(c, op);
    ox_mledger_trim(c->ml);
}

void ox_cursor_reset(struct ox_cursor *c, struct ox_op *op, struct ox_pos p)
{
    ox_cursor_reset_into(c, op, p, p, NULL, 0);
}

static uint64_t ranges_count(const struct ox_ranges *ranges)
{
    uint64_t count = 0;
    for (const struct ox_range *r = ox_ranges_at_or_after(ranges, 0); r; r = ox_ranges_at_or_after(ranges, r->last + 1))
        count++;
    return count;
}

void ox_cursor_figures(const struct ox_cursor *c, struct ox_cursor_figures *ret)
{
    const struct cursor_impl *impl = cursor_impl(c);
    struct ox_loop *loop = c->ml->factory->loop;
    bool made = c->cursor_ledger >= 0 && impl->ledger_since_ns;
    *ret = (struct ox_cursor_figures){.waits = impl->reading != NULL,
                                      .ledger_last = c->cursor_ledger >= 0 ? impl->next_entry - 1 : -1};
    if (made)
        ret->switched_ms = ox_wall_ms(loop) - (ox_now_ns(loop) - impl->ledger_since_ns) / OX_MS;
    for (size_t i = 0; i < c->hole_count; i++)
        ret->acked_ranges += ranges_count(&c->holes[i].acked);
}

void ox_cursors_ledger_gone(struct ox_mledger *ml, int64_t ledger)
{
    OX_LIST_EACH(&ml->cursors, link) {
        struct ox_cursor *c = CONTAINER_OF(link, struct ox_cursor, link);
        size_t i = cursor_hole_index(c, ledger);
        bool had = i < c->hole_count && c->holes[i].ledger == ledger;
        struct ox_pos before = c->mark_delete;
        if (had)
            cursor_drop_hole(c, i);
        if (c->mark_delete.ledger == ledger)
            c->mark_delete = ox_ml_clamp(ml, c->mark_delete);
        cursor_settle(c);
        cursor_forget_parts(c);
        if (had || !ox_pos_equal(before, c->mark_delete))
            cursor_changed(c, NULL);
    }
}

// What is kept with the position stands for the entries before it: they are needed until the store holds it.
static struct ox_pos cursor_passed(const struct ox_cursor *c)
{
    struct ox_pos stored = cursor_impl(c)->stored_pos;
    return c->position_properties.count && ox_pos_cmp(stored, c->mark_delete) < 0 ? stored : c->mark_delete;
}

bool ox_cursors_slowest(const struct ox_mledger *ml, struct ox_pos *ret)
{
    bool found = false;
    OX_LIST_EACH(&ml->cursors, link) {
        const struct ox_cursor *c = CONTAINER_OF(link, struct ox_cursor, link);
        struct ox_pos passed = cursor_passed(c);
        if (!c->durable || (found && ox_pos_cmp(passed, *ret) >= 0))
            continue;
        *ret = passed;
        found = true;
    }
    return found;
}
