// rest_commands.c - the commands that are one REST request: topics stats, list, unload; brokers health.
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "oxbowctl/ctl.h"

// Asks, and hands a good answer to show(); else prints why not.
static int rest_show(struct ctl *ctl, const char *method, const char *path, const char *what,
                     int (*show)(struct ctl *ctl, const char *body))
{
    struct ctl_answer answer;
    int status = CTL_FAILED;
    if (ctl_rest(ctl, method, path, &answer))
        status = answer.status / 100 == 2 ? show(ctl, ox_str_get(&answer.body)) : ctl_rest_failed(&answer, what);
    ctl_answer_fini(&answer);
    return status;
}

static int show_raw(const char *body)
{
    size_t len = strlen(body);
    fputs(body, stdout);
    if (len && body[len - 1] != '\n')
        fputc('\n', stdout);
    return CTL_DONE;
}

static json_t *show_load(const char *body)
{
    json_t *json = json_loads(body, 0, NULL);
    if (!json)
        ctl_fail("the broker's answer is no JSON: %.200s", body);
    return json;
}

static double number_of(const json_t *o, const char *name)
{
    return json_number_value(json_object_get(o, name));
}

static long long integer_of(const json_t *o, const char *name)
{
    return (long long)json_integer_value(json_object_get(o, name));
}

static const char *text_of(const json_t *o, const char *name)
{
    const char *text = json_string_value(json_object_get(o, name));
    return text ? text : "-";
}

static void print_subscriptions(const json_t *subscriptions)
{
    const char *name;
    json_t *s;
    printf("\n%-24s %-12s %12s %12s %10s %12s  %s\n", "SUBSCRIPTION", "TYPE", "BACKLOG", "UNACKED", "CONSUMERS",
           "OUT MSG/S", "MARK DELETE");
    json_object_foreach((json_t *)(uintptr_t)subscriptions, name, s)
        printf("%-24s %-12s %12lld %12lld %10zu %12.1f  %s\n", name, text_of(s, "type"), integer_of(s, "msgBacklog"),
               integer_of(s, "unackedMessages"), json_array_size(json_object_get(s, "consumers")),
               number_of(s, "msgRateOut"), text_of(s, "markDeletePosition"));
}

static int show_stats(struct ctl *ctl, const char *body)
{
    if (ctl->json)
        return show_raw(body);
    json_t *o = show_load(body);
    if (!o)
        return CTL_FAILED;
    printf("in       %12.1f messages/s %14.0f bytes/s %14lld messages\n", number_of(o, "msgRateIn"),
           number_of(o, "msgThroughputIn"), integer_of(o, "msgInCounter"));
    printf("out      %12.1f messages/s %14.0f bytes/s %14lld messages\n", number_of(o, "msgRateOut"),
           number_of(o, "msgThroughputOut"), integer_of(o, "msgOutCounter"));
    printf("stored   %12lld bytes, backlog %lld bytes\n", integer_of(o, "storageSize"), integer_of(o, "backlogSize"));
    printf("clients  %12zu producers\n", json_array_size(json_object_get(o, "publishers")));
    print_subscriptions(json_object_get(o, "subscriptions"));
    json_decref(o);
    return CTL_DONE;
}

static int show_list(struct ctl *ctl, const char *body)
{
    if (ctl->json)
        return show_raw(body);
    json_t *list = show_load(body), *item;
    size_t i;
    if (!list)
        return CTL_FAILED;
    json_array_foreach(list, i, item) printf("%s\n", json_string_value(item));
    json_decref(list);
    return CTL_DONE;
}

static int show_nothing(struct ctl *ctl, const char *body)
{
    (void)ctl;
    (void)body;
    return CTL_DONE;
}

static int show_health(struct ctl *ctl, const char *body)
{
    if (!ctl->json)
        return show_raw(body);
    printf("{\"health\":\"ok\"}\n");
    return CTL_DONE;
}

static int topic_command(struct ctl *ctl, const char *method, const char *suffix,
                         int (*show)(struct ctl *ctl, const char *body))
{
    const char *word;
    struct ctl_topic topic;
    if (!ctl_parse(ctl, NULL, 0, &word, 1, 1) || !ctl_topic_parse(word, &topic))
        return CTL_USAGE;
    OX_CLEANUP(ox_free_ptr)
    char *path = ctl_topic_path(&topic, suffix);
    int status = rest_show(ctl, method, path, topic.full, show);
    ctl_topic_fini(&topic);
    return status;
}

int ctl_topics_stats(struct ctl *ctl)
{
    return topic_command(ctl, "GET", "/stats", show_stats);
}

int ctl_topics_unload(struct ctl *ctl)
{
    return topic_command(ctl, "PUT", "/unload", show_nothing);
}

int ctl_topics_list(struct ctl *ctl)
{
    const char *word;
    if (!ctl_parse(ctl, NULL, 0, &word, 1, 1))
        return CTL_USAGE;
    const char *slash = strchr(word, '/');
    if (!slash || slash == word || !slash[1] || strchr(slash + 1, '/')) {
        ctl_fail("'%s' is no namespace: use TENANT/NAMESPACE", word);
        return CTL_USAGE;
    }
    struct ctl_topic place = {.tenant = ox_strndup(word, (size_t)(slash - word)), .namespace = ox_strdup(slash + 1)};
    OX_CLEANUP(ox_free_ptr)
    char *path = ctl_topic_path(&place, "");
    int status = rest_show(ctl, "GET", path, word, show_list);
    ctl_topic_fini(&place);
    return status;
}

int ctl_brokers_health(struct ctl *ctl)
{
    const char *none;
    if (!ctl_parse(ctl, NULL, 0, &none, 0, 0))
        return CTL_USAGE;
    return rest_show(ctl, "GET", "/admin/v2/brokers/health", ctl->url, show_health);
}
