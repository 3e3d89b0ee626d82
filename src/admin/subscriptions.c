// subscriptions.c - /{topic}/subscription/{name}: making, deleting, moving and describing subscriptions.
#include <string.h>

#include "admin/each.h"
#include "admin/policy.h"
#include "gen/rest_routes.h"

#define SUBSCRIPTION_AT 7 // the segment of the path with the name
#define NUMBER_AT 9       // that of a count or a time

// ---- positions in bodies

static bool position_member(const json_t *body, const char *name, int64_t *ret)
{
    const json_t *value = json_object_get(body, name);
    if (!value)
        return true;
    *ret = json_integer_value(value);
    return json_is_integer(value);
}

static struct ox_pos position_bounded(int64_t ledger, int64_t entry, bool excluded)
{
    if (ledger == INT64_MAX)
        return OX_POS_LATEST;
    return ledger < 0 ? OX_POS_EARLIEST : (struct ox_pos){ledger, excluded && entry < INT64_MAX ? entry + 1 : entry};
}

// {"ledgerId", "entryId", "excluded"}, "earliest" or "latest". False: it is something else.
static bool position_read(const json_t *body, struct ox_pos *ret)
{
    int64_t ledger = -1, entry = -1;
    if (json_is_string(body)) {
        bool latest = strcmp(json_string_value(body), "latest") == 0;
        *ret = latest ? OX_POS_LATEST : OX_POS_EARLIEST;
        return latest || strcmp(json_string_value(body), "earliest") == 0;
    }
    if (!json_is_object(body) || !position_member(body, "ledgerId", &ledger) || !position_member(body, "entryId", &entry))
        return false;
    *ret = position_bounded(ledger, entry, json_is_true(json_object_get(body, "excluded")));
    return true;
}

// The position in the body. False: answered. *ret_body is NULL where none was sent.
static bool position_body(struct admin_request *r, json_t **ret_body, struct ox_pos *ret)
{
    if (!admin_body(r, ret_body))
        return false;
    if (!*ret_body || json_is_null(*ret_body) || position_read(*ret_body, ret))
        return true;
    admin_fail(
        r, HTTP_BAD_REQUEST,
        "the body must be \"earliest\", \"latest\" or an object with the whole numbers \"ledgerId\" and \"entryId\"");
    return false;
}

// ---- making and deleting

// replicated=true: what was made is marked.
static ox_step create_mark(struct admin_each *e)
{
    struct ox_subscription *s = ox_subscription_find(e->topic, e->subscription_name);
    if (!s)
        return each_ran(e, OX_E_SUBSCRIPTION_NOT_FOUND);
    e->u.replicate.replicated = true;
    each_bind(e, &e->u.replicate.op);
    ox_subscription_replicate(s, &e->u.replicate);
    return each_wait(e);
}

// e->number: 1 once it is made and is to be marked.
static bool create_again(struct admin_each *e)
{
    e->number = e->flag && !e->number;
    return e->number;
}

static ox_step create_run(struct admin_each *e)
{
    if (e->number)
        return create_mark(e);
    e->u.create.name = e->subscription_name;
    e->u.create.from = e->pos;
    e->u.create.properties = e->properties.count ? &e->properties : NULL;
    each_bind(e, &e->u.create.op);
    ox_subscription_create(e->topic, &e->u.create);
    return each_wait(e);
}

static const struct admin_verb create_verb = {.name = "admin.subscription.create",
                                              .partitioned = EACH_PARTITION,
                                              .may_create = true,
                                              .run = create_run,
                                              .again = create_again};

static void subscription_create(struct admin_request *r)
{
    struct ox_pos pos = OX_POS_LATEST;
    json_t *body;
    if (!position_body(r, &body, &pos))
        return;
    struct admin_each *e = each_new(r, &create_verb);
    each_subscription(e, SUBSCRIPTION_AT);
    e->pos = pos;
    e->flag = admin_query_true(r, "replicated");
    admin_kv_read(&e->properties, json_object_get(body, "properties"));
    each_start(e);
}

static ox_step delete_run(struct admin_each *e)
{
    if (!e->subscription)
        return each_ran(e, OX_E_SUBSCRIPTION_NOT_FOUND);
    e->u.unsubscribe.force = e->flag;
    each_bind(e, &e->u.unsubscribe.op);
    ox_subscription_unsubscribe(e->subscription, &e->u.unsubscribe, NULL);
    return each_wait(e);
}

static const struct admin_verb delete_verb = {
    .name = "admin.subscription.delete", .partitioned = EACH_PARTITION, .run = delete_run};

static void subscription_delete(struct admin_request *r)
{
    struct admin_each *e = each_new(r, &delete_verb);
    each_subscription(e, SUBSCRIPTION_AT);
    e->flag = admin_query_true(r, "force");
    each_start(e);
}

// ---- moving

static ox_step skip_run(struct admin_each *e)
{
    if (!e->subscription)
        return each_ran(e, OX_E_SUBSCRIPTION_NOT_FOUND);
    if (e->number == 0)
        return each_ran(e, OX_OK);
    e->u.skip.count = e->number < 0 ? UINT64_MAX : (uint64_t)e->number;
    each_bind(e, &e->u.skip.op);
    ox_subscription_skip(e->subscription, &e->u.skip);
    return each_wait(e);
}

static const struct admin_verb skip_verb = {.name = "admin.subscription.skip",
                                            .partitioned = EACH_REFUSED,
                                            .refusal = "Skip messages on a partitioned topic is not allowed",
                                            .run = skip_run};
static const struct admin_verb skip_all_verb = {
    .name = "admin.subscription.skip_all", .partitioned = EACH_PARTITION, .run = skip_run};

static void subscription_skip(struct admin_request *r)
{
    int64_t count;
    if (!admin_number(r, NUMBER_AT, &count))
        return;
    struct admin_each *e = each_new(r, &skip_verb);
    each_subscription(e, SUBSCRIPTION_AT);
    e->number = OX_MAX(count, 0);
    each_start(e);
}

static void subscription_skip_all(struct admin_request *r)
{
    struct admin_each *e = each_new(r, &skip_all_verb);
    each_subscription(e, SUBSCRIPTION_AT);
    e->number = -1;
    each_start(e);
}

static ox_step reset_run(struct admin_each *e)
{
    if (!e->subscription)
        return each_ran(e, OX_E_SUBSCRIPTION_NOT_FOUND);
    if (!e->topic->ml)
        return each_refuse(e, HTTP_METHOD_NOT_ALLOWED, "a non-persistent topic keeps nothing to go back to");
    e->u.seek.by_time = e->flag;
    e->u.seek.time_ms = (uint64_t)e->number;
    e->u.seek.pos = e->pos;
    each_bind(e, &e->u.seek.op);
    ox_subscription_seek(e->subscription, &e->u.seek);
    return each_wait(e);
}

static const struct admin_verb reset_time_verb = {
    .name = "admin.subscription.reset", .partitioned = EACH_PARTITION, .run = reset_run};
static const struct admin_verb reset_id_verb = {.name = "admin.subscription.reset",
                                                .partitioned = EACH_REFUSED,
                                                .refusal =
                                                    "Reset-cursor at position is not allowed for partitioned-topic",
                                                .run = reset_run};

static void subscription_reset_time(struct admin_request *r)
{
    int64_t time_ms;
    if (!admin_number(r, NUMBER_AT, &time_ms))
        return;
    struct admin_each *e = each_new(r, &reset_time_verb);
    each_subscription(e, SUBSCRIPTION_AT);
    e->flag = true;
    e->number = OX_MAX(time_ms, 0);
    each_start(e);
}

static void subscription_reset_id(struct admin_request *r)
{
    struct ox_pos pos = OX_POS_EARLIEST;
    json_t *body;
    if (!position_body(r, &body, &pos))
        return;
    if (!body || json_is_null(body)) {
        admin_fail(r, HTTP_BAD_REQUEST, "the body must say where to: an object with \"ledgerId\" and \"entryId\"");
        return;
    }
    struct admin_each *e = each_new(r, &reset_id_verb);
    each_subscription(e, SUBSCRIPTION_AT);
    e->pos = pos;
    each_start(e);
}

// ---- expiring

static ox_step expire_run(struct admin_each *e)
{
    uint64_t now = ox_wall_ms(e->topic->shard->loop), age = (uint64_t)OX_MIN(e->number, INT64_MAX / 1000) * 1000;
    if (e->subscription_name && !e->subscription)
        return each_ran(e, OX_E_SUBSCRIPTION_NOT_FOUND);
    e->u.expire.subscription = e->subscription_name;
    e->u.expire.before_ms = now > age ? now - age : 0;
    each_bind(e, &e->u.expire.op);
    ox_topic_expire(e->topic, &e->u.expire);
    return each_wait(e);
}

static const struct admin_verb expire_verb = {
    .name = "admin.subscription.expire", .partitioned = EACH_PARTITION, .run = expire_run};

static void expire_start(struct admin_request *r, size_t seconds_at, bool all)
{
    int64_t seconds;
    if (!admin_number(r, seconds_at, &seconds))
        return;
    struct admin_each *e = each_new(r, &expire_verb);
    if (!all)
        each_subscription(e, SUBSCRIPTION_AT);
    e->number = OX_MAX(seconds, 0);
    each_start(e);
}

static void subscription_expire(struct admin_request *r)
{
    expire_start(r, NUMBER_AT, false);
}

static void subscription_expire_all(struct admin_request *r)
{
    expire_start(r, NUMBER_AT - 1, true);
}

static ox_step expire_id_run(struct admin_each *e)
{
    if (!e->subscription)
        return each_ran(e, OX_E_SUBSCRIPTION_NOT_FOUND);
    e->u.skip.upto = e->pos;
    e->u.skip.to_position = true;
    each_bind(e, &e->u.skip.op);
    ox_subscription_skip(e->subscription, &e->u.skip);
    return each_wait(e);
}

static const struct admin_verb expire_id_verb = {
    .name = "admin.subscription.expire",
    .partitioned = EACH_REFUSED,
    .refusal = "Expire message at position is not supported for partitioned-topic",
    .run = expire_id_run};

static void subscription_expire_id(struct admin_request *r)
{
    struct ox_pos pos = OX_POS_EARLIEST;
    json_t *body;
    if (!position_body(r, &body, &pos))
        return;
    if (!json_is_object(body)) {
        admin_fail(r, HTTP_BAD_REQUEST,
                   "the body must be an object with \"ledgerId\" and \"entryId\": the last message that expires");
        return;
    }
    struct admin_each *e = each_new(r, &expire_id_verb);
    each_subscription(e, SUBSCRIPTION_AT);
    e->pos = pos;
    each_start(e);
}

// ---- properties

static ox_step properties_get_run(struct admin_each *e)
{
    if (!e->subscription)
        return each_ran(e, OX_E_SUBSCRIPTION_NOT_FOUND);
    if (!e->result)
        e->result = json_object();
    json_t *one = e->subscription->cursor ? admin_kv_json(&e->subscription->cursor->properties) : json_object();
    json_object_update_new(e->result, one);
    return each_ran(e, OX_OK);
}

static const struct admin_verb properties_get_verb = {
    .name = "admin.subscription.properties", .partitioned = EACH_PARTITION, .run = properties_get_run};

static void subscription_properties_get(struct admin_request *r)
{
    struct admin_each *e = each_new(r, &properties_get_verb);
    each_subscription(e, SUBSCRIPTION_AT);
    each_start(e);
}

static ox_step properties_set_run(struct admin_each *e)
{
    if (!e->subscription)
        return each_ran(e, OX_E_SUBSCRIPTION_NOT_FOUND);
    e->u.set_properties.properties = &e->properties;
    each_bind(e, &e->u.set_properties.op);
    ox_subscription_set_properties(e->subscription, &e->u.set_properties);
    return each_wait(e);
}

static const struct admin_verb properties_set_verb = {
    .name = "admin.subscription.properties", .partitioned = EACH_PARTITION, .run = properties_set_run};

static void subscription_properties_set(struct admin_request *r)
{
    json_t *body;
    if (!admin_body(r, &body))
        return;
    if (!json_is_object(body)) {
        admin_fail(r, HTTP_BAD_REQUEST, "the body must be an object of texts: the subscription's properties");
        return;
    }
    struct admin_each *e = each_new(r, &properties_set_verb);
    each_subscription(e, SUBSCRIPTION_AT);
    admin_kv_read(&e->properties, body);
    each_start(e);
}

// ---- replication

static ox_step replicated_get_run(struct admin_each *e)
{
    if (!e->subscription)
        return each_ran(e, OX_E_SUBSCRIPTION_NOT_FOUND);
    if (!e->result)
        e->result = json_object();
    json_object_set_new(e->result, e->topic->name.full, json_boolean(ox_subscription_is_replicated(e->subscription)));
    return each_ran(e, OX_OK);
}

static ox_step replicated_set_run(struct admin_each *e)
{
    if (!e->subscription)
        return each_ran(e, OX_E_SUBSCRIPTION_NOT_FOUND);
    e->u.replicate.replicated = e->flag;
    each_bind(e, &e->u.replicate.op);
    ox_subscription_replicate(e->subscription, &e->u.replicate);
    return each_wait(e);
}

static const struct admin_verb replicated_get_verb = {
    .name = "admin.subscription.replicated", .partitioned = EACH_PARTITION, .run = replicated_get_run};
static const struct admin_verb replicated_set_verb = {
    .name = "admin.subscription.replicate", .partitioned = EACH_PARTITION, .run = replicated_set_run};

// A non-persistent topic has none that could be. False: answered.
static bool replicated_domain_fits(struct admin_request *r)
{
    if (r->topic.domain == OX_DOMAIN_PERSISTENT)
        return true;
    admin_fail(r, HTTP_METHOD_NOT_ALLOWED, "Replicated subscriptions are not there on non-persistent topics: %s",
               r->topic.full);
    return false;
}

static void replicated_start(struct admin_request *r, const struct admin_verb *verb, bool flag)
{
    struct admin_each *e = each_new(r, verb);
    each_subscription(e, SUBSCRIPTION_AT);
    e->flag = flag;
    each_start(e);
}

static void subscription_replicated_get(struct admin_request *r)
{
    if (replicated_domain_fits(r))
        replicated_start(r, &replicated_get_verb, false);
}

static void subscription_replicated_set(struct admin_request *r)
{
    json_t *body, *flag = NULL;
    if (!admin_body(r, &body) || !policy_read(r, &policy_flag, "replicatedSubscriptionStatus", body, &flag))
        return;
    bool wanted = json_is_true(flag);
    json_decref(flag);
    if (replicated_domain_fits(r))
        replicated_start(r, &replicated_set_verb, wanted);
}

// ---- looking through the backlog

static ox_step analyze_run(struct admin_each *e)
{
    if (!e->subscription)
        return each_ran(e, OX_E_SUBSCRIPTION_NOT_FOUND);
    if (!e->topic->ml)
        return each_refuse(e, HTTP_METHOD_NOT_ALLOWED, "a non-persistent topic keeps no backlog");
    const struct ox_broker_config *c = &e->topic->shard->config;
    e->u.analysis = (struct ox_backlog_analysis){.name = e->subscription_name,
                                                 .has_from = e->flag,
                                                 .from = e->pos,
                                                 .entries_max = c->scan_entries_max,
                                                 .time_max_ms = c->scan_ms_max};
    each_bind(e, &e->u.analysis.op);
    ox_backlog_analyze(e->topic, &e->u.analysis);
    return each_wait(e);
}

static void put_analyzed(json_t *o, const char *suffix, const char *kind, uint64_t value)
{
    OX_CLEANUP(ox_free_ptr)
    char *name = ox_asprintf("filter%s%s", kind, suffix);
    json_object_set_new(o, name, json_integer((json_int_t)value));
}

// Entry filters cannot be installed: every entry is accepted.
static void analyze_collect(struct admin_each *e)
{
    static const char *const kinds[] = {"Rejected", "Accepted", "Rescheduled"};
    const struct ox_backlog_analysis *a = &e->u.analysis;
    json_t *o = json_pack("{s:I, s:I}", "entries", (json_int_t)a->entries, "messages", (json_int_t)a->messages);
    for (size_t i = 0; i < OX_COUNT(kinds); i++) {
        put_analyzed(o, "Entries", kinds[i], i == 1 ? a->entries : 0);
        put_analyzed(o, "Messages", kinds[i], i == 1 ? a->messages : 0);
    }
    json_object_set_new(o, "aborted", json_boolean(a->aborted));
    if (a->entries) {
        json_object_set_new(o, "firstMessageId", json_sprintf(OX_POS_FMT, OX_POS_ARG(a->first)));
        json_object_set_new(o, "lastMessageId", json_sprintf(OX_POS_FMT, OX_POS_ARG(a->last)));
    }
    e->result = o;
}

static const struct admin_verb analyze_verb = {
    .name = "admin.subscription.analyze",
    .partitioned = EACH_REFUSED,
    .refusal = "Analyze backlog on a partitioned topic is not allowed, please try do it on specific topic partition",
    .run = analyze_run,
    .collect = analyze_collect};

static void subscription_analyze(struct admin_request *r)
{
    struct ox_pos pos = OX_POS_EARLIEST;
    json_t *body;
    if (!position_body(r, &body, &pos))
        return;
    struct admin_each *e = each_new(r, &analyze_verb);
    each_subscription(e, SUBSCRIPTION_AT);
    e->flag = body && !json_is_null(body);
    e->pos = pos;
    each_start(e);
}

// ---- lists

static ox_step list_run(struct admin_each *e)
{
    if (!e->result)
        e->result = json_object();
    OX_MAP_EACH(&e->topic->subscriptions, node)
        json_object_set_new(e->result, CONTAINER_OF(node, struct ox_subscription, by_name)->name, json_null());
    return each_ran(e, OX_OK);
}

static void list_answer(struct admin_each *e)
{
    json_t *names = json_array(), *value;
    const char *name;
    json_object_foreach(e->result, name, value) json_array_append_new(names, json_string(name));
    admin_json(e->request, HTTP_OK, names);
}

static const struct admin_verb list_verb = {
    .name = "admin.subscriptions", .partitioned = EACH_PARTITION, .run = list_run, .answer = list_answer};

static void subscription_list(struct admin_request *r)
{
    each_start(each_new(r, &list_verb));
}

static const struct admin_route routes[] = {ADMIN_ROUTES_SUBSCRIPTIONS};
const struct admin_route_table admin_subscriptions = {routes, OX_COUNT(routes)};
