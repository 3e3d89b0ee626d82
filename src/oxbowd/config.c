// config.c - keys by name, their values from text, and what to say when a key or value is wrong.
#include "oxbowd/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/mem.h"

static void *config_member(struct ox_config *c, const struct ox_config_key *key)
{
    return (char *)c + key->offset;
}

void ox_config_init(struct ox_config *c)
{
    struct ox_str error = {0};
    memset(c, 0, sizeof *c);
    for (size_t i = 0; i < OX_CONFIG_KEY_COUNT; i++)
        OX_ASSERT(ox_config_set(c, ox_config_keys[i].name, ox_config_keys[i].default_text, &error) == OX_OK);
    ox_str_fini(&error);
}

void ox_config_fini(struct ox_config *c)
{
    for (size_t i = 0; i < OX_CONFIG_KEY_COUNT; i++)
        if (ox_config_keys[i].type == OX_CONFIG_STRING)
            ox_free_ptr(config_member(c, &ox_config_keys[i]));
}

static const struct ox_config_key *config_find(const char *name)
{
    for (size_t i = 0; i < OX_CONFIG_KEY_COUNT; i++)
        if (strcmp(ox_config_keys[i].name, name) == 0)
            return &ox_config_keys[i];
    return NULL;
}

static const char *config_nearest(const char *name)
{
    const char *best = NULL;
    size_t best_distance = strlen(name) / 2 + 1;
    for (size_t i = 0; i < OX_CONFIG_KEY_COUNT; i++) {
        size_t distance = strcasecmp(name, ox_config_keys[i].name) == 0
                              ? 0
                              : ox_edit_distance(name, ox_config_keys[i].name, best_distance);
        if (distance < best_distance) {
            best_distance = distance;
            best = ox_config_keys[i].name;
        }
    }
    return best;
}

static enum ox_err config_unknown(const char *name, struct ox_str *error)
{
    const char *nearest = config_nearest(name);
    ox_str_addf(error, "unknown key \"%s\"", name);
    if (nearest)
        ox_str_addf(error, "; did you mean %s?", nearest);
    ox_str_adds(error, " (oxbowd --help-config lists all keys)");
    return OX_E_INVALID;
}

static enum ox_err config_bad(const struct ox_config_key *key, const char *value, struct ox_str *error, const char *wanted)
{
    ox_str_addf(error, "%s: \"%s\" is not %s; %s", key->name, value, wanted, key->help);
    return OX_E_INVALID;
}

static enum ox_err config_set_bool(void *member, const struct ox_config_key *key, const char *value, struct ox_str *error)
{
    bool on = strcmp(value, "true") == 0;
    if (!on && strcmp(value, "false") != 0)
        return config_bad(key, value, error, "true or false");
    *(bool *)member = on;
    return OX_OK;
}

static enum ox_err config_set_int(void *member, const struct ox_config_key *key, const char *value, struct ox_str *error)
{
    char wanted[96];
    snprintf(wanted, sizeof wanted, "a whole number from %lld to %lld%s%s", (long long)key->min, (long long)key->max,
             *key->unit ? " in " : "", key->unit);
    return ox_parse_i64(value, key->min, key->max, (int64_t *)member) == OX_OK ? OX_OK
                                                                               : config_bad(key, value, error, wanted);
}

static enum ox_err config_set_float(void *member, const struct ox_config_key *key, const char *value, struct ox_str *error)
{
    char wanted[96], *end = NULL;
    double number = strtod(value, &end);
    snprintf(wanted, sizeof wanted, "a number from %lld to %lld in %s", (long long)key->min, (long long)key->max, key->unit);
    if (end == value || *end || !(number >= (double)key->min && number <= (double)key->max))
        return config_bad(key, value, error, wanted);
    *(double *)member = number;
    return OX_OK;
}

static enum ox_err config_set_enum(void *member, const struct ox_config_key *key, const char *value, struct ox_str *error)
{
    struct ox_str wanted = {0};
    ox_str_adds(&wanted, "one of");
    for (int i = 0; key->values[i]; i++) {
        if (strcmp(key->values[i], value) == 0) {
            *(int *)member = i;
            ox_str_fini(&wanted);
            return OX_OK;
        }
        ox_str_addf(&wanted, "%s %s", i ? "," : "", key->values[i]);
    }
    enum ox_err err = config_bad(key, value, error, ox_str_get(&wanted));
    ox_str_fini(&wanted);
    return err;
}

static enum ox_err config_set_string(void *member, const char *value)
{
    ox_free_ptr(member);
    *(char **)member = ox_strdup(value);
    return OX_OK;
}

enum ox_err ox_config_set(struct ox_config *c, const char *key_name, const char *value, struct ox_str *error)
{
    const struct ox_config_key *key = config_find(key_name);
    if (!key)
        return config_unknown(key_name, error);
    void *member = config_member(c, key);
    switch (key->type) {
    case OX_CONFIG_STRING: return config_set_string(member, value);
    case OX_CONFIG_BOOL: return config_set_bool(member, key, value, error);
    case OX_CONFIG_INT: return config_set_int(member, key, value, error);
    case OX_CONFIG_FLOAT: return config_set_float(member, key, value, error);
    case OX_CONFIG_ENUM: return config_set_enum(member, key, value, error);
    }
    OX_UNREACHABLE("config type");
}

// Cuts white space at both ends, in place.
static char *config_trim(char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    char *end = s + strlen(s);
    while (end > s && isspace((unsigned char)end[-1]))
        *--end = 0;
    return s;
}

enum ox_err ox_config_set_pair(struct ox_config *c, const char *pair, struct ox_str *error)
{
    OX_CLEANUP(ox_free_ptr)
    char *copy = ox_strdup(pair);
    char *equals = strchr(copy, '=');
    if (!equals) {
        ox_str_addf(error, "\"%s\" is not KEY=VALUE", pair);
        return OX_E_INVALID;
    }
    *equals = 0;
    return ox_config_set(c, config_trim(copy), config_trim(equals + 1), error);
}

enum ox_err ox_config_parse(struct ox_config *c, const char *name, const char *text, struct ox_str *error)
{
    OX_CLEANUP(ox_free_ptr)
    char *copy = ox_strdup(text);
    int number = 0;
    for (char *line = copy, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        number++;
        char *trimmed = config_trim(line);
        if (!*trimmed || *trimmed == '#')
            continue;
        struct ox_str why = {0};
        enum ox_err err = ox_config_set_pair(c, trimmed, &why);
        if (err != OX_OK)
            ox_str_addf(error, "%s:%d: %s", name, number, ox_str_get(&why));
        ox_str_fini(&why);
        if (err != OX_OK)
            return err;
    }
    return OX_OK;
}

enum ox_err ox_config_load(struct ox_config *c, const char *path, struct ox_str *error)
{
    FILE *f = fopen(path, "re");
    if (!f) {
        ox_str_addf(error, "cannot read %s: %s", path, strerror(errno));
        return ox_err_from_errno(errno);
    }
    struct ox_str text = {0};
    char block[4096];
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;)
        ox_str_add(&text, block, n);
    bool failed = ferror(f);
    fclose(f);
    if (failed)
        ox_str_addf(error, "cannot read %s", path);
    enum ox_err err = failed ? OX_E_IO : ox_config_parse(c, path, ox_str_get(&text), error);
    ox_str_fini(&text);
    return err;
}

// True if an environment variable's name stands for a key: case, underscores and the key's dot do not count.
static bool config_same_name(const char *env, size_t env_len, const char *key)
{
    for (size_t i = 0; i < env_len; i++) {
        if (env[i] == '_')
            continue;
        key += *key == '.';
        if (!*key || tolower((unsigned char)env[i]) != tolower((unsigned char)*key))
            return false;
        key++;
    }
    return *key == 0;
}

static enum ox_err config_set_env(struct ox_config *c, const char *name, size_t name_len, const char *value,
                                  struct ox_str *error)
{
    for (size_t i = 0; i < OX_CONFIG_KEY_COUNT; i++)
        if (config_same_name(name, name_len, ox_config_keys[i].name))
            return ox_config_set(c, ox_config_keys[i].name, value, error);
    OX_CLEANUP(ox_free_ptr)
    char *copy = ox_strndup(name, name_len);
    return config_unknown(copy, error);
}

enum ox_err ox_config_environment(struct ox_config *c, char *const *envp, struct ox_str *error)
{
    for (; *envp; envp++) {
        const char *equals = strchr(*envp, '=');
        if (strncmp(*envp, "OXBOW_", 6) != 0 || !equals || strncmp(*envp, "OXBOW_CRASH_POINT=", 18) == 0)
            continue;
        struct ox_str why = {0};
        enum ox_err err = config_set_env(c, *envp + 6, (size_t)(equals - *envp) - 6, equals + 1, &why);
        if (err != OX_OK)
            ox_str_addf(error, "environment variable %.*s: %s", (int)(equals - *envp), *envp, ox_str_get(&why));
        ox_str_fini(&why);
        if (err != OX_OK)
            return err;
    }
    return OX_OK;
}

void ox_config_describe(struct ox_str *out)
{
    for (size_t i = 0; i < OX_CONFIG_KEY_COUNT; i++) {
        const struct ox_config_key *key = &ox_config_keys[i];
        ox_str_addf(out, "%s=%s\n    %s", key->name, key->default_text, key->help);
        if (key->type == OX_CONFIG_INT || key->type == OX_CONFIG_FLOAT)
            ox_str_addf(out, " [%lld..%lld%s%s]", (long long)key->min, (long long)key->max, *key->unit ? " " : "", key->unit);
        for (int v = 0; key->type == OX_CONFIG_ENUM && key->values[v]; v++)
            ox_str_addf(out, "%s%s%s", v ? ", " : " [", key->values[v], key->values[v + 1] ? "" : "]");
        ox_str_adds(out, "\n");
    }
}
