// handle_lookup.c - LOOKUP: who serves a topic. This broker serves all, so it answers with its own address.
#include "pulsar/handlers.h"

struct lookup {
    struct request request;
    struct ox_namespace_get ns;
    struct ox_partitions_get partitions;
    uint64_t since_ns; // when it came
};

static void lookup_answer(struct session *s, uint64_t request_id, enum ox_err err, const char *topic, const char *why)
{
    Oxpb__CommandLookupTopicResponse answer = OXPB__COMMAND_LOOKUP_TOPIC_RESPONSE__INIT;
    char text[1024];
    answer.request_id = request_id;
    answer.has_response = 1;
    s->server->lookup_answers.value += !err;
    s->server->lookup_failures.value += err != OX_OK;
    if (err) {
        error_text(text, sizeof text, err, topic, why);
        answer.response = OXPB__COMMAND_LOOKUP_TOPIC_RESPONSE__LOOKUP_TYPE__Failed;
        answer.has_error = 1;
        answer.error = server_error(err);
        answer.message = text;
    } else {
        answer.response = OXPB__COMMAND_LOOKUP_TOPIC_RESPONSE__LOOKUP_TYPE__Connect;
        answer.broker_service_url = (char *)(uintptr_t)s->server->shard->config.service_url;
        answer.has_authoritative = answer.authoritative = 1;
    }
    session_command(s, OXPB__BASE_COMMAND__TYPE__LOOKUP_RESPONSE, &answer.base);
}

static void lookup_end(struct lookup *l, enum ox_err err)
{
    struct ox_pulsar *p = l->request.session->server;
    p->lookups_pending.value--;
    ox_summary_add(&p->lookup_latency, (ox_now_ns(p->shard->loop) - l->since_ns) / 1000);
    if (session_alive(l->request.session))
        lookup_answer(l->request.session, l->request.id, err, l->request.name.full, NULL);
    request_free(&l->request);
}

static void lookup_partitions_got(struct ox_op *op)
{
    lookup_end(CONTAINER_OF(op, struct lookup, partitions.op), op->err);
}

// Where topics are not made by themselves, one that is nowhere is not found here already.
static void lookup_namespace_got(struct ox_op *op)
{
    struct lookup *l = CONTAINER_OF(op, struct lookup, ns.op);
    struct ox_shard *sh = l->request.session->server->shard;
    const struct ox_namespace_policies *ns = &l->ns.policies;
    bool automatic = ns->auto_topic_creation >= 0 ? ns->auto_topic_creation == 1 : sh->config.auto_topic_creation;
    if (op->err || automatic) {
        lookup_end(l, op->err);
        return;
    }
    ox_op_init(&l->partitions.op, sh->loop, lookup_partitions_got, "partitions.get");
    ox_partitions_get(sh, &l->partitions, &l->request.name);
}

enum ox_err handle_lookup(struct session *s, const void *command)
{
    const Oxpb__CommandLookupTopic *c = command;
    struct ox_topic_name name;
    if (ox_topic_name_parse(&name, c->topic) != OX_OK) {
        lookup_answer(s, c->request_id, OX_E_INVALID_TOPIC_NAME, c->topic, NULL);
        return OX_OK;
    }
    if (c->advertised_listener_name && *c->advertised_listener_name) {
        lookup_answer(s, c->request_id, OX_E_NOT_OWNER, c->advertised_listener_name, "the broker does not have this listener");
        ox_topic_name_fini(&name);
        return OX_OK;
    }
    struct lookup *l = request_new(s, sizeof *l, c->request_id);
    l->request.name = name;
    l->since_ns = ox_now_ns(s->stream->loop);
    s->server->lookups_pending.value++;
    ox_op_init(&l->ns.op, s->stream->loop, lookup_namespace_got, "namespace.get");
    ox_namespace_get(s->server->shard, &l->ns, name.ns);
    return OX_OK;
}
