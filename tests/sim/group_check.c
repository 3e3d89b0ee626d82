// group_check.c - what a consumer of a group must never be given: the rules of Shared, Key_Shared and Failover.
#include <stdio.h>

#include "group_int.h"

static bool group_by_key(const struct load_group *g)
{
    return g->type == OXPB__COMMAND_SUBSCRIBE__SUB_TYPE__Key_Shared && !g->out_of_order;
}

// A member holds a key which another one gets. Each is asked something: if both get their answers, both were attached all the time, and the key had two owners.
// (What arrives may have been sent long before, to a consumer that the broker has given up meanwhile.)
static void alibi_of_other(struct ox_op *op)
{
    struct load_member *y = CONTAINER_OF(op, struct load_member, alibi.call.op);
    y->suspected = false;
    if (op->err == OX_OK && y->other->epoch == y->other_epoch)
        world_violation(group_world(y->group), "%s", y->suspicion);
}

static void alibi_known(struct ox_op *op)
{
    struct load_member *y = CONTAINER_OF(op, struct load_member, alibi.call.op);
    struct load_member *x = y->other;
    y->suspected =
        op->err == OX_OK && y->epoch == y->suspected_epoch && x->epoch == y->other_epoch && x->client && !x->ending;
    if (!y->suspected)
        return;
    ox_op_init(&y->alibi.call.op, load_loop(y->group->topic->load), alibi_of_other, "load.alibi");
    ox_client_consumer_last_id(x->client, &y->alibi);
}

static void member_suspect(struct load_member *y, struct load_member *x, const struct load_message *m,
                           const struct load_message *held)
{
    if (y->suspected || !y->client || y->ending || x->asking)
        return;
    snprintf(y->suspicion, sizeof y->suspicion,
             "%s %s: key %u has two owners: %s gets " OX_POS_FMT " while %s holds " OX_POS_FMT, y->group->topic->name,
             y->group->name, load_key(m), x->name, OX_POS_ARG(m->pos), y->name, OX_POS_ARG(held->pos));
    y->suspected = true;
    y->suspected_epoch = y->epoch;
    y->other = x;
    y->other_epoch = x->epoch;
    ox_op_init(&y->alibi.call.op, load_loop(y->group->topic->load), alibi_known, "load.alibi");
    ox_client_consumer_last_id(y->client, &y->alibi);
}

// Key_Shared: older messages of the key were acknowledged, or this member has got them; nobody else holds any.
static void member_check_key(struct load_member *x, const struct load_message *m, struct ox_pos pos)
{
    struct load_group *g = x->group;
    for (uint32_t i = 0; i < group_world(g)->plan.producers; i++)
        for (uint32_t k = 0; k < g->topic->producers[i].next; k++) {
            const struct load_message *o = &g->topic->producers[i].messages[k];
            const struct group_message *go = &g->messages[i][k];
            if (o == m || !load_is_keyed(o) || load_key(o) != load_key(m) || go->ack_sent || o->forgotten || o->pos.ledger < 0)
                continue;
            if (ox_pos_cmp(o->pos, pos) < 0 && go->seen[x->index] != x->epoch)
                world_violation(group_world(g), "%s %s %s: key %u: " OX_POS_FMT " comes before " OX_POS_FMT,
                                g->topic->name, g->name, x->name, load_key(m), OX_POS_ARG(pos), OX_POS_ARG(o->pos));
            if (go->holder && go->holder != x && go->seen[go->holder->index] == go->holder->epoch)
                member_suspect(go->holder, x, m, o);
        }
}

// Failover: as for an exclusive consumer.
static void member_check_order(struct load_member *x, const struct load_message *m, const struct ox_message_id *id)
{
    struct load_group *g = x->group;
    const struct load_message *before = load_before(m, -1);
    const struct group_message *gb = before ? group_message_of(g, before) : NULL;
    if (gb && !gb->ack_sent && gb->seen[x->index] != x->epoch)
        world_violation(group_world(g), "%s %s %s: producer %u message %u at " OX_POS_FMT " was passed over: %u comes",
                        g->topic->name, g->name, x->name, m->producer->index, before->number, OX_POS_ARG(before->pos),
                        m->number);
    if (load_id_cmp(load_id_pos(id), id->batch_index, x->last_pos, x->last_batch) <= 0)
        world_violation(group_world(g), "%s %s %s: " OX_POS_FMT "/%d comes after " OX_POS_FMT "/%d", g->topic->name, g->name,
                        x->name, OX_POS_ARG(load_id_pos(id)), id->batch_index, OX_POS_ARG(x->last_pos), x->last_batch);
    x->last_pos = load_id_pos(id);
    x->last_batch = id->batch_index;
}

static bool group_is_early(const struct load_group *g, const struct load_message *m)
{
    const struct world *w = group_world(g);
    if (g->type == OXPB__COMMAND_SUBSCRIBE__SUB_TYPE__Failover || !w->now || w->plan.clock_steps)
        return false;
    return ox_wall_ms(w->now->broker.loop) < m->send.deliver_at_ms;
}

void member_check(struct load_member *x, struct load_message *m, const struct ox_received *r)
{
    struct load_group *g = x->group;
    struct world *w = group_world(g);
    const struct group_message *gm = group_message_of(g, m);
    struct ox_pos pos = load_id_pos(&r->id);
    if (load_has_moved(m, &r->id))
        world_violation(w, "%s %s: producer %u message %u comes at " OX_POS_FMT ", it is at " OX_POS_FMT,
                        g->topic->name, g->name, m->producer->index, m->number, OX_POS_ARG(pos), OX_POS_ARG(m->pos));
    uint64_t since = OX_MAX(x->sure_ns, ox_client_consumer_since_ns(x->client));
    if (gm->confirmed && ox_pos_equal(gm->confirmed_at, pos) && gm->confirmed_ns < since)
        world_violation(w, "%s %s: producer %u message %u at " OX_POS_FMT " comes again after its acknowledgement was answered",
                        g->topic->name, g->name, m->producer->index, m->number, OX_POS_ARG(pos));
    if (r->redelivery_count > gm->asked + g->asked)
        world_violation(w, "%s %s: " OX_POS_FMT " has redelivery count %u, it was asked for %u times", g->topic->name,
                        g->name, OX_POS_ARG(pos), r->redelivery_count, gm->asked + g->asked);
    if (group_is_early(g, m))
        world_violation(w, "%s %s: " OX_POS_FMT " comes before its time", g->topic->name, g->name, OX_POS_ARG(pos));
    if (w->plan.early_trim)
        return; // two copies of a message may be there
    if (group_by_key(g) && load_is_keyed(m))
        member_check_key(x, m, pos);
    if (g->type == OXPB__COMMAND_SUBSCRIBE__SUB_TYPE__Failover && !x->asking)
        member_check_order(x, m, &r->id);
}
