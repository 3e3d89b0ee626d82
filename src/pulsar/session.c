// session.c - the life of a connection: accept, keep-alive, signs of life, end.
#include "pulsar/session_watch.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/mem.h"

const char *session_state_name(enum session_state state)
{
    static const char *const names[] = {
#define OX_X(name) [SESSION_##name] = #name,
        SESSION_STATES(OX_X)
#undef OX_X
    };
    return names[state];
}

void session_hold(struct session *s)
{
    OX_ASSERT(s->magic == SESSION_MAGIC);
    s->refs++;
}

void session_put(struct session *s)
{
    OX_ASSERT(s->magic == SESSION_MAGIC && s->refs > 0);
    if (--s->refs)
        return;
    struct ox_pulsar *server = s->server;
    OX_ASSERT(s->state == SESSION_ENDED && !s->stream);
    ox_list_remove(&server->closing, &s->link);
    ox_frame_reader_fini(&s->reader);
    ox_encoder_fini(&s->encoder);
    ox_free(s->client_version);
    s->magic = 0;
    ox_free(s);
    if (server->close_op && ox_list_empty(&server->closing)) {
        struct ox_op *op = server->close_op;
        server->close_op = NULL;
        ox_op_finish(op, OX_OK);
    }
}

static void session_flush_hook(struct ox_turn_hook *hook)
{
    struct session *s = CONTAINER_OF(hook, struct session, flush);
    session_flush(s);
    if (s->starved && !s->stream->above_high)
        session_writable(s);
}

static void session_resumed(struct ox_op *op)
{
    struct session *s = CONTAINER_OF(op, struct session, resume);
    session_parse(s);
    session_put(s);
}

// Why the connection must end; NULL if it need not.
static const char *session_dead(struct session *s, bool silent)
{
    if (s->state == SESSION_CONNECTING)
        return "no CONNECT in time";
    size_t queued = s->clogged ? s->stream->queued_bytes : 0;
    bool stuck = queued && queued == s->clogged_bytes;
    s->clogged_bytes = queued;
    if (stuck)
        return "the client does not read";
    return silent && s->pinged && !s->paused ? "no answer to a ping" : NULL;
}

static void session_keep_alive(struct ox_timer *timer)
{
    struct session *s = CONTAINER_OF(timer, struct session, keep_alive);
    uint64_t interval = s->server->config.keep_alive_ns;
    bool silent = ox_now_ns(s->stream->loop) - s->read_ns >= interval;
    const char *why = session_dead(s, silent);
    if (why) {
        session_end(s, why);
        return;
    }
    if (silent && !s->paused) {
        s->pinged = true;
        session_write(s, ox_encode_ping(&s->encoder));
        session_flush(s);
        ox_frame_reader_idle(&s->reader);
        ox_encoder_fini(&s->encoder);
    }
    ox_timer_start(&s->keep_alive, interval);
}

static void session_probe_failed(struct ox_timer *timer)
{
    session_end(CONTAINER_OF(timer, struct session, probe), "no sign of life when asked");
}

void session_probe(struct session *s, struct ox_op *op)
{
    ox_op_begin(op);
    if (s->state == SESSION_ENDED || s->paused) {
        ox_op_finish(op, s->state == SESSION_ENDED ? OX_E_DISCONNECTED : OX_OK);
        return;
    }
    if (ox_list_empty(&s->probes)) {
        session_write(s, ox_encode_ping(&s->encoder));
        ox_timer_start(&s->probe, s->server->shard->config.probe_ns);
    }
    ox_list_push_back(&s->probes, &op->link);
}

void session_accept(struct ox_pulsar *server, struct ox_stream *give_stream)
{
    struct ox_loop *loop = give_stream->loop;
    struct session *s = ox_malloc(sizeof *s);
    s->magic = SESSION_MAGIC;
    s->server = server;
    s->stream = give_stream;
    s->state = SESSION_CONNECTING;
    s->refs = 1;
    s->read_ns = ox_now_ns(loop);
    snprintf(s->peer, sizeof s->peer, "%s", give_stream->peer);
    ox_frame_reader_init(&s->reader, server->shard->config.message_bytes_max + OX_FRAME_SLACK_BYTES, OX_COMMAND_BYTES_MAX);
    ox_list_init(&s->probes);
    s->flush.run = session_flush_hook;
    s->turn_over.run = session_turn_over;
    ox_op_init(&s->resume, loop, session_resumed, "session.resume");
    ox_timer_init(&s->keep_alive, loop, session_keep_alive);
    ox_timer_init(&s->probe, loop, session_probe_failed);
    ox_timer_start(&s->keep_alive, server->config.keep_alive_ns);
    ox_list_push_back(&server->sessions, &s->link);
    server->connections.value++;
    server->connections_accepted.value++;
    give_stream->owner = s;
    give_stream->events = &session_events;
    ox_debug(server->shard->log, "session.accepted", "peer=%s", s->peer);
}

static void session_set_ended(struct session *s, const char *why)
{
    ox_debug(s->server->shard->log, "session.ended", "peer=%s state=%s why=" OX_LOG_Q, s->peer,
             session_state_name(s->state), why);
    s->state = SESSION_ENDED;
    ox_list_remove(&s->server->sessions, &s->link);
    ox_list_push_back(&s->server->closing, &s->link);
    s->server->connections.value--;
    s->server->connections_closed.value++;
}

static void session_leave(struct session *s, const char *why)
{
    ox_turn_end_cancel(s->stream->loop, &s->flush);
    ox_turn_end_cancel(s->stream->loop, &s->turn_over);
    session_set_ended(s, why);
    ox_timer_stop(&s->keep_alive);
    ox_timer_stop(&s->probe);
    session_detach_all(s);
    session_watchers_close(s);
    for (struct ox_link *l = ox_list_pop_front(&s->probes); l; l = ox_list_pop_front(&s->probes))
        ox_op_finish(CONTAINER_OF(l, struct ox_op, link), OX_E_DISCONNECTED);
}

void session_end(struct session *s, const char *why)
{
    if (s->state == SESSION_ENDED)
        return;
    session_flush(s);
    session_leave(s, why);
    ox_stream_close(s->stream);
}

void session_lost(struct session *s, const char *why)
{
    session_discard(s);
    if (s->state != SESSION_ENDED)
        session_leave(s, why);
    s->stream = NULL;
    session_put(s);
}
