// handle_flow.c - FLOW: permits. For an unknown consumer it is ignored; none at all is a broken client.
#include "pulsar/handlers.h"

enum ox_err handle_flow(struct session *s, struct ox_buf sub, struct ox_buf body)
{
    struct ox_command_flow c;
    (void)body;
    enum ox_err err = ox_command_flow_decode(sub, &c);
    if (err)
        return err;
    struct ox_consumer *consumer = session_open_consumer(s, c.consumer_id);
    return consumer ? ox_consumer_flow(consumer, c.permits) : OX_OK;
}
