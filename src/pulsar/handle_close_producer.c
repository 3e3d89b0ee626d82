// handle_close_producer.c - CLOSE_PRODUCER: the receipts of what was sent come first, then it detaches; one that is unknown is closed already.
#include "pulsar/handlers.h"

struct closing {
    struct request request;
    struct ox_op drain;
    uint64_t producer_id;
};

static void closing_drained(struct ox_op *op)
{
    struct closing *c = CONTAINER_OF(op, struct closing, drain);
    struct session *s = c->request.session;
    if (session_alive(s)) {
        struct session_producer *sp = session_find_producer(s, c->producer_id);
        if (sp && sp->producer && sp->closing)
            session_close_producer(sp);
        session_success(s, c->request.id);
    }
    request_free(&c->request);
}

static void closing_start(struct session *s, struct session_producer *sp, uint64_t request_id)
{
    struct closing *c = request_new(s, sizeof *c, request_id);
    c->producer_id = sp->id;
    sp->closing = true;
    ox_op_init(&c->drain, s->stream->loop, closing_drained, "producer.drain");
    ox_producer_drain(sp->producer, &c->drain);
}

enum ox_err handle_close_producer(struct session *s, const void *command)
{
    const Oxpb__CommandCloseProducer *c = command;
    struct session_producer *sp = session_find_producer(s, c->producer_id);
    if (sp && sp->producer && !sp->closing) {
        closing_start(s, sp, c->request_id);
        return OX_OK;
    }
    if (sp && !sp->producer)
        session_cancel_producer(sp);
    session_success(s, c->request_id);
    return OX_OK;
}
