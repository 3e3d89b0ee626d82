// append.c - appends: to the current (or next) ledger, acknowledged in the order of the calls once the node names the ledger that holds them.
#include "mledger/mledger_int.h"

static struct ox_ml_append *append_of(struct ox_link *link)
{
    return link ? CONTAINER_OF(link, struct ox_ml_append, link) : NULL;
}

static void append_answered(struct ox_op *op);

// Of a built append, without a call: header and body.
static uint64_t append_bytes(const struct ox_ml_append *a)
{
    return a->body.len + (a->append.part_count > 1 ? a->append.parts[0].len : 0);
}

static void append_send(struct mledger_impl *impl, struct ox_ml_append *a)
{
    struct ox_ml_ledger *home = impl->next ? impl->next : impl->current;
    struct ox_append *to = &a->append;
    a->home = home;
    a->stage = ML_SENT;
    a->pos = (struct ox_pos){home->where.id, home->given};
    to->entry = home->given++;
    home->given_bytes += append_bytes(a);
    home->sent++;
    ox_op_init(&to->op, impl->ml->factory->loop, append_answered, "mledger.append");
    ox_ledger_append(home->handle, to);
}

static void append_refuse(struct ox_ml_append *a, enum ox_err err)
{
    a->stage = ML_REFUSED;
    a->result = err;
}

// One append at a time is timed, for whoever has to leave room to clients.
static void append_probe_begin(struct ox_ml_factory *f, const struct ox_ml_append *a)
{
    if (f->probe)
        return;
    f->probe = a;
    f->probe_ns = ox_now_ns(f->loop);
}

static void append_probe_end(struct ox_ml_factory *f)
{
    f->probe = NULL;
    f->append_ns = (f->append_ns * 7 + (ox_now_ns(f->loop) - f->probe_ns)) / 8;
}

// The caller has its answer; the entry's bytes are let go.
static void append_end(struct ox_ml_append *a, enum ox_err err)
{
    if (a->ml->factory->probe == a)
        append_probe_end(a->ml->factory);
    ox_buf_unref(&a->body);
    ox_op_finish(&a->op, err);
}

static void append_acknowledge(struct mledger_impl *impl, struct ox_ml_append *a)
{
    struct ox_mledger *ml = impl->ml;
    struct ox_ml_factory *f = ml->factory;
    uint64_t bytes = append_bytes(a);
    a->home->entries++;
    a->home->bytes += bytes;
    ml->total_entries++;
    ml->total_bytes += bytes;
    ml->last = a->pos;
    impl->acked_index = f->settings.broker_entry_metadata ? (int64_t)a->index : impl->acked_index;
    f->appends.value++;
    f->append_bytes.value += (int64_t)bytes;
    if (!ox_list_empty(&ml->cursors)) // nobody reads a log without cursors soon
        ox_tail_cache_put(&f->cache, a->pos, a->append.parts, a->append.part_count);
    append_end(a, OX_OK);
}

static void append_give_up(struct mledger_impl *impl, struct ox_ml_append *a)
{
    enum ox_err err = a->stage == ML_REFUSED ? a->result : impl->fail_err;
    impl->broken = true;
    impl->ml->factory->append_failures.value++;
    append_end(a, err != OX_OK ? err : OX_E_PLACE_FAILED);
}

// True if the first of the waiting appends can be told its outcome. An entry of a ledger that the node does not name yet can't: rule 1.
static bool append_is_decided(const struct mledger_impl *impl, const struct ox_ml_append *a)
{
    if (a->stage == ML_STORED)
        return a->home->recorded || impl->fail_err != OX_OK;
    return a->stage == ML_REFUSED || (a->stage == ML_UNSURE && impl->fail_err != OX_OK);
}

static void append_drain(struct mledger_impl *impl)
{
    bool more = false;
    for (struct ox_ml_append *a; (a = append_of(ox_list_first(&impl->pending))) && append_is_decided(impl, a);) {
        ox_list_remove(&impl->pending, &a->link);
        bool good = a->stage == ML_STORED && a->home->recorded && !impl->broken;
        if (good)
            append_acknowledge(impl, a);
        else
            append_give_up(impl, a);
        more |= good;
    }
    if (more)
        ml_wake(impl->ml);
}

void ml_append_flow(struct ox_mledger *ml)
{
    struct mledger_impl *impl = ml_impl(ml);
    for (struct ox_ml_append *a; !impl->hold && (a = append_of(ox_list_pop_front(&impl->parked)));) {
        ox_list_push_back(&impl->pending, &a->link);
        if (a->stage == ML_PARKED && impl->fail_err != OX_OK)
            append_refuse(a, impl->fail_err);
        if (a->stage == ML_PARKED && !impl->current && !impl->next)
            append_refuse(a, OX_E_NO_SPACE); // opened on a full disk: rule 13
        if (a->stage == ML_PARKED)
            append_send(impl, a);
    }
    append_drain(impl);
}

// What an error of a ledger means. During a rollover the ledger's true end decides about its appends; otherwise the log fails.
static void append_failed(struct mledger_impl *impl, struct ox_ml_append *a, enum ox_err err)
{
    struct ml_roll *roll = &impl->roll;
    bool fatal = ox_err_class(err) == OX_CLASS_FENCED || err == OX_E_SHUTDOWN;
    a->stage = ML_UNSURE;
    roll->old_broken |= roll->seq.active && a->home == roll->old;
    roll->next_broken |= roll->seq.active && a->home == impl->next;
    if (fatal || !roll->seq.active || (a->home != roll->old && a->home != impl->next))
        ml_fail(impl->ml, err, "an append failed");
}

static void append_answered(struct ox_op *op)
{
    struct ox_ml_append *a = CONTAINER_OF(op, struct ox_ml_append, append.op);
    struct ox_mledger *ml = a->ml;
    struct mledger_impl *impl = ml_impl(ml);
    a->home->sent--;
    if (op->err == OX_OK)
        a->stage = ML_STORED;
    else
        append_failed(impl, a, op->err);
    append_drain(impl);
    ml_roll_drained(ml);
    ml_poke(ml);
}

bool ml_append_settle(struct ox_mledger *ml, const struct ox_ml_ledger *old, int64_t entries)
{
    struct mledger_impl *impl = ml_impl(ml);
    bool short_end = false;
    OX_LIST_EACH(&impl->pending, link) {
        struct ox_ml_append *a = append_of(link);
        if (a->stage == ML_REFUSED || a->home != old)
            continue;
        OX_ASSERT(a->stage != ML_SENT);
        if (a->pos.entry < entries)
            a->stage = ML_STORED;
        else
            short_end = true;
    }
    append_drain(impl);
    return short_end;
}

void ml_append_park(struct ox_mledger *ml, const struct ox_ml_ledger *old)
{
    struct mledger_impl *impl = ml_impl(ml);
    struct ox_list keep, move;
    ox_list_init(&keep);
    ox_list_init(&move);
    for (struct ox_ml_append *a; (a = append_of(ox_list_pop_front(&impl->pending)));) {
        OX_ASSERT(a->stage != ML_SENT);
        bool stays = a->stage == ML_STORED && a->home == old;
        if (!stays && a->stage != ML_REFUSED)
            a->stage = ML_PARKED;
        ox_list_push_back(stays ? &keep : &move, &a->link);
    }
    ox_list_splice(&impl->pending, &keep);
    ox_list_splice(&move, &impl->parked);
    ox_list_splice(&impl->parked, &move);
}

// The entry's bytes: the header, if it gets one, then the body.
static void append_build(struct mledger_impl *impl, struct ox_ml_append *a)
{
    struct ox_append *to = &a->append;
    a->body = ox_buf_ref(a->body);
    to->part_count = 0;
    if (impl->ml->factory->settings.broker_entry_metadata) {
        impl->ml->next_index += a->messages;
        a->index = impl->ml->next_index - 1;
        size_t n = ml_header_put(a->header, ox_wall_ms(impl->ml->factory->loop), a->index);
        to->parts[to->part_count++] = ox_buf_static(a->header, n);
    }
    to->parts[to->part_count++] = a->body;
    to->tail_len = a->tail_len;
    to->tail_crc = a->tail_crc;
}

static enum ox_err append_refused_by(const struct ox_mledger *ml)
{
    if (ml->terminated || ml_impl(ml)->term)
        return OX_E_TOPIC_TERMINATED;
    if (ml_impl(ml)->fail_err != OX_OK)
        return ml_impl(ml)->fail_err;
    return ml_is_open(ml) ? OX_OK : OX_E_SHUTDOWN;
}

// Nothing has to be waited for: it goes to its ledger at once.
static bool append_is_straight(const struct mledger_impl *impl)
{
    return !impl->hold && ox_list_empty(&impl->parked) && (impl->current || impl->next);
}

void ox_mledger_append(struct ox_mledger *ml, struct ox_ml_append *a)
{
    struct mledger_impl *impl = ml_impl(ml);
    OX_ASSERT(a->messages > 0);
    ox_op_begin(&a->op);
    a->ml = ml;
    a->stage = ML_PARKED;
    append_build(impl, a);
    append_probe_begin(ml->factory, a);
    enum ox_err err = append_refused_by(ml);
    if (err == OX_OK && append_is_straight(impl)) {
        ox_list_push_back(&impl->pending, &a->link);
        append_send(impl, a);
    } else {
        if (err != OX_OK)
            append_refuse(a, err);
        ox_list_push_back(&impl->parked, &a->link);
        ml_append_flow(ml);
    }
    if (err == OX_OK && ml_roll_is_due(impl))
        ml_roll_check(ml);
}
