// compaction.c - a topic's compaction: which ledger is in use, runs one after another, thresholds.
#include "broker/compaction.h"

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "broker/compaction_int.h"
#include "broker/policy_event.h"

// ---- what a topic has ------------------------------------------------------------------------------------------------

struct ox_compaction *compaction_get(struct ox_topic *t)
{
    struct ox_compaction *c = t->compaction;
    if (c)
        return c;
    c = ox_malloc(sizeof *c);
    c->topic = t;
    c->view.read = compacted_read;
    c->view.upto = OX_POS_EARLIEST;
    c->info = (struct ox_compaction_info){.ledger = -1, .entries = -1, .bytes = -1, .horizon = OX_POS_EARLIEST};
    t->compaction = c;
    return c;
}

// What is on record is now what is in use; the rest can go.
static void tidy_done(struct ox_op *op)
{
    struct ox_compaction *c = CONTAINER_OF(op, struct ox_compaction, tidy.op);
    struct ox_topic *t = c->topic;
    for (size_t i = 0; i < c->dead.count && op->err == OX_OK; i++)
        ox_ml_compacted_discard(t->ml, c->dead.items[i].place, c->dead.items[i].physical);
    ox_copies_fini(&c->dead);
    topic_unpin(t);
}

static void compaction_tidy(struct ox_compaction *c, const struct ox_copies *live)
{
    ox_op_init(&c->tidy.op, c->topic->shard->loop, tidy_done, "compaction.tidy");
    topic_pin(c->topic);
    ox_ml_compacted_note(c->topic->ml, &c->tidy, live);
}

// Compares what the record names with what the cursor says is in use. A crash may have left more; a record that was written by Pulsar says nothing.
static void compaction_adopt(struct ox_compaction *c, int64_t id, struct ox_copies *noted)
{
    struct ox_topic *t = c->topic;
    struct ox_copies live = {0};
    const char *place = ox_router_name(t->shard->router, 0);
    for (size_t i = 0; i < noted->count; i++)
        if (noted->items[i].physical == id)
            place = noted->items[i].place;
        else
            ox_copies_add(&c->dead, noted->items[i].place, noted->items[i].physical, 0);
    bool known = id >= 0 && ox_copies_find(noted, place, id);
    if (id >= 0)
        ox_copies_add(&live, place, id, ox_wall_ms(t->shard->loop));
    struct ox_location where = {.id = id, .physical = id};
    if (ox_router_find(t->shard->router, place, &where.place) != OX_OK)
        where.place = UINT32_MAX; // opening it says why not
    if (id >= 0)
        c->ledger = compacted_new(c, where, c->view.upto);
    if (c->dead.count > 0 || (id >= 0 && !known))
        compaction_tidy(c, &live);
    ox_copies_fini(&live);
}

void compaction_load(struct ox_topic *t)
{
    const struct ox_cursor *cursor = ox_cursor_find(t->ml, COMPACTION_CURSOR);
    const char *number = cursor ? ox_kv_find(&cursor->position_properties, COMPACTION_PROPERTY) : NULL;
    struct ox_copies noted = {0};
    int64_t id = -1;
    if (ox_ml_compacted(t->ml, &noted) != OX_OK) {
        ox_warn(t->shard->log, "compaction.record", "topic=%s hint=" OX_LOG_Q, t->name.full,
                "the record's property oxbow.compacted can't be understood: nothing that it may name is deleted");
        return;
    }
    if (number && ox_parse_i64(number, 0, INT64_MAX, &id) != OX_OK)
        id = -1;
    if (id >= 0 || noted.count > 0) {
        struct ox_compaction *c = compaction_get(t);
        c->view.upto = id >= 0 ? cursor->mark_delete : OX_POS_EARLIEST;
        c->info.ledger = id;
        c->info.horizon = c->view.upto;
        compaction_adopt(c, id, &noted);
    }
    ox_copies_fini(&noted);
}

struct ox_cursor_view *ox_compaction_view(const struct ox_topic *t)
{
    return t->compaction && t->compaction->ledger ? &t->compaction->view : NULL;
}

void ox_compaction_info(const struct ox_topic *t, struct ox_compaction_info *ret)
{
    struct ox_compaction *c = t->compaction;
    *ret = (struct ox_compaction_info){.ledger = -1, .entries = -1, .bytes = -1, .horizon = OX_POS_EARLIEST};
    if (c)
        *ret = c->info;
    if (c && c->ledger && c->ledger->handle) {
        ret->entries = c->ledger->handle->info.last_entry + 1;
        ret->bytes = (int64_t)c->ledger->handle->info.length;
    }
    ret->error = c && c->error ? c->error : "";
}

const char *ox_compaction_status_name(enum ox_compaction_status status)
{
    static const char *const names[] = {"NOT_RUN", "RUNNING", "SUCCESS", "ERROR"};
    return names[status];
}

// ---- runs ------------------------------------------------------------------------------------------------------------

static void compactions_next(struct compactions *all)
{
    if (all->running || ox_list_empty(&all->waiting))
        return;
    all->running = CONTAINER_OF(ox_list_pop_front(&all->waiting), struct compaction_run, link);
    compaction_run_start(all->running);
}

// Tells and frees a run; its topic is as it was.
static void run_end(struct compaction_run *run, enum ox_err err)
{
    struct ox_compaction *c = run->compaction;
    struct ox_op *op = run->op;
    c->run = NULL;
    c->info.status = run->move || run->prepare ? run->before : err ? OX_COMPACTION_ERROR : OX_COMPACTION_SUCCESS;
    ox_free(run);
    if (op)
        ox_op_finish(op, err);
}

static void run_note_outcome(struct compaction_run *run, enum ox_err err)
{
    struct ox_compaction *c = run->compaction;
    struct ox_shard *sh = c->topic->shard;
    uint64_t now = ox_wall_ms(sh->loop);
    if (run->prepare && !err)
        return;
    c->info.duration_ms = (ox_now_ns(sh->loop) - run->started_ns) / OX_MS;
    if (err) {
        c->info.failed_ms = now;
        c->info.failed++;
        ox_free(c->error);
        c->error = ox_asprintf("%s: %s", run->why ? run->why : "the run ended early", ox_err_text(err));
        ox_warn(sh->log, "compaction.failed", "topic=%s error=%s why=" OX_LOG_Q, c->topic->name.full, ox_err_name(err),
                c->error);
        return;
    }
    c->info.succeeded_ms = now;
    c->info.succeeded++;
    c->info.removed = run->removed;
    ox_info(sh->log, "compaction.done", "topic=%s ledger=%lld entries=%lld removed=%llu horizon=" OX_POS_FMT " ms=%llu",
            c->topic->name.full, (long long)c->info.ledger, (long long)c->info.entries,
            (unsigned long long)run->removed, OX_POS_ARG(c->info.horizon), (unsigned long long)c->info.duration_ms);
}

void compaction_over(struct compaction_run *run, enum ox_err err)
{
    struct ox_topic *t = run->compaction->topic;
    struct compactions *all = t->shard->compactions;
    OX_ASSERT(all->running == run);
    run_note_outcome(run, err);
    run_end(run, err);
    all->running = NULL;
    topic_unpin(t);
    compactions_next(all);
}

static enum ox_err compaction_begin(struct ox_topic *t, struct ox_op *op, bool move, bool prepare)
{
    if (!t->ml)
        return OX_E_UNSUPPORTED;
    struct ox_compaction *c = compaction_get(t);
    struct compactions *all = t->shard->compactions;
    if (c->run || ox_op_pending(&c->tidy.op) || t->state != OX_TOPIC_OPEN)
        return OX_E_BUSY;
    struct compaction_run *run = ox_malloc(sizeof *run);
    run->compaction = c;
    run->move = move;
    run->prepare = prepare;
    run->before = c->info.status;
    run->op = op;
    run->started_ns = ox_now_ns(t->shard->loop);
    c->run = run;
    c->info.status = OX_COMPACTION_RUNNING;
    if (op)
        ox_op_begin(op);
    ox_list_push_back(&all->waiting, &run->link);
    compactions_next(all);
    return OX_OK;
}

enum ox_err ox_compaction_start(struct ox_topic *t, struct ox_op *op)
{
    return compaction_begin(t, op, false, false);
}

enum ox_err ox_compaction_move(struct ox_topic *t, struct ox_op *op)
{
    return compaction_begin(t, op, true, false);
}

void compaction_unload(struct ox_topic *t)
{
    struct ox_compaction *c = t->compaction;
    if (!c)
        return;
    if (c->run) { // it waits for its turn: one that runs has pinned the topic
        ox_list_remove(&t->shard->compactions->waiting, &c->run->link);
        run_end(c->run, OX_E_CANCELED);
    }
    if (c->ledger)
        compacted_retire(c->ledger, false);
    ox_copies_fini(&c->dead);
    ox_free(c->error);
    ox_free(c);
    t->compaction = NULL;
}

// ---- thresholds ------------------------------------------------------------------------------------------------------

// Bytes of the log that no compaction has looked at.
static uint64_t compaction_backlog(const struct ox_topic *t)
{
    const struct ox_cursor *c = ox_cursor_find(t->ml, COMPACTION_CURSOR);
    return c ? ox_ml_bytes_between(t->ml, c->mark_delete, t->ml->last) : t->ml->total_bytes;
}

// The log of topics' own policies is read whenever its namespace is first used: it must not grow long.
static bool compaction_of_events(const struct ox_topic *t)
{
    const struct ox_cursor *c = ox_cursor_find(t->ml, COMPACTION_CURSOR);
    if (strcmp(t->name.local, POLICY_EVENTS_LOCAL) != 0 || !t->scope)
        return false;
    uint64_t events = c ? ox_ml_count(t->ml, c->mark_delete, t->ml->last) : t->ml->total_entries;
    return events > OX_POLICY_EVENTS_MORE_MAX + ox_map_count(&t->scope->own);
}

// From the moment on that a topic has a threshold, its log keeps what no run has looked at: a cursor stands for it.
static void compaction_check(struct ox_topic *t)
{
    const struct ox_compaction *c = t->compaction;
    int64_t threshold = t->policies.compaction_threshold;
    bool elsewhere = c && c->ledger && c->ledger->where.place != ox_ml_target(t->ml->factory, t->ml->name);
    if ((threshold > 0 && compaction_backlog(t) > (uint64_t)threshold) || compaction_of_events(t))
        (void)!ox_compaction_start(t, NULL);
    else if (elsewhere)
        (void)!ox_compaction_move(t, NULL);
    else if (threshold > 0 && !ox_cursor_find(t->ml, COMPACTION_CURSOR))
        (void)!compaction_begin(t, NULL, false, true);
}

static void compactions_visit(struct topic_round *round, struct ox_topic *t)
{
    (void)round;
    if (t->state == OX_TOPIC_OPEN && t->ml)
        compaction_check(t);
}

static void compactions_check(struct ox_timer *timer)
{
    struct compactions *all = CONTAINER_OF(timer, struct compactions, timer);
    topic_round_start(&all->round);
    ox_timer_start(&all->timer, all->shard->config.compaction_check_ns);
}

struct compactions *compactions_new(struct ox_shard *sh)
{
    struct compactions *all = ox_malloc(sizeof *all);
    all->shard = sh;
    all->round = (struct topic_round){.shard = sh, .visit = compactions_visit};
    ox_list_init(&all->waiting);
    ox_timer_init(&all->timer, sh->loop, compactions_check);
    sh->mledgers->compacted = compaction_move_log;
    sh->mledgers->compacted_ctx = sh;
    return all;
}

void compactions_start(struct compactions *all)
{
    ox_timer_start(&all->timer, all->shard->config.compaction_check_ns);
}

void compactions_follow(struct compactions *all, const struct ox_broker_config *before)
{
    if (all->shard->config.compaction_check_ns != before->compaction_check_ns)
        compactions_start(all);
}

void compactions_stop(struct compactions *all)
{
    ox_timer_stop(&all->timer);
    topic_round_stop(&all->round);
}

void compactions_free(struct compactions *all)
{
    OX_ASSERT(!all->running && ox_list_empty(&all->waiting));
    all->shard->mledgers->compacted = NULL;
    compactions_stop(all);
    ox_free(all);
}
