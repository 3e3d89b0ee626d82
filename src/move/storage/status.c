// status.c - what the switch looks like: derived from the directive, from where ledgers were last seen, and from who has acknowledged. Nothing is hoped for.
#include "move/storage/control_int.h"

static json_t *status_stage(const char *name, uint64_t done, uint64_t total, uint64_t failures, bool over)
{
    return json_pack("{s:s,s:I,s:I,s:I,s:I,s:b}", "name", name, "done", (json_int_t)done, "total", (json_int_t)total,
                     "left", (json_int_t)(total > done ? total - done : 0), "failures", (json_int_t)failures, "over", over);
}

static json_t *status_progress(const char *name, const struct storage_progress *p)
{
    json_t *stage = status_stage(name, p->done, p->total, p->failures, p->over);
    uint64_t left = p->bytes_total > p->bytes ? p->bytes_total - p->bytes : 0;
    json_object_set_new(stage, "bytes", json_integer((json_int_t)p->bytes));
    json_object_set_new(stage, "bytesTotal", json_integer((json_int_t)p->bytes_total));
    json_object_set_new(stage, "bytesPerSecond", json_integer((json_int_t)p->bytes_per_s));
    json_object_set_new(stage, "etaSeconds",
                        p->over || left == 0 ? json_integer(0)
                        : p->bytes_per_s     ? json_integer((json_int_t)(left / p->bytes_per_s))
                                             : json_null());
    return stage;
}

static json_t *status_stages(const struct ox_storage *st)
{
    const struct storage_control *c = st->control;
    size_t acked = json_array_size(c->acked), missing = json_array_size(c->missing);
    uint64_t elsewhere = c->elsewhere > 0 ? (uint64_t)c->elsewhere : 0;
    json_t *stages = json_array();
    // A switch that was over before this process started is not gone through again.
    bool was = st->state == STORAGE_DONE;
    json_array_append_new(stages, status_stage("SWAPPED", acked, acked + missing, 0, c->swapped || was));
    struct storage_progress writes = st->writes, metadata = st->metadata, data = st->data;
    writes.over |= was;
    metadata.over |= was;
    data.over |= was && st->move_data;
    json_array_append_new(stages, status_progress("WRITES_MOVED", &writes));
    json_array_append_new(stages, status_progress("METADATA_MOVED", &metadata));
    json_array_append_new(stages, status_progress("DATA_MOVED", &data));
    json_array_append_new(stages, status_stage("RELEASED", 0, elsewhere, 0, c->elsewhere == 0));
    return stages;
}

static json_t *status_switch(const struct ox_storage *st)
{
    json_t *acks = st->control->acked ? json_deep_copy(st->control->acked) : json_array();
    json_t *missing = st->control->missing ? json_deep_copy(st->control->missing) : json_array();
    return json_pack("{s:s,s:s,s:I,s:I,s:o,s:o,s:o,s:b,s:I,s:{s:I,s:I}}", "switchId", st->directive.switch_id, "state",
                     storage_state_name(st->state), "startedAt", (json_int_t)st->started_ms, "finishedAt",
                     (json_int_t)st->finished_ms, "stages", status_stages(st), "acks", acks, "missing", missing,
                     "moveData", st->move_data, "failures", (json_int_t)storage_failures_count(st), "throttle",
                     "bytesPerSecond", (json_int_t)st->bytes_per_s, "opsPerSecond", (json_int_t)st->ops_per_s);
}

// Why writes have not all moved, if they have not.
static void status_left(const struct ox_storage *st, json_t *answer)
{
    struct ox_ml_left left = {0};
    if (st->factory)
        ox_ml_follow_left(st->factory, &left);
    json_object_set_new(
        answer, "openElsewhere",
        json_pack("{s:i,s:i,s:i}", "logs", (int)left.logs, "cursors", (int)left.cursors, "failing", (int)left.failing));
    if (left.failing > 0)
        json_object_set_new(json_object_get(answer, "openElsewhere"), "lastFailure",
                            json_pack("{s:s,s:s}", "log", left.log, "reason", ox_err_text(left.err)));
}

void ox_storage_status(struct ox_storage *st, struct ox_storage_call *c)
{
    if (!storage_call_begin(st, c))
        return;
    if (st->activated && st->control->elsewhere < 0 && !st->control->stages.seq.active)
        storage_census_start(st); // the next answer knows
    json_t *answer = json_pack("{s:s,s:I,s:s,s:b,s:s?,s:s}", "active", storage_active(st), "epoch",
                               (json_int_t)st->directive.epoch, "bootstrap", st->bootstrap, "activated", st->activated,
                               "previous", st->directive.previous, "readMode", st->read_mode);
    json_object_set_new(answer, "switch", st->directive.switch_id ? status_switch(st) : json_null());
    json_object_set_new(answer, "guarded", st->control->guarded >= 0 ? json_integer(st->control->guarded) : json_null());
    status_left(st, answer);
    storage_call_answer(st, c, answer);
}
