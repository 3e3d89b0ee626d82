// request.c - a row's request: which route, its path, query and body; sending it; showing the answer.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "oxbowctl/ctl.h"

#define PATIENT_MS (24 * 3600 * 1000L) // a verification reads everything; Ctrl-C ends the waiting

// Appends a route's path with its names filled in. False: *ret_missing is the name that has no value (to be freed).
static bool path_fill(struct ox_str *out, const char *path, const json_t *names, char **ret_missing)
{
    while (*path) {
        size_t plain = strcspn(path, "{");
        ox_str_add(out, path, plain);
        path += plain;
        if (!*path)
            break;
        size_t len = strcspn(path, "}") - 1;
        char *name = ox_strndup(path + 1, len);
        const char *value = json_string_value(json_object_get(names, name));
        if (!value) {
            *ret_missing = name;
            return false;
        }
        ox_free(name);
        ctl_encode(out, value);
        path += len + 2;
    }
    return true;
}

// The first route whose names all have a value.
static int route_choose(const struct ctl *ctl, struct ctl_request *r)
{
    OX_CLEANUP(ox_free_ptr)
    char *missing = NULL;
    for (size_t i = 0; i < ctl->row->route_count; i++) {
        const struct ctl_route *route = &ctl->row->routes[i];
        ox_free(missing);
        missing = NULL;
        ox_str_truncate(&r->path, 0);
        r->method = route->method;
        if (path_fill(&r->path, route->path, ctl->names, &missing))
            return CTL_DONE;
    }
    return ctl_misuse(ctl, "%s is missing", missing ? missing : "the route");
}

static void query_add(struct ctl_request *r, const char *name, const json_t *value)
{
    OX_CLEANUP(ox_free_ptr)
    char *text = ctl_value_text(value);
    ox_str_addf(&r->path, "%c%s=", strchr(ox_str_get(&r->path), '?') ? '&' : '?', name);
    ctl_encode(&r->path, text);
}

// Sets a.b.c of the body.
static void body_set(json_t *body, const char *member, json_t *value)
{
    const char *dot = strchr(member, '.');
    OX_CLEANUP(ox_free_ptr)
    char *name = ox_strndup(member, dot ? (size_t)(dot - member) : strlen(member));
    if (!dot) {
        json_object_set(body, name, value);
        return;
    }
    json_t *inner = json_object_get(body, name);
    if (!json_is_object(inner)) {
        json_object_set_new(body, name, json_object());
        inner = json_object_get(body, name);
    }
    body_set(inner, dot + 1, value);
}

// Puts a value where it goes; `whole` tells whether whole bodies are placed now, or members.
static void value_place(struct ctl_request *r, const char *to, json_t *value, bool whole)
{
    if (!to || strncmp(to, "path.", 5) == 0)
        return;
    if (strncmp(to, "query.", 6) == 0) {
        if (!whole)
            query_add(r, to + 6, value);
    } else if (strcmp(to, "body") == 0) {
        if (whole) {
            json_decref(r->body);
            r->body = json_deep_copy(value);
        }
    } else if (!whole) {
        if (!r->body)
            r->body = json_object();
        body_set(r->body, to + 5, value);
    }
}

static void values_place(const struct ctl *ctl, struct ctl_request *r, bool whole)
{
    for (size_t i = 0; i < ctl->row->fixed_count; i++) {
        json_t *value = json_loads(ctl->row->fixed[i].json, JSON_DECODE_ANY, NULL);
        value_place(r, ctl->row->fixed[i].to, value, whole);
        json_decref(value);
    }
    for (size_t i = 0; i < ctl->row->word_count; i++)
        if (ctl->values[i])
            value_place(r, ctl->row->words[i].to, ctl->values[i], whole);
}

char *ctl_path_make(const struct ctl *ctl, const char *path)
{
    struct ox_str out = {0};
    OX_CLEANUP(ox_free_ptr)
    char *missing = NULL;
    if (path_fill(&out, path, ctl->names, &missing))
        return ox_str_take(&out);
    ox_str_fini(&out);
    ctl_misuse(ctl, "%s is missing", missing);
    return NULL;
}

// The body that is changed: what the broker has now.
static int body_load(struct ctl *ctl, struct ctl_request *r)
{
    OX_CLEANUP(ox_free_ptr)
    char *what = ctl_subject(ctl);
    OX_CLEANUP(ox_free_ptr)
    char *path = ctl_path_make(ctl, ctl->row->update_of);
    return path ? ctl_get(ctl, path, what, &r->body) : CTL_USAGE;
}

int ctl_request_make(struct ctl *ctl, struct ctl_request *r)
{
    *r = (struct ctl_request){0};
    int status = route_choose(ctl, r);
    if (status == CTL_DONE && ctl->row->update_of && !ctl->print_request)
        status = body_load(ctl, r);
    if (status != CTL_DONE)
        return status;
    values_place(ctl, r, true);
    values_place(ctl, r, false);
    return CTL_DONE;
}

void ctl_request_fini(struct ctl_request *r)
{
    ox_str_fini(&r->path);
    json_decref(r->body);
    *r = (struct ctl_request){0};
}

// ---- asking ---------------------------------------------------------------------------------------------------------

// What begins as JSON or a web page is no plain text.
static json_t *answer_load(const struct ctl *ctl, const struct ctl_answer *answer, const char *what)
{
    const char *text = ox_str_get(&answer->body);
    if (answer->body.len == 0)
        return json_null();
    json_t *json = json_loadb(text, answer->body.len, JSON_DECODE_ANY, NULL);
    if (!json && !strchr("{[<", *text))
        json = json_stringn(text, answer->body.len);
    if (!json)
        ctl_fail("%s: what %s answers is neither JSON nor text: is it a broker's REST door? (--url)", what, ctl->url);
    return json;
}

static int ask(struct ctl *ctl, const struct ctl_ask *ask, const char *what, json_t **ret)
{
    struct ctl_answer answer;
    int status = CTL_DONE;
    *ret = NULL;
    if (!ctl_rest_send(ctl, ask, &answer) || answer.status / 100 != 2)
        status = ctl_answer_failed(ctl, &answer, what);
    else if (!(*ret = answer_load(ctl, &answer, what)))
        status = CTL_FAILED;
    ox_free(ctl->raw);
    ctl->raw = *ret ? ox_str_take(&answer.body) : NULL;
    ctl_answer_fini(&answer);
    return status;
}

int ctl_get(struct ctl *ctl, const char *path, const char *what, json_t **ret)
{
    return ask(ctl, &(struct ctl_ask){.method = "GET", .path = path}, what, ret);
}

int ctl_request_send(struct ctl *ctl, const struct ctl_request *r, json_t **ret)
{
    char *body = r->body ? json_dumps(r->body, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    OX_CLEANUP(ox_free_ptr)
    char *what = ctl_subject(ctl);
    struct ctl_ask request = {.method = r->method, .path = ox_str_get(&r->path), .body = body, .media = r->media};
    request.timeout_ms = ctl->row->patient ? PATIENT_MS : 0;
    int status = ask(ctl, &request, what, ret);
    free(body);
    return status;
}

int ctl_row_ask(struct ctl *ctl, json_t **ret)
{
    struct ctl_request request;
    *ret = NULL;
    int status = ctl_request_make(ctl, &request);
    if (status == CTL_DONE)
        status = ctl_request_send(ctl, &request, ret);
    ctl_request_fini(&request);
    return status;
}

// ---- showing --------------------------------------------------------------------------------------------------------

// The exit status of an answer: what the row calls good is a member that is true ("x"), or empty ("!x").
static int answer_status(const struct ctl *ctl, const json_t *answer)
{
    const char *good = ctl->row->good;
    if (!good)
        return CTL_DONE;
    if (*good != '!')
        return json_is_true(json_object_get(answer, good)) ? CTL_DONE : CTL_FAILED;
    const json_t *member = json_object_get(answer, good + 1);
    return json_array_size(member) == 0 && json_object_size(member) == 0 ? CTL_DONE : CTL_FAILED;
}

// A question that was answered with nothing: for people, what that means.
static bool answered_nothing(const struct ctl *ctl, const json_t *answer)
{
    return json_is_null(answer) && ctl->row->route_count && strcmp(ctl->row->routes[0].method, "GET") == 0;
}

int ctl_row_show(const struct ctl *ctl, const json_t *answer)
{
    if (ctl->json && !json_is_null(answer))
        ctl_print_json(answer);
    else if (!ctl->json && !json_is_null(answer))
        ctl->row->show(answer);
    else if (answered_nothing(ctl, answer))
        printf(ctl->json ? "null\n" : "not set\n");
    OX_CLEANUP(ox_free_ptr)
    char *what = ctl_subject(ctl);
    if (!ctl->json && ctl->row->done)
        printf("%s: %s\n", what, ctl->row->done);
    return answer_status(ctl, answer);
}

// JSON goes out as it came in.
static void print_raw(const struct ctl *ctl, const json_t *answer)
{
    size_t len = strlen(ctl->raw);
    if (answered_nothing(ctl, answer))
        printf("null\n");
    else if (json_is_string(answer) && *ctl->raw != '"')
        ctl_print_json(answer);
    else if (len)
        printf("%s%s", ctl->raw, ctl->raw[len - 1] == '\n' ? "" : "\n");
}

int ctl_row_run(struct ctl *ctl)
{
    if (ctl->row->run)
        return ctl->row->run(ctl);
    json_t *answer;
    int status = ctl_row_ask(ctl, &answer);
    if (answer && ctl->json)
        print_raw(ctl, answer);
    if (answer)
        status = ctl->json ? answer_status(ctl, answer) : ctl_row_show(ctl, answer);
    json_decref(answer);
    return status;
}
