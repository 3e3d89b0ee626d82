// handle_schema.c - GET_SCHEMA, GET_OR_CREATE_SCHEMA: schemas are not kept; messages are bytes.
#include "pulsar/handlers.h"

enum ox_err handle_get_schema(struct session *s, const void *command)
{
    const Oxpb__CommandGetSchema *c = command;
    Oxpb__CommandGetSchemaResponse answer = OXPB__COMMAND_GET_SCHEMA_RESPONSE__INIT;
    char text[] = "Topic not found or no-schema";
    struct ox_topic_name name = {0};
    answer.request_id = c->request_id;
    answer.has_error_code = 1;
    answer.error_code =
        ox_topic_name_parse(&name, c->topic) ? OXPB__SERVER_ERROR__InvalidTopicName : OXPB__SERVER_ERROR__TopicNotFound;
    answer.error_message = text;
    ox_topic_name_fini(&name);
    session_command(s, OXPB__BASE_COMMAND__TYPE__GET_SCHEMA_RESPONSE, &answer.base);
    return OX_OK;
}

enum ox_err handle_get_or_create_schema(struct session *s, const void *command)
{
    const Oxpb__CommandGetOrCreateSchema *c = command;
    Oxpb__CommandGetOrCreateSchemaResponse answer = OXPB__COMMAND_GET_OR_CREATE_SCHEMA_RESPONSE__INIT;
    char text[] = "schemas are not kept by this broker: send bytes";
    answer.request_id = c->request_id;
    if (c->schema->type == OXPB__SCHEMA__TYPE__None) {
        answer.has_schema_version = 1;
    } else {
        answer.has_error_code = 1;
        answer.error_code = OXPB__SERVER_ERROR__NotAllowedError;
        answer.error_message = text;
    }
    session_command(s, OXPB__BASE_COMMAND__TYPE__GET_OR_CREATE_SCHEMA_RESPONSE, &answer.base);
    return OX_OK;
}
