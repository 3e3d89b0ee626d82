// stream.c - the stream port's thin dispatch, and the bookkeeping of queued bytes that bodies share.
#include "io/stream.h"

#include "base/assert.h"
#include "base/limits.h"

void ox_stream_init(struct ox_stream *s, const struct ox_stream_body *body, struct ox_loop *loop)
{
    *s = (struct ox_stream){
        .body = body, .loop = loop, .high_bytes = OX_CONN_OUT_BYTES_HIGH, .low_bytes = OX_CONN_OUT_BYTES_LOW};
}

void ox_stream_queued(struct ox_stream *s, size_t queued_bytes)
{
    s->queued_bytes = queued_bytes;
    if (queued_bytes > s->high_bytes)
        s->above_high = true;
}

bool ox_stream_drained(struct ox_stream *s, size_t queued_bytes)
{
    s->queued_bytes = queued_bytes;
    if (!s->above_high || queued_bytes >= s->low_bytes)
        return false;
    s->above_high = false;
    return true;
}

void ox_stream_write(struct ox_stream *s, const struct ox_buf *bufs, size_t n)
{
    s->body->write(s, bufs, n);
}

void ox_stream_pause(struct ox_stream *s)
{
    s->body->pause(s);
}

void ox_stream_resume(struct ox_stream *s)
{
    s->body->resume(s);
}

bool ox_stream_peer_ended(struct ox_stream *s)
{
    return s->body->peer_ended(s);
}

void ox_stream_close(struct ox_stream *s)
{
    s->body->close(s);
}

void ox_stream_abort(struct ox_stream *s, enum ox_err err)
{
    s->body->abort(s, err);
}

enum ox_err ox_net_listen(struct ox_net *net, const char *host, uint16_t port, struct ox_listener **ret)
{
    if (net->loop->dead)
        return OX_E_SHUTDOWN;
    return net->body->listen(net, host, port, ret);
}

void ox_net_unlisten(struct ox_listener *l)
{
    l->net->body->unlisten(l);
}

void ox_listener_pause(struct ox_listener *l)
{
    l->net->body->hold(l, true);
}

void ox_listener_resume(struct ox_listener *l)
{
    l->net->body->hold(l, false);
}

void ox_net_connect(struct ox_net *net, struct ox_op *op, const char *host, uint16_t port, struct ox_stream **ret)
{
    if (!net->loop->dead) {
        net->body->connect(net, op, host, port, ret);
        return;
    }
    ox_op_begin(op);
    ox_op_finish(op, OX_E_SHUTDOWN);
}
