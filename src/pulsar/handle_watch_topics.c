// handle_watch_topics.c - WATCH_TOPIC_LIST and its end: the names that a pattern matches now, then what comes and goes.
#include <string.h>

#include "base/mem.h"
#include "pulsar/session_watch.h"

static void watcher_free(struct session_watcher *w)
{
    ox_topic_pattern_free(w->pattern);
    ox_free(w);
}

// Ends one that is open; one that is being opened ends with its request.
static void watcher_close(struct session_watcher *w)
{
    ox_map_remove(&w->session->watchers, &w->node);
    w->closed = true;
    if (w->opening)
        return;
    ox_topics_unwatch(&w->watch);
    watcher_free(w);
}

void session_watchers_close(struct session *s)
{
    OX_MAP_EACH(&s->watchers, n)
        watcher_close(CONTAINER_OF(n, struct session_watcher, node));
}

static void watcher_changed(struct ox_topics_watch *watch, char *const *added, size_t added_count, char *const *removed,
                            size_t removed_count)
{
    struct session_watcher *w = watch->owner;
    Oxpb__CommandWatchTopicUpdate update = OXPB__COMMAND_WATCH_TOPIC_UPDATE__INIT;
    char hash[9];
    ox_topics_hash(watch->names, watch->count, hash);
    update.watcher_id = w->id;
    update.n_new_topics = added_count;
    update.new_topics = (char **)(uintptr_t)added;
    update.n_deleted_topics = removed_count;
    update.deleted_topics = (char **)(uintptr_t)removed;
    update.topics_hash = hash;
    session_command(w->session, OXPB__BASE_COMMAND__TYPE__WATCH_TOPIC_UPDATE, &update.base);
}

static void watching_answer(const struct session_watcher *w)
{
    Oxpb__CommandWatchTopicListSuccess answer = OXPB__COMMAND_WATCH_TOPIC_LIST_SUCCESS__INIT;
    char hash[9];
    ox_topics_hash(w->watch.names, w->watch.count, hash);
    answer.request_id = w->opening->id;
    answer.watcher_id = w->id;
    answer.topics_hash = hash;
    if (strcmp(w->hash, hash) != 0) {
        answer.n_topic = w->watch.count;
        answer.topic = w->watch.names;
    }
    session_command(w->session, OXPB__BASE_COMMAND__TYPE__WATCH_TOPIC_LIST_SUCCESS, &answer.base);
}

// Names that the pattern gave up at might be missing: the client does better to look for itself.
static void watching_failed(struct session_watcher *w, enum ox_err err)
{
    if (err)
        request_error(w->opening, err, NULL);
    else
        session_server_error(w->session, w->opening->id, OXPB__SERVER_ERROR__InvalidTopicName,
                             "the topics pattern takes too much work to be evaluated by the broker");
    ox_map_remove(&w->session->watchers, &w->node);
    w->closed = true;
}

static void watching_opened(struct ox_op *op)
{
    struct session_watcher *w = CONTAINER_OF(op, struct session_watcher, watch.op);
    struct request *r = w->opening;
    if (!w->closed && (op->err || ox_topic_pattern_gave_up(w->pattern)))
        watching_failed(w, op->err);
    if (!w->closed)
        watching_answer(w);
    w->opening = NULL;
    if (w->closed) {
        ox_topics_unwatch(&w->watch);
        watcher_free(w);
    }
    request_free(r);
}

static struct session_watcher *watcher_find(struct session *s, uint64_t id)
{
    struct ox_map_node *n = ox_map_find_u64(&s->watchers, id);
    return n ? CONTAINER_OF(n, struct session_watcher, node) : NULL;
}

static struct session_watcher *watcher_new(struct session *s, const Oxpb__CommandWatchTopicList *c,
                                           struct ox_topic_pattern *take_pattern)
{
    struct session_watcher *w = ox_malloc(sizeof *w);
    w->session = s;
    w->id = c->watcher_id;
    w->pattern = w->watch.pattern = take_pattern;
    w->watch.changed = watcher_changed;
    w->watch.owner = w;
    w->opening = request_new(s, sizeof *w->opening, c->request_id);
    if (c->topics_hash && strlen(c->topics_hash) < sizeof w->hash)
        strcpy(w->hash, c->topics_hash);
    ox_map_put_u64(&s->watchers, &w->node, w->id);
    return w;
}

// Why a watcher is refused; NULL if it is not.
static const char *watching_refused(const struct session *s, const Oxpb__CommandWatchTopicList *c, Oxpb__ServerError *ret_error)
{
    const struct ox_broker_config *config = &s->server->shard->config;
    *ret_error = OXPB__SERVER_ERROR__NotAllowedError;
    if (!config->patterns_here)
        return "Unable to create topic list watcher: patterns are not evaluated by this broker "
               "(enableBrokerSideSubscriptionPatternEvaluation)";
    if (strlen(c->topics_pattern) > config->pattern_bytes_max)
        return "Unable to create topic list watcher: Pattern longer than maximum (subscriptionPatternMaxLength)";
    *ret_error = OXPB__SERVER_ERROR__TooManyRequests;
    return ox_map_count(&s->watchers) >= SESSION_WATCHERS_MAX ? "too many topic list watchers on one connection" : NULL;
}

enum ox_err handle_watch_topics(struct session *s, const void *command)
{
    const Oxpb__CommandWatchTopicList *c = command;
    struct ox_topic_pattern *pattern = NULL;
    char text[256];
    Oxpb__ServerError error;
    const char *why = watching_refused(s, c, &error);
    if (!why && ox_topic_pattern_new(c->topics_pattern, &pattern, text, sizeof text)) {
        why = text;
        error = OXPB__SERVER_ERROR__InvalidTopicName;
    }
    if (why) {
        session_server_error(s, c->request_id, error, why);
        return OX_OK;
    }
    struct session_watcher *there = watcher_find(s, c->watcher_id);
    if (there)
        watcher_close(there);
    struct session_watcher *w = watcher_new(s, c, pattern);
    ox_op_init(&w->watch.op, s->stream->loop, watching_opened, "topics.watch");
    ox_topics_watch(s->server->shard, &w->watch, c->namespace_);
    return OX_OK;
}

enum ox_err handle_watch_topics_close(struct session *s, const void *command)
{
    const Oxpb__CommandWatchTopicListClose *c = command;
    struct session_watcher *w = watcher_find(s, c->watcher_id);
    if (w)
        watcher_close(w);
    session_success(s, c->request_id);
    return OX_OK;
}
