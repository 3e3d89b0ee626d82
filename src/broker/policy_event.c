// policy_event.c - events of topic policies: to entries and back.
#include "broker/policy_event.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "broker/policy_schema.h"
#include "wire/message_build.h"
#include "wire/message_meta.h"
#include "wire/pulsar_frame.h"

#define EVENT_SCHEMA_VERSION_BYTES 8 // big-endian number of the schema's version: the topic's first schema

// ---- building

// Of "tenant/ns" the part behind the tenant, of "tenant/cluster/ns" likewise.
static const char *event_namespace(const struct ox_topic_name *topic)
{
    return topic->ns + strlen(topic->tenant) + 1;
}

// What Pulsar always writes out is there too, so that its readers find empty lists where they expect lists.
static json_t *event_policies(const json_t *policies)
{
    json_t *defaults = json_pack("{s:{}, s:b, s:{}, s:[]}", "backLogQuotaMap", "isGlobal", 0, "subscriptionPolicies",
                                 "subscriptionTypesEnabled");
    OX_ASSERT(defaults && json_object_update(defaults, (json_t *)(uintptr_t)policies) == 0);
    return defaults;
}

static json_t *event_json(const struct ox_topic_name *topic, const json_t *policies, const char *cluster)
{
    json_t *event =
        json_pack("{s:s, s:s, s:[s], s:{s:s, s:s, s:s, s:s, s:o}}", "actionType", "UPDATE", "eventType", "TOPIC_POLICY",
                  "replicateTo", cluster, "topicPoliciesEvent", "domain",
                  topic->domain == OX_DOMAIN_PERSISTENT ? "persistent" : "non-persistent", "tenant", topic->tenant,
                  "namespace", event_namespace(topic), "topic", topic->local, "policies", event_policies(policies));
    OX_ASSERT(event);
    return event;
}

static enum ox_err event_payload(const struct ox_topic_name *topic, const json_t *policies, const char *cluster,
                                 struct ox_str *out)
{
    json_t *event = event_json(topic, policies, cluster);
    enum ox_err err = avro_encode(&policy_event_schema, event, out);
    json_decref(event);
    return err;
}

enum ox_err policy_event_build(const struct ox_topic_name *topic, const json_t *policies,
                               const struct policy_event_from *from, struct ox_buf *ret)
{
    OX_CLEANUP(ox_str_fini)
    struct ox_str payload = {0};
    uint8_t version[EVENT_SCHEMA_VERSION_BYTES] = {0};
    Oxpb__MessageMetadata meta = OXPB__MESSAGE_METADATA__INIT;
    meta.producer_name = (char *)(uintptr_t)from->producer;
    meta.sequence_id = from->sequence_id;
    meta.publish_time = from->now_ms;
    meta.partition_key = topic->full;
    meta.has_schema_version = true;
    meta.schema_version = (ProtobufCBinaryData){.data = version, .len = sizeof version};
    meta.has_null_value = policies == NULL;
    meta.null_value = policies == NULL;
    enum ox_err err = policies ? event_payload(topic, policies, from->cluster, &payload) : OX_OK;
    if (!err)
        *ret = ox_entry_build(&meta, ox_str_get(&payload), payload.len);
    return err;
}

// ---- parsing

static enum ox_err event_policies_of(const void *payload, size_t len, json_t **ret)
{
    json_t *event;
    enum ox_err err = avro_decode(&policy_event_schema, payload, len, &event);
    if (err)
        return err;
    const char *type = json_string_value(json_object_get(event, "eventType"));
    const char *action = json_string_value(json_object_get(event, "actionType"));
    json_t *policies = json_object_get(json_object_get(event, "topicPoliciesEvent"), "policies");
    if (!type || strcmp(type, "TOPIC_POLICY") != 0)
        err = OX_E_UNSUPPORTED;
    else if (action && strcmp(action, "DELETE") == 0)
        *ret = NULL;
    else if (!policies)
        err = OX_E_MALFORMED;
    else
        *ret = json_incref(policies);
    json_decref(event);
    return err;
}

// Policies for all clusters have a mark before the name; a key that is no topic's name is nobody's.
static enum ox_err event_topic(struct ox_span key, bool is_base64, char **ret)
{
    if (!key.data || is_base64)
        return OX_E_MALFORMED;
    OX_CLEANUP(ox_free_ptr)
    char *text = ox_strndup((const char *)key.data, key.len);
    struct ox_topic_name name = {0};
    if (strncmp(text, "__G__", 5) == 0 || ox_topic_name_parse(&name, text) != OX_OK)
        return OX_E_UNSUPPORTED;
    *ret = ox_strdup(name.full);
    ox_topic_name_fini(&name);
    return OX_OK;
}

enum ox_err policy_event_parse(const struct ox_entry *entry, char **ret_topic, json_t **ret_policies)
{
    struct ox_message_view view;
    struct ox_message_meta meta;
    char *topic;
    enum ox_err err = ox_message_parse(entry->data, false, &view);
    if (!err)
        err = ox_message_meta_scan(view.metadata.data, view.metadata.len, &meta);
    if (!err && (meta.has_num_messages || meta.compression || meta.is_encrypted || meta.has_marker))
        err = OX_E_UNSUPPORTED;
    if (!err)
        err = event_topic(meta.partition_key, meta.is_key_base64, &topic);
    if (err)
        return err;
    *ret_policies = NULL;
    if (!meta.is_null_value && view.payload.len)
        err = event_policies_of(view.payload.data, view.payload.len, ret_policies);
    if (err)
        ox_free(topic);
    else
        *ret_topic = topic;
    return err;
}
