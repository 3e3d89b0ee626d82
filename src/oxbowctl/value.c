// value.c - what is typed for an option or argument, and what is sent for it.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/mem.h"
#include "oxbowctl/ctl.h"

#define MIB (INT64_C(1) << 20)

static json_t *value_text(const char *text, char **ret_wants)
{
    json_t *value = json_string(text);
    if (!value)
        *ret_wants = ox_strdup("valid UTF-8");
    return value;
}

static json_t *value_wants(char **ret_wants, const char *what)
{
    *ret_wants = ox_strdup(what);
    return NULL;
}

static bool within(const struct ctl_word *w, int64_t n)
{
    return (!w->has_min || n >= w->min) && (!w->has_max || n <= w->max);
}

static json_t *value_int(const struct ctl_word *w, const char *text, char **ret_wants)
{
    int64_t n;
    if (ox_parse_i64(text, INT64_MIN, INT64_MAX, &n) == OX_OK && within(w, n))
        return json_integer(n);
    if (w->has_min && w->has_max)
        *ret_wants = ox_asprintf("a whole number from %" PRId64 " to %" PRId64, w->min, w->max);
    else if (w->has_min)
        *ret_wants = ox_asprintf("a whole number, %" PRId64 " or more", w->min);
    else
        *ret_wants = ox_strdup("a whole number");
    return NULL;
}

static json_t *value_number(const char *text, char **ret_wants)
{
    char *end;
    double n = strtod(text, &end);
    return *text && !*end && isfinite(n) ? json_real(n) : value_wants(ret_wants, "a number");
}

static json_t *value_enum(const struct ctl_word *w, const char *text, char **ret_wants)
{
    for (const char *at = w->values; *at;) {
        const char *end = strchrnul(at, '|');
        if (strlen(text) == (size_t)(end - at) && strncasecmp(text, at, strlen(text)) == 0)
            return json_stringn(at, (size_t)(end - at));
        at = *end ? end + 1 : end;
    }
    struct ox_str list = {0};
    for (const char *at = w->values; *at; at++)
        ox_str_addf(&list, *at == '|' ? ", " : "%c", *at);
    *ret_wants = ox_asprintf("one of %s", ox_str_get(&list));
    ox_str_fini(&list);
    return NULL;
}

// A number and perhaps a letter that multiplies it. False: it is neither, or too large.
static bool parse_scaled(const char *text, const char *letters, const int64_t *factors, int64_t *ret)
{
    size_t len = strlen(text);
    const char *letter = len ? strchr(letters, text[len - 1]) : NULL;
    OX_CLEANUP(ox_free_ptr)
    char *digits = ox_strndup(text, letter ? len - 1 : len);
    int64_t factor = letter ? factors[letter - letters] : 1;
    if (ox_parse_i64(digits, -1, INT64_MAX / factor, ret) != OX_OK || (*ret < 0 && letter))
        return false;
    *ret *= factor;
    return true;
}

// Seconds; -1 as it is.
static bool parse_time(const char *text, int64_t *ret)
{
    static const int64_t factors[] = {1, 60, 3600, 86400, 7 * 86400, 365 * 86400};
    return parse_scaled(text, "smhdwy", factors, ret);
}

static json_t *value_time(const struct ctl_word *w, const char *text, char **ret_wants)
{
    int64_t n, seconds = strcmp(w->unit, "min") == 0 ? 60 : strcmp(w->unit, "h") == 0 ? 3600 : 1;
    if (!parse_time(text, &n) || (strcmp(w->unit, "ms") == 0 && n > INT64_MAX / 1000))
        return value_wants(ret_wants, "a time such as 30s, 10m, 3h, 2d, 1w (a bare number: seconds)");
    if (n > 0 && n < seconds)
        return value_wants(ret_wants, seconds == 60 ? "a minute or more (or 0)" : "an hour or more (or 0)");
    if (!within(w, n))
        return value_wants(ret_wants, "a time that is not below 0");
    return json_integer(n <= 0 ? n : strcmp(w->unit, "ms") == 0 ? n * 1000 : n / seconds);
}

static json_t *value_ago(const char *text, char **ret_wants)
{
    int64_t n, now = (int64_t)time(NULL);
    if (!parse_time(text, &n) || n < 0 || n > now)
        return value_wants(ret_wants, "how long ago, such as 10m, 3h, 2d (a bare number: seconds)");
    return json_integer((now - n) * 1000);
}

static json_t *value_size(const struct ctl_word *w, const char *text, char **ret_wants)
{
    static const int64_t factors[] = {1 << 10, 1 << 10, MIB, MIB, MIB << 10, MIB << 10, MIB << 20, MIB << 20};
    int64_t n;
    if (!parse_scaled(text, "kKmMgGtT", factors, &n) || !within(w, n))
        return value_wants(ret_wants, "a size such as 50M, 1G or 0");
    if (strcmp(w->unit, "MB") == 0 && n > 0 && n < MIB)
        return value_wants(ret_wants, "a size of 1M or more (or 0)");
    return json_integer(n > 0 && strcmp(w->unit, "MB") == 0 ? n / MIB : n);
}

// "ledger:entry", "ledger:entry:partition", "ledger:entry:partition:batch index".
static json_t *value_id(const char *text, char **ret_wants)
{
    static const char *const members[] = {"ledgerId", "entryId", "partitionIndex", "batchIndex"};
    if (strcasecmp(text, "earliest") == 0)
        return json_pack("{s:i,s:i,s:i}", members[0], -1, members[1], -1, members[2], -1);
    if (strcasecmp(text, "latest") == 0)
        return json_pack("{s:I,s:I,s:i}", members[0], (json_int_t)INT64_MAX, members[1], (json_int_t)INT64_MAX,
                         members[2], -1);
    json_t *id = json_pack("{s:i}", members[2], -1);
    size_t count = 0;
    for (const char *at = text; at && count < OX_COUNT(members); count++) {
        const char *end = strchrnul(at, ':');
        OX_CLEANUP(ox_free_ptr)
        char *part = ox_strndup(at, (size_t)(end - at));
        int64_t n;
        if (ox_parse_i64(part, count < 2 ? 0 : -1, count < 2 ? INT64_MAX : INT32_MAX, &n) != OX_OK)
            break;
        json_object_set_new(id, members[count], json_integer(n));
        at = *end ? end + 1 : NULL;
        if (!at && count >= 1)
            return id;
    }
    json_decref(id);
    return value_wants(ret_wants, "LEDGER:ENTRY, latest or earliest");
}

static json_t *value_json(const char *text, char **ret_wants)
{
    json_error_t error;
    json_t *value = json_loads(text, JSON_DECODE_ANY, &error);
    if (!value)
        *ret_wants = ox_asprintf("JSON (%s)", error.text);
    return value;
}

static json_t *value_file(const char *path, char **ret_wants)
{
    json_error_t error;
    json_t *value = json_load_file(path, JSON_DECODE_ANY, &error);
    if (!value)
        *ret_wants = ox_asprintf("a file with JSON (%s)", error.text);
    return value;
}

static json_t *value_list(const struct ctl_word *w, const char *const *texts, size_t count, char **ret_wants)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        for (const char *at = texts[i]; *at;) {
            const char *end = strchrnul(at, ',');
            OX_CLEANUP(ox_free_ptr)
            char *text = ox_strndup(at, (size_t)(end - at));
            json_t *item = w->values && *text ? value_enum(w, text, ret_wants) : value_text(text, ret_wants);
            if (!item)
                return json_decref(list), NULL;
            if (*text)
                json_array_append(list, item);
            json_decref(item);
            at = *end ? end + 1 : end;
        }
    return list;
}

// The end of a "name=value": the next comma that another pair stands behind.
static const char *pair_end(const char *at)
{
    const char *comma = strchr(at, ',');
    while (comma && !memchr(comma + 1, '=', strcspn(comma + 1, ",")))
        comma = strchr(comma + 1, ',');
    return comma ? comma : at + strlen(at);
}

static bool map_add(json_t *map, const char *pair, size_t len)
{
    const char *equals = memchr(pair, '=', len);
    if (!equals || equals == pair)
        return false;
    OX_CLEANUP(ox_free_ptr)
    char *name = ox_strndup(pair, (size_t)(equals - pair));
    json_t *value = json_stringn(equals + 1, len - (size_t)(equals + 1 - pair));
    return value && json_object_set_new(map, name, value) == 0;
}

static json_t *value_map(const char *const *texts, size_t count, char **ret_wants)
{
    json_t *map = json_object();
    for (size_t i = 0; i < count; i++)
        for (const char *at = texts[i]; *at;) {
            const char *end = pair_end(at);
            if (!map_add(map, at, (size_t)(end - at)))
                return json_decref(map), value_wants(ret_wants, "NAME=VALUE");
            at = *end ? end + 1 : end;
        }
    return map;
}

static json_t *value_many(const char *const *texts, size_t count, char **ret_wants)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *item = value_text(texts[i], ret_wants);
        if (!item)
            return json_decref(list), NULL;
        json_array_append_new(list, item);
    }
    return list;
}

static json_t *value_topic(const char *text, char **ret_wants)
{
    struct ctl_topic topic;
    if (!ctl_topic_parse(text, &topic))
        return value_wants(ret_wants, "NAME, TENANT/NAMESPACE/NAME or persistent://TENANT/NAMESPACE/NAME");
    json_t *value = value_text(topic.full, ret_wants);
    ctl_topic_fini(&topic);
    return value;
}

static json_t *value_namespace(const char *text, char **ret_wants)
{
    OX_CLEANUP(ox_free_ptr)
    char *tenant = NULL;
    OX_CLEANUP(ox_free_ptr)
    char *namespace = NULL;
    return ctl_namespace_parse(text, &tenant, &namespace) ? value_text(text, ret_wants)
                                                          : value_wants(ret_wants, "TENANT/NAMESPACE");
}

static json_t *value_place(const char *text, char **ret_wants)
{
    const char *slash = strstr(text, "://") ? NULL : strchr(text, '/');
    return slash && !strchr(slash + 1, '/') ? value_namespace(text, ret_wants) : value_topic(text, ret_wants);
}

json_t *ctl_value_read(const struct ctl_word *w, const char *const *texts, size_t count, char **ret_wants)
{
    const char *text = texts[count - 1];
    *ret_wants = NULL;
    switch (w->type) {
    case CTL_FLAG: return value_json(text, ret_wants); // of the table
    case CTL_TEXT: return w->many ? value_many(texts, count, ret_wants) : value_text(text, ret_wants);
    case CTL_INT: return value_int(w, text, ret_wants);
    case CTL_NUMBER: return value_number(text, ret_wants);
    case CTL_BOOL:
        if (strcasecmp(text, "true") == 0 || strcasecmp(text, "false") == 0)
            return json_boolean(strcasecmp(text, "true") == 0);
        return value_wants(ret_wants, "true or false");
    case CTL_ENUM: return value_enum(w, text, ret_wants);
    case CTL_LIST: return value_list(w, texts, count, ret_wants);
    case CTL_MAP: return value_map(texts, count, ret_wants);
    case CTL_TIME: return value_time(w, text, ret_wants);
    case CTL_AGO: return value_ago(text, ret_wants);
    case CTL_SIZE: return value_size(w, text, ret_wants);
    case CTL_ID: return value_id(text, ret_wants);
    case CTL_JSON: return value_json(text, ret_wants);
    case CTL_FILE: return value_file(text, ret_wants);
    case CTL_TOPIC: return value_topic(text, ret_wants);
    case CTL_NAMESPACE: return value_namespace(text, ret_wants);
    case CTL_PLACE: return value_place(text, ret_wants);
    }
    OX_UNREACHABLE("type of a word");
}

static void names_set(json_t *names, const char *name, const char *text)
{
    json_object_set_new(names, name, json_string(text));
}

void ctl_value_names(const json_t *value, enum ctl_type type, json_t *names)
{
    const char *text = json_string_value(value);
    char *tenant, *namespace;
    struct ctl_topic topic;
    if (type != CTL_TOPIC && ctl_namespace_parse(text, &tenant, &namespace)) {
        names_set(names, "tenant", tenant);
        names_set(names, "namespace", namespace);
        ox_free(tenant);
        ox_free(namespace);
    } else if (ctl_topic_parse(text, &topic)) {
        names_set(names, "domain", topic.domain);
        names_set(names, "tenant", topic.tenant);
        names_set(names, "namespace", topic.namespace);
        names_set(names, "topic", topic.name);
        ctl_topic_fini(&topic);
    }
}

char *ctl_value_text(const json_t *value)
{
    if (json_is_string(value))
        return ox_strdup(json_string_value(value));
    struct ox_str text = {0};
    if (json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value); i++)
            ox_str_addf(&text, "%s%s", i ? "," : "", json_string_value(json_array_get(value, i)));
    } else {
        char *dumped = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
        ox_str_adds(&text, dumped);
        free(dumped);
    }
    return ox_str_take(&text);
}
