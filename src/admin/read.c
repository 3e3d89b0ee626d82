// read.c - what a request brings, taken apart: query, body, segments; and what many answers are made of.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "admin/request.h"
#include "base/assert.h"
#include "base/pos.h"

const char *admin_query_raw(const struct admin_request *r, const char *name, size_t *ret_len)
{
    return http_query_find(r->head.query, name, ret_len);
}

char *admin_decoded(const char *sent, size_t len)
{
    struct ox_str text = {0};
    char *raw = ox_strndup(sent, len);
    if (ox_name_decode(&text, raw) != OX_OK) {
        ox_str_fini(&text);
        return raw;
    }
    ox_free(raw);
    return ox_str_take(&text);
}

json_t *admin_query_set(const struct admin_request *r, const char *name)
{
    json_t *set = NULL;
    size_t len;
    for (const char *at = admin_query_raw(r, name, &len); at; at = http_query_find(at + len, name, &len)) {
        OX_CLEANUP(ox_free_ptr)
        char *text = admin_decoded(at, len);
        set = set ? set : json_object();
        json_object_set_new(set, text, json_true());
    }
    return set;
}

const char *admin_query(struct admin_request *r, const char *name)
{
    const char *known = ox_kv_find(&r->query, name);
    size_t len;
    const char *sent = known ? NULL : admin_query_raw(r, name, &len);
    if (!sent)
        return known;
    OX_CLEANUP(ox_free_ptr)
    char *text = admin_decoded(sent, len);
    ox_kv_set(&r->query, name, text);
    return ox_kv_find(&r->query, name);
}

bool admin_query_true(struct admin_request *r, const char *name)
{
    const char *value = admin_query(r, name);
    return value && strcmp(value, "true") == 0;
}

bool admin_body(struct admin_request *r, json_t **ret)
{
    json_error_t error;
    *ret = r->json;
    if (r->json || strspn(ox_str_get(&r->body), " \t\r\n") == r->body.len)
        return true;
    r->json = json_loadb(ox_str_get(&r->body), r->body.len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    *ret = r->json;
    if (!r->json)
        admin_fail(r, HTTP_BAD_REQUEST, "the body is no JSON: line %d, column %d: %s", error.line, error.column, error.text);
    return r->json != NULL;
}

bool admin_number(struct admin_request *r, size_t segment, int64_t *ret)
{
    if (ox_parse_i64(r->segments[segment], INT64_MIN, INT64_MAX, ret) == OX_OK)
        return true;
    admin_fail(r, HTTP_NOT_FOUND, "no such resource: \"%s\" is no whole number", r->segments[segment]);
    return false;
}

static void rest_over(struct ox_timer *t)
{
    ox_seq_resume(CONTAINER_OF(t, struct admin_pause, timer)->seq, OX_OK);
}

ox_step admin_rest(struct admin_pause *pause, struct ox_seq *s, ox_step_fn next, const char *step)
{
    pause->seq = s;
    ox_timer_init(&pause->timer, s->loop, rest_over);
    ox_timer_start(&pause->timer, OX_MS);
    return ox_seq_goto(s, next, step, OX_STEP_WAIT);
}

// Pulsar decodes such a segment once more, as of a form. What cannot be decoded again was encoded once.
char *admin_twice(const struct admin_request *r, size_t segment)
{
    return admin_decoded(r->segments[segment], strlen(r->segments[segment]));
}

void admin_done(struct admin_request *r, enum ox_err err, const char *what, const char *why)
{
    if (err == OX_OK)
        admin_empty(r, HTTP_NO_CONTENT);
    else
        admin_error(r, err, what, why);
}

json_t *admin_names(char *const *names, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, json_string(names[i]));
    return array;
}

json_t *admin_text_set(const json_t *list)
{
    json_t *set = json_object(), *value;
    size_t i;
    json_array_foreach(list, i, value)
    {
        if (json_is_string(value))
            json_object_set_new(set, json_string_value(value), json_true());
    }
    return set;
}

json_t *admin_members(json_t *object)
{
    json_t *names = json_array(), *value;
    const char *name;
    json_object_foreach(object, name, value) json_array_append_new(names, json_string(name));
    return names;
}

json_t *admin_kv_json(const struct ox_kv *kv)
{
    json_t *object = json_object();
    for (size_t i = 0; i < kv->count; i++)
        json_object_set_new(object, kv->pairs[i].key, json_string(kv->pairs[i].value));
    return object;
}

void admin_kv_read(struct ox_kv *kv, json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        if (json_is_string(value))
            ox_kv_set(kv, key, json_string_value(value));
    }
}

struct ox_buf admin_json_buf(const json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);
    OX_ASSERT(text);
    struct ox_buf buf = ox_buf_copy(text, strlen(text));
    free(text);
    return buf;
}

bool admin_name_valid(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-=:._";
    return *name && !name[strspn(name, allowed)] && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

void admin_time(uint64_t ms, char out[40])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    size_t n = strftime(out, 32, "%Y-%m-%dT%H:%M:%S", &tm);
    if (ms % 1000) {
        n += (size_t)snprintf(out + n, 40 - n, ".%03u", (unsigned)(ms % 1000));
        while (out[n - 1] == '0')
            n--;
    }
    snprintf(out + n, 40 - n, "Z");
}

json_t *admin_message_id(struct ox_pos pos, int32_t partition, int32_t batch_index)
{
    return json_pack("{s:I, s:I, s:i, s:i, s:i}", "ledgerId", (json_int_t)pos.ledger, "entryId", (json_int_t)pos.entry,
                     "partitionIndex", (int)partition, "batchIndex", (int)batch_index, "batchSize", 0);
}
