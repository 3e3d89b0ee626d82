// handle_close_producer.c - CLOSE_PRODUCER: detaches; one that is unknown is closed already.
#include "pulsar/handlers.h"

enum ox_err handle_close_producer(struct session *s, const void *command)
{
    const Oxpb__CommandCloseProducer *c = command;
    struct session_producer *sp = session_find_producer(s, c->producer_id);
    if (sp && sp->producer)
        session_close_producer(sp);
    else if (sp)
        sp->canceled = true;
    session_success(s, c->request_id);
    return OX_OK;
}
