// request.h - one request on its way: its path segments and body, and the one answer it gets. For this folder only.
#ifndef ADMIN_REQUEST_H
#define ADMIN_REQUEST_H

#include <jansson.h>
#include <microhttpd.h>

#include "admin/admin.h"
#include "broker/topic_name.h"

#define ADMIN_SEGMENTS_MAX 12
#define ADMIN_BODY_BYTES_MAX (1024u * 1024)
#define ADMIN_CONNECTIONS_MAX 256
#define ADMIN_IDLE_SECONDS 60

struct admin_request {
    struct ox_admin *admin;
    struct MHD_Connection *connection;  // NULL once the client is gone
    char *segments[ADMIN_SEGMENTS_MAX]; // path, each segment decoded once
    size_t count;
    enum ox_err path_err; // INVALID: a segment could not be decoded; TOO_BIG: too many
    struct ox_str body;
    bool body_too_big;
    bool dispatched; // a handler has it
    bool answered;
    bool in_handler;  // the dispatching call is still running
    bool suspended;   // MHD waits for admin_resume
    unsigned status;  // of the answer
    const char *type; // of the answer
    struct ox_str answer;
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

typedef void (*admin_handler)(struct admin_request *r);

// Finds the handler of a method and path, checks the topic's name where the route has one, and calls it; answers 404, 405, 412 by itself.
void admin_dispatch(struct admin_request *r, const char *method);

// Answers, once: JSON (the reference is taken over), an empty body, text, or {"reason": ...} for an error with a status of the caller's.
void admin_json(struct admin_request *r, unsigned status, json_t *take_json);
void admin_empty(struct admin_request *r, unsigned status);
void admin_text(struct admin_request *r, unsigned status, const char *type, const char *text);
void admin_fail(struct admin_request *r, unsigned status, const char *format, ...) __attribute__((format(printf, 3, 4)));
// Answers an error of the broker with its status; `what` names the thing ("topic persistent://...").
void admin_error(struct admin_request *r, enum ox_err err, const char *what, const char *why);
// True if the query has `name` with the value "true".
bool admin_query_true(struct admin_request *r, const char *name);
// The HTTP status that stands for an error.
unsigned admin_status(enum ox_err err);

// Handlers (topics.c, brokers.c, stats.c).
void admin_topics_list(struct admin_request *r);
void admin_topic_create(struct admin_request *r);
void admin_topic_delete(struct admin_request *r);
void admin_topic_unload(struct admin_request *r);
void admin_topic_stats(struct admin_request *r);
void admin_topic_subscriptions(struct admin_request *r);
void admin_partitions_get(struct admin_request *r);
void admin_partitions_create(struct admin_request *r);
void admin_broker_health(struct admin_request *r);
void admin_broker_ready(struct admin_request *r);
void admin_broker_version(struct admin_request *r);
void admin_clusters(struct admin_request *r);
void admin_metrics(struct admin_request *r);

// Handlers of bookie_clusters.c; each answers 404 where the broker has no storage to move.
void admin_storage_list(struct admin_request *r);
void admin_storage_status(struct admin_request *r);
void admin_storage_plan(struct admin_request *r);
void admin_storage_inventory(struct admin_request *r);
void admin_storage_failures(struct admin_request *r);
void admin_storage_cleanup_targets(struct admin_request *r);
void admin_storage_precheck(struct admin_request *r);
void admin_storage_verify(struct admin_request *r);
void admin_storage_safe_to_release(struct admin_request *r);
void admin_storage_switch(struct admin_request *r);
void admin_storage_rollback(struct admin_request *r);
void admin_storage_pause(struct admin_request *r);
void admin_storage_resume(struct admin_request *r);
void admin_storage_abort(struct admin_request *r);
void admin_storage_read_mode(struct admin_request *r);
void admin_storage_move_data(struct admin_request *r);
void admin_storage_throttle(struct admin_request *r);
void admin_storage_cleanup(struct admin_request *r);
void admin_storage_close_client(struct admin_request *r);
void admin_storage_promote_cursor(struct admin_request *r);
void admin_storage_namespace_target(struct admin_request *r);
void admin_storage_namespace_target_set(struct admin_request *r);
void admin_storage_namespace_target_remove(struct admin_request *r);
void admin_storage_topic_target(struct admin_request *r);
void admin_storage_topic_target_set(struct admin_request *r);
void admin_storage_topic_target_remove(struct admin_request *r);
void admin_storage_get(struct admin_request *r);
void admin_storage_register(struct admin_request *r);
void admin_storage_unregister(struct admin_request *r);

#endif
