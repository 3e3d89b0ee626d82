// handle_redeliver.c - REDELIVER_UNACKNOWLEDGED_MESSAGES. For an unknown consumer it is ignored.
#include "pulsar/handlers.h"

enum ox_err handle_redeliver(struct session *s, const void *command)
{
    const Oxpb__CommandRedeliverUnacknowledgedMessages *c = command;
    struct ox_consumer *consumer = session_open_consumer(s, c->consumer_id);
    if (!consumer)
        return OX_OK;
    struct ox_pos *positions =
        ox_arena_calloc(&s->server->arena, c->n_message_ids ? c->n_message_ids : 1, sizeof *positions);
    if (!positions)
        return OX_E_TOO_BIG;
    for (size_t i = 0; i < c->n_message_ids; i++)
        positions[i] = (struct ox_pos){(int64_t)c->message_ids[i]->ledger_id, (int64_t)c->message_ids[i]->entry_id};
    ox_consumer_redeliver(consumer, c->has_consumer_epoch, c->consumer_epoch, positions, c->n_message_ids);
    return OX_OK;
}
