// census.c - counts what is where: on the way of every walk of the metadata stage, and alone when a status is asked for and nobody has counted yet.
#include <string.h>

#include "move/storage/control_int.h"
#include "move/storage/data_int.h"

static ox_step census_next(struct ox_seq *s);
static ox_step census_counted(struct ox_seq *s);

void storage_count_begin(struct storage_count *c)
{
    ox_free(c->log);
    *c = (struct storage_count){0};
}

// Pulsar refuses a topic whose record names another place than its own, or another id than it would look for.
static bool count_guarded(const struct ox_storage *st, const struct ox_ml_found *f)
{
    if (f->kind != OX_ML_KIND_DATA || !st->factory->settings.guarded_records)
        return false;
    return strcmp(f->place, st->bootstrap) != 0 || f->where.physical != f->where.id;
}

bool storage_lost_stamp(const struct ox_storage *st, const struct ox_ml_found *f)
{
    const struct ox_ml_settings *set = &st->factory->settings;
    return set->stamps && !f->stamped && f->where.id > set->unstamped_max;
}

static void count_unstamped(const struct ox_storage *st, struct storage_count *c, const struct ox_ml_walk *walk,
                            const struct ox_ml_found *f)
{
    if (c->unstamped++ == 0)
        ox_warn(st->p.log, "storage.unstamped", "log=\"%s\" ledger=%lld hint=" OX_LOG_Q, walk->log, (long long)f->where.id,
                "made after the bootstrap, and its record does not say where it is: an older broker has written it; "
                "nothing under this id is deleted anywhere until it is repaired");
}

void storage_count_add(const struct ox_storage *st, struct storage_count *c, const struct ox_ml_walk *walk,
                       const struct ox_ml_found *f)
{
    const char *home = storage_home_name(st, walk->log);
    c->elsewhere += strcmp(f->place, home) != 0;
    if (storage_lost_stamp(st, f))
        count_unstamped(st, c, walk, f);
    for (size_t i = 0; i < f->copy_count; i++)
        c->elsewhere += strcmp(f->copies[i].place, home) != 0;
    if (!count_guarded(st, f) || (c->log && !strcmp(c->log, walk->log)))
        return;
    ox_free(c->log);
    c->log = ox_strdup(walk->log);
    c->guarded++;
}

void storage_count_end(struct ox_storage *st, struct storage_count *c, bool whole)
{
    if (whole) {
        st->control->guarded = c->guarded;
        st->control->elsewhere = c->elsewhere;
        data_gauge(data_get(st), "bookie_cluster_unstamped_after_bootstrap",
                   "Ledgers made after the bootstrap whose records do not say where they are, as last counted", "",
                   c->unstamped);
    }
    ox_free(c->log);
    c->log = NULL;
}

// ---- alone -------------------------------------------------------------------------------------------------------------

static struct storage_census *census_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct storage_census, seq);
}

static void census_done(struct ox_seq *s, enum ox_err err)
{
    struct storage_census *c = census_of(s);
    ox_ml_walk_end(&c->walk);
    // The stages have counted meanwhile, or are at it: theirs is newer.
    storage_count_end(c->st, &c->count, err == OX_OK && !c->st->control->stages.seq.active);
    storage_settle(c->st);
}

void storage_census_start(struct ox_storage *st)
{
    struct storage_census *c = &st->control->census;
    if (c->seq.active || st->stopping || !st->factory)
        return;
    c->st = st;
    storage_count_begin(&c->count);
    ox_ml_walk_begin(st->factory, &c->walk, true);
    ox_seq_start(&c->seq, st->p.loop, "storage.census", census_next, census_done);
}

static ox_step census_next(struct ox_seq *s)
{
    struct storage_census *c = census_of(s);
    if (c->st->stopping)
        return OX_FINISH(s, OX_E_SHUTDOWN);
    ox_seq_bind(s, &c->walk.op, "storage.census.walk");
    ox_ml_walk_next(&c->walk);
    return OX_WAIT(s, census_counted);
}

static ox_step census_counted(struct ox_seq *s)
{
    struct storage_census *c = census_of(s);
    if (s->err != OX_OK)
        return OX_FINISH(s, s->err);
    if (!c->walk.log)
        return OX_FINISH(s, OX_OK);
    c->count.elsewhere += c->walk.log_err != OX_OK; // nobody knows where that is
    for (size_t i = 0; i < c->walk.count; i++)
        storage_count_add(c->st, &c->count, &c->walk, &c->walk.found[i]);
    return OX_GOTO(s, census_next);
}
