// churn.c - clients that come and go while others work: producers under the same names with fresh sequence ids, subscriptions that are left or removed and made
// anew, readers, topics that are deleted under everybody's feet.
#include "workload.h"

#include <string.h>

#include "broker/topic.h"

static uint64_t churn_pause(struct load_topic *t)
{
    return 50 * OX_MS + ox_random_below(&t->load->random, t->load->world->plan.chaos_ns / 2);
}

// ---- producers: the process dies (its connections break) or closes; the next one has the same name and begins its sequence anew ----------------------

static void producer_is_gone(struct ox_op *op)
{
    struct load_producer *p = CONTAINER_OF(op, struct load_producer, gone);
    p->client = NULL;
    p->ending = false;
    p->from = (uint32_t)ox_random_below(&p->topic->load->random, WORKLOAD_CLIENTS);
    load_producer_open(p);
}

static void producer_churn(struct ox_timer *timer)
{
    struct load_producer *p = CONTAINER_OF(timer, struct load_producer, churn);
    struct workload *load = p->topic->load;
    if (load->world->healed || !p->client || p->next == p->count)
        return;
    p->ending = true;
    ox_timer_stop(&p->timer);
    if (load_chance(load, 600))
        ox_client_break(load->clients[p->from]);
    ox_op_init(&p->gone, load_loop(load), producer_is_gone, "load.producer.gone");
    ox_client_producer_close(p->client, &p->gone);
}

void churn_start_producer(struct load_producer *p)
{
    if (p->topic->load->world->plan.rebirths && !p->topic->load->world->healed)
        ox_timer_start(&p->churn, churn_pause(p->topic));
}

// ---- subscriptions ---------------------------------------------------------------------------------------------------

static void sub_each_message(struct load_sub *s, void (*change)(struct load_message *m, uint32_t sub))
{
    for (uint32_t i = 0; i < s->topic->load->world->plan.producers; i++)
        for (uint32_t k = 0; k < s->topic->producers[i].next; k++)
            change(&s->topic->producers[i].messages[k], s->index);
}

static void message_spare(struct load_message *m, uint32_t sub)
{
    m->spared[sub] = true;
}

static void message_unreceive(struct load_message *m, uint32_t sub)
{
    m->received[sub] = m->spared[sub] = m->ack_sent[sub] = false;
}

void churn_sub_is_there(struct load_sub *s)
{
    if (!s->renewed)
        return;
    if (s->topic->load->world->plan.retention)
        sub_each_message(s, message_spare);
    if (!s->topic->deleting)
        s->renewed = false;
}

static void sub_is_gone(struct ox_op *op)
{
    struct load_sub *s = CONTAINER_OF(op, struct load_sub, gone);
    s->client = NULL;
    s->ending = false;
    if (s->removed && !s->topic->load->world->plan.retention)
        sub_each_message(s, message_unreceive); // it begins at the start again: everything must come
    s->removed = false;
    s->from = (uint32_t)ox_random_below(&s->topic->load->random, WORKLOAD_CLIENTS);
    load_sub_open(s);
}

static void sub_leave(struct load_sub *s)
{
    ox_op_init(&s->gone, load_loop(s->topic->load), sub_is_gone, "load.consumer.gone");
    ox_client_consumer_close(s->client, &s->gone);
}

void churn_renew_sub(struct load_sub *s)
{
    s->ending = true;
    sub_leave(s);
}

static void sub_unsubscribed(struct ox_op *op)
{
    struct load_sub *s = CONTAINER_OF(op, struct load_sub, unsubscribe.op);
    s->removed = op->err == OX_OK;
    s->renewed = true;
    load_sub_forget(s);
    sub_leave(s);
}

static void sub_churn(struct ox_timer *timer)
{
    struct load_sub *s = CONTAINER_OF(timer, struct load_sub, churn);
    struct workload *load = s->topic->load;
    if (load->world->healed || !s->client || s->failed)
        return;
    if (s->seeking) {
        ox_timer_start(timer, 100 * OX_MS);
        return;
    }
    s->ending = true;
    if (load->world->plan.unsubscribes && load_chance(load, 500)) {
        load_sub_forget(s);
        ox_op_init(&s->unsubscribe.op, load_loop(load), sub_unsubscribed, "load.unsubscribe");
        ox_client_consumer_unsubscribe(s->client, &s->unsubscribe);
        return;
    }
    if (load_chance(load, 500))
        ox_client_break(load->clients[s->from]);
    sub_leave(s);
}

void churn_start_sub(struct load_sub *s)
{
    const struct world_plan *plan = &s->topic->load->world->plan;
    if ((plan->rebirths || plan->unsubscribes) && !s->topic->load->world->healed)
        ox_timer_start(&s->churn, churn_pause(s->topic));
}

static void sub_again(struct ox_timer *timer)
{
    load_sub_open(CONTAINER_OF(timer, struct load_sub, again));
}

// ---- readers ---------------------------------------------------------------------------------------------------------

static void scout_message(struct ox_client_consumer *c, const struct ox_received *r)
{
    struct load_scout *x = (struct load_scout *)ox_client_consumer_owner(c);
    struct world *w = x->topic->load->world;
    struct load_message *m = load_message_of(x->topic, r->payload, "scout");
    if (!m || m->forgotten || x->topic->deleting)
        return;
    int64_t *last = &x->last[m->producer->index];
    if (load_id_cmp(load_id_pos(&r->id), r->id.batch_index, x->last_pos, x->last_batch) <= 0)
        world_violation(w, "%s scout: " OX_POS_FMT "/%d comes after " OX_POS_FMT "/%d", x->topic->name,
                        OX_POS_ARG(load_id_pos(&r->id)), r->id.batch_index, OX_POS_ARG(x->last_pos), x->last_batch);
    if (m->number <= *last && !w->plan.early_trim)
        world_violation(w, "%s scout: producer %u message %u at " OX_POS_FMT " comes behind %lld", x->topic->name,
                        m->producer->index, m->number, OX_POS_ARG(load_id_pos(&r->id)), (long long)*last);
    const struct load_message *before = load_before(m, *last);
    if (before && !w->plan.retention)
        world_violation(w, "%s scout: producer %u message %u at " OX_POS_FMT " was passed over: %u comes", x->topic->name,
                        m->producer->index, before->number, OX_POS_ARG(load_id_pos(&before->send.id)), m->number);
    *last = m->number;
    x->last_pos = load_id_pos(&r->id);
    x->last_batch = r->id.batch_index;
}

static void scout_failed(struct ox_client_consumer *c, enum ox_err err, const char *text)
{
    struct load_scout *x = (struct load_scout *)ox_client_consumer_owner(c);
    if (!x->topic->load->world->plan.deletions)
        world_violation(x->topic->load->world, "%s scout: failed: %s %s", x->topic->name, ox_err_name(err), text);
}

static const struct ox_client_consumer_events scout_events = {.message = scout_message, .failed = scout_failed};

static void scout_is_gone(struct ox_op *op)
{
    struct load_scout *x = CONTAINER_OF(op, struct load_scout, gone);
    x->client = NULL;
    x->ending = false;
    ox_timer_start(&x->churn, churn_pause(x->topic) / 4);
}

static void scout_opened(struct ox_op *op)
{
    struct load_scout *x = CONTAINER_OF(op, struct load_scout, open.call.op);
    x->opening = false;
    x->client = op->err == OX_OK ? x->open.consumer : NULL;
    ox_timer_start(&x->churn, churn_pause(x->topic));
}

static void scout_open(struct load_scout *x)
{
    struct ox_client_consumer_config config = {.topic = x->topic->name,
                                               .subscription = "scout",
                                               .type = OXPB__COMMAND_SUBSCRIBE__SUB_TYPE__Exclusive,
                                               .non_durable = true,
                                               .earliest = true,
                                               .receiver_queue = 1 + (uint32_t)ox_random_below(&x->topic->load->random, 20),
                                               .events = &scout_events,
                                               .owner = x};
    memset(x->last, 0xff, sizeof x->last);
    x->last_pos = OX_POS_EARLIEST;
    x->last_batch = -1;
    x->opening = true;
    ox_op_init(&x->open.call.op, load_loop(x->topic->load), scout_opened, "load.scout.open");
    ox_client_consumer_open(x->topic->load->clients[1], &x->open, &config);
}

static void scout_churn(struct ox_timer *timer)
{
    struct load_scout *x = CONTAINER_OF(timer, struct load_scout, churn);
    if (x->client) {
        x->ending = true;
        ox_op_init(&x->gone, load_loop(x->topic->load), scout_is_gone, "load.scout.gone");
        ox_client_consumer_close(x->client, &x->gone);
    } else if (!x->topic->load->world->healed) {
        scout_open(x);
    }
}

// ---- topics ----------------------------------------------------------------------------------------------------------

struct deletion {
    struct ox_topic_delete op;
    struct ox_topic_name name;
    struct load_topic *topic;
};

// Nothing is promised any more of what was sent so far.
static void topic_forget(struct load_topic *t)
{
    for (uint32_t i = 0; i < t->load->world->plan.producers; i++)
        for (uint32_t k = 0; k < t->producers[i].next; k++)
            t->producers[i].messages[k].forgotten = true;
    for (uint32_t i = 0; i < t->load->world->plan.subscriptions; i++) {
        t->subs[i].renewed = true;
        load_sub_forget(&t->subs[i]);
    }
}

static void topic_deleted(struct ox_op *op)
{
    struct deletion *d = CONTAINER_OF(op, struct deletion, op.op);
    topic_forget(d->topic);
    d->topic->deleting = false;
    ox_topic_name_fini(&d->name);
    ox_free(d);
}

static void topic_doom(struct ox_timer *timer)
{
    struct load_topic *t = CONTAINER_OF(timer, struct load_topic, doom);
    struct world *w = t->load->world;
    if (w->healed)
        return;
    if (!w->now || w->now->stopping || !w->now->broker.running || !ox_sim_node_alive(w->broker_node)) {
        ox_timer_start(timer, 200 * OX_MS);
        return;
    }
    struct deletion *d = ox_malloc(sizeof *d);
    d->topic = t;
    t->deleting = true;
    topic_forget(t);
    OX_ASSERT(ox_topic_name_parse(&d->name, t->name) == OX_OK);
    d->op.force = true;
    ox_op_init(&d->op.op, w->now->broker.loop, topic_deleted, "load.delete");
    ox_topic_delete(&w->now->broker.shard, &d->op, &d->name);
}

void churn_init_topic(struct load_topic *t)
{
    const struct world_plan *plan = &t->load->world->plan;
    for (uint32_t i = 0; i < plan->producers; i++)
        ox_timer_init(&t->producers[i].churn, load_loop(t->load), producer_churn);
    for (uint32_t i = 0; i < plan->subscriptions; i++) {
        ox_timer_init(&t->subs[i].churn, load_loop(t->load), sub_churn);
        ox_timer_init(&t->subs[i].again, load_loop(t->load), sub_again);
    }
    ox_timer_init(&t->scout.churn, load_loop(t->load), scout_churn);
    ox_timer_init(&t->doom, load_loop(t->load), topic_doom);
    t->scout.topic = t;
}

void churn_start(struct load_topic *t)
{
    const struct world_plan *plan = &t->load->world->plan;
    if (plan->readers)
        ox_timer_start(&t->scout.churn, churn_pause(t) / 4);
    if (plan->deletions)
        ox_timer_start(&t->doom, churn_pause(t));
}

bool churn_is_busy(const struct load_topic *t)
{
    const struct world_plan *plan = &t->load->world->plan;
    bool busy = t->deleting || t->scout.opening || t->scout.ending || t->scout.client;
    for (uint32_t i = 0; i < plan->producers; i++)
        busy |= t->producers[i].ending || t->producers[i].opening;
    for (uint32_t i = 0; i < plan->subscriptions; i++)
        busy |= t->subs[i].ending || t->subs[i].opening || !t->subs[i].client || t->subs[i].seeking;
    return busy;
}

void churn_stop(struct load_topic *t)
{
    const struct world_plan *plan = &t->load->world->plan;
    for (uint32_t i = 0; i < plan->producers; i++)
        ox_timer_stop(&t->producers[i].churn);
    for (uint32_t i = 0; i < plan->subscriptions; i++)
        ox_timer_stop(&t->subs[i].churn);
    ox_timer_stop(&t->scout.churn);
    ox_timer_stop(&t->doom);
}
