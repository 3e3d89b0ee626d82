// ctl.h - what the commands of oxbowctl share.
#ifndef OXBOWCTL_CTL_H
#define OXBOWCTL_CTL_H

#include <stdbool.h>
#include <stdint.h>

#include "client/client.h"
#include "io/posix/posix.h"

#define CTL_DONE 0
#define CTL_FAILED 1
#define CTL_USAGE 2

// Everything about this run.
struct ctl {
    const char *url;         // of the REST door
    const char *service_url; // of the Pulsar protocol
    bool json;
    const struct ctl_command *command;
    char **args; // of the command
    int arg_count;
};

struct ctl_command {
    const char *noun;
    const char *verb;            // NULL: the noun is the whole command
    const char *synopsis;        // its arguments
    const char *summary;         // one line
    const char *help;            // more
    int (*run)(struct ctl *ctl); // returns the exit status
};

// ---- args.c

enum ctl_option_kind { CTL_FLAG, CTL_TEXT, CTL_NUMBER, CTL_LIST };
struct ctl_words {
    const char **items;
    size_t count;
};
// An option of a command: what it is called and where its value goes.
struct ctl_option {
    const char *name; // with its dashes
    enum ctl_option_kind kind;
    union {
        bool *flag;
        const char **text;
        int64_t *number;        // 1 or more
        struct ctl_words *list; // items to be freed
    } to;
};
// Reads a command's arguments: options may stand anywhere, "--" ends them; --name=value and --name value are the same.
// The words that are no options go to words (max of them, borrowed). False: a message is printed, the status is CTL_USAGE.
bool ctl_parse(struct ctl *ctl, const struct ctl_option *options, size_t option_count, const char **words, size_t min,
               size_t max);
// Prints how a command is used.
void ctl_usage(const struct ctl_command *command, bool full);
// Prints "oxbowctl: ..." on standard error and returns CTL_FAILED.
int ctl_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Prints "oxbowctl: ..." and how the command is used on standard error and returns CTL_USAGE.
int ctl_misuse(const struct ctl *ctl, const char *format, ...) __attribute__((format(printf, 2, 3)));

// ---- topic.c

// A topic's parts, all to be freed with ctl_topic_fini.
struct ctl_topic {
    char *full; // persistent://tenant/namespace/name
    char *tenant, *namespace, *name;
};
// Takes "name", "tenant/namespace/name" or the full form. False: a message is printed.
bool ctl_topic_parse(const char *text, struct ctl_topic *ret);
void ctl_topic_fini(struct ctl_topic *t);
// Appends bytes as a JSON string with its quotes; bytes that are no UTF-8 become U+FFFD.
void ctl_json_string(struct ox_str *out, const void *data, size_t len);

// ---- rest.c

// A request; the path's segments are percent-encoded already.
struct ctl_ask {
    const char *method;
    const char *path;
    const char *body; // JSON, or NULL
    long timeout_ms;  // 0: a minute; more for what the broker works on for long
};
struct ctl_answer {
    long status; // HTTP
    struct ox_str body;
    char *trouble; // why there is no answer, or NULL
};
// Asks the REST door. False: ret->trouble says why there is no answer. *ret is to be given to ctl_answer_fini in any case.
bool ctl_rest_send(const struct ctl *ctl, const struct ctl_ask *ask, struct ctl_answer *ret);
// Asks the REST door without a body. False: a message is printed.
bool ctl_rest(struct ctl *ctl, const char *method, const char *path, struct ctl_answer *ret);
// Frees an answer.
void ctl_answer_fini(struct ctl_answer *answer);
// Appends "/" and a segment, percent-encoded, to a path.
void ctl_path_add(struct ox_str *path, const char *segment);
// The path "/admin/v2/persistent/tenant/namespace/name" and a suffix, encoded; to be freed.
char *ctl_topic_path(const struct ctl_topic *t, const char *suffix);
// Prints what the server said about a failed request and returns CTL_FAILED.
int ctl_rest_failed(const struct ctl_answer *answer, const char *what);

// ---- session.c

// A loop with a client of the Pulsar protocol: for produce and consume.
struct ctl_session {
    struct ctl *ctl;
    struct ox_log log;
    struct ox_loop *loop;
    struct ox_client *client;
    struct ox_client_partitions partitions;
    struct ox_op close;
    int status;
    bool ending;
    void (*start)(struct ctl_session *s); // called when the topic is known to be a plain one
};
// Runs a session on a topic until ctl_session_end; returns the exit status.
int ctl_session_run(struct ctl_session *s, struct ctl *ctl, const char *topic, void (*start)(struct ctl_session *s));
// Closes the client (producers and consumers are closed already) and ends the loop.
void ctl_session_end(struct ctl_session *s, int status);
// Prints what went wrong with a call, and what to do.
void ctl_session_fail(struct ctl_session *s, const char *what, enum ox_err err, const char *text);

// ---- the commands

int ctl_produce(struct ctl *ctl);
int ctl_consume(struct ctl *ctl);
int ctl_topics_stats(struct ctl *ctl);
int ctl_topics_list(struct ctl *ctl);
int ctl_topics_unload(struct ctl *ctl);
int ctl_brokers_health(struct ctl *ctl);

// ---- bookie_clusters.c: bookie-clusters ...

int ctl_clusters_list(struct ctl *ctl);
int ctl_clusters_get(struct ctl *ctl);
int ctl_clusters_register(struct ctl *ctl);
int ctl_clusters_unregister(struct ctl *ctl);
int ctl_clusters_precheck(struct ctl *ctl);
int ctl_clusters_plan(struct ctl *ctl);
int ctl_clusters_switch(struct ctl *ctl);
int ctl_clusters_rollback(struct ctl *ctl);
int ctl_clusters_status(struct ctl *ctl);
int ctl_clusters_watch(struct ctl *ctl);
int ctl_clusters_read_mode(struct ctl *ctl);
int ctl_clusters_pause(struct ctl *ctl);
int ctl_clusters_resume(struct ctl *ctl);
int ctl_clusters_abort(struct ctl *ctl);
int ctl_clusters_move_data(struct ctl *ctl);
int ctl_clusters_get_target(struct ctl *ctl);
int ctl_clusters_set_target(struct ctl *ctl);
int ctl_clusters_remove_target(struct ctl *ctl);
int ctl_clusters_throttle(struct ctl *ctl);
int ctl_clusters_inventory(struct ctl *ctl);
int ctl_clusters_failures(struct ctl *ctl);
int ctl_clusters_verify(struct ctl *ctl);
int ctl_clusters_safe_to_release(struct ctl *ctl);
int ctl_clusters_cleanup_targets(struct ctl *ctl);
int ctl_clusters_cleanup(struct ctl *ctl);
int ctl_clusters_close_client(struct ctl *ctl);

#endif
