// topic_policies.c - /{topic}/{policy}: one table says what there is; reading, setting and removing are the same for all.
#include "broker/topic_policies.h"

#include <string.h>

#include "admin/each.h"
#include "admin/node.h"
#include "admin/policy.h"
#include "gen/rest_routes.h"

enum tp_layout {
    TP_PLAIN,        // a member of its own
    TP_QUOTA,        // an object by kind of quota
    TP_DELAYED,      // three members
    TP_SUBSCRIPTION, // of one subscription, in subscriptionPolicies
    TP_SHADOWS,      // a member of its own: topics that must be there
};

struct tp_policy {
    const char *name;   // in the path
    const char *method; // that sets it
    const char *member; // in the topic's policies
    const struct policy_shape *shape;
    enum tp_layout layout;
    bool no_content; // nothing set is answered with 204 instead of an empty 200
    json_t *(*in_force)(const struct ox_policies *p,
                        const struct ox_shard *sh); // what applies, for applied=true; NULL: Pulsar knows no such question
    const char *fallback;                           // JSON of an answer where nothing is set
    bool bodiless;                                  // setting it turns it on
    void (*show)(json_t *value);                    // adds what is shown beside it; NULL: nothing
};

#define TP_NUMBER(function, value)                                                  \
    static json_t *function(const struct ox_policies *p, const struct ox_shard *sh) \
    {                                                                               \
        (void)sh;                                                                   \
        return json_integer((json_int_t)(value));                                   \
    }

TP_NUMBER(in_force_ttl, p->ttl_s)
TP_NUMBER(in_force_producers, p->max_producers)
TP_NUMBER(in_force_consumers, p->max_consumers)
TP_NUMBER(in_force_unacked_consumer, p->max_unacked_per_consumer)
TP_NUMBER(in_force_unacked_subscription, p->max_unacked_per_subscription)
TP_NUMBER(in_force_compaction, p->compaction_threshold)

static json_t *in_force_dedup(const struct ox_policies *p, const struct ox_shard *sh)
{
    (void)sh;
    return json_boolean(p->dedup);
}

static json_t *in_force_auto_subscription(const struct ox_policies *p, const struct ox_shard *sh)
{
    (void)sh;
    return json_pack("{s:b}", "allowAutoSubscriptionCreation", p->auto_subscription);
}

static json_t *rate_json(const struct ox_rate_limit *rate)
{
    return json_pack("{s:I, s:I, s:b, s:i}", "dispatchThrottlingRateInMsg", (json_int_t)rate->messages,
                     "dispatchThrottlingRateInByte", (json_int_t)rate->bytes, "relativeToPublishRate", rate->relative,
                     "ratePeriodInSecond", (int)OX_MAX(rate->period_s, 1u));
}

static json_t *in_force_dispatch(const struct ox_policies *p, const struct ox_shard *sh)
{
    (void)sh;
    return rate_json(&p->dispatch);
}

static json_t *in_force_subscription_dispatch(const struct ox_policies *p, const struct ox_shard *sh)
{
    (void)sh;
    return rate_json(&p->subscription_dispatch);
}

static json_t *in_force_subscribe(const struct ox_policies *p, const struct ox_shard *sh)
{
    (void)sh;
    return json_pack("{s:I, s:i}", "subscribeThrottlingRatePerConsumer", (json_int_t)p->subscribe.messages,
                     "ratePeriodInSecond", (int)(p->subscribe.period_s ? p->subscribe.period_s : 30));
}

static json_t *in_force_delayed(const struct ox_policies *p, const struct ox_shard *sh)
{
    (void)sh;
    return json_pack("{s:I, s:b, s:I}", "tickTime", (json_int_t)p->delayed_tick_ms, "active", p->delayed,
                     "maxDeliveryDelayInMillis", (json_int_t)p->delayed_max_ms);
}

static json_t *in_force_inactive(const struct ox_policies *p, const struct ox_shard *sh)
{
    (void)sh;
    return json_pack("{s:s, s:I, s:b}", "inactiveTopicDeleteMode",
                     p->inactive_mode == OX_INACTIVE_NO_SUBSCRIPTIONS ? "delete_when_no_subscriptions"
                                                                      : "delete_when_subscriptions_caught_up",
                     "maxInactiveDurationSeconds", (json_int_t)p->inactive_s, "deleteWhileInactive", p->inactive_delete);
}

static int64_t unit_of(int64_t value, int64_t unit)
{
    return value < 0 ? -1 : value / unit;
}

static json_t *in_force_retention(const struct ox_policies *p, const struct ox_shard *sh)
{
    (void)sh;
    return json_pack("{s:I, s:I}", "retentionTimeInMinutes", (json_int_t)unit_of(p->retention_ms, 60000),
                     "retentionSizeInMB", (json_int_t)unit_of(p->retention_bytes, 1024 * 1024));
}

static json_t *quota_json(int64_t bytes, int64_t seconds, enum ox_quota_policy policy)
{
    static const char *const names[] = {
        [OX_QUOTA_HOLD] = "producer_request_hold", [OX_QUOTA_EXCEPTION] = "producer_exception", [OX_QUOTA_EVICT] = "consumer_backlog_eviction"};
    return json_pack("{s:I, s:I, s:I, s:s}", "limit", (json_int_t)bytes, "limitSize", (json_int_t)bytes, "limitTime",
                     (json_int_t)seconds, "policy", names[policy]);
}

static json_t *in_force_quota(const struct ox_policies *p, const struct ox_shard *sh)
{
    (void)sh;
    return json_pack("{s:o, s:o}", "destination_storage", quota_json(p->quota_bytes, -1, p->quota_bytes_policy),
                     "message_age", quota_json(-1, p->quota_s, p->quota_s_policy));
}

static json_t *in_force_clusters(const struct ox_policies *p, const struct ox_shard *sh)
{
    (void)p;
    return json_pack("[s]", sh->config.cluster);
}

static json_t *in_force_persistence(const struct ox_policies *p, const struct ox_shard *sh)
{
    (void)p, (void)sh;
    return json_pack("{s:i, s:i, s:i, s:f}", "bookkeeperEnsemble", 1, "bookkeeperWriteQuorum", 1, "bookkeeperAckQuorum",
                     1, "managedLedgerMaxMarkDeleteRate", 1.0);
}

static json_t *in_force_compatibility(const struct ox_policies *p, const struct ox_shard *sh)
{
    (void)p, (void)sh;
    return json_string("FULL");
}

static json_t *in_force_off(const struct ox_policies *p, const struct ox_shard *sh)
{
    (void)p, (void)sh;
    return json_false();
}

static json_t *in_force_filters(const struct ox_policies *p, const struct ox_shard *sh)
{
    (void)p, (void)sh;
    return json_pack("{s:s}", "entryFilterNames", "");
}

static const struct tp_policy tp_policies[] = {
    {"autoSubscriptionCreation", "POST", "autoSubscriptionCreationOverride", &policy_auto_subscription, TP_PLAIN, false,
     in_force_auto_subscription, NULL, false, NULL},
    {"backlogQuota", "POST", "backLogQuotaMap", &policy_quota, TP_QUOTA, false, in_force_quota, NULL, false, NULL},
    {"compactionThreshold", "POST", "compactionThreshold", &policy_bytes, TP_PLAIN, false, in_force_compaction, NULL,
     false, NULL},
    {"deduplicationEnabled", "POST", "deduplicationEnabled", &policy_flag, TP_PLAIN, false, in_force_dedup, NULL, false, NULL},
    {"deduplicationSnapshotInterval", "POST", "deduplicationSnapshotIntervalSeconds", &policy_count, TP_PLAIN, false,
     NULL, NULL, false, NULL},
    {"delayedDelivery", "POST", NULL, &policy_delayed, TP_DELAYED, false, in_force_delayed, NULL, false, NULL},
    {"dispatchRate", "POST", "dispatchRate", &policy_dispatch_rate, TP_PLAIN, false, in_force_dispatch, NULL, false, NULL},
    {"subscriptionDispatchRate", "POST", "subscriptionDispatchRate", &policy_dispatch_rate, TP_PLAIN, false,
     in_force_subscription_dispatch, NULL, false, NULL},
    {"replicatorDispatchRate", "POST", "replicatorDispatchRate", &policy_dispatch_rate, TP_PLAIN, false, NULL, NULL,
     false, NULL},
    {"subscribeRate", "POST", "subscribeRate", &policy_subscribe_rate, TP_PLAIN, false, in_force_subscribe, NULL, false, NULL},
    {"publishRate", "POST", "publishRate", &policy_publish_rate, TP_PLAIN, true, NULL, NULL, false, NULL},
    {"inactiveTopicPolicies", "POST", "inactiveTopicPolicies", &policy_inactive, TP_PLAIN, false, in_force_inactive,
     NULL, false, NULL},
    {"maxConsumersPerSubscription", "POST", "maxConsumersPerSubscription", &policy_count, TP_PLAIN, true, NULL, NULL,
     false, NULL},
    {"maxConsumers", "POST", "maxConsumerPerTopic", &policy_count, TP_PLAIN, false, in_force_consumers, NULL, false, NULL},
    {"maxProducers", "POST", "maxProducerPerTopic", &policy_count, TP_PLAIN, false, in_force_producers, NULL, false, NULL},
    {"maxSubscriptionsPerTopic", "POST", "maxSubscriptionsPerTopic", &policy_count, TP_PLAIN, true, NULL, NULL, false, NULL},
    {"maxMessageSize", "POST", "maxMessageSize", &policy_count, TP_PLAIN, true, NULL, NULL, false, NULL},
    {"maxUnackedMessagesOnConsumer", "POST", "maxUnackedMessagesOnConsumer", &policy_count, TP_PLAIN, false,
     in_force_unacked_consumer, NULL, false, NULL},
    {"maxUnackedMessagesOnSubscription", "POST", "maxUnackedMessagesOnSubscription", &policy_count, TP_PLAIN, false,
     in_force_unacked_subscription, NULL, false, NULL},
    {"messageTTL", "POST", "messageTTLInSeconds", &policy_count, TP_PLAIN, false, in_force_ttl, NULL, false, NULL},
    {"persistence", "POST", "persistence", &policy_persistence, TP_PLAIN, false, in_force_persistence, NULL, false, NULL},
    {"replication", "POST", "replicationClusters", &policy_texts, TP_PLAIN, false, in_force_clusters, NULL, false, NULL},
    {"retention", "POST", "retentionPolicies", &policy_retention, TP_PLAIN, false, in_force_retention, NULL, false, NULL},
    {"schemaCompatibilityStrategy", "PUT", "schemaCompatibilityStrategy", &policy_compatibility, TP_PLAIN, false,
     in_force_compatibility, NULL, false, NULL},
    {"schemaValidationEnforced", "POST", "schemaValidationEnforced", &policy_flag, TP_PLAIN, false, in_force_off,
     "false", false, NULL},
    {"subscriptionTypesEnabled", "POST", "subscriptionTypesEnabled", &policy_subscription_types, TP_PLAIN, true, NULL,
     NULL, false, NULL},
    {"dispatcherPauseOnAckStatePersistent", "POST", "dispatcherPauseOnAckStatePersistentEnabled", &policy_flag,
     TP_PLAIN, false, in_force_off, "false", true, NULL},
    {"entryFilters", "POST", "entryFilters", &policy_entry_filters, TP_PLAIN, false, in_force_filters, NULL, false, NULL},
    {"offloadPolicies", "POST", "offloadPolicies", &policy_offload, TP_PLAIN, false, NULL, NULL, false, policy_offload_show},
    {"shadowTopics", "PUT", "shadowTopics", &policy_texts, TP_SHADOWS, false, NULL, NULL, false, NULL},
};
static const struct tp_policy tp_subscription_dispatch = {"dispatchRate",
                                                          "POST",
                                                          "dispatchRate",
                                                          &policy_dispatch_rate,
                                                          TP_SUBSCRIPTION,
                                                          false,
                                                          in_force_subscription_dispatch,
                                                          NULL,
                                                          false,
                                                          NULL};

#define POLICY_AT 6 // the segment with the name, or with the subscription whose policy it is

// A request for a policy of a topic, while the topic is looked for and its policies are read or changed.
struct tp_call {
    struct admin_request *request;
    const struct tp_policy *policy;
    json_t *value;      // to be set
    char *subscription; // TP_SUBSCRIPTION
    struct ox_partitions_get look;
    struct ox_topic_name shadow; // TP_SHADOWS: the one that is looked for
    size_t shadows;              // TP_SHADOWS: those that are there
    union {
        struct ox_topic_policies_get get;
        struct ox_topic_policies_update update;
    };
};

static void tp_free(struct tp_call *c)
{
    json_decref(c->value);
    ox_free(c->subscription);
    ox_topic_name_fini(&c->shadow);
    ox_free(c);
}

static void tp_fail(struct tp_call *c, enum ox_err err)
{
    struct admin_request *r = c->request;
    if (err == OX_E_TOPIC_NOT_FOUND)
        admin_fail(r, HTTP_NOT_FOUND, "Topic %s not found", r->topic.full);
    else if (err == OX_E_NAMESPACE_NOT_FOUND)
        admin_fail(r, HTTP_NOT_FOUND, "Namespace not found: %s", r->topic.ns);
    else if (err == OX_E_UNSUPPORTED)
        admin_fail(r, HTTP_METHOD_NOT_ALLOWED,
                   "%s: Topic level policies is disabled, to enable the topic level policy and retry.", r->topic.full);
    else
        admin_error(r, err, r->topic.full, NULL);
    tp_free(c);
}

// ---- where a policy lies

static json_t *object_under(json_t *parent, const char *member)
{
    if (!json_is_object(json_object_get(parent, member)))
        json_object_set_new(parent, member, json_object());
    return json_object_get(parent, member);
}

static const char *const delayed_members[][2] = {{"tickTime", "delayedDeliveryTickTimeMillis"},
                                                 {"active", "delayedDeliveryEnabled"},
                                                 {"maxDeliveryDelayInMillis", "delayedDeliveryMaxDelayInMillis"}};

static json_t *delayed_value(const json_t *own)
{
    json_t *value = json_object();
    for (size_t i = 0; i < OX_COUNT(delayed_members); i++) {
        json_t *member = json_object_get(own, delayed_members[i][1]);
        if (member && !json_is_null(member))
            json_object_set(value, delayed_members[i][0], member);
    }
    if (json_object_size(value))
        return value;
    json_decref(value);
    return NULL;
}

// What is set: a new reference, or NULL.
static json_t *tp_own(const struct tp_call *c, const json_t *own)
{
    const struct tp_policy *p = c->policy;
    if (p->layout == TP_DELAYED)
        return delayed_value(own);
    if (p->layout == TP_SUBSCRIPTION)
        own = json_object_get(json_object_get(own, "subscriptionPolicies"), c->subscription);
    json_t *value = json_object_get(own, p->member);
    bool empty = !value || json_is_null(value) || (p->layout == TP_QUOTA && !json_object_size(value));
    return empty ? NULL : json_incref(value);
}

static void delayed_set(json_t *policies, const json_t *value)
{
    for (size_t i = 0; i < OX_COUNT(delayed_members); i++) {
        json_t *member = json_object_get(value, delayed_members[i][0]);
        if (member)
            json_object_set(policies, delayed_members[i][1], member);
        else
            json_object_del(policies, delayed_members[i][1]);
    }
}

// value NULL: removed.
static enum ox_err tp_change(struct ox_topic_policies_update *u, json_t *policies)
{
    const struct tp_call *c = (const struct tp_call *)u->ctx;
    const struct tp_policy *p = c->policy;
    const char *member = p->member;
    if (p->layout == TP_DELAYED) {
        delayed_set(policies, c->value);
        return OX_OK;
    }
    if (p->layout == TP_QUOTA) {
        policies = object_under(policies, p->member);
        member = policy_quota_type(c->request);
    } else if (p->layout == TP_SUBSCRIPTION) {
        policies = object_under(object_under(policies, "subscriptionPolicies"), c->subscription);
    }
    if (c->value)
        json_object_set(policies, member, c->value);
    else
        json_object_del(policies, member);
    return OX_OK;
}

// ---- the topic must be there

static void tp_read(struct tp_call *c);
static void tp_write(struct tp_call *c);

static void tp_shadows(struct tp_call *c);

static void tp_go(struct tp_call *c)
{
    if (strcmp(c->request->route->method, "GET") == 0)
        tp_read(c);
    else if (c->policy && c->policy->layout == TP_SHADOWS)
        tp_shadows(c);
    else
        tp_write(c);
}

static void tp_shadow_missing(struct tp_call *c, const char *name)
{
    admin_fail(c->request, HTTP_PRECONDITION_FAILED, "Shadow topic [%s] not exists.", name);
    tp_free(c);
}

static void tp_shadow_found(struct ox_op *op)
{
    struct tp_call *c = CONTAINER_OF(op, struct tp_call, look.op);
    if (op->err == OX_OK)
        c->shadows++;
    if (op->err == OX_OK)
        tp_shadows(c);
    else if (op->err == OX_E_TOPIC_NOT_FOUND || op->err == OX_E_NAMESPACE_NOT_FOUND)
        tp_shadow_missing(c, c->shadow.full);
    else
        tp_fail(c, op->err);
}

// Each topic of the list must be there, then it is kept.
static void tp_shadows(struct tp_call *c)
{
    const char *name = json_string_value(json_array_get(c->value, c->shadows));
    ox_topic_name_fini(&c->shadow);
    c->shadow = (struct ox_topic_name){0};
    if (!name) {
        tp_write(c);
        return;
    }
    if (ox_topic_name_parse(&c->shadow, name) != OX_OK) {
        tp_shadow_missing(c, name);
        return;
    }
    memset(&c->look, 0, sizeof c->look);
    ox_op_init(&c->look.op, c->request->admin->shard->loop, tp_shadow_found, "partitions.get");
    ox_partitions_get(c->request->admin->shard, &c->look, &c->shadow);
}

static void tp_found(struct ox_op *op)
{
    struct tp_call *c = CONTAINER_OF(op, struct tp_call, look.op);
    if (op->err)
        tp_fail(c, op->err);
    else
        tp_go(c);
}

static void tp_start(struct tp_call *c)
{
    struct admin_request *r = c->request;
    if (ox_topic_find(r->admin->shard, r->topic.full)) {
        tp_go(c);
        return;
    }
    ox_op_init(&c->look.op, r->admin->shard->loop, tp_found, "partitions.get");
    ox_partitions_get(r->admin->shard, &c->look, &r->topic);
}

// ---- reading

static void tp_answer(struct tp_call *c, json_t *take_value)
{
    struct admin_request *r = c->request;
    const struct tp_policy *p = c->policy;
    if (take_value && p->show)
        p->show(take_value);
    if (take_value)
        admin_json(r, HTTP_OK, take_value);
    else if (p->layout == TP_QUOTA)
        admin_json(r, HTTP_OK, json_object());
    else if (p->fallback)
        admin_bytes(r, HTTP_OK, p->fallback, strlen(p->fallback));
    else
        admin_empty(r, p->no_content ? HTTP_NO_CONTENT : HTTP_OK);
}

// What applies where the topic has none of its own and the broker does not look at it.
static void tp_of_namespace(struct admin_request *r, void (*answer)(struct admin_node *n))
{
    ox_free(r->ns);
    r->ns = ox_strdup(r->topic.ns);
    admin_node_read(r, admin_namespace_path(r->ns), "Namespace", NULL, answer);
}

static void tp_got(struct ox_op *op)
{
    struct tp_call *c = CONTAINER_OF(op, struct tp_call, get.op);
    const struct tp_policy *p = c->policy;
    if (op->err) {
        tp_fail(c, op->err);
        return;
    }
    json_t *own = tp_own(c, c->get.own), *value = p->show ? json_copy(own) : json_incref(own);
    json_decref(own);
    if (!value && p->in_force && admin_query_true(c->request, "applied"))
        value = p->in_force(&c->get.applied, c->request->admin->shard);
    json_decref(c->get.own);
    if (!value && p->shape == &policy_offload && admin_query_true(c->request, "applied"))
        tp_of_namespace(c->request, admin_offload_answer);
    else
        tp_answer(c, value);
    tp_free(c);
}

static void tp_read(struct tp_call *c)
{
    struct ox_shard *sh = c->request->admin->shard;
    memset(&c->get, 0, sizeof c->get);
    ox_op_init(&c->get.op, sh->loop, tp_got, "topic.policies.get");
    ox_topic_policies_get(sh, &c->get, &c->request->topic);
}

// ---- setting and removing

static void tp_updated(struct ox_op *op)
{
    struct tp_call *c = CONTAINER_OF(op, struct tp_call, update.op);
    if (op->err) {
        tp_fail(c, op->err);
        return;
    }
    admin_empty(c->request, HTTP_NO_CONTENT);
    tp_free(c);
}

static void tp_write(struct tp_call *c)
{
    struct ox_shard *sh = c->request->admin->shard;
    memset(&c->update, 0, sizeof c->update);
    ox_op_init(&c->update.op, sh->loop, tp_updated, "topic.policies.set");
    c->update.change = c->policy ? tp_change : NULL;
    c->update.ctx = c;
    ox_topic_policies_update(sh, &c->update, &c->request->topic);
}

static bool tp_message_size_fits(struct admin_request *r, const json_t *value)
{
    if (json_integer_value(value) <= (json_int_t)r->admin->shard->config.message_bytes_max)
        return true;
    admin_fail(r, HTTP_PRECONDITION_FAILED, "topic-level maxMessageSize must be greater than or equal to 0 and must be smaller than that in the broker-level");
    return false;
}

static bool tp_clusters_fit(struct admin_request *r, const json_t *value)
{
    const char *here = r->admin->shard->config.cluster;
    if (json_array_size(value) == 1 && strcmp(json_string_value(json_array_get(value, 0)), here) == 0)
        return true;
    admin_fail(r, HTTP_PRECONDITION_FAILED,
               "the list of clusters must be [\"%s\"]: other clusters are not known to this broker", here);
    return false;
}

// Policies of which an empty body, or an empty list, says nothing. False: answered.
static bool tp_says_something(struct admin_request *r, const struct tp_policy *p, const json_t *body)
{
    bool empty = !body || json_is_null(body);
    if (p->layout == TP_SHADOWS && (empty || (json_is_array(body) && !json_array_size(body))))
        admin_fail(r, HTTP_PRECONDITION_FAILED, "Cannot specify empty shadow topics, please use remove command instead.");
    else if (p->shape == &policy_offload && empty)
        admin_fail(r, HTTP_PRECONDITION_FAILED, "The offloadPolicies must be specified: the body is empty");
    return !r->answered;
}

// The value from the body, or of messageTTL from the query. False: answered.
static bool tp_value(struct admin_request *r, const struct tp_policy *p, json_t **ret)
{
    json_t *body = NULL;
    const char *ttl = strcmp(p->name, "messageTTL") == 0 ? admin_query(r, "messageTTL") : NULL;
    int64_t number;
    if (p->bodiless)
        r->json = json_true();
    if (ttl && ox_parse_i64(ttl, INT32_MIN, INT32_MAX, &number) == OX_OK)
        r->json = json_integer((json_int_t)number);
    if (!admin_body(r, &body) || !tp_says_something(r, p, body))
        return false;
    if (p->shape == &policy_entry_filters && json_is_null(body))
        return true; // takes it away
    if (!policy_read(r, p->shape, p->name, body, ret))
        return false;
    if (p->layout == TP_QUOTA)
        *ret = admin_quota_full(*ret);
    bool fits = strcmp(p->name, "maxMessageSize") == 0 ? tp_message_size_fits(r, *ret)
                : strcmp(p->name, "replication") == 0  ? tp_clusters_fit(r, *ret)
                                                       : true;
    if (!fits)
        json_decref(*ret);
    return fits;
}

static void tp_begin(struct admin_request *r, const struct tp_policy *p, bool subscription)
{
    json_t *value = NULL;
    bool reads = strcmp(r->route->method, "GET") == 0, removes = strcmp(r->route->method, "DELETE") == 0;
    if (p && r->topic.partition >= 0) {
        admin_fail(r, HTTP_PRECONDITION_FAILED, "Not allowed to set/get topic policy for a partition: %s", r->topic.full);
        return;
    }
    if (p && p->layout == TP_QUOTA && !reads && !policy_quota_type(r))
        return;
    if (p && !reads && !removes && !tp_value(r, p, &value))
        return;
    struct tp_call *c = ox_malloc(sizeof *c);
    c->request = r;
    c->policy = p;
    c->value = value;
    c->subscription = subscription ? admin_twice(r, POLICY_AT) : NULL;
    tp_start(c);
}

static bool tp_method_fits(const struct tp_policy *p, const char *method)
{
    bool reads = strcmp(method, "GET") == 0;
    if (strcmp(method, "DELETE") == 0)
        return strcmp(p->name, "schemaValidationEnforced") != 0;
    return reads ? p->layout != TP_QUOTA : strcmp(method, p->method) == 0;
}

static void tp_policy(struct admin_request *r)
{
    const char *name = r->segments[POLICY_AT];
    for (size_t i = 0; i < OX_COUNT(tp_policies); i++) {
        const struct tp_policy *p = &tp_policies[i];
        if (strcmp(p->name, name) != 0)
            continue;
        if (tp_method_fits(p, r->route->method))
            tp_begin(r, p, false);
        else
            admin_fail(r, HTTP_METHOD_NOT_ALLOWED, "%s is not a method of %s", r->route->method, name);
        return;
    }
    admin_unknown(r, name);
}

static void tp_quota_map(struct admin_request *r)
{
    for (size_t i = 0; i < OX_COUNT(tp_policies); i++) {
        if (tp_policies[i].layout == TP_QUOTA)
            tp_begin(r, &tp_policies[i], false);
    }
}

static void tp_subscription(struct admin_request *r)
{
    tp_begin(r, &tp_subscription_dispatch, true);
}

static void tp_remove_all(struct admin_request *r)
{
    tp_begin(r, NULL, false);
}

static const struct admin_route routes[] = {ADMIN_ROUTES_TOPIC_POLICIES};
const struct admin_route_table admin_topic_policies = {routes, OX_COUNT(routes)};
