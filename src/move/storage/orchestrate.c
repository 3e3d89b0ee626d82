// orchestrate.c - the stages of the present switch, one after another: all brokers follow (SWAPPED), no open ledger is elsewhere (WRITES_MOVED), no cursor is
// (METADATA_MOVED), and if it was asked for no data is (DATA_MOVED). One broker leads, the one that holds the lease; every step can be done again.
#include <string.h>

#include "move/storage/control_int.h"

#define STAGES_WRITES_NS (200 * OX_MS) // between two looks at what still writes elsewhere

static ox_step stage_lease(struct ox_seq *s);
static ox_step stage_lease_written(struct ox_seq *s);
static ox_step stage_lease_read(struct ox_seq *s);
static ox_step stage_swapped(struct ox_seq *s);
static ox_step stage_swapped_asked(struct ox_seq *s);
static ox_step stage_writes(struct ox_seq *s);
static ox_step stage_metadata(struct ox_seq *s);
static ox_step stage_metadata_over(struct ox_seq *s);
static ox_step stage_data(struct ox_seq *s);
static ox_step stage_data_over(struct ox_seq *s);
static ox_step stage_counted(struct ox_seq *s);
static ox_step stage_end(struct ox_seq *s);
static ox_step stage_noted(struct ox_seq *s);

static bool stages_wanted(const struct ox_storage *st)
{
    return st->state == STORAGE_RUNNING && !st->stopping;
}

// What was begun for an epoch that has been superseded ends, too.
bool storage_may_work(const struct ox_storage *st)
{
    const struct storage_stages *o = &st->control->stages;
    return stages_wanted(st) && (!o->seq.active || o->epoch == st->directive.epoch);
}

static struct storage_stages *stages_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct storage_stages, seq);
}

// May it go on? Not if paused, aborted, superseded or stopping.
static bool stages_live(const struct storage_stages *o)
{
    return stages_wanted(o->st) && o->epoch == o->st->directive.epoch;
}

// The lease goes with the session: what a former leader would still do is not begun.
static bool stages_lead(const struct storage_stages *o)
{
    return o->lease_session && o->lease_session == o->st->p.meta->session_id && o->st->p.meta->session != OX_META_EXPIRED;
}

static void stages_gauge(struct ox_metric *row, const struct storage_progress *p)
{
    row[0].value = (int64_t)p->done;
    row[1].value = (int64_t)(p->total > p->done ? p->total - p->done : 0);
    row[2].value = (int64_t)p->failures;
}

static void stages_gauges(struct ox_storage *st)
{
    stages_gauge(st->control->items[0], &st->writes);
    stages_gauge(st->control->items[1], &st->metadata);
    stages_gauge(st->control->items[2], &st->data);
}

static void stages_start(struct ox_storage *st);

static void stages_done(struct ox_seq *s, enum ox_err err)
{
    (void)err;
    struct storage_stages *o = stages_of(s);
    struct ox_storage *st = o->st;
    bool again = o->again || o->epoch != st->directive.epoch;
    stages_gauges(st);
    storage_brokers_fini(&o->brokers);
    ox_free(o->switch_id);
    o->switch_id = NULL;
    if (again && stages_wanted(st))
        stages_start(st);
    else
        storage_settle(st);
}

static void stages_pause_over(struct ox_timer *t)
{
    ox_seq_resume(&CONTAINER_OF(t, struct storage_stages, timer)->seq, OX_OK);
}

static void stages_start(struct ox_storage *st)
{
    struct storage_stages *o = &st->control->stages;
    o->st = st;
    o->again = false;
    o->epoch = st->directive.epoch;
    o->switch_id = ox_strdup(st->directive.switch_id);
    ox_timer_init(&o->timer, st->p.loop, stages_pause_over);
    ox_seq_start(&o->seq, st->p.loop, "storage.stages", stage_lease, stages_done);
}

void storage_orchestrate(struct ox_storage *st)
{
    if (!st->factory || !st->directive.switch_id || !stages_wanted(st))
        return;
    ox_ml_follow_pause(st->factory, false);
    if (st->control->stages.seq.active) {
        st->control->stages.again = true;
        storage_stages_stop(st);
    } else {
        stages_start(st);
    }
}

void storage_stages_stop(struct ox_storage *st)
{
    struct storage_stages *o = &st->control->stages;
    storage_cursors_wake(&o->cursors);
    if (!o->seq.active || !ox_timer_started(&o->timer))
        return;
    ox_timer_stop(&o->timer);
    ox_seq_resume(&o->seq, OX_OK);
}

static ox_step stages_sleep(struct ox_seq *s, uint64_t ns, ox_step_fn then)
{
    struct storage_stages *o = stages_of(s);
    stages_gauges(o->st);
    ox_timer_start(&o->timer, ns);
    return ox_seq_goto(s, then, "storage.stages.pause", OX_STEP_WAIT);
}

// ---- one leads -------------------------------------------------------------------------------------------------------

static char *stages_lease_path(const struct storage_stages *o)
{
    return storage_path(o->st, "orchestrator/%s/lease", o->switch_id);
}

static ox_step stage_lease(struct ox_seq *s)
{
    struct storage_stages *o = stages_of(s);
    struct ox_storage *st = o->st;
    if (!stages_live(o))
        return OX_FINISH(s, OX_E_CANCELED);
    OX_CLEANUP(ox_free_ptr)
    char *path = stages_lease_path(o);
    struct ox_buf value = ox_buf_copy(st->p.config.broker, strlen(st->p.config.broker));
    o->lease_session = 0;
    ox_seq_bind(s, &o->put.op, "storage.stages.lease");
    ox_meta_put(st->p.meta, &o->put, path, value, OX_META_ABSENT, OX_META_EPHEMERAL);
    ox_buf_unref(&value);
    return OX_WAIT(s, stage_lease_written);
}

static ox_step stage_lease_written(struct ox_seq *s)
{
    struct storage_stages *o = stages_of(s);
    if (s->err == OX_OK)
        ox_free(o->put.path);
    else if (s->err != OX_E_BAD_VERSION && s->err != OX_E_UNKNOWN_OUTCOME)
        return stages_sleep(s, STORAGE_RETRY_NS, stage_lease);
    OX_CLEANUP(ox_free_ptr)
    char *path = stages_lease_path(o);
    ox_seq_bind(s, &o->get.op, "storage.stages.lease_read");
    ox_meta_get(o->st->p.meta, &o->get, path);
    return OX_WAIT(s, stage_lease_read);
}

static ox_step stage_lease_read(struct ox_seq *s)
{
    struct storage_stages *o = stages_of(s);
    if (s->err != OX_OK)
        return stages_sleep(s, STORAGE_RETRY_NS, stage_lease);
    ox_buf_unref(&o->get.value);
    if (o->get.stat.ephemeral_session != o->st->p.meta->session_id)
        return stages_sleep(s, STORAGE_REREAD_NS, stage_lease); // another broker leads, or our former session has not ended yet
    o->lease_session = o->get.stat.ephemeral_session;
    OX_CRASHPOINT(s->loop, "switch.after_lease");
    return OX_GOTO(s, stage_swapped);
}

// ---- SWAPPED ---------------------------------------------------------------------------------------------------------

static ox_step stage_swapped(struct ox_seq *s)
{
    struct storage_stages *o = stages_of(s);
    if (!stages_live(o))
        return OX_FINISH(s, OX_E_CANCELED);
    if (!stages_lead(o))
        return OX_GOTO(s, stage_lease);
    storage_brokers_fini(&o->brokers);
    ox_seq_bind(s, &o->brokers.op, "storage.stages.brokers");
    storage_brokers_ask(o->st, &o->brokers);
    return OX_WAIT(s, stage_swapped_asked);
}

static ox_step stage_swapped_asked(struct ox_seq *s)
{
    struct storage_stages *o = stages_of(s);
    if (s->err != OX_OK)
        return stages_sleep(s, STORAGE_RETRY_NS, stage_swapped);
    size_t missing = json_array_size(o->brokers.missing);
    storage_brokers_note(o->st, &o->brokers);
    if (missing > 0)
        return stages_sleep(s, STORAGE_RETRY_NS, stage_swapped);
    o->st->control->swapped = true;
    OX_CRASHPOINT(s->loop, "switch.after_swapped");
    o->st->writes.begun_ns = ox_now_ns(s->loop);
    return OX_GOTO(s, stage_writes);
}

// ---- WRITES_MOVED ----------------------------------------------------------------------------------------------------

static ox_step stage_writes(struct ox_seq *s)
{
    struct storage_stages *o = stages_of(s);
    struct storage_progress *p = &o->st->writes;
    if (!stages_live(o))
        return OX_FINISH(s, OX_E_CANCELED);
    if (!stages_lead(o))
        return OX_GOTO(s, stage_lease);
    struct ox_ml_left left;
    ox_ml_follow_left(o->st->factory, &left);
    uint64_t count = (uint64_t)left.logs + left.cursors;
    p->total = OX_MAX(p->total, count);
    p->done = p->total - count;
    p->failures = left.failing;
    p->over = count == 0;
    if (!p->over)
        return stages_sleep(s, STAGES_WRITES_NS, stage_writes);
    OX_CRASHPOINT(s->loop, "switch.after_writes");
    o->st->metadata.begun_ns = ox_now_ns(s->loop);
    return OX_GOTO(s, stage_metadata);
}

// ---- METADATA_MOVED --------------------------------------------------------------------------------------------------

static ox_step stage_metadata(struct ox_seq *s)
{
    struct storage_stages *o = stages_of(s);
    ox_seq_bind(s, &o->cursors.op, "storage.stages.cursors");
    storage_cursors_run(o->st, &o->cursors);
    return OX_WAIT(s, stage_metadata_over);
}

static ox_step stage_metadata_over(struct ox_seq *s)
{
    struct storage_stages *o = stages_of(s);
    if (!stages_live(o))
        return OX_FINISH(s, OX_E_CANCELED);
    if (s->err != OX_OK)
        return stages_sleep(s, STORAGE_RETRY_NS, stage_swapped);
    o->st->metadata.over = o->st->metadata.failures == 0;
    OX_CRASHPOINT(s->loop, "switch.after_metadata");
    return o->st->move_data ? OX_GOTO(s, stage_data) : OX_GOTO(s, stage_end);
}

// ---- DATA_MOVED ------------------------------------------------------------------------------------------------------

static ox_step stage_data(struct ox_seq *s)
{
    struct storage_stages *o = stages_of(s);
    if (!stages_lead(o))
        return OX_GOTO(s, stage_lease);
    o->st->data.begun_ns = ox_now_ns(s->loop);
    ox_seq_bind(s, &o->op, "storage.stages.data");
    storage_data_run(o->st, &o->op);
    return OX_WAIT(s, stage_data_over);
}

static ox_step stage_data_over(struct ox_seq *s)
{
    struct storage_stages *o = stages_of(s);
    if (!stages_live(o))
        return OX_FINISH(s, OX_E_CANCELED);
    if (s->err != OX_OK)
        return stages_sleep(s, STORAGE_RETRY_NS, stage_swapped);
    o->st->data.over = o->st->data.failures == 0;
    OX_CRASHPOINT(s->loop, "switch.after_data");
    ox_seq_bind(s, &o->cursors.op, "storage.stages.count"); // once more over all: what is left where
    storage_cursors_run(o->st, &o->cursors);
    return OX_WAIT(s, stage_counted);
}

static ox_step stage_counted(struct ox_seq *s)
{
    struct storage_stages *o = stages_of(s);
    if (!stages_live(o))
        return OX_FINISH(s, OX_E_CANCELED);
    return s->err == OX_OK ? OX_GOTO(s, stage_end) : stages_sleep(s, STORAGE_RETRY_NS, stage_swapped);
}

// ---- the end ---------------------------------------------------------------------------------------------------------

static ox_step stage_end(struct ox_seq *s)
{
    struct storage_stages *o = stages_of(s);
    struct ox_storage *st = o->st;
    if (o->again)
        return OX_FINISH(s, OX_OK); // something was asked for meanwhile
    bool failed = storage_failures_count(st) > 0;
    st->state = failed ? STORAGE_DONE_WITH_FAILURES : STORAGE_DONE;
    st->finished_ms = ox_wall_ms(s->loop);
    // The wall clock may have stepped: a span that cannot be is not shown.
    st->control->duration.value =
        st->finished_ms > st->started_ms ? (int64_t)((st->finished_ms - st->started_ms) / 1000) : 0;
    ox_info(st->p.log, "storage.switch.over", "switch=%s target=%s state=%s failures=%llu", o->switch_id,
            st->directive.target, storage_state_name(st->state), (unsigned long long)storage_failures_count(st));
    ox_seq_bind(s, &o->op, "storage.stages.header");
    storage_header_wait(st, &o->op);
    return OX_WAIT(s, stage_noted);
}

static ox_step stage_noted(struct ox_seq *s)
{
    return OX_FINISH(s, OX_OK);
}

// ---- pause, resume, abort --------------------------------------------------------------------------------------------

struct steering {
    struct ox_op op;
    struct ox_storage *st;
    struct ox_storage_call *call;
};

static void steer_noted(struct ox_op *op)
{
    struct steering *t = CONTAINER_OF(op, struct steering, op);
    if (op->err == OX_OK)
        storage_call_answer(t->st, t->call, NULL);
    else
        storage_call_fail(t->st, t->call, op->err, "it holds for this broker's process, but could not be noted: %s",
                          ox_err_text(op->err));
    ox_free(t);
}

// Sets the state; the answer comes when it is noted.
static void steer(struct ox_storage *st, struct ox_storage_call *c, enum storage_state state)
{
    struct steering *t = ox_malloc(sizeof *t);
    ox_info(st->p.log, "storage.switch.steered", "switch=%s from=%s to=%s", st->directive.switch_id,
            storage_state_name(st->state), storage_state_name(state));
    st->state = state;
    t->st = st;
    t->call = c;
    ox_op_init(&t->op, st->p.loop, steer_noted, "storage.steer");
    storage_header_wait(st, &t->op);
    ox_ml_follow_pause(st->factory, state == STORAGE_PAUSED);
    storage_stages_stop(st);
    storage_orchestrate(st);
}

// What may be asked of a switch in its state; else answers why not.
static bool steer_may(struct ox_storage *st, struct ox_storage_call *c, const char *verb, bool allowed)
{
    if (allowed)
        return true;
    if (!st->directive.switch_id)
        storage_call_fail(st, c, OX_E_CONFLICT, "there is nothing to %s: no switch was made yet", verb);
    else
        storage_call_fail(st, c, OX_E_CONFLICT, "there is nothing to %s: the switch %s to %s is %s", verb,
                          st->directive.switch_id, st->directive.target, storage_state_name(st->state));
    return false;
}

void ox_storage_pause(struct ox_storage *st, struct ox_storage_call *c)
{
    if (storage_call_begin(st, c) && steer_may(st, c, "pause", st->state == STORAGE_RUNNING || st->state == STORAGE_PAUSED))
        steer(st, c, STORAGE_PAUSED);
}

void ox_storage_resume(struct ox_storage *st, struct ox_storage_call *c)
{
    bool allowed = st->state == STORAGE_RUNNING || st->state == STORAGE_PAUSED || st->state == STORAGE_ABORTED;
    if (storage_call_begin(st, c) && steer_may(st, c, "resume", allowed))
        steer(st, c, STORAGE_RUNNING);
}

void ox_storage_abort(struct ox_storage *st, struct ox_storage_call *c)
{
    bool allowed = st->state == STORAGE_RUNNING || st->state == STORAGE_PAUSED || st->state == STORAGE_ABORTED;
    if (storage_call_begin(st, c) && steer_may(st, c, "abort", allowed))
        steer(st, c, STORAGE_ABORTED);
}
