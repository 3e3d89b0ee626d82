// handle_get_topics.c - GET_TOPICS_OF_NAMESPACE: names, those that a pattern matches, and a hash that tells whether anything has changed.
#include <string.h>

#include "broker/topic_list.h"
#include "pulsar/handlers.h"

struct get_topics {
    struct request request;
    struct ox_topics_list list;
    struct ox_topic_pattern *pattern; // or NULL: the client applies it
    char *hash;                       // what the client knows, or NULL
};

static void topics_answer(const struct get_topics *g)
{
    Oxpb__CommandGetTopicsOfNamespaceResponse answer = OXPB__COMMAND_GET_TOPICS_OF_NAMESPACE_RESPONSE__INIT;
    char hash[9];
    ox_topics_hash(g->list.names, g->list.count, hash);
    bool changed = !g->hash || strcmp(g->hash, hash) != 0;
    answer.request_id = g->request.id;
    answer.topics_hash = hash;
    answer.has_changed = answer.has_filtered = 1;
    answer.changed = changed;
    answer.filtered = g->list.filtered;
    if (changed) {
        answer.n_topics = g->list.count;
        answer.topics = g->list.names;
    }
    session_command(g->request.session, OXPB__BASE_COMMAND__TYPE__GET_TOPICS_OF_NAMESPACE_RESPONSE, &answer.base);
}

static void topics_listed(struct ox_op *op)
{
    struct get_topics *g = CONTAINER_OF(op, struct get_topics, list.op);
    if (op->err && op->err != OX_E_NAMESPACE_NOT_FOUND)
        request_error(&g->request, op->err, NULL);
    else if (session_alive(g->request.session))
        topics_answer(g);
    ox_topics_list_fini(&g->list);
    ox_topic_pattern_free(g->pattern);
    ox_free(g->hash);
    request_free(&g->request);
}

static enum ox_topics_mode topics_mode(Oxpb__CommandGetTopicsOfNamespace__Mode mode)
{
    switch (mode) {
    case OXPB__COMMAND_GET_TOPICS_OF_NAMESPACE__MODE__NON_PERSISTENT: return OX_TOPICS_NON_PERSISTENT;
    case OXPB__COMMAND_GET_TOPICS_OF_NAMESPACE__MODE__ALL: return OX_TOPICS_ALL;
    case OXPB__COMMAND_GET_TOPICS_OF_NAMESPACE__MODE__PERSISTENT:
    case _OXPB__COMMAND_GET_TOPICS_OF_NAMESPACE__MODE_IS_INT_SIZE: return OX_TOPICS_PERSISTENT;
    }
    return OX_TOPICS_PERSISTENT;
}

// The pattern to be applied here; a long one is left to the client.
static enum ox_err topics_pattern(const struct session *s, const char *text, struct ox_topic_pattern **ret, char *why,
                                  size_t n)
{
    const struct ox_broker_config *c = &s->server->shard->config;
    if (!text || !c->patterns_here || strlen(text) > c->pattern_bytes_max)
        return OX_OK;
    return ox_topic_pattern_new(text, ret, why, n);
}

enum ox_err handle_get_topics(struct session *s, const void *command)
{
    const Oxpb__CommandGetTopicsOfNamespace *c = command;
    struct ox_topic_pattern *pattern = NULL;
    char why[256];
    if (topics_pattern(s, c->topics_pattern, &pattern, why, sizeof why)) {
        session_server_error(s, c->request_id, OXPB__SERVER_ERROR__MetadataError, why);
        return OX_OK;
    }
    struct get_topics *g = request_new(s, sizeof *g, c->request_id);
    g->hash = c->topics_hash ? ox_strdup(c->topics_hash) : NULL;
    g->pattern = pattern;
    g->list.pattern = pattern;
    g->list.mode = topics_mode(c->mode);
    ox_op_init(&g->list.op, s->stream->loop, topics_listed, "topics.list");
    ox_topics_list(s->server->shard, &g->list, c->namespace_);
    return OX_OK;
}
