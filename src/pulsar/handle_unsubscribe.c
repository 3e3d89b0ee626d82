// handle_unsubscribe.c - UNSUBSCRIBE: removes the consumer's subscription.
#include "pulsar/handlers.h"

struct unsubscribing {
    struct request request;
    struct ox_unsubscribe unsubscribe;
};

static void unsubscribe_done(struct ox_op *op)
{
    struct unsubscribing *u = CONTAINER_OF(op, struct unsubscribing, unsubscribe.op);
    if (op->err)
        request_error(&u->request, op->err, NULL);
    else if (session_alive(u->request.session))
        session_success(u->request.session, u->request.id);
    request_free(&u->request);
}

enum ox_err handle_unsubscribe(struct session *s, const void *command)
{
    const Oxpb__CommandUnsubscribe *c = command;
    struct ox_consumer *consumer = session_open_consumer(s, c->consumer_id);
    if (!consumer) {
        session_server_error(s, c->request_id, OXPB__SERVER_ERROR__MetadataError, "Consumer not found");
        return OX_OK;
    }
    struct unsubscribing *u = request_new(s, sizeof *u, c->request_id);
    u->unsubscribe.force = c->force;
    ox_op_init(&u->unsubscribe.op, s->stream->loop, unsubscribe_done, "subscription.unsubscribe");
    ox_subscription_unsubscribe(consumer->subscription, &u->unsubscribe, consumer);
    return OX_OK;
}
