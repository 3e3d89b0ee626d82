// handle_partition_metadata.c - PARTITIONED_METADATA: how many partitions a topic has.
#include "pulsar/handlers.h"

struct partition_metadata {
    struct request request;
    struct ox_partitions_get get;
};

static void metadata_answer(struct session *s, uint64_t request_id, enum ox_err err, const char *topic, uint32_t partitions)
{
    Oxpb__CommandPartitionedTopicMetadataResponse answer = OXPB__COMMAND_PARTITIONED_TOPIC_METADATA_RESPONSE__INIT;
    char text[1024];
    answer.request_id = request_id;
    answer.has_response = 1;
    if (err) {
        error_text(text, sizeof text, err, topic, NULL);
        answer.response = OXPB__COMMAND_PARTITIONED_TOPIC_METADATA_RESPONSE__LOOKUP_TYPE__Failed;
        answer.has_error = 1;
        answer.error = server_error(err);
        answer.message = text;
    } else {
        answer.response = OXPB__COMMAND_PARTITIONED_TOPIC_METADATA_RESPONSE__LOOKUP_TYPE__Success;
        answer.has_partitions = 1;
        answer.partitions = partitions;
    }
    session_command(s, OXPB__BASE_COMMAND__TYPE__PARTITIONED_METADATA_RESPONSE, &answer.base);
}

static void metadata_got(struct ox_op *op)
{
    struct partition_metadata *m = CONTAINER_OF(op, struct partition_metadata, get.op);
    if (session_alive(m->request.session))
        metadata_answer(m->request.session, m->request.id, op->err, m->request.name.full, m->get.partitions);
    request_free(&m->request);
}

enum ox_err handle_partition_metadata(struct session *s, const void *command)
{
    const Oxpb__CommandPartitionedTopicMetadata *c = command;
    struct ox_topic_name name;
    if (ox_topic_name_parse(&name, c->topic) != OX_OK) {
        metadata_answer(s, c->request_id, OX_E_INVALID_TOPIC_NAME, c->topic, 0);
        return OX_OK;
    }
    struct partition_metadata *m = request_new(s, sizeof *m, c->request_id);
    m->request.name = name;
    m->get.create = c->metadata_auto_creation_enabled;
    ox_op_init(&m->get.op, s->stream->loop, metadata_got, "partitions.get");
    ox_partitions_get(s->server->shard, &m->get, &name);
    return OX_OK;
}
