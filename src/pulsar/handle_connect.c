// handle_connect.c - CONNECT: versions and features.
#include "base/mem.h"
#include "base/version.h"
#include "pulsar/handlers.h"

enum ox_err handle_connect(struct session *s, const void *command)
{
    const Oxpb__CommandConnect *c = command;
    Oxpb__CommandConnected answer = OXPB__COMMAND_CONNECTED__INIT;
    Oxpb__FeatureFlags flags = OXPB__FEATURE_FLAGS__INIT;
    char version[] = "Oxbow " OX_VERSION;
    s->client_version = ox_strdup(c->client_version);
    s->protocol_version = OX_MIN(c->protocol_version, PROTOCOL_VERSION);
    s->state = SESSION_CONNECTED;
    flags.has_supports_topic_watchers = flags.supports_topic_watchers = 1;
    flags.has_supports_get_partitioned_metadata_without_auto_creation =
        flags.supports_get_partitioned_metadata_without_auto_creation = 1;
    answer.server_version = version;
    answer.has_protocol_version = 1;
    answer.protocol_version = s->protocol_version;
    answer.has_max_message_size = 1;
    answer.max_message_size = (int32_t)s->server->shard->config.message_bytes_max;
    answer.feature_flags = &flags;
    session_command(s, OXPB__BASE_COMMAND__TYPE__CONNECTED, &answer.base);
    ox_debug(s->server->shard->log, "session.connected", "peer=%s protocol=%d", s->peer, (int)s->protocol_version);
    return OX_OK;
}
