// walk.c - visiting all topics that are loaded, a portion a turn.
#include "admin/walk.h"

#include <string.h>

#include "admin/connection.h"
#include "admin/node.h"
#include "broker/policy_scope.h"
#include "broker/subscription.h"

#define WALK_JOINS_A_TURN 64u

static struct admin_walk *walk_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct admin_walk, seq);
}

static struct walk_namespace *walk_namespace(struct admin_walk *w, const char *name)
{
    struct ox_map_node *node = ox_map_find_str(&w->namespaces, name);
    if (node)
        return WALK_NAMESPACE_OF(node);
    struct walk_namespace *ns = ox_malloc(sizeof *ns);
    *ns = (struct walk_namespace){.name = ox_strdup(name)};
    ox_map_put_str(&w->namespaces, &ns->by_ns, ns->name);
    return ns;
}

// The bundle of a topic, from its namespace's policies; a namespace whose bundles make no sense counts as one.
static struct walk_bundle *walk_bundle(struct walk_namespace *ns, const struct ox_topic *t)
{
    char name[32];
    uint32_t low, high;
    if (!t->scope || !admin_bundle_of(t->scope->policies, ox_topic_name_hash(&t->name), &low, &high, name))
        ox_bundle_name(0, 1, name);
    struct ox_map_node *node = ox_map_find_str(&ns->bundles, name);
    if (node)
        return WALK_BUNDLE_OF(node);
    struct walk_bundle *bundle = ox_malloc(sizeof *bundle);
    *bundle = (struct walk_bundle){0};
    memcpy(bundle->name, name, sizeof name);
    ox_map_put_str(&ns->bundles, &bundle->by_name, bundle->name);
    return bundle;
}

static uint64_t walk_backlog(const struct ox_topic *t)
{
    uint64_t entries = 0;
    OX_MAP_EACH(&t->subscriptions, node) {
        struct ox_subscription_stats one;
        ox_subscription_stats(CONTAINER_OF(node, struct ox_subscription, by_name), &one);
        entries += one.backlog_entries;
    }
    return entries;
}

static struct walk_sums walk_sums_of(const struct ox_topic *t)
{
    struct ox_topic_stats figures;
    ox_topic_stats(t, &figures);
    return (struct walk_sums){.topics = 1,
                              .logs = t->ml != NULL,
                              .producers = figures.producers,
                              .consumers = figures.consumers,
                              .subscriptions = figures.subscriptions,
                              .messages_in = t->in.messages_per_s,
                              .bytes_in = t->in.bytes_per_s,
                              .messages_out = t->out.messages_per_s,
                              .bytes_out = t->out.bytes_per_s,
                              .backlog_entries = walk_backlog(t),
                              .storage_bytes = figures.storage_bytes};
}

static void walk_visit(struct admin_walk *w, const char *name)
{
    const struct ox_topic *t = ox_topic_find(w->request->admin->shard, name);
    if (!t || t->state != OX_TOPIC_OPEN)
        return;
    struct walk_bundle *bundle = walk_bundle(walk_namespace(w, t->name.ns), t);
    struct walk_sums sums = walk_sums_of(t);
    walk_add(&bundle->sums, &sums);
    w->loaded++;
    if (w->visit)
        w->visit(w, bundle, t);
}

static ox_step walk_join(struct ox_seq *s)
{
    struct admin_walk *w = walk_of(s);
    for (size_t i = 0; w->joined && i < WALK_JOINS_A_TURN; i++) {
        w->join(w, WALK_NAMESPACE_OF(w->joined));
        w->joined = ox_map_next(w->joined);
    }
    return w->joined ? admin_rest(&w->pause, s, walk_join, "walk_join") : OX_FINISH(s, OX_OK);
}

static ox_step walk_step(struct ox_seq *s)
{
    struct admin_walk *w = walk_of(s);
    size_t end = OX_MIN(w->count, w->at + ADMIN_TOPICS_A_TURN);
    while (w->at < end)
        walk_visit(w, w->names[w->at++]);
    if (w->at < w->count)
        return admin_rest(&w->pause, s, walk_step, "walk_step");
    w->joined = ox_map_first(&w->namespaces);
    return w->join ? admin_rest(&w->pause, s, walk_join, "walk_join") : OX_FINISH(s, OX_OK);
}

static void walk_namespace_free(struct admin_walk *w, struct walk_namespace *ns)
{
    OX_MAP_EACH(&ns->bundles, node) {
        struct walk_bundle *bundle = WALK_BUNDLE_OF(node);
        ox_map_remove(&ns->bundles, node);
        ox_str_fini(&bundle->text[0]);
        ox_str_fini(&bundle->text[1]);
        ox_free(bundle);
    }
    ox_map_remove(&w->namespaces, &ns->by_ns);
    ox_free(ns->name);
    ox_free(ns);
}

static void walk_free(struct admin_walk *w)
{
    ox_list_remove(&w->request->admin->walks, &w->link);
    OX_MAP_EACH(&w->namespaces, node)
        walk_namespace_free(w, WALK_NAMESPACE_OF(node));
    for (size_t i = 0; i < w->count; i++)
        ox_free(w->names[i]);
    ox_free(w->names);
    json_decref(w->result);
    ox_free(w);
}

static ox_step walk_begin(struct ox_seq *s)
{
    struct admin_walk *w = walk_of(s);
    const struct ox_shard *sh = w->request->admin->shard;
    w->names = ox_calloc(ox_map_count(&sh->topics) + 1, sizeof *w->names);
    OX_MAP_EACH(&sh->topics, node)
        w->names[w->count++] = ox_strdup(CONTAINER_OF(node, struct ox_topic, by_name)->name.full);
    return admin_rest(&w->pause, s, walk_step, "walk_step");
}

static void walk_next(struct ox_admin *admin);

static void walk_done(struct ox_seq *s, enum ox_err err)
{
    struct admin_walk *w = walk_of(s);
    struct ox_admin *admin = w->request->admin;
    (void)err; // no step fails
    w->done(w);
    walk_free(w);
    walk_next(admin);
}

// The client may still want its answer; but as a rule it has hung up, and its connection, which is not read meanwhile, does not tell.
static bool walk_left(struct admin_walk *w)
{
    const struct http_connection *c = w->request->connection;
    w->left = w->left || (c && ox_stream_peer_ended(c->stream));
    return w->left;
}

// Who comes next: the first one whose client is there, else the first one. NULL: nobody waits.
static struct admin_walk *walk_first(struct ox_admin *admin)
{
    OX_LIST_EACH(&admin->walks, link) {
        struct admin_walk *w = CONTAINER_OF(link, struct admin_walk, link);
        if (!walk_left(w))
            return w;
    }
    struct ox_link *link = ox_list_first(&admin->walks);
    return link ? CONTAINER_OF(link, struct admin_walk, link) : NULL;
}

// Begins a walk that waits. One at a time: many at once would fill turn and memory. None for a client that has gone, nor while the broker ends.
static void walk_next(struct ox_admin *admin)
{
    for (struct admin_walk *w; (w = walk_first(admin)) != NULL;) {
        if (w->request->connection && !admin->draining) {
            ox_seq_start(&w->seq, admin->shard->loop, "admin.walk", walk_begin, walk_done);
            return;
        }
        admin_fail(w->request, HTTP_SERVICE_UNAVAILABLE, "the broker is ending");
        walk_free(w);
    }
}

struct admin_walk *walk_new(struct admin_request *r, void (*done)(struct admin_walk *w))
{
    struct admin_walk *w = ox_malloc(sizeof *w);
    *w = (struct admin_walk){.request = r, .done = done};
    return w;
}

void walk_start(struct admin_walk *w)
{
    struct ox_admin *admin = w->request->admin;
    bool is_first = ox_list_empty(&admin->walks);
    ox_list_push_back(&admin->walks, &w->link);
    if (is_first)
        walk_next(admin);
}

void walk_add(struct walk_sums *to, const struct walk_sums *from)
{
    to->topics += from->topics;
    to->logs += from->logs;
    to->producers += from->producers;
    to->consumers += from->consumers;
    to->subscriptions += from->subscriptions;
    to->messages_in += from->messages_in;
    to->bytes_in += from->bytes_in;
    to->messages_out += from->messages_out;
    to->bytes_out += from->bytes_out;
    to->backlog_entries += from->backlog_entries;
    to->storage_bytes += from->storage_bytes;
}

struct walk_sums walk_namespace_sums(const struct walk_namespace *ns)
{
    struct walk_sums sums = {0};
    OX_MAP_EACH(&ns->bundles, node)
        walk_add(&sums, &WALK_BUNDLE_OF(node)->sums);
    return sums;
}

struct walk_sums walk_all_sums(const struct admin_walk *w)
{
    struct walk_sums sums = {0};
    OX_MAP_EACH(&w->namespaces, node) {
        struct walk_sums one = walk_namespace_sums(WALK_NAMESPACE_OF(node));
        walk_add(&sums, &one);
    }
    return sums;
}
