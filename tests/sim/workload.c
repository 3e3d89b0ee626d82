// workload.c - producers that send at random, consumers that acknowledge at random, and what they must never see.
#include "workload.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "group.h"

#define LOAD_HEAD_BYTES 12 // topic, producer, number

struct ox_loop *load_loop(const struct workload *load)
{
    return ox_sim_loop(load->world->client_node);
}

bool load_chance(struct workload *load, uint32_t per_mille)
{
    return ox_random_below(&load->random, 1000) < per_mille;
}

// ---- bytes ----------------------------------------------------------------------------------------------------------

// The bytes of a message follow from who it is.
static struct ox_buf message_bytes(const struct load_message *m)
{
    struct ox_random r;
    uint8_t *data;
    const struct load_producer *p = m->producer;
    uint64_t ident = (uint64_t)p->topic->index << 48 | (uint64_t)p->index << 32 | m->number;
    ox_random_seed(&r, ident);
    uint64_t kind = ox_random_below(&r, 100);
    size_t len = LOAD_HEAD_BYTES + (kind < 80   ? ox_random_below(&r, 300)
                                    : kind < 97 ? ox_random_below(&r, 8000)
                                                : ox_random_below(&r, 40000));
    struct ox_buf buf = ox_buf_new(len, &data);
    ox_put_be32(data, p->topic->index);
    ox_put_be32(data + 4, p->index);
    ox_put_be32(data + 8, m->number);
    uint8_t fill = (uint8_t)ox_random_next(&r);
    for (size_t i = LOAD_HEAD_BYTES; i < len; i++)
        data[i] = (uint8_t)(fill + i * 7);
    return buf;
}

// The message that received bytes belong to; NULL and a violation if they are nobody's.
struct load_message *load_message_of(struct load_topic *t, struct ox_buf payload, const char *where)
{
    struct world *w = t->load->world;
    uint32_t topic = payload.len >= LOAD_HEAD_BYTES ? ox_get_be32(payload.data) : UINT32_MAX;
    uint32_t producer = payload.len >= LOAD_HEAD_BYTES ? ox_get_be32(payload.data + 4) : UINT32_MAX;
    uint32_t number = payload.len >= LOAD_HEAD_BYTES ? ox_get_be32(payload.data + 8) : UINT32_MAX;
    if (topic != t->index || producer >= w->plan.producers || number >= t->producers[producer].next) {
        world_violation(w, "%s: a message of nobody (topic %u, producer %u, number %u)", where, topic, producer, number);
        return NULL;
    }
    struct load_message *m = &t->producers[producer].messages[number];
    struct ox_buf wanted = message_bytes(m);
    bool same = ox_buf_equal(wanted, payload);
    ox_buf_unref(&wanted);
    if (!same)
        world_violation(w, "%s: %s producer %u message %u: other bytes than were sent", where, t->name, producer, number);
    return same ? m : NULL;
}

struct ox_pos load_id_pos(const struct ox_message_id *id)
{
    return (struct ox_pos){id->ledger, id->entry};
}

int load_id_cmp(struct ox_pos a, int32_t a_batch, struct ox_pos b, int32_t b_batch)
{
    int cmp = ox_pos_cmp(a, b);
    return cmp ? cmp : a_batch < b_batch ? -1 : a_batch > b_batch;
}

// ---- producers ------------------------------------------------------------------------------------------------------

bool load_has_moved(struct load_message *m, const struct ox_message_id *id)
{
    bool moved = !m->forgotten && m->pos.ledger >= 0 && !ox_pos_equal(m->pos, load_id_pos(id));
    if (!moved || !m->producer->topic->load->world->plan.early_trim)
        return moved;
    memset(m->confirmed, 0, sizeof m->confirmed);
    return false;
}

static void producer_done(struct ox_op *op)
{
    struct load_message *m = CONTAINER_OF(op, struct load_message, send.op);
    struct load_producer *p = m->producer;
    if (op->err != OX_OK) {
        m->failed = true;
        return;
    }
    m->acked = true;
    ox_sim_note(p->topic->load->world->sim, "acked", m->number);
    if (m->send.id.ledger < 0)
        return; // a duplicate that the broker knew: stored before
    if (load_has_moved(m, &m->send.id))
        world_violation(p->topic->load->world,
                        "%s producer %u message %u: its receipt says " OX_POS_FMT ", a consumer got it at " OX_POS_FMT,
                        p->topic->name, p->index, m->number, OX_POS_ARG(load_id_pos(&m->send.id)), OX_POS_ARG(m->pos));
    if (ox_pos_cmp(load_id_pos(&m->send.id), p->last_pos) < 0)
        world_violation(p->topic->load->world,
                        "%s producer %u message %u: its id " OX_POS_FMT " goes back behind " OX_POS_FMT, p->topic->name,
                        p->index, m->number, OX_POS_ARG(load_id_pos(&m->send.id)), OX_POS_ARG(p->last_pos));
    p->last_pos = m->pos = load_id_pos(&m->send.id);
}

static bool producer_batches(const struct load_producer *p)
{
    return (p->topic->index + p->index + p->topic->load->world->seed) % 2;
}

uint32_t load_key(const struct load_message *m)
{
    return (m->number * 2654435761u + m->producer->index * 40503u) / 7 % GROUP_KEYS;
}

bool load_is_keyed(const struct load_message *m)
{
    return !producer_batches(m->producer) && !m->send.deliver_at_ms;
}

// Keys, and now and then a time before which it is not to be delivered.
static void producer_address(struct load_message *m)
{
    static const char *const keys[GROUP_KEYS] = {"a", "b", "c", "key-d", "key-e", "a rather long key f", ""};
    struct workload *load = m->producer->topic->load;
    if (!load->world->plan.groups)
        return;
    m->send.key = keys[load_key(m)];
    if (load->world->plan.delays && load_chance(load, 150))
        m->send.deliver_at_ms = ox_wall_ms(load_loop(load)) + ox_random_below(&load->random, 6000);
}

static void producer_send(struct load_producer *p)
{
    struct load_message *m = &p->messages[p->next];
    m->producer = p;
    m->number = p->next++;
    m->sent = true;
    m->forgotten = p->topic->deleting;
    m->pos = OX_POS_EARLIEST;
    m->send.payload = message_bytes(m);
    producer_address(m);
    ox_op_init(&m->send.op, load_loop(p->topic->load), producer_done, "load.send");
    ox_client_producer_send(p->client, &m->send);
    ox_buf_unref(&m->send.payload);
}

static void producer_tick(struct ox_timer *t)
{
    struct load_producer *p = CONTAINER_OF(t, struct load_producer, timer);
    struct workload *load = p->topic->load;
    if (!p->client) {
        load_producer_open(p); // was refused
        return;
    }
    uint64_t burst = 1 + ox_random_below(&load->random, 8);
    while (burst-- > 0 && p->next < p->count && ox_client_producer_pending(p->client) < 200)
        producer_send(p);
    if (p->next == p->count)
        ox_client_producer_flush(p->client);
    else
        ox_timer_start(t, load->world->plan.chaos_ns / p->count / 2 + ox_random_below(&load->random, 200 * OX_MS));
}

static void producer_opened(struct ox_op *op)
{
    struct load_producer *p = CONTAINER_OF(op, struct load_producer, open.call.op);
    p->opening = false;
    if (op->err == OX_OK) {
        p->client = p->open.producer;
        ox_timer_start(&p->timer, 0);
        churn_start_producer(p);
    } else {
        ox_timer_start(&p->timer, 100 * OX_MS);
    }
}

void load_producer_open(struct load_producer *p)
{
    struct workload *load = p->topic->load;
    struct ox_client_producer_config config = {.topic = p->topic->name,
                                               .name = p->name,
                                               .batch_messages = producer_batches(p) ? LOAD_BATCH : 1,
                                               .batch_delay_ns = 5 * OX_MS};
    p->opening = p->started = true;
    ox_op_init(&p->open.call.op, load_loop(load), producer_opened, "load.producer.open");
    ox_client_producer_open(load->clients[p->from], &p->open, &config);
}

// ---- subscriptions --------------------------------------------------------------------------------------------------

static void sub_restart_order(struct load_sub *s)
{
    s->last_pos = OX_POS_EARLIEST;
    s->last_batch = -1;
    s->epoch++;
}

// An acknowledgement whose answer is waited for.
struct load_ack {
    struct ox_client_call call;
    struct load_sub *sub;
    struct load_message *message; // NULL: cumulative
    struct ox_pos upto;           // cumulative: entries before it, and it itself unless it is cut in a batch
    uint32_t acks_from;           // sub->acks_from when it was sent
};

// Marks what an acknowledgement covers.
static void sub_mark(struct load_sub *s, struct ox_pos upto, bool confirmed)
{
    for (uint32_t i = 0; i < s->topic->load->world->plan.producers; i++) {
        struct load_producer *p = &s->topic->producers[i];
        for (uint32_t k = 0; k < p->next; k++) {
            struct load_message *m = &p->messages[k];
            if (m->pos.ledger < 0 || ox_pos_cmp(m->pos, upto) > 0)
                continue;
            m->ack_sent[s->index] = true;
            m->confirmed[s->index] |= confirmed;
        }
    }
}

static void sub_acked(struct ox_op *op)
{
    struct load_ack *a = CONTAINER_OF(op, struct load_ack, call.op);
    bool holds = op->err == OX_OK && a->acks_from == a->sub->acks_from && !a->sub->seeking;
    if (holds && a->message)
        a->message->confirmed[a->sub->index] = true;
    else if (holds)
        sub_mark(a->sub, a->upto, true);
    ox_free(a);
}

static struct load_ack *sub_new_ack(struct load_sub *s)
{
    struct load_ack *a = ox_malloc(sizeof *a);
    a->sub = s;
    a->acks_from = s->acks_from;
    ox_op_init(&a->call.op, load_loop(s->topic->load), sub_acked, "load.ack");
    return a;
}

// Does the broker hear of messages acknowledged within a batch?
static bool sub_acks_parts(const struct load_sub *s)
{
    return (s->index + s->topic->load->world->seed) % 2;
}

// Acknowledges at random: not at all (only while there is chaos), one or all up to it, with or without an answer.
static void sub_ack(struct load_sub *s, struct load_message *m, const struct ox_message_id *id)
{
    struct workload *load = s->topic->load;
    bool cumulative = load_chance(load, 200), answered = load_chance(load, 500);
    if (!load->world->healed && load_chance(load, 250))
        return;
    struct load_ack *a = answered ? sub_new_ack(s) : NULL;
    if (cumulative) {
        struct ox_pos upto = load_id_pos(id);
        upto.entry -= id->batch_index >= 0;
        if (a)
            a->upto = upto;
        sub_mark(s, load_id_pos(id), false);
    } else {
        m->ack_sent[s->index] = true;
        if (a && (id->batch_index < 0 || sub_acks_parts(s)))
            a->message = m;
        else if (a)
            a->upto = (struct ox_pos){-1, -1}; // one of a batch: nothing is promised of the entry
    }
    ox_client_consumer_ack(s->client, a ? &a->call : NULL, id, cumulative);
}

static void sub_take(struct load_sub *s, struct load_message *m, const struct ox_received *r)
{
    s->last_pos = load_id_pos(&r->id);
    s->last_batch = r->id.batch_index;
    m->received[s->index] = true;
    m->seen[s->index] = s->epoch;
    m->pos = s->last_pos;
    ox_sim_note(s->topic->load->world->sim, "received", m->number);
    sub_ack(s, m, &r->id);
}

const struct load_message *load_before(const struct load_message *m, int64_t above)
{
    for (int64_t k = (int64_t)m->number - 1; k > above; k--) {
        const struct load_message *before = &m->producer->messages[k];
        if (before->acked)
            return before->forgotten ? NULL : before;
    }
    return NULL;
}

static void sub_message(struct ox_client_consumer *c, const struct ox_received *r)
{
    struct load_sub *s = (struct load_sub *)ox_client_consumer_owner(c);
    struct world *w = s->topic->load->world;
    struct load_message *m = load_message_of(s->topic, r->payload, s->name);
    if (!m || s->ending)
        return;
    s->client = c;
    if (m->forgotten) {
        sub_take(s, m, r);
        return;
    }
    if (load_has_moved(m, &r->id))
        world_violation(w, "%s %s: producer %u message %u comes at " OX_POS_FMT ", it is at " OX_POS_FMT, s->topic->name,
                        s->name, m->producer->index, m->number, OX_POS_ARG(load_id_pos(&r->id)), OX_POS_ARG(m->pos));
    const struct load_message *before = load_before(m, -1);
    bool passed = before && !before->ack_sent[s->index] && before->seen[s->index] != s->epoch;
    if (passed && !before->spared[s->index] && !s->seeking && !s->topic->deleting)
        world_violation(w, "%s %s: producer %u message %u at " OX_POS_FMT " was passed over: %u comes", s->topic->name,
                        s->name, m->producer->index, before->number, OX_POS_ARG(before->pos), m->number);
    if (m->confirmed[s->index])
        world_violation(w, "%s %s: producer %u message %u at " OX_POS_FMT " comes again after its acknowledgement was answered",
                        s->topic->name, s->name, m->producer->index, m->number, OX_POS_ARG(load_id_pos(&r->id)));
    if (!s->seeking && load_id_cmp(load_id_pos(&r->id), r->id.batch_index, s->last_pos, s->last_batch) <= 0)
        world_violation(w, "%s %s: " OX_POS_FMT "/%d comes after " OX_POS_FMT "/%d", s->topic->name, s->name,
                        OX_POS_ARG(load_id_pos(&r->id)), r->id.batch_index, OX_POS_ARG(s->last_pos), s->last_batch);
    sub_take(s, m, r);
}

static void sub_attached(struct ox_client_consumer *c)
{
    struct load_sub *s = (struct load_sub *)ox_client_consumer_owner(c);
    sub_restart_order(s);
    churn_sub_is_there(s);
}

static void sub_failed(struct ox_client_consumer *c, enum ox_err err, const char *text)
{
    struct load_sub *s = (struct load_sub *)ox_client_consumer_owner(c);
    s->failed = true;
    world_violation(s->topic->load->world, "%s %s: the consumer failed: %s %s", s->topic->name, s->name,
                    ox_err_name(err), text);
}

static void sub_damaged(struct ox_client_consumer *c, const struct ox_message_id *id, enum ox_err err)
{
    struct load_sub *s = (struct load_sub *)ox_client_consumer_owner(c);
    world_violation(s->topic->load->world, "%s %s: entry " OX_POS_FMT " is damaged: %s", s->topic->name, s->name,
                    OX_POS_ARG(load_id_pos(id)), ox_err_name(err));
}

// A seek takes back what was acknowledged: everything may come again, whether it takes effect or not.
void load_sub_forget(struct load_sub *s)
{
    for (uint32_t i = 0; i < s->topic->load->world->plan.producers; i++)
        for (uint32_t k = 0; k < s->topic->producers[i].next; k++)
            s->topic->producers[i].messages[k].confirmed[s->index] = false;
    s->acks_from++; // answers to acknowledgements from before confirm nothing any more
    sub_restart_order(s);
}

static void sub_sought(struct ox_op *op)
{
    struct load_sub *s = CONTAINER_OF(op, struct load_sub, seek.op);
    s->seeking = false;
    load_sub_forget(s);
    if (!s->topic->load->world->healed)
        ox_timer_start(&s->seek_timer, ox_random_below(&s->topic->load->random, 1500 * OX_MS));
    if (op->err != OX_OK || s->topic->load->world->plan.retention)
        return;
    // Done: all from there on must come again.
    for (uint32_t i = 0; i < s->topic->load->world->plan.producers; i++)
        for (uint32_t k = 0; k < s->topic->producers[i].next; k++) {
            struct load_message *m = &s->topic->producers[i].messages[k];
            if (m->pos.ledger >= 0 && ox_pos_cmp(m->pos, s->sought) >= 0)
                m->received[s->index] = m->ack_sent[s->index] = false;
        }
}

static void sub_seek(struct ox_timer *t)
{
    struct load_sub *s = CONTAINER_OF(t, struct load_sub, seek_timer);
    struct load_producer *p = &s->topic->producers[0];
    struct ox_message_id id = OX_MESSAGE_ID_NONE;
    if (s->topic->load->world->healed || !s->client || s->failed || s->ending)
        return;
    if (p->next > 0 && load_chance(s->topic->load, 700)) {
        struct ox_pos pos = p->messages[ox_random_below(&s->topic->load->random, p->next)].pos;
        if (ox_pos_cmp(pos, s->last_pos) <= 0) { // not over what it has not seen
            id.ledger = pos.ledger;
            id.entry = pos.entry;
        }
    }
    s->seeking = true;
    s->sought = load_id_pos(&id);
    sub_mark(s, (struct ox_pos){id.ledger, id.entry - 1}, false); // what is before it does not come any more
    load_sub_forget(s);
    ox_op_init(&s->seek.op, load_loop(s->topic->load), sub_sought, "load.seek");
    ox_client_consumer_seek(s->client, &s->seek, &id);
}

static const struct ox_client_consumer_events sub_events = {
    .message = sub_message, .attached = sub_attached, .failed = sub_failed, .damaged = sub_damaged};

static void sub_opened(struct ox_op *op)
{
    struct load_sub *s = CONTAINER_OF(op, struct load_sub, open.call.op);
    s->opening = false;
    if (op->err != OX_OK) {
        ox_timer_start(&s->again, 100 * OX_MS);
        return;
    }
    s->client = s->open.consumer;
    churn_sub_is_there(s);
    churn_start_sub(s);
    if (s->topic->load->world->plan.seeks)
        ox_timer_start(&s->seek_timer, ox_random_below(&s->topic->load->random, s->topic->load->world->plan.chaos_ns));
    load_subscribed(s->topic);
}

void load_sub_open(struct load_sub *s)
{
    struct ox_client_consumer_config config = {.topic = s->topic->name,
                                               .subscription = s->name,
                                               .type = OXPB__COMMAND_SUBSCRIBE__SUB_TYPE__Exclusive,
                                               .earliest = true,
                                               .batch_index_ack = sub_acks_parts(s),
                                               .receiver_queue = 1 + (uint32_t)ox_random_below(&s->topic->load->random, 50),
                                               .events = &sub_events,
                                               .owner = s};
    s->opening = true;
    sub_restart_order(s);
    ox_op_init(&s->open.call.op, load_loop(s->topic->load), sub_opened, "load.consumer.open");
    ox_client_consumer_open(s->topic->load->clients[s->from], &s->open, &config);
}

// Producers start when every subscription is there, so that each must get every message.
void load_subscribed(struct load_topic *t)
{
    const struct world_plan *plan = &t->load->world->plan;
    for (uint32_t i = 0; i < plan->subscriptions; i++)
        if (!t->subs[i].client && !t->producers[0].started)
            return;
    if (!groups_are_there(t))
        return;
    if (!t->producers[0].started)
        churn_start(t);
    for (uint32_t i = 0; i < plan->producers; i++)
        if (!t->producers[i].started)
            load_producer_open(&t->producers[i]);
}

// ---- all of it ------------------------------------------------------------------------------------------------------

static void load_init_topic(struct workload *load, uint32_t index)
{
    struct load_topic *t = &load->topics[index];
    const struct world_plan *plan = &load->world->plan;
    t->load = load;
    t->index = index;
    snprintf(t->name, sizeof t->name, "persistent://public/default/t%u", index);
    for (uint32_t i = 0; i < plan->producers; i++) {
        struct load_producer *p = &t->producers[i];
        *p = (struct load_producer){.topic = t, .index = i, .count = plan->messages, .last_pos = OX_POS_EARLIEST};
        snprintf(p->name, sizeof p->name, "p%u", i);
        p->messages = ox_calloc(p->count, sizeof *p->messages);
        ox_timer_init(&p->timer, load_loop(load), producer_tick);
    }
    for (uint32_t i = 0; i < plan->subscriptions; i++) {
        struct load_sub *s = &t->subs[i];
        *s = (struct load_sub){.topic = t, .index = i, .from = (uint32_t)ox_random_below(&load->random, WORKLOAD_CLIENTS)};
        snprintf(s->name, sizeof s->name, "s/%u", i);
        ox_timer_init(&s->seek_timer, load_loop(load), sub_seek);
    }
    churn_init_topic(t);
    for (uint32_t i = 0; i < plan->subscriptions; i++)
        load_sub_open(&t->subs[i]);
    groups_init(t);
}

// A client gives up its connections, as after a failure that only it has seen.
static void load_break(struct ox_timer *timer)
{
    struct workload *load = CONTAINER_OF(timer, struct workload, breaks);
    if (load->world->healed)
        return;
    ox_client_break(load->clients[ox_random_below(&load->random, WORKLOAD_CLIENTS)]);
    ox_timer_start(timer, ox_random_below(&load->random, 1500 * OX_MS));
}

struct workload *workload_new(struct world *w)
{
    struct workload *load = ox_malloc(sizeof *load);
    struct ox_client_config config = {
        .net = ox_sim_net(w->client_node), .service_url = WORLD_URL, .timeout_ns = 5 * OX_SEC, .patient = true};
    load->world = w;
    ox_random_seed(&load->random, w->seed ^ UINT64_C(0x6f78626f77));
    for (uint32_t i = 0; i < WORKLOAD_CLIENTS; i++)
        OX_ASSERT(ox_client_new(&config, &load->clients[i]) == OX_OK);
    ox_timer_init(&load->breaks, load_loop(load), load_break);
    if (w->plan.breaks)
        ox_timer_start(&load->breaks, ox_random_below(&load->random, OX_SEC));
    for (uint32_t i = 0; i < w->plan.topics; i++)
        load_init_topic(load, i);
    return load;
}

// What keeps a message from being settled; NULL: nothing.
static const char *message_misses(const struct workload *load, const struct load_message *m)
{
    if (m->forgotten)
        return NULL;
    if (!m->acked)
        return m->failed ? NULL : "has no receipt";
    for (uint32_t i = 0; i < load->world->plan.subscriptions; i++)
        if (!m->received[i] && !m->spared[i])
            return "was not received by a subscription";
    return groups_miss(m);
}

// The first unsettled message of a producer, or NULL.
static const struct load_message *producer_misses(const struct load_producer *p, const char **ret_what)
{
    for (uint32_t k = 0; k < p->next; k++)
        if ((*ret_what = message_misses(p->topic->load, &p->messages[k])))
            return &p->messages[k];
    return NULL;
}

bool workload_is_drained(const struct workload *load)
{
    const struct world_plan *plan = &load->world->plan;
    const char *what;
    for (uint32_t t = 0; t < plan->topics; t++) {
        if (churn_is_busy(&load->topics[t]) || groups_are_busy(&load->topics[t]))
            return false;
        for (uint32_t i = 0; i < plan->producers; i++) {
            const struct load_producer *p = &load->topics[t].producers[i];
            if (!p->client || p->next < p->count || producer_misses(p, &what))
                return false;
        }
    }
    return true;
}

void workload_describe(const struct workload *load, char *out, size_t len)
{
    const struct world_plan *plan = &load->world->plan;
    const char *what = NULL;
    snprintf(out, len, "nothing is missing");
    for (uint32_t t = 0; t < plan->topics; t++)
        if (groups_describe(&load->topics[t], out, len))
            break;
    for (uint32_t t = 0; t < plan->topics; t++)
        for (uint32_t i = 0; i < plan->producers; i++) {
            const struct load_producer *p = &load->topics[t].producers[i];
            const struct load_message *m = producer_misses(p, &what);
            if (m)
                snprintf(out, len, "%s producer %u: message %u (" OX_POS_FMT ") %s", p->topic->name, i, m->number,
                         OX_POS_ARG(load_id_pos(&m->send.id)), what);
            else if (!p->client || p->next < p->count)
                snprintf(out, len, "%s producer %u: %s, %u of %u sent", p->topic->name, i,
                         p->client ? "attached" : "not attached", p->next, p->count);
        }
}

void workload_reattach(struct workload *load)
{
    for (uint32_t t = 0; t < load->world->plan.topics; t++) {
        for (uint32_t i = 0; i < load->world->plan.subscriptions; i++)
            churn_renew_sub(&load->topics[t].subs[i]);
        groups_reattach(&load->topics[t]);
    }
}

static bool producer_is_acked(const struct load_producer *p, uint32_t sub)
{
    for (uint32_t k = 0; k < p->next; k++) {
        const struct load_message *m = &p->messages[k];
        if (m->acked && !m->forgotten && !m->spared[sub] && !m->ack_sent[sub])
            return false;
    }
    return true;
}

bool workload_is_acked(const struct workload *load)
{
    const struct world_plan *plan = &load->world->plan;
    for (uint32_t t = 0; t < plan->topics; t++)
        for (uint32_t s = 0; s < plan->subscriptions; s++)
            for (uint32_t i = 0; i < plan->producers; i++)
                if (churn_is_busy(&load->topics[t]) || !producer_is_acked(&load->topics[t].producers[i], s))
                    return false;
    for (uint32_t t = 0; t < plan->topics; t++)
        if (groups_are_busy(&load->topics[t]) || !groups_are_acked(&load->topics[t]))
            return false;
    return true;
}

void workload_look(struct workload *load)
{
    for (uint32_t t = 0; t < load->world->plan.topics; t++)
        groups_look(&load->topics[t]);
}

// ---- reading from the start -----------------------------------------------------------------------------------------

static void reader_message(struct ox_client_consumer *c, const struct ox_received *r)
{
    struct load_topic *t = (struct load_topic *)ox_client_consumer_owner(c);
    struct world *w = t->load->world;
    struct load_message *m = load_message_of(t, r->payload, "reader");
    if (!m)
        return;
    int64_t *next = &t->reader_next[m->producer->index];
    if (load_id_cmp(load_id_pos(&r->id), r->id.batch_index, t->reader_pos, t->reader_batch) <= 0)
        world_violation(w, "%s reader: " OX_POS_FMT " comes after " OX_POS_FMT, t->name,
                        OX_POS_ARG(load_id_pos(&r->id)), OX_POS_ARG(t->reader_pos));
    if (m->number < *next && !w->plan.early_trim)
        world_violation(w,
                        "%s reader: producer %u message %u at " OX_POS_FMT
                        " is doubled or out of order (acknowledged at " OX_POS_FMT ")",
                        t->name, m->producer->index, m->number, OX_POS_ARG(load_id_pos(&r->id)),
                        OX_POS_ARG(load_id_pos(&m->send.id)));
    if (m->acked && !m->forgotten && !w->plan.early_trim && m->send.id.ledger >= 0 &&
        !ox_pos_equal(load_id_pos(&m->send.id), load_id_pos(&r->id)))
        world_violation(w, "%s reader: producer %u message %u is at " OX_POS_FMT ", its receipt said " OX_POS_FMT,
                        t->name, m->producer->index, m->number, OX_POS_ARG(load_id_pos(&r->id)),
                        OX_POS_ARG(load_id_pos(&m->send.id)));
    if (load_has_moved(m, &r->id))
        world_violation(w, "%s reader: producer %u message %u is at " OX_POS_FMT ", a subscription got it at " OX_POS_FMT,
                        t->name, m->producer->index, m->number, OX_POS_ARG(load_id_pos(&r->id)), OX_POS_ARG(m->pos));
    *next = (int64_t)m->number + 1;
    m->reread++;
    t->reader_pos = load_id_pos(&r->id);
    t->reader_batch = r->id.batch_index;
}

static void reader_failed(struct ox_client_consumer *c, enum ox_err err, const char *text)
{
    struct load_topic *t = (struct load_topic *)ox_client_consumer_owner(c);
    world_violation(t->load->world, "%s reader: failed: %s %s", t->name, ox_err_name(err), text);
}

static void reader_damaged(struct ox_client_consumer *c, const struct ox_message_id *id, enum ox_err err)
{
    struct load_topic *t = (struct load_topic *)ox_client_consumer_owner(c);
    world_violation(t->load->world, "%s reader: entry " OX_POS_FMT " is damaged: %s", t->name,
                    OX_POS_ARG(load_id_pos(id)), ox_err_name(err));
}

static const struct ox_client_consumer_events reader_events = {
    .message = reader_message, .failed = reader_failed, .damaged = reader_damaged};

static void reader_ask(struct load_topic *t);

static void reader_last_known(struct ox_op *op)
{
    struct load_topic *t = CONTAINER_OF(op, struct load_topic, last_id.call.op);
    if (ox_err_class(op->err) == OX_CLASS_RETRY && ++t->reader_asks < 20) {
        reader_ask(t); // a fault that was set before the world was healed
        return;
    }
    if (op->err != OX_OK)
        world_violation(t->load->world, "%s reader: no last id: %s %s", t->name, ox_err_name(op->err), t->last_id.call.text);
    t->reader_asked = true;
    t->reader_since = ox_sim_now(t->load->world->sim);
}

static void reader_ask(struct load_topic *t)
{
    ox_op_init(&t->last_id.call.op, load_loop(t->load), reader_last_known, "load.reader.last");
    ox_client_consumer_last_id(t->reader, &t->last_id);
}

static void reader_opened(struct ox_op *op)
{
    struct load_topic *t = CONTAINER_OF(op, struct load_topic, reader_open.call.op);
    if (op->err != OX_OK) {
        world_violation(t->load->world, "%s reader: not opened: %s %s", t->name, ox_err_name(op->err),
                        t->reader_open.call.text);
        return;
    }
    t->reader = t->reader_open.consumer;
    reader_ask(t);
}

void workload_reread(struct workload *load)
{
    for (uint32_t i = 0; i < load->world->plan.topics; i++) {
        struct load_topic *t = &load->topics[i];
        struct ox_client_consumer_config config = {.topic = t->name,
                                                   .subscription = "reread",
                                                   .type = OXPB__COMMAND_SUBSCRIBE__SUB_TYPE__Exclusive,
                                                   .non_durable = true,
                                                   .earliest = true,
                                                   .events = &reader_events,
                                                   .owner = t};
        t->reader_pos = OX_POS_EARLIEST;
        t->reader_batch = -1;
        ox_op_init(&t->reader_open.call.op, load_loop(load), reader_opened, "load.reader.open");
        ox_client_consumer_open(load->clients[0], &t->reader_open, &config);
    }
}

// Has a topic's reader come to the end? What is consumed may be dropped under it.
static bool topic_is_reread(const struct load_topic *t)
{
    const struct world *w = t->load->world;
    bool dropped = w->plan.early_trim && ox_sim_now(w->sim) - t->reader_since > 20 * OX_SEC;
    return t->reader_asked && (dropped || ox_pos_cmp(t->reader_pos, load_id_pos(&t->last_id.id)) >= 0);
}

bool workload_is_reread(const struct workload *load)
{
    for (uint32_t i = 0; i < load->world->plan.topics; i++)
        if (!topic_is_reread(&load->topics[i]))
            return load->world->violation[0] != 0;
    return true;
}

// May an acknowledged message be gone? Only where nothing is retained and every subscription has acknowledged it.
static bool message_may_be_gone(const struct workload *load, const struct load_message *m)
{
    if (!load->world->plan.retention)
        return false;
    for (uint32_t i = 0; i < load->world->plan.subscriptions; i++)
        if (!m->ack_sent[i] && !m->spared[i])
            return false;
    return groups_have_acked(m);
}

void workload_check(struct workload *load)
{
    const struct world_plan *plan = &load->world->plan;
    for (uint32_t t = 0; t < plan->topics; t++)
        for (uint32_t i = 0; i < plan->producers; i++) {
            const struct load_producer *p = &load->topics[t].producers[i];
            for (uint32_t k = 0; k < p->next; k++) {
                const struct load_message *m = &p->messages[k];
                if (m->acked && !m->forgotten && m->reread == 0 && !message_may_be_gone(load, m))
                    world_violation(load->world, "%s producer %u message %u: acknowledged at " OX_POS_FMT " and lost",
                                    p->topic->name, i, k, OX_POS_ARG(load_id_pos(&m->send.id)));
            }
        }
}

// ---- the end --------------------------------------------------------------------------------------------------------

static void load_closed(struct ox_op *op)
{
    CONTAINER_OF(op, struct workload, close)->closed = true;
}

static void load_client_closed(struct ox_op *op)
{
    struct workload *load = CONTAINER_OF(op, struct workload, close);
    ox_op_init(&load->close, load_loop(load), load_closed, "load.close");
    ox_client_close(load->clients[1], &load->close);
}

void load_part_closed(struct workload *load)
{
    if (--load->closing > 0)
        return;
    ox_op_init(&load->close, load_loop(load), load_client_closed, "load.close");
    ox_client_close(load->clients[0], &load->close);
}

static void producer_closed(struct ox_op *op)
{
    load_part_closed(CONTAINER_OF(op, struct load_producer, close)->topic->load);
}

static void sub_closed(struct ox_op *op)
{
    load_part_closed(CONTAINER_OF(op, struct load_sub, close)->topic->load);
}

static void reader_closed(struct ox_op *op)
{
    load_part_closed(CONTAINER_OF(op, struct load_topic, reader_close)->load);
}

static void load_close_topic(struct load_topic *t)
{
    struct workload *load = t->load;
    churn_stop(t);
    for (uint32_t i = 0; i < load->world->plan.producers; i++) {
        ox_op_init(&t->producers[i].close, load_loop(load), producer_closed, "load.producer.close");
        ox_timer_stop(&t->producers[i].timer);
        ox_client_producer_close(t->producers[i].client, &t->producers[i].close);
    }
    for (uint32_t i = 0; i < load->world->plan.subscriptions; i++) {
        ox_timer_stop(&t->subs[i].seek_timer);
        ox_op_init(&t->subs[i].close, load_loop(load), sub_closed, "load.consumer.close");
        ox_client_consumer_close(t->subs[i].client, &t->subs[i].close);
    }
    load->closing += groups_close(t);
    if (!t->reader)
        return;
    load->closing++;
    ox_op_init(&t->reader_close, load_loop(load), reader_closed, "load.reader.close");
    ox_client_consumer_close(t->reader, &t->reader_close);
}

void workload_close(struct workload *load)
{
    const struct world_plan *plan = &load->world->plan;
    ox_timer_stop(&load->breaks);
    load->closing = plan->topics * (plan->producers + plan->subscriptions);
    for (uint32_t i = 0; i < plan->topics; i++)
        load_close_topic(&load->topics[i]);
}

void workload_free(struct workload *load)
{
    OX_ASSERT(load->closed);
    for (uint32_t t = 0; t < load->world->plan.topics; t++) {
        for (uint32_t i = 0; i < load->world->plan.producers; i++)
            ox_free(load->topics[t].producers[i].messages);
        groups_free(&load->topics[t]);
    }
    ox_free(load);
}
