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
    if (p->sessions.count < p->config.connections_max) {
        session_accept(p, give_stream);
        return;
    }
    p->connections_refused.value++;
    ox_warn(p->shard->log, "session.refused", "peer=%s connections_max=%u", give_stream->peer, p->config.connections_max);
    give_stream->events = &refused_events;
    ox_stream_abort(give_stream, OX_E_LIMIT);
}

static void server_metrics(struct ox_pulsar *p)
{
    struct ox_metrics *m = p->shard->metrics;
    ox_metric_init(&p->connections, m, OX_METRIC_GAUGE, "pulsar_active_connections",
                   "Open connections of Pulsar clients.", NULL);
    ox_metric_init(&p->connections_total, m, OX_METRIC_COUNTER, "pulsar_connection_created_total_count",
                   "Connections accepted.", NULL);
    ox_metric_init(&p->connections_refused, m, OX_METRIC_COUNTER, "pulsar_connection_create_fail_count",
                   "Connections refused: too many.", NULL);
    ox_metric_init(&p->bad_frames, m, OX_METRIC_COUNTER, "oxbow_pulsar_bad_frames_total",
                   "Connections closed for what they sent.", NULL);
}

enum ox_err ox_pulsar_listen(struct ox_pulsar *p)
{
    enum ox_err err = ox_net_listen(p->net, p->config.host, p->config.port, &p->listener);
    if (err)
        return err;
    ox_list_init(&p->sessions);
    ox_list_init(&p->closing);
    ox_arena_init(&p->arena, ARENA_BYTES);
    server_metrics(p);
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
    ox_metric_fini(&p->connections);
    ox_metric_fini(&p->connections_total);
    ox_metric_fini(&p->connections_refused);
    ox_metric_fini(&p->bad_frames);
}
