// group.c - consumers that share a subscription: what they do at random, and the rules of Shared, Key_Shared and Failover.
#include "group.h"

#include <stdio.h>
#include <string.h>

#include "broker/subscription.h"
#include "group_int.h"

struct world *group_world(const struct load_group *g)
{
    return g->topic->load->world;
}

struct group_message *group_message_of(struct load_group *g, const struct load_message *m)
{
    return &g->messages[m->producer->index][m->number];
}

static void member_open(struct load_member *x);

// The member sees everything anew.
static void member_restart(struct load_member *x)
{
    x->epoch++;
    x->last_pos = OX_POS_EARLIEST;
    x->last_batch = -1;
}

// ---- acknowledgements

struct group_ack {
    struct ox_client_call call;
    struct load_group *group;
    struct load_message *message; // NULL: cumulative
    struct ox_pos at;
};

static void group_confirm(const struct load_group *g, struct group_message *gm, struct ox_pos pos)
{
    gm->confirmed = true;
    gm->confirmed_at = pos;
    gm->confirmed_ns = ox_now_ns(load_loop(g->topic->load));
}

static void group_mark(struct load_group *g, struct ox_pos upto, bool confirmed)
{
    for (uint32_t i = 0; i < group_world(g)->plan.producers; i++)
        for (uint32_t k = 0; k < g->topic->producers[i].next; k++) {
            const struct load_message *m = &g->topic->producers[i].messages[k];
            struct group_message *gm = &g->messages[i][k];
            if (m->pos.ledger < 0 || ox_pos_cmp(m->pos, upto) > 0)
                continue;
            gm->ack_sent = true;
            if (confirmed)
                group_confirm(g, gm, m->pos);
        }
}

static void member_acked(struct ox_op *op)
{
    struct group_ack *a = CONTAINER_OF(op, struct group_ack, call.op);
    if (op->err == OX_OK && a->message) {
        group_confirm(a->group, group_message_of(a->group, a->message), a->at);
    } else if (op->err == OX_OK) {
        group_mark(a->group, a->at, true);
    }
    ox_free(a);
}

static struct group_ack *group_ack_new(struct load_group *g, struct load_message *m, struct ox_pos at)
{
    struct group_ack *a = ox_malloc(sizeof *a);
    a->group = g;
    a->message = m;
    a->at = at;
    ox_op_init(&a->call.op, load_loop(g->topic->load), member_acked, "load.group.ack");
    return a;
}

// What an answer confirms: the message, or (cumulative) all up to it; of a batch only where the broker knows of its parts.
static struct group_ack *member_ack_wish(struct load_group *g, struct load_message *m, const struct ox_message_id *id,
                                         bool cumulative)
{
    struct ox_pos at = load_id_pos(id);
    if (cumulative) {
        at.entry -= id->batch_index >= 0;
        return group_ack_new(g, NULL, at);
    }
    return id->batch_index < 0 || g->batch_index_ack ? group_ack_new(g, m, at) : NULL;
}

static void member_ack(struct load_member *x, struct load_message *m, const struct ox_message_id *id)
{
    struct load_group *g = x->group;
    struct workload *load = g->topic->load;
    struct group_message *gm = group_message_of(g, m);
    bool cumulative = g->type == OXPB__COMMAND_SUBSCRIBE__SUB_TYPE__Failover && load_chance(load, 200);
    if (!g->healed && (x->frozen || x->lies || load_chance(load, 250)))
        return;
    struct group_ack *a = load_chance(load, 500) ? member_ack_wish(g, m, id, cumulative) : NULL;
    if (cumulative)
        group_mark(g, load_id_pos(id), false);
    gm->ack_sent = true;
    gm->holder = NULL;
    ox_client_consumer_ack(x->client, a ? &a->call : NULL, id, cumulative);
}

// ---- events

static void member_message(struct ox_client_consumer *c, const struct ox_received *r)
{
    struct load_member *x = (struct load_member *)ox_client_consumer_owner(c);
    struct load_group *g = x->group;
    struct load_message *m = load_message_of(g->topic, r->payload, x->name);
    if (!m || x->ending)
        return;
    x->client = c;
    member_check(x, m, r);
    struct group_message *gm = group_message_of(g, m);
    gm->received = true;
    gm->holder = x->asking || x->lies ? NULL : x;
    gm->seen[x->index] = x->epoch;
    m->pos = load_id_pos(&r->id);
    ox_sim_note(group_world(g)->sim, "group.received", m->number);
    member_ack(x, m, &r->id);
}

static void member_attached(struct ox_client_consumer *c)
{
    member_restart((struct load_member *)ox_client_consumer_owner(c));
}

static void member_active(struct ox_client_consumer *c, bool is_active)
{
    if (is_active)
        member_restart((struct load_member *)ox_client_consumer_owner(c));
}

static void member_failed(struct ox_client_consumer *c, enum ox_err err, const char *text)
{
    struct load_member *x = (struct load_member *)ox_client_consumer_owner(c);
    (void)err; // its own dead twin holds its ranges: it tries again
    (void)text;
    x->client = c;
    x->failed = true;
}

static void member_damaged(struct ox_client_consumer *c, const struct ox_message_id *id, enum ox_err err)
{
    struct load_member *x = (struct load_member *)ox_client_consumer_owner(c);
    world_violation(group_world(x->group), "%s %s: entry " OX_POS_FMT " is damaged: %s", x->group->topic->name, x->name,
                    OX_POS_ARG(load_id_pos(id)), ox_err_name(err));
}

static const struct ox_client_consumer_events member_events = {.message = member_message,
                                                               .attached = member_attached,
                                                               .failed = member_failed,
                                                               .damaged = member_damaged,
                                                               .active = member_active};

// ---- coming and going

static void member_rest(struct load_member *x)
{
    ox_timer_start(&x->turn, 30 * OX_MS + ox_random_below(&x->group->topic->load->random, 700 * OX_MS));
}

static void member_opened(struct ox_op *op)
{
    struct load_member *x = CONTAINER_OF(op, struct load_member, open.call.op);
    x->opening = false;
    if (op->err != OX_OK) {
        ox_timer_start(&x->again, 100 * OX_MS);
        return;
    }
    x->client = x->open.consumer;
    x->group->is_there = true;
    member_rest(x);
    load_subscribed(x->group->topic);
}

static void member_open(struct load_member *x)
{
    struct load_group *g = x->group;
    struct workload *load = g->topic->load;
    struct ox_client_consumer_config config = {.topic = g->topic->name,
                                               .subscription = g->name,
                                               .name = x->name,
                                               .type = g->type,
                                               .earliest = true,
                                               .batch_index_ack = g->batch_index_ack,
                                               .receiver_queue = 1 + (uint32_t)ox_random_below(&load->random, 20),
                                               .priority = (int32_t)ox_random_below(&load->random, 2),
                                               .ranges = g->sticky ? x->ranges : NULL,
                                               .range_count = g->sticky,
                                               .out_of_order = g->out_of_order,
                                               .events = &member_events,
                                               .owner = x};
    x->opening = true;
    x->failed = x->frozen = false;
    member_restart(x);
    ox_op_init(&x->open.call.op, load_loop(load), member_opened, "load.member.open");
    ox_client_consumer_open(load->clients[x->from], &x->open, &config);
}

static void member_again(struct ox_timer *timer)
{
    member_open(CONTAINER_OF(timer, struct load_member, again));
}

static void member_is_gone(struct ox_op *op)
{
    struct load_member *x = CONTAINER_OF(op, struct load_member, gone);
    struct workload *load = x->group->topic->load;
    x->client = NULL;
    x->ending = false;
    x->from = (uint32_t)ox_random_below(&load->random, WORKLOAD_CLIENTS);
    if (x->group->healed || load_chance(load, 500))
        member_open(x);
    else
        ox_timer_start(&x->again, ox_random_below(&load->random, OX_SEC));
}

static void member_leave(struct load_member *x)
{
    x->ending = true;
    ox_op_init(&x->gone, load_loop(x->group->topic->load), member_is_gone, "load.member.gone");
    ox_client_consumer_close(x->client, &x->gone);
}

// ---- asking for more

static void member_ask_again(struct load_member *x);

// The broker has heard the request: what comes from here on is the member's.
static void ask_heard(struct ox_op *op)
{
    struct load_member *x = CONTAINER_OF(op, struct load_member, ask.call.op);
    x->asking = false;
    x->last_pos = OX_POS_EARLIEST;
    if (x->ask_more && op->err == OX_OK)
        member_ask_again(x);
    x->ask_more = false;
}

static void member_ask_again(struct load_member *x)
{
    x->asking = true;
    ox_op_init(&x->ask.call.op, load_loop(x->group->topic->load), ask_heard, "load.ask");
    ox_client_consumer_last_id(x->client, &x->ask);
}

void member_asked(struct load_member *x)
{
    if (x->asking)
        x->ask_more = true;
    else
        member_ask_again(x);
}

static void member_ask_all(struct load_member *x)
{
    struct load_group *g = x->group;
    g->asked++;
    for (uint32_t i = 0; i < group_world(g)->plan.producers; i++)
        for (uint32_t k = 0; k < g->topic->producers[i].next; k++)
            if (g->messages[i][k].holder == x)
                g->messages[i][k].holder = NULL;
    if (g->type == OXPB__COMMAND_SUBSCRIBE__SUB_TYPE__Failover)
        member_restart(x);
    ox_client_consumer_redeliver(x->client, NULL, 0);
    member_asked(x);
}

// The messages of an entry.
static void group_ask(struct load_group *g, struct ox_pos pos)
{
    for (uint32_t i = 0; i < group_world(g)->plan.producers; i++)
        for (uint32_t k = 0; k < g->topic->producers[i].next; k++)
            if (ox_pos_equal(g->topic->producers[i].messages[k].pos, pos)) {
                g->messages[i][k].asked++;
                g->messages[i][k].holder = NULL;
            }
}

// Some of what the member holds.
static void member_ask_some(struct load_member *x)
{
    struct load_group *g = x->group;
    struct ox_message_id ids[8];
    size_t n = 0;
    for (uint32_t i = 0; i < group_world(g)->plan.producers; i++)
        for (uint32_t k = 0; k < g->topic->producers[i].next && n < OX_COUNT(ids); k++)
            if (g->messages[i][k].holder == x && load_chance(g->topic->load, 400)) {
                struct ox_pos pos = g->topic->producers[i].messages[k].pos;
                ids[n++] =
                    (struct ox_message_id){.ledger = pos.ledger, .entry = pos.entry, .partition = -1, .batch_index = -1};
                group_ask(g, pos);
            }
    if (!n)
        return;
    ox_client_consumer_redeliver(x->client, ids, n);
    member_asked(x);
}

// ---- a turn: something at random

static void member_freeze(struct load_member *x)
{
    x->frozen = !x->frozen;
    if (x->frozen) {
        ox_client_consumer_pause(x->client);
        return;
    }
    ox_client_consumer_resume(x->client);
    if (x->group->asks_all)
        member_ask_all(x);
    else
        member_leave(x);
}

static void member_act(struct load_member *x)
{
    struct workload *load = x->group->topic->load;
    uint64_t what = ox_random_below(&load->random, 100);
    if (x->lies && what < 50)
        group_lie(x);
    else if (what < 20 && x->group->type != OXPB__COMMAND_SUBSCRIBE__SUB_TYPE__Failover)
        member_ask_some(x);
    else if (what < 30 && x->group->asks_all)
        member_ask_all(x);
    else if (what < 45)
        member_freeze(x);
    else if (what < 60) {
        if (load_chance(load, 400))
            ox_client_break(load->clients[x->from]);
        member_leave(x);
    }
}

static void group_hear(struct load_group *g)
{
    if (g->healed || !group_world(g)->healed)
        return;
    g->healed = true;
    for (uint32_t i = 0; i < g->members_count; i++)
        if (g->members[i].client && !g->members[i].ending)
            member_leave(&g->members[i]); // what it holds comes again, and is acknowledged then
}

static void ping_answered(struct ox_op *op)
{
    struct load_member *x = CONTAINER_OF(op, struct load_member, ping.call.op);
    x->pinging = false;
    if (op->err == OX_OK)
        x->sure_ns = x->pinged_ns;
}

static void member_ping(struct load_member *x)
{
    if (x->pinging)
        return;
    x->pinging = true;
    x->pinged_ns = ox_now_ns(load_loop(x->group->topic->load));
    ox_op_init(&x->ping.call.op, load_loop(x->group->topic->load), ping_answered, "load.ping");
    ox_client_consumer_last_id(x->client, &x->ping);
}

static void member_turn(struct ox_timer *timer)
{
    struct load_member *x = CONTAINER_OF(timer, struct load_member, turn);
    group_hear(x->group);
    if (!x->client || x->ending)
        return; // begins again when it is attached
    if (x->failed)
        member_leave(x);
    else if (!x->group->healed)
        member_act(x);
    if (!x->client || x->ending)
        return;
    member_ping(x);
    member_rest(x);
}

// ---- a topic's groups

static void group_init(struct load_topic *t, uint32_t index)
{
    static const Oxpb__CommandSubscribe__SubType types[] = {
        OXPB__COMMAND_SUBSCRIBE__SUB_TYPE__Key_Shared, OXPB__COMMAND_SUBSCRIBE__SUB_TYPE__Shared,
        OXPB__COMMAND_SUBSCRIBE__SUB_TYPE__Key_Shared, OXPB__COMMAND_SUBSCRIBE__SUB_TYPE__Failover};
    struct workload *load = t->load;
    struct load_group *g = &t->groups[index];
    g->topic = t;
    g->index = index;
    g->type = types[ox_random_below(&load->random, OX_COUNT(types))];
    bool by_key = g->type == OXPB__COMMAND_SUBSCRIBE__SUB_TYPE__Key_Shared;
    g->sticky = by_key && load_chance(load, 250);
    g->out_of_order = by_key && load_chance(load, 150);
    g->batch_index_ack = load_chance(load, 500);
    g->asks_all = load_chance(load, 500);
    g->members_count = 1 + (uint32_t)ox_random_below(&load->random, GROUP_MEMBERS_MAX - 1);
    snprintf(g->name, sizeof g->name, "g/%u", index);
    for (uint32_t i = 0; i < load->world->plan.producers; i++)
        g->messages[i] = ox_calloc(load->world->plan.messages, sizeof *g->messages[i]);
    int32_t share = 65536 / (int32_t)g->members_count;
    for (uint32_t i = 0; i < g->members_count; i++) {
        struct load_member *x = &g->members[i];
        x->group = g;
        x->index = i;
        x->lies = load->world->plan.liars && i > 0 && load_chance(load, 500);
        x->from = (uint32_t)ox_random_below(&load->random, WORKLOAD_CLIENTS);
        x->ranges[0] = (int32_t)i * share;
        x->ranges[1] = i + 1 == g->members_count ? 65536 : (int32_t)(i + 1) * share - 1;
        snprintf(x->name, sizeof x->name, "g%u-%u", index, i);
        ox_timer_init(&x->turn, load_loop(load), member_turn);
        ox_timer_init(&x->again, load_loop(load), member_again);
        member_open(x);
    }
}

void groups_init(struct load_topic *t)
{
    uint32_t n = t->load->world->plan.groups;
    t->groups = n ? ox_calloc(n, sizeof *t->groups) : NULL;
    for (uint32_t i = 0; i < n; i++)
        group_init(t, i);
}

void groups_free(struct load_topic *t)
{
    for (uint32_t i = 0; i < t->load->world->plan.groups; i++)
        for (uint32_t k = 0; k < t->load->world->plan.producers; k++)
            ox_free(t->groups[i].messages[k]);
    ox_free(t->groups);
}

bool groups_are_there(const struct load_topic *t)
{
    for (uint32_t i = 0; i < t->load->world->plan.groups; i++)
        if (!t->groups[i].is_there)
            return false;
    return true;
}

const char *groups_miss(const struct load_message *m)
{
    const struct load_topic *t = m->producer->topic;
    for (uint32_t i = 0; i < t->load->world->plan.groups; i++)
        if (!t->groups[i].messages[m->producer->index][m->number].received)
            return "was not received by a group";
    return NULL;
}

bool groups_have_acked(const struct load_message *m)
{
    const struct load_topic *t = m->producer->topic;
    for (uint32_t i = 0; i < t->load->world->plan.groups; i++)
        if (!t->groups[i].messages[m->producer->index][m->number].ack_sent)
            return false;
    return true;
}

bool groups_are_busy(const struct load_topic *t)
{
    for (uint32_t i = 0; i < t->load->world->plan.groups; i++) {
        const struct load_group *g = &t->groups[i];
        for (uint32_t k = 0; k < g->members_count; k++) {
            const struct load_member *x = &g->members[k];
            if (!g->healed || x->opening || x->ending || x->failed || !x->client || x->suspected || x->asking || x->pinging)
                return true;
        }
    }
    return false;
}

void groups_reattach(struct load_topic *t)
{
    for (uint32_t i = 0; i < t->load->world->plan.groups; i++)
        for (uint32_t k = 0; k < t->groups[i].members_count; k++)
            member_leave(&t->groups[i].members[k]);
}

// ---- the broker's own books

static const struct ox_subscription *group_subscription(const struct load_group *g)
{
    const struct world *w = group_world(g);
    if (!w->now || !w->now->broker.running || w->now->stopping)
        return NULL;
    struct ox_map_node *node = ox_map_find_str(&w->now->broker.shard.topics, g->topic->name);
    return node ? ox_subscription_find(CONTAINER_OF(node, struct ox_topic, by_name), g->name) : NULL;
}

static bool group_is_empty(const struct load_group *g)
{
    const struct ox_subscription *s = group_subscription(g);
    struct ox_subscription_stats stats;
    if (!s || s->state != OX_SUBSCRIPTION_OPEN)
        return false;
    ox_subscription_stats(s, &stats);
    return stats.backlog_entries == 0 && s->unacked == 0;
}

bool groups_are_acked(const struct load_topic *t)
{
    for (uint32_t i = 0; i < t->load->world->plan.groups; i++)
        if (!group_is_empty(&t->groups[i]))
            return false;
    return true;
}

bool groups_describe(const struct load_topic *t, char *out, size_t len)
{
    for (uint32_t i = 0; i < t->load->world->plan.groups; i++) {
        const struct load_group *g = &t->groups[i];
        const struct ox_subscription *s = group_subscription(g);
        struct ox_subscription_stats stats = {0};
        if (s && s->state == OX_SUBSCRIPTION_OPEN)
            ox_subscription_stats(s, &stats);
        if (s && stats.backlog_entries == 0 && s->unacked == 0)
            continue;
        snprintf(out, len,
                 "%s %s (%s): %llu entries behind " OX_POS_FMT ", read to " OX_POS_FMT ", %u messages unacknowledged",
                 t->name, g->name, s ? ox_sub_type_name(s->type) : "gone", (unsigned long long)stats.backlog_entries,
                 OX_POS_ARG(stats.mark_delete), OX_POS_ARG(stats.read), s ? s->unacked : 0);
        return true;
    }
    return false;
}

void groups_look(struct load_topic *t)
{
    for (uint32_t i = 0; i < t->load->world->plan.groups; i++) {
        const struct ox_subscription *s = group_subscription(&t->groups[i]);
        uint64_t unacked = 0;
        if (!s || s->state != OX_SUBSCRIPTION_OPEN)
            continue;
        OX_LIST_EACH((struct ox_list *)(uintptr_t)&s->consumers, l) {
            const struct ox_consumer *c = CONTAINER_OF(l, struct ox_consumer, link);
            unacked += c->unacked;
            if (c->permits <= -LOAD_BATCH)
                world_violation(t->load->world, "%s %s %s: %lld permits", t->name, s->name, c->name, (long long)c->permits);
        }
        if (unacked != s->unacked)
            world_violation(t->load->world, "%s %s: %u unacknowledged messages, its consumers have %llu", t->name,
                            s->name, s->unacked, (unsigned long long)unacked);
    }
}

// ---- the end

static void member_closed(struct ox_op *op)
{
    load_part_closed(CONTAINER_OF(op, struct load_member, close)->group->topic->load);
}

uint32_t groups_close(struct load_topic *t)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->load->world->plan.groups; i++)
        for (uint32_t k = 0; k < t->groups[i].members_count; k++, n++) {
            struct load_member *x = &t->groups[i].members[k];
            ox_timer_stop(&x->turn);
            ox_timer_stop(&x->again);
            ox_op_init(&x->close, load_loop(t->load), member_closed, "load.member.close");
            ox_client_consumer_close(x->client, &x->close);
        }
    return n;
}
