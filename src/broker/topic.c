// topic.c - the table of topics: finding, holding, states, pins.
#include "base/assert.h"
#include "base/mem.h"
#include "broker/limits.h"
#include "broker/resend.h"
#include "broker/topic_int.h"
#include "broker/topic_round.h"

const char *ox_topic_state_name(enum ox_topic_state state)
{
    static const char *const names[] = {
#define OX_X(name) [OX_TOPIC_##name] = #name,
        OX_TOPIC_STATES(OX_X)
#undef OX_X
    };
    return names[state];
}

void topic_set_state(struct ox_topic *t, enum ox_topic_state to, const char *why)
{
    static const unsigned allowed[] = {
        [OX_TOPIC_LOADING] = 1u << OX_TOPIC_OPEN | 1u << OX_TOPIC_GONE,
        [OX_TOPIC_OPEN] = 1u << OX_TOPIC_CLOSING | 1u << OX_TOPIC_DELETING,
        [OX_TOPIC_CLOSING] = 1u << OX_TOPIC_GONE,
        [OX_TOPIC_DELETING] = 1u << OX_TOPIC_GONE,
        [OX_TOPIC_GONE] = 0,
    };
    OX_ASSERT(allowed[t->state] & 1u << to);
    ox_debug(t->shard->log, "topic.state", "topic=%s from=%s to=%s why=%s", t->name.full, ox_topic_state_name(t->state),
             ox_topic_state_name(to), why);
    t->state = to;
}

struct ox_topic *ox_topic_find(struct ox_shard *sh, const char *full_name)
{
    struct ox_map_node *n = ox_map_find_str(&sh->topics, full_name);
    return n ? CONTAINER_OF(n, struct ox_topic, by_name) : NULL;
}

static struct ox_topic *topic_new(struct ox_shard *sh, const struct ox_topic_name *name)
{
    struct ox_topic *t = ox_malloc(sizeof *t);
    t->magic = TOPIC_MAGIC;
    t->shard = sh;
    t->holds = 1;
    ox_topic_name_copy(&t->name, name);
    t->is_system = ox_topic_name_is_system(name);
    ox_list_init(&t->producers);
    ox_list_init(&t->waiters);
    ox_list_init(&t->drain_waiters);
    ox_list_init(&t->joining);
    ox_list_init(&t->queued);
    t->epoch = -1;
    ox_map_put_str(&sh->topics, &t->by_name, t->name.full);
    if (name->domain == OX_DOMAIN_NON_PERSISTENT)
        ox_list_push_back(&sh->nonpersistent, &t->in_nonpersistent);
    return t;
}

void ox_topic_hold(struct ox_topic *t)
{
    OX_ASSERT(t->magic == TOPIC_MAGIC);
    t->holds++;
}

void ox_topic_put(struct ox_topic *t)
{
    OX_ASSERT(t->magic == TOPIC_MAGIC && t->holds > 0);
    if (--t->holds)
        return;
    OX_ASSERT(t->state == OX_TOPIC_GONE && ox_list_empty(&t->producers) && ox_map_count(&t->subscriptions) == 0);
    producers_gone(t);
    topic_limits_free(t);
    ox_free(t->hist);
    ox_topic_name_fini(&t->name);
    t->magic = 0;
    ox_free(t);
}

void topic_get_finish(struct ox_topic_get *g, struct ox_topic *t, enum ox_err err, const char *why)
{
    if (!err)
        ox_topic_hold(t);
    g->topic = err ? NULL : t;
    g->why = why;
    ox_topic_name_fini(&g->name);
    ox_op_finish(&g->op, err);
}

// Finds or begins to load; one that is on its way in or out is waited for.
static void topic_get_start(struct ox_topic_get *g)
{
    struct ox_shard *sh = g->shard;
    if (sh->state != OX_SHARD_RUNNING) {
        topic_get_finish(g, NULL, OX_E_SHUTDOWN, NULL);
        return;
    }
    struct ox_topic *t = ox_topic_find(sh, g->name.full);
    if (t && t->state == OX_TOPIC_OPEN) {
        topic_get_finish(g, t, OX_OK, NULL);
        return;
    }
    bool fresh = !t;
    if (fresh)
        t = topic_new(sh, &g->name);
    ox_list_push_back(&t->waiters, &g->link);
    if (fresh)
        topic_load(t);
    if (t->state == OX_TOPIC_LOADING) {
        struct topic_impl *impl = t->impl;
        impl->create |= g->create;
        impl->explicit_create |= g->explicit_create;
        impl->marked |= g->marked;
    }
}

void ox_topic_get(struct ox_shard *sh, struct ox_topic_get *g, const struct ox_topic_name *name)
{
    ox_op_begin(&g->op);
    g->shard = sh;
    g->topic = NULL;
    g->why = NULL;
    ox_topic_name_copy(&g->name, name);
    topic_get_start(g);
}

static void waiter_serve(struct ox_topic_get *g, struct ox_topic *t, enum ox_err err)
{
    const struct topic_impl *impl = t->impl;
    bool more = (g->create && !impl->tried_create) || (g->explicit_create && !impl->tried_explicit) ||
                (g->marked && !impl->tried_marked);
    if (err == OX_OK || ((err == OX_E_TOPIC_NOT_FOUND || err == OX_E_NAMESPACE_NOT_FOUND) && more))
        topic_get_start(g);
    else
        topic_get_finish(g, NULL, err, impl->why);
}

void topic_gone(struct ox_topic *t, enum ox_err err)
{
    struct ox_list waiters;
    ox_list_init(&waiters);
    ox_list_splice(&waiters, &t->waiters);
    shard_topic_gone(t);
    topic_rounds_pass(t->shard, t);
    if (ox_link_linked(&t->in_nonpersistent))
        ox_list_remove(&t->shard->nonpersistent, &t->in_nonpersistent);
    ox_map_remove(&t->shard->topics, &t->by_name);
    scope_leave(t);
    ox_resend_drop(t);
    struct topic_impl *impl = t->impl;
    topic_set_state(t, OX_TOPIC_GONE, ox_err_name(err));
    for (struct ox_link *l = ox_list_pop_front(&waiters); l; l = ox_list_pop_front(&waiters))
        waiter_serve(CONTAINER_OF(l, struct ox_topic_get, link), t, err);
    for (struct ox_link *l = ox_list_pop_front(&impl->closers); l; l = ox_list_pop_front(&impl->closers))
        ox_op_finish(CONTAINER_OF(l, struct ox_op, link), impl->close_err);
    t->impl = NULL;
    ox_free(impl);
    ox_topic_put(t);
}

void topic_pin(struct ox_topic *t)
{
    t->pins++;
    ox_topic_hold(t);
}

void topic_unpin(struct ox_topic *t)
{
    OX_ASSERT(t->pins > 0);
    t->pins--;
    topic_quieter(t);
    ox_topic_put(t);
}

void topic_quieter(struct ox_topic *t)
{
    struct topic_impl *impl = t->impl;
    if (!impl || !impl->waiting || t->pins || t->inflight)
        return;
    impl->waiting = false;
    ox_seq_resume(&impl->seq, OX_OK);
}
