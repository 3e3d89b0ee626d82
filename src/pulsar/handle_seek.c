// handle_seek.c - SEEK: to an id or a time. The consumers of the subscription are closed first, then the request is answered.
#include "pulsar/handlers.h"

struct seeking {
    struct request request;
    struct ox_seek seek;
};

static void seek_done(struct ox_op *op)
{
    struct seeking *k = CONTAINER_OF(op, struct seeking, seek.op);
    if (op->err)
        request_error(&k->request, op->err, NULL);
    else if (session_alive(k->request.session))
        session_success(k->request.session, k->request.id);
    request_free(&k->request);
}

static void seek_fill(struct ox_seek *seek, const Oxpb__CommandSeek *c)
{
    seek->by_time = !c->message_id;
    seek->time_ms = c->message_publish_time;
    if (!c->message_id)
        return;
    seek->pos = (struct ox_pos){(int64_t)c->message_id->ledger_id, (int64_t)c->message_id->entry_id};
    seek->ack_set = (const uint64_t *)c->message_id->ack_set;
    seek->ack_words = c->message_id->n_ack_set;
}

enum ox_err handle_seek(struct session *s, const void *command)
{
    const Oxpb__CommandSeek *c = command;
    struct ox_consumer *consumer = session_open_consumer(s, c->consumer_id);
    if (!consumer) {
        session_server_error(s, c->request_id, OXPB__SERVER_ERROR__MetadataError, "Consumer not found");
        return OX_OK;
    }
    if (!c->message_id && !c->has_message_publish_time) {
        session_server_error(s, c->request_id, OXPB__SERVER_ERROR__MetadataError,
                             "a seek needs a message id or a publish time");
        return OX_OK;
    }
    struct seeking *k = request_new(s, sizeof *k, c->request_id);
    seek_fill(&k->seek, c);
    ox_op_init(&k->seek.op, s->stream->loop, seek_done, "subscription.seek");
    ox_subscription_seek(consumer->subscription, &k->seek);
    return OX_OK;
}
