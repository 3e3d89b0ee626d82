// request.h - one request on its way: its path segments and body, and the one answer it gets. For this folder only.
#ifndef ADMIN_REQUEST_H
#define ADMIN_REQUEST_H

#include <jansson.h>

#include "admin/admin.h"
#include "admin/http.h"
#include "base/buf.h"
#include "base/kv.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "broker/topic_name.h"
#include "io/seq.h"

#define ADMIN_SEGMENTS_MAX 12
#define ADMIN_BODY_BYTES_MAX (1024u * 1024)
#define ADMIN_BODIES_BYTES_MAX (64u * 1024 * 1024)   // of all requests at work
#define ADMIN_ANSWERS_BYTES_MAX (256u * 1024 * 1024) // that clients have not taken

struct admin_metrics;
struct admin_request;
struct admin_source;
struct http_connection;
typedef void (*admin_handler)(struct admin_request *r);

// Which path and method belong to which handler. A path's segments: "*" is any; "D" is a domain (persistent, non-persistent); "N" twice is a namespace, checked and joined into
// request->ns; "T" thrice is a topic's tenant, namespace and local name behind a domain, parsed into request->topic; anything else is itself.
struct admin_route {
    const char *method;
    const char *path;
    admin_handler handler;
    const void *arg; // the handler's own
};
// The routes of one file. A literal path stands before one with a name, here and in the order of tables in routes.c.
struct admin_route_table {
    const struct admin_route *routes;
    size_t count;
};

// The content of an answer, in parts of which the last one grows.
struct admin_parts {
    struct ox_buf *bufs;
    size_t count, cap;
    uint64_t bytes;
};

struct admin_request {
    struct ox_admin *admin;
    struct http_connection *connection; // NULL once the client is gone
    char *head_text;                    // that the strings of `head` lie in
    struct http_head head;
    char *segments[ADMIN_SEGMENTS_MAX]; // path, each segment decoded once
    size_t count;
    enum ox_err path_err;            // INVALID: a segment could not be decoded; TOO_BIG: too many
    const struct admin_route *route; // while it has a handler
    struct ox_str body;
    json_t *json;         // the body once admin_body has parsed it
    struct ox_kv query;   // parameters that have been asked for, decoded
    struct ox_kv headers; // of the answer
    bool dispatched;      // a handler has it
    bool answered;
    bool too_long;    // the answer had to be given up
    bool broken;      // it holds text that cannot be sent
    unsigned status;  // of the answer
    const char *type; // of the answer
    struct admin_parts answer;
    struct admin_source *source; // that makes the rest of the answer, or NULL
    char *ns;                    // of routes that have one: "tenant/namespace"
    struct ox_topic_name topic;  // of routes that have one
    struct ox_link link;         // in admin->requests or admin->answered
};

struct ox_admin {
    struct ox_shard *shard;
    struct ox_storage *storage; // NULL: bookie clusters are not managed here
    struct ox_admin_settings settings;
    struct ox_admin_limits limits;
    void (*process)(struct ox_admin_process *ret);
    struct admin_sample {
        uint64_t at_ns, cpu_ns;
        double cpu_percent;
    } sample;                     // the last look at the process (process.c)
    uint64_t started_ms;          // wall time
    struct ox_listener *listener; // NULL: closing
    bool full;                    // the listener is paused
    bool making_room;
    struct ox_list in[6];    // connections by state, each in the order in which they came into it
    struct ox_list unread;   // those that could be read
    struct ox_list requests; // without an answer
    struct ox_list answered; // until the turn's end
    struct ox_turn_hook turn;
    struct ox_timer rest;             // until requests go on
    struct ox_timer look;             // for connections that take too long
    uint8_t *scratch;                 // where sockets are read to
    unsigned reads;                   // in this turn
    uint64_t worked_ns, worked_at_ns; // for requests since the last rest, and until when
    uint64_t body_bytes, answer_bytes;
    struct ox_metric connections, requests_total, evicted, turn_longest, turns_slow;
    struct admin_metrics *metrics; // a walk for the metrics page, or NULL
    struct ox_list walks;          // of struct admin_walk: the first one goes on, the others wait
    struct ox_list snapshots;      // of struct metrics_snapshot: pages on their way
    bool draining;                 // new requests are refused
    struct ox_op *drained;         // of ox_admin_drain, until it finishes
    uint64_t drain_until_ns;       // so long it waits for answers that are on their way
    struct ox_timer drain;         // until it looks again
};

// Finds the handler of a method and path, checks the topic's name where the route has one, and calls it; answers 404, 405, 412 by itself.
void admin_dispatch(struct admin_request *r, const char *method);

// Answers for a route that took a word for a name which is none: 405 if another method has that very path, else 404.
void admin_unknown(struct admin_request *r, const char *word);

// Answers, once: JSON (the reference is taken over), an empty body, text, or {"reason": ...} for an error with a status of the caller's.
void admin_json(struct admin_request *r, unsigned status, json_t *take_json);
void admin_empty(struct admin_request *r, unsigned status);
void admin_text(struct admin_request *r, unsigned status, const char *type, const char *text);
void admin_fail(struct admin_request *r, unsigned status, const char *format, ...) __attribute__((format(printf, 3, 4)));
// Answers an error of the broker with its status; `what` names the thing ("topic persistent://...").
void admin_error(struct admin_request *r, enum ox_err err, const char *what, const char *why);
// Answers bytes as they are; with r->headers.
void admin_bytes(struct admin_request *r, unsigned status, const void *data, size_t len);
// Grows an answer by a piece; admin_added ends it. Pieces may come in many turns, so that no turn makes all of a long answer.
void admin_add(struct admin_request *r, const void *data, size_t len);
void admin_adds(struct admin_request *r, const char *text);
void admin_addf(struct admin_request *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Likewise by JSON, by a text of it, and by a member of an object: its name and value, with a comma before it unless it is the first. What is not valid UTF-8 makes it a 500.
void admin_add_json(struct admin_request *r, const json_t *json);
void admin_add_text(struct admin_request *r, const char *text);
void admin_add_member(struct admin_request *r, bool first, const char *name, const json_t *json);
// What makes a long answer piece by piece, as its client takes it. The owner's struct embeds it.
struct admin_source {
    // Writes the next piece, at most cap bytes (ADMIN_PIECE_BYTES_MIN at least). Returns how many; 0: that was all; ADMIN_SOURCE_FAILED: the rest will not come, the connection is
    // broken off.
    size_t (*more)(struct admin_source *s, char *data, size_t cap);
    // Nothing more is wanted.
    void (*free)(struct admin_source *s);
};
#define ADMIN_PIECE_BYTES_MIN (128u * 1024)
#define ADMIN_SOURCE_FAILED SIZE_MAX
// Answers with what a source makes: chunk by chunk, for HTTP/1.0 up to the end of the connection.
void admin_stream(struct admin_request *r, unsigned status, const char *type, struct admin_source *take_source);
// Answers with what was added.
void admin_added(struct admin_request *r, unsigned status, const char *type);
// True if the query has `name` with the value "true".
bool admin_query_true(struct admin_request *r, const char *name);
// A parameter of the query, decoded, or NULL. Borrowed from the request.
const char *admin_query(struct admin_request *r, const char *name);
// Likewise as it was sent, *ret_len bytes; NULL if it has no value.
const char *admin_query_raw(const struct admin_request *r, const char *name, size_t *ret_len);
// Text of a client, decoded as of a form ('+' is a space); as it is where that cannot be. The caller's.
char *admin_decoded(const char *sent, size_t len);
// All values of a parameter that may be sent many times, decoded, as members of an object: finding one takes no time. NULL: it was not sent. What is not UTF-8 is left out.
json_t *admin_query_set(const struct admin_request *r, const char *name);
// Parses the body; *ret is borrowed from the request, NULL where none was sent. False: it is no JSON, and that is answered.
bool admin_body(struct admin_request *r, json_t **ret) OX_CHECKED;
// A segment of the path as a whole number. False: it is none, and that is answered with 404, as of a path that does not exist.
bool admin_number(struct admin_request *r, size_t segment, int64_t *ret) OX_CHECKED;
// A segment of the path that clients encode twice. The caller's, to be given to ox_free.
char *admin_twice(const struct admin_request *r, size_t segment);
// Answers 204, or the error with its status, naming `what`.
void admin_done(struct admin_request *r, enum ox_err err, const char *what, const char *why);
// Long work over many topics lets the loop do other things: `next` runs a millisecond later. `pause` lies beside the sequence, zeroed once.
struct admin_pause {
    struct ox_timer timer;
    struct ox_seq *seq;
};
ox_step admin_rest(struct admin_pause *pause, struct ox_seq *s, ox_step_fn next, const char *step);
// After so many topics.
#define ADMIN_TOPICS_A_TURN 32u
// The HTTP status that stands for an error.
unsigned admin_status(enum ox_err err);
// Answers with a JSON array of names, however many.
void admin_answer_names(struct admin_request *r, char *const *names, size_t count);
// A JSON array of names.
json_t *admin_names(char *const *names, size_t count);
// The texts of a list as members of an object, so that finding one takes no time; and the names of an object's members as a list. Of a list, both leave each text once.
json_t *admin_text_set(const json_t *list);
json_t *admin_members(json_t *object);
// JSON pairs as an object of strings, and back (members that are no strings are left out).
json_t *admin_kv_json(const struct ox_kv *kv);
void admin_kv_read(struct ox_kv *kv, json_t *object);
// JSON as bytes of a node. The caller's reference.
struct ox_buf admin_json_buf(const json_t *json);
// True if a tenant or a cluster may be called that: letters, digits and - = : . _ of ASCII.
bool admin_name_valid(const char *name);
// A time (ms since 1970) as Pulsar writes it: UTC, fractions without zeros at their end.
void admin_time(uint64_t ms, char out[40]);
// What brokers are called: "host:port" of the web service. Borrowed from the settings.
const char *admin_broker_id(const struct ox_shard *sh);
// Why this broker is not healthy, or NULL. Static.
const char *admin_broker_trouble(const struct ox_shard *sh);
// A position as Pulsar's tools read a message id.
json_t *admin_message_id(struct ox_pos pos, int32_t partition, int32_t batch_index);

// Goes on with a request for a topic: sets its properties, then answers 204. The object must be one of texts, else that is answered; borrowed until then.
void admin_properties_set(struct admin_request *r, json_t *properties);

// Before the metrics are shown: those that are not counted but looked at.
void admin_metrics_look(struct ox_admin *admin);

// ---- between server.c, connection.c and answer.c

// A request of a connection from its head (len 0: one that could not be read, to be answered all the same).
struct admin_request *admin_request_new(struct http_connection *c, const char *head, size_t len);
void admin_request_free(struct admin_request *r);
// Its turn has come.
void admin_request_dispatch(struct admin_request *r);
// It has its answer, which is sent at the turn's end.
void admin_request_answered(struct admin_request *r);
// Adds a part; its reference is taken over.
void admin_parts_put(struct ox_admin *admin, struct admin_parts *p, struct ox_buf give_part);
// Gives the parts' memory back.
void admin_parts_fini(struct ox_admin *admin, struct admin_parts *p);
// Where a socket may be read to, and how much; 0: enough was read for now.
size_t admin_server_space(struct ox_admin *admin, uint8_t **ret_data);
// Some connection is QUEUED, has ROOM or is unread.
void admin_server_wake(struct ox_admin *admin);
// Lets connections in, or not, by how many there are.
void admin_server_make_room(struct ox_admin *admin);
// Answers take too much memory: whoever is slowest to take one has to go.
void admin_server_shed(struct ox_admin *admin);

extern const struct admin_route_table admin_brokers, admin_metrics, admin_lookup, admin_clusters, admin_tenants,
    admin_namespaces, admin_namespace_policies, admin_topics, admin_topic_properties, admin_topic_policies,
    admin_namespace_work, admin_permissions, admin_subscriptions, admin_stats, admin_messages, admin_offload,
    admin_broker_stats, admin_broker_views, admin_loaded, admin_bookie_clusters, admin_cluster_parts, admin_isolation,
    admin_resource_groups, admin_resource_quotas, admin_bookies, admin_namespace_offload, admin_local_policies,
    admin_bundles;

#endif
