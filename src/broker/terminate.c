// terminate.c - ending a topic for good: the log first, then its producers and consumers are told.
#include "broker/subscription_int.h"
#include "broker/topic_int.h"

static void terminate_finish(struct ox_topic_terminate *o, enum ox_err err)
{
    topic_unpin(o->topic);
    ox_op_finish(&o->op, err);
}

static void terminate_done(struct ox_op *op)
{
    struct ox_topic_terminate *o = CONTAINER_OF(op, struct ox_topic_terminate, step);
    struct ox_topic *t = o->topic;
    if (op->err == OX_OK) {
        o->last = t->ml->last;
        producers_close(t, OX_E_TOPIC_TERMINATED);
        OX_MAP_EACH(&t->subscriptions, n) {
            struct ox_dispatcher *d = SUBSCRIPTION_OF(n)->dispatcher;
            if (d)
                d->body->kick(d);
        }
        ox_info(t->shard->log, "topic.terminated", "topic=%s last=" OX_POS_FMT, t->name.full, OX_POS_ARG(o->last));
    }
    terminate_finish(o, op->err);
}

void ox_topic_terminate(struct ox_topic *t, struct ox_topic_terminate *o)
{
    ox_op_begin(&o->op);
    if (!t->ml || t->state != OX_TOPIC_OPEN) {
        ox_op_finish(&o->op, t->state == OX_TOPIC_OPEN ? OX_E_UNSUPPORTED : OX_E_TOPIC_FENCED);
        return;
    }
    topic_pin(t);
    o->topic = t;
    ox_op_init(&o->step, t->shard->loop, terminate_done, "mledger.terminate");
    ox_mledger_terminate(t->ml, &o->step);
}
