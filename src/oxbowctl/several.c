// several.c - verbs that ask several routes, or turn what is typed into something else first: topics and tenants.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "oxbowctl/ctl.h"

#define SHADOW_SOURCE "PULSAR.SHADOW_SOURCE" // the property that makes a topic a shadow

// A tenant may use all clusters that are there, unless some are named.
int ctl_tenants_create(struct ctl *ctl)
{
    struct ctl_request request;
    json_t *clusters = NULL, *answer = NULL;
    OX_CLEANUP(ox_free_ptr)
    char *what = ctl_subject(ctl);
    int status = ctl_request_make(ctl, &request);
    if (status == CTL_DONE && !json_object_get(request.body, "allowedClusters"))
        status = ctl_get(ctl, "/admin/v2/clusters", what, &clusters);
    if (clusters)
        json_object_set(request.body, "allowedClusters", clusters);
    if (status == CTL_DONE)
        status = ctl_request_send(ctl, &request, &answer);
    if (answer)
        status = ctl_row_show(ctl, answer);
    json_decref(answer);
    json_decref(clusters);
    ctl_request_fini(&request);
    return status;
}

// ---- which broker serves which partition ----------------------------------------------------------------------------

static const char lookup_path[] = "/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}";

// {partition: the broker's URL}
static int partitions_ask(struct ctl *ctl, const char *topic, int64_t count, json_t *brokers)
{
    const char *full = ctl_text(ctl, "TOPIC");
    int status = CTL_DONE;
    for (int64_t i = 0; i < count && status == CTL_DONE; i++) {
        json_t *answer;
        json_object_set_new(ctl->names, "topic", json_sprintf("%s-partition-%lld", topic, (long long)i));
        OX_CLEANUP(ox_free_ptr)
        char *path = ctl_path_make(ctl, lookup_path);
        OX_CLEANUP(ox_free_ptr)
        char *name = ox_asprintf("%s-partition-%lld", full, (long long)i);
        status = ctl_get(ctl, path, name, &answer);
        if (answer)
            json_object_set(brokers, name, json_object_get(answer, "brokerUrl"));
        json_decref(answer);
    }
    return status;
}

// {the broker's URL: [partitions]}
static json_t *by_broker(const json_t *brokers)
{
    json_t *sorted = json_object(), *broker;
    const char *partition;
    json_object_foreach((json_t *)(uintptr_t)brokers, partition, broker)
    {
        const char *url = json_string_value(broker);
        if (!json_object_get(sorted, url))
            json_object_set_new(sorted, url, json_array());
        json_array_append_new(json_object_get(sorted, url), json_string(partition));
    }
    return sorted;
}

int ctl_topics_partitioned_lookup(struct ctl *ctl)
{
    json_t *metadata, *brokers = json_object();
    OX_CLEANUP(ox_free_ptr)
    char *topic = ctl_value_text(json_object_get(ctl->names, "topic"));
    int status = ctl_row_ask(ctl, &metadata);
    int64_t count = json_integer_value(json_object_get(metadata, "partitions"));
    if (metadata && count == 0)
        status = ctl_fail("%s has no partitions; 'oxbowctl topics lookup' tells its broker", ctl_text(ctl, "TOPIC"));
    if (metadata && count > 0)
        status = partitions_ask(ctl, topic, count, brokers);
    if (count > 0 && status == CTL_DONE) {
        json_t *shown = ctl_flag(ctl, "--sort-by-broker") ? by_broker(brokers) : json_incref(brokers);
        status = ctl_row_show(ctl, shown);
        json_decref(shown);
    }
    json_decref(metadata);
    json_decref(brokers);
    return status;
}

// ---- the message of a time ------------------------------------------------------------------------------------------

// "+02:00", "-0130" or "Z", in seconds. False: it is none.
static bool zone_parse(const char *text, int64_t *ret)
{
    int hours, minutes, end = 0;
    *ret = 0;
    if (strcmp(text, "Z") == 0 || strcmp(text, "z") == 0)
        return true;
    if ((*text != '+' && *text != '-') || sscanf(text + 1, "%2d:%2d%n", &hours, &minutes, &end) != 2 || text[1 + end])
        return false;
    *ret = (hours * 3600 + minutes * 60) * (*text == '-' ? -1 : 1);
    return hours <= 18 && minutes < 60;
}

// ms since 1970, or "2026-01-31T12:00:00Z" with a part of a second and another zone allowed. False: it is neither.
static bool time_parse(const char *text, int64_t *ret_ms)
{
    struct tm parts = {0};
    int64_t zone, ms = 0, unit = 100;
    if (ox_parse_i64(text, 0, INT64_MAX, ret_ms) == OX_OK)
        return true;
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
    if (!rest)
        return false;
    if (*rest == '.')
        for (rest++; *rest >= '0' && *rest <= '9'; rest++, unit /= 10)
            ms += (*rest - '0') * unit;
    if (!zone_parse(rest, &zone))
        return false;
    *ret_ms = ((int64_t)timegm(&parts) - zone) * 1000 + ms;
    return *ret_ms >= 0;
}

int ctl_topics_message_id(struct ctl *ctl)
{
    int64_t ms;
    json_t *answer;
    const char *text = ctl_text(ctl, "--datetime");
    if (!time_parse(text, &ms))
        return ctl_misuse(ctl, "--datetime wants a time such as 2026-01-31T12:00:00Z or ms since 1970, not '%s'", text);
    json_object_set_new(ctl->names, "time", json_sprintf("%lld", (long long)ms));
    int status = ctl_row_ask(ctl, &answer);
    if (answer)
        status = ctl_row_show(ctl, answer);
    json_decref(answer);
    return status;
}

// ---- shadow topics --------------------------------------------------------------------------------------------------

// The source's partitions are the shadow's.
static int shadow_make(struct ctl *ctl, const char *source, int64_t partitions)
{
    struct ctl_request request;
    json_t *answer = NULL;
    int status = ctl_request_make(ctl, &request);
    if (status == CTL_DONE) {
        json_t *properties = request.body ? request.body : json_object();
        json_object_set_new(properties, SHADOW_SOURCE, json_string(source));
        request.body = properties;
        if (partitions > 0) {
            ox_str_adds(&request.path, "/partitions");
            request.body = json_pack("{s:I,s:o}", "partitions", (json_int_t)partitions, "properties", properties);
            request.media = "application/vnd.partitioned-topic-metadata+json";
        }
        status = ctl_request_send(ctl, &request, &answer);
    }
    json_decref(answer);
    ctl_request_fini(&request);
    return status;
}

int ctl_topics_shadow_create(struct ctl *ctl)
{
    struct ctl_topic source;
    json_t *metadata = NULL, *own = json_incref(ctl->names);
    if (!ctl_topic_parse(ctl_text(ctl, "--source"), &source)) {
        json_decref(own);
        return ctl_misuse(ctl, "--source wants a topic, not '%s'", ctl_text(ctl, "--source"));
    }
    json_t *text = json_string(source.full);
    json_decref(ctl->names);
    ctl->names = json_object();
    ctl_value_names(text, CTL_TOPIC, ctl->names);
    OX_CLEANUP(ox_free_ptr)
    char *path = ctl_path_make(ctl, "/admin/v2/{domain}/{tenant}/{namespace}/{topic}/partitions");
    json_decref(ctl->names);
    ctl->names = own;
    int status = ctl_get(ctl, path, source.full, &metadata);
    if (status == CTL_DONE)
        status = shadow_make(ctl, source.full, json_integer_value(json_object_get(metadata, "partitions")));
    json_decref(metadata);
    json_decref(text);
    ctl_topic_fini(&source);
    return status;
}

int ctl_topics_shadow_source(struct ctl *ctl)
{
    json_t *properties;
    int status = ctl_row_ask(ctl, &properties);
    json_t *source = json_object_get(properties, SHADOW_SOURCE), *none = json_null();
    if (properties)
        status = ctl_row_show(ctl, source ? source : none);
    json_decref(properties);
    return status;
}

// ---- compactions and offloads ---------------------------------------------------------------------------------------

#define TASK_PAUSE_NS (100 * 1000 * 1000L)

static bool task_is(const json_t *answer, const char *state)
{
    const char *status = json_string_value(json_object_get(answer, "status"));
    return status && strcmp(status, state) == 0;
}

// How a task of a topic went; with --wait-complete when it is over. Exit status 1: it failed.
int ctl_topics_task(struct ctl *ctl)
{
    const struct timespec pause = {.tv_nsec = TASK_PAUSE_NS};
    sigset_t none;
    json_t *answer;
    sigemptyset(&none);
    int status = ctl_row_ask(ctl, &answer);
    while (answer && ctl_flag(ctl, "--wait-complete") && task_is(answer, "RUNNING")) {
        sigtimedwait(&none, NULL, &pause);
        json_decref(answer);
        status = ctl_row_ask(ctl, &answer);
    }
    if (answer)
        status = ctl_row_show(ctl, answer);
    const char *error = json_string_value(json_object_get(answer, "lastError"));
    if (answer && task_is(answer, "ERROR"))
        status = ctl_fail("%s: the last run failed: %s", ctl_text(ctl, "TOPIC"),
                          error && *error ? error : "see the broker's log");
    json_decref(answer);
    return status;
}

// The first ledger that stays when at most `keep` bytes are to stay; 0: nothing has to go.
static int64_t offload_before(const json_t *stats, int64_t keep)
{
    const json_t *ledgers = json_object_get(stats, "ledgers");
    int64_t kept = json_integer_value(json_object_get(stats, "currentLedgerSize")), first = 0;
    for (size_t i = json_array_size(ledgers); i > 0; i--) {
        const json_t *ledger = json_array_get(ledgers, i - 1);
        bool open = i == json_array_size(ledgers); // it cannot go, and its size is not in its row
        kept += open ? 0 : json_integer_value(json_object_get(ledger, "size"));
        if (kept > keep && !open)
            return first;
        first = json_integer_value(json_object_get(ledger, "ledgerId"));
    }
    return 0;
}

static int offload_start(struct ctl *ctl, int64_t first)
{
    struct ctl_request request;
    json_t *answer = NULL;
    int status = ctl_request_make(ctl, &request);
    if (status == CTL_DONE) {
        request.body = json_pack("{s:I,s:i}", "ledgerId", (json_int_t)first, "entryId", 0);
        status = ctl_request_send(ctl, &request, &answer);
    }
    if (answer)
        status = ctl_row_show(ctl, answer);
    json_decref(answer);
    ctl_request_fini(&request);
    return status;
}

// What lies before the newest ledgers, which together are not larger than --size-threshold, goes.
int ctl_topics_offload(struct ctl *ctl)
{
    json_t *stats;
    OX_CLEANUP(ox_free_ptr)
    char *what = ctl_subject(ctl);
    OX_CLEANUP(ox_free_ptr)
    char *path = ctl_path_make(ctl, "/admin/v2/{domain}/{tenant}/{namespace}/{topic}/internalStats");
    int status = ctl_get(ctl, path, what, &stats);
    int64_t first = offload_before(stats, ctl_integer(ctl, "--size-threshold"));
    if (stats && first)
        status = offload_start(ctl, first);
    else if (stats && !ctl->json)
        printf("%s: nothing to offload\n", what);
    json_decref(stats);
    return status;
}
