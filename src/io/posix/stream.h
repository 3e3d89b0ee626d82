// stream.h - the inside of a TCP stream, for net.c, which makes them.
#ifndef IO_POSIX_STREAM_H
#define IO_POSIX_STREAM_H

#include <uv.h>

#include "io/outq.h"
#include "io/stream.h"

enum stream_state {
    STREAM_OPEN,
    STREAM_CLOSING, // the owner has closed: waits for the queue, then for the shutdown
    STREAM_DRAINING, // the owner has had `closed`: reads away what the peer still sends, until its end or the linger limit
    STREAM_DEAD,     // uv_close has been called
};

struct posix_stream {
    struct ox_stream stream;
    uv_tcp_t tcp;
    uv_write_t write;
    uv_shutdown_t shutdown;
    enum stream_state state;
    enum ox_err err;      // for `closed`
    bool told;            // the owner has had `closed`, or there is no owner
    bool paused, reading; // wanted, real
    bool asking;          // the owner's `space` is running, inside libuv's read
    bool writing;         // `write` is pending with the first writing_bytes of the queue
    bool shutting;        // `shutdown` is pending
    size_t writing_bytes;
    size_t eager_at; // the queue is offered to the kernel before the turn's end when it holds so many bytes
    struct ox_outq out;
    struct ox_turn_hook turn;
    struct ox_timer linger;
};

// A stream without a connection.
struct posix_stream *posix_stream_new(struct ox_loop *loop);
// It has a connection now: reading starts at the end of the turn, if the owner has set events by then.
void posix_stream_connected(struct posix_stream *s);
// Closes at once; `closed` (if it has not been told) and the end of the memory follow.
void posix_stream_kill(struct posix_stream *s, enum ox_err err);

#endif
