// client_int.h - the folder's own eyes: connections, requests, and what producers and consumers share.
#ifndef CLIENT_CLIENT_INT_H
#define CLIENT_CLIENT_INT_H

#include "base/map.h"
#include "client/client.h"
#include "io/seq.h"

struct conn;
struct attach;

struct ox_client {
    struct ox_loop *loop;
    struct ox_net *net;
    char *host; // of the service URL
    uint16_t port;
    uint64_t timeout_ns;
    bool patient;
    uint64_t last_id; // of requests, producers and consumers
    struct ox_list conns;
    uint32_t attached; // producers and consumers that exist
    struct ox_op *closing;
};

// ---- connections (conn.c)

// A request on a connection; embedded in its owner, which keeps it until done.
struct client_request {
    struct ox_map_node node;
    struct ox_link link;
    struct conn *conn; // NULL: idle
    uint64_t deadline_ns;
    // err OK: message is the unpacked answer of that type, borrowed. Else text says more, or is "".
    void (*done)(struct client_request *r, enum ox_err err, uint32_t type, void *message, const char *text);
};

// A producer or consumer on a connection.
struct conn_peer {
    struct ox_map_node node;
    struct conn *conn; // NULL: none
    bool consumer;
    // A command for it; sub and body are borrowed.
    void (*command)(struct conn_peer *peer, uint32_t type, struct ox_buf sub, struct ox_buf body);
    // The connection is gone; the peer is off it already.
    void (*lost)(struct conn_peer *peer, enum ox_err err);
};

enum conn_state { CONN_CONNECTING, CONN_HANDSHAKE, CONN_READY, CONN_CLOSED };

struct conn {
    struct ox_client *client;
    struct ox_link link;
    char *host;
    uint16_t port;
    enum conn_state state;
    struct ox_op connect;
    struct ox_stream *stream;
    struct ox_frame_reader reader;
    struct ox_encoder encoder;
    struct ox_arena arena;
    struct ox_list waiters; // ops of ox_client_conn_get
    struct ox_map requests; // by id
    struct ox_list by_age;  // requests, oldest first
    struct ox_map producers, consumers;
    struct ox_timer timer; // keep-alive and deadlines
    uint64_t last_in_ns;
    uint64_t started_ns;
    bool broken; // aborted: nothing is read any more
    enum ox_err why;
    size_t message_bytes_max;
    char text[OX_CLIENT_TEXT_BYTES]; // the server's last words about the connection
};

// Finishes op when a connection to host:port is ready; then conn_find gives it. Errors: CONNECTION_REFUSED, DISCONNECTED, TIMEOUT, ...
void ox_client_conn_get(struct ox_client *client, struct ox_op *op, const char *host, uint16_t port);
// The ready connection, or NULL.
struct conn *ox_client_conn_find(struct ox_client *client, const char *host, uint16_t port);
// Sends a request; frame is taken over.
void ox_client_conn_request(struct conn *conn, struct client_request *r, uint64_t id, struct ox_buf give_frame);
// Forgets a request; its done is not called. No effect when idle.
void ox_client_conn_request_drop(struct client_request *r);
// Sends a frame, which is taken over.
void ox_client_conn_write(struct conn *conn, struct ox_buf give_frame);
// Puts a peer on a connection, takes it off (no effect when it is on none).
void ox_client_conn_add_peer(struct conn *conn, struct conn_peer *peer, uint64_t id);
void ox_client_conn_remove_peer(struct conn_peer *peer);
// Breaks the connection; everything on it learns of it later, from the loop.
void ox_client_conn_break(struct conn *conn, enum ox_err err);

// ---- look-up (lookup.c)

struct client_lookup {
    struct ox_client_call call;
    struct ox_client *client;
    struct ox_seq seq;
    struct ox_op conn_op;
    struct client_request request;
    char *topic;
    bool authoritative, redirected;
    uint32_t hops;
    char *host; // result: the broker's; owned
    uint16_t port;
};
// Finds the broker of a topic. After it client_lookup_fini.
void ox_client_lookup(struct ox_client *client, struct client_lookup *op, const char *topic);
void ox_client_lookup_fini(struct client_lookup *op);

// ---- attaching producers and consumers to their broker (attach.c)

enum attach_state {
    ATTACH_OFF,     // not begun, or closed
    ATTACH_TRYING,  // looking up, connecting, or waiting for the server's answer
    ATTACH_ON,      // the server knows it
    ATTACH_WAITING, // for the next try
    ATTACH_FAILED,  // for good
};

struct attach_body {
    // The command that creates it at the server.
    struct ox_buf (*command)(struct attach *a, uint64_t request_id);
    // The server has answered; state is ATTACH_ON.
    void (*on)(struct attach *a, void *message);
    // The connection is gone, or the server closed it. Attaching again is under way.
    void (*off)(struct attach *a);
    // It is over for good.
    void (*failed)(struct attach *a, enum ox_err err);
    // Closing is done: free it.
    void (*closed)(struct attach *a);
    // A command of the server other than a close.
    void (*event)(struct attach *a, uint32_t type, struct ox_buf sub, struct ox_buf body);
    uint32_t close_type; // the server's command that closes it
    uint32_t made_type;  // the server's answer to the command that creates it
};

struct attach {
    const struct attach_body *body;
    struct ox_client *client;
    char *topic;
    uint64_t id;
    enum attach_state state;
    struct conn_peer peer;
    struct ox_seq seq;
    struct client_lookup lookup;
    struct ox_op conn_op;
    struct conn *asked; // the connection of a creation that is not answered yet
    struct client_request request;
    struct ox_timer again;
    uint64_t delay_ns; // before the next try
    uint64_t times;    // how often it was attached
    bool closing;
    bool hold; // don't attach again by itself when the server closes it (a seek is under way)
    char text[OX_CLIENT_TEXT_BYTES];
};

// Prepares it; topic is copied.
void ox_client_attach_init(struct attach *a, const struct attach_body *body, struct ox_client *client,
                           const char *topic, bool consumer);
// Starts attaching.
void ox_client_attach_start(struct attach *a);
// Attaches again where hold kept it off.
void ox_client_attach_release(struct attach *a);
// Closes at the server if it is on, then calls body->closed from the loop.
void ox_client_attach_close(struct attach *a);
void ox_client_attach_fini(struct attach *a);
// The connection while it is on.
static inline struct conn *attach_conn(const struct attach *a)
{
    return a->peer.conn;
}
// A connection has left the client's list: ends a closing client when it was the last.
void ox_client_conn_gone(struct ox_client *client);
// Keeps a sentence.
void ox_client_text(char *to, const char *text);
// The next id of requests, producers and consumers.
uint64_t ox_client_next_id(struct ox_client *client);

// ---- acknowledgements within batches (acks.c)

// Which messages of partly acknowledged batches are still outstanding.
struct batch_acks {
    struct ox_map map;
};
// Notes one message (cumulative: and those before it in its batch). True: the whole batch is acknowledged now. words: what is outstanding, set bits; borrowed.
bool ox_client_acks_note(struct batch_acks *b, const struct ox_message_id *id, bool cumulative,
                         const uint64_t **ret_words, size_t *ret_count);
// A batch was delivered of which only these are outstanding: the others are not waited for.
void ox_client_acks_seed(struct batch_acks *b, const struct ox_message_id *id, const uint64_t *words, size_t count);
void ox_client_acks_clear(struct batch_acks *b);

// ---- reading messages (receive.c)

// What a CommandMessage says.
struct client_delivery {
    struct ox_message_id id;
    uint32_t redelivery_count;
    bool has_epoch;
    uint64_t epoch;
    size_t words;
    uint64_t ack_set[OX_ACK_SET_WORDS_MAX];
};
// Reads one; false: malformed.
bool ox_client_delivery_read(struct ox_buf sub, struct client_delivery *ret);

// Unpacks an entry and calls one() for each of its messages; returns how many there were (permits used), at least 1. outstanding: ack set of the batch, or NULL.
struct receive_sink {
    void (*one)(struct receive_sink *sink, const struct ox_received *m);
    void (*damaged)(struct receive_sink *sink, const struct ox_message_id *id, enum ox_err err);
};
uint32_t ox_client_receive(struct receive_sink *sink, const struct ox_message_id *id, uint32_t redelivery_count,
                           const uint64_t *outstanding, size_t words, struct ox_buf body);

#endif
