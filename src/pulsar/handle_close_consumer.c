// handle_close_consumer.c - CLOSE_CONSUMER: detaches; one that is unknown is closed already.
#include "pulsar/handlers.h"

enum ox_err handle_close_consumer(struct session *s, const void *command)
{
    const Oxpb__CommandCloseConsumer *c = command;
    struct session_consumer *sc = session_find_consumer(s, c->consumer_id);
    if (sc && sc->consumer) {
        ox_consumer_close(sc->consumer);
        session_drop_consumer(sc);
    } else if (sc) {
        sc->canceled = true;
    }
    session_success(s, c->request_id);
    return OX_OK;
}
