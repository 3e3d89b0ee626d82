// settings.h - from configuration keys to the settings of each part.
#ifndef OXBOWD_SETTINGS_H
#define OXBOWD_SETTINGS_H

#include "admin/admin.h"
#include "broker/shard.h"
#include "ledger/store/store.h"
#include "move/storage/storage.h"
#include "oxbowd/config.h"
#include "pulsar/pulsar.h"

// Checks what single keys cannot: URLs and lists. Errors: INVALID; `error` names key, value and what is allowed.
enum ox_err settings_check(const struct ox_config *c, struct ox_str *error) OX_CHECKED;
// Fills the settings of the embedded store (directory and name are the caller's).
void settings_store(const struct ox_config *c, struct ox_store_config *ret);
// Fills the settings of managed ledgers.
void settings_mledger(const struct ox_config *c, struct ox_ml_settings *ret);
// Fills the broker's settings (URLs are the caller's); strings are borrowed from the configuration.
void settings_broker(const struct ox_config *c, struct ox_broker_config *ret);
// Fills the settings of the Pulsar listener; strings are borrowed from the configuration.
// What HTTP clients may take.
void settings_admin(const struct ox_config *c, struct ox_admin_limits *ret);
void settings_pulsar(const struct ox_config *c, struct ox_pulsar_config *ret);
// What the cache of recent entries may hold, in bytes.
uint64_t settings_cache_bytes(const struct ox_config *c);
// Fills the settings of moving storage (broker and default_uri are the caller's); strings are borrowed from the configuration.
void settings_storage(const struct ox_config *c, struct ox_storage_config *ret);

#endif
