// load.c - a producer and a consumer for each topic; every message carries its number, and what is promised is held against what comes.
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "demo.h"

#define LOAD_TOPICS 4
#define LOAD_TICK_NS (10 * OX_MS)
#define LOAD_PER_TICK 5 // messages of a topic: 500 a second
#define LOAD_BYTES 1024
#define LOAD_MAX 100000 // messages of a topic
#define LOAD_ACK_EVERY 50

enum { MESSAGE_ACKED = 1, MESSAGE_RECEIVED = 2 };

struct load_stream {
    struct demo_load *load;
    char topic[64];
    struct ox_client_producer_open producer_open;
    struct ox_client_consumer_open consumer_open;
    struct ox_client_producer *producer;
    uint32_t next; // number of the next message
    uint8_t *flags;
    uint32_t pending; // without an answer
    int64_t last;     // number of the last message received
    uint64_t last_ack_ns;
    uint32_t unacknowledged;
};

struct demo_load {
    struct ox_loop *loop;
    struct ox_client *client;
    struct load_stream streams[LOAD_TOPICS];
    struct ox_timer tick;
    bool finishing;
    struct demo_counts counts;
    char trouble[512];
};

struct load_message {
    struct ox_client_send send;
    struct load_stream *stream;
    uint32_t number;
};

static void load_trouble_note(struct demo_load *l, const char *topic, enum ox_err err, const char *text)
{
    if (!l->trouble[0])
        snprintf(l->trouble, sizeof l->trouble, "%s: %s %s", topic, ox_err_text(err), text);
}

// ---- sending

static void load_sent(struct ox_op *op)
{
    struct load_message *m = CONTAINER_OF(op, struct load_message, send.op);
    struct load_stream *s = m->stream;
    struct demo_counts *c = &s->load->counts;
    s->pending--;
    if (op->err == OX_OK) {
        uint64_t now = ox_now_ns(s->load->loop);
        if (s->last_ack_ns)
            c->pause_ns = OX_MAX(c->pause_ns, now - s->last_ack_ns);
        s->last_ack_ns = now;
        s->flags[m->number] |= MESSAGE_ACKED;
        c->acked++;
        c->bytes += LOAD_BYTES;
    } else {
        c->failed++;
        load_trouble_note(s->load, s->topic, op->err, ox_client_producer_text(s->producer));
    }
    ox_free(m);
}

static void load_send(struct load_stream *s)
{
    struct load_message *m = ox_malloc(sizeof *m);
    uint8_t *data;
    m->stream = s;
    m->number = s->next++;
    m->send.payload = ox_buf_new(LOAD_BYTES, &data);
    memset(data, (int)m->number, LOAD_BYTES);
    ox_put_be32(data, m->number);
    ox_op_init(&m->send.op, s->load->loop, load_sent, "demo.send");
    s->pending++;
    s->load->counts.sent++;
    ox_client_producer_send(s->producer, &m->send);
    ox_buf_unref(&m->send.payload);
}

static void load_tick(struct ox_timer *t)
{
    struct demo_load *l = CONTAINER_OF(t, struct demo_load, tick);
    if (l->finishing)
        return;
    ox_timer_start(t, LOAD_TICK_NS);
    for (int i = 0; i < LOAD_TOPICS; i++)
        for (int k = 0; k < LOAD_PER_TICK && l->streams[i].next < LOAD_MAX && l->streams[i].pending < 900; k++)
            load_send(&l->streams[i]);
}

// ---- receiving

static void load_message_came(struct ox_client_consumer *c, const struct ox_received *r)
{
    struct load_stream *s = (struct load_stream *)ox_client_consumer_owner(c);
    uint32_t number = r->payload.len == LOAD_BYTES ? ox_get_be32(r->payload.data) : UINT32_MAX;
    if (number >= s->next || r->payload.data[LOAD_BYTES - 1] != (uint8_t)number) {
        load_trouble_note(s->load, s->topic, OX_E_CORRUPT, "a message that nobody sent");
        return;
    }
    s->load->counts.received++;
    s->load->counts.doubled += (s->flags[number] & MESSAGE_RECEIVED) != 0;
    if ((int64_t)number > s->last) {
        s->load->counts.missing += (uint64_t)((int64_t)number - s->last - 1);
        s->last = number;
    }
    s->flags[number] |= MESSAGE_RECEIVED;
    if (++s->unacknowledged >= LOAD_ACK_EVERY) {
        s->unacknowledged = 0;
        ox_client_consumer_ack(c, NULL, &r->id, true);
    }
}

static void load_consumer_failed(struct ox_client_consumer *c, enum ox_err err, const char *text)
{
    struct load_stream *s = (struct load_stream *)ox_client_consumer_owner(c);
    load_trouble_note(s->load, s->topic, err, text);
}

static void load_damaged(struct ox_client_consumer *c, const struct ox_message_id *id, enum ox_err err)
{
    (void)id;
    load_consumer_failed(c, err, "a damaged message");
}

static const struct ox_client_consumer_events load_events = {
    .message = load_message_came, .failed = load_consumer_failed, .damaged = load_damaged};

// ---- opening

static void load_opened(struct demo_load *l)
{
    for (int i = 0; i < LOAD_TOPICS; i++)
        if (!l->streams[i].producer || !l->streams[i].consumer_open.consumer)
            return;
    ox_timer_start(&l->tick, 0);
}

static void load_producer_opened(struct ox_op *op)
{
    struct load_stream *s = CONTAINER_OF(op, struct load_stream, producer_open.call.op);
    if (op->err != OX_OK)
        load_trouble_note(s->load, s->topic, op->err, s->producer_open.call.text);
    s->producer = s->producer_open.producer;
    load_opened(s->load);
}

static void load_consumer_opened(struct ox_op *op)
{
    struct load_stream *s = CONTAINER_OF(op, struct load_stream, consumer_open.call.op);
    if (op->err != OX_OK)
        load_trouble_note(s->load, s->topic, op->err, s->consumer_open.call.text);
    struct ox_client_producer_config config = {.topic = s->topic};
    ox_op_init(&s->producer_open.call.op, s->load->loop, load_producer_opened, "demo.producer");
    ox_client_producer_open(s->load->client, &s->producer_open, &config);
}

static void load_stream_open(struct demo_load *l, int index)
{
    struct load_stream *s = &l->streams[index];
    struct ox_client_consumer_config config = {.topic = s->topic,
                                               .subscription = "demo",
                                               .type = OXPB__COMMAND_SUBSCRIBE__SUB_TYPE__Exclusive,
                                               .earliest = true,
                                               .events = &load_events,
                                               .owner = s};
    s->load = l;
    s->last = -1;
    s->flags = ox_calloc(LOAD_MAX, 1);
    snprintf(s->topic, sizeof s->topic, "persistent://public/default/river-%d", index);
    ox_op_init(&s->consumer_open.call.op, l->loop, load_consumer_opened, "demo.consumer");
    ox_client_consumer_open(l->client, &s->consumer_open, &config);
}

struct demo_load *load_start(struct ox_loop *loop, struct ox_net *net, const char *url)
{
    struct demo_load *l = ox_malloc(sizeof *l);
    struct ox_client_config config = {.net = net, .service_url = url};
    l->loop = loop;
    enum ox_err err = ox_client_new(&config, &l->client);
    if (err != OX_OK) {
        load_trouble_note(l, url, err, "");
        return l;
    }
    ox_timer_init(&l->tick, loop, load_tick);
    for (int i = 0; i < LOAD_TOPICS; i++)
        load_stream_open(l, i);
    return l;
}

// ---- what is known

bool load_flows(const struct demo_load *l)
{
    for (int i = 0; i < LOAD_TOPICS; i++)
        if (l->streams[i].last < 0)
            return false;
    return true;
}

void load_finish(struct demo_load *l)
{
    l->finishing = true;
}

static uint64_t load_lost(const struct demo_load *l)
{
    uint64_t lost = 0;
    for (int i = 0; i < LOAD_TOPICS; i++)
        for (uint32_t k = 0; k < l->streams[i].next; k++)
            lost += l->streams[i].flags[k] == MESSAGE_ACKED;
    return lost;
}

bool load_is_over(const struct demo_load *l)
{
    for (int i = 0; i < LOAD_TOPICS; i++)
        if (l->streams[i].pending > 0)
            return false;
    return load_lost(l) == 0;
}

void load_count(const struct demo_load *l, struct demo_counts *ret)
{
    *ret = l->counts;
    if (l->finishing)
        ret->lost = load_lost(l);
}

const char *load_trouble(const struct demo_load *l)
{
    return l->trouble;
}
