// topic_policies.c - reading and changing topics' own policies: a change is an event in the namespace's log, in force when it has been read there.
#include "broker/topic_policies.h"

#include "base/mem.h"
#include "broker/policy_event.h"
#include "broker/topic_events.h"
#include "broker/topic_int.h"

// ---- reading

static void get_done(struct ox_op *op)
{
    struct ox_topic_policies_get *g = CONTAINER_OF(op, struct ox_topic_policies_get, scope.op);
    if (!op->err) {
        g->applied = *scope_base(g->scope.scope);
        g->own = json_deep_copy(scope_own(g->scope.scope, g->base_name));
        if (g->own)
            ox_policies_apply_topic(&g->applied, g->own);
        scope_put(g->scope.scope);
    }
    ox_free(g->base_name);
    ox_op_finish(&g->op, op->err);
}

void ox_topic_policies_get(struct ox_shard *sh, struct ox_topic_policies_get *g, const struct ox_topic_name *name)
{
    ox_op_begin(&g->op);
    g->shard = sh;
    g->own = NULL;
    g->base_name = ox_topic_name_base(name);
    g->scope.system = ox_topic_name_is_system(name);
    ox_op_init(&g->scope.op, sh->loop, get_done, "policies.get");
    scope_get(sh, &g->scope, name->ns);
}

// ---- changing

static ox_step update_turn(struct ox_seq *s);

static struct ox_topic_policies_update *update_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct ox_topic_policies_update, seq);
}

static ox_step update_applied(struct ox_seq *s)
{
    return OX_FINISH(s, s->err);
}

static ox_step update_appended(struct ox_seq *s)
{
    struct ox_topic_policies_update *u = update_of(s);
    if (s->err) {
        topic_fail(u->events.topic, s->err);
        return OX_FINISH(s, s->err);
    }
    ox_seq_bind(s, &u->applied, "topic.policies.applied");
    topic_events_wait(u->scope.scope->events, &u->applied, u->append.pos);
    return OX_WAIT(s, update_applied);
}

// The entry with what the policies are to be.
static enum ox_err update_entry(struct ox_topic_policies_update *u, struct ox_buf *ret)
{
    struct ox_shard *sh = u->shard;
    const struct policy_scope *scope = u->scope.scope;
    json_t *now = scope_own(scope, u->name.full), *to = NULL;
    if (!now && u->change && ox_map_count(&scope->own) >= OX_TOPIC_POLICIES_MAX)
        return OX_E_LIMIT;
    enum ox_err err = OX_OK;
    if (u->change) {
        to = now ? json_deep_copy(now) : json_object();
        err = u->change(u, to);
    }
    OX_CLEANUP(ox_free_ptr)
    char *producer = ox_asprintf("%s-%llu-policies", sh->config.cluster, (unsigned long long)sh->producer_epoch);
    struct policy_event_from from = {.producer = producer,
                                     .cluster = sh->config.cluster,
                                     .sequence_id = sh->producer_seq++,
                                     .now_ms = ox_wall_ms(sh->loop)};
    if (!err)
        err = policy_event_build(&u->name, to, &from, ret);
    json_decref(to);
    return err;
}

static ox_step update_events_got(struct ox_seq *s)
{
    struct ox_topic_policies_update *u = update_of(s);
    if (s->err)
        return OX_FINISH(s, s->err);
    struct ox_topic *t = u->events.topic;
    topic_pin(t);
    u->pinned = true;
    ox_topic_put(t);
    if (t->state != OX_TOPIC_OPEN)
        return OX_FINISH(s, OX_E_TOPIC_FENCED);
    topic_events_opened(t);
    struct ox_buf entry;
    enum ox_err err = update_entry(u, &entry);
    if (err)
        return OX_FINISH(s, err);
    u->append = (struct ox_ml_append){.messages = 1, .body = entry};
    ox_seq_bind(s, &u->append.op, "topic.policies.append");
    ox_mledger_append(t->ml, &u->append);
    ox_buf_unref(&entry);
    return OX_WAIT(s, update_appended);
}

static ox_step update_turn(struct ox_seq *s)
{
    struct ox_topic_policies_update *u = update_of(s);
    struct ox_topic_name events;
    if (!u->change && !scope_own(u->scope.scope, u->name.full)) // nothing to remove: no log is made for that
        return OX_FINISH(s, OX_OK);
    enum ox_err err = topic_events_name(u->name.ns, &events);
    if (err)
        return OX_FINISH(s, err);
    u->events = (struct ox_topic_get){.create = true, .explicit_create = true};
    ox_seq_bind(s, &u->events.op, "topic.policies.topic");
    ox_topic_get(u->shard, &u->events, &events);
    ox_topic_name_fini(&events);
    return OX_WAIT(s, update_events_got);
}

static ox_step update_scope_got(struct ox_seq *s)
{
    struct ox_topic_policies_update *u = update_of(s);
    if (s->err)
        return OX_FINISH(s, s->err);
    struct topic_events *e = topic_events_of(u->scope.scope);
    ox_list_push_back(&e->updates, &u->link);
    return e->updates.count == 1 ? OX_GOTO(s, update_turn) : OX_WAIT(s, update_turn);
}

static ox_step update_start(struct ox_seq *s)
{
    struct ox_topic_policies_update *u = update_of(s);
    if (!u->shard->config.topic_policies || ox_topic_name_is_system(&u->name))
        return OX_FINISH(s, OX_E_UNSUPPORTED);
    u->scope.system = false;
    ox_seq_bind(s, &u->scope.op, "policies.get");
    scope_get(u->shard, &u->scope, u->name.ns);
    return OX_WAIT(s, update_scope_got);
}

static void update_done(struct ox_seq *s, enum ox_err err)
{
    struct ox_topic_policies_update *u = update_of(s);
    struct policy_scope *scope = u->scope.scope;
    if (u->pinned)
        topic_unpin(u->events.topic);
    if (scope) {
        struct ox_list *updates = &scope->events->updates;
        ox_list_remove(updates, &u->link);
        if (!ox_list_empty(updates))
            ox_seq_resume(&CONTAINER_OF(ox_list_first(updates), struct ox_topic_policies_update, link)->seq, OX_OK);
        scope_put(scope);
    }
    ox_topic_name_fini(&u->name);
    ox_op_finish(&u->op, err);
}

void ox_topic_policies_update(struct ox_shard *sh, struct ox_topic_policies_update *u, const struct ox_topic_name *name)
{
    ox_op_begin(&u->op);
    OX_CLEANUP(ox_free_ptr)
    char *base = ox_topic_name_base(name);
    u->shard = sh;
    u->scope.scope = NULL;
    u->pinned = false;
    u->link = (struct ox_link){0};
    if (ox_topic_name_parse(&u->name, base) != OX_OK)
        ox_topic_name_copy(&u->name, name);
    ox_seq_start(&u->seq, sh->loop, "topic.policies.update", update_start, update_done);
}
