// topic_events.c - reading the log of topics' own policies: all of it when the namespace is first used, then what is added.
#include "broker/topic_events.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "broker/compaction.h"
#include "broker/policy_event.h"
#include "broker/topic_int.h"
#include "broker/topic_policies.h"

#define READ_ENTRIES 100u
#define READ_BYTES (UINT64_C(1024) * 1024)

static struct topic_events *events_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct topic_events, seq);
}

// ---- applying

static void events_apply(struct topic_events *e, const struct ox_entry *entry)
{
    struct policy_scope *scope = e->scope;
    OX_CLEANUP(ox_free_ptr)
    char *topic = NULL;
    json_t *policies = NULL;
    enum ox_err err = policy_event_parse(entry, &topic, &policies);
    if (!err && policies && !scope_own(scope, topic) && ox_map_count(&scope->own) >= OX_TOPIC_POLICIES_MAX)
        err = OX_E_LIMIT;
    if (err)
        ox_warn(scope->shard->log, "topic.policies.ignored", "namespace=%s ledger=%lld entry=%lld error=%s", scope->ns,
                (long long)entry->pos.ledger, (long long)entry->pos.entry, ox_err_name(err));
    else
        scope_set_own(scope, topic, policies);
    json_decref(policies);
}

static void events_tell(struct topic_events *e, enum ox_err err)
{
    OX_LIST_EACH(&e->applied, l) {
        struct events_wait *w = CONTAINER_OF(l, struct events_wait, link);
        if (!err && ox_pos_cmp(w->pos, e->next) >= 0)
            continue;
        ox_list_remove(&e->applied, l);
        ox_op_finish(w->op, err);
        ox_free(w);
    }
}

void topic_events_wait(struct topic_events *e, struct ox_op *op, struct ox_pos pos)
{
    struct events_wait *w = ox_malloc(sizeof *w);
    *w = (struct events_wait){.op = op, .pos = pos};
    ox_op_begin(op);
    ox_list_push_back(&e->applied, &w->link);
    if (e->topic)
        events_tell(e, OX_OK);
    else
        events_tell(e, OX_E_TOPIC_FENCED);
}

// ---- reading up to the end

static ox_step events_read(struct ox_seq *s);

static void events_start_over(struct topic_events *e)
{
    scope_clear_own(e->scope);
    e->next = OX_POS_EARLIEST;
}

// The first reading takes the last event of each topic up to the horizon; who has read single events must see those that take them back, and compaction leaves these out.
static struct ox_cursor_view *events_view(struct topic_events *e)
{
    struct ox_cursor_view *view = e->loading && !e->plain ? ox_compaction_view(e->topic) : NULL;
    if (view && ox_pos_cmp(e->next, e->horizon) <= 0 && !ox_pos_equal(view->upto, e->horizon))
        events_start_over(e); // compacted anew meanwhile
    if (ox_pos_equal(e->next, OX_POS_EARLIEST))
        e->horizon = view ? view->upto : OX_POS_EARLIEST;
    return ox_pos_cmp(e->next, e->horizon) <= 0 ? view : NULL;
}

static bool events_read_again(struct topic_events *e)
{
    if (!e->read_view)
        return false;
    ox_warn(e->scope->shard->log, "topic.policies.compacted.failed", "namespace=%s error=%s", e->scope->ns,
            ox_err_name(e->seq.err));
    e->plain = true;
    events_start_over(e);
    return true;
}

static ox_step events_read_done(struct ox_seq *s)
{
    struct topic_events *e = events_of(s);
    if (s->err && events_read_again(e))
        return OX_GOTO(s, events_read);
    if (s->err)
        return OX_FINISH(s, s->err == OX_E_NO_ENTRY ? OX_OK : s->err);
    for (size_t i = 0; i < e->read.count; i++)
        events_apply(e, &e->read.entries[i]);
    e->next = e->read.next;
    ox_ml_read_fini(&e->read);
    return OX_GOTO(s, events_read);
}

static ox_step events_read(struct ox_seq *s)
{
    struct topic_events *e = events_of(s);
    if (ox_pos_cmp(e->next, e->topic->ml->last) > 0)
        return OX_FINISH(s, OX_OK);
    e->read_view = events_view(e);
    e->read = (struct ox_ml_read){.from = e->next, .entries_max = READ_ENTRIES, .bytes_max = READ_BYTES};
    ox_seq_bind(s, &e->read.op, "topic.policies.read");
    if (e->read_view)
        e->read_view->read(e->read_view, &e->read);
    else
        ox_mledger_read(e->topic->ml, &e->read);
    return OX_WAIT(s, events_read_done);
}

static void events_release(struct topic_events *e)
{
    e->topic = NULL;
    events_tell(e, OX_E_TOPIC_FENCED);
}

// Reading that failed is tried again when the topic is next opened or written to.
static void events_read_over(struct ox_seq *s, enum ox_err err)
{
    struct topic_events *e = events_of(s);
    struct policy_scope *scope = e->scope;
    struct ox_topic *t = e->topic;
    bool loading = e->loading;
    e->loading = false;
    if (err && !loading)
        ox_warn(scope->shard->log, "topic.policies.read.failed", "namespace=%s error=%s", scope->ns, ox_err_name(err));
    if (!err)
        events_tell(e, OX_OK);
    if (t && !err && t->state == OX_TOPIC_OPEN)
        ox_mledger_wait(t->ml, &e->waiter, ox_ml_prev(t->ml, e->next));
    else
        events_release(e);
    if (t)
        topic_unpin(t);
    if (loading)
        scope_loaded(scope, err);
    scope_put(scope);
}

static void events_follow(struct topic_events *e, struct ox_topic *t)
{
    e->topic = t;
    topic_pin(t);
    e->scope->refs++;
    ox_seq_start(&e->seq, e->scope->shard->loop, "topic.policies.follow", events_read, events_read_over);
}

static void events_woken(struct ox_ml_waiter *w)
{
    struct topic_events *e = CONTAINER_OF(w, struct topic_events, waiter);
    if (e->topic->state == OX_TOPIC_OPEN)
        events_follow(e, e->topic);
}

// ---- the first reading

static ox_step load_got(struct ox_seq *s)
{
    struct topic_events *e = events_of(s);
    bool nothing = s->err == OX_E_TOPIC_NOT_FOUND || s->err == OX_E_NAMESPACE_NOT_FOUND; // the latter: it is being deleted
    if (s->err)
        return OX_FINISH(s, nothing ? OX_OK : s->err);
    struct ox_topic *t = e->get.topic;
    if (t->state != OX_TOPIC_OPEN) {
        ox_topic_put(t);
        return OX_FINISH(s, OX_E_TOPIC_FENCED);
    }
    e->topic = t;
    topic_pin(t);
    ox_topic_put(t);
    return OX_GOTO(s, events_read);
}

static ox_step load_start(struct ox_seq *s)
{
    struct topic_events *e = events_of(s);
    struct ox_topic_name name;
    if (topic_events_name(e->scope->ns, &name) != OX_OK)
        return OX_FINISH(s, OX_OK);
    e->get = (struct ox_topic_get){0};
    ox_seq_bind(s, &e->get.op, "topic.policies.topic");
    ox_topic_get(e->scope->shard, &e->get, &name);
    ox_topic_name_fini(&name);
    return OX_WAIT(s, load_got);
}

void topic_events_load(struct policy_scope *scope)
{
    struct topic_events *e = topic_events_of(scope);
    events_start_over(e);
    e->loading = true;
    e->plain = false;
    scope->refs++;
    ox_seq_start(&e->seq, scope->shard->loop, "topic.policies.load", load_start, events_read_over);
}

// ---- life

enum ox_err topic_events_name(const char *ns, struct ox_topic_name *ret)
{
    OX_CLEANUP(ox_free_ptr)
    char *full = ox_asprintf("persistent://%s/" POLICY_EVENTS_LOCAL, ns);
    return ox_topic_name_parse(ret, full);
}

struct topic_events *topic_events_of(struct policy_scope *scope)
{
    if (scope->events)
        return scope->events;
    struct topic_events *e = ox_malloc(sizeof *e);
    e->scope = scope;
    e->next = OX_POS_EARLIEST;
    e->waiter.wake = events_woken;
    ox_list_init(&e->applied);
    ox_list_init(&e->updates);
    scope->events = e;
    return e;
}

void topic_events_free(struct policy_scope *scope)
{
    struct topic_events *e = scope->events;
    OX_ASSERT(!e || (!e->seq.active && !e->topic && ox_list_empty(&e->updates)));
    ox_free(e);
    scope->events = NULL;
}

void topic_events_opened(struct ox_topic *t)
{
    struct policy_scope *scope = t->scope;
    if (!scope || scope->state != SCOPE_READY || !scope->shard->config.topic_policies ||
        strcmp(t->name.local, POLICY_EVENTS_LOCAL) != 0)
        return;
    struct topic_events *e = topic_events_of(scope);
    if (!e->topic && !e->seq.active)
        events_follow(e, t);
}

void topic_events_closing(struct ox_topic *t)
{
    struct topic_events *e = t->scope ? t->scope->events : NULL;
    if (!e || e->topic != t || e->seq.active)
        return;
    ox_mledger_unwait(t->ml, &e->waiter);
    events_release(e);
}
