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
    t->terminating = false;
    if (op->err == OX_OK) {
        o->last = t->ml->last;
        producers_close(t, OX_E_TOPIC_TERMINATED);
        OX_MAP_EACH(&t->subscriptions, n) {
            struct ox_subscription *sub = SUBSCRIPTION_OF(n);
            if (sub->dispatcher && sub->state == OX_SUBSCRIPTION_OPEN) // else it is being stopped, and looks when it goes on
                sub->dispatcher->body->kick(sub->dispatcher);
        }
        ox_info(t->shard->log, "topic.terminated", "topic=%s last=" OX_POS_FMT, t->name.full, OX_POS_ARG(o->last));
    } else {
        producers_disconnect(t, op->err); // what they sent meanwhile was dropped: they send it again
    }
    terminate_finish(o, op->err);
}

// Clients give up on a producer that is told of a failed send first, and lose the send itself: they must be told to go before anything.
void ox_topic_terminate(struct ox_topic *t, struct ox_topic_terminate *o)
{
    ox_op_begin(&o->op);
    if (!t->ml || t->state != OX_TOPIC_OPEN) {
        ox_op_finish(&o->op, t->state == OX_TOPIC_OPEN ? OX_E_UNSUPPORTED : OX_E_TOPIC_FENCED);
        return;
    }
    topic_pin(t);
    t->terminating = true;
    o->topic = t;
    ox_op_init(&o->step, t->shard->loop, terminate_done, "mledger.terminate");
    ox_mledger_terminate(t->ml, &o->step);
}
