// subscribe.c - attaching consumers: finding or making the subscription, the start position, who holds it.
#include <stdio.h>

#include "base/mem.h"
#include "broker/limits.h"
#include "broker/subscription_int.h"
#include "wire/message_meta.h"
#include "wire/pulsar_frame.h"

static ox_step subscribe_find(struct ox_seq *q);
static ox_step subscribe_make(struct ox_subscribe *o);
static ox_step subscribe_admit(struct ox_seq *q);
static ox_step subscribe_make_at(struct ox_subscribe *o, struct ox_pos start);

static struct ox_subscribe *subscribe_of(struct ox_seq *q)
{
    return CONTAINER_OF(q, struct ox_subscribe, seq);
}

static ox_step subscribe_fail(struct ox_subscribe *o, enum ox_err err, const char *why)
{
    o->why = why;
    return OX_FINISH(&o->seq, err);
}

static ox_step subscribe_start(struct ox_seq *q)
{
    struct ox_subscribe *o = subscribe_of(q);
    if (o->topic->policies.subscription_types && !(o->topic->policies.subscription_types & 1u << o->type))
        return subscribe_fail(o, OX_E_NOT_ALLOWED, "a policy forbids subscriptions of this type");
    if (!o->own_subscription[0])
        return subscribe_fail(o, OX_E_INVALID, "the subscription's name is empty");
    if (cursor_is_internal(o->own_subscription))
        return subscribe_fail(o, OX_E_NOT_ALLOWED, "the subscription's name is one of the broker's own");
    if (o->read_compacted && (!o->topic->ml || (o->type != OX_SUB_EXCLUSIVE && o->type != OX_SUB_FAILOVER)))
        return subscribe_fail(o, OX_E_NOT_ALLOWED,
                              "readCompacted only allowed on failover or exclusive subscriptions of persistent topics");
    if (!subscribe_rate_allows(o))
        return subscribe_fail(o, OX_E_NOT_ALLOWED, "Subscribe limited by subscribe rate limit per consumer");
    return OX_GOTO(q, subscribe_find);
}

static ox_step subscribe_find(struct ox_seq *q)
{
    struct ox_subscribe *o = subscribe_of(q);
    if (o->topic->state != OX_TOPIC_OPEN)
        return OX_FINISH(q, OX_E_TOPIC_FENCED);
    struct ox_subscription *s = ox_subscription_find(o->topic, o->own_subscription);
    if (!s)
        return subscribe_make(o);
    if (s->state != OX_SUBSCRIPTION_OPEN) {
        ox_list_push_back(&s->waiters, &o->link);
        return OX_WAIT(q, subscribe_find);
    }
    o->sub = s;
    return OX_GOTO(q, subscribe_admit);
}

// ---- making the subscription

static ox_step subscribe_made(struct ox_seq *q)
{
    struct ox_subscribe *o = subscribe_of(q);
    struct ox_subscription *s = o->sub;
    if (q->err) {
        subscription_free(s);
        return OX_FINISH(q, q->err);
    }
    s->cursor = o->open.cursor;
    if (!o->durable && o->has_start && o->start_words && o->topic->shard->config.batch_index_acks)
        ox_cursor_set_part(s->cursor, o->start, o->own_set, o->start_words);
    subscription_set_state(s, OX_SUBSCRIPTION_OPEN, "made");
    return OX_GOTO(q, subscribe_admit);
}

// The mark-delete position behind which a new subscription begins.
static struct ox_pos subscribe_position(const struct ox_subscribe *o)
{
    const struct ox_mledger *ml = o->topic->ml;
    struct ox_pos latest = ml->last;
    if (!o->has_start || o->durable)
        return o->from_earliest ? ox_ml_clamp(ml, OX_POS_EARLIEST) : latest;
    if (o->start.ledger < 0)
        return o->start.entry > 0 ? latest : ox_ml_clamp(ml, OX_POS_EARLIEST);
    if (ox_pos_cmp(o->start, latest) > 0)
        return latest;
    return ox_ml_clamp(ml, (struct ox_pos){o->start.ledger, o->start.entry > 0 ? o->start.entry - 1 : -1});
}

static bool entry_is_before(void *ctx, const struct ox_entry *entry)
{
    const struct ox_subscribe *o = ctx;
    return entry_publish_time(entry) < o->before_ms;
}

static ox_step subscribe_found(struct ox_seq *q)
{
    struct ox_subscribe *o = subscribe_of(q);
    if (q->err) {
        subscription_free(o->sub);
        return OX_FINISH(q, q->err);
    }
    return subscribe_make_at(o, o->find.found);
}

static ox_step subscribe_make(struct ox_subscribe *o)
{
    struct ox_topic *t = o->topic;
    uint32_t most = ox_topic_name_is_system(&t->name) ? 0 : t->policies.max_subscriptions;
    if (most && ox_map_count(&t->subscriptions) >= most)
        return subscribe_fail(o, OX_E_NOT_ALLOWED, "Exceed the maximum number of subscriptions of the topic");
    if (o->durable && !t->policies.auto_subscription && !ox_topic_name_is_system(&t->name))
        return subscribe_fail(o, OX_E_SUBSCRIPTION_NOT_FOUND, "the subscription does not exist and automatic creation is off");
    o->sub = subscription_new(t, o->own_subscription, o->durable);
    if (!t->ml) {
        subscription_set_state(o->sub, OX_SUBSCRIPTION_OPEN, "made without a log");
        return OX_GOTO(&o->seq, subscribe_admit);
    }
    if (!o->rollback_ms)
        return subscribe_make_at(o, subscribe_position(o));
    uint64_t now = ox_wall_ms(t->shard->loop);
    o->before_ms = now > o->rollback_ms ? now - o->rollback_ms : 0;
    o->find.before = entry_is_before;
    o->find.ctx = o;
    ox_seq_bind(&o->seq, &o->find.op, "mledger.find");
    ox_mledger_find(t->ml, &o->find);
    return OX_WAIT(&o->seq, subscribe_found);
}

static ox_step subscribe_make_at(struct ox_subscribe *o, struct ox_pos start)
{
    ox_seq_bind(&o->seq, &o->open.op, "cursor.open");
    ox_cursor_open(o->topic->ml, &o->open, o->own_subscription, o->durable, start,
                   o->own_properties.count ? &o->own_properties : NULL);
    return OX_WAIT(&o->seq, subscribe_made);
}

// ---- attaching

static ox_step subscribe_probed(struct ox_seq *q)
{
    subscribe_of(q)->probed = true;
    return OX_GOTO(q, subscribe_find);
}

static ox_step subscribe_probe(struct ox_subscribe *o, struct ox_consumer *holder, enum ox_err err)
{
    if (o->probed || !holder)
        return OX_FINISH(&o->seq, err);
    ox_seq_bind(&o->seq, &o->wait, "consumer.probe");
    holder->events->probe(holder, &o->wait);
    return OX_WAIT(&o->seq, subscribe_probed);
}

// ---- a dispatcher of another type is replaced when nobody uses it

static ox_step subscribe_replaced(struct ox_seq *q)
{
    struct ox_subscribe *o = subscribe_of(q);
    struct ox_subscription *s = o->sub;
    s->dispatcher->body->free(s->dispatcher);
    s->dispatcher = ox_dispatcher_new(s, o->type);
    s->type = o->type;
    if (s->cursor)
        ox_cursor_rewind(s->cursor);
    subscription_set_state(s, OX_SUBSCRIPTION_OPEN, "other type");
    return OX_GOTO(q, subscribe_find);
}

static ox_step subscribe_replace(struct ox_subscribe *o)
{
    struct ox_subscription *s = o->sub;
    subscription_set_state(s, OX_SUBSCRIPTION_SEEKING, "other type");
    ox_seq_bind(&o->seq, &o->wait, "dispatcher.stop");
    subscription_stop(s, &o->wait);
    return OX_WAIT(&o->seq, subscribe_replaced);
}

static struct ox_consumer *first_consumer(struct ox_subscription *s)
{
    struct ox_link *l = ox_list_first(&s->consumers);
    return l ? CONTAINER_OF(l, struct ox_consumer, link) : NULL;
}

static size_t topic_consumers(const struct ox_topic *t)
{
    size_t n = 0;
    OX_MAP_EACH(&t->subscriptions, node)
        n += SUBSCRIPTION_OF(node)->consumers.count;
    return n;
}

static enum ox_err subscribe_too_many(struct ox_subscribe *o)
{
    const struct ox_policies *p = &o->topic->policies;
    if (ox_topic_name_is_system(&o->topic->name))
        return OX_OK;
    if (p->max_consumers && topic_consumers(o->topic) >= p->max_consumers)
        o->why = "Topic reached max consumers limit";
    else if (p->max_consumers_per_subscription && o->sub->consumers.count >= p->max_consumers_per_subscription)
        o->why = "Subscription reached max consumers limit";
    else
        return OX_OK;
    return OX_E_CONSUMER_BUSY;
}

// ---- a subscription without properties takes those of the consumer that has some

static ox_step subscribe_described(struct ox_seq *q)
{
    ox_kv_fini(&subscribe_of(q)->own_properties);
    return q->err ? OX_FINISH(q, q->err) : OX_GOTO(q, subscribe_find);
}

static ox_step subscribe_describe(struct ox_subscribe *o)
{
    ox_seq_bind(&o->seq, &o->wait, "cursor.properties");
    ox_cursor_set_properties(o->sub->cursor, &o->wait, &o->own_properties);
    return OX_WAIT(&o->seq, subscribe_described);
}

// ---- a subscription that is to be replicated is marked so, as soon as one consumer says so

static ox_step subscribe_marked(struct ox_seq *q)
{
    subscribe_of(q)->replicated = false;
    return q->err ? OX_FINISH(q, q->err) : OX_GOTO(q, subscribe_find);
}

static ox_step subscribe_mark(struct ox_subscribe *o)
{
    struct ox_cursor *c = o->sub->cursor;
    struct ox_kv properties = {0};
    ox_kv_copy(&properties, &c->position_properties);
    ox_kv_set(&properties, OX_REPLICATED_PROPERTY, "1");
    ox_seq_bind(&o->seq, &o->marked.op, "cursor.replicated");
    ox_cursor_mark_delete_with(c, &o->marked, c->mark_delete, &properties);
    ox_kv_fini(&properties);
    return OX_WAIT(&o->seq, subscribe_marked);
}

static ox_step subscribe_admit(struct ox_seq *q)
{
    struct ox_subscribe *o = subscribe_of(q);
    struct ox_subscription *s = o->sub;
    if (o->topic->state != OX_TOPIC_OPEN)
        return OX_FINISH(q, OX_E_TOPIC_FENCED);
    if (s->durable != o->durable)
        return subscribe_fail(o, OX_E_UNSUPPORTED,
                              s->durable ? "Durable subscription with the same name already exists"
                                         : "Non-durable subscription with the same name already exists");
    if (s->dispatcher && s->dispatcher->body->type != o->type && s->consumers.count) {
        o->why = "Subscription is of different type";
        return subscribe_probe(o, first_consumer(s), OX_E_CONSUMER_BUSY);
    }
    if (s->dispatcher && s->dispatcher->body->type != o->type)
        return subscribe_replace(o);
    if (!s->dispatcher) {
        s->dispatcher = ox_dispatcher_new(s, o->type);
        s->type = o->type;
    }
    struct ox_consumer *holder = NULL;
    enum ox_err err = s->dispatcher->body->admit(s->dispatcher, o, &holder);
    if (err)
        return subscribe_probe(o, holder, err);
    err = subscribe_too_many(o);
    if (err) {
        subscription_abandon(s);
        return OX_FINISH(q, err);
    }
    if (s->cursor && s->durable && o->own_properties.count && !s->cursor->properties.count)
        return subscribe_describe(o);
    if (s->cursor && s->durable && o->replicated && !ox_subscription_is_replicated(s))
        return subscribe_mark(o);
    o->why = NULL;
    o->consumer = consumer_new(s, o);
    return OX_FINISH(q, OX_OK);
}

static void subscribe_done(struct ox_seq *q, enum ox_err err)
{
    struct ox_subscribe *o = subscribe_of(q);
    ox_free(o->own_subscription);
    ox_free(o->own_set);
    ox_free(o->own_ranges);
    ox_kv_fini(&o->own_properties);
    topic_unpin(o->topic);
    ox_op_finish(&o->op, err);
}

void ox_subscribe(struct ox_topic *t, struct ox_subscribe *o)
{
    ox_op_begin(&o->op);
    topic_pin(t);
    o->topic = t;
    o->consumer = NULL;
    o->sub = NULL;
    o->why = NULL;
    o->probed = false;
    o->link = (struct ox_link){0};
    o->own_subscription = ox_strdup(o->subscription);
    o->start_words = OX_MIN(o->start_words, (size_t)OX_BATCH_WORDS_MAX);
    o->own_set = o->start_words ? ox_memdup(o->start_set, o->start_words * sizeof *o->start_set) : NULL;
    o->own_ranges = o->keys.range_count ? ox_memdup(o->keys.ranges, 2 * o->keys.range_count * sizeof *o->keys.ranges) : NULL;
    o->keys.ranges = o->own_ranges;
    o->own_properties = (struct ox_kv){0};
    if (o->properties)
        ox_kv_copy(&o->own_properties, o->properties);
    ox_seq_start(&o->seq, t->shard->loop, "subscribe", subscribe_start, subscribe_done);
}
