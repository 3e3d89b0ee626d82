// server.c - the listener: accepts connections up to a limit, closes them all at the end.
#include "base/assert.h"
#include "base/mem.h"
#include "pulsar/session.h"

#define ARENA_BYTES (4u * 1024 * 1024) // one command, unpacked

void ox_pulsar_config_init(struct ox_pulsar_config *c)
{
    *c = (struct ox_pulsar_config){.host = "127.0.0.1",
                                   .port = 6650,
                                   .connections_max = OX_CONNECTIONS_MAX,
                                   .keep_alive_ns = 30 * OX_SEC,
                                   .requests_max = 1000,
                                   .turn_bytes = OX_CONN_TURN_BYTES};
}

static void refused_space(struct ox_stream *s, uint8_t **ret_data, size_t *ret_len)
{
    (void)s;
    (void)ret_data;
    *ret_len = 0;
}

static void refused_filled(struct ox_stream *s, size_t n)
{
    (void)s;
    (void)n;
}

static void refused_writable(struct ox_stream *s)
{
    (void)s;
}

static void refused_closed(struct ox_stream *s, enum ox_err err)
{
    (void)s;
    (void)err;
}

static const struct ox_stream_events refused_events = {
    .space = refused_space, .filled = refused_filled, .writable = refused_writable, .closed = refused_closed};

static void server_accept(struct ox_listener *l, struct ox_stream *give_stream)
{
    struct ox_pulsar *p = l->owner;
    p->connections_total.value++;
    if (p->sessions.count < p->config.connections_max) {
        session_accept(p, give_stream);
        return;
    }
    p->connections_refused.value++;
    ox_warn(p->shard->log, "session.refused", "peer=%s connections_max=%u", give_stream->peer, p->config.connections_max);
    give_stream->events = &refused_events;
    ox_stream_abort(give_stream, OX_E_LIMIT);
}

struct server_metric {
    size_t offset;
    enum ox_metric_kind kind;
    bool connections; // it has the labels of Pulsar's figures about connections
    const char *name, *help;
};
#define METRIC(member, kind, connections, name, help)                     \
    {                                                                     \
        offsetof(struct ox_pulsar, member), kind, connections, name, help \
    }
static const struct server_metric server_metrics[] = {
    METRIC(connections, OX_METRIC_GAUGE, true, "pulsar_active_connections", "Open connections of Pulsar clients."),
    METRIC(connections_total, OX_METRIC_COUNTER, true, "pulsar_connection_created_total_count", "Connections that came."),
    METRIC(connections_accepted, OX_METRIC_COUNTER, true, "pulsar_connection_create_success_count",
           "Connections that were accepted."),
    METRIC(connections_refused, OX_METRIC_COUNTER, true, "pulsar_connection_create_fail_count",
           "Connections that were refused: too many."),
    METRIC(connections_closed, OX_METRIC_COUNTER, true, "pulsar_connection_closed_total_count", "Connections that ended."),
    METRIC(bad_frames, OX_METRIC_COUNTER, false, "oxbow_pulsar_bad_frames_total", "Connections closed for what they sent."),
    METRIC(lookups_pending, OX_METRIC_GAUGE, false, "pulsar_broker_lookup_pending_requests", "Lookups at work."),
    METRIC(lookup_answers, OX_METRIC_COUNTER, false, "pulsar_broker_lookup_answers_total",
           "Lookups that were answered with an address."),
    METRIC(lookup_failures, OX_METRIC_COUNTER, false, "pulsar_broker_lookup_failures_total", "Lookups that failed."),
    METRIC(lookup_redirects, OX_METRIC_COUNTER, false, "pulsar_broker_lookup_redirects_total",
           "Lookups that were sent to another broker: none, there is one."),
};

static struct ox_metric *server_metric(struct ox_pulsar *p, const struct server_metric *m)
{
    return (struct ox_metric *)(void *)((char *)p + m->offset);
}

static void server_metrics_init(struct ox_pulsar *p)
{
    static const char *const quantiles[] = {"0.5", "0.99", "0.999", "1.0", NULL};
    struct ox_metrics *registry = p->shard->metrics;
    OX_CLEANUP(ox_free_ptr)
    char *labels = ox_asprintf("broker=\"%s\",metric=\"broker_connection\"",
                               p->config.advertised ? p->config.advertised : p->config.host);
    for (size_t i = 0; i < OX_COUNT(server_metrics); i++) {
        const struct server_metric *m = &server_metrics[i];
        ox_metric_init(server_metric(p, m), registry, m->kind, m->name, m->help, m->connections ? labels : NULL);
    }
    ox_summary_init(&p->lookup_latency, registry, "pulsar_broker_lookup", "Milliseconds of lookups.", quantiles);
}

static void server_metrics_fini(struct ox_pulsar *p)
{
    for (size_t i = 0; i < OX_COUNT(server_metrics); i++)
        ox_metric_fini(server_metric(p, &server_metrics[i]));
    ox_summary_fini(&p->lookup_latency);
}

enum ox_err ox_pulsar_listen(struct ox_pulsar *p)
{
    enum ox_err err = ox_net_listen(p->net, p->config.host, p->config.port, &p->listener);
    if (err)
        return err;
    ox_list_init(&p->sessions);
    ox_list_init(&p->closing);
    ox_arena_init(&p->arena, ARENA_BYTES);
    server_metrics_init(p);
    p->port = p->listener->port;
    p->listener->owner = p;
    p->listener->accept = server_accept;
    ox_info(p->shard->log, "pulsar.listening", "host=%s port=%u", p->config.host, p->port);
    return OX_OK;
}

void ox_pulsar_unlisten(struct ox_pulsar *p)
{
    if (p->listener)
        ox_net_unlisten(p->listener);
    p->listener = NULL;
}

void ox_pulsar_close(struct ox_pulsar *p, struct ox_op *op)
{
    ox_op_begin(op);
    ox_pulsar_unlisten(p);
    OX_LIST_EACH(&p->sessions, l)
        session_end(CONTAINER_OF(l, struct session, link), "server closes");
    if (ox_list_empty(&p->closing))
        ox_op_finish(op, OX_OK);
    else
        p->close_op = op;
}

void ox_pulsar_fini(struct ox_pulsar *p)
{
    OX_ASSERT(!p->listener && ox_list_empty(&p->sessions) && ox_list_empty(&p->closing));
    ox_arena_fini(&p->arena);
    server_metrics_fini(p);
}
