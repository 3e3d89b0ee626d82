// ctl.h - what the commands of oxbowctl share.
#ifndef OXBOWCTL_CTL_H
#define OXBOWCTL_CTL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "client/client.h"
#include "io/posix/posix.h"
#include "oxbowctl/table.h"

#define CTL_DONE 0
#define CTL_FAILED 1
#define CTL_USAGE 2

// Everything about this run. Zero it and give it to ctl_parse.
struct ctl {
    const char *url;         // of the REST door
    const char *service_url; // of the Pulsar protocol
    int64_t timeout_ms;      // for an answer; 0: a minute, or a day for patient verbs
    bool json;
    bool print_request; // requests are shown, not made
    bool help, version; // asked for; the rest may be missing then
    const struct ctl_noun *noun;
    const struct ctl_row *row;
    json_t **values; // of the row's words, by their index; NULL: not given. Private: ctl_value
    bool *given;     // as typed, not by default. Private
    char *raw;       // the text of the last good answer
    json_t *names;   // what fills the {names} of paths
};

// ---- args.c

// Reads the words behind the program's name. False: a message is printed, the status is CTL_USAGE. *ctl is to be given to ctl_fini in any case.
bool ctl_parse(struct ctl *ctl, int count, char *const *words);
// Frees what was read.
void ctl_fini(struct ctl *ctl);
// The value of an option (one of its names) or argument (the name of its value), borrowed; NULL: not given.
json_t *ctl_value(const struct ctl *ctl, const char *name);
// The same as a text, NULL if not given; as a number, 0 if not given; true if a flag is given.
const char *ctl_text(const struct ctl *ctl, const char *name);
int64_t ctl_integer(const struct ctl *ctl, const char *name);
bool ctl_flag(const struct ctl *ctl, const char *name);
// What the verb is about, for messages: its arguments, or noun and verb. To be freed.
char *ctl_subject(const struct ctl *ctl);

// ---- value.c

// What was typed for a word, as it is sent: count texts (one, unless it is a list, a map or `many`). NULL: *ret_wants says what is wanted instead (to be freed).
json_t *ctl_value_read(const struct ctl_word *word, const char *const *texts, size_t count, char **ret_wants);
// Adds what a topic, namespace or place fills in paths.
void ctl_value_names(const json_t *value, enum ctl_type type, json_t *names);
// A value as it stands in a path or query; to be freed.
char *ctl_value_text(const json_t *value);

// ---- help.c

// Prints "oxbowctl: ..." on standard error and returns CTL_FAILED.
int ctl_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Prints "oxbowctl: ..." and how the command is used on standard error and returns CTL_USAGE.
int ctl_misuse(const struct ctl *ctl, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Sends what was printed on its way. False: some of it, now or before, could not be written.
bool ctl_flush(void);
// Prints help on standard output: of the verb, the noun or the program, as far as they are known.
void ctl_help(const struct ctl *ctl);
// Appends how a verb is used, in one line without its end.
void ctl_synopsis(struct ox_str *out, const struct ctl_noun *noun, const struct ctl_row *row);

// ---- topic.c

// A topic's parts, all to be freed with ctl_topic_fini.
struct ctl_topic {
    char *full; // persistent://tenant/namespace/name
    char *domain, *tenant, *namespace, *name;
};
// Takes "name", "tenant/namespace/name" or the full form. False: it is none of them, *ret is empty.
bool ctl_topic_parse(const char *text, struct ctl_topic *ret);
void ctl_topic_fini(struct ctl_topic *t);
// Takes "tenant/namespace"; the parts are to be freed. False: it is none.
bool ctl_namespace_parse(const char *text, char **ret_tenant, char **ret_namespace);
// Java's hash of a string, which is valid UTF-8: what Pulsar's Java clients choose a key's partition by.
uint32_t ctl_java_hash(const char *text);
// Appends bytes as a JSON string with its quotes; bytes that are no UTF-8 become U+FFFD.
void ctl_json_string(struct ox_str *out, const void *data, size_t len);

// ---- rest.c

// A request; the path's segments are percent-encoded already.
struct ctl_ask {
    const char *method;
    const char *path;
    const char *body;   // JSON, or NULL
    int64_t timeout_ms; // 0: the run's, or a minute
    const char *media;  // of the body; NULL: application/json
    bool wants_headers; // of the answer
};
struct ctl_answer {
    long status; // HTTP
    struct ox_str body;
    struct ox_str headers; // lines, if they were wanted
    char *trouble;         // why there is no answer, or NULL
};
// Asks the REST door; with --print-request only shows what it would ask. False: ret->trouble says why there is no answer ("": none was wanted). *ret is to be given to ctl_answer_fini in any case.
bool ctl_rest_send(const struct ctl *ctl, const struct ctl_ask *ask, struct ctl_answer *ret);
// Frees an answer.
void ctl_answer_fini(struct ctl_answer *answer);
// The first value of a header of an answer, to be freed; NULL: there is none.
char *ctl_answer_header(const struct ctl_answer *answer, const char *name);
// Appends "/" and a segment, percent-encoded, to a path.
void ctl_path_add(struct ox_str *path, const char *segment);
// Appends a text, percent-encoded.
void ctl_encode(struct ox_str *out, const char *text);
// Prints what the server said about a failed request, and what to do where one can tell; returns CTL_FAILED.
int ctl_rest_failed(const struct ctl *ctl, const struct ctl_answer *answer, const char *what);
// Prints why there is no answer, or what the server said; returns CTL_FAILED, or CTL_DONE if only the request was shown.
int ctl_answer_failed(const struct ctl *ctl, const struct ctl_answer *answer, const char *what);

// ---- request.c

// A request made of a row and its values.
struct ctl_request {
    const char *method;
    struct ox_str path; // with query
    json_t *body;       // or NULL
    const char *media;  // of the body; NULL: application/json
};
// Makes it: the first route whose names are all known, the query, the body. Returns CTL_DONE, or a status when a message is printed. *ret is to be given to ctl_request_fini in any case.
int ctl_request_make(struct ctl *ctl, struct ctl_request *ret);
void ctl_request_fini(struct ctl_request *request);
// Sends it. CTL_DONE: *ret is the answer, to be decref'ed: JSON, a text if it is no JSON, null if it is empty. Else a message is printed, *ret is NULL.
int ctl_request_send(struct ctl *ctl, const struct ctl_request *request, json_t **ret);
// Makes and sends the row's request; as ctl_request_send.
int ctl_row_ask(struct ctl *ctl, json_t **ret);
// A route's path with its {names} filled in, to be freed. NULL: a message is printed, the status is CTL_USAGE.
char *ctl_path_make(const struct ctl *ctl, const char *path);
// Asks for any path; as ctl_request_send.
int ctl_get(struct ctl *ctl, const char *path, const char *what, json_t **ret);
// Shows an answer as the row says, or as JSON; returns the exit status.
int ctl_row_show(const struct ctl *ctl, const json_t *answer);
// Does what the row says: runs its function, or asks and shows.
int ctl_row_run(struct ctl *ctl);

// ---- show.c

// Prints an answer as one line of JSON.
void ctl_print_json(const json_t *answer);
// Prints an answer for people: names one a line, an object as lines of name and value, objects of objects as a table.
void ctl_show_auto(const json_t *answer);
// Prints a text as it is.
void ctl_show_text(const json_t *answer);
// Prints nothing.
void ctl_show_none(const json_t *answer);

// ---- session.c

// A loop with a client of the Pulsar protocol: for produce and consume.
struct ctl_session {
    struct ctl *ctl;
    const char *topic;
    struct ox_log log;
    struct ox_loop *loop;
    struct ox_client *client;
    struct ox_client_partitions partitions;
    uint32_t part_count; // read-only: how many topics there are to open: partitions, or the one that has none
    struct ox_op close;
    int status;
    bool ending;
    void (*start)(struct ctl_session *s); // called when part_count is known
};
// Runs a session on a topic until ctl_session_end; returns the exit status.
int ctl_session_run(struct ctl_session *s, struct ctl *ctl, const char *topic, void (*start)(struct ctl_session *s));
// Closes the client (producers and consumers are closed already) and ends the loop.
void ctl_session_end(struct ctl_session *s, int status);
// The name of one of the topics to open, to be freed.
char *ctl_session_part(const struct ctl_session *s, const char *topic, uint32_t index);
// Prints what went wrong with a call, and what to do.
void ctl_session_fail(struct ctl_session *s, const char *what, enum ox_err err, const char *text);

// ---- topics.c

// Prints the figures of a topic and its subscriptions.
void ctl_show_topic_stats(const json_t *stats);

// ---- the rows' own functions: each returns the exit status

int ctl_produce(struct ctl *ctl);
int ctl_consume(struct ctl *ctl);
int ctl_brokers_health(struct ctl *ctl);
int ctl_cluster_names(struct ctl *ctl);
int ctl_each_option(struct ctl *ctl);
int ctl_each_route(struct ctl *ctl);
int ctl_topics_list(struct ctl *ctl);
int ctl_topics_create_partitioned(struct ctl *ctl);
int ctl_topics_stats(struct ctl *ctl);
int ctl_topics_partitioned_lookup(struct ctl *ctl);
int ctl_topics_message_id(struct ctl *ctl);
int ctl_topics_shadow_create(struct ctl *ctl);
int ctl_topics_shadow_source(struct ctl *ctl);
int ctl_topics_task(struct ctl *ctl);
int ctl_topics_offload(struct ctl *ctl);
int ctl_tenants_create(struct ctl *ctl);
int ctl_message_show(struct ctl *ctl);
int ctl_message_peek(struct ctl *ctl);
int ctl_clusters_unregister(struct ctl *ctl);
int ctl_clusters_switch(struct ctl *ctl);
int ctl_clusters_move_data(struct ctl *ctl);
int ctl_clusters_watch(struct ctl *ctl);

#endif
