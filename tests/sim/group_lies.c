// group_lies.c - consumers that lie: nothing that others were promised may depend on what they say.
#include "group_int.h"

// A message of the topic whose place is known, or NULL.
static struct load_message *lie_about(struct load_group *g)
{
    struct workload *load = g->topic->load;
    struct load_producer *p = &g->topic->producers[ox_random_below(&load->random, load->world->plan.producers)];
    if (!p->next)
        return NULL;
    struct load_message *m = &p->messages[ox_random_below(&load->random, p->next)];
    return m->acked && m->send.id.ledger >= 0 ? m : NULL; // the places of all messages of its batch are known
}

// The group has acknowledged all messages of the entry, or some: nobody is promised them any more.
static void group_give_up(struct load_group *g, struct ox_pos pos)
{
    for (uint32_t i = 0; i < g->topic->load->world->plan.producers; i++)
        for (uint32_t k = 0; k < g->topic->producers[i].next; k++)
            if (ox_pos_equal(g->topic->producers[i].messages[k].pos, pos))
                g->messages[i][k].received = g->messages[i][k].ack_sent = true;
}

static struct ox_message_id lie_id(struct ox_pos pos)
{
    return (struct ox_message_id){.ledger = pos.ledger, .entry = pos.entry, .partition = -1, .batch_index = -1};
}

// An entry that is not there: before the log, after it, or in a ledger of somebody else.
static struct ox_message_id lie_nowhere(struct workload *load)
{
    static const int64_t odd[] = {-1, 0, 1, 7, INT64_MAX, INT64_MIN, INT64_MAX - 1, 1000000};
    return lie_id((struct ox_pos){1000000 + odd[ox_random_below(&load->random, OX_COUNT(odd))] / 2,
                                  odd[ox_random_below(&load->random, OX_COUNT(odd))]});
}

static void lie_ack(struct load_member *x)
{
    struct load_message *m = lie_about(x->group);
    if (!m)
        return;
    struct ox_message_id id = lie_id(m->pos);
    group_give_up(x->group, m->pos);
    ox_client_consumer_ack_raw(x->client, &id, false, NULL, 0);
}

static void lie_ack_set(struct load_member *x)
{
    struct workload *load = x->group->topic->load;
    struct load_message *m = lie_about(x->group);
    uint64_t words[6];
    size_t count = 1 + ox_random_below(&load->random, OX_COUNT(words));
    if (!m)
        return;
    struct ox_message_id id = lie_id(m->pos);
    id.batch_size = (int32_t)ox_random_below(&load->random, 1000) - 100;
    for (size_t i = 0; i < count; i++)
        words[i] = load_chance(load, 300) ? 0 : ox_random_next(&load->random);
    group_give_up(x->group, m->pos);
    ox_client_consumer_ack_raw(x->client, &id, false, words, count);
}

// All sorts: what others hold, what is on its way to the liar, what is not there.
static void lie_redeliver(struct load_member *x)
{
    struct ox_message_id ids[4];
    size_t n = 0;
    for (size_t i = 0; i < OX_COUNT(ids); i++) {
        struct load_message *m = lie_about(x->group);
        bool others = m && x->group->messages[m->producer->index][m->number].holder != x;
        ids[n++] = others ? lie_id(m->pos) : lie_nowhere(x->group->topic->load);
        if (others)
            for (uint32_t k = 0; k < m->producer->next; k++)
                x->group->messages[m->producer->index][k].asked += ox_pos_equal(m->producer->messages[k].pos, m->pos);
    }
    ox_client_consumer_redeliver(x->client, ids, n);
    member_asked(x);
}

void group_lie(struct load_member *x)
{
    struct workload *load = x->group->topic->load;
    struct ox_message_id nowhere = lie_nowhere(load);
    switch (ox_random_below(&load->random, 6)) {
    case 0: ox_client_consumer_flow_raw(x->client, UINT32_MAX); break;
    case 1: lie_ack(x); break;
    case 2: lie_ack_set(x); break;
    case 3: lie_redeliver(x); break;
    case 4: ox_client_consumer_ack_raw(x->client, &nowhere, load_chance(load, 500), NULL, 0); break;
    case 5: ox_client_consumer_ack_raw(x->client, &nowhere, false, (uint64_t[]){3}, 1); break;
    default: break;
    }
}
