// state.c - the life of a log: its states, what fails it, its memory.
#include "mledger/mledger_int.h"
#include "mledger/places.h"

#define BIT(s) (1u << OX_ML_##s)

// From a state (index), the states it may change to.
static const unsigned state_edges[] = {
    [OX_ML_OPENING] = BIT(OPEN) | BIT(CLOSED),
    [OX_ML_OPEN] = BIT(ROLLING) | BIT(FENCED) | BIT(FAILED) | BIT(CLOSING),
    [OX_ML_ROLLING] = BIT(OPEN) | BIT(FENCED) | BIT(FAILED) | BIT(CLOSING),
    [OX_ML_FENCED] = BIT(CLOSING),
    [OX_ML_FAILED] = BIT(FENCED) | BIT(CLOSING),
    [OX_ML_CLOSING] = BIT(CLOSED),
    [OX_ML_CLOSED] = 0,
};

bool ml_state_allows(enum ox_ml_state from, enum ox_ml_state to)
{
    return state_edges[from] & (1u << to);
}

const char *ml_state_name(enum ox_ml_state state)
{
    static const char *const names[] = {
#define OX_X(name) [OX_ML_##name] = #name,
        OX_ML_STATES(OX_X)
#undef OX_X
    };
    return names[state];
}

struct mledger_impl *ml_impl(const struct ox_mledger *ml)
{
    OX_ASSERT(ml->magic == ML_MAGIC);
    return (struct mledger_impl *)ml->impl;
}

void ml_set_state(struct ox_mledger *ml, enum ox_ml_state state, const char *why)
{
    OX_ASSERT(ml_state_allows(ml->state, state));
    ox_info(ml->factory->log, "mledger.state", "log=%s from=%s to=%s why=" OX_LOG_Q, ml->name, ml_state_name(ml->state),
            ml_state_name(state), why);
    ml->state = state;
}

bool ml_is_open(const struct ox_mledger *ml)
{
    return ml->state == OX_ML_OPEN || ml->state == OX_ML_ROLLING;
}

void ml_fail(struct ox_mledger *ml, enum ox_err err, const char *why)
{
    struct mledger_impl *impl = ml_impl(ml);
    bool fenced = ox_err_class(err) == OX_CLASS_FENCED;
    enum ox_ml_state to = fenced ? OX_ML_FENCED : OX_ML_FAILED;
    if (impl->fail_err == OX_OK || fenced)
        impl->fail_err = fenced ? OX_E_FENCED : err;
    impl->hold = false;
    if (ml_is_open(ml) || (ml->state == OX_ML_FAILED && fenced)) {
        ml_set_state(ml, to, why);
        ox_cursors_fail(ml, impl->fail_err);
    }
    ml_append_flow(ml);
    ml_wake(ml);
    ml_poke(ml);
}

void ml_poke(struct ox_mledger *ml)
{
    struct ml_ending *e = ml_impl(ml)->ending;
    ml_term_poke(ml);
    if (!e || !e->waiting)
        return;
    e->waiting = false;
    ox_seq_resume(&e->seq, OX_OK);
}

static void ml_age(struct ox_timer *t)
{
    struct mledger_impl *impl = CONTAINER_OF(t, struct mledger_impl, age);
    impl->young = false;
    ml_roll_check(impl->ml);
}

uint64_t ml_age_max_ns(const struct mledger_impl *impl)
{
    uint64_t max = impl->ml->factory->settings.rollover_ns_max;
    return max + max / 20 * impl->age_share / 1024;
}

static struct mledger_impl *ml_impl_new(struct ox_mledger *ml)
{
    struct mledger_impl *impl = ox_malloc(sizeof *impl);
    struct ox_ml_factory *f = ml->factory;
    impl->ml = ml;
    impl->record = ox_record_new();
    impl->acked_index = -1;
    impl->age_share = ox_loop_random(f->loop) % 1024;
    ox_list_init(&impl->pending);
    ox_list_init(&impl->parked);
    ox_ml_owner(f, ml->name, NULL, &impl->owner);
    ox_op_init(&impl->wake, f->loop, ml_wake_done, "mledger.wake");
    ox_timer_init(&impl->age, f->loop, ml_age);
    return impl;
}

struct ox_mledger *ml_new(struct ox_ml_factory *f, const char *name)
{
    struct ox_mledger *ml = ox_malloc(sizeof *ml);
    ml->magic = ML_MAGIC;
    ml->factory = f;
    ml->dropped = -1;
    ml->name = ox_strdup(name);
    ml->path = ox_asprintf("/managed-ledgers/%s", name);
    ml->last = OX_POS_EARLIEST;
    ml->node_version = OX_META_ABSENT;
    ox_list_init(&ml->cursors);
    ox_list_init(&ml->waiters);
    ml->impl = ml_impl_new(ml);
    ml_writer_init(ml);
    ml_roll_init(ml);
    ml_trim_init(ml);
    ml_follower_init(&ml_impl(ml)->follower, f, false);
    ox_map_put_str(&f->open, &ml->by_name, ml->name);
    return ml;
}

static void ml_impl_free(struct mledger_impl *impl)
{
    OX_ASSERT(ox_list_empty(&impl->pending) && ox_list_empty(&impl->parked) && impl->reads == 0);
    OX_ASSERT(!(impl->term && impl->term->seq.active) && !ox_op_pending(&impl->wake) && !impl->roll.seq.active &&
              !impl->trim.seq.active && !impl->writer.seq.active);
    ox_timer_stop(&impl->age);
    ml_roll_fini(impl->ml);
    ml_trim_fini(impl->ml);
    ml_follower_fini(&impl->follower, OX_E_BUSY);
    ml_writer_fini(impl->ml);
    ox_record_free(impl->record);
    ox_kv_fini(&impl->owner);
    ox_free(impl->term);
    ox_free(impl->ending);
    ox_free(impl);
}

void ml_free(struct ox_mledger *ml)
{
    OX_ASSERT(ml->state == OX_ML_CLOSED && ox_list_empty(&ml->waiters));
    while (ml->ledger_count)
        ml_list_remove(ml, ml->ledgers[ml->ledger_count - 1]);
    ox_map_remove(&ml->factory->open, &ml->by_name);
    ml_impl_free(ml_impl(ml));
    ox_kv_fini(&ml->properties);
    ox_free(ml->ledgers);
    ox_free(ml->name);
    ox_free(ml->path);
    ml->magic = 0;
    ox_free(ml);
}
