// records.c - reading and writing the JSON of the nodes below <root>.
#include "move/storage/records.h"

#include <stdlib.h>
#include <string.h>

// ---- fields

static json_t *record_load(struct ox_buf value)
{
    json_t *root = json_loadb((const char *)value.data, value.len, 0, NULL);
    if (json_is_object(root))
        return root;
    json_decref(root);
    return NULL;
}

// A string field. False if it is there and is something else.
static bool record_string(const json_t *o, const char *key, char **ret)
{
    const json_t *field = json_object_get(o, key);
    *ret = json_is_string(field) ? ox_strdup(json_string_value(field)) : NULL;
    return !field || json_is_null(field) || *ret;
}

// An integer field that is not negative; `missing` if it is not there. False if it is there and is something else.
static bool record_integer(const json_t *o, const char *key, int64_t missing, int64_t *ret)
{
    const json_t *field = json_object_get(o, key);
    *ret = json_is_integer(field) ? (int64_t)json_integer_value(field) : missing;
    return !field || json_is_null(field) || (json_is_integer(field) && *ret >= 0);
}

static bool record_ms(const json_t *o, const char *key, uint64_t *ret)
{
    int64_t value;
    bool good = record_integer(o, key, 0, &value);
    *ret = good ? (uint64_t)value : 0;
    return good;
}

static void record_set(json_t *o, const char *key, const char *text)
{
    if (text)
        json_object_set_new(o, key, json_string(text));
}

static void record_set_number(json_t *o, const char *key, uint64_t value)
{
    json_object_set_new(o, key, json_integer((json_int_t)value));
}

// The object to write into: what was read (copied), or a new one.
static json_t *record_begin(const json_t *raw)
{
    return json_is_object(raw) ? json_copy((json_t *)(uintptr_t)raw) : json_object();
}

static struct ox_buf record_text(json_t *take_root)
{
    char *text = json_dumps(take_root, JSON_COMPACT);
    OX_ASSERT(text);
    struct ox_buf value = ox_buf_copy(text, strlen(text));
    free(text);
    json_decref(take_root);
    return value;
}

// ---- registry entry

enum ox_err storage_entry_read(struct ox_buf value, struct storage_entry *ret)
{
    struct storage_entry e = {.raw = record_load(value)};
    bool good = e.raw != NULL;
    good = record_string(e.raw, "name", &e.name) && good;
    good = record_string(e.raw, "metadataServiceUri", &e.uri) && good;
    good = record_string(e.raw, "identity", &e.identity) && good;
    good = record_string(e.raw, "status", &e.status) && good;
    if (!good || !e.uri || (e.identity && strlen(e.identity) >= OX_IDENTITY_BYTES)) {
        storage_entry_fini(&e);
        return OX_E_CORRUPT;
    }
    *ret = e;
    return OX_OK;
}

void storage_entry_fini(struct storage_entry *e)
{
    ox_free(e->name);
    ox_free(e->uri);
    ox_free(e->identity);
    ox_free(e->status);
    json_decref(e->raw);
    *e = (struct storage_entry){0};
}

struct ox_buf storage_entry_text(const struct storage_place *p)
{
    json_t *root = record_begin(p->raw);
    record_set(root, "name", p->name);
    record_set(root, "metadataServiceUri", p->uri);
    record_set(root, "status", p->status);
    if (*p->identity)
        record_set(root, "identity", p->identity);
    return record_text(root);
}

// ---- bootstrap record

enum ox_err storage_bootstrap_read(struct ox_buf value, struct storage_bootstrap *ret)
{
    struct storage_bootstrap b = {0};
    const char *why;
    json_t *root = record_load(value);
    bool good = root != NULL;
    good = record_string(root, "bootstrapClusterName", &b.name) && good;
    good = record_string(root, "identity", &b.identity) && good;
    good = record_ms(root, "recordedAt", &b.recorded_ms) && good;
    good = record_integer(root, "maxLedgerId", -1, &b.max_ledger) && good;
    json_decref(root);
    if (!good || !b.name || !storage_name_valid(b.name, &why) || (b.identity && strlen(b.identity) >= OX_IDENTITY_BYTES)) {
        storage_bootstrap_fini(&b);
        return OX_E_CORRUPT;
    }
    *ret = b;
    return OX_OK;
}

void storage_bootstrap_fini(struct storage_bootstrap *b)
{
    ox_free(b->name);
    ox_free(b->identity);
    *b = (struct storage_bootstrap){0};
}

struct ox_buf storage_bootstrap_text(const struct storage_bootstrap *b)
{
    json_t *root = json_object();
    record_set(root, "bootstrapClusterName", b->name);
    record_set_number(root, "recordedAt", b->recorded_ms);
    record_set(root, "identity", b->identity);
    if (b->max_ledger >= 0)
        record_set_number(root, "maxLedgerId", (uint64_t)b->max_ledger);
    return record_text(root);
}

// ---- directive

// A line of text without blanks around it.
static char *directive_line(const char *from, const char *end)
{
    while (from < end && (*from == ' ' || *from == '\t' || *from == '\r'))
        from++;
    while (end > from && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
        end--;
    return ox_strndup(from, (size_t)(end - from));
}

static void directive_text_line(struct storage_directive *d, char *take_line)
{
    if (!d->target) {
        d->target = take_line;
        return;
    }
    if (!d->origin && !strncmp(take_line, "origin=", 7))
        d->origin = ox_strdup(take_line + 7);
    ox_free(take_line);
}

// The first revision's form.
static bool directive_read_text(struct ox_buf value, struct storage_directive *d)
{
    if (value.len == 0 || memchr(value.data, 0, value.len) || !ox_utf8_valid((const char *)value.data, value.len))
        return false;
    const char *at = (const char *)value.data, *end = at + value.len;
    while (at < end) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        line_end = line_end ? line_end : end;
        directive_text_line(d, directive_line(at, line_end));
        at = line_end < end ? line_end + 1 : end;
    }
    d->epoch = -1;
    return true;
}

static bool directive_read_json(struct storage_directive *d)
{
    bool good = record_string(d->raw, "target", &d->target);
    good = record_string(d->raw, "origin", &d->origin) && good;
    good = record_string(d->raw, "previous", &d->previous) && good;
    good = record_string(d->raw, "switchId", &d->switch_id) && good;
    good = record_integer(d->raw, "epoch", -1, &d->epoch) && good;
    return record_ms(d->raw, "ts", &d->ts_ms) && good;
}

// What a path segment of ours may hold: a switch id that another program wrote is part of one.
static bool directive_id_valid(const char *id)
{
    size_t len = strlen(id);
    return len > 0 && len <= 64 && id[strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-")] == 0;
}

static bool directive_complete(struct storage_directive *d, int64_t version)
{
    const char *why;
    if (!d->target || !storage_name_valid(d->target, &why) || (d->previous && !storage_name_valid(d->previous, &why)))
        return false;
    if (d->switch_id && !directive_id_valid(d->switch_id)) {
        ox_free(d->switch_id);
        d->switch_id = NULL;
    }
    d->partial = d->epoch < 0 || !d->switch_id;
    if (d->epoch < 0)
        d->epoch = version + 1;
    if (!d->switch_id)
        d->switch_id = ox_asprintf("epoch-%lld", (long long)d->epoch);
    d->version = version;
    return true;
}

enum ox_err storage_directive_read(struct ox_buf value, int64_t version, struct storage_directive *ret)
{
    struct storage_directive d = {.raw = record_load(value)};
    bool json = value.len > 0 && value.data[0] == '{';
    bool good = d.raw ? directive_read_json(&d) : !json && directive_read_text(value, &d);
    if (!good || !directive_complete(&d, version)) {
        storage_directive_fini(&d);
        return OX_E_CORRUPT;
    }
    *ret = d;
    return OX_OK;
}

void storage_directive_fini(struct storage_directive *d)
{
    ox_free(d->target);
    ox_free(d->previous);
    ox_free(d->origin);
    ox_free(d->switch_id);
    json_decref(d->raw);
    *d = (struct storage_directive){.version = -1};
}

static char *record_dup(const char *text)
{
    return text ? ox_strdup(text) : NULL;
}

void storage_directive_copy(struct storage_directive *to, const struct storage_directive *from)
{
    struct storage_directive copy = *from;
    copy.target = record_dup(from->target);
    copy.previous = record_dup(from->previous);
    copy.origin = record_dup(from->origin);
    copy.switch_id = record_dup(from->switch_id);
    copy.raw = from->raw ? json_deep_copy(from->raw) : NULL;
    storage_directive_fini(to);
    *to = copy;
}

struct ox_buf storage_directive_text(const struct storage_directive *d)
{
    json_t *root = record_begin(d->raw);
    record_set(root, "target", d->target);
    record_set(root, "origin", d->origin);
    record_set_number(root, "epoch", (uint64_t)d->epoch);
    record_set_number(root, "ts", d->ts_ms);
    record_set(root, "switchId", d->switch_id);
    record_set(root, "previous", d->previous);
    return record_text(root);
}

// ---- header of the orchestrator

static const char *const state_names[] = {
    [STORAGE_NONE] = "NONE",       [STORAGE_RUNNING] = "RUNNING", [STORAGE_PAUSED] = "PAUSED",
    [STORAGE_ABORTED] = "ABORTED", [STORAGE_DONE] = "DONE",       [STORAGE_DONE_WITH_FAILURES] = "DONE_WITH_FAILURES",
};

const char *storage_state_name(enum storage_state state)
{
    return state_names[state];
}

static bool header_state(const json_t *root, enum storage_state *ret)
{
    const char *text = json_string_value(json_object_get(root, "state"));
    for (size_t i = 0; text && i < OX_COUNT(state_names); i++)
        if (!strcmp(text, state_names[i])) {
            *ret = (enum storage_state)i;
            return true;
        }
    return false;
}

static bool header_numbers(const json_t *root, struct storage_header *h)
{
    const json_t *throttle = json_object_get(root, "throttle"), *counters = json_object_get(root, "counters");
    bool good = record_integer(root, "epoch", 0, &h->epoch);
    good = record_ms(root, "startedAt", &h->started_ms) && good;
    good = record_ms(root, "finishedAt", &h->finished_ms) && good;
    good = record_integer(throttle, "bytesPerSecond", -1, &h->bytes_per_s) && good;
    good = record_integer(throttle, "opsPerSecond", -1, &h->ops_per_s) && good;
    good = record_ms(counters, "failures", &h->failures) && good;
    h->move_data = json_is_true(json_object_get(root, "moveData"));
    return good;
}

enum ox_err storage_header_read(struct ox_buf value, struct storage_header *ret)
{
    struct storage_header h = {0};
    const char *why;
    json_t *root = record_load(value);
    bool good = root != NULL;
    good = record_string(root, "switchId", &h.switch_id) && good;
    good = record_string(root, "to", &h.to) && good;
    good = record_string(root, "from", &h.from) && good;
    good = header_numbers(root, &h) && good;
    good = header_state(root, &h.state) && good;
    json_decref(root);
    good = good && h.switch_id && h.to && storage_name_valid(h.to, &why) && directive_id_valid(h.switch_id);
    if (!good || (h.from && !storage_name_valid(h.from, &why))) {
        storage_header_fini(&h);
        return OX_E_CORRUPT;
    }
    *ret = h;
    return OX_OK;
}

void storage_header_fini(struct storage_header *h)
{
    ox_free(h->switch_id);
    ox_free(h->to);
    ox_free(h->from);
    *h = (struct storage_header){0};
}

// What is not known is left out.
static json_t *header_throttle(const struct storage_header *h)
{
    json_t *throttle = json_object();
    if (h->bytes_per_s >= 0)
        record_set_number(throttle, "bytesPerSecond", (uint64_t)h->bytes_per_s);
    if (h->ops_per_s >= 0)
        record_set_number(throttle, "opsPerSecond", (uint64_t)h->ops_per_s);
    return throttle;
}

struct ox_buf storage_header_text(const struct storage_header *h, const json_t *raw)
{
    json_t *root = record_begin(raw);
    record_set(root, "switchId", h->switch_id);
    record_set_number(root, "epoch", (uint64_t)h->epoch);
    record_set(root, "from", h->from);
    record_set(root, "to", h->to);
    record_set(root, "state", storage_state_name(h->state));
    json_object_set_new(root, "moveData", json_boolean(h->move_data));
    record_set_number(root, "startedAt", h->started_ms);
    record_set_number(root, "finishedAt", h->finished_ms);
    json_object_set_new(root, "throttle", header_throttle(h));
    json_object_set_new(root, "counters", json_pack("{s:I}", "failures", (json_int_t)h->failures));
    return record_text(root);
}

// ---- failures

json_t *storage_failure_json(const struct storage_failure *f)
{
    return json_pack("{s:s,s:s?,s:s?,s:I,s:I,s:s,s:i,s:I}", "topic", f->topic, "cursor", f->cursor, "place", f->place,
                     "ledger", (json_int_t)f->ledger, "entry", (json_int_t)f->entry, "reason", f->reason, "tries",
                     (int)f->tries, "at", (json_int_t)f->at_ms);
}

void storage_failure_free(struct storage_failure *f)
{
    ox_free(f->topic);
    ox_free(f->cursor);
    ox_free(f->place);
    ox_free(f->reason);
    ox_free(f);
}

static struct storage_failure *failure_read(const json_t *o)
{
    struct storage_failure *f = ox_malloc(sizeof *f);
    int64_t tries;
    bool good = record_string(o, "topic", &f->topic);
    good = record_string(o, "cursor", &f->cursor) && good;
    good = record_string(o, "place", &f->place) && good;
    good = record_string(o, "reason", &f->reason) && good;
    good = record_integer(o, "tries", 1, &tries) && good;
    good = record_ms(o, "at", &f->at_ms) && good;
    f->ledger = (int64_t)json_integer_value(json_object_get(o, "ledger"));
    f->entry = (int64_t)json_integer_value(json_object_get(o, "entry"));
    f->tries = good && tries < INT32_MAX ? (uint32_t)tries : 1;
    if (good && f->topic && f->reason)
        return f;
    storage_failure_free(f);
    return NULL;
}

enum ox_err storage_failures_read(struct ox_buf value, struct ox_list *list)
{
    json_t *root = json_loadb((const char *)value.data, value.len, 0, NULL);
    enum ox_err err = json_is_array(root) ? OX_OK : OX_E_CORRUPT;
    for (size_t i = 0; err == OX_OK && i < json_array_size(root) && list->count < STORAGE_FAILURES_MAX; i++) {
        struct storage_failure *f = failure_read(json_array_get(root, i));
        if (f)
            ox_list_push_back(list, &f->link);
        else
            err = OX_E_CORRUPT;
    }
    json_decref(root);
    return err;
}
