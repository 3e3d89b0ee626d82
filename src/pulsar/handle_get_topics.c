// handle_get_topics.c - GET_TOPICS_OF_NAMESPACE: names, and a hash that tells whether anything has changed. Patterns are the client's to apply (filtered=false).
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "pulsar/handlers.h"

struct get_topics {
    struct request request;
    struct ox_topics_list list;
    char *hash; // what the client knows, or NULL
};

// CRC-32C of the sorted names joined by commas, its bytes in hexadecimal, the lowest first.
static void topics_hash(const struct ox_topics_list *l, char out[9])
{
    uint32_t crc = 0;
    for (size_t i = 0; i < l->count; i++) {
        if (i)
            crc = ox_crc32c(crc, ",", 1);
        crc = ox_crc32c(crc, l->names[i], strlen(l->names[i]));
    }
    snprintf(out, 9, "%08x", __builtin_bswap32(crc));
}

static void topics_answer(const struct get_topics *g)
{
    Oxpb__CommandGetTopicsOfNamespaceResponse answer = OXPB__COMMAND_GET_TOPICS_OF_NAMESPACE_RESPONSE__INIT;
    char hash[9];
    topics_hash(&g->list, hash);
    bool changed = !g->hash || strcmp(g->hash, hash) != 0;
    answer.request_id = g->request.id;
    answer.topics_hash = hash;
    answer.has_changed = answer.has_filtered = 1;
    answer.changed = changed;
    if (changed) {
        answer.n_topics = g->list.count;
        answer.topics = g->list.names;
    }
    session_command(g->request.session, OXPB__BASE_COMMAND__TYPE__GET_TOPICS_OF_NAMESPACE_RESPONSE, &answer.base);
}

static void topics_free(struct get_topics *g)
{
    ox_topics_list_fini(&g->list);
    ox_free(g->hash);
    request_free(&g->request);
}

static void topics_listed(struct ox_op *op)
{
    struct get_topics *g = CONTAINER_OF(op, struct get_topics, list.op);
    if (op->err && op->err != OX_E_NAMESPACE_NOT_FOUND)
        request_error(&g->request, op->err, NULL);
    else if (session_alive(g->request.session))
        topics_answer(g);
    topics_free(g);
}

enum ox_err handle_get_topics(struct session *s, const void *command)
{
    const Oxpb__CommandGetTopicsOfNamespace *c = command;
    struct get_topics *g = request_new(s, sizeof *g, c->request_id);
    g->hash = c->topics_hash ? ox_strdup(c->topics_hash) : NULL;
    if (c->mode == OXPB__COMMAND_GET_TOPICS_OF_NAMESPACE__MODE__NON_PERSISTENT) {
        topics_answer(g);
        topics_free(g);
        return OX_OK;
    }
    ox_op_init(&g->list.op, s->stream->loop, topics_listed, "topics.list");
    ox_topics_list(s->server->shard, &g->list, c->namespace_);
    return OX_OK;
}

enum ox_err handle_watch_topics(struct session *s, const void *command)
{
    const Oxpb__CommandWatchTopicList *c = command;
    session_error(s, c->request_id, OX_E_UNSUPPORTED, c->namespace_,
                  "watching lists of topics is not supported: ask again from time to time");
    return OX_OK;
}

enum ox_err handle_watch_topics_close(struct session *s, const void *command)
{
    const Oxpb__CommandWatchTopicListClose *c = command;
    session_success(s, c->request_id);
    return OX_OK;
}
