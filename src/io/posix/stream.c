// stream.c - a TCP stream: reads straight into the owner's space, vectored writes at the turn's end, an orderly close.
#include "io/posix/stream.h"

#include <poll.h>
#include <stdio.h>

#include "base/assert.h"
#include "io/posix/posix_int.h"

#define STREAM_PARTS_MAX 256 // parts of one writev
#define STREAM_LINGER_NS OX_SEC
#define STREAM_EAGER_BYTES 65536u // so much is not kept until the turn's end: the peer works on it meanwhile

_Static_assert(sizeof(uv_buf_t) == sizeof(struct iovec), "libuv's buffers are iovecs on POSIX systems");

static struct posix_stream *stream_of(struct ox_stream *s)
{
    return CONTAINER_OF(s, struct posix_stream, stream);
}

static struct posix_stream *stream_of_handle(void *handle)
{
    return CONTAINER_OF((uv_tcp_t *)handle, struct posix_stream, tcp);
}

static void stream_closed(uv_handle_t *handle)
{
    struct posix_stream *s = stream_of_handle(handle);
    if (!s->told && s->stream.events)
        s->stream.events->closed(&s->stream, s->err);
    ox_outq_fini(&s->out);
    ox_free(s);
}

void posix_stream_kill(struct posix_stream *s, enum ox_err err)
{
    if (s->state == STREAM_DEAD)
        return;
    s->state = STREAM_DEAD;
    s->err = err;
    ox_timer_stop(&s->linger);
    ox_turn_end_cancel(s->stream.loop, &s->turn);
    if (!s->asking)
        uv_close((uv_handle_t *)&s->tcp, stream_closed);
}

// Where bytes go that nobody wants any more.
static uv_buf_t stream_scratch(struct posix_stream *s)
{
    struct posix_loop *p = posix_of(s->stream.loop);
    if (!p->scratch)
        p->scratch = ox_malloc(POSIX_SCRATCH_BYTES);
    return uv_buf_init(p->scratch, POSIX_SCRATCH_BYTES);
}

static void stream_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)suggested;
    struct posix_stream *s = stream_of_handle(handle);
    uint8_t *data = NULL;
    size_t len = 0;
    if (s->state == STREAM_DRAINING) {
        *buf = stream_scratch(s);
        return;
    }
    s->asking = true;
    if (s->state == STREAM_OPEN)
        s->stream.events->space(&s->stream, &data, &len);
    s->asking = false;
    if (s->state != STREAM_OPEN || s->paused)
        len = 0; // by its owner, just now
    *buf = uv_buf_init((char *)data, (unsigned)OX_MIN(len, (size_t)UINT32_MAX));
}

// Not while libuv asks for space: it would go on with a stream that is stopped. An answer of no space comes back as UV_ENOBUFS.
static void stream_stop_reading(struct posix_stream *s)
{
    if (s->asking)
        return;
    if (s->reading)
        uv_read_stop((uv_stream_t *)&s->tcp);
    s->reading = false;
}

// No space was given: the owner has none, or has paused or ended the stream when it was asked.
static void stream_no_space(struct posix_stream *s)
{
    if (s->state == STREAM_DEAD) {
        if (!uv_is_closing((uv_handle_t *)&s->tcp))
            uv_close((uv_handle_t *)&s->tcp, stream_closed);
        return;
    }
    s->paused = true;
    stream_stop_reading(s);
}

static enum ox_err stream_read_error(ssize_t status)
{
    return status == UV_EOF ? OX_E_END_OF_FILE : status == UV_ETIMEDOUT ? OX_E_TIMEOUT : OX_E_DISCONNECTED;
}

static void stream_read(uv_stream_t *handle, ssize_t n, const uv_buf_t *buf)
{
    (void)buf;
    struct posix_stream *s = stream_of_handle(handle);
    if (n == UV_ENOBUFS) {
        stream_no_space(s);
        return;
    }
    if (s->state == STREAM_DRAINING && n < 0)
        posix_stream_kill(s, OX_OK);
    if (s->state != STREAM_OPEN || n == 0)
        return;
    if (n > 0) {
        s->stream.events->filled(&s->stream, (size_t)n);
    } else {
        posix_stream_kill(s, stream_read_error(n));
    }
}

static void stream_start_reading(struct posix_stream *s)
{
    if (s->reading)
        return;
    if (uv_read_start((uv_stream_t *)&s->tcp, stream_alloc, stream_read) != 0)
        posix_stream_kill(s, OX_E_DISCONNECTED);
    else
        s->reading = true;
}

static void stream_flush(struct posix_stream *s);

// Everything is written and the peer has been told: the owner is done; what the peer still sends is read away, so that no reset overtakes our last bytes.
static void stream_shut(uv_shutdown_t *req, int status)
{
    struct posix_stream *s = CONTAINER_OF(req, struct posix_stream, shutdown);
    if (s->state != STREAM_CLOSING)
        return;
    if (status != 0) {
        posix_stream_kill(s, OX_OK);
        return;
    }
    s->state = STREAM_DRAINING;
    s->told = true;
    s->stream.events->closed(&s->stream, OX_OK);
    stream_start_reading(s);
}

static void stream_shut_down(struct posix_stream *s)
{
    if (s->shutting)
        return;
    s->shutting = true;
    if (uv_shutdown(&s->shutdown, (uv_stream_t *)&s->tcp, stream_shut) != 0)
        posix_stream_kill(s, OX_OK);
}

static void stream_written(uv_write_t *req, int status)
{
    struct posix_stream *s = CONTAINER_OF(req, struct posix_stream, write);
    s->writing = false;
    if (s->state == STREAM_DEAD)
        return;
    if (status != 0) {
        posix_stream_kill(s, OX_E_DISCONNECTED);
        return;
    }
    ox_outq_consume(&s->out, s->writing_bytes);
    stream_flush(s);
}

// The kernel takes no more now: libuv writes these parts when it does. They stay in the queue until then.
static void stream_write_later(struct posix_stream *s, const uv_buf_t *bufs, size_t parts, size_t bytes)
{
    s->writing_bytes = bytes;
    if (uv_write(&s->write, (uv_stream_t *)&s->tcp, bufs, (unsigned)parts, stream_written) != 0)
        posix_stream_kill(s, OX_E_DISCONNECTED);
    else
        s->writing = true;
}

// One vectored write of what is queued; false if there is nothing to go on with.
static bool stream_write_some(struct posix_stream *s)
{
    uv_buf_t bufs[STREAM_PARTS_MAX];
    size_t bytes = 0, parts = ox_outq_peek(&s->out, (struct iovec *)bufs, STREAM_PARTS_MAX);
    for (size_t i = 0; i < parts; i++)
        bytes += bufs[i].len;
    int n = uv_try_write((uv_stream_t *)&s->tcp, bufs, (unsigned)parts);
    if (n == UV_EAGAIN) {
        stream_write_later(s, bufs, parts, bytes);
        return false;
    }
    if (n < 0) {
        posix_stream_kill(s, OX_E_DISCONNECTED);
        return false;
    }
    ox_outq_consume(&s->out, (size_t)n);
    return true;
}

static void stream_flush(struct posix_stream *s)
{
    while (!s->writing && s->out.bytes && stream_write_some(s))
        ;
    s->eager_at = s->out.bytes + STREAM_EAGER_BYTES;
    if (s->state == STREAM_DEAD)
        return;
    bool writable = ox_stream_drained(&s->stream, s->out.bytes);
    if (s->state == STREAM_CLOSING && !s->out.bytes)
        stream_shut_down(s);
    else if (writable && s->state == STREAM_OPEN)
        s->stream.events->writable(&s->stream);
}

static void stream_turn(struct ox_turn_hook *hook)
{
    struct posix_stream *s = CONTAINER_OF(hook, struct posix_stream, turn);
    if (s->state == STREAM_OPEN && !s->paused && s->stream.events)
        stream_start_reading(s);
    if (s->state != STREAM_DEAD)
        stream_flush(s);
}

// Gives the kernel what it takes now; errors and what is left are the turn end's.
static void stream_write_early(struct posix_stream *s)
{
    uv_buf_t bufs[STREAM_PARTS_MAX];
    size_t parts = ox_outq_peek(&s->out, (struct iovec *)bufs, STREAM_PARTS_MAX);
    int n = uv_try_write((uv_stream_t *)&s->tcp, bufs, (unsigned)parts);
    if (n > 0)
        ox_outq_consume(&s->out, (size_t)n);
    s->eager_at = s->out.bytes + STREAM_EAGER_BYTES;
}

static void stream_write(struct ox_stream *stream, const struct ox_buf *bufs, size_t n)
{
    struct posix_stream *s = stream_of(stream);
    if (s->state != STREAM_OPEN)
        return;
    ox_outq_add(&s->out, bufs, n);
    if (s->out.bytes >= s->eager_at && !s->writing)
        stream_write_early(s);
    ox_stream_queued(stream, s->out.bytes);
    ox_turn_end(stream->loop, &s->turn);
}

static void stream_pause(struct ox_stream *stream)
{
    struct posix_stream *s = stream_of(stream);
    s->paused = true;
    if (s->state == STREAM_OPEN)
        stream_stop_reading(s);
}

static void stream_resume(struct ox_stream *stream)
{
    struct posix_stream *s = stream_of(stream);
    s->paused = false;
    if (s->state == STREAM_OPEN && !s->reading)
        ox_turn_end(stream->loop, &s->turn);
}

static void stream_close(struct ox_stream *stream)
{
    struct posix_stream *s = stream_of(stream);
    if (s->state != STREAM_OPEN)
        return;
    s->state = STREAM_CLOSING;
    stream_stop_reading(s);
    ox_timer_start(&s->linger, STREAM_LINGER_NS);
    ox_turn_end(stream->loop, &s->turn);
}

static void stream_abort(struct ox_stream *stream, enum ox_err err)
{
    posix_stream_kill(stream_of(stream), err);
}

static bool stream_peer_ended(struct ox_stream *stream)
{
    struct posix_stream *s = stream_of(stream);
    uv_os_fd_t fd;
    if (s->state != STREAM_OPEN || uv_fileno((const uv_handle_t *)&s->tcp, &fd) != 0)
        return true;
    struct pollfd look = {.fd = fd, .events = POLLRDHUP};
    return poll(&look, 1, 0) > 0;
}

static void stream_lingered(struct ox_timer *timer)
{
    posix_stream_kill(CONTAINER_OF(timer, struct posix_stream, linger), OX_OK);
}

static const struct ox_stream_body posix_stream_body = {.write = stream_write,
                                                        .pause = stream_pause,
                                                        .resume = stream_resume,
                                                        .close = stream_close,
                                                        .abort = stream_abort,
                                                        .peer_ended = stream_peer_ended};

struct posix_stream *posix_stream_new(struct ox_loop *loop)
{
    struct posix_stream *s = ox_malloc(sizeof(*s));
    ox_stream_init(&s->stream, &posix_stream_body, loop);
    s->turn.run = stream_turn;
    s->eager_at = STREAM_EAGER_BYTES;
    ox_timer_init(&s->linger, loop, stream_lingered);
    OX_ASSERT(uv_tcp_init(&posix_of(loop)->uv, &s->tcp) == 0);
    s->tcp.data = s; // how the loop's end knows it from a listener
    return s;
}

static void stream_set_peer(struct posix_stream *s)
{
    struct sockaddr_storage addr;
    int len = (int)sizeof(addr), port = 0;
    char ip[INET6_ADDRSTRLEN] = "?";
    if (uv_tcp_getpeername(&s->tcp, (struct sockaddr *)&addr, &len) != 0)
        return;
    bool v6 = addr.ss_family == AF_INET6;
    if (v6) {
        (void)uv_ip6_name((struct sockaddr_in6 *)&addr, ip, sizeof(ip));
        port = ntohs(((struct sockaddr_in6 *)&addr)->sin6_port);
    } else {
        (void)uv_ip4_name((struct sockaddr_in *)&addr, ip, sizeof(ip));
        port = ntohs(((struct sockaddr_in *)&addr)->sin_port);
    }
    (void)snprintf(s->stream.peer, sizeof(s->stream.peer), v6 ? "[%s]:%d" : "%s:%d", ip, port);
}

void posix_stream_connected(struct posix_stream *s)
{
    (void)uv_tcp_nodelay(&s->tcp, 1);
    stream_set_peer(s);
    ox_turn_end(s->stream.loop, &s->turn);
}
