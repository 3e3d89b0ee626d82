// handle_get_last_message_id.c - GET_LAST_MESSAGE_ID: the topic's last message, and how far the subscription has acknowledged.
#include "pulsar/handlers.h"

struct last_id {
    struct request request;
    struct ox_last_id get;
    struct ox_pos mark_delete;
    int32_t partition;
};

static void last_id_answer(const struct last_id *l)
{
    Oxpb__CommandGetLastMessageIdResponse answer = OXPB__COMMAND_GET_LAST_MESSAGE_ID_RESPONSE__INIT;
    Oxpb__MessageIdData last = OXPB__MESSAGE_ID_DATA__INIT, mark = OXPB__MESSAGE_ID_DATA__INIT;
    last.ledger_id = (uint64_t)l->get.pos.ledger;
    last.entry_id = (uint64_t)l->get.pos.entry;
    last.has_partition = last.has_batch_index = 1;
    last.partition = l->partition;
    last.batch_index = l->get.batch_index;
    mark.ledger_id = (uint64_t)l->mark_delete.ledger;
    mark.entry_id = (uint64_t)l->mark_delete.entry;
    answer.request_id = l->request.id;
    answer.last_message_id = &last;
    answer.consumer_mark_delete_position = &mark;
    session_command(l->request.session, OXPB__BASE_COMMAND__TYPE__GET_LAST_MESSAGE_ID_RESPONSE, &answer.base);
}

static void last_id_got(struct ox_op *op)
{
    struct last_id *l = CONTAINER_OF(op, struct last_id, get.op);
    if (op->err)
        request_error(&l->request, op->err, NULL);
    else if (session_alive(l->request.session))
        last_id_answer(l);
    request_free(&l->request);
}

enum ox_err handle_get_last_message_id(struct session *s, const void *command)
{
    const Oxpb__CommandGetLastMessageId *c = command;
    struct ox_consumer *consumer = session_open_consumer(s, c->consumer_id);
    if (!consumer) {
        session_server_error(s, c->request_id, OXPB__SERVER_ERROR__MetadataError, "Consumer not found");
        return OX_OK;
    }
    if (!consumer->subscription->cursor) {
        session_server_error(s, c->request_id, OXPB__SERVER_ERROR__UnknownError,
                             "a non-persistent topic keeps no message: it has no last one");
        return OX_OK;
    }
    struct last_id *l = request_new(s, sizeof *l, c->request_id);
    l->mark_delete = consumer->subscription->cursor->mark_delete;
    l->partition = consumer->topic->name.partition;
    l->get.read_compacted = consumer->read_compacted;
    ox_op_init(&l->get.op, s->stream->loop, last_id_got, "topic.last_id");
    ox_topic_last_id(consumer->topic, &l->get);
    return OX_OK;
}
