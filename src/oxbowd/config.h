// config.h - the settings of oxbowd: defaults, file, environment, command line; every mistake named with the way out.
#ifndef OXBOWD_CONFIG_H
#define OXBOWD_CONFIG_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "gen/config_keys.h"

// Sets every key to its default.
void ox_config_init(struct ox_config *c);
// Frees the strings.
void ox_config_fini(struct ox_config *c);
// Makes `to` (initialised) the same as `from`.
void ox_config_copy(struct ox_config *to, const struct ox_config *from);

// ---- one key

// The key of a name, or NULL.
const struct ox_config_key *ox_config_find(const char *name);
// Sets one key from text; an empty one is the default. Errors: INVALID; `error` then says which key, what was given, what is allowed, and for an unknown key the nearest known one.
enum ox_err ox_config_set(struct ox_config *c, const char *key, const char *value, struct ox_str *error) OX_CHECKED;
// Sets "KEY=VALUE". Errors: as ox_config_set.
enum ox_err ox_config_set_pair(struct ox_config *c, const char *pair, struct ox_str *error) OX_CHECKED;
// Appends a key's value as it is written in a file.
void ox_config_text(const struct ox_config *c, const struct ox_config_key *key, struct ox_str *out);
// True if both have the same value of a key.
bool ox_config_same(const struct ox_config *a, const struct ox_config *b, const struct ox_config_key *key);
// Takes one key's value over.
void ox_config_take(struct ox_config *to, const struct ox_config *from, const struct ox_config_key *key);

// ---- all of them

// What is wrong with the settings, all of it: errors (each stops the start) and warnings, one a line, without a newline behind the last. Zero it, set `lenient`.
struct ox_config_trouble {
    bool lenient; // public: keys that Oxbow does not have are passed over with a warning, but those that look like a slip of the pen or ask for protection
    struct ox_str errors;   // read-only
    struct ox_str warnings; // read-only
};
// Frees the texts.
void ox_config_trouble_fini(struct ox_config_trouble *t);
// Adds a line that is an error, or a warning.
void ox_config_complain(struct ox_str *lines, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Sets keys from the text of a file: lines `key=value`, '#' begins a comment, blank lines are skipped. `name` is used in errors ("name:12: ...").
// It reads to the end, whatever is wrong. Errors: INVALID (see trouble).
enum ox_err ox_config_parse(struct ox_config *c, const char *name, const char *text, struct ox_config_trouble *t) OX_CHECKED;
// Reads and parses a file. Errors: NOT_FOUND, ACCESS, IO, INVALID.
enum ox_err ox_config_load(struct ox_config *c, const char *path, struct ox_config_trouble *t) OX_CHECKED;
// Sets keys from environment variables OXBOW_<KEY>, upper or lower case, underscores and a key's dot ignored (OXBOW_BROKER_SERVICE_PORT). envp ends with NULL.
// OXBOW_CRASH_POINT is not a key, nor is in Kubernetes what it sets for a service that is named so (OXBOW_SERVICE_HOST). Errors: INVALID.
enum ox_err ox_config_environment(struct ox_config *c, char *const *envp, struct ox_config_trouble *t) OX_CHECKED;
// Appends every key with its help, default and range, as for --help-config.
void ox_config_describe(struct ox_str *out);

#endif
