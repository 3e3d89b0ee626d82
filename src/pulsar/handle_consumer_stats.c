// handle_consumer_stats.c - CONSUMER_STATS: a consumer's figures.
#include <stdio.h>
#include <time.h>

#include "pulsar/handlers.h"

static void stats_since(char *out, size_t n, uint64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    size_t len = strftime(out, n, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out + len, n - len, ".%03uZ", (unsigned)(ms % 1000));
}

static void stats_answer(struct session *s, uint64_t request_id, const struct ox_consumer *c)
{
    Oxpb__CommandConsumerStatsResponse a = OXPB__COMMAND_CONSUMER_STATS_RESPONSE__INIT;
    struct ox_subscription_stats stats;
    char since[48];
    stats_since(since, sizeof since, c->connected_ms);
    ox_subscription_stats(c->subscription, &stats);
    a.request_id = request_id;
    a.has_msg_rate_out = a.has_msg_throughput_out = a.has_msg_rate_redeliver = a.has_msg_rate_expired =
        a.has_message_ack_rate = 1;
    a.msg_rate_expired = c->subscription->expired_per_s;
    a.msg_rate_redeliver = c->again.messages_per_s;
    a.message_ack_rate = c->acks.messages_per_s;
    a.msg_rate_out = c->out.messages_per_s;
    a.msg_throughput_out = c->out.bytes_per_s;
    a.consumer_name = c->name;
    a.blocked_consumer_on_unacked_msgs = c->held_back;
    a.has_available_permits = a.has_unacked_messages = a.has_blocked_consumer_on_unacked_msgs = a.has_msg_backlog = 1;
    a.available_permits = (uint64_t)c->permits;
    a.unacked_messages = c->pending ? c->unacked : stats.unacked;
    a.msg_backlog = stats.backlog_entries;
    a.address = (char *)(uintptr_t)c->peer;
    a.connected_since = since;
    a.type = (char *)(uintptr_t)ox_sub_type_name(c->subscription->type);
    session_command(s, OXPB__BASE_COMMAND__TYPE__CONSUMER_STATS_RESPONSE, &a.base);
}

enum ox_err handle_consumer_stats(struct session *s, const void *command)
{
    const Oxpb__CommandConsumerStats *c = command;
    struct ox_consumer *consumer = session_open_consumer(s, c->consumer_id);
    if (consumer) {
        stats_answer(s, c->request_id, consumer);
        return OX_OK;
    }
    Oxpb__CommandConsumerStatsResponse a = OXPB__COMMAND_CONSUMER_STATS_RESPONSE__INIT;
    char text[] = "Consumer not found";
    a.request_id = c->request_id;
    a.has_error_code = 1;
    a.error_code = OXPB__SERVER_ERROR__ConsumerNotFound;
    a.error_message = text;
    session_command(s, OXPB__BASE_COMMAND__TYPE__CONSUMER_STATS_RESPONSE, &a.base);
    return OX_OK;
}
