// dispatch.c - the table of commands: which handler, decoded how, allowed when.
#include "pulsar/handlers.h"

#define COMMAND_TYPES 80

struct command {
    const char *name; // NULL: not a command that clients send
    enum ox_err (*raw)(struct session *s, struct ox_buf sub, struct ox_buf body);
    enum ox_err (*handle)(struct session *s, const void *command);
    const ProtobufCMessageDescriptor *type;
};

#define TYPE(name) OXPB__BASE_COMMAND__TYPE__##name
#define RAW(NAME, fn) [TYPE(NAME)] = {.name = #NAME, .raw = (fn)}
#define COMMAND(NAME, fn, message) \
    [TYPE(NAME)] = {.name = #NAME, .handle = (fn), .type = &oxpb__command_##message##__descriptor}

static const struct command commands[COMMAND_TYPES] = {
    COMMAND(CONNECT, handle_connect, connect),
    RAW(SEND, handle_send),
    RAW(ACK, handle_ack),
    RAW(FLOW, handle_flow),
    RAW(PING, handle_ping),
    RAW(PONG, handle_pong),
    COMMAND(PARTITIONED_METADATA, handle_partition_metadata, partitioned_topic_metadata),
    COMMAND(LOOKUP, handle_lookup, lookup_topic),
    COMMAND(PRODUCER, handle_producer, producer),
    COMMAND(CLOSE_PRODUCER, handle_close_producer, close_producer),
    COMMAND(SUBSCRIBE, handle_subscribe, subscribe),
    COMMAND(CLOSE_CONSUMER, handle_close_consumer, close_consumer),
    COMMAND(UNSUBSCRIBE, handle_unsubscribe, unsubscribe),
    COMMAND(REDELIVER_UNACKNOWLEDGED_MESSAGES, handle_redeliver, redeliver_unacknowledged_messages),
    COMMAND(SEEK, handle_seek, seek),
    COMMAND(GET_LAST_MESSAGE_ID, handle_get_last_message_id, get_last_message_id),
    COMMAND(CONSUMER_STATS, handle_consumer_stats, consumer_stats),
    COMMAND(GET_TOPICS_OF_NAMESPACE, handle_get_topics, get_topics_of_namespace),
    COMMAND(WATCH_TOPIC_LIST, handle_watch_topics, watch_topic_list),
    COMMAND(WATCH_TOPIC_LIST_CLOSE, handle_watch_topics_close, watch_topic_list_close),
    COMMAND(GET_SCHEMA, handle_get_schema, get_schema),
    COMMAND(GET_OR_CREATE_SCHEMA, handle_get_or_create_schema, get_or_create_schema),
    COMMAND(TC_CLIENT_CONNECT_REQUEST, handle_tc_client_connect, tc_client_connect_request),
    COMMAND(NEW_TXN, handle_new_txn, new_txn),
    COMMAND(ADD_PARTITION_TO_TXN, handle_add_partition_to_txn, add_partition_to_txn),
    COMMAND(ADD_SUBSCRIPTION_TO_TXN, handle_add_subscription_to_txn, add_subscription_to_txn),
    COMMAND(END_TXN, handle_end_txn, end_txn),
    COMMAND(END_TXN_ON_PARTITION, handle_end_txn_on_partition, end_txn_on_partition),
    COMMAND(END_TXN_ON_SUBSCRIPTION, handle_end_txn_on_subscription, end_txn_on_subscription),
};

// CONNECT comes first and once; nothing but PING and PONG comes before it.
static bool command_is_in_place(const struct session *s, uint32_t type)
{
    if (type == TYPE(PING) || type == TYPE(PONG))
        return true;
    return (type == TYPE(CONNECT)) == (s->state == SESSION_CONNECTING);
}

static enum ox_err command_unpack(struct session *s, const struct command *c, struct ox_buf sub)
{
    void *message;
    struct ox_arena *arena = &s->server->arena;
    ox_arena_reset(arena);
    enum ox_err err = ox_proto_unpack(c->type, arena, sub.data, sub.len, &message);
    return err ? err : c->handle(s, message);
}

enum ox_err session_dispatch(struct session *s, struct ox_buf frame)
{
    struct ox_buf command, body, sub;
    uint32_t type;
    enum ox_err err = ox_frame_split(frame, &command, &body);
    if (!err)
        err = ox_command_peek(command, &type, &sub);
    if (err)
        return err;
    const struct command *c = type < COMMAND_TYPES ? &commands[type] : NULL;
    if (!c || !c->name || !command_is_in_place(s, type)) {
        ox_info(s->server->shard->log, "session.command.refused", "peer=%s type=%u state=%s", s->peer, type,
                session_state_name(s->state));
        return OX_E_UNSUPPORTED;
    }
    return c->raw ? c->raw(s, sub, body) : command_unpack(s, c, sub);
}
