// handle_ping.c - PING and PONG; that bytes came at all has been noted already.
#include "pulsar/handlers.h"

enum ox_err handle_ping(struct session *s, struct ox_buf sub, struct ox_buf body)
{
    (void)sub;
    (void)body;
    session_write(s, ox_encode_pong(&s->encoder));
    return OX_OK;
}

enum ox_err handle_pong(struct session *s, struct ox_buf sub, struct ox_buf body)
{
    (void)s;
    (void)sub;
    (void)body;
    return OX_OK;
}
