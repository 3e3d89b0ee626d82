// bundles.c - the ranges of hashes that a namespace's topics lie in: finding one, which topics are in it, splitting it. One broker has them all, so that a split moves nothing.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/node.h"
#include "broker/namespace_admin.h"
#include "broker/topic_list.h"
#include "gen/rest_routes.h"

#define BUNDLE_AT 5
#define HASHES_A_TURN 2048

// ---- finding

static bool bundle_bounds(const json_t *policies, size_t i, uint32_t *ret_low, uint32_t *ret_high)
{
    const json_t *bounds = json_object_get(json_object_get(policies, "bundles"), "boundaries");
    const char *low = json_string_value(json_array_get(bounds, i)),
               *high = json_string_value(json_array_get(bounds, i + 1));
    if (!low || !high)
        return false;
    *ret_low = (uint32_t)strtoul(low, NULL, 16);
    *ret_high = (uint32_t)strtoul(high, NULL, 16);
    return true;
}

bool admin_bundle_holds(uint32_t low, uint32_t high, uint32_t hash)
{
    return hash >= low && (hash < high || high == UINT32_MAX);
}

static size_t bundle_count(const json_t *policies)
{
    size_t bounds = json_array_size(json_object_get(json_object_get(policies, "bundles"), "boundaries"));
    return bounds ? bounds - 1 : 0;
}

// The last bundle that begins at the hash or before it: bounds rise.
static size_t bundle_at(const json_t *policies, uint32_t hash)
{
    size_t at = 0, end = bundle_count(policies);
    while (end > at + 1) {
        size_t middle = at + (end - at) / 2;
        uint32_t low, high;
        if (bundle_bounds(policies, middle, &low, &high) && low <= hash)
            at = middle;
        else
            end = middle;
    }
    return at;
}

bool admin_bundle_of(const json_t *policies, uint32_t hash, uint32_t *ret_low, uint32_t *ret_high, char name[32])
{
    if (!bundle_bounds(policies, bundle_at(policies, hash), ret_low, ret_high) ||
        !admin_bundle_holds(*ret_low, *ret_high, hash))
        return false;
    snprintf(name, 32, "0x%08x_0x%08x", *ret_low, *ret_high);
    return true;
}

bool admin_bundle_named(struct admin_request *r, const json_t *policies, const char *asked, uint32_t *ret_low,
                        uint32_t *ret_high)
{
    char name[32];
    for (size_t i = 0; bundle_bounds(policies, i, ret_low, ret_high); i++) {
        snprintf(name, sizeof name, "0x%08x_0x%08x", *ret_low, *ret_high);
        if (strcmp(name, asked) == 0)
            return true;
    }
    admin_fail(r, HTTP_PRECONDITION_FAILED, "Invalid bundle range: %s is none of the bundles of %s", asked, r->ns);
    return false;
}

// ---- the topics of a bundle

enum bundle_use {
    BUNDLE_SHOW,    // they are the answer
    BUNDLE_SPLIT,   // their hashes decide where it is split
    BUNDLE_LARGEST, // of all bundles: which has most
    BUNDLE_DELETE,  // it must have none
};

struct bundle_call {
    struct admin_request *request;
    uint32_t low, high;
    enum bundle_use use;
    json_t *policies;  // of the namespace
    json_t *asked;     // topics that the query names; NULL: all
    json_t *positions; // topic: hash
    uint32_t *hashes;  // of all that are in it
    size_t count, at;
    struct ox_topics_list list;
    struct admin_pause pause;
    struct ox_seq seq;
};

static struct bundle_call *bundle_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct bundle_call, seq);
}

// The topics that the query names, which clients encode twice, by their full names; NULL: it names none.
static json_t *bundle_query(const struct admin_request *r)
{
    json_t *sent = admin_query_set(r, "topics"), *asked = NULL, *value;
    const char *text;
    json_object_foreach(sent, text, value)
    {
        struct ox_topic_name name = {0};
        if (!*text)
            continue;
        asked = asked ? asked : json_object();
        OX_CLEANUP(ox_free_ptr)
        char *decoded = admin_decoded(text, strlen(text));
        if (ox_topic_name_parse(&name, decoded) == OX_OK)
            json_object_set_new(asked, name.full, json_true());
        ox_topic_name_fini(&name);
    }
    json_decref(sent);
    return asked;
}

// A partitioned topic stands for its partitions.
static bool bundle_asked(const struct bundle_call *c, const struct ox_topic_name *name)
{
    OX_CLEANUP(ox_free_ptr)
    char *base = c->asked ? ox_topic_name_base(name) : NULL;
    return !c->asked || json_object_get(c->asked, name->full) || json_object_get(c->asked, base);
}

static void bundle_topic(struct bundle_call *c, const char *full)
{
    struct ox_topic_name name = {0};
    if (ox_topic_name_parse(&name, full) == OX_OK) {
        uint32_t hash = ox_topic_name_hash(&name);
        if (admin_bundle_holds(c->low, c->high, hash) && bundle_asked(c, &name)) {
            c->hashes[c->count++] = hash;
            if (c->use == BUNDLE_SHOW)
                json_object_set_new(c->positions, full, json_integer((json_int_t)hash));
        }
    }
    ox_topic_name_fini(&name);
}

static ox_step bundle_hash(struct ox_seq *s)
{
    struct bundle_call *c = bundle_of(s);
    for (size_t n = 0; c->at < c->list.count; n++) {
        if (n == HASHES_A_TURN)
            return admin_rest(&c->pause, s, bundle_hash, "bundle_hash");
        bundle_topic(c, c->list.names[c->at++]);
    }
    return OX_FINISH(s, OX_OK);
}

static ox_step bundle_listed(struct ox_seq *s)
{
    struct bundle_call *c = bundle_of(s);
    if (s->err)
        return OX_FINISH(s, s->err);
    c->hashes = ox_malloc((c->list.count + 1) * sizeof *c->hashes);
    return OX_GOTO(s, bundle_hash);
}

static ox_step bundle_list(struct ox_seq *s)
{
    struct bundle_call *c = bundle_of(s);
    c->list.mode = OX_TOPICS_ALL;
    c->list.with_system = c->use != BUNDLE_DELETE;
    ox_seq_bind(s, &c->list.op, "topics.list");
    ox_topics_list(c->request->admin->shard, &c->list, c->request->ns);
    return OX_WAIT(s, bundle_listed);
}

static void split_by_topics(const struct bundle_call *c);
static void split_largest(const struct bundle_call *c);

static void bundle_answer(const struct bundle_call *c)
{
    struct admin_request *r = c->request;
    const char *name = r->segments[BUNDLE_AT];
    if (c->use == BUNDLE_SPLIT)
        split_by_topics(c);
    else if (c->use == BUNDLE_LARGEST)
        split_largest(c);
    else if (c->use == BUNDLE_SHOW)
        admin_json(r, HTTP_OK,
                   json_pack("{s:s, s:s, s:O}", "namespace", r->ns, "bundle", name, "topicHashPositions", c->positions));
    else if (c->count)
        admin_fail(r, HTTP_CONFLICT, "Cannot delete non empty bundle: %s of %s has %zu topics", name, r->ns, c->count);
    else
        admin_empty(r, HTTP_NO_CONTENT); // it stays: the ranges always cover all hashes
}

static void bundle_done(struct ox_seq *s, enum ox_err err)
{
    struct bundle_call *c = bundle_of(s);
    if (err)
        admin_error(c->request, err, c->request->ns, NULL);
    else
        bundle_answer(c);
    ox_topics_list_fini(&c->list);
    json_decref(c->positions);
    json_decref(c->policies);
    json_decref(c->asked);
    ox_free(c->hashes);
    ox_free(c);
}

static void bundle_walk(const struct admin_node *n, uint32_t low, uint32_t high, enum bundle_use use)
{
    struct admin_request *r = n->request;
    struct bundle_call *c = ox_malloc(sizeof *c);
    c->request = r;
    c->policies = json_incref(n->value);
    c->asked = use == BUNDLE_SHOW ? bundle_query(r) : NULL;
    c->low = low;
    c->high = high;
    c->use = use;
    c->positions = json_object();
    ox_seq_start(&c->seq, r->admin->shard->loop, "admin.bundle", bundle_list, bundle_done);
}

static void positions_read(struct admin_node *n)
{
    uint32_t low, high;
    if (admin_bundle_named(n->request, n->value, n->request->segments[BUNDLE_AT], &low, &high))
        bundle_walk(n, low, high, strcmp(n->request->route->method, "GET") == 0 ? BUNDLE_SHOW : BUNDLE_DELETE);
}

// Other words in its place name policies that cannot be deleted, or nothing.
static void bundle_delete(struct admin_request *r)
{
    if (strncmp(r->segments[BUNDLE_AT], "0x", 2) == 0)
        admin_node_read(r, admin_namespace_path(r->ns), "Namespace", NULL, positions_read);
    else
        admin_unknown(r, r->segments[BUNDLE_AT]);
}

static void bundle_positions(struct admin_request *r)
{
    admin_node_read(r, admin_namespace_path(r->ns), "Namespace", NULL, positions_read);
}

// ---- splitting: new bounds are put among the others in the local policies, which rule for brokers of a cluster, then in the policies

static int hash_order(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

// Bounds as they are kept: in order, each once.
static json_t *bounds_list(uint32_t *bounds, size_t count)
{
    json_t *list = json_array();
    qsort(bounds, count, sizeof *bounds, hash_order);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || bounds[i] != bounds[i - 1])
            json_array_append_new(list, json_sprintf("0x%08" PRIx32, bounds[i]));
    }
    return list;
}

// r->json: the bounds that are added. A node without bundles stays so.
static bool split_change(struct admin_node *n)
{
    json_t *bundles = json_object_get(n->value, "bundles"), *value;
    const json_t *old = json_object_get(bundles, "boundaries"), *more = n->request->json;
    size_t i, count = 0;
    if (json_array_size(old) < 2)
        return true;
    uint32_t *bounds = ox_calloc(json_array_size(old) + json_array_size(more), sizeof *bounds);
    json_array_foreach(old, i, value) bounds[count++] =
        (uint32_t)strtoul(json_is_string(value) ? json_string_value(value) : "", NULL, 16);
    json_array_foreach(more, i, value) bounds[count++] = (uint32_t)json_integer_value(value);
    json_t *list = bounds_list(bounds, count);
    ox_free(bounds);
    json_object_set_new(bundles, "numBundles", json_integer((json_int_t)json_array_size(list) - 1));
    json_object_set_new(bundles, "boundaries", list);
    return true;
}

static void split_changed(struct admin_node *n)
{
    struct admin_request *r = n->request;
    uint32_t low, high;
    if (sscanf(r->segments[BUNDLE_AT], "0x%8" SCNx32 "_0x%8" SCNx32, &low, &high) == 2 && admin_query_true(r, "unload"))
        admin_unload_range(r, low, high);
    else
        admin_empty(r, HTTP_NO_CONTENT);
}

static void split_local_changed(struct admin_node *n)
{
    struct admin_request *r = n->request;
    admin_node_change(r, admin_namespace_path(r->ns), "Namespace", NULL, split_change, split_changed);
}

static void split_write(struct admin_node *n)
{
    struct admin_request *r = n->request;
    size_t bundles = bundle_count(n->value) + json_array_size(r->json);
    if (bundles > OX_NAMESPACE_BUNDLES_MAX)
        admin_fail(r, HTTP_PRECONDITION_FAILED, "%s would have %zu bundles; %u are possible", r->ns, bundles,
                   OX_NAMESPACE_BUNDLES_MAX);
    else
        admin_node_change_or(r, admin_local_path(r->ns), admin_local_initial(n->value), NULL, split_change,
                             split_local_changed);
}

// Goes on with these bounds (taken over): those that lie in the bundle count.
static void split_at(struct admin_request *r, json_t *take_bounds)
{
    json_decref(r->json);
    r->json = take_bounds;
    admin_node_read(r, admin_namespace_path(r->ns), "Namespace", NULL, split_write);
}

// Half of the topics to each side; nothing to split with fewer than two.
static void split_by_topics(const struct bundle_call *c)
{
    json_t *bounds = json_array();
    size_t half = c->count / 2;
    if (c->count > 1) {
        qsort(c->hashes, c->count, sizeof *c->hashes, hash_order);
        uint64_t middle = ((uint64_t)c->hashes[half - 1] + c->hashes[half]) / 2;
        if (middle > c->low && middle < c->high)
            json_array_append_new(bounds, json_integer((json_int_t)middle));
    }
    split_at(c->request, bounds);
}

// The bounds of the body that lie in the bundle.
static json_t *split_given(const json_t *body, uint32_t low, uint32_t high)
{
    json_t *bounds = json_array(), *value;
    size_t i;
    json_array_foreach(body, i, value)
    {
        if (json_integer_value(value) > low && json_integer_value(value) < high)
            json_array_append(bounds, value);
    }
    return bounds;
}

static void split_read(struct admin_node *n);

// Of several that have as many topics, the first one.
static void split_largest(const struct bundle_call *c)
{
    struct admin_request *r = c->request;
    size_t most = 0, count = bundle_count(c->policies);
    size_t *topics = ox_calloc(count + 1, sizeof *topics);
    uint32_t low, high;
    for (size_t i = 0; i < c->count; i++)
        topics[bundle_at(c->policies, c->hashes[i])]++;
    for (size_t i = 0; i < count; i++)
        most = topics[i] > topics[most] ? i : most;
    ox_free(topics);
    if (!bundle_bounds(c->policies, most, &low, &high))
        low = high = 0; // no bundle has that name: it is answered so
    ox_free(r->segments[BUNDLE_AT]);
    r->segments[BUNDLE_AT] = ox_asprintf("0x%08" PRIx32 "_0x%08" PRIx32, low, high);
    admin_node_read(r, admin_namespace_path(r->ns), "Namespace", NULL, split_read);
}

// True: the bundle is not named but described, and that is seen to.
static bool split_described(const struct admin_node *n)
{
    const char *word = n->request->segments[BUNDLE_AT];
    bool is_largest = strcmp(word, "LARGEST") == 0, is_hot = strcmp(word, "HOT") == 0;
    if (is_largest)
        bundle_walk(n, 0, UINT32_MAX, BUNDLE_LARGEST);
    if (is_hot)
        admin_fail(n->request, HTTP_NOT_FOUND, "Bundle range HOT not found: no load manager measures the bundles of %s",
                   n->request->ns);
    return is_largest || is_hot;
}

static void split_read(struct admin_node *n)
{
    struct admin_request *r = n->request;
    const char *way = admin_query(r, "splitAlgorithmName");
    uint32_t low, high;
    if (split_described(n) || !admin_bundle_named(r, n->value, r->segments[BUNDLE_AT], &low, &high))
        return;
    if (way && strcmp(way, "specified_positions_divide") == 0)
        split_at(r, split_given(r->json, low, high));
    else if (way && strcmp(way, "topic_count_equally_divide") == 0)
        bundle_walk(n, low, high, BUNDLE_SPLIT);
    else
        split_at(r, high - low > 1 ? json_pack("[I]", (json_int_t)(low + (high - low) / 2)) : json_array());
}

// False: there is no such way to split, or it lacks its bounds, and that is answered.
static bool split_way_fits(struct admin_request *r, const json_t *body)
{
    static const char *const ways[] = {"range_equally_divide", "topic_count_equally_divide", "specified_positions_divide"};
    const char *way = admin_query(r, "splitAlgorithmName");
    size_t i = 0;
    while (way && *way && i < OX_COUNT(ways) && strcmp(ways[i], way) != 0)
        i++;
    if (i == OX_COUNT(ways))
        admin_fail(r, HTTP_PRECONDITION_FAILED, "Unsupported namespace bundle split algorithm %s, supported algorithms are [range_equally_divide, topic_count_equally_divide, specified_positions_divide]",
                   way);
    else if (i == 2 && json_array_size(body) == 0)
        admin_fail(r, HTTP_PRECONDITION_FAILED, "With specified_positions_divide split algorithm, splitBoundaries must not be empty: the body is a list of hashes");
    return !r->answered;
}

static void bundle_split(struct admin_request *r)
{
    json_t *body, *value;
    size_t i;
    if (!admin_body(r, &body))
        return;
    bool whole = !body || json_is_null(body) || json_is_array(body);
    json_array_foreach(body, i, value) whole &= json_is_integer(value);
    if (!whole)
        admin_fail(r, HTTP_BAD_REQUEST, "the body must be a list of whole numbers: the hashes at which the bundle is split");
    else if (split_way_fits(r, body))
        admin_node_read(r, admin_namespace_path(r->ns), "Namespace", NULL, split_read);
}

static const struct admin_route routes[] = {ADMIN_ROUTES_BUNDLES};
const struct admin_route_table admin_bundles = {routes, OX_COUNT(routes)};
