// config.c - keys by name, their values from text, and what to say when a key or value is wrong.
#include "oxbowd/config.h"

#include <ctype.h>
#include <errno.h>
#include <regex.h>
#include <stdarg.h>
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

static const void *config_value(const struct ox_config *c, const struct ox_config_key *key)
{
    return (const char *)c + key->offset;
}

void ox_config_fini(struct ox_config *c)
{
    for (size_t i = 0; i < OX_CONFIG_KEY_COUNT; i++)
        if (ox_config_keys[i].type == OX_CONFIG_STRING)
            ox_free_ptr(config_member(c, &ox_config_keys[i]));
}

const struct ox_config_key *ox_config_find(const char *name)
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
    const struct ox_config_key *key = ox_config_find(key_name);
    if (!key)
        return config_unknown(key_name, error);
    void *member = config_member(c, key);
    if (!*value)
        value = key->default_text;
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

// ---- values

void ox_config_text(const struct ox_config *c, const struct ox_config_key *key, struct ox_str *out)
{
    const void *value = config_value(c, key);
    switch (key->type) {
    case OX_CONFIG_STRING: ox_str_adds(out, *(char *const *)value); return;
    case OX_CONFIG_BOOL: ox_str_adds(out, *(const bool *)value ? "true" : "false"); return;
    case OX_CONFIG_INT: ox_str_addf(out, "%lld", (long long)*(const int64_t *)value); return;
    case OX_CONFIG_FLOAT: ox_str_addf(out, "%.15g", *(const double *)value); return;
    case OX_CONFIG_ENUM: ox_str_adds(out, key->values[*(const int *)value]); return;
    }
    OX_UNREACHABLE("config type");
}

static size_t config_bytes(enum ox_config_type type)
{
    static const size_t bytes[] = {
        [OX_CONFIG_BOOL] = sizeof(bool), [OX_CONFIG_INT] = sizeof(int64_t), [OX_CONFIG_FLOAT] = sizeof(double), [OX_CONFIG_ENUM] = sizeof(int)};
    return bytes[type];
}

bool ox_config_same(const struct ox_config *a, const struct ox_config *b, const struct ox_config_key *key)
{
    const void *x = config_value(a, key), *y = config_value(b, key);
    if (key->type == OX_CONFIG_STRING)
        return strcmp(*(char *const *)x, *(char *const *)y) == 0;
    return memcmp(x, y, config_bytes(key->type)) == 0;
}

void ox_config_take(struct ox_config *to, const struct ox_config *from, const struct ox_config_key *key)
{
    if (key->type == OX_CONFIG_STRING)
        (void)!config_set_string(config_member(to, key), *(char *const *)config_value(from, key));
    else
        memcpy(config_member(to, key), config_value(from, key), config_bytes(key->type));
}

void ox_config_copy(struct ox_config *to, const struct ox_config *from)
{
    for (size_t i = 0; i < OX_CONFIG_KEY_COUNT; i++)
        ox_config_take(to, from, &ox_config_keys[i]);
}

// ---- files

void ox_config_trouble_fini(struct ox_config_trouble *t)
{
    ox_str_fini(&t->errors);
    ox_str_fini(&t->warnings);
}

void ox_config_complain(struct ox_str *lines, const char *format, ...)
{
    va_list args;
    if (lines->len)
        ox_str_adds(lines, "\n");
    va_start(args, format);
    ox_str_addv(lines, format, args);
    va_end(args);
}

static int config_compare_names(const void *name, const void *entry)
{
    return strcmp((const char *)name, *(const char *const *)entry);
}

static bool config_is_pulsars(const char *name)
{
    return bsearch(name, ox_config_pulsar, OX_CONFIG_PULSAR_COUNT, sizeof ox_config_pulsar[0], config_compare_names) != NULL;
}

// Who asks for these believes to be protected: never passed over.
static bool config_asks_protection(const char *name, const char *value)
{
    static const char *const names[] = {"authenticationEnabled", "authorizationEnabled", "brokerServicePortTls",
                                        "webServicePortTls",     "tlsEnabled",           "tlsEnabledWithKeyStore"};
    for (size_t i = 0; i < OX_COUNT(names); i++)
        if (strcmp(name, names[i]) == 0)
            return *value && strcmp(value, "false") != 0;
    return false;
}

// A file on its way: keys of Pulsar's that Oxbow does not have are told together, at the end.
struct config_file {
    struct ox_config *config;
    struct ox_config_trouble *trouble;
    const char *name;
    struct ox_str foreign; // names
    size_t foreign_count;
};

static void config_foreign(struct config_file *f, const char *key)
{
    ox_str_addf(&f->foreign, "%s%s", f->foreign_count++ ? ", " : "", key);
}

static void config_unknown_line(struct config_file *f, int number, const char *key)
{
    struct ox_str why = {0};
    bool passed = f->trouble->lenient && !config_nearest(key);
    (void)!config_unknown(key, &why);
    ox_config_complain(passed ? &f->trouble->warnings : &f->trouble->errors, "%s:%d: %s", f->name, number, ox_str_get(&why));
    ox_str_fini(&why);
}

static void config_set_line(struct config_file *f, int number, char *line)
{
    struct ox_str why = {0};
    enum ox_err err = ox_config_set_pair(f->config, line, &why);
    if (err != OX_OK)
        ox_config_complain(&f->trouble->errors, "%s:%d: %s", f->name, number, ox_str_get(&why));
    ox_str_fini(&why);
}

static void config_line(struct config_file *f, int number, char *line)
{
    OX_CLEANUP(ox_free_ptr)
    char *copy = ox_strdup(line);
    char *value = strchr(copy, '=');
    if (value)
        *value++ = 0;
    const char *key = config_trim(copy);
    if (!value || ox_config_find(key))
        config_set_line(f, number, line);
    else if (!config_is_pulsars(key))
        config_unknown_line(f, number, key);
    else if (config_asks_protection(key, config_trim(value)))
        ox_config_complain(
            &f->trouble->errors, "%s:%d: %s: this version has neither TLS nor authentication; take the line out, and let only trusted hosts reach the broker",
            f->name, number, key);
    else
        config_foreign(f, key);
}

static void config_tell_foreign(struct config_file *f)
{
    if (f->foreign_count && f->trouble->lenient)
        ox_config_complain(&f->trouble->warnings, "%s: %zu keys of Pulsar's do nothing here: %s", f->name,
                           f->foreign_count, ox_str_get(&f->foreign));
    else if (f->foreign_count)
        ox_config_complain(
            &f->trouble->errors,
            "%s: %zu keys of Pulsar's that Oxbow does not have: %s; take them out, or pass over them with --lenient",
            f->name, f->foreign_count, ox_str_get(&f->foreign));
    ox_str_fini(&f->foreign);
}

enum ox_err ox_config_parse(struct ox_config *c, const char *name, const char *text, struct ox_config_trouble *t)
{
    OX_CLEANUP(ox_free_ptr)
    char *copy = ox_strdup(text);
    struct config_file file = {.config = c, .trouble = t, .name = name};
    size_t before = t->errors.len;
    int number = 0;
    for (char *line = copy, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        number++;
        char *trimmed = config_trim(line);
        if (*trimmed && *trimmed != '#')
            config_line(&file, number, trimmed);
    }
    config_tell_foreign(&file);
    return t->errors.len == before ? OX_OK : OX_E_INVALID;
}

enum ox_err ox_config_load(struct ox_config *c, const char *path, struct ox_config_trouble *t)
{
    FILE *f = fopen(path, "re");
    if (!f) {
        ox_config_complain(&t->errors, "cannot read %s: %s", path, strerror(errno));
        return ox_err_from_errno(errno);
    }
    struct ox_str text = {0};
    char block[4096];
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;)
        ox_str_add(&text, block, n);
    bool failed = ferror(f);
    fclose(f);
    if (failed)
        ox_config_complain(&t->errors, "cannot read %s", path);
    enum ox_err err = failed ? OX_E_IO : ox_config_parse(c, path, ox_str_get(&text), t);
    ox_str_fini(&text);
    return err;
}

// ---- the environment

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

static const struct ox_config_key *config_env_key(const char *name, size_t name_len)
{
    for (size_t i = 0; i < OX_CONFIG_KEY_COUNT; i++)
        if (config_same_name(name, name_len, ox_config_keys[i].name))
            return &ox_config_keys[i];
    return NULL;
}

static bool config_in_kubernetes(char *const *envp)
{
    while (*envp && strncmp(*envp, "KUBERNETES_SERVICE_HOST=", 24) != 0)
        envp++;
    return *envp != NULL;
}

// Kubernetes tells each container of the services around it; the variables of one whose name begins with "oxbow" look like settings.
static bool config_is_neighbour(const char *variable)
{
    static const char form[] =
        "^OXBOW_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_[A-Z]+(_(PROTO|PORT|ADDR))?)?)=";
    regex_t regex;
    OX_ASSERT(regcomp(&regex, form, REG_EXTENDED | REG_NOSUB) == 0);
    bool is = regexec(&regex, variable, 0, NULL, 0) == 0;
    regfree(&regex);
    return is;
}

static enum ox_err config_set_env(struct ox_config *c, const char *name, size_t name_len, const char *value,
                                  struct ox_str *error)
{
    const struct ox_config_key *key = config_env_key(name, name_len);
    if (key)
        return ox_config_set(c, key->name, value, error);
    OX_CLEANUP(ox_free_ptr)
    char *copy = ox_strndup(name, name_len);
    return config_unknown(copy, error);
}

enum ox_err ox_config_environment(struct ox_config *c, char *const *envp, struct ox_config_trouble *t)
{
    size_t before = t->errors.len;
    bool kubernetes = config_in_kubernetes(envp);
    for (; *envp; envp++) {
        const char *equals = strchr(*envp, '=');
        if (strncmp(*envp, "OXBOW_", 6) != 0 || !equals || strncmp(*envp, "OXBOW_CRASH_POINT=", 18) == 0)
            continue;
        if (kubernetes && config_is_neighbour(*envp) && !config_env_key(*envp + 6, (size_t)(equals - *envp) - 6))
            continue;
        struct ox_str why = {0};
        if (config_set_env(c, *envp + 6, (size_t)(equals - *envp) - 6, equals + 1, &why) != OX_OK)
            ox_config_complain(&t->errors, "environment variable %.*s: %s", (int)(equals - *envp), *envp, ox_str_get(&why));
        ox_str_fini(&why);
    }
    return t->errors.len == before ? OX_OK : OX_E_INVALID;
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
        ox_str_adds(out, key->live ? " (live)\n" : "\n");
    }
}
