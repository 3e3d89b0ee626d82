// session_read.c - the stream's side of a session: bytes into frames, back-pressure, the end.
#include "pulsar/session.h"

static struct session *session_of(struct ox_stream *stream)
{
    return stream->owner;
}

static bool session_must_pause(const struct session *s)
{
    return s->blocked || s->clogged || s->yielded || s->requests >= s->server->config.requests_max;
}

static void session_schedule(struct session *s)
{
    if (ox_op_pending(&s->resume))
        return;
    session_hold(s);
    ox_op_begin(&s->resume);
    ox_op_finish(&s->resume, OX_OK);
}

void session_throttle(struct session *s)
{
    if (s->state == SESSION_ENDED)
        return;
    bool pause = session_must_pause(s);
    if (pause == s->paused)
        return;
    s->paused = pause;
    if (pause) {
        ox_stream_pause(s->stream);
        return;
    }
    ox_stream_resume(s->stream);
    s->read_ns = ox_now_ns(s->stream->loop);
    session_schedule(s);
}

void session_turn_over(struct ox_turn_hook *hook)
{
    struct session *s = CONTAINER_OF(hook, struct session, turn_over);
    s->turn_bytes = 0;
    s->yielded = false;
    session_throttle(s);
}

// A frame was handled: many in one go are for the next turn, so that nobody waits for a fast client.
static void session_count(struct session *s, size_t bytes)
{
    if (s->state == SESSION_ENDED)
        return;
    if (s->turn_bytes == 0)
        ox_turn_end(s->stream->loop, &s->turn_over);
    s->turn_bytes += bytes;
    if (s->turn_bytes < s->server->config.turn_bytes)
        return;
    s->yielded = true;
    session_throttle(s);
}

void session_parse(struct session *s)
{
    enum ox_err err = OX_OK;
    while (!err && s->state != SESSION_ENDED && !s->paused) {
        struct ox_buf frame;
        err = ox_frame_reader_next(&s->reader, &frame);
        if (err || frame.len == 0)
            break;
        size_t bytes = frame.len;
        err = session_dispatch(s, frame);
        ox_buf_unref(&frame);
        session_count(s, bytes);
    }
    if (!err)
        return;
    s->server->bad_frames.value++;
    session_end(s, ox_err_name(err));
}

static void session_space(struct ox_stream *stream, uint8_t **ret_data, size_t *ret_len)
{
    struct session *s = session_of(stream);
    if (s->paused || s->state == SESSION_ENDED) {
        *ret_len = 0;
        return;
    }
    size_t len;
    ox_frame_reader_space(&s->reader, ret_data, &len);
    if (len < *ret_len || *ret_len == 0)
        *ret_len = len;
}

static void session_seen(struct session *s)
{
    s->read_ns = ox_now_ns(s->stream->loop);
    s->pinged = false;
    if (ox_list_empty(&s->probes))
        return;
    ox_timer_stop(&s->probe);
    for (struct ox_link *l = ox_list_pop_front(&s->probes); l; l = ox_list_pop_front(&s->probes))
        ox_op_finish(CONTAINER_OF(l, struct ox_op, link), OX_OK);
}

static void session_filled(struct ox_stream *stream, size_t n)
{
    struct session *s = session_of(stream);
    if (s->state == SESSION_ENDED)
        return;
    ox_frame_reader_filled(&s->reader, n);
    session_seen(s);
    session_hold(s);
    session_parse(s);
    session_put(s);
}

static void session_can_write(struct ox_stream *stream)
{
    struct session *s = session_of(stream);
    if (s->state != SESSION_ENDED)
        session_writable(s);
}

static void session_closed(struct ox_stream *stream, enum ox_err err)
{
    session_lost(session_of(stream), ox_err_name(err));
}

const struct ox_stream_events session_events = {
    .space = session_space, .filled = session_filled, .writable = session_can_write, .closed = session_closed};
