// session_write.c - answers and messages of a turn, gathered into few slices and written at its end.
#include "base/mem.h"
#include "pulsar/session.h"

#define CLOG_FACTOR 4u // a client whose unread answers pass the high mark so many times is not read any more

void session_write(struct session *s, struct ox_buf give_frame)
{
    if (s->state == SESSION_ENDED) {
        ox_buf_unref(&give_frame);
        return;
    }
    s->out_bytes += give_frame.len;
    if (s->out_count && ox_buf_extend(&s->out[s->out_count - 1], give_frame))
        return;
    if (s->out_count == OX_COUNT(s->out))
        session_flush(s);
    if (s->out_count == 0)
        ox_turn_end(s->stream->loop, &s->flush);
    s->out[s->out_count++] = give_frame;
}

void session_discard(struct session *s)
{
    for (size_t i = 0; i < s->out_count; i++)
        ox_buf_unref(&s->out[i]);
    s->out_count = 0;
    s->out_bytes = 0;
}

void session_flush(struct session *s)
{
    if (s->out_count == 0)
        return;
    ox_stream_write(s->stream, s->out, s->out_count);
    session_discard(s);
    if (s->stream->queued_bytes > CLOG_FACTOR * s->stream->high_bytes)
        s->clogged = true;
    session_throttle(s);
}

bool session_ready(struct session *s)
{
    // Right at the mark there is room for one more: only beyond it the stream will say when it has drained.
    bool ready =
        session_alive(s) && !s->stream->above_high && s->stream->queued_bytes + s->out_bytes <= s->stream->high_bytes;
    if (!ready)
        s->starved = true;
    return ready;
}

void session_writable(struct session *s)
{
    s->clogged = false;
    s->starved = false;
    OX_MAP_EACH(&s->consumers, n) {
        struct session_consumer *sc = CONTAINER_OF(n, struct session_consumer, node);
        if (sc->consumer)
            ox_consumer_writable(sc->consumer);
    }
    session_throttle(s);
}

void session_success(struct session *s, uint64_t request_id)
{
    session_write(s, ox_encode_success(&s->encoder, request_id));
}

void session_server_error(struct session *s, uint64_t request_id, Oxpb__ServerError error, const char *text)
{
    session_write(s, ox_encode_error(&s->encoder, request_id, error, text));
}

void session_error(struct session *s, uint64_t request_id, enum ox_err err, const char *what, const char *why)
{
    char text[1024];
    error_text(text, sizeof text, err, what, why);
    session_server_error(s, request_id, server_error(err), text);
}

void session_command(struct session *s, Oxpb__BaseCommand__Type type, const ProtobufCMessage *sub)
{
    session_write(s, ox_command_pack_sub(type, sub));
}
