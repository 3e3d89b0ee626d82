// drain.c - oxbow-bench drain: subscriptions read what lies in their topics, from the first message on, as fast as it comes.
#include <stdio.h>

#include "base/mem.h"
#include "bench/bench.h"
#include "client/client.h"
#include "io/posix/posix.h"

#define DRAIN_IDLE_NS (20 * OX_SEC) // nothing came for so long: it is given up

struct drain;

struct drain_consumer {
    struct drain *drain;
    struct ox_client_consumer_open open;
    struct ox_client_consumer *consumer;
    struct ox_turn_hook ack;
    struct ox_message_id last;
    int64_t left;
};

struct drain {
    const struct bench_options *o;
    struct ox_log log;
    struct ox_loop *loop;
    struct ox_client **clients;
    struct drain_consumer *consumers;
    size_t count, busy; // consumers, and those that have not read everything
    uint64_t first_ns, last_ns;
    struct ox_timer idle;
    struct bench_result result;
    bool broken;
};

static void drain_fail(struct drain *d, const char *what, const char *text)
{
    fprintf(stderr, "oxbow-bench: %s%s%s\n", what, *text ? ": " : "", text);
    d->broken = true;
    ox_posix_stop(d->loop);
}

static void drain_ack(struct ox_turn_hook *hook)
{
    struct drain_consumer *c = CONTAINER_OF(hook, struct drain_consumer, ack);
    if (c->consumer)
        ox_client_consumer_ack(c->consumer, NULL, &c->last, true);
}

static void drain_received(struct ox_client_consumer *consumer, const struct ox_received *m)
{
    struct drain_consumer *c = ox_client_consumer_owner(consumer);
    struct drain *d = c->drain;
    c->last = m->id;
    ox_turn_end(d->loop, &c->ack);
    if (c->left <= 0)
        return;
    d->last_ns = ox_now_ns(d->loop);
    if (!d->result.done)
        d->first_ns = d->last_ns;
    d->result.done++;
    d->result.bytes += m->payload.len;
    if (--c->left == 0 && --d->busy == 0)
        ox_posix_stop(d->loop);
}

static const struct ox_client_consumer_events drain_events = {.message = drain_received};

static void drain_opened(struct ox_op *op)
{
    struct ox_client_call *call = CONTAINER_OF(op, struct ox_client_call, op);
    struct drain_consumer *c =
        CONTAINER_OF(CONTAINER_OF(call, struct ox_client_consumer_open, call), struct drain_consumer, open);
    c->consumer = c->open.consumer;
    if (op->err != OX_OK)
        drain_fail(c->drain, "a consumer", call->text);
}

static void drain_looked(struct ox_timer *timer)
{
    struct drain *d = CONTAINER_OF(timer, struct drain, idle);
    uint64_t now = ox_now_ns(d->loop);
    if (now - d->last_ns < DRAIN_IDLE_NS)
        ox_timer_start(&d->idle, OX_SEC);
    else
        drain_fail(d, "no message came for 20 s: are there as many as --messages says?", "");
}

static void drain_open(struct drain *d, size_t i)
{
    const struct bench_options *o = d->o;
    struct drain_consumer *c = &d->consumers[i];
    OX_CLEANUP(ox_free_ptr)
    char *topic = ox_asprintf("%s-%zu", o->topic, i % (size_t)o->topics);
    OX_CLEANUP(ox_free_ptr)
    char *subscription = ox_asprintf("%s-%zu", o->subscription, i / (size_t)o->topics);
    struct ox_client_consumer_config config = {.topic = topic,
                                               .subscription = subscription,
                                               .earliest = true,
                                               .receiver_queue = 5000,
                                               .events = &drain_events,
                                               .owner = c};
    c->drain = d;
    c->left = o->messages;
    c->ack.run = drain_ack;
    ox_op_init(&c->open.call.op, d->loop, drain_opened, "bench.open");
    ox_client_consumer_open(d->clients[i % (size_t)o->connections], &c->open, &config);
}

static bool drain_setup(struct drain *d)
{
    const struct bench_options *o = d->o;
    ox_posix_log_init(&d->log, OX_LOG_ERROR);
    d->loop = ox_posix_loop_new(&d->log);
    d->clients = ox_calloc((size_t)o->connections, sizeof *d->clients);
    struct ox_client_config config = {.net = ox_posix_net(d->loop), .service_url = o->service_url};
    for (int64_t i = 0; i < o->connections; i++)
        if (ox_client_new(&config, &d->clients[i]) != OX_OK) {
            fprintf(stderr, "oxbow-bench: '%s' is no service URL: use pulsar://HOST:PORT\n", o->service_url);
            return false;
        }
    d->count = d->busy = (size_t)(o->topics * (o->consumers ? o->consumers : 1));
    d->consumers = ox_calloc(d->count, sizeof *d->consumers);
    ox_timer_init(&d->idle, d->loop, drain_looked);
    d->last_ns = ox_now_ns(d->loop);
    ox_timer_start(&d->idle, OX_SEC);
    for (size_t i = 0; i < d->count; i++)
        drain_open(d, i);
    return true;
}

int bench_drain(const struct bench_options *o)
{
    struct drain *d = ox_malloc(sizeof *d);
    d->o = o;
    d->result.mode = "drain";
    d->result.target = o->service_url;
    if (!o->messages) {
        fputs("oxbow-bench: drain needs --messages: how many each subscription finds\n", stderr);
        return 2;
    }
    if (!drain_setup(d))
        return 2;
    ox_posix_run(d->loop);
    d->result.sent = d->count * (uint64_t)o->messages;
    d->result.elapsed_ns = d->last_ns - d->first_ns;
    if (!d->broken)
        bench_report(o, &d->result);
    return d->broken ? 1 : 0;
}
