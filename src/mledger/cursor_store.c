// cursor_store.c - making positions durable: one flush at a time into the cursor ledger or the node; closing; removal.
#include "mledger/cursor_impl.h"
#include "mledger/mledger_int.h"

#define CURSOR_REREAD_NS (100 * OX_MS) // between two tries to learn what became of a node
#define CURSOR_REREADS_ENDING 50       // a cursor that ends gives up after so many, and answers nobody

static void cursor_job_done(struct ox_seq *s, enum ox_err err);
static ox_step cursor_flush_start(struct ox_seq *s);
static ox_step cursor_close_start(struct ox_seq *s);
static ox_step cursor_remove_start(struct ox_seq *s);

static struct cursor_impl *cursor_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct cursor_impl, seq);
}

static struct ox_ml_factory *cursor_factory(const struct cursor_impl *impl)
{
    return impl->cursor->ml->factory;
}

static void cursor_set_state(struct ox_cursor *c, enum ox_cursor_state state)
{
    static const uint8_t allowed[] = {
        [OX_CURSOR_NO_LEDGER] = 1 << OX_CURSOR_SWITCHING | 1 << OX_CURSOR_CLOSING,
        [OX_CURSOR_SWITCHING] = 1 << OX_CURSOR_OPEN | 1 << OX_CURSOR_NO_LEDGER | 1 << OX_CURSOR_CLOSING,
        [OX_CURSOR_OPEN] = 1 << OX_CURSOR_SWITCHING | 1 << OX_CURSOR_NO_LEDGER | 1 << OX_CURSOR_CLOSING,
        [OX_CURSOR_CLOSING] = 1 << OX_CURSOR_CLOSED,
        [OX_CURSOR_CLOSED] = 0,
    };
    static const char *const names[] = {
#define OX_X(name) #name,
        OX_CURSOR_STATES(OX_X)
#undef OX_X
    };
    if (c->state == state || (c->state == OX_CURSOR_CLOSING && state != OX_CURSOR_CLOSED))
        return; // the last flush of a cursor that ends may still change its ledger
    OX_ASSERT(allowed[c->state] & 1 << state);
    ox_debug(c->ml->factory->log, "cursor.state", "log=%s cursor=%s from=%s to=%s", c->ml->name, c->name,
             names[c->state], names[state]);
    c->state = state;
}

void cursor_answer(struct ox_cursor *c, enum ox_err err)
{
    struct cursor_impl *impl = cursor_impl(c);
    OX_LIST_EACH(&impl->acks, link) {
        struct ox_cursor_ack *ack = CONTAINER_OF(link, struct ox_cursor_ack, link);
        if (err == OX_OK && ack->version > impl->stored_version)
            return;
        ox_list_remove(&impl->acks, link);
        ox_op_finish(&ack->op, err);
    }
}

static void cursor_start(struct cursor_impl *impl, enum cursor_job job, const char *name, ox_step_fn first)
{
    impl->job = job;
    impl->io = ox_malloc(sizeof *impl->io);
    ox_seq_start(&impl->seq, cursor_factory(impl)->loop, name, first, cursor_job_done);
}

// When the next flush may start: acks with a request within ack_flush_ns of the last one, others within mark_delete_interval_ns.
static uint64_t cursor_due_ns(const struct cursor_impl *impl)
{
    const struct ox_ml_settings *settings = &cursor_factory(impl)->settings;
    if (impl->acks.count >= settings->ack_flush_count)
        return 0;
    uint64_t wait = ox_list_empty(&impl->acks) ? settings->mark_delete_interval_ns : settings->ack_flush_ns;
    return impl->flushed_ns ? impl->flushed_ns + wait : 0;
}

static bool cursor_is_dirty(const struct cursor_impl *impl)
{
    return impl->version != impl->stored_version || impl->properties_dirty;
}

void cursor_schedule(struct ox_cursor *c)
{
    struct cursor_impl *impl = cursor_impl(c);
    bool follows = cursor_follow_waits(impl);
    if (!c->durable || impl->job != CURSOR_JOB_NONE || !(follows || cursor_is_dirty(impl)) || impl->failed != OX_OK)
        return;
    uint64_t now = ox_now_ns(cursor_factory(impl)->loop), due = follows ? 0 : cursor_due_ns(impl);
    if (due > now) {
        ox_timer_start(&impl->timer, due - now);
        return;
    }
    ox_timer_stop(&impl->timer);
    cursor_start(impl, CURSOR_JOB_FLUSH, "cursor.flush", cursor_flush_start);
}

// The store has lost us, or has shut down: nothing more is written and every ack ends.
static void cursor_fail(struct cursor_impl *impl, enum ox_err err)
{
    if (impl->failed == OX_OK) {
        impl->failed = err;
        ox_warn(cursor_factory(impl)->log, "cursor.failed", "log=%s cursor=%s error=%s", impl->cursor->ml->name,
                impl->cursor->name, ox_err_name(err));
    }
    ox_timer_stop(&impl->timer);
    cursor_follow_drop(impl, err);
    cursor_answer(impl->cursor, err);
}

// Begins a flush of what is known now.
static void cursor_snapshot(struct cursor_impl *impl)
{
    impl->flushing_version = impl->version;
    impl->flushed_ns = ox_now_ns(cursor_factory(impl)->loop);
    ox_buf_unref(&impl->record);
    impl->record = cursor_pack_position(impl->cursor, impl->cursor->mark_delete);
    impl->record_pos = impl->cursor->mark_delete;
    cursor_factory(impl)->cursor_flushes.value++;
}

// The snapshot is durable.
static void cursor_stored(struct cursor_impl *impl)
{
    struct ox_pos before = impl->stored_pos;
    ox_buf_unref(&impl->record);
    impl->stored_pos = impl->record_pos;
    impl->stored_version = impl->flushing_version;
    cursor_answer(impl->cursor, OX_OK);
    if (impl->cursor->position_properties.count && before.ledger != impl->stored_pos.ledger)
        ox_mledger_trim(impl->cursor->ml);
}

// ---- the node -------------------------------------------------------------------------------------------------------

static ox_step cursor_node_put(struct ox_seq *s);
static ox_step cursor_node_written(struct ox_seq *s);

// Writes impl->node_value; goes on in cursor_node_written, then by what the job is.
static ox_step cursor_write_node(struct ox_seq *s, struct ox_buf give_value)
{
    struct cursor_impl *impl = cursor_of(s);
    impl->properties_writing = impl->properties_dirty;
    impl->properties_dirty = false;
    ox_buf_unref(&impl->node_writing);
    impl->node_writing = give_value;
    return OX_GOTO(s, cursor_node_put);
}

static ox_step cursor_node_put(struct ox_seq *s)
{
    struct cursor_impl *impl = cursor_of(s);
    ox_seq_bind(s, &impl->io->put.op, "cursor.node");
    ox_meta_put(cursor_factory(impl)->meta, &impl->io->put, impl->path, impl->node_writing, impl->node_version, 0);
    return OX_WAIT(s, cursor_node_written);
}

static ox_step cursor_node_reread(struct ox_seq *s);
static ox_step cursor_after_node(struct ox_seq *s);
static ox_step cursor_switch_back(struct ox_seq *s);

// The node certainly does not name the next ledger: a cursor that was following goes on in its old one. Properties that somebody waits for need the node.
static bool cursor_can_switch_back(const struct cursor_impl *impl, enum ox_err err)
{
    bool lost = err == OX_E_SHUTDOWN || err == OX_E_SESSION_EXPIRED || err == OX_E_FENCED;
    return cursor_follow_is_switching(impl) && impl->new_handle && impl->handle && !impl->properties_writing && !lost;
}

static ox_step cursor_node_ask(struct ox_seq *s)
{
    struct cursor_impl *impl = cursor_of(s);
    ox_seq_bind(s, &impl->io->get.op, "cursor.node.reread");
    ox_meta_get(cursor_factory(impl)->meta, &impl->io->get, impl->path);
    return OX_WAIT(s, cursor_node_reread);
}

static ox_step cursor_node_written(struct ox_seq *s)
{
    struct cursor_impl *impl = cursor_of(s);
    if (s->err == OX_OK) {
        ox_free(impl->io->put.path);
        impl->io->put.path = NULL;
        impl->node_version = impl->io->put.stat.version;
        return OX_GOTO(s, cursor_after_node);
    }
    impl->rereads = 0;
    if (s->err == OX_E_UNKNOWN_OUTCOME || s->err == OX_E_BAD_VERSION)
        return OX_GOTO(s, cursor_node_ask);
    return cursor_can_switch_back(impl, s->err) ? OX_GOTO(s, cursor_switch_back) : OX_FINISH(s, s->err);
}

// The node could not be read. As long as it may name either of two ledgers nothing may be stored in one of them, so it is asked again until somebody answers;
// a cursor that is being made has nothing to lose.
static ox_step cursor_node_unread(struct ox_seq *s)
{
    struct cursor_impl *impl = cursor_of(s);
    if (s->err == OX_E_NOT_FOUND && impl->node_version == OX_META_ABSENT)
        return OX_GOTO(s, cursor_node_put);
    if (s->err == OX_E_NOT_FOUND)
        return OX_FINISH(s, OX_E_FENCED);
    if (impl->job == CURSOR_JOB_CREATE || s->err == OX_E_SHUTDOWN || s->err == OX_E_SESSION_EXPIRED)
        return OX_FINISH(s, s->err);
    if (++impl->rereads > CURSOR_REREADS_ENDING && impl->ending) {
        cursor_fail(impl, s->err);
        return OX_FINISH(s, s->err);
    }
    ox_timer_start(&impl->pause, CURSOR_REREAD_NS);
    return OX_WAIT(s, cursor_node_ask);
}

// What became of a put whose outcome is unknown: our very bytes at the next version = it happened; the old version = it did not; else somebody else owns the cursor.
// A cursor that is being made may find the node of an earlier attempt whose answer was lost: no position was ever given out from it, it is written over.
static ox_step cursor_node_reread(struct ox_seq *s)
{
    struct cursor_impl *impl = cursor_of(s);
    if (s->err != OX_OK)
        return OX_GOTO(s, cursor_node_unread);
    int64_t version = impl->io->get.stat.version;
    bool ours = ox_buf_equal(impl->io->get.value, impl->node_writing) && version == impl->node_version + 1;
    bool unborn = impl->job == CURSOR_JOB_CREATE && cursor_node_is_unused(impl->io->get.value);
    ox_buf_unref(&impl->io->get.value);
    if (ours || unborn)
        impl->node_version = version;
    if (ours)
        return OX_GOTO(s, cursor_after_node);
    return version == impl->node_version ? OX_GOTO(s, cursor_node_put) : OX_FINISH(s, OX_E_FENCED);
}

// ---- a flush --------------------------------------------------------------------------------------------------------

static ox_step cursor_append_record(struct ox_seq *s);
static ox_step cursor_new_ledger(struct ox_seq *s);
static ox_step cursor_switch(struct ox_seq *s);

static bool cursor_ledger_is_full(const struct cursor_impl *impl)
{
    const struct ox_ml_settings *settings = &cursor_factory(impl)->settings;
    return (uint64_t)impl->next_entry >= settings->cursor_entries_max ||
           ox_now_ns(cursor_factory(impl)->loop) - impl->ledger_since_ns >= settings->cursor_rollover_ns;
}

static ox_step cursor_flush_start(struct ox_seq *s)
{
    struct cursor_impl *impl = cursor_of(s);
    impl->flushed_ns = ox_now_ns(s->loop);
    if (cursor_follow_take(impl))
        return OX_GOTO(s, cursor_switch);
    bool into_node = impl->properties_dirty && impl->where.id < 0 && cursor_fits_node(impl->cursor);
    if (cursor_follow_into_node(impl) || into_node) {
        cursor_snapshot(impl);
        return cursor_write_node(s, cursor_pack_node(impl->cursor, true, impl->where, impl->record_pos));
    }
    if (!cursor_is_dirty(impl))
        return OX_FINISH(s, OX_OK); // it was to follow, and need not any more
    if (!impl->handle || cursor_ledger_is_full(impl)) {
        cursor_set_state(impl->cursor, OX_CURSOR_SWITCHING);
        return OX_GOTO(s, cursor_new_ledger);
    }
    cursor_snapshot(impl);
    if (impl->properties_dirty)
        return cursor_write_node(s, cursor_pack_node(impl->cursor, false, impl->where, impl->stored_pos));
    return OX_GOTO(s, cursor_append_record);
}

static ox_step cursor_new_ledger_made(struct ox_seq *s);
static ox_step cursor_first_entry_written(struct ox_seq *s);
static ox_step cursor_move_written(struct ox_seq *s);

static ox_step cursor_new_ledger(struct ox_seq *s)
{
    struct cursor_impl *impl = cursor_of(s);
    struct ox_kv custom = {0};
    cursor_custom(impl->cursor, &custom);
    ox_seq_bind(s, &impl->io->create.op, "cursor.ledger.create");
    struct ox_ml_factory *f = cursor_factory(impl);
    ox_router_create_in(f->router, &impl->io->create, ox_ml_target(f, impl->cursor->ml->name), -1, &custom);
    ox_kv_fini(&custom);
    return OX_WAIT(s, cursor_new_ledger_made);
}

static ox_step cursor_into_node(struct ox_seq *s);

static void cursor_append(struct ox_seq *s, struct ox_ledger *ledger, int64_t entry, struct ox_buf bytes)
{
    struct cursor_impl *impl = cursor_of(s);
    ox_seq_bind(s, &impl->io->append.op, "cursor.ledger.append");
    impl->io->append.entry = entry;
    impl->io->append.parts[0] = bytes;
    impl->io->append.part_count = 1;
    ox_ledger_append(ledger, &impl->io->append);
}

// As in Pulsar, the first entry is the position before this move with the ranges known now; the move follows. The node names the ledger only when it holds both:
// a ledger that the node names never says less than the node did.
static ox_step cursor_new_ledger_made(struct ox_seq *s)
{
    struct cursor_impl *impl = cursor_of(s);
    if (s->err != OX_OK)
        return OX_GOTO(s, cursor_into_node);
    OX_CRASHPOINT(s->loop, "cursor.after_create");
    impl->new_handle = impl->io->create.ledger;
    impl->new_where = impl->io->create.location;
    ox_buf_unref(&impl->first_record);
    impl->first_record = cursor_pack_position(impl->cursor, impl->stored_pos);
    cursor_append(s, impl->new_handle, 0, impl->first_record);
    return OX_WAIT(s, cursor_first_entry_written);
}

static ox_step cursor_first_entry_written(struct ox_seq *s)
{
    struct cursor_impl *impl = cursor_of(s);
    if (s->err != OX_OK)
        return OX_GOTO(s, cursor_into_node);
    OX_CRASHPOINT(s->loop, "cursor.after_first_entry");
    ox_buf_unref(&impl->first_record);
    cursor_snapshot(impl);
    cursor_append(s, impl->new_handle, 1, impl->record);
    return OX_WAIT(s, cursor_move_written);
}

static ox_step cursor_move_written(struct ox_seq *s)
{
    struct cursor_impl *impl = cursor_of(s);
    if (s->err != OX_OK)
        return OX_GOTO(s, cursor_into_node);
    OX_CRASHPOINT(s->loop, "cursor.after_move");
    return cursor_write_node(s, cursor_pack_node(impl->cursor, false, impl->new_where, impl->stored_pos));
}

// Lets go of the next ledger; if certainly no node names it, it is deleted, else the sweep for orphans finds out.
static void cursor_drop_new(struct cursor_impl *impl, bool certain)
{
    if (!impl->new_handle)
        return;
    ox_ledger_release(impl->new_handle);
    impl->new_handle = NULL;
    if (certain)
        cursor_discard(impl, impl->new_where);
}

// Forgets the ledger that was being made or had failed.
static void cursor_drop_handles(struct cursor_impl *impl)
{
    cursor_drop_new(impl, true);
    if (impl->handle)
        ox_ledger_release(impl->handle);
    impl->handle = NULL;
}

// A cursor ledger can't be written: the position goes into the node, a new ledger is tried at the next flush.
static ox_step cursor_into_node(struct ox_seq *s)
{
    struct cursor_impl *impl = cursor_of(s);
    enum ox_err why = s->err;
    cursor_drop_handles(impl);
    cursor_set_state(impl->cursor, OX_CURSOR_NO_LEDGER);
    if (why == OX_E_SHUTDOWN || !cursor_fits_node(impl->cursor))
        return OX_FINISH(s, why);
    ox_warn(cursor_factory(impl)->log, "cursor.into_node", "log=%s cursor=%s error=%s", impl->cursor->ml->name,
            impl->cursor->name, ox_err_name(why));
    cursor_snapshot(impl);
    return cursor_write_node(s, cursor_pack_node(impl->cursor, true, impl->where, impl->record_pos));
}

// ---- a flush that leaves another place: as above, but the next ledger has been begun already, and there is a way back ---------------

static ox_step cursor_switch_moved(struct ox_seq *s);
static ox_step cursor_append_record(struct ox_seq *s);

static ox_step cursor_switch(struct ox_seq *s)
{
    struct cursor_impl *impl = cursor_of(s);
    cursor_set_state(impl->cursor, OX_CURSOR_SWITCHING);
    cursor_snapshot(impl);
    cursor_append(s, impl->new_handle, 1, impl->record);
    return OX_WAIT(s, cursor_switch_moved);
}

static ox_step cursor_switch_moved(struct ox_seq *s)
{
    struct cursor_impl *impl = cursor_of(s);
    if (s->err != OX_OK)
        return OX_GOTO(s, cursor_switch_back);
    OX_CRASHPOINT(s->loop, "follow.after_cursor_move");
    return cursor_write_node(s, cursor_pack_node(impl->cursor, false, impl->new_where, impl->follow->first_pos));
}

// The next ledger is of no use; the same snapshot goes into the old one, as if nothing had been tried.
static ox_step cursor_switch_back(struct ox_seq *s)
{
    struct cursor_impl *impl = cursor_of(s);
    impl->follow->err = s->err;
    cursor_drop_new(impl, true);
    if (!impl->handle)
        return OX_GOTO(s, cursor_into_node);
    cursor_set_state(impl->cursor, OX_CURSOR_OPEN);
    if (impl->properties_dirty)
        return cursor_write_node(s, cursor_pack_node(impl->cursor, false, impl->where, impl->stored_pos));
    return OX_GOTO(s, cursor_append_record);
}

void cursor_discard(const struct cursor_impl *impl, struct ox_location where)
{
    struct ox_kv owner = {0};
    cursor_custom(impl->cursor, &owner);
    ml_discard(cursor_factory(impl), where, &owner);
    ox_kv_fini(&owner);
}

// ---- the node is written ----------------------------------------------------------------------------------------------

// Takes the ledger that the node now names as the current one; the one it replaces is deleted.
static void cursor_take_ledger(struct cursor_impl *impl)
{
    struct ox_location old = impl->where;
    if (impl->handle)
        ox_ledger_release(impl->handle);
    impl->handle = impl->new_handle;
    impl->where = impl->new_where;
    impl->new_handle = NULL;
    impl->next_entry = 2;
    impl->ledger_since_ns = ox_now_ns(cursor_factory(impl)->loop);
    impl->cursor->cursor_ledger = impl->where.id;
    cursor_set_state(impl->cursor, OX_CURSOR_OPEN);
    if (old.id >= 0)
        cursor_discard(impl, old);
}

// The node holds the whole position; the ledger that it named before is of no use.
static void cursor_node_holds_all(struct cursor_impl *impl)
{
    cursor_drop_handles(impl);
    if (impl->where.id >= 0)
        cursor_discard(impl, impl->where);
    impl->where.id = impl->where.physical = -1;
    impl->cursor->cursor_ledger = -1;
    cursor_stored(impl);
}

static ox_step cursor_after_node(struct ox_seq *s)
{
    struct cursor_impl *impl = cursor_of(s);
    ox_buf_unref(&impl->node_value);
    impl->node_value = ox_buf_ref(impl->node_writing);
    impl->properties_writing = false;
    OX_CRASHPOINT(s->loop, "cursor.after_node");
    if (impl->new_handle) {
        cursor_take_ledger(impl);
        cursor_stored(impl);
        return OX_FINISH(s, OX_OK);
    }
    if (impl->job == CURSOR_JOB_FLUSH && impl->handle)
        return OX_GOTO(s, cursor_append_record); // the node had new properties, the position goes into the ledger
    cursor_node_holds_all(impl);
    return OX_FINISH(s, OX_OK);
}

static ox_step cursor_record_written(struct ox_seq *s);

static ox_step cursor_append_record(struct ox_seq *s)
{
    struct cursor_impl *impl = cursor_of(s);
    cursor_append(s, impl->handle, impl->next_entry++, impl->record);
    return OX_WAIT(s, cursor_record_written);
}

static ox_step cursor_record_written(struct ox_seq *s)
{
    struct cursor_impl *impl = cursor_of(s);
    if (s->err != OX_OK)
        return OX_GOTO(s, cursor_into_node);
    OX_CRASHPOINT(s->loop, "cursor.after_append");
    cursor_stored(impl);
    return OX_FINISH(s, OX_OK);
}

// ---- closing and removal --------------------------------------------------------------------------------------------

static ox_step cursor_close_start(struct ox_seq *s)
{
    struct cursor_impl *impl = cursor_of(s);
    struct ox_cursor *c = impl->cursor;
    bool dirty = cursor_is_dirty(impl) || impl->node_stale;
    bool fits = cursor_fits_node(c);
    if (!c->durable || impl->failed != OX_OK || (!dirty && (impl->where.id < 0 || !fits)))
        return OX_FINISH(s, impl->failed);
    if (!fits && !impl->handle)
        return OX_GOTO(s, cursor_new_ledger);
    cursor_snapshot(impl);
    if (!fits)
        return OX_GOTO(s, cursor_append_record);
    return cursor_write_node(s, cursor_pack_node(c, true, impl->where, impl->record_pos));
}

static ox_step cursor_removed_node(struct ox_seq *s);

static ox_step cursor_remove_start(struct ox_seq *s)
{
    struct cursor_impl *impl = cursor_of(s);
    if (!impl->cursor->durable)
        return OX_FINISH(s, OX_OK);
    cursor_drop_handles(impl);
    ox_seq_bind(s, &impl->io->del.op, "cursor.node.delete");
    ox_meta_del(cursor_factory(impl)->meta, &impl->io->del, impl->path, impl->node_version);
    return OX_WAIT(s, cursor_removed_node);
}

static ox_step cursor_removed_node(struct ox_seq *s)
{
    struct cursor_impl *impl = cursor_of(s);
    if (s->err == OX_E_UNKNOWN_OUTCOME)
        return OX_GOTO(s, cursor_remove_start);
    if (s->err != OX_OK && s->err != OX_E_NOT_FOUND)
        return OX_FINISH(s, s->err);
    OX_CRASHPOINT(s->loop, "cursor.after_remove");
    if (impl->where.id >= 0)
        cursor_discard(impl, impl->where);
    return OX_FINISH(s, OX_OK);
}

static void cursor_end(struct cursor_impl *impl, enum ox_err err)
{
    struct ox_op *op = impl->ending;
    if (impl->unloading && err != OX_OK)
        ox_mledger_hold_trim(impl->cursor->ml); // its node is still there: the log keeps what it has not consumed until it is opened anew
    cursor_answer(impl->cursor, err == OX_OK ? OX_E_CLOSED : err);
    cursor_set_state(impl->cursor, OX_CURSOR_CLOSED);
    cursor_free(impl->cursor);
    ox_op_finish(op, err);
}

// The node of a new cursor is written, or could not be.
static void cursor_created(struct cursor_impl *impl, enum ox_err err)
{
    struct ox_cursor_open *open = impl->creating;
    impl->creating = NULL;
    if (err != OX_OK) {
        cursor_answer(impl->cursor, err);
        cursor_free(impl->cursor);
    } else {
        open->cursor = impl->cursor;
        open->created = true;
        cursor_schedule(impl->cursor);
    }
    ox_op_finish(&open->op, err);
}

static void cursor_start_end(struct cursor_impl *impl)
{
    if (impl->unloading)
        cursor_start(impl, CURSOR_JOB_REMOVE, "cursor.remove", cursor_remove_start);
    else
        cursor_start(impl, CURSOR_JOB_CLOSE, "cursor.close", cursor_close_start);
}

void cursor_end_if_quiet(struct cursor_impl *impl)
{
    if (!impl->ending || impl->job != CURSOR_JOB_NONE)
        return;
    cursor_follow_drop(impl, OX_E_CLOSED);
    if (!cursor_follow_is_making(impl))
        cursor_start_end(impl);
}

// A flush that failed: whoever waits is told; what is not durable is tried again, unless the store has lost us.
static void cursor_flush_failed(struct cursor_impl *impl, enum ox_err err)
{
    bool refused = err == OX_E_DISCONNECTED || err == OX_E_METADATA_FULL || err == OX_E_TOO_BIG;
    cursor_drop_new(impl, refused && impl->failed == OX_OK); // else the node may name it
    impl->properties_dirty |= impl->properties_writing;
    impl->properties_writing = false;
    cursor_set_state(impl->cursor, impl->handle ? OX_CURSOR_OPEN : OX_CURSOR_NO_LEDGER);
    if (err == OX_E_FENCED || err == OX_E_SHUTDOWN || err == OX_E_SESSION_EXPIRED)
        cursor_fail(impl, err);
    else
        cursor_answer(impl->cursor, err);
}

// What was asked for while another job ran starts now.
static void cursor_job_done(struct ox_seq *s, enum ox_err err)
{
    struct cursor_impl *impl = cursor_of(s);
    enum cursor_job done = impl->job;
    impl->job = CURSOR_JOB_NONE;
    ox_free(impl->io);
    impl->io = NULL;
    if (done == CURSOR_JOB_CREATE) {
        cursor_created(impl, err);
        return;
    }
    if (done != CURSOR_JOB_FLUSH) {
        cursor_end(impl, err);
        return;
    }
    if (err != OX_OK)
        cursor_flush_failed(impl, err);
    if (cursor_follow_is_switching(impl))
        cursor_follow_end(impl, err != OX_OK ? err : impl->follow->err);
    if (impl->ending)
        cursor_end_if_quiet(impl);
    else if (err == OX_OK)
        cursor_schedule(impl->cursor);
    else if (impl->failed == OX_OK)
        ox_timer_start(&impl->timer, cursor_factory(impl)->settings.mark_delete_interval_ns);
    ml_follower_check(&impl->follower); // its new ledger may have been begun before another place became active
}

static void cursor_begin_end(struct ox_cursor *c, struct ox_op *op, bool remove)
{
    struct cursor_impl *impl = cursor_impl(c);
    ox_op_begin(op);
    OX_ASSERT(!impl->ending && !impl->reading && !impl->creating);
    impl->ending = op;
    impl->unloading = remove;
    ox_timer_stop(&impl->timer);
    cursor_set_state(c, OX_CURSOR_CLOSING);
    cursor_end_if_quiet(impl);
}

void ox_cursor_close(struct ox_cursor *c, struct ox_op *op)
{
    cursor_begin_end(c, op, false);
}

void ox_cursor_remove(struct ox_cursor *c, struct ox_op *op)
{
    cursor_begin_end(c, op, true);
}

void ox_cursor_set_properties(struct ox_cursor *c, struct ox_op *op, const struct ox_kv *properties)
{
    ox_kv_copy(&c->properties, properties);
    cursor_impl(c)->properties_dirty = true;
    cursor_change_with_op(c, op);
}

static ox_step cursor_create_start(struct ox_seq *s)
{
    struct cursor_impl *impl = cursor_of(s);
    cursor_snapshot(impl);
    return cursor_write_node(s, cursor_pack_node(impl->cursor, true, impl->where, impl->record_pos));
}

static void cursor_create(struct ox_cursor_open *op, struct ox_cursor *c)
{
    op->created = true;
    if (!c->durable) {
        op->cursor = c;
        ox_op_finish(&op->op, OX_OK);
        return;
    }
    struct cursor_impl *impl = cursor_impl(c);
    impl->creating = op;
    cursor_start(impl, CURSOR_JOB_CREATE, "cursor.create", cursor_create_start);
}

void ox_cursor_open(struct ox_mledger *ml, struct ox_cursor_open *op, const char *name, bool durable,
                    struct ox_pos start, const struct ox_kv *properties)
{
    struct ox_cursor *c = ox_cursor_find(ml, name);
    ox_op_begin(&op->op);
    op->created = false;
    op->cursor = c;
    if (c) {
        ox_op_finish(&op->op, cursor_impl(c)->creating || c->durable != durable ? OX_E_BUSY : OX_OK);
        return;
    }
    if (ml->state != OX_ML_OPEN && ml->state != OX_ML_ROLLING) {
        ox_op_finish(&op->op, ml->state == OX_ML_FAILED ? OX_E_PLACE_FAILED : OX_E_FENCED);
        return;
    }
    c = cursor_new(ml, name, durable, ox_ml_clamp(ml, start));
    if (properties)
        ox_kv_copy(&c->properties, properties);
    cursor_create(op, c);
}
