// stream.h - the stream port: byte streams (TCP; TLS later) with bounded queues, vectored writes and back-pressure, and listeners.
#ifndef IO_STREAM_H
#define IO_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "io/loop.h"

struct ox_net;
struct ox_stream;
struct ox_listener;

// The owner's side of a stream. All are called from the loop, none inside a call of the owner.
struct ox_stream_events {
    // Where the next bytes go: at most *ret_len from *ret_data. len 0: nothing is read until ox_stream_resume. It may be asked again without a `filled` in between.
    void (*space)(struct ox_stream *s, uint8_t **ret_data, size_t *ret_len);
    // n bytes were read to where space said.
    void (*filled)(struct ox_stream *s, size_t n);
    // The queue of bytes to write has fallen below the low mark after it was above the high mark.
    void (*writable)(struct ox_stream *s);
    // The stream has ended: OK or END_OF_FILE (peer closed), DISCONNECTED, TIMEOUT, or what ox_stream_abort gave. Last call ever; the stream is freed after it.
    void (*closed)(struct ox_stream *s, enum ox_err err);
};

// What a body supplies.
struct ox_stream_body {
    void (*write)(struct ox_stream *s, const struct ox_buf *bufs, size_t n);
    void (*pause)(struct ox_stream *s);
    void (*resume)(struct ox_stream *s);
    void (*close)(struct ox_stream *s);
    void (*abort)(struct ox_stream *s, enum ox_err err);
    bool (*peer_ended)(struct ox_stream *s);
};

// An open stream; bodies embed it first.
struct ox_stream {
    const struct ox_stream_body *body;     // private
    struct ox_loop *loop;                  // read-only
    const struct ox_stream_events *events; // set by the owner at accept or connect
    void *owner;                           // public
    size_t queued_bytes;                   // read-only: bytes written by the owner that the kernel hasn't taken
    size_t high_bytes, low_bytes;          // public: marks for `writable`; defaults OX_CONN_OUT_BYTES_HIGH and _LOW
    bool above_high;                       // read-only
    char peer[64];                         // read-only: "127.0.0.1:43210"
};

// For bodies: prepares the shared part with the default marks.
void ox_stream_init(struct ox_stream *s, const struct ox_stream_body *body, struct ox_loop *loop);
// For bodies: the owner has added bytes; sets queued_bytes and the high mark.
void ox_stream_queued(struct ox_stream *s, size_t queued_bytes);
// For bodies: the kernel has taken bytes; true if the queue has just fallen below the low mark, so that `writable` is due.
bool ox_stream_drained(struct ox_stream *s, size_t queued_bytes);

// Queues slices for writing (takes a reference of each; the caller keeps its own). What is queued in a turn leaves in vectored writes at the turn's end, much of it earlier.
// The queue is the owner's to bound: look at queued_bytes / above_high before producing more.
void ox_stream_write(struct ox_stream *s, const struct ox_buf *bufs, size_t n);
// Stops reading: back-pressure reaches the peer. Calls nest not: one resume ends it.
void ox_stream_pause(struct ox_stream *s);
// Goes on reading.
void ox_stream_resume(struct ox_stream *s);
// True if the peer has ended its side or the connection is broken, though what it sent before has not been read: for who has paused, and is not told.
bool ox_stream_peer_ended(struct ox_stream *s);
// Closes after what is queued has been written (or 1 s); `closed` follows. No more events but closed.
void ox_stream_close(struct ox_stream *s);
// Drops what is queued and closes at once; `closed` follows with err.
void ox_stream_abort(struct ox_stream *s, enum ox_err err);

// The network port; bodies embed it first.
struct ox_net_body {
    enum ox_err (*listen)(struct ox_net *net, const char *host, uint16_t port, struct ox_listener **ret);
    void (*unlisten)(struct ox_listener *l);
    void (*hold)(struct ox_listener *l, bool on);
    void (*connect)(struct ox_net *net, struct ox_op *op, const char *host, uint16_t port, struct ox_stream **ret);
};
struct ox_net {
    const struct ox_net_body *body;
    struct ox_loop *loop;
};
// A listener; bodies embed it first.
struct ox_listener {
    struct ox_net *net;
    uint16_t port; // read-only: the real port, also when 0 was asked for
    void (*accept)(struct ox_listener *l,
                   struct ox_stream *give_s); // set by the owner right after ox_net_listen; must set give_s->events
    void *owner;                              // public
};
// Listens on host:port (port 0: any). Errors: ADDRESS_IN_USE, ACCESS, INVALID (host). The listener accepts from the next turn on.
enum ox_err ox_net_listen(struct ox_net *net, const char *host, uint16_t port, struct ox_listener **ret) OX_CHECKED;
// Stops listening and frees the listener; accepted streams live on.
void ox_net_unlisten(struct ox_listener *l);
// Accepts nothing until ox_listener_resume: connections that come wait with the kernel, as many as it keeps. Neither call may be made before `accept` is set.
void ox_listener_pause(struct ox_listener *l);
// Accepts again.
void ox_listener_resume(struct ox_listener *l);
// Connects; on success *ret is a stream whose events the owner sets in the operation's done (reads start after it). Errors: CONNECTION_REFUSED, TIMEOUT (10 s), INVALID, IO.
void ox_net_connect(struct ox_net *net, struct ox_op *op, const char *host, uint16_t port, struct ox_stream **ret);

#endif
