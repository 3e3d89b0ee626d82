// policy_schema.h - the Avro schema of Pulsar's events of topic policies.
#ifndef BROKER_POLICY_SCHEMA_H
#define BROKER_POLICY_SCHEMA_H

#include "broker/avro.h"

// PulsarEvent.
extern const struct avro_type policy_event_schema;

#endif
