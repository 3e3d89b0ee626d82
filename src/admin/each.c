// each.c - running a verb: is the topic partitioned, then topic after topic.
#include <string.h>

#include "admin/each.h"

static ox_step each_topic(struct ox_seq *s);

static struct admin_each *each_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct admin_each, seq);
}

static const char *each_name(const struct admin_each *e)
{
    return e->name.full ? e->name.full : e->request->topic.full;
}

void each_free(struct admin_each *e)
{
    json_decref(e->result);
    json_decref(e->notes);
    ox_kv_fini(&e->properties);
    ox_free(e->subscription_name);
    ox_topic_name_fini(&e->name);
    ox_free(e);
}

static void each_fail(struct admin_each *e, enum ox_err err)
{
    struct admin_request *r = e->request;
    const char *name = each_name(e);
    if (err == OX_E_SUBSCRIPTION_NOT_FOUND)
        admin_fail(r, HTTP_NOT_FOUND, "Subscription %s not found for topic %s", e->subscription_name, name);
    else if (err == OX_E_TOPIC_NOT_FOUND)
        admin_fail(r, HTTP_NOT_FOUND, "Topic %s not found", name);
    else if (err == OX_E_NAMESPACE_NOT_FOUND)
        admin_fail(r, HTTP_NOT_FOUND, "Namespace not found: %s", r->topic.ns);
    else if (err == OX_E_EXISTS)
        admin_fail(r, HTTP_CONFLICT, "Subscription already exists for topic: %s on %s", e->subscription_name, name);
    else if (err == OX_E_SUBSCRIPTION_BUSY)
        admin_fail(r, HTTP_PRECONDITION_FAILED, "Subscription has active connected consumers: %s on %s",
                   e->subscription_name, name);
    else
        admin_error(r, err, name, NULL);
}

static void each_done(struct ox_seq *s, enum ox_err err)
{
    struct admin_each *e = each_of(s);
    struct admin_request *r = e->request;
    if (!r->answered && !e->handed_over) {
        if (!err && !e->done)
            err = e->soft;
        if (err)
            each_fail(e, err);
        else if (e->verb->answer)
            e->verb->answer(e);
        else if (e->result)
            admin_json(r, HTTP_OK, json_incref(e->result));
        else
            admin_empty(r, HTTP_NO_CONTENT);
    }
    each_free(e);
}

void each_bind(struct admin_each *e, struct ox_op *op)
{
    ox_seq_bind(&e->seq, op, e->verb->name);
}

// Partitions that lack a subscription, or have it already, are not in the way of the others.
static bool each_is_soft(const struct admin_each *e, enum ox_err err)
{
    return e->count && (err == OX_E_SUBSCRIPTION_NOT_FOUND || err == OX_E_EXISTS);
}

ox_step each_ran(struct admin_each *e, enum ox_err err)
{
    if (!err && e->verb->again && e->verb->again(e)) {
        memset(&e->u, 0, sizeof e->u);
        return e->verb->run(e);
    }
    if (!err && e->verb->collect)
        e->verb->collect(e);
    ox_topic_put(e->topic);
    e->topic = NULL;
    if (each_is_soft(e, err))
        e->soft = err;
    else if (err)
        return OX_FINISH(&e->seq, err);
    e->done += !err;
    e->at++;
    if (e->at >= e->count || e->request->answered)
        return OX_FINISH(&e->seq, OX_OK);
    return e->at % ADMIN_TOPICS_A_TURN ? OX_GOTO(&e->seq, each_topic)
                                       : admin_rest(&e->pause, &e->seq, each_topic, "each_topic");
}

ox_step each_refuse(struct admin_each *e, unsigned status, const char *reason)
{
    admin_fail(e->request, status, "%s: %s", each_name(e), reason);
    ox_topic_put(e->topic);
    e->topic = NULL;
    return OX_FINISH(&e->seq, OX_OK);
}

static ox_step each_op_done(struct ox_seq *s)
{
    return each_ran(each_of(s), s->err);
}

ox_step each_wait(struct admin_each *e)
{
    return OX_WAIT(&e->seq, each_op_done);
}

static ox_step each_got(struct ox_seq *s)
{
    struct admin_each *e = each_of(s);
    if (s->err)
        return OX_FINISH(s, s->err);
    e->topic = e->get.topic;
    e->subscription = e->subscription_name ? ox_subscription_find(e->topic, e->subscription_name) : NULL;
    memset(&e->u, 0, sizeof e->u);
    return e->verb->run(e);
}

static ox_step each_topic(struct ox_seq *s)
{
    struct admin_each *e = each_of(s);
    const struct ox_topic_name *name = &e->request->topic;
    if (e->count) {
        ox_topic_name_fini(&e->name);
        ox_partition_name(&e->name, name, e->at);
        name = &e->name;
    }
    memset(&e->get, 0, sizeof e->get);
    e->get.create = e->verb->may_create;
    ox_seq_bind(s, &e->get.op, "topic.get");
    ox_topic_get(e->request->admin->shard, &e->get, name);
    return OX_WAIT(s, each_got);
}

static ox_step each_partitions_got(struct ox_seq *s)
{
    struct admin_each *e = each_of(s);
    if (s->err)
        return OX_FINISH(s, s->err);
    e->count = e->partitions.partitions;
    if (!e->count && e->verb->only_partitioned) {
        e->verb->plain(e);
        return OX_FINISH(s, OX_OK);
    }
    if (!e->count || e->verb->partitioned == EACH_PARTITION)
        return OX_GOTO(s, each_topic);
    if (e->verb->partitioned == EACH_WHOLE) {
        e->handed_over = true;
        e->verb->whole(e->request);
        return OX_FINISH(s, OX_OK);
    }
    if (e->verb->partitioned == EACH_NOT_FOUND)
        return OX_FINISH(s, OX_E_TOPIC_NOT_FOUND);
    admin_fail(e->request, HTTP_METHOD_NOT_ALLOWED, "%s: %s", e->request->topic.full, e->verb->refusal);
    return OX_FINISH(s, OX_OK);
}

static ox_step each_begin(struct ox_seq *s)
{
    struct admin_each *e = each_of(s);
    e->partitions.create = e->verb->may_create;
    ox_seq_bind(s, &e->partitions.op, "partitions.get");
    ox_partitions_get(e->request->admin->shard, &e->partitions, &e->request->topic);
    return OX_WAIT(s, each_partitions_got);
}

struct admin_each *each_new(struct admin_request *r, const struct admin_verb *verb)
{
    struct admin_each *e = ox_malloc(sizeof *e);
    e->request = r;
    e->verb = verb;
    return e;
}

void each_subscription(struct admin_each *e, size_t segment)
{
    e->subscription_name = admin_twice(e->request, segment);
}

void each_start(struct admin_each *e)
{
    ox_seq_start(&e->seq, e->request->admin->shard->loop, e->verb->name, each_begin, each_done);
}

int32_t each_partition(const struct admin_each *e)
{
    return e->count ? (int32_t)e->at : e->request->topic.partition;
}
