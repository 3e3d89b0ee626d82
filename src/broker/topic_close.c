// topic_close.c - closing and deleting a topic: tell consumers, drain appends, tell producers, stop dispatch, close the log.
#include "base/mem.h"
#include "broker/policing.h"
#include "broker/subscription_int.h"
#include "broker/topic_events.h"
#include "broker/topic_int.h"
#include "broker/topic_policies.h"

static ox_step close_drain(struct ox_seq *s);
static ox_step close_dispatch(struct ox_seq *s);
static ox_step close_policies(struct ox_seq *s);
static ox_step close_log(struct ox_seq *s);

static struct topic_impl *close_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct topic_impl, seq);
}

// Users that are half attached see the state and give up; appends in flight end, and their receipts leave before producers are told.
static ox_step close_drain(struct ox_seq *s)
{
    struct topic_impl *impl = close_of(s);
    struct ox_topic *t = impl->topic;
    if (t->inflight || t->pins) {
        impl->waiting = true;
        return OX_WAIT(s, close_drain);
    }
    producers_close(t, impl->close_why);
    return OX_GOTO(s, close_dispatch);
}

static ox_step close_start(struct ox_seq *s)
{
    struct topic_impl *impl = close_of(s);
    producers_drained(impl->topic);
    OX_MAP_EACH(&impl->topic->subscriptions, n)
        subscription_close_consumers(SUBSCRIPTION_OF(n), impl->close_why, NULL);
    return OX_GOTO(s, close_drain);
}

static ox_step close_dispatch_stopped(struct ox_seq *s)
{
    struct ox_topic *t = close_of(s)->topic;
    subscription_free(SUBSCRIPTION_OF(ox_map_first(&t->subscriptions)));
    return OX_GOTO(s, close_dispatch);
}

// One subscription after another: its reads end, then it goes. Its cursor is closed (or removed) with the log.
static ox_step close_dispatch(struct ox_seq *s)
{
    struct topic_impl *impl = close_of(s);
    struct ox_map_node *n = ox_map_first(&impl->topic->subscriptions);
    if (!n)
        return OX_GOTO(s, close_policies);
    ox_seq_bind(s, &impl->op, "dispatcher.stop");
    subscription_stop(SUBSCRIPTION_OF(n), &impl->op);
    return OX_WAIT(s, close_dispatch_stopped);
}

static ox_step close_policies_removed(struct ox_seq *s)
{
    struct topic_impl *impl = close_of(s);
    if (s->err)
        ox_warn(impl->topic->shard->log, "topic.policies.kept", "topic=%s error=%s", impl->topic->name.full,
                ox_err_name(s->err));
    ox_free(impl->forget);
    return OX_GOTO(s, close_log);
}

// A topic that is made anew later begins without policies of its own; those of a partition are its partitioned topic's.
static ox_step close_policies(struct ox_seq *s)
{
    struct topic_impl *impl = close_of(s);
    struct ox_topic *t = impl->topic;
    if (t->state != OX_TOPIC_DELETING || !t->own_policies || t->name.partition >= 0)
        return OX_GOTO(s, close_log);
    impl->forget = ox_malloc(sizeof *impl->forget);
    ox_seq_bind(s, &impl->forget->op, "topic.policies.remove");
    ox_topic_policies_update(t->shard, impl->forget, &t->name);
    return OX_WAIT(s, close_policies_removed);
}

static ox_step close_log_closed(struct ox_seq *s)
{
    return OX_FINISH(s, s->err);
}

static ox_step close_log(struct ox_seq *s)
{
    struct topic_impl *impl = close_of(s);
    struct ox_mledger *ml = impl->topic->ml;
    if (!ml)
        return OX_FINISH(s, OX_OK);
    ox_resend_drop(impl->topic);
    producers_save(impl->topic);
    compaction_unload(impl->topic);
    impl->topic->ml = NULL;
    bool delete = impl->topic->state == OX_TOPIC_DELETING;
    ox_seq_bind(s, &impl->op, delete ? "mledger.delete" : "mledger.close");
    if (delete)
        ox_mledger_delete(ml, &impl->op);
    else
        ox_mledger_close(ml, &impl->op);
    return OX_WAIT(s, close_log_closed);
}

static void close_done(struct ox_seq *s, enum ox_err err)
{
    struct topic_impl *impl = close_of(s);
    struct ox_topic *t = impl->topic;
    impl->close_err = err;
    if (err)
        ox_warn(t->shard->log, "topic.close.failed", "topic=%s step=%s error=%s", t->name.full, s->step, ox_err_name(err));
    else
        ox_debug(t->shard->log, "topic.closed", "topic=%s", t->name.full);
    t->shard->topics_count.value--;
    topic_gone(t, OX_OK);
}

static void close_begin(struct ox_topic *t, enum ox_err why, enum ox_topic_state state)
{
    struct topic_impl *impl = t->impl;
    if (!impl) {
        impl = ox_malloc(sizeof *impl);
        impl->topic = t;
        ox_list_init(&impl->closers);
        t->impl = impl;
    }
    impl->close_why = why;
    topic_set_state(t, state, ox_err_name(why));
    policing_closing(t);
    topic_events_closing(t);
    ox_seq_start(&impl->seq, t->shard->loop, "topic.close", close_start, close_done);
}

static void close_enqueue(struct ox_topic *t, struct ox_op *op)
{
    if (!op)
        return;
    struct topic_impl *impl = t->impl;
    ox_op_begin(op);
    ox_list_push_back(&impl->closers, &op->link);
}

void topic_close(struct ox_topic *t, struct ox_op *op, enum ox_err why)
{
    struct topic_impl *impl = t->impl;
    if (t->state == OX_TOPIC_LOADING)
        impl->close_wanted = true;
    if (t->state == OX_TOPIC_OPEN)
        close_begin(t, why, OX_TOPIC_CLOSING);
    close_enqueue(t, op);
}

void topic_delete(struct ox_topic *t, struct ox_op *op)
{
    if (t->state == OX_TOPIC_OPEN)
        close_begin(t, OX_E_TOPIC_NOT_FOUND, OX_TOPIC_DELETING);
    close_enqueue(t, op);
}

void topic_fail(struct ox_topic *t, enum ox_err err)
{
    if (t->state != OX_TOPIC_OPEN)
        return;
    ox_warn(t->shard->log, "topic.failed", "topic=%s error=%s next=reload", t->name.full, ox_err_name(err));
    t->failed = true;
    topic_close(t, NULL, OX_E_TOPIC_FENCED);
}

void ox_topic_unload(struct ox_shard *sh, struct ox_op *op, const char *full_name)
{
    struct ox_topic *t = ox_topic_find(sh, full_name);
    if (t) {
        topic_close(t, op, OX_E_TOPIC_FENCED);
        return;
    }
    ox_op_begin(op);
    ox_op_finish(op, OX_E_TOPIC_NOT_FOUND);
}

// ---- deleting

bool ox_topic_is_used(const struct ox_topic *t)
{
    struct ox_topic_stats stats;
    ox_topic_stats(t, &stats);
    return stats.producers || stats.consumers;
}

static void delete_done(struct ox_op *op)
{
    struct ox_topic_delete *d = CONTAINER_OF(op, struct ox_topic_delete, close);
    ox_op_finish(&d->op, op->err);
}

static void delete_got(struct ox_op *op)
{
    struct ox_topic_delete *d = CONTAINER_OF(op, struct ox_topic_delete, get.op);
    struct ox_topic *t = d->get.topic;
    if (op->err) {
        ox_op_finish(&d->op, op->err);
        return;
    }
    if (t->state != OX_TOPIC_OPEN)
        ox_op_finish(&d->op, OX_E_TOPIC_FENCED);
    else if (d->absent || (!d->force && ox_topic_is_used(t)))
        ox_op_finish(&d->op, OX_E_BUSY);
    else {
        ox_op_init(&d->close, t->shard->loop, delete_done, "topic.delete");
        topic_delete(t, &d->close);
    }
    ox_topic_put(t);
}

void ox_topic_delete(struct ox_shard *sh, struct ox_topic_delete *d, const struct ox_topic_name *name)
{
    ox_op_begin(&d->op);
    ox_op_init(&d->get.op, sh->loop, delete_got, "topic.get");
    d->get.create = d->get.explicit_create = false;
    d->get.marked = d->marked;
    ox_topic_get(sh, &d->get, name);
}
