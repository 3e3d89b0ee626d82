// connection.h - an HTTP connection: a request comes in, waits for its turn, is worked on, its answer goes out; then the next one. For this folder only.
#ifndef ADMIN_CONNECTION_H
#define ADMIN_CONNECTION_H

#include "admin/request.h"
#include "io/stream.h"

#define CONN_STATES(X)                                         \
    X(SILENT)  /* nothing of a request has come */             \
    X(COMING)  /* a part of a request has come */              \
    X(QUEUED)  /* a whole request waits for its turn */        \
    X(WORKING) /* a handler has it */                          \
    X(WRITING) /* the kernel has not taken what was written */ \
    X(ROOM)    /* it has: the rest of the answer, or an end */

enum conn_state {
#define CONN_STATE(name) CONN_##name,
    CONN_STATES(CONN_STATE)
#undef CONN_STATE
        CONN_STATE_COUNT
};

struct http_connection {
    struct ox_admin *admin;
    struct ox_stream *stream;
    enum conn_state state;
    uint64_t since_ns;     // of the state
    struct ox_link link;   // in admin->in[state], in the order of since_ns
    struct ox_link unread; // in admin->unread: more could be read, as soon as there is time
    struct ox_str in;      // bytes of requests, not yet taken apart
    size_t scanned;        // of them, for the end of a head
    struct http_chunks chunks;
    struct admin_request *request; // COMING: once its head is known; QUEUED, WORKING
    struct admin_parts out;        // the answer
    size_t out_at;                 // the next part to write
    struct admin_source *source;   // makes the parts behind it, or NULL
    bool chunked;                  // they are chunks
    bool ends;                     // after this answer
};

// A stream was accepted.
void http_connection_new(struct ox_admin *admin, struct ox_stream *give_stream);
// The turn of a QUEUED or a ROOM one has come.
void http_connection_go(struct http_connection *c);
// The time in its state begins anew.
void http_connection_wait(struct http_connection *c);
// Its request has been answered; the request's parts become the connection's.
void http_connection_answer(struct http_connection *c, struct admin_request *r);
// Answers without a handler, and ends after that. `why` is a sentence.
void http_connection_refuse(struct http_connection *c, unsigned status, const char *why);
// Ends it; `orderly`: after what was written.
void http_connection_end(struct http_connection *c, bool orderly);

#endif
