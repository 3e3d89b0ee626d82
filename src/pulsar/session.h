// session.h - a connection of a Pulsar client, for this folder's own eyes.
#ifndef PULSAR_SESSION_H
#define PULSAR_SESSION_H

#include "broker/consumer.h"
#include "broker/partitions.h"
#include "broker/producer.h"
#include "broker/subscription.h"
#include "broker/topic.h"
#include "pulsar/pulsar.h"
#include "wire/pulsar_command.h"
#include "wire/pulsar_frame.h"

#define SESSION_MAGIC OX_MAGIC('S', 'e', 's', 's')
#define SESSION_NO_REQUEST UINT64_MAX // request id of what the broker does by itself
#define PROTOCOL_VERSION 21
#define PROTOCOL_CHECKSUM 6 // from this version on clients know checksums

#define SESSION_STATES(X)                       \
    X(CONNECTING) /* only CONNECT is allowed */ \
    X(CONNECTED)  /* serves */                  \
    X(ENDED)      /* producers and consumers are gone; the stream's end or requests are waited for */
enum session_state {
#define OX_X(name) SESSION_##name,
    SESSION_STATES(OX_X)
#undef OX_X
};

struct session {
    uint32_t magic;
    struct ox_pulsar *server;
    struct ox_stream *stream; // NULL once it is gone
    enum session_state state;
    uint32_t refs;       // the stream, and each request that is open
    struct ox_link link; // in server->sessions or server->closing
    struct ox_frame_reader reader;
    struct ox_encoder encoder;
    struct ox_map producers;         // struct session_producer by id
    struct session_producer *sender; // the one that sent last, or NULL
    struct ox_map consumers;         // struct session_consumer by id
    struct ox_map watchers;          // struct session_watcher by id (session_watch.h)
    char peer[64];
    char *client_version;
    int32_t protocol_version; // the smaller of both

    struct ox_buf out[64]; // frames of this turn, touching ones joined
    size_t out_count;
    size_t out_bytes;
    struct ox_turn_hook flush;
    bool starved; // a consumer was told that the connection takes no more

    uint64_t closed_producers[16]; // ids (+ 1) of producers that the broker closed last: their sends on the way are dropped
    uint32_t closed_at;            // where the next one goes
    uint32_t blocked;              // producers that wait for memory
    uint32_t requests;             // open requests
    bool clogged;                  // the client does not read its answers
    size_t clogged_bytes; // what was queued at the last keep-alive tick: no progress within an interval ends the connection
    size_t turn_bytes; // of the frames that were handled in this turn
    bool yielded;      // it had its share: the others come first
    struct ox_turn_hook turn_over;
    bool paused;         // the stream is not read
    struct ox_op resume; // goes on with what was read

    struct ox_timer keep_alive;
    uint64_t read_ns;      // when bytes came last
    bool pinged;           // and nothing came since
    struct ox_list probes; // struct ox_op of those who ask whether the client lives
    struct ox_timer probe;
};

// A producer of the connection. OPENING: producer is NULL.
struct session_producer {
    struct ox_map_node node;
    struct session *session;
    uint64_t id;
    struct ox_producer *producer;
    struct ox_producer_open *opening; // while the broker attaches it, else NULL
    bool canceled;                    // the client closed it before it was open
    bool closing;                     // the client closed it; its receipts come first
    bool waiting;                     // it waits for memory: counted in session->blocked
    bool told;                        // the client knows that a send failed
};
// A consumer of the connection.
struct session_consumer {
    struct ox_map_node node;
    struct session *session;
    uint64_t id;
    struct ox_consumer *consumer;
    int32_t partition; // of its topic, -1: none
    bool canceled;
};

// ---- life (session.c)

// Takes a stream that was accepted.
void session_accept(struct ox_pulsar *server, struct ox_stream *give_stream);
// Ends a session: what it attached is detached, the stream closes after what is queued. No effect on one that has ended.
void session_end(struct session *s, const char *why);
// Its stream has ended by itself.
void session_lost(struct session *s, const char *why);
// For requests: the session's memory lives until the matching put, whatever happens to the connection.
void session_hold(struct session *s);
void session_put(struct session *s);
// True while answers can be sent.
static inline bool session_alive(const struct session *s)
{
    return s->state == SESSION_CONNECTED;
}
// The state's name.
const char *session_state_name(enum session_state state);
// Asks the client for a sign of life; op finishes as ox_producer_events.probe says.
void session_probe(struct session *s, struct ox_op *op);

// ---- writing (session_write.c)

// Queues a frame (takes the reference); what is queued in a turn leaves together. No effect on a session that has ended.
void session_write(struct session *s, struct ox_buf give_frame);
// Writes out what is gathered.
void session_flush(struct session *s);
// Throws away what is gathered.
void session_discard(struct session *s);
// True if consumers may put more into the connection.
bool session_ready(struct session *s);
// The connection takes more again.
void session_writable(struct session *s);
void session_success(struct session *s, uint64_t request_id);
// An error for a request. Text: why if given, else that of err; what names the thing (a topic) and may be NULL.
void session_error(struct session *s, uint64_t request_id, enum ox_err err, const char *what, const char *why);
void session_server_error(struct session *s, uint64_t request_id, Oxpb__ServerError error, const char *text);
// A command packed by protobuf.
void session_command(struct session *s, Oxpb__BaseCommand__Type type, const ProtobufCMessage *sub);

// ---- reading (session_read.c)

extern const struct ox_stream_events session_events;
// Stops or goes on reading, as blocked, clogged and requests say.
void session_throttle(struct session *s);
// The next turn begins: hook for turn_over.
void session_turn_over(struct ox_turn_hook *hook);
// Handles what was read, until the connection has had its share of the turn.
void session_parse(struct session *s);

// ---- requests: what is open while the broker works (request.c)

// Embedded first in each handler's own struct.
struct request {
    struct session *session; // held
    uint64_t id;
    struct ox_topic_name name; // of the topic it is about, or zeroed
    bool idle;                 // it waits for other clients: not counted in session->requests
};
// A zeroed struct of `size` bytes that begins with a request; the session is held.
void *request_new(struct session *s, size_t size, uint64_t id);
// Parses the topic's name; on a bad one the client is told, the request freed, and false returned.
bool request_topic(struct request *r, const char *topic);
// Answers with an error (CommandError) if the session is alive. The request lives on.
void request_error(struct request *r, enum ox_err err, const char *why);
// It waits for what other clients do, for as long as that takes: it does not keep the connection from being read.
void request_set_idle(struct request *r);
// Ends it: frees the name, the struct, and the hold.
void request_free(struct request *r);

// ---- errors (errors.c)

// The protocol's error for ours.
Oxpb__ServerError server_error(enum ox_err err);
// "<text>: <what>" into `out` of n bytes; why replaces the text where it is given.
void error_text(char *out, size_t n, enum ox_err err, const char *what, const char *why);

// ---- commands (dispatch.c)

// One frame: finds the handler and calls it. Errors: MALFORMED or UNSUPPORTED: the connection ends.
enum ox_err session_dispatch(struct session *s, struct ox_buf frame) OX_CHECKED;

// ---- producers and consumers (session_clients.c)

struct session_producer *session_find_producer(struct session *s, uint64_t id);
// Likewise for a send: most come from the producer that sent before.
struct session_producer *session_find_sender(struct session *s, uint64_t id);
struct session_consumer *session_find_consumer(struct session *s, uint64_t id);
// The open consumer of an id, or NULL.
struct ox_consumer *session_open_consumer(struct session *s, uint64_t id);
struct session_producer *session_add_producer(struct session *s, uint64_t id);
struct session_consumer *session_add_consumer(struct session *s, uint64_t id);
void session_drop_producer(struct session_producer *sp);
void session_drop_consumer(struct session_consumer *sc);
// The client does not want a producer that is being opened.
void session_cancel_producer(struct session_producer *sp);
// Closes an open producer at its client's request.
void session_close_producer(struct session_producer *sp);
// A send for a producer that is not open: OK if the broker has just closed it, so that the client cannot know yet; else the connection ends.
enum ox_err session_unknown_producer(struct session *s, uint64_t id) OX_CHECKED;
// Detaches all.
void session_detach_all(struct session *s);
extern const struct ox_producer_events session_producer_events;
extern const struct ox_consumer_events session_consumer_events;

#endif
