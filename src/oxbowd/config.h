// config.h - the settings of oxbowd: defaults, file, environment, command line; every mistake named with the way out.
#ifndef OXBOWD_CONFIG_H
#define OXBOWD_CONFIG_H

#include "base/err.h"
#include "base/str.h"
#include "gen/config_keys.h"

// Sets every key to its default.
void ox_config_init(struct ox_config *c);
// Frees the strings.
void ox_config_fini(struct ox_config *c);
// Sets one key from text. Errors: INVALID; `error` then says which key, what was given, what is allowed, and for an unknown key the nearest known one.
enum ox_err ox_config_set(struct ox_config *c, const char *key, const char *value, struct ox_str *error) OX_CHECKED;
// Sets "KEY=VALUE". Errors: as ox_config_set.
enum ox_err ox_config_set_pair(struct ox_config *c, const char *pair, struct ox_str *error) OX_CHECKED;
// Sets keys from the text of a file: lines `key=value`, '#' begins a comment, blank lines are skipped. `name` is used in errors ("name:12: ...").
// Errors: INVALID at the first bad line.
enum ox_err ox_config_parse(struct ox_config *c, const char *name, const char *text, struct ox_str *error) OX_CHECKED;
// Reads and parses a file. Errors: NOT_FOUND, ACCESS, IO, INVALID.
enum ox_err ox_config_load(struct ox_config *c, const char *path, struct ox_str *error) OX_CHECKED;
// Sets keys from environment variables OXBOW_<KEY>, upper or lower case, underscores and a key's dot ignored (OXBOW_BROKER_SERVICE_PORT). envp ends with NULL.
// OXBOW_CRASH_POINT is not a key. Errors: INVALID.
enum ox_err ox_config_environment(struct ox_config *c, char *const *envp, struct ox_str *error) OX_CHECKED;
// Appends every key with its help, default and range, as for --help-config.
void ox_config_describe(struct ox_str *out);

#endif
