// cursors.c - the metadata stage: cursors' positions leave the other places, by rollover where their log is loaded, else without loading it.
#include <string.h>

#include "move/storage/control_int.h"

#define CURSORS_FAILED_PASSES 3 // with nothing but failures left: then the stage is over, with failures

static ox_step cursors_pass(struct ox_seq *s);
static ox_step cursors_next(struct ox_seq *s);
static ox_step cursors_items(struct ox_seq *s);
static ox_step cursors_drain(struct ox_seq *s);
static ox_step cursors_judge(struct ox_seq *s);

// One cursor on its way.
struct cursor_job {
    struct ox_ml_cursor_move move;
    struct storage_cursors *cursors;
    char *log, *cursor, *place;
    int64_t ledger;
};

static struct storage_cursors *cursors_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct storage_cursors, seq);
}

static bool cursors_live(const struct storage_cursors *c)
{
    return storage_may_work(c->st) && c->epoch == c->st->directive.epoch;
}

static void cursors_done(struct ox_seq *s, enum ox_err err)
{
    struct storage_cursors *c = cursors_of(s);
    if (c->walking)
        ox_ml_walk_end(&c->walk);
    c->walking = false;
    ox_op_finish(&c->op, err);
}

static void cursors_pause_over(struct ox_timer *t)
{
    ox_seq_resume(&CONTAINER_OF(t, struct storage_cursors, timer)->seq, OX_OK);
}

void storage_cursors_run(struct ox_storage *st, struct storage_cursors *c)
{
    ox_op_begin(&c->op);
    c->st = st;
    c->epoch = st->directive.epoch;
    c->failed_passes = 0;
    c->in_flight = 0;
    c->waiting = false;
    ox_timer_init(&c->timer, st->p.loop, cursors_pause_over);
    ox_seq_start(&c->seq, st->p.loop, "storage.cursors", cursors_pass, cursors_done);
}

void storage_cursors_wake(struct storage_cursors *c)
{
    if (!c->seq.active || !ox_timer_started(&c->timer))
        return;
    ox_timer_stop(&c->timer);
    ox_seq_resume(&c->seq, OX_OK);
}

static ox_step cursors_pass(struct ox_seq *s)
{
    struct storage_cursors *c = cursors_of(s);
    if (!cursors_live(c))
        return OX_FINISH(s, OX_E_CANCELED);
    c->found = c->moved = c->later = c->failed = 0;
    storage_count_begin(&c->count);
    c->base = c->st->metadata.done;
    ox_ml_walk_begin(c->st->factory, &c->walk, true);
    c->walking = true;
    c->at = c->walk.count = 0;
    return OX_GOTO(s, cursors_next);
}

static ox_step cursors_next(struct ox_seq *s)
{
    struct storage_cursors *c = cursors_of(s);
    if (!cursors_live(c))
        return OX_GOTO(s, cursors_drain);
    c->at = 0;
    ox_seq_bind(s, &c->walk.op, "storage.cursors.walk");
    ox_ml_walk_next(&c->walk);
    return OX_WAIT(s, cursors_items);
}

// ---- moving one ------------------------------------------------------------------------------------------------------

// Outcomes that say nothing about the cursor: the next pass sees. B6: metadata that is away is waited for, not counted as a failure.
static bool cursors_may_pass(enum ox_err err)
{
    return err == OX_E_BUSY || err == OX_E_CONFLICT || err == OX_E_BAD_VERSION || err == OX_E_DISCONNECTED ||
           err == OX_E_SESSION_EXPIRED || err == OX_E_UNKNOWN_OUTCOME || err == OX_E_CANCELED || err == OX_E_SHUTDOWN ||
           err == OX_E_FENCED || err == OX_E_LIMIT;
}

static void cursors_settle(struct storage_cursors *c, const struct cursor_job *job, enum ox_err err)
{
    struct ox_storage *st = c->st;
    if (err == OX_OK || err == OX_E_NOT_FOUND) {
        st->metadata.done++;
        c->moved++;
        storage_failure_clear(st, job->log, job->cursor, job->ledger);
    } else if (cursors_may_pass(err)) {
        c->later++;
    } else {
        c->failed++;
        storage_failure_note(st, job->log, job->cursor, job->place, job->ledger, -1, ox_err_text(err));
    }
}

static void cursors_moved(struct ox_op *op)
{
    struct cursor_job *job = CONTAINER_OF(op, struct cursor_job, move.op);
    struct storage_cursors *c = job->cursors;
    if (c->epoch == c->st->directive.epoch)
        cursors_settle(c, job, op->err);
    ox_free(job->log);
    ox_free(job->cursor);
    ox_free(job->place);
    ox_free(job);
    c->in_flight--;
    if (c->waiting) {
        c->waiting = false;
        ox_seq_resume(&c->seq, OX_OK);
    }
}

static void cursors_move(struct storage_cursors *c, const struct ox_ml_found *f)
{
    struct cursor_job *job = ox_malloc(sizeof *job);
    job->cursors = c;
    job->log = ox_strdup(c->walk.log);
    job->cursor = ox_strdup(f->cursor);
    job->place = ox_strdup(f->place);
    job->ledger = f->where.id;
    job->move.log = job->log;
    job->move.cursor = job->cursor;
    job->move.expected = f->where.id;
    c->in_flight++;
    ox_op_init(&job->move.op, c->st->p.loop, cursors_moved, "storage.cursor.move");
    ox_ml_cursor_move(c->st->factory, &job->move);
}

// ---- looking at what the walk found --------------------------------------------------------------------------------------

// A record that cannot be understood hides where things are: it is listed, not passed over.
static void cursors_unreadable(struct storage_cursors *c)
{
    OX_CLEANUP(ox_free_ptr)
    char *reason = ox_asprintf("its record cannot be understood: %s", ox_err_text(c->walk.log_err));
    c->failed++;
    c->count.elsewhere++;
    storage_failure_note(c->st, c->walk.log, c->walk.cursor, NULL, -1, -1, reason);
}

static bool cursors_wanted(const struct storage_cursors *c, const struct ox_ml_found *f)
{
    return f->kind == OX_ML_KIND_CURSOR && strcmp(f->place, storage_home_name(c->st, c->walk.log)) != 0;
}

static ox_step cursors_step_over(struct ox_seq *s)
{
    struct storage_cursors *c = cursors_of(s);
    while (c->at < c->walk.count && !cursors_wanted(c, &c->walk.found[c->at]))
        storage_count_add(c->st, &c->count, &c->walk, &c->walk.found[c->at++]);
    if (c->at == c->walk.count)
        return OX_GOTO(s, cursors_next);
    if (!cursors_live(c))
        return OX_GOTO(s, cursors_drain);
    if (c->in_flight >= OX_MAX(c->st->p.config.concurrency, 1u)) {
        c->waiting = true;
        return OX_WAIT(s, cursors_step_over);
    }
    c->found++;
    c->st->metadata.total = OX_MAX(c->st->metadata.total, c->base + c->found);
    storage_count_add(c->st, &c->count, &c->walk, &c->walk.found[c->at]);
    cursors_move(c, &c->walk.found[c->at]);
    c->at++;
    return OX_GOTO(s, cursors_step_over);
}

static ox_step cursors_items(struct ox_seq *s)
{
    struct storage_cursors *c = cursors_of(s);
    if (s->err != OX_OK) {
        c->later++;
        ox_warn(c->st->p.log, "storage.cursors.walk_failed", "error=%s", ox_err_name(s->err));
        return OX_GOTO(s, cursors_drain);
    }
    if (!c->walk.log)
        return OX_GOTO(s, cursors_drain);
    if (c->walk.log_err != OX_OK)
        cursors_unreadable(c);
    return OX_GOTO(s, cursors_step_over);
}

// ---- end of a pass -----------------------------------------------------------------------------------------------------

static ox_step cursors_drain(struct ox_seq *s)
{
    struct storage_cursors *c = cursors_of(s);
    if (c->in_flight > 0) {
        c->waiting = true;
        return OX_WAIT(s, cursors_drain);
    }
    ox_ml_walk_end(&c->walk);
    c->walking = false;
    storage_count_end(c->st, &c->count, c->later == 0 && cursors_live(c));
    return OX_GOTO(s, cursors_judge);
}

static ox_step cursors_judge(struct ox_seq *s)
{
    struct storage_cursors *c = cursors_of(s);
    struct ox_storage *st = c->st;
    if (!cursors_live(c))
        return OX_FINISH(s, OX_E_CANCELED);
    st->metadata.failures = c->failed;
    if (c->found == 0 && c->later == 0 && c->failed == 0) {
        st->metadata.total = st->metadata.done;
        return OX_FINISH(s, OX_OK);
    }
    c->failed_passes = c->later == 0 && c->moved == 0 ? c->failed_passes + 1 : 0;
    if (c->failed_passes >= CURSORS_FAILED_PASSES)
        return OX_FINISH(s, OX_OK);
    bool progress = c->moved > 0 && c->later == 0; // one more look, at once, to see that nothing is left
    ox_timer_start(&c->timer, progress ? 0 : STORAGE_RETRY_NS);
    return OX_WAIT(s, cursors_pass);
}

// ---- one cursor, asked for ---------------------------------------------------------------------------------------------

struct promoting {
    struct ox_ml_cursor_move move;
    struct ox_storage *st;
    struct ox_storage_call *call;
    char *log, *cursor;
};

// "persistent://t/n/x" and "t/n/persistent/x" name the same log.
static char *promote_log_name(const char *topic)
{
    static const char scheme[] = "persistent://";
    if (strncmp(topic, scheme, sizeof scheme - 1) != 0)
        return ox_strdup(topic);
    const char *tenant = topic + sizeof scheme - 1, *ns = strchr(tenant, '/'), *local = ns ? strchr(ns + 1, '/') : NULL;
    if (!local)
        return ox_strdup(topic);
    return ox_asprintf("%.*s/persistent/%s", (int)(local - tenant), tenant, local + 1);
}

static void promote_over(struct ox_op *op)
{
    struct promoting *p = CONTAINER_OF(op, struct promoting, move.op);
    if (op->err == OX_OK)
        storage_call_answer(p->st, p->call, NULL);
    else
        storage_call_fail(p->st, p->call, op->err, "cursor %s of %s (cursor ledger %lld expected) was not moved: %s",
                          p->cursor, p->log, (long long)p->move.expected, ox_err_text(op->err));
    ox_free(p->log);
    ox_free(p->cursor);
    ox_free(p);
}

void ox_storage_promote_cursor(struct ox_storage *st, struct ox_storage_call *c, const char *topic, const char *cursor,
                               const char *target, int64_t expected)
{
    if (!storage_call_begin(st, c))
        return;
    char *log = promote_log_name(topic);
    if (strcmp(target, storage_home_name(st, log)) != 0) {
        storage_call_fail(st, c, OX_E_CONFLICT,
                          "%s is active here, not %s: this broker may not have seen the switch yet, ask again",
                          storage_home_name(st, log), target);
        ox_free(log);
        return;
    }
    struct promoting *p = ox_malloc(sizeof *p);
    p->st = st;
    p->call = c;
    p->log = log;
    p->cursor = ox_strdup(cursor);
    p->move.log = p->log;
    p->move.cursor = p->cursor;
    p->move.expected = expected;
    ox_op_init(&p->move.op, st->p.loop, promote_over, "storage.promote");
    ox_ml_cursor_move(st->factory, &p->move);
}
