// bookie_clusters.c - oxbowctl bookie-clusters: each verb reads its arguments, asks the REST door once, shows the answer.
#include <string.h>

#include "base/mem.h"
#include "oxbowctl/bookie_clusters.h"

#define CLUSTERS_BASE "/admin/v2/bookie-clusters"
#define CLUSTERS_TIMEOUT_MS (24 * 3600 * 1000L) // a verification reads everything; Ctrl-C ends the waiting

static json_t *answer_load(const struct ctl_answer *answer)
{
    if (answer->body.len == 0)
        return json_null();
    json_t *json = json_loadb(ox_str_get(&answer->body), answer->body.len, JSON_DECODE_ANY, NULL);
    if (!json)
        ctl_fail("the broker's answer is no JSON: %.200s", ox_str_get(&answer->body));
    return json;
}

bool ctl_clusters_ask(const struct ctl *ctl, const char *method, const char *path, json_t *take_body, const char *what,
                      json_t **ret)
{
    struct ctl_answer answer;
    char *body = take_body ? json_dumps(take_body, JSON_COMPACT) : NULL;
    OX_CLEANUP(ox_free_ptr)
    char *whole = ox_asprintf("%s%s", CLUSTERS_BASE, path);
    json_t *json = NULL;
    if (!ctl_rest_send(ctl, &(struct ctl_ask){method, whole, body, CLUSTERS_TIMEOUT_MS}, &answer))
        ctl_fail("%s", answer.trouble);
    else if (answer.status / 100 != 2)
        ctl_rest_failed(&answer, what);
    else
        json = answer_load(&answer);
    ctl_answer_fini(&answer);
    json_decref(take_body);
    free(body);
    if (json)
        *ret = json;
    return json != NULL;
}

void ctl_print_json(const json_t *answer)
{
    char *text = json_dumps(answer, JSON_COMPACT | JSON_ENCODE_ANY);
    printf("%s\n", text ? text : "null");
    free(text);
    fflush(stdout);
}

// A request, and what of its answer goes to people.
struct ask {
    const char *method, *path;
    json_t *take_body;
    const char *what;                   // the thing asked about, for errors
    void (*show)(const json_t *answer); // a table; NULL: `done` is printed
    bool (*good)(const json_t *answer); // false: the exit status is 1; NULL: always
    const char *done;                   // said when all went well, or NULL
};

static int ask_run(struct ctl *ctl, const struct ask *ask)
{
    json_t *answer;
    if (!ctl_clusters_ask(ctl, ask->method, ask->path, ask->take_body, ask->what, &answer))
        return CTL_FAILED;
    if (ctl->json && !json_is_null(answer))
        ctl_print_json(answer);
    else if (!ctl->json && ask->show)
        ask->show(answer);
    if (!ctl->json && ask->done)
        printf("%s: %s\n", ask->what, ask->done);
    int status = !ask->good || ask->good(answer) ? CTL_DONE : CTL_FAILED;
    json_decref(answer);
    return status;
}

// ---- arguments ------------------------------------------------------------------------------------------------------

#define OPTIONS_MAX 4

// Reads the command's arguments, one thing among them: as a word, or behind an option (pulsar-admin's way).
static bool thing_parse(struct ctl *ctl, const char *kind, const char *const *names, const struct ctl_option *more,
                        size_t count, const char **ret)
{
    struct ctl_option options[OPTIONS_MAX + 2];
    const char *word = NULL, *named = NULL;
    for (size_t i = 0; i < count; i++)
        options[i] = more[i];
    for (; *names; names++)
        options[count++] = (struct ctl_option){*names, CTL_TEXT, {.text = &named}};
    if (!ctl_parse(ctl, options, count, &word, 0, 1))
        return false;
    if (word && named)
        return ctl_misuse(ctl, "%s is given twice: '%s' and '%s'", kind, word, named), false;
    *ret = word ? word : named;
    if (!*ret || !**ret)
        return ctl_misuse(ctl, "%s is missing", kind), false;
    return true;
}

static bool name_parse(struct ctl *ctl, const struct ctl_option *more, size_t count, const char **ret)
{
    static const char *const names[] = {"--name", "--target", NULL};
    return thing_parse(ctl, "NAME", names, more, count, ret);
}

static bool nothing_parse(struct ctl *ctl, const struct ctl_option *more, size_t count)
{
    const char *none;
    return ctl_parse(ctl, more, count, &none, 0, 0);
}

static char *name_path(const char *prefix, const char *name)
{
    struct ox_str path = {0};
    ox_str_adds(&path, prefix);
    ctl_path_add(&path, name);
    return ox_str_take(&path);
}

// A verb whose one argument is a name in its path.
static int name_run(struct ctl *ctl, const char *method, const char *prefix, struct ask ask)
{
    if (!name_parse(ctl, NULL, 0, &ask.what))
        return CTL_USAGE;
    OX_CLEANUP(ox_free_ptr)
    char *path = name_path(prefix, ask.what);
    ask.method = method;
    ask.path = path;
    return ask_run(ctl, &ask);
}

// A verb without arguments.
static int plain_run(struct ctl *ctl, const struct ask *ask)
{
    return nothing_parse(ctl, NULL, 0) ? ask_run(ctl, ask) : CTL_USAGE;
}

// ---- registry -------------------------------------------------------------------------------------------------------

int ctl_clusters_list(struct ctl *ctl)
{
    return plain_run(ctl, &(struct ask){"GET", "", .what = "list", .show = ctl_show_clusters});
}

int ctl_clusters_get(struct ctl *ctl)
{
    return name_run(ctl, "GET", "", (struct ask){.show = ctl_show_cluster});
}

int ctl_clusters_register(struct ctl *ctl)
{
    const char *name, *uri = NULL, *status = NULL;
    const struct ctl_option options[] = {{"--metadata-service-uri", CTL_TEXT, {.text = &uri}},
                                         {"--status", CTL_TEXT, {.text = &status}}};
    if (!name_parse(ctl, options, OX_COUNT(options), &name))
        return CTL_USAGE;
    if (!uri)
        return ctl_misuse(
            ctl, "--metadata-service-uri is missing: where the bookie cluster is, such as embedded:/disk2/oxbow");
    json_t *body = json_pack("{s:s}", "metadataServiceUri", uri);
    if (!body)
        return ctl_misuse(ctl, "--metadata-service-uri: the text is not valid UTF-8");
    if (status)
        json_object_set_new(body, "status", json_string(status));
    OX_CLEANUP(ox_free_ptr)
    char *path = name_path("", name);
    return ask_run(
        ctl, &(struct ask){"POST", path, body, name,
                           .done = "registered; 'oxbowctl bookie-clusters precheck' tells whether it can take over"});
}

int ctl_clusters_unregister(struct ctl *ctl)
{
    const char *name;
    json_t *entry;
    if (!name_parse(ctl, NULL, 0, &name))
        return CTL_USAGE;
    OX_CLEANUP(ox_free_ptr)
    char *path = name_path("", name);
    if (!ctl_clusters_ask(ctl, "GET", path, NULL, name, &entry)) // where it was is not known any more afterwards
        return CTL_FAILED;
    const char *uri = json_string_value(json_object_get(entry, "metadataServiceUri"));
    OX_CLEANUP(ox_free_ptr)
    char *done =
        ox_asprintf("unregistered; the broker does not touch %s any more: it can be deleted", uri ? uri : "its storage");
    int status = ask_run(ctl, &(struct ask){"DELETE", path, .what = name, .done = done});
    json_decref(entry);
    return status;
}

// ---- switching ------------------------------------------------------------------------------------------------------

static bool precheck_good(const json_t *answer)
{
    return json_is_true(json_object_get(answer, "ready"));
}

int ctl_clusters_precheck(struct ctl *ctl)
{
    return name_run(ctl, "GET", "/precheck", (struct ask){.show = ctl_show_precheck, .good = precheck_good});
}

int ctl_clusters_plan(struct ctl *ctl)
{
    const char *name, *rate = NULL;
    const struct ctl_option options[] = {{"--rate", CTL_TEXT, {.text = &rate}}};
    int64_t bytes = 0;
    if (!name_parse(ctl, options, OX_COUNT(options), &name) || (rate && !ctl_parse_size(ctl, "--rate", rate, &bytes)))
        return CTL_USAGE;
    OX_CLEANUP(ox_free_ptr)
    char *encoded = name_path("", name);
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("/plan?target=%s&bytesPerSecond=%lld", encoded + 1, (long long)bytes);
    return ask_run(ctl, &(struct ask){"GET", path, .what = name, .show = ctl_show_plan});
}

// Gives an order; with --wait, watches it until a stage is over.
static int order_run(struct ctl *ctl, const struct ask *ask, bool wait, const char *until)
{
    json_t *answer;
    if (!ctl_clusters_ask(ctl, ask->method, ask->path, ask->take_body, ask->what, &answer))
        return CTL_FAILED;
    if (ctl->json)
        ctl_print_json(answer);
    else
        ctl_show_order(answer);
    fflush(stdout);
    int status = CTL_DONE;
    if (wait)
        status = ctl_progress_run(ctl, until, json_string_value(json_object_get(answer, "switchId")));
    else if (!ctl->json)
        printf("'oxbowctl bookie-clusters watch' shows how it goes on\n");
    json_decref(answer);
    return status;
}

int ctl_clusters_switch(struct ctl *ctl)
{
    const char *name;
    bool wait = false, supersede = false;
    const struct ctl_option options[] = {{"--wait", CTL_FLAG, {.flag = &wait}},
                                         {"--supersede", CTL_FLAG, {.flag = &supersede}}};
    if (!name_parse(ctl, options, OX_COUNT(options), &name))
        return CTL_USAGE;
    json_t *body = json_pack("{s:s,s:b}", "target", name, "supersede", (int)supersede);
    if (!body)
        return ctl_misuse(ctl, "NAME: the text is not valid UTF-8");
    return order_run(ctl, &(struct ask){"POST", "/switch", body, .what = name}, wait, "METADATA_MOVED");
}

int ctl_clusters_rollback(struct ctl *ctl)
{
    bool wait = false;
    const struct ctl_option options[] = {{"--wait", CTL_FLAG, {.flag = &wait}}};
    if (!nothing_parse(ctl, options, OX_COUNT(options)))
        return CTL_USAGE;
    return order_run(ctl, &(struct ask){"POST", "/rollback", .what = "rollback"}, wait, "METADATA_MOVED");
}

int ctl_clusters_status(struct ctl *ctl)
{
    return plain_run(ctl, &(struct ask){"GET", "/status", .what = "status", .show = ctl_show_status});
}

int ctl_clusters_watch(struct ctl *ctl)
{
    return nothing_parse(ctl, NULL, 0) ? ctl_progress_run(ctl, NULL, NULL) : CTL_USAGE;
}

int ctl_clusters_read_mode(struct ctl *ctl)
{
    static const char *const names[] = {"--mode", NULL};
    const char *mode;
    if (!thing_parse(ctl, "MODE (DUAL_READ, OLD_CLUSTER_ONLY or NEW_CLUSTER_ONLY)", names, NULL, 0, &mode))
        return CTL_USAGE;
    json_t *body = json_pack("{s:s}", "mode", mode);
    if (!body)
        return ctl_misuse(ctl, "MODE: the text is not valid UTF-8");
    return ask_run(ctl, &(struct ask){"POST", "/read-mode", body, mode, .done = "the read mode is set"});
}

int ctl_clusters_pause(struct ctl *ctl)
{
    return plain_run(ctl, &(struct ask){"POST", "/pause", .what = "pause",
                                        .done = "the move rests; 'oxbowctl bookie-clusters resume' goes on"});
}

int ctl_clusters_resume(struct ctl *ctl)
{
    return plain_run(ctl, &(struct ask){"POST", "/resume", .what = "resume", .done = "the move goes on"});
}

int ctl_clusters_abort(struct ctl *ctl)
{
    return plain_run(
        ctl,
        &(struct ask){"POST", "/abort", .what = "abort",
                      .done = "the move has ended: new data stays where it goes now, older data where it is; 'oxbowctl "
                              "bookie-clusters rollback' goes back"});
}

// ---- data -----------------------------------------------------------------------------------------------------------

int ctl_clusters_move_data(struct ctl *ctl)
{
    const char *name;
    bool wait = false;
    const struct ctl_option options[] = {{"--wait", CTL_FLAG, {.flag = &wait}}};
    if (!name_parse(ctl, options, OX_COUNT(options), &name))
        return CTL_USAGE;
    json_t *body = json_pack("{s:s}", "target", name);
    if (!body)
        return ctl_misuse(ctl, "NAME: the text is not valid UTF-8");
    return order_run(ctl, &(struct ask){"POST", "/move-data", body, .what = name}, wait, "DATA_MOVED");
}

int ctl_clusters_throttle(struct ctl *ctl)
{
    const char *rate = NULL;
    int64_t bytes = -1, ops = -1;
    const struct ctl_option options[] = {{"--bytes", CTL_TEXT, {.text = &rate}}, {"--ops", CTL_NUMBER, {.number = &ops}}};
    if (!nothing_parse(ctl, options, OX_COUNT(options)) || (rate && !ctl_parse_size(ctl, "--bytes", rate, &bytes)))
        return CTL_USAGE;
    if (bytes < 0 && ops < 0)
        return ctl_misuse(ctl, "what shall the limit be? --bytes 50M, --ops 1000; 0: no limit");
    json_t *body = json_object();
    if (bytes >= 0)
        json_object_set_new(body, "bytesPerSecond", json_integer(bytes));
    if (ops >= 0)
        json_object_set_new(body, "opsPerSecond", json_integer(ops));
    return ask_run(ctl, &(struct ask){"PUT", "/throttle", body, "throttle", .show = ctl_show_throttle});
}

// ---- places of their own --------------------------------------------------------------------------------------------

// The path of a namespace's (TENANT/NAMESPACE) or a topic's target, to be freed. NULL: a message is printed.
static char *target_path(const char *name)
{
    const char *slash = strstr(name, "://") ? NULL : strchr(name, '/');
    struct ox_str path = {0};
    if (slash && slash > name && slash[1] && !strchr(slash + 1, '/')) {
        OX_CLEANUP(ox_free_ptr)
        char *tenant = ox_strndup(name, (size_t)(slash - name));
        ox_str_adds(&path, "/namespaces");
        ctl_path_add(&path, tenant);
        ctl_path_add(&path, slash + 1);
    } else {
        struct ctl_topic topic;
        if (!ctl_topic_parse(name, &topic))
            return NULL;
        ox_str_adds(&path, "/topics");
        ctl_path_add(&path, topic.tenant);
        ctl_path_add(&path, topic.namespace);
        ctl_path_add(&path, topic.name);
        ctl_topic_fini(&topic);
    }
    ox_str_adds(&path, "/target");
    return ox_str_take(&path);
}

// take_body NULL: none.
static int target_run(struct ctl *ctl, const char *method, const char *name, json_t *take_body, struct ask ask)
{
    OX_CLEANUP(ox_free_ptr)
    char *path = target_path(name);
    if (!path) {
        json_decref(take_body);
        return CTL_USAGE;
    }
    ask.method = method;
    ask.path = path;
    ask.take_body = take_body;
    ask.what = name;
    return ask_run(ctl, &ask);
}

static bool target_parse(struct ctl *ctl, const struct ctl_option *more, size_t count, const char **ret)
{
    static const char *const names[] = {"--name", NULL};
    return thing_parse(ctl, "NAME", names, more, count, ret);
}

int ctl_clusters_get_target(struct ctl *ctl)
{
    const char *name;
    if (!target_parse(ctl, NULL, 0, &name))
        return CTL_USAGE;
    return target_run(ctl, "GET", name, NULL, (struct ask){.show = ctl_show_target});
}

int ctl_clusters_set_target(struct ctl *ctl)
{
    const char *name, *target = NULL;
    const struct ctl_option options[] = {{"--target", CTL_TEXT, {.text = &target}}};
    if (!target_parse(ctl, options, OX_COUNT(options), &name))
        return CTL_USAGE;
    if (!target)
        return ctl_misuse(ctl, "which bookie cluster? --target CLUSTER");
    json_t *body = json_pack("{s:s}", "target", target);
    if (!body)
        return ctl_misuse(ctl, "--target: the text is not valid UTF-8");
    return target_run(ctl, "PUT", name, body, (struct ask){.done = "target set"});
}

int ctl_clusters_remove_target(struct ctl *ctl)
{
    const char *name;
    if (!target_parse(ctl, NULL, 0, &name))
        return CTL_USAGE;
    return target_run(ctl, "DELETE", name, NULL, (struct ask){.done = "target removed"});
}

// ---- questions ------------------------------------------------------------------------------------------------------

int ctl_clusters_inventory(struct ctl *ctl)
{
    return plain_run(ctl, &(struct ask){"GET", "/inventory", .what = "inventory", .show = ctl_show_inventory});
}

int ctl_clusters_failures(struct ctl *ctl)
{
    return plain_run(ctl, &(struct ask){"GET", "/failures", .what = "failures", .show = ctl_show_failures});
}

static bool verify_good(const json_t *answer)
{
    return json_array_size(json_object_get(answer, "bad")) == 0;
}

int ctl_clusters_verify(struct ctl *ctl)
{
    return name_run(ctl, "GET", "/verify", (struct ask){.show = ctl_show_verify, .good = verify_good});
}

static bool safe_good(const json_t *answer)
{
    return json_is_true(json_object_get(answer, "safe"));
}

int ctl_clusters_safe_to_release(struct ctl *ctl)
{
    return name_run(ctl, "GET", "/safe-to-release", (struct ask){.show = ctl_show_safe_to_release, .good = safe_good});
}

int ctl_clusters_cleanup_targets(struct ctl *ctl)
{
    const char *source = NULL;
    const struct ctl_option options[] = {{"--src-cluster", CTL_TEXT, {.text = &source}}};
    if (!nothing_parse(ctl, options, OX_COUNT(options)))
        return CTL_USAGE;
    OX_CLEANUP(ox_free_ptr)
    char *encoded = name_path("", source ? source : "");
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_asprintf("/cleanup-targets%s%s", source ? "?srcClusterFilter=" : "", source ? encoded + 1 : "");
    return ask_run(
        ctl, &(struct ask){"GET", path, .what = source ? source : "cleanup-targets", .show = ctl_show_cleanup_targets});
}

int ctl_clusters_cleanup(struct ctl *ctl)
{
    const char *source = NULL;
    bool dry_run = false, force = false;
    int64_t max = 0;
    const struct ctl_option options[] = {{"--dry-run", CTL_FLAG, {.flag = &dry_run}},
                                         {"--force", CTL_FLAG, {.flag = &force}},
                                         {"--src-cluster", CTL_TEXT, {.text = &source}},
                                         {"--max-deletions", CTL_NUMBER, {.number = &max}}};
    if (!nothing_parse(ctl, options, OX_COUNT(options)))
        return CTL_USAGE;
    json_t *body = json_pack("{s:b,s:b,s:I}", "dryRun", (int)dry_run, "force", (int)force, "maxDeletions", (json_int_t)max);
    if (source)
        json_object_set_new(body, "srcClusterFilter", json_string(source));
    return ask_run(ctl, &(struct ask){"POST", "/cleanup", body, "cleanup", .show = ctl_show_cleanup});
}

int ctl_clusters_close_client(struct ctl *ctl)
{
    return name_run(ctl, "POST", "/close-client", (struct ask){.done = "closed"});
}
