// policy_event.h - one change of a topic's own policies as Pulsar writes it into __change_events: key = the topic's full base name, value = Avro of
// PulsarEvent, not batched, not compressed; no value (null_value): the policies are removed. Members in the schema's (alphabetical) order, as of Pulsar 4.0.
#ifndef BROKER_POLICY_EVENT_H
#define BROKER_POLICY_EVENT_H

#include <jansson.h>

#include "broker/topic_name.h"
#include "mledger/mledger.h"

#define POLICY_EVENTS_LOCAL "__change_events" // the topic's local name

struct policy_event_from {
    const char *producer; // its name
    const char *cluster;  // whose brokers apply it
    uint64_t sequence_id;
    uint64_t now_ms;
};

// The entry that sets a topic's policies (the members of TopicPolicies) or, with NULL, removes them. topic: a base name. *ret is the caller's reference. Errors: INVALID (values that Pulsar's types cannot hold).
enum ox_err policy_event_build(const struct ox_topic_name *topic, const json_t *policies,
                               const struct policy_event_from *from, struct ox_buf *ret) OX_CHECKED;
// What an entry says. *ret_topic (ox_free) and *ret_policies (NULL: removed; else the caller's reference) are set on success. Errors: MALFORMED, UNSUPPORTED
// (another kind of event, or policies for all clusters).
enum ox_err policy_event_parse(const struct ox_entry *entry, char **ret_topic, json_t **ret_policies) OX_CHECKED;

#endif
