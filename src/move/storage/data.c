// data.c - the data stage: walks over all logs and brings every sealed ledger into the active place or its log's target, several at once, until only failures are left.
#include <string.h>

#include "move/storage/data_int.h"

#define RUN_LOOK_NS (100 * OX_MS) // in a pause: whether the run still goes on

// A ledger that could not be moved in this run.
struct run_failed {
    struct ox_map_node node; // by key
    char *key;               // log, blank, ledger
    char *log;
    int64_t ledger;
    uint32_t tries;
    bool noted, for_good;
    uint64_t pass; // in which it was last met
};

struct data_run {
    struct ox_storage *st;
    struct storage_data *d;
    struct ox_op *op;
    struct ox_seq seq;
    uint32_t target;
    struct data_leftovers leftovers;
    uint32_t leftovers_at; // the next place to be looked at
    struct data_walk count;
    struct ox_ml_walk walk;
    bool walking;
    size_t at;           // in walk.found
    char *sealing;       // the log whose last ledger was handed to a job in this pass; or NULL
    uint32_t jobs;       // at work
    uint64_t jobs_bytes; // of their ledgers
    bool waiting;        // the sequence waits for a job to end
    uint64_t pass, moved, later;
    uint64_t pause_until_ns;
    bool blocked;
    struct ox_capacity has; // of has_place, as asked at has_ns
    uint32_t has_place;
    uint64_t has_ns;
    struct ox_timer pause;
    ox_step_fn after_pause;
    struct ox_map failed, remapped;
};

static ox_step run_leftovers(struct ox_seq *q);
static ox_step run_leftovers_done(struct ox_seq *q);
static ox_step run_counted(struct ox_seq *q);
static ox_step run_pass(struct ox_seq *q);
static ox_step run_walk(struct ox_seq *q);
static ox_step run_walked(struct ox_seq *q);
static ox_step run_item(struct ox_seq *q);
static ox_step run_drain(struct ox_seq *q);
static ox_step run_decide(struct ox_seq *q);
static ox_step run_pausing(struct ox_seq *q);

static struct data_run *run_of(struct ox_seq *q)
{
    return CONTAINER_OF(q, struct data_run, seq);
}

bool data_run_goes_on(void *run)
{
    const struct data_run *r = run;
    return storage_may_work(r->st) && r->st->p.router->active == r->target && !r->st->p.loop->dead;
}

// ---- failures

static struct run_failed *run_failed_find(const struct data_run *r, const char *log, int64_t ledger)
{
    if (ox_map_count(&r->failed) == 0)
        return NULL;
    OX_CLEANUP(ox_free_ptr)
    char *key = ox_asprintf("%s %lld", log, (long long)ledger);
    struct ox_map_node *node = ox_map_find_str(&r->failed, key);
    return node ? CONTAINER_OF(node, struct run_failed, node) : NULL;
}

static struct run_failed *run_failed_get(struct data_run *r, const char *log, int64_t ledger)
{
    struct run_failed *f = run_failed_find(r, log, ledger);
    if (f || ox_map_count(&r->failed) >= DATA_FAILED_MAX)
        return f;
    f = ox_malloc(sizeof *f);
    f->key = ox_asprintf("%s %lld", log, (long long)ledger);
    f->log = ox_strdup(log);
    f->ledger = ledger;
    ox_map_put_str(&r->failed, &f->node, f->key);
    return f;
}

static void run_failed_remove(struct data_run *r, struct run_failed *f)
{
    if (f->noted) {
        storage_failure_clear(r->st, f->log, NULL, f->ledger);
        r->st->data.failures--;
    }
    ox_map_remove(&r->failed, &f->node);
    ox_free(f->key);
    ox_free(f->log);
    ox_free(f);
}

static void run_failed_free(struct data_run *r)
{
    OX_MAP_EACH(&r->failed, node) {
        struct run_failed *f = CONTAINER_OF(node, struct run_failed, node);
        f->noted = false; // the list of failures keeps them
        run_failed_remove(r, f);
    }
}

// Notes a failure where users see it. tries: what it costs; with DATA_TRIES of them a run lets go. Beyond what a run remembers it is the last try.
static void run_fail(struct data_run *r, const char *log, int64_t ledger, int64_t entry, uint32_t place,
                     const char *why, uint32_t tries)
{
    struct run_failed *f = run_failed_get(r, log, ledger);
    storage_failure_note(r->st, log, NULL, ox_router_name(r->st->p.router, place), ledger, entry, why);
    if (!f)
        return;
    f->tries += tries;
    f->for_good |= f->tries >= DATA_TRIES;
    f->pass = r->pass;
    r->st->data.failures += !f->noted;
    f->noted = true;
    r->later += !f->for_good;
}

// ---- pauses

static void run_pause_fire(struct ox_timer *t)
{
    struct data_run *r = CONTAINER_OF(t, struct data_run, pause);
    ox_seq_resume(&r->seq, OX_OK);
}

static ox_step run_pause(struct data_run *r, uint64_t ns, ox_step_fn then)
{
    r->pause_until_ns = ox_now_ns(r->st->p.loop) + ns;
    r->after_pause = then;
    return OX_GOTO(&r->seq, run_pausing);
}

static ox_step run_pausing(struct ox_seq *q)
{
    struct data_run *r = run_of(q);
    uint64_t now = ox_now_ns(q->loop);
    if (now >= r->pause_until_ns || !data_run_goes_on(r))
        return ox_seq_goto(q, r->after_pause, "run_after_pause", OX_STEP_NEXT);
    ox_timer_start(&r->pause, OX_MIN(RUN_LOOK_NS, r->pause_until_ns - now));
    return OX_WAIT(q, run_pausing);
}

// ---- begin and end

static void run_done(struct ox_seq *q, enum ox_err err)
{
    struct data_run *r = run_of(q);
    struct storage_data *d = r->d;
    OX_ASSERT(r->jobs == 0);
    if (r->walking)
        ox_ml_walk_end(&r->walk);
    r->st->data.over = err == OX_OK;
    r->st->data.total = OX_MAX(r->st->data.total, r->st->data.done + r->st->data.failures);
    ox_info(r->st->p.log, "storage.data.over", "place=%s moved=%llu failures=%llu bytes=%llu outcome=%s",
            ox_router_name(r->st->p.router, r->target), (unsigned long long)r->st->data.done,
            (unsigned long long)r->st->data.failures, (unsigned long long)r->st->data.bytes, ox_err_name(err));
    run_failed_free(r);
    data_remapped_fini(&r->remapped);
    ox_timer_stop(&r->pause);
    ox_free(r->sealing);
    data_pace_stop(d);
    d->run = NULL;
    ox_op_finish(r->op, err);
    ox_free(r);
}

static ox_step run_begin(struct ox_seq *q)
{
    struct data_run *r = run_of(q);
    if (!data_run_goes_on(r))
        return OX_FINISH(q, OX_E_CANCELED);
    if (r->d->sweeps > 0) // a cleanup looks for unfinished copies: it would take ours for some
        return run_pause(r, RUN_LOOK_NS, run_begin);
    r->leftovers = (struct data_leftovers){.st = r->st, .place = r->target, .remapped = &r->remapped};
    r->leftovers_at = 0;
    return OX_GOTO(q, run_leftovers);
}

static ox_step run_leftovers(struct ox_seq *q)
{
    struct data_run *r = run_of(q);
    ox_seq_bind(q, &r->leftovers.op, "storage.leftovers");
    data_leftovers_start(&r->leftovers);
    return OX_WAIT(q, run_leftovers_done);
}

void storage_data_run(struct ox_storage *st, struct ox_op *op)
{
    struct storage_data *d = data_get(st);
    OX_ASSERT(!d->run);
    ox_op_begin(op);
    struct data_run *r = ox_malloc(sizeof *r);
    d->run = r;
    r->st = st;
    r->d = d;
    r->op = op;
    r->target = st->p.router->active;
    ox_timer_init(&r->pause, st->p.loop, run_pause_fire);
    st->data = (struct storage_progress){.begun_ns = ox_now_ns(st->p.loop)};
    data_pace_start(d);
    ox_seq_start(&r->seq, st->p.loop, "storage.data", run_begin, run_done);
}

// True if a found ledger is for this stage to move.
static bool run_wants(const struct data_run *r, const char *log, const struct ox_ml_found *f)
{
    bool movable = f->kind == OX_ML_KIND_DATA || (f->kind == OX_ML_KIND_COMPACTED && r->st->factory->compacted);
    return movable && !(f->known && f->where.place == storage_home(r->st, log));
}

static void run_count_visit(void *ctx, const struct ox_ml_walk *w)
{
    struct data_run *r = ctx;
    for (size_t i = 0; i < w->count; i++) {
        if (!run_wants(r, w->log, &w->found[i]) || w->found[i].open)
            continue;
        r->st->data.total++;
        r->st->data.bytes_total += w->found[i].bytes;
    }
}

// Behind the active place: those that are the target of some log.
static bool run_leftovers_in_next(struct data_run *r)
{
    const struct ox_router *router = r->st->p.router;
    for (uint32_t i = r->leftovers_at; i < router->count; i++) {
        if (i == r->target || !ox_router_place(router, i) || !storage_is_home(r->st, i))
            continue;
        r->leftovers_at = i + 1;
        r->leftovers = (struct data_leftovers){.st = r->st, .place = i};
        return true;
    }
    return false;
}

static ox_step run_leftovers_done(struct ox_seq *q)
{
    struct data_run *r = run_of(q);
    if (!data_run_goes_on(r))
        return OX_FINISH(q, OX_E_CANCELED);
    if (q->err != OX_OK) {
        ox_warn(r->st->p.log, "storage.data.list_failed", "place=%s error=%s",
                ox_router_name(r->st->p.router, r->leftovers.place), ox_err_name(q->err));
        if (r->leftovers.place == r->target)
            return run_pause(r, STORAGE_RETRY_NS, run_begin);
    }
    if (run_leftovers_in_next(r))
        return OX_GOTO(q, run_leftovers);
    r->st->data.total = r->st->data.bytes_total = 0;
    r->count = (struct data_walk){.st = r->st, .visit = run_count_visit, .ctx = r};
    ox_seq_bind(q, &r->count.op, "storage.data.count");
    data_walk_start(&r->count, false);
    return OX_WAIT(q, run_counted);
}

// What could not be counted (the metadata store is away) is found by the passes.
static ox_step run_counted(struct ox_seq *q)
{
    struct data_run *r = run_of(q);
    ox_info(r->st->p.log, "storage.data.begin", "place=%s ledgers=%llu bytes=%llu",
            ox_router_name(r->st->p.router, r->target), (unsigned long long)r->st->data.total,
            (unsigned long long)r->st->data.bytes_total);
    return OX_GOTO(q, run_pass);
}

// ---- passes

static ox_step run_pass(struct ox_seq *q)
{
    struct data_run *r = run_of(q);
    if (!data_run_goes_on(r))
        return OX_GOTO(q, run_drain);
    r->pass++;
    r->moved = r->later = 0;
    ox_free(r->sealing);
    r->sealing = NULL;
    r->walk = (struct ox_ml_walk){0};
    ox_ml_walk_begin(r->st->factory, &r->walk, false);
    r->walking = true;
    return OX_GOTO(q, run_walk);
}

static ox_step run_walk(struct ox_seq *q)
{
    struct data_run *r = run_of(q);
    r->at = 0;
    ox_seq_bind(q, &r->walk.op, "storage.data.walk");
    ox_ml_walk_next(&r->walk);
    return OX_WAIT(q, run_walked);
}

static ox_step run_walked(struct ox_seq *q)
{
    struct data_run *r = run_of(q);
    if (q->err != OX_OK || !data_run_goes_on(r)) {
        r->later++; // the metadata store is away: again from the start
        return OX_GOTO(q, run_drain);
    }
    if (!r->walk.log)
        return OX_GOTO(q, run_drain);
    if (r->walk.log_err != OX_OK)
        run_fail(r, r->walk.log, -1, -1, r->target, "the log's record can't be understood: repair or delete it", DATA_TRIES);
    return OX_GOTO(q, run_item);
}

// ---- one ledger

static void run_moved(struct data_run *r, const struct data_job *j)
{
    struct run_failed *f = run_failed_find(r, j->log, j->from.id);
    if (f)
        run_failed_remove(r, f);
    else
        storage_failure_clear(r->st, j->log, NULL, j->from.id); // of an earlier run
    r->moved++;
    r->st->data.done++;
    if (j->flip || j->copy.adopted) {
        r->st->data.bytes += j->bytes;
        return;
    }
    OX_CLEANUP(ox_free_ptr)
    char *labels = ox_asprintf("from=\"%s\",to=\"%s\"", ox_router_name(r->st->p.router, j->from.place),
                               ox_router_name(r->st->p.router, j->to.place));
    data_count(r->d, "bookie_cluster_copied_bytes_total", "Bytes of ledgers copied to another place", labels,
               (int64_t)j->copy.bytes);
}

// The active place is waited for; for a target that takes nothing the others do not wait, and it is given up after some tries.
static bool run_waits_for(const struct data_run *r, uint32_t place)
{
    return place == r->target;
}

static void run_job_failed(struct data_run *r, const struct data_job *j)
{
    bool at_target = j->outcome == DATA_BLOCKED;
    data_count_error(r->d, j->err);
    uint32_t tries = at_target && run_waits_for(r, j->to.place) ? 0 : j->outcome == DATA_REFUSED ? DATA_TRIES : 1;
    run_fail(r, j->log, j->from.id, j->bad_entry, at_target ? j->to.place : j->from.place, ox_str_get(&j->why), tries);
}

// Its place does not know the ledger. If the next pass still finds it on record, that is a loss.
static void run_job_lost(struct data_run *r, const struct data_job *j)
{
    struct run_failed *f = run_failed_get(r, j->log, j->from.id);
    if (f && f->tries++ == 0)
        r->later++;
    else
        run_job_failed(r, j);
}

static void run_job_over(struct ox_op *op)
{
    struct data_job *j = CONTAINER_OF(op, struct data_job, op);
    struct data_run *r = j->run;
    r->jobs--;
    r->jobs_bytes -= j->bytes;
    switch (j->outcome) {
    case DATA_MOVED: run_moved(r, j); break;
    case DATA_GONE:
        r->st->data.total -= r->st->data.total > 0;
        r->st->data.bytes_total -= OX_MIN(j->bytes, r->st->data.bytes_total);
        break;
    case DATA_LATER: r->later++; break;
    case DATA_LOST: run_job_lost(r, j); break;
    case DATA_BLOCKED:
        r->blocked |= run_waits_for(r, j->to.place);
        run_job_failed(r, j);
        break;
    case DATA_FAILED:
    case DATA_REFUSED: run_job_failed(r, j); break;
    case DATA_CANCELED: break;
    }
    data_job_free(j);
    if (r->waiting) {
        r->waiting = false;
        ox_seq_resume(&r->seq, OX_OK);
    }
}

static const struct ox_ml_copy *run_copy_in_target(const struct data_run *r, const struct ox_ml_found *f)
{
    const char *target = storage_home_name(r->st, r->walk.log);
    for (size_t i = f->copy_count; i-- > 0;) // the newest: an older one may have turned out to be unfit
        if (strcmp(f->copies[i].place, target) == 0)
            return &f->copies[i];
    return NULL;
}

static int64_t run_remapped(const struct data_run *r, const struct ox_ml_found *f)
{
    if (ox_map_count(&r->remapped) == 0)
        return -1;
    OX_CLEANUP(ox_free_ptr)
    char *of = ox_asprintf("%s:%lld", f->place, (long long)f->where.physical);
    struct ox_map_node *node = ox_map_find_str(&r->remapped, of);
    return node ? CONTAINER_OF(node, struct data_remapped, node)->physical : -1;
}

static void run_start_job(struct data_run *r, const struct ox_ml_found *f, bool seal)
{
    const struct ox_ml_copy *copy = run_copy_in_target(r, f);
    uint32_t home = storage_home(r->st, r->walk.log);
    struct data_job *j = ox_malloc(sizeof *j);
    j->run = r;
    j->log = ox_strdup(r->walk.log);
    j->from = f->where;
    j->entries = f->entries;
    j->bytes = f->bytes;
    j->digest = f->digest ? ox_strdup(f->digest) : NULL;
    j->seal = seal;
    j->compacted = f->kind == OX_ML_KIND_COMPACTED;
    j->flip = copy && f->digest;
    j->to = (struct ox_location){home, f->where.id, copy ? copy->physical : f->where.id};
    j->physical = home == r->target ? run_remapped(r, f) : -1;
    r->jobs++;
    r->jobs_bytes += j->bytes;
    ox_op_init(&j->op, r->st->p.loop, run_job_over, "storage.job");
    data_job_start(j, r->d);
}

// Room for a copy beside what is kept for clients. On no room, says why.
static bool run_has_room(struct data_run *r, const struct ox_ml_found *f)
{
    uint32_t home = storage_home(r->st, r->walk.log);
    struct ox_place *place = ox_router_place(r->st->p.router, home);
    uint64_t now = ox_now_ns(r->st->p.loop);
    if (place && (r->has_ns == 0 || now - r->has_ns > RUN_LOOK_NS || r->has_place != home)) {
        ox_place_capacity(place, &r->has);
        r->has_place = home;
        r->has_ns = now;
    }
    struct ox_capacity has = r->has;
    uint64_t keep = storage_keep_free(&has), need = r->jobs_bytes + f->bytes;
    if (place && has.writable && has.available >= keep + need)
        return true;
    OX_CLEANUP(ox_free_ptr)
    char *why = ox_asprintf(
        "place %s takes no copies now: %s, %llu bytes available, %llu needed and %llu kept free for clients; "
        "copying goes on when there is room",
        ox_router_name(r->st->p.router, home),
        !place         ? "not open"
        : has.writable ? "open"
                       : "not writable",
        (unsigned long long)has.available, (unsigned long long)need, (unsigned long long)keep);
    data_count_error(r->d, OX_E_NO_SPACE);
    if (run_waits_for(r, home))
        storage_failure_note(r->st, r->walk.log, NULL, ox_router_name(r->st->p.router, home), f->where.id, -1, why);
    else
        run_fail(r, r->walk.log, f->where.id, -1, home, why, 1);
    return false;
}

static ox_step run_wait_job(struct data_run *r, ox_step_fn then, const char *name)
{
    r->waiting = true;
    return ox_seq_goto(&r->seq, then, name, OX_STEP_WAIT);
}

// An open ledger elsewhere: its owner is about to leave it. A log that nobody has loaded has to be opened for that, once.
static void run_open_ledger(struct data_run *r, const struct ox_ml_found *f)
{
    if (r->walk.loaded || (r->sealing && strcmp(r->sealing, r->walk.log) == 0)) {
        r->later++;
        return;
    }
    ox_free(r->sealing);
    r->sealing = ox_strdup(r->walk.log);
    run_start_job(r, f, true);
}

// True for a ledger that has failed for good in this run; notes that it is still on record.
static bool run_given_up(const struct data_run *r, const struct ox_ml_found *f)
{
    struct run_failed *failed = run_failed_find(r, r->walk.log, f->where.id);
    if (failed)
        failed->pass = r->pass;
    return failed && failed->for_good;
}

// Looks at one ledger of the walk.
static void run_look(struct data_run *r, const struct ox_ml_found *f)
{
    if (run_given_up(r, f))
        return;
    if (!f->known) {
        OX_CLEANUP(ox_free_ptr)
        char *why = ox_asprintf("place %s is not registered: register it, then move again", f->place);
        run_fail(r, r->walk.log, f->where.id, -1, r->target, why, DATA_TRIES);
        return;
    }
    if (f->open)
        run_open_ledger(r, f);
    else
        run_start_job(r, f, false);
}

static ox_step run_item(struct ox_seq *q)
{
    struct data_run *r = run_of(q);
    uint32_t limit = OX_MAX(r->st->p.config.concurrency, 1u);
    while (r->at < r->walk.count) {
        const struct ox_ml_found *f = &r->walk.found[r->at];
        if (!data_run_goes_on(r))
            return OX_GOTO(q, run_drain);
        if (r->jobs >= limit)
            return run_wait_job(r, run_item, "run_item");
        if (r->blocked) {
            r->blocked = false;
            return run_pause(r, DATA_BLOCKED_NS, run_item);
        }
        if (run_wants(r, r->walk.log, f) && f->known && !f->open && !run_copy_in_target(r, f) && !run_given_up(r, f) &&
            !run_has_room(r, f)) {
            if (!run_waits_for(r, storage_home(r->st, r->walk.log))) {
                r->at++;
                continue;
            }
            r->blocked = true;
            if (r->jobs > 0)
                return run_wait_job(r, run_item, "run_item");
            continue;
        }
        r->at++;
        if (run_wants(r, r->walk.log, f))
            run_look(r, f);
    }
    return OX_GOTO(q, run_walk);
}

// The walk is over, or the run is: jobs end first.
static ox_step run_drain(struct ox_seq *q)
{
    struct data_run *r = run_of(q);
    if (r->jobs > 0)
        return run_wait_job(r, run_drain, "run_drain");
    if (r->walking)
        ox_ml_walk_end(&r->walk);
    r->walking = false;
    return OX_GOTO(q, run_decide);
}

// Ledgers that failed and are on record no more are no failures.
static void run_forget_gone(struct data_run *r)
{
    OX_MAP_EACH(&r->failed, node) {
        struct run_failed *f = CONTAINER_OF(node, struct run_failed, node);
        if (f->pass != r->pass)
            run_failed_remove(r, f);
    }
}

// Failures of earlier runs that this one, which has seen everything, did not meet.
static void run_forget_earlier(struct data_run *r)
{
    OX_LIST_EACH(&r->st->failures, link) {
        const struct storage_failure *f = CONTAINER_OF(link, struct storage_failure, link);
        const struct run_failed *now = f->cursor ? NULL : run_failed_find(r, f->topic, f->ledger);
        bool full = ox_map_count(&r->failed) >= DATA_FAILED_MAX; // some of this run's are not remembered
        if (!f->cursor && !full && !(now && now->noted))
            storage_failure_clear(r->st, f->topic, NULL, f->ledger);
    }
}

static ox_step run_decide(struct ox_seq *q)
{
    struct data_run *r = run_of(q);
    if (!data_run_goes_on(r))
        return OX_FINISH(q, OX_E_CANCELED);
    if (r->blocked) {
        r->blocked = false;
        return run_pause(r, DATA_BLOCKED_NS, run_pass);
    }
    if (r->moved == 0 && r->later == 0) {
        run_forget_gone(r);
        run_forget_earlier(r);
        return OX_FINISH(q, OX_OK);
    }
    return run_pause(r, r->moved > 0 ? 0 : STORAGE_RETRY_NS, run_pass);
}
