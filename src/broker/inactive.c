// inactive.c - topics and subscriptions that nobody uses are deleted, where policies say so.
#include <string.h>

#include "base/mem.h"
#include "broker/partitions.h"
#include "broker/policing.h"
#include "broker/subscription_int.h"

// ---- topics

static bool topic_has_backlog(const struct ox_topic *t)
{
    return t->ml && !ox_pos_equal(topic_oldest(t, NULL, false), OX_POS_LATEST);
}

// Who is half attached, or wants to be, uses it too.
static bool topic_is_active(const struct ox_topic *t)
{
    if (ox_topic_is_used(t) || t->pins || t->inflight || !ox_list_empty((struct ox_list *)(uintptr_t)&t->waiters))
        return true;
    if (t->policies.inactive_mode == OX_INACTIVE_NO_SUBSCRIPTIONS || !t->ml)
        return ox_map_count(&t->subscriptions) > 0;
    return topic_has_backlog(t);
}

// Retention by time keeps the topic itself too.
static bool topic_is_retained(const struct ox_topic *t, uint64_t idle_ns)
{
    return t->policies.retention_ms < 0 || idle_ns / OX_MS < (uint64_t)t->policies.retention_ms;
}

struct removal {
    struct ox_topic *topic;
    struct policing_round *round;
    struct ox_op step;
    struct ox_meta_children children;
    struct ox_topic_name base; // of a partition: its partitioned topic
    struct ox_partitions_delete whole;
    struct ox_seq seq;
};

static struct removal *removal_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct removal, seq);
}

static ox_step removal_whole(struct ox_seq *s)
{
    return OX_FINISH(s, s->err == OX_E_TOPIC_NOT_FOUND || s->err == OX_E_BUSY ? OX_OK : s->err);
}

static bool removal_has_partitions(const struct removal *r)
{
    OX_CLEANUP(ox_free_ptr)
    char *storage = ox_topic_name_storage(&r->base);
    OX_CLEANUP(ox_free_ptr)
    char *prefix = ox_asprintf("%s-partition-", strrchr(storage, '/') + 1);
    for (size_t i = 0; i < r->children.count; i++)
        if (strncmp(r->children.names[i], prefix, strlen(prefix)) == 0)
            return true;
    return false;
}

static ox_step removal_listed(struct ox_seq *s)
{
    struct removal *r = removal_of(s);
    if (s->err)
        return OX_FINISH(s, s->err);
    bool left = removal_has_partitions(r);
    ox_meta_names_free(r->children.names, r->children.count);
    if (left)
        return OX_FINISH(s, OX_OK);
    ox_seq_bind(s, &r->whole.op, "partitions.delete");
    r->whole.force = false;
    r->whole.only_empty = true; // one that was made since the list was read is used
    ox_partitions_delete(r->topic->shard, &r->whole, &r->base);
    return OX_WAIT(s, removal_whole);
}

static ox_step removal_deleted(struct ox_seq *s)
{
    struct removal *r = removal_of(s);
    const struct ox_topic *t = r->topic;
    if (s->err || t->name.partition < 0 || !t->shard->config.inactive_partitions || t->name.domain != OX_DOMAIN_PERSISTENT)
        return OX_FINISH(s, s->err);
    OX_CLEANUP(ox_free_ptr)
    char *base = ox_topic_name_base(&t->name);
    enum ox_err err = ox_topic_name_parse(&r->base, base);
    if (err)
        return OX_FINISH(s, err);
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("/managed-ledgers/%s/persistent", r->base.ns);
    ox_seq_bind(s, &r->children.op, "topics.children");
    ox_meta_children(t->shard->meta, &r->children, path);
    return OX_WAIT(s, removal_listed);
}

static ox_step removal_start(struct ox_seq *s)
{
    struct removal *r = removal_of(s);
    if (r->topic->state != OX_TOPIC_OPEN || topic_is_active(r->topic))
        return OX_FINISH(s, OX_OK);
    ox_info(r->topic->shard->log, "topic.inactive", "topic=%s next=delete", r->topic->name.full);
    ox_seq_bind(s, &r->step, "topic.delete");
    topic_delete(r->topic, &r->step);
    return OX_WAIT(s, removal_deleted);
}

static void removal_done(struct ox_seq *s, enum ox_err err)
{
    struct removal *r = removal_of(s);
    if (err)
        ox_warn(r->topic->shard->log, "topic.inactive.failed", "topic=%s step=%s error=%s", r->topic->name.full,
                s->step, ox_err_name(err));
    policing_idle(r->round);
    ox_topic_name_fini(&r->base);
    ox_topic_put(r->topic);
    ox_free(r);
}

void inactive_look(struct policing_round *round, struct ox_topic *t)
{
    uint64_t now = ox_now_ns(t->shard->loop);
    if (topic_is_active(t))
        t->active_ns = now;
    uint64_t idle = now - t->active_ns;
    if (!t->policies.inactive_delete || ox_topic_name_is_system(&t->name) || idle < t->policies.inactive_s * OX_SEC ||
        topic_is_retained(t, idle))
        return;
    struct removal *r = ox_malloc(sizeof *r);
    r->topic = t;
    r->round = round;
    ox_topic_hold(t);
    policing_busy(round);
    ox_seq_start(&r->seq, t->shard->loop, "topic.inactive", removal_start, removal_done);
}

// ---- subscriptions

struct parting {
    struct ox_unsubscribe unsubscribe;
    struct ox_topic *topic;
    struct policing_round *round;
};

static void parting_done(struct ox_op *op)
{
    struct parting *p = CONTAINER_OF(op, struct parting, unsubscribe.op);
    if (op->err)
        ox_warn(p->topic->shard->log, "subscription.inactive.failed", "topic=%s error=%s", p->topic->name.full,
                ox_err_name(op->err));
    policing_idle(p->round);
    ox_topic_put(p->topic);
    ox_free(p);
}

static uint64_t subscription_seen_ms(const struct ox_subscription *s)
{
    uint64_t used = OX_MAX(s->last_consumed_ms, OX_MAX(s->last_acked_ms, s->last_flow_ms));
    return OX_MAX(OX_MAX(used, s->seen_ms), s->cursor->last_active_ms);
}

static void subscription_look(struct policing_round *round, struct ox_subscription *s)
{
    struct ox_topic *t = s->topic;
    uint64_t now = ox_wall_ms(t->shard->loop), limit = (uint64_t)t->policies.subscription_expiry_s * 1000;
    if (!ox_list_empty(&s->consumers))
        s->seen_ms = now;
    if (!limit || !s->durable || s->state != OX_SUBSCRIPTION_OPEN || !ox_list_empty(&s->consumers) ||
        now < subscription_seen_ms(s) + limit)
        return;
    ox_info(t->shard->log, "subscription.inactive", "topic=%s next=delete", t->name.full);
    struct parting *p = ox_malloc(sizeof *p);
    p->topic = t;
    p->round = round;
    ox_topic_hold(t);
    policing_busy(round);
    ox_op_init(&p->unsubscribe.op, t->shard->loop, parting_done, "subscription.inactive");
    ox_subscription_unsubscribe(s, &p->unsubscribe, NULL);
}

void subscriptions_look(struct policing_round *round, struct ox_topic *t)
{
    if (ox_topic_name_is_system(&t->name) || !t->ml)
        return;
    OX_MAP_EACH(&t->subscriptions, n)
        subscription_look(round, SUBSCRIPTION_OF(n));
}
