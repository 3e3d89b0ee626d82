// namespace_work.c - what is done to all topics of a namespace, or of one of its bundles, one after the other: unloading, clearing backlogs, unsubscribing.
#include <string.h>

#include "admin/node.h"
#include "broker/expire.h"
#include "broker/subscription.h"
#include "broker/topic_list.h"
#include "gen/rest_routes.h"

#define WORK_NAMES_A_TURN 512
#define BUNDLE_AT 5

struct ns_work;

// What is done to a topic that is there. Static.
struct ns_verb {
    const char *name;
    size_t subscription_at;            // the segment of the path with a subscription's name; 0: none
    bool bundle;                       // the path names a bundle
    bool loaded;                       // only topics that are loaded are of interest
    ox_step (*run)(struct ns_work *w); // on w->topic
};

struct ns_work {
    struct admin_request *request;
    const struct ns_verb *verb;
    uint32_t low, high; // of the bundle
    char *subscription; // may be NULL
    size_t at, worked_on;
    struct admin_pause pause;
    struct ox_topic *topic; // held
    struct ox_topics_list list;
    struct ox_topic_get get;
    struct ox_topic_expire expire;
    struct ox_unsubscribe unsubscribe;
    struct ox_op op;
    struct ox_seq seq;
};

static ox_step work_next(struct ox_seq *s);
static ox_step work_go(struct ox_seq *s);

static struct ns_work *work_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct ns_work, seq);
}

// A topic or a subscription that has gone meanwhile, or never was on this topic, is nothing to complain about.
static ox_step work_ran(struct ox_seq *s)
{
    struct ns_work *w = work_of(s);
    enum ox_err err = s->err;
    ox_topic_put(w->topic);
    w->topic = NULL;
    if (err && err != OX_E_SUBSCRIPTION_NOT_FOUND && err != OX_E_TOPIC_NOT_FOUND && err != OX_E_UNSUPPORTED)
        return OX_FINISH(s, err);
    return OX_GOTO(s, work_next);
}

static ox_step work_got(struct ox_seq *s)
{
    struct ns_work *w = work_of(s);
    if (s->err == OX_E_TOPIC_NOT_FOUND)
        return OX_GOTO(s, work_next);
    if (s->err)
        return OX_FINISH(s, s->err);
    w->topic = w->get.topic;
    return w->verb->run(w);
}

static bool work_wants(const struct ns_work *w, const struct ox_topic_name *name)
{
    return admin_bundle_holds(w->low, w->high, ox_topic_name_hash(name));
}

static ox_step work_topic(struct ns_work *w, const struct ox_topic_name *name)
{
    memset(&w->get, 0, sizeof w->get);
    ox_seq_bind(&w->seq, &w->get.op, "topic.get");
    ox_topic_get(w->request->admin->shard, &w->get, name);
    return OX_WAIT(&w->seq, work_got);
}

// Is that topic one to be worked on? Then it is being looked for.
static bool work_try(struct ns_work *w, const char *full, ox_step *ret_step)
{
    struct ox_topic_name name = {0};
    bool wanted = ox_topic_name_parse(&name, full) == OX_OK && work_wants(w, &name) &&
                  (!w->verb->loaded || ox_topic_find(w->request->admin->shard, name.full));
    if (wanted)
        *ret_step = work_topic(w, &name);
    ox_topic_name_fini(&name);
    return wanted;
}

static ox_step work_go(struct ox_seq *s)
{
    struct ns_work *w = work_of(s);
    ox_step step = OX_STEP_NEXT;
    for (size_t looked = 0; w->at < w->list.count; looked++) {
        if (looked == WORK_NAMES_A_TURN)
            return admin_rest(&w->pause, s, work_go, "work_go");
        if (work_try(w, w->list.names[w->at++], &step))
            return step;
    }
    return OX_FINISH(s, OX_OK);
}

static ox_step work_next(struct ox_seq *s)
{
    struct ns_work *w = work_of(s);
    return ++w->worked_on % ADMIN_TOPICS_A_TURN ? OX_GOTO(s, work_go) : admin_rest(&w->pause, s, work_go, "work_go");
}

static ox_step work_listed(struct ox_seq *s)
{
    return s->err ? OX_FINISH(s, s->err) : OX_GOTO(s, work_next);
}

static ox_step work_list(struct ox_seq *s)
{
    struct ns_work *w = work_of(s);
    w->list.mode = OX_TOPICS_ALL;
    ox_seq_bind(s, &w->list.op, "topics.list");
    ox_topics_list(w->request->admin->shard, &w->list, w->request->ns);
    return OX_WAIT(s, work_listed);
}

static void work_done(struct ox_seq *s, enum ox_err err)
{
    struct ns_work *w = work_of(s);
    admin_done(w->request, err, w->request->ns, NULL);
    ox_topics_list_fini(&w->list);
    ox_free(w->subscription);
    ox_free(w);
}

// ---- verbs

static ox_step unload_run(struct ns_work *w)
{
    ox_seq_bind(&w->seq, &w->op, "topic.unload");
    ox_topic_unload(w->request->admin->shard, &w->op, w->topic->name.full);
    return OX_WAIT(&w->seq, work_ran);
}

static ox_step clear_run(struct ns_work *w)
{
    memset(&w->expire, 0, sizeof w->expire);
    w->expire.subscription = w->subscription;
    w->expire.before_ms = UINT64_MAX;
    ox_seq_bind(&w->seq, &w->expire.op, "topic.expire");
    ox_topic_expire(w->topic, &w->expire);
    return OX_WAIT(&w->seq, work_ran);
}

static ox_step unsubscribe_run(struct ns_work *w)
{
    struct ox_subscription *sub = ox_subscription_find(w->topic, w->subscription);
    if (!sub) {
        ox_topic_put(w->topic);
        w->topic = NULL;
        return OX_GOTO(&w->seq, work_next);
    }
    memset(&w->unsubscribe, 0, sizeof w->unsubscribe);
    ox_seq_bind(&w->seq, &w->unsubscribe.op, "subscription.remove");
    ox_subscription_unsubscribe(sub, &w->unsubscribe, NULL);
    return OX_WAIT(&w->seq, work_ran);
}

// ---- beginning

static struct ns_work *work_new(struct admin_request *r, const struct ns_verb *verb)
{
    struct ns_work *w = ox_malloc(sizeof *w);
    w->request = r;
    w->verb = verb;
    w->high = UINT32_MAX;
    return w;
}

static void work_begin(struct admin_node *n)
{
    struct admin_request *r = n->request;
    const struct ns_verb *verb = (const struct ns_verb *)n->arg;
    struct ns_work *w = work_new(r, verb);
    if (verb->bundle && !admin_bundle_named(r, n->value, r->segments[BUNDLE_AT], &w->low, &w->high)) {
        ox_free(w);
        return;
    }
    if (verb->subscription_at)
        w->subscription = admin_twice(r, verb->subscription_at);
    ox_seq_start(&w->seq, r->admin->shard->loop, verb->name, work_list, work_done);
}

static void work_start(struct admin_request *r)
{
    admin_node_read(r, admin_namespace_path(r->ns), "Namespace", r->route->arg, work_begin);
}

static const struct ns_verb unload = {"admin.namespace.unload", 0, false, true, unload_run};
void admin_unload_range(struct admin_request *r, uint32_t low, uint32_t high)
{
    struct ns_work *w = work_new(r, &unload);
    w->low = low;
    w->high = high;
    ox_seq_start(&w->seq, r->admin->shard->loop, unload.name, work_list, work_done);
}

static const struct ns_verb unload_bundle = {"admin.namespace.unload", 0, true, true, unload_run};
static const struct ns_verb clear = {"admin.namespace.clear", 0, false, false, clear_run};
static const struct ns_verb clear_one = {"admin.namespace.clear", 6, false, false, clear_run};
static const struct ns_verb clear_bundle = {"admin.namespace.clear", 0, true, false, clear_run};
static const struct ns_verb clear_bundle_one = {"admin.namespace.clear", 7, true, false, clear_run};
static const struct ns_verb unsubscribe = {"admin.namespace.unsubscribe", 6, false, false, unsubscribe_run};
static const struct ns_verb unsubscribe_bundle = {"admin.namespace.unsubscribe", 7, true, false, unsubscribe_run};

static const struct admin_route routes[] = {ADMIN_ROUTES_NAMESPACE_WORK};
const struct admin_route_table admin_namespace_work = {routes, OX_COUNT(routes)};
