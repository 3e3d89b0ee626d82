// topics.c - verbs of topics and brokers that are more than one request, or have a view of their own.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "oxbowctl/bookie_clusters.h"
#include "oxbowctl/ctl.h"

int ctl_brokers_health(struct ctl *ctl)
{
    json_t *answer;
    int status = ctl_row_ask(ctl, &answer);
    const char *text = json_string_value(answer);
    if (answer && (!text || strcasecmp(text, "ok") != 0))
        status = ctl_fail("%s does not say that it is well: %s", ctl->url, ctl->raw);
    else if (answer)
        printf(ctl->json ? "{\"health\":\"ok\"}\n" : "ok\n");
    json_decref(answer);
    return status;
}

// ---- list -----------------------------------------------------------------------------------------------------------

// The topics of one domain are added to *list, which is made by the first of them.
static int list_domain(struct ctl *ctl, const char *domain, json_t **list)
{
    json_t *answer;
    json_object_set_new(ctl->names, "domain", json_string(domain));
    int status = ctl_row_ask(ctl, &answer);
    if (!answer)
        return status;
    if (!*list)
        *list = json_array();
    if (json_array_extend(*list, answer) != 0)
        status = ctl_fail("%s does not answer with a list of topics", ctl->url);
    json_decref(answer);
    return status;
}

int ctl_topics_list(struct ctl *ctl)
{
    const char *domain = ctl_text(ctl, "--topic-domain");
    json_t *list = NULL;
    int status = CTL_DONE;
    if (!domain || strcmp(domain, "non_persistent") == 0)
        status = list_domain(ctl, "non-persistent", &list);
    if (status == CTL_DONE && (!domain || strcmp(domain, "persistent") == 0))
        status = list_domain(ctl, "persistent", &list);
    if (status == CTL_DONE && list)
        status = ctl_row_show(ctl, list);
    json_decref(list);
    return status;
}

// ---- partitions -----------------------------------------------------------------------------------------------------

// Without properties the body is the number alone, which every version of a broker takes.
int ctl_topics_create_partitioned(struct ctl *ctl)
{
    struct ctl_request request;
    json_t *answer = NULL;
    int status = ctl_request_make(ctl, &request);
    if (status == CTL_DONE) {
        json_t *count = json_incref(json_object_get(request.body, "partitions"));
        if (json_object_size(request.body) == 1) {
            json_decref(request.body);
            request.body = json_incref(count);
        } else {
            request.media = "application/vnd.partitioned-topic-metadata+json";
        }
        json_decref(count);
        status = ctl_request_send(ctl, &request, &answer);
    }
    if (answer)
        status = ctl_row_show(ctl, answer);
    json_decref(answer);
    ctl_request_fini(&request);
    return status;
}

// ---- stats ----------------------------------------------------------------------------------------------------------

static void print_subscriptions(const json_t *subscriptions)
{
    static const char *const heads[] = {"SUBSCRIPTION", "TYPE",      "BACKLOG",    "UNACKED",
                                        "CONSUMERS",    "OUT MSG/S", "MARK DELETE"};
    struct ctl_table t = {.columns = OX_COUNT(heads), .right = 1u << 2 | 1u << 3 | 1u << 4 | 1u << 5};
    const char *name;
    json_t *s;
    for (size_t i = 0; i < OX_COUNT(heads); i++)
        ctl_table_add(&t, "%s", heads[i]);
    json_object_foreach((json_t *)(uintptr_t)subscriptions, name, s)
    {
        ctl_table_add(&t, "%s", name);
        ctl_table_add(&t, "%s", ctl_text_of(s, "type"));
        ctl_table_add(&t, "%" PRId64, ctl_integer_of(s, "msgBacklog"));
        ctl_table_add(&t, "%" PRId64, ctl_integer_of(s, "unackedMessages"));
        ctl_table_add(&t, "%zu", json_array_size(json_object_get(s, "consumers")));
        ctl_table_add(&t, "%.1f", ctl_number_of(s, "msgRateOut"));
        ctl_table_add(&t, "%s", ctl_text_of(s, "markDeletePosition"));
    }
    printf("\n");
    ctl_table_print(&t, stdout);
}

static void print_partitions(const json_t *partitions)
{
    static const char *const heads[] = {"PARTITION",    "IN MSG/S",      "OUT MSG/S", "IN MESSAGES",
                                        "STORED BYTES", "BACKLOG BYTES", "PRODUCERS"};
    struct ctl_table t = {.columns = OX_COUNT(heads), .right = ~1u};
    const char *name;
    json_t *p;
    for (size_t i = 0; i < OX_COUNT(heads); i++)
        ctl_table_add(&t, "%s", heads[i]);
    json_object_foreach((json_t *)(uintptr_t)partitions, name, p)
    {
        ctl_table_add(&t, "%s", name);
        ctl_table_add(&t, "%.1f", ctl_number_of(p, "msgRateIn"));
        ctl_table_add(&t, "%.1f", ctl_number_of(p, "msgRateOut"));
        ctl_table_add(&t, "%" PRId64, ctl_integer_of(p, "msgInCounter"));
        ctl_table_add(&t, "%" PRId64, ctl_integer_of(p, "storageSize"));
        ctl_table_add(&t, "%" PRId64, ctl_integer_of(p, "backlogSize"));
        ctl_table_add(&t, "%zu", json_array_size(json_object_get(p, "publishers")));
    }
    printf("\n");
    ctl_table_print(&t, stdout);
}

void ctl_show_topic_stats(const json_t *o)
{
    const json_t *metadata = json_object_get(o, "metadata");
    printf("in       %12.1f messages/s %14.0f bytes/s %14" PRId64 " messages\n", ctl_number_of(o, "msgRateIn"),
           ctl_number_of(o, "msgThroughputIn"), ctl_integer_of(o, "msgInCounter"));
    printf("out      %12.1f messages/s %14.0f bytes/s %14" PRId64 " messages\n", ctl_number_of(o, "msgRateOut"),
           ctl_number_of(o, "msgThroughputOut"), ctl_integer_of(o, "msgOutCounter"));
    printf("stored   %12" PRId64 " bytes, backlog %" PRId64 " bytes\n", ctl_integer_of(o, "storageSize"),
           ctl_integer_of(o, "backlogSize"));
    printf("clients  %12zu producers\n", json_array_size(json_object_get(o, "publishers")));
    if (metadata)
        printf("topic    %12" PRId64 " partitions\n", ctl_integer_of(metadata, "partitions"));
    print_subscriptions(json_object_get(o, "subscriptions"));
    if (json_object_size(json_object_get(o, "partitions")))
        print_partitions(json_object_get(o, "partitions"));
}

static const char partitioned_stats[] =
    "/admin/v2/{domain}/{tenant}/{namespace}/{topic}/partitioned-stats?perPartition=false";

// Of a topic with partitions, for which the plain question was answered with 404: their sums. False: that is no answer either.
static bool stats_of_partitions(const struct ctl *ctl, json_t **ret)
{
    struct ctl_answer answer;
    OX_CLEANUP(ox_free_ptr)
    char *path = ctl_path_make(ctl, partitioned_stats);
    if (ctl_rest_send(ctl, &(struct ctl_ask){.method = "GET", .path = path}, &answer) && answer.status == 200)
        *ret = json_loadb(ox_str_get(&answer.body), answer.body.len, 0, NULL);
    ctl_answer_fini(&answer);
    return *ret != NULL;
}

static int stats_ask(const struct ctl *ctl, const char *path, json_t **ret)
{
    struct ctl_answer answer;
    int status = CTL_DONE;
    OX_CLEANUP(ox_free_ptr)
    char *what = ctl_subject(ctl);
    bool answered = ctl_rest_send(ctl, &(struct ctl_ask){.method = "GET", .path = path}, &answer);
    if (!answered || (answer.status != 200 && !(answer.status == 404 && stats_of_partitions(ctl, ret))))
        status = ctl_answer_failed(ctl, &answer, what);
    else if (!*ret && !(*ret = json_loadb(ox_str_get(&answer.body), answer.body.len, 0, NULL)))
        status = ctl_fail("%s: the broker's answer is no JSON", what);
    ctl_answer_fini(&answer);
    return status;
}

int ctl_topics_stats(struct ctl *ctl)
{
    struct ctl_request request;
    json_t *stats = NULL;
    int status = ctl_request_make(ctl, &request);
    if (status == CTL_DONE)
        status = stats_ask(ctl, ox_str_get(&request.path), &stats);
    if (stats)
        status = ctl_row_show(ctl, stats);
    json_decref(stats);
    ctl_request_fini(&request);
    return status;
}
