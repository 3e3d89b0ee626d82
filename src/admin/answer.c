// answer.c - what a request is answered: once, as JSON, text or bytes; long answers grow part by part over many turns.
#include <string.h>

#include "admin/connection.h"

#define PART_BYTES (64u * 1024)
#define PART_FIRST_BYTES 1024u // most answers are short

// ---- parts

static struct ox_buf *parts_grow(struct admin_parts *p, size_t len)
{
    uint8_t *data;
    if (p->count == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 4;
        p->bufs = (struct ox_buf *)ox_realloc(p->bufs, p->cap, sizeof *p->bufs);
    }
    struct ox_buf *part = &p->bufs[p->count++];
    *part = ox_buf_new(p->count > 1 ? PART_BYTES : OX_MIN(OX_MAX(len, PART_FIRST_BYTES), PART_BYTES), &data);
    part->len = 0;
    return part;
}

static void parts_add(struct admin_parts *p, const char *data, size_t len)
{
    while (len) {
        struct ox_buf *part = p->count ? &p->bufs[p->count - 1] : NULL;
        if (!part || part->len == part->slab->size)
            part = parts_grow(p, len);
        size_t n = OX_MIN(len, part->slab->size - part->len);
        memcpy(part->slab->data + part->len, data, n);
        part->len += n;
        p->bytes += n;
        data += n;
        len -= n;
    }
}

void admin_parts_put(struct ox_admin *admin, struct admin_parts *p, struct ox_buf give_part)
{
    if (p->count == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 4;
        p->bufs = (struct ox_buf *)ox_realloc(p->bufs, p->cap, sizeof *p->bufs);
    }
    p->bufs[p->count++] = give_part;
    p->bytes += give_part.len;
    admin->answer_bytes += give_part.len;
}

void admin_parts_fini(struct ox_admin *admin, struct admin_parts *p)
{
    admin->answer_bytes -= p->bytes;
    for (size_t i = 0; i < p->count; i++)
        ox_buf_unref(&p->bufs[i]);
    ox_free(p->bufs);
    *p = (struct admin_parts){0};
}

void admin_add(struct admin_request *r, const void *data, size_t len)
{
    struct ox_admin *admin = r->admin;
    if (r->too_long)
        return;
    if (admin->answer_bytes + len > ADMIN_ANSWERS_BYTES_MAX)
        admin_server_shed(admin);
    if (admin->answer_bytes + len > ADMIN_ANSWERS_BYTES_MAX) {
        r->too_long = true;
        admin_parts_fini(admin, &r->answer);
        return;
    }
    admin->answer_bytes += len;
    parts_add(&r->answer, (const char *)data, len);
}

void admin_adds(struct admin_request *r, const char *text)
{
    admin_add(r, text, strlen(text));
}

void admin_addf(struct admin_request *r, const char *format, ...)
{
    struct ox_str text = {0};
    va_list args;
    va_start(args, format);
    ox_str_addv(&text, format, args);
    va_end(args);
    admin_add(r, ox_str_get(&text), text.len);
    ox_str_fini(&text);
}

static int add_piece(const char *data, size_t len, void *arg)
{
    admin_add((struct admin_request *)arg, data, len);
    return 0;
}

void admin_add_json(struct admin_request *r, const json_t *json)
{
    r->broken |= json_dump_callback(json, add_piece, r, JSON_COMPACT | JSON_ENCODE_ANY) != 0;
}

static bool text_is_plain(const char *text)
{
    for (const char *c = text; *c; c++) {
        if ((unsigned char)*c < ' ' || (unsigned char)*c >= 0x7f || *c == '"' || *c == '\\')
            return false;
    }
    return true;
}

void admin_add_text(struct admin_request *r, const char *text)
{
    if (text_is_plain(text)) {
        admin_add(r, "\"", 1);
        admin_adds(r, text);
        admin_add(r, "\"", 1);
        return;
    }
    json_t *json = json_string(text);
    admin_add_json(r, json);
    json_decref(json);
}

void admin_add_member(struct admin_request *r, bool first, const char *name, const json_t *json)
{
    if (!first)
        admin_add(r, ",", 1);
    admin_add_text(r, name);
    admin_add(r, ":", 1);
    admin_add_json(r, json);
}

// ---- answers

static void answer_over(struct admin_request *r, unsigned status, const char *type)
{
    bool broken = r->broken, too_long = r->too_long;
    r->broken = r->too_long = false;
    r->status = status;
    r->type = type;
    if (broken)
        admin_fail(r, HTTP_INTERNAL_SERVER_ERROR, "the answer holds text that is not valid UTF-8");
    else if (too_long)
        admin_fail(r, HTTP_SERVICE_UNAVAILABLE, "the answers that are on their way take too much memory; try again");
    else
        admin_request_answered(r);
}

void admin_added(struct admin_request *r, unsigned status, const char *type)
{
    answer_over(r, status, type);
}

void admin_json(struct admin_request *r, unsigned status, json_t *take_json)
{
    admin_add_json(r, take_json);
    json_decref(take_json);
    answer_over(r, status, "application/json");
}

// Gathers plain names, so that most of them cost a copy.
static void names_add(struct admin_request *r, struct ox_str *text, const char *name)
{
    bool plain = text_is_plain(name);
    if (plain) {
        ox_str_add(text, "\"", 1);
        ox_str_adds(text, name);
        ox_str_add(text, "\"", 1);
    }
    if (plain && text->len < PART_BYTES)
        return;
    admin_add(r, text->data, text->len);
    ox_str_truncate(text, 0);
    if (!plain)
        admin_add_text(r, name);
}

void admin_answer_names(struct admin_request *r, char *const *names, size_t count)
{
    struct ox_str text = {0};
    for (size_t i = 0; i < count; i++) {
        ox_str_add(&text, i ? "," : "[", 1);
        names_add(r, &text, names[i]);
    }
    ox_str_adds(&text, count ? "]" : "[]");
    admin_add(r, text.data, text.len);
    ox_str_fini(&text);
    answer_over(r, HTTP_OK, "application/json");
}

void admin_stream(struct admin_request *r, unsigned status, const char *type, struct admin_source *take_source)
{
    r->source = take_source;
    answer_over(r, status, type);
}

void admin_empty(struct admin_request *r, unsigned status)
{
    answer_over(r, status, NULL);
}

void admin_text(struct admin_request *r, unsigned status, const char *type, const char *text)
{
    admin_adds(r, text);
    answer_over(r, status, type);
}

void admin_bytes(struct admin_request *r, unsigned status, const void *data, size_t len)
{
    admin_add(r, data, len);
    answer_over(r, status, "application/json"); // whatever it is: that is what Pulsar says
}

// JSON takes only UTF-8, and what the client sent may be anything.
static void reason_make_utf8(struct ox_str *reason)
{
    if (ox_utf8_valid(ox_str_get(reason), reason->len))
        return;
    for (size_t i = 0; i < reason->len; i++) {
        if ((unsigned char)reason->data[i] >= 0x80)
            reason->data[i] = '?';
    }
}

void admin_fail(struct admin_request *r, unsigned status, const char *format, ...)
{
    struct ox_str reason = {0};
    va_list args;
    va_start(args, format);
    ox_str_addv(&reason, format, args);
    va_end(args);
    reason_make_utf8(&reason);
    admin_parts_fini(r->admin, &r->answer); // of an answer that could not be ended
    r->broken = r->too_long = false;
    admin_json(r, status, json_pack("{s:s}", "reason", ox_str_get(&reason)));
    ox_str_fini(&reason);
}
