// load.c - oxbow-bench publish: messages at fixed times, whether answers come or not.
#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "bench/bench.h"
#include "client/client.h"
#include "io/posix/posix.h"
#include "wire/compress.h"

#define LOAD_DRAIN_NS (30 * OX_SEC)
#define LOAD_STAMP_BYTES 8 // the intended time at the front of each payload

enum load_phase { LOAD_OPENING, LOAD_RUNNING, LOAD_DRAINING, LOAD_CLOSING };

struct load;

struct load_producer {
    struct load *load;
    struct ox_client_producer_open open;
    struct ox_client_producer *producer;
    struct ox_op close;
};

struct load_consumer {
    struct load *load;
    struct ox_client_consumer_open open;
    struct ox_client_consumer *consumer;
    struct ox_turn_hook ack;
    struct ox_message_id last;
    struct ox_op close;
};

// A message on its way.
struct load_message {
    struct ox_link link; // in load->spare
    struct ox_client_send send;
    struct load_producer *producer;
    uint64_t intended_ns;
    bool measured;
};

struct load {
    const struct bench_options *o;
    struct ox_log log;
    struct ox_loop *loop;
    enum load_phase phase;
    struct ox_client **clients;
    struct load_producer *producers;
    struct load_consumer *consumers;
    size_t producer_count, consumer_count, client_count;
    size_t opening, closing; // operations that are not done
    char *payload;
    struct ox_list spare;
    uint64_t start_ns, measured_ns, end_ns;
    uint64_t next; // number of the next message
    uint64_t in_flight;
    int tick_fd;
    struct ox_posix_watch *tick;
    struct ox_timer end, drain;
    struct bench_result result;
    bool broken;
};

static void load_fail(struct load *l, const char *what, enum ox_err err, const char *text)
{
    if (!l->broken)
        fprintf(stderr, "oxbow-bench: %s: %s%s%s\n", what, ox_err_text(err), *text ? ": " : "", text);
    l->broken = true;
}

// ---- sending

static void load_send(struct load *l, struct load_producer *p, uint64_t intended_ns);

static void load_count(struct load *l, const struct load_message *m, enum ox_err err)
{
    uint64_t now = ox_now_ns(l->loop);
    if (!m->measured)
        return;
    if (err != OX_OK) {
        l->result.failed++;
        l->result.error = ox_err_name(err);
        return;
    }
    l->result.done++;
    l->result.bytes += l->o->size;
    ox_hist_add(&l->result.latency, now - m->intended_ns);
    bench_pauses_note(&l->result.pauses, now);
}

static void load_close(struct load *l);

static void load_sent(struct ox_op *op)
{
    struct load_message *m = CONTAINER_OF(CONTAINER_OF(op, struct ox_client_send, op), struct load_message, send);
    struct load_producer *p = m->producer;
    struct load *l = p->load;
    load_count(l, m, op->err);
    l->in_flight--;
    ox_list_push_back(&l->spare, &m->link);
    if (l->phase == LOAD_RUNNING && l->o->rate == 0 && op->err == OX_OK)
        load_send(l, p, ox_now_ns(l->loop));
    if (l->phase == LOAD_DRAINING && l->in_flight == 0)
        load_close(l);
}

static struct load_message *load_take(struct load *l)
{
    struct ox_link *link = ox_list_pop_front(&l->spare);
    struct load_message *m = link ? CONTAINER_OF(link, struct load_message, link) : ox_malloc(sizeof *m);
    m->send = (struct ox_client_send){0};
    ox_op_init(&m->send.op, l->loop, load_sent, "bench.send");
    return m;
}

static void load_send(struct load *l, struct load_producer *p, uint64_t intended_ns)
{
    struct load_message *m = load_take(l);
    m->producer = p;
    m->intended_ns = intended_ns;
    m->measured = intended_ns >= l->measured_ns && intended_ns < l->end_ns;
    memcpy(l->payload, &intended_ns, LOAD_STAMP_BYTES);
    m->send.payload = ox_buf_static(l->payload, l->o->size);
    l->in_flight++;
    l->result.sent += m->measured;
    ox_client_producer_send(p->producer, &m->send);
}

static uint64_t load_due(const struct load *l)
{
    uint64_t seconds = l->next / (uint64_t)l->o->rate, rest = l->next % (uint64_t)l->o->rate;
    return l->start_ns + seconds * OX_SEC + rest * OX_SEC / (uint64_t)l->o->rate;
}

// The loop's timers count milliseconds; messages are due at microseconds.
static void load_arm(struct load *l)
{
    uint64_t due = load_due(l);
    struct itimerspec at = {.it_value = {.tv_sec = (time_t)(due / OX_SEC), .tv_nsec = (long)(due % OX_SEC)}};
    timerfd_settime(l->tick_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static void load_tick(void *ctx)
{
    struct load *l = ctx;
    uint64_t expired;
    (void)!read(l->tick_fd, &expired, sizeof expired);
    if (l->phase != LOAD_RUNNING)
        return;
    while (load_due(l) <= ox_now_ns(l->loop)) {
        load_send(l, &l->producers[l->next % l->producer_count], load_due(l));
        l->next++;
    }
    load_arm(l);
}

// ---- consuming

static void load_ack(struct ox_turn_hook *hook)
{
    struct load_consumer *c = CONTAINER_OF(hook, struct load_consumer, ack);
    if (c->consumer)
        ox_client_consumer_ack(c->consumer, NULL, &c->last, true);
}

static void load_received(struct ox_client_consumer *consumer, const struct ox_received *m)
{
    struct load_consumer *c = ox_client_consumer_owner(consumer);
    struct load *l = c->load;
    uint64_t intended = 0;
    c->last = m->id;
    ox_turn_end(l->loop, &c->ack);
    if (m->payload.len < LOAD_STAMP_BYTES)
        return;
    memcpy(&intended, m->payload.data, LOAD_STAMP_BYTES);
    if (l->phase == LOAD_OPENING || intended < l->measured_ns || intended >= l->end_ns)
        return;
    l->result.consumed++;
    ox_hist_add(&l->result.end_to_end, ox_now_ns(l->loop) - intended);
}

static const struct ox_client_consumer_events load_events = {.message = load_received};

// ---- closing

static void load_stop_when_closed(struct load *l);

static void load_producer_closed(struct ox_op *op)
{
    load_stop_when_closed(CONTAINER_OF(op, struct load_producer, close)->load);
}

static void load_consumer_closed(struct ox_op *op)
{
    load_stop_when_closed(CONTAINER_OF(op, struct load_consumer, close)->load);
}

static void load_stop_when_closed(struct load *l)
{
    if (--l->closing == 0)
        ox_posix_stop(l->loop); // the process ends: connections go with it
}

static void load_close(struct load *l)
{
    if (l->phase == LOAD_CLOSING)
        return;
    l->phase = LOAD_CLOSING;
    ox_timer_stop(&l->drain);
    l->closing = 1;
    for (size_t i = 0; i < l->producer_count; i++) {
        struct load_producer *p = &l->producers[i];
        if (!p->producer)
            continue;
        l->closing++;
        ox_op_init(&p->close, l->loop, load_producer_closed, "bench.close");
        ox_client_producer_close(p->producer, &p->close);
    }
    for (size_t i = 0; i < l->consumer_count; i++) {
        struct load_consumer *c = &l->consumers[i];
        ox_turn_end_cancel(l->loop, &c->ack);
        if (!c->consumer)
            continue;
        l->closing++;
        ox_op_init(&c->close, l->loop, load_consumer_closed, "bench.close");
        ox_client_consumer_close(c->consumer, &c->close);
        c->consumer = NULL;
    }
    load_stop_when_closed(l);
}

static void load_drain_over(struct ox_timer *timer)
{
    load_close(CONTAINER_OF(timer, struct load, drain));
}

static void load_ended(struct ox_timer *timer)
{
    struct load *l = CONTAINER_OF(timer, struct load, end);
    l->phase = LOAD_DRAINING;
    l->result.elapsed_ns = l->o->duration_ns;
    for (size_t i = 0; i < l->producer_count; i++)
        ox_client_producer_flush(l->producers[i].producer);
    if (l->in_flight == 0)
        load_close(l);
    else
        ox_timer_start(&l->drain, LOAD_DRAIN_NS);
}

// ---- starting

static void load_start(struct load *l)
{
    l->phase = LOAD_RUNNING;
    l->start_ns = ox_now_ns(l->loop);
    l->measured_ns = l->start_ns + l->o->warmup_ns;
    l->end_ns = l->measured_ns + l->o->duration_ns;
    bench_pauses_init(&l->result.pauses, l->o->pause_window_ns, l->measured_ns);
    ox_timer_start(&l->end, l->o->warmup_ns + l->o->duration_ns);
    if (l->o->rate) {
        load_arm(l);
        return;
    }
    for (int64_t n = 0; n < l->o->window; n++)
        for (size_t i = 0; i < l->producer_count; i++)
            load_send(l, &l->producers[i], l->start_ns);
}

static void load_opened(struct load *l)
{
    if (--l->opening > 0)
        return;
    if (l->broken)
        load_close(l);
    else
        load_start(l);
}

static void load_producer_opened(struct ox_op *op)
{
    struct ox_client_call *call = CONTAINER_OF(op, struct ox_client_call, op);
    struct load_producer *p =
        CONTAINER_OF(CONTAINER_OF(call, struct ox_client_producer_open, call), struct load_producer, open);
    p->producer = p->open.producer;
    if (op->err != OX_OK)
        load_fail(p->load, "a producer", op->err, call->text);
    load_opened(p->load);
}

static void load_consumer_opened(struct ox_op *op)
{
    struct ox_client_call *call = CONTAINER_OF(op, struct ox_client_call, op);
    struct load_consumer *c =
        CONTAINER_OF(CONTAINER_OF(call, struct ox_client_consumer_open, call), struct load_consumer, open);
    c->consumer = c->open.consumer;
    if (op->err != OX_OK)
        load_fail(c->load, "a consumer", op->err, call->text);
    load_opened(c->load);
}

static bool load_compression(const char *name, uint32_t *ret)
{
    const char *names[] = {"none", "lz4", "zlib", "zstd", "snappy"};
    for (uint32_t i = 0; i < OX_COUNT(names); i++)
        if (strcmp(names[i], name) == 0) {
            *ret = i;
            return true;
        }
    fprintf(stderr, "oxbow-bench: '%s' is no compression: use none, lz4, zlib, zstd or snappy\n", name);
    return false;
}

static void load_open_producer(struct load *l, size_t i, uint32_t compression)
{
    const struct bench_options *o = l->o;
    struct load_producer *p = &l->producers[i];
    OX_CLEANUP(ox_free_ptr)
    char *topic = ox_asprintf("%s-%zu", o->topic, i % (size_t)o->topics);
    struct ox_client_producer_config config = {.topic = topic,
                                               .pending_max = o->rate ? 1000000 : (uint32_t)o->window,
                                               .pending_bytes_max = o->rate ? 512u << 20 : SIZE_MAX,
                                               .batch_messages = (uint32_t)o->batch,
                                               .batch_bytes = o->batch_bytes,
                                               .batch_delay_ns = o->batch_delay_ns,
                                               .compression = compression};
    p->load = l;
    ox_op_init(&p->open.call.op, l->loop, load_producer_opened, "bench.open");
    ox_client_producer_open(l->clients[i % l->client_count], &p->open, &config);
}

static void load_open_consumer(struct load *l, size_t i)
{
    struct load_consumer *c = &l->consumers[i];
    OX_CLEANUP(ox_free_ptr)
    char *topic = ox_asprintf("%s-%zu", l->o->topic, i % (size_t)l->o->topics);
    OX_CLEANUP(ox_free_ptr)
    char *subscription = ox_asprintf("bench-%zu", i / (size_t)l->o->topics);
    struct ox_client_consumer_config config = {
        .topic = topic, .subscription = subscription, .events = &load_events, .owner = c};
    c->load = l;
    c->ack.run = load_ack;
    ox_op_init(&c->open.call.op, l->loop, load_consumer_opened, "bench.open");
    ox_client_consumer_open(l->clients[i % l->client_count], &c->open, &config);
}

static bool load_make_clients(struct load *l)
{
    l->client_count = (size_t)l->o->connections;
    l->clients = ox_calloc(l->client_count, sizeof *l->clients);
    struct ox_client_config config = {.net = ox_posix_net(l->loop), .service_url = l->o->service_url};
    for (size_t i = 0; i < l->client_count; i++)
        if (ox_client_new(&config, &l->clients[i]) != OX_OK) {
            fprintf(stderr, "oxbow-bench: '%s' is no service URL: use pulsar://HOST:PORT\n", l->o->service_url);
            return false;
        }
    return true;
}

static void load_open_all(struct load *l, uint32_t compression)
{
    l->producer_count = (size_t)(l->o->topics * l->o->producers);
    l->consumer_count = (size_t)(l->o->topics * l->o->consumers);
    l->producers = ox_calloc(l->producer_count, sizeof *l->producers);
    l->consumers = ox_calloc(l->consumer_count, sizeof *l->consumers);
    l->opening = l->producer_count + l->consumer_count;
    for (size_t i = 0; i < l->producer_count; i++)
        load_open_producer(l, i, compression);
    for (size_t i = 0; i < l->consumer_count; i++)
        load_open_consumer(l, i);
}

static bool load_setup(struct load *l)
{
    uint32_t compression;
    ox_posix_log_init(&l->log, OX_LOG_ERROR);
    l->loop = ox_posix_loop_new(&l->log);
    l->payload = ox_malloc(l->o->size);
    ox_list_init(&l->spare);
    ox_timer_init(&l->end, l->loop, load_ended);
    ox_timer_init(&l->drain, l->loop, load_drain_over);
    l->tick_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    l->tick = ox_posix_watch_new(l->loop, l->tick_fd, load_tick, l);
    for (uint64_t i = 0; i < l->o->size; i++) // neither constant nor random: compresses to about a half
        l->payload[i] = (char)((i * 2654435761u >> 13) & (i % 16 < 8 ? 0xff : 0x07));
    if (!load_compression(l->o->compression, &compression) || !load_make_clients(l))
        return false;
    load_open_all(l, compression);
    return true;
}

int bench_publish(const struct bench_options *o)
{
    struct load *l = ox_malloc(sizeof *l);
    l->o = o;
    l->result.mode = "publish";
    l->result.target = o->service_url;
    if (!load_setup(l))
        return 2;
    ox_posix_run(l->loop);
    if (l->broken)
        return 1;
    bench_pauses_end(&l->result.pauses, l->end_ns);
    bench_report(o, &l->result);
    return l->result.failed || l->result.done < l->result.sent ? 1 : 0;
}
