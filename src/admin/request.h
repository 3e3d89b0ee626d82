// request.h - one request on its way: its path segments and body, and the one answer it gets. For this folder only.
#ifndef ADMIN_REQUEST_H
#define ADMIN_REQUEST_H

#include <jansson.h>
#include <microhttpd.h>

#include "admin/admin.h"
#include "base/buf.h"
#include "base/kv.h"
#include "base/mem.h"
#include "broker/topic_name.h"
#include "io/seq.h"

#define ADMIN_SEGMENTS_MAX 12
#define ADMIN_BODY_BYTES_MAX (1024u * 1024)
#define ADMIN_CONNECTIONS_MAX 256
#define ADMIN_IDLE_SECONDS 60

struct admin_request;
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

struct admin_request {
    struct ox_admin *admin;
    struct MHD_Connection *connection;  // NULL once the client is gone
    char *segments[ADMIN_SEGMENTS_MAX]; // path, each segment decoded once
    size_t count;
    enum ox_err path_err;            // INVALID: a segment could not be decoded; TOO_BIG: too many
    const struct admin_route *route; // while it has a handler
    struct ox_str body;
    json_t *json;         // the body once admin_body has parsed it
    struct ox_kv query;   // parameters that have been asked for, decoded
    struct ox_kv headers; // of the answer
    bool body_too_big;
    bool dispatched; // a handler has it
    bool answered;
    bool in_handler;  // the dispatching call is still running
    bool suspended;   // MHD waits for admin_resume
    unsigned status;  // of the answer
    const char *type; // of the answer
    struct ox_str answer;
    char *ns;                   // of routes that have one: "tenant/namespace"
    struct ox_topic_name topic; // of routes that have one
    struct ox_link link;        // in admin->requests
};

struct ox_admin {
    struct ox_shard *shard;
    struct ox_storage *storage; // NULL: bookie clusters are not managed here
    struct ox_admin_poll poll;
    struct MHD_Daemon *daemon;
    void *watch;
    uint16_t port;
    struct ox_timer timer;
    struct ox_list requests;
    struct ox_turn_hook run_hook;
    bool draining;         // new requests are refused
    struct ox_op *drained; // of ox_admin_drain, until it finishes
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
// True if the query has `name` with the value "true".
bool admin_query_true(struct admin_request *r, const char *name);
// A parameter of the query, decoded, or NULL. Borrowed from the request.
const char *admin_query(struct admin_request *r, const char *name);
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
#define ADMIN_TOPICS_A_TURN 64u
// The HTTP status that stands for an error.
unsigned admin_status(enum ox_err err);
// A JSON array of names.
json_t *admin_names(char *const *names, size_t count);
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
// A position as Pulsar's tools read a message id.
json_t *admin_message_id(struct ox_pos pos, int32_t partition, int32_t batch_index);

// Goes on with a request for a topic: sets its properties, then answers 204. The object must be one of texts, else that is answered; borrowed until then.
void admin_properties_set(struct admin_request *r, json_t *properties);

extern const struct admin_route_table admin_brokers, admin_lookup, admin_clusters, admin_tenants, admin_namespaces,
    admin_namespace_policies, admin_topics, admin_topic_properties, admin_topic_policies, admin_namespace_work,
    admin_permissions, admin_subscriptions, admin_stats, admin_messages, admin_bookie_clusters;

#endif
