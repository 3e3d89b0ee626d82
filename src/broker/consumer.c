// consumer.c - consumers: attaching to a dispatcher, permits, acknowledgements, leaving.
#include "broker/consumer.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/mem.h"
#include "broker/subscription_int.h"

struct ox_consumer *consumer_new(struct ox_subscription *s, const struct ox_subscribe *from)
{
    struct ox_consumer *c = ox_malloc(sizeof *c);
    c->magic = CONSUMER_MAGIC;
    c->subscription = s;
    c->topic = s->topic;
    c->name = ox_strdup(from->name ? from->name : "");
    c->id = from->id;
    c->connection = from->connection;
    c->priority = from->priority;
    c->read_compacted = from->read_compacted;
    c->epoch = from->epoch;
    c->connected_ms = ox_wall_ms(s->topic->shard->loop);
    c->events = from->events;
    c->owner = from->owner;
    snprintf(c->peer, sizeof c->peer, "%s", from->peer ? from->peer : "");
    snprintf(c->client_version, sizeof c->client_version, "%s", from->client_version ? from->client_version : "");
    if (from->metadata)
        ox_kv_copy(&c->metadata, from->metadata);
    ox_topic_hold(c->topic);
    ox_list_push_back(&s->consumers, &c->link);
    s->topic->shard->consumers_count.value++;
    s->dispatcher->body->attached(s->dispatcher, c, from);
    return c;
}

void consumer_detach(struct ox_consumer *c)
{
    struct ox_subscription *s = c->subscription;
    OX_ASSERT(c->magic == CONSUMER_MAGIC);
    s->dispatcher->body->detached(s->dispatcher, c);
    ox_list_remove(&s->consumers, &c->link);
    s->topic->shard->consumers_count.value--;
}

void consumer_free(struct ox_consumer *c)
{
    struct ox_topic *t = c->topic;
    ox_kv_fini(&c->metadata);
    ox_free(c->name);
    c->magic = 0;
    ox_free(c);
    ox_topic_put(t);
}

void ox_consumer_close(struct ox_consumer *c)
{
    struct ox_subscription *s = c->subscription;
    consumer_detach(c);
    subscription_abandon(s);
    consumer_free(c);
}

enum ox_err ox_consumer_flow(struct ox_consumer *c, uint32_t permits)
{
    if (permits == 0)
        return OX_E_INVALID;
    struct ox_subscription *s = c->subscription;
    c->permits = OX_MIN(c->permits + (int64_t)permits, (int64_t)OX_PERMITS_MAX);
    c->last_flow_ms = s->last_flow_ms = ox_wall_ms(c->topic->shard->loop);
    s->dispatcher->body->more(s->dispatcher, c);
    subscription_look_at_end(s);
    return OX_OK;
}

void ox_consumer_writable(struct ox_consumer *c)
{
    struct ox_dispatcher *d = c->subscription->dispatcher;
    c->blocked = false;
    d->body->more(d, c);
}

void ox_consumer_redeliver(struct ox_consumer *c, bool has_epoch, uint64_t epoch, const struct ox_pos *positions, size_t count)
{
    struct ox_dispatcher *d = c->subscription->dispatcher;
    if (has_epoch && epoch < c->epoch)
        return;
    if (has_epoch)
        c->epoch = epoch;
    d->body->redeliver(d, c, positions, count);
}
