// rest.c - one request to the REST door.
#include <curl/curl.h>
#include <jansson.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "oxbowctl/ctl.h"

#define REST_CONNECT_MS 3000L
#define REST_TIMEOUT_MS 60000L
#define REST_ANSWER_BYTES_MAX (64u << 20)

static size_t rest_take(char *data, size_t size, size_t count, void *ctx)
{
    struct ox_str *body = ctx;
    if (body->len + size * count > REST_ANSWER_BYTES_MAX)
        return 0;
    ox_str_add(body, data, size * count);
    return size * count;
}

static char *rest_trouble(const struct ctl *ctl, CURLcode code)
{
    if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST)
        return ox_asprintf("no broker answers at %s: is it running? (--url names another one)", ctl->url);
    return ox_asprintf("%s: %s", ctl->url, curl_easy_strerror(code));
}

static void rest_prepare(CURL *curl, const struct ctl_ask *ask, struct ctl_answer *ret)
{
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, ask->method);
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, REST_CONNECT_MS);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, ask->timeout_ms ? ask->timeout_ms : REST_TIMEOUT_MS);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, rest_take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &ret->body);
    if (ask->body)
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, ask->body);
}

bool ctl_rest_send(const struct ctl *ctl, const struct ctl_ask *ask, struct ctl_answer *ret)
{
    *ret = (struct ctl_answer){0};
    CURL *curl = curl_easy_init();
    size_t len = strlen(ctl->url);
    OX_CLEANUP(ox_free_ptr)
    char *url = ox_asprintf("%.*s%s", (int)(len && ctl->url[len - 1] == '/' ? len - 1 : len), ctl->url, ask->path);
    struct curl_slist *headers = ask->body ? curl_slist_append(NULL, "Content-Type: application/json") : NULL;
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    rest_prepare(curl, ask, ret);
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &ret->status);
    curl_easy_cleanup(curl);
    curl_slist_free_all(headers);
    if (code != CURLE_OK)
        ret->trouble = rest_trouble(ctl, code);
    return code == CURLE_OK;
}

bool ctl_rest(struct ctl *ctl, const char *method, const char *path, struct ctl_answer *ret)
{
    bool good = ctl_rest_send(ctl, &(struct ctl_ask){.method = method, .path = path}, ret);
    if (!good)
        ctl_fail("%s", ret->trouble);
    return good;
}

void ctl_answer_fini(struct ctl_answer *answer)
{
    ox_str_fini(&answer->body);
    ox_free(answer->trouble);
}

void ctl_path_add(struct ox_str *path, const char *segment)
{
    char *encoded = curl_easy_escape(NULL, segment, 0);
    ox_str_addf(path, "/%s", encoded);
    curl_free(encoded);
}

char *ctl_topic_path(const struct ctl_topic *t, const char *suffix)
{
    struct ox_str path = {0};
    ox_str_adds(&path, "/admin/v2/persistent");
    ctl_path_add(&path, t->tenant);
    ctl_path_add(&path, t->namespace);
    if (t->name)
        ctl_path_add(&path, t->name);
    ox_str_adds(&path, suffix);
    return ox_str_take(&path);
}

int ctl_rest_failed(const struct ctl_answer *answer, const char *what)
{
    json_t *body = json_loadb(ox_str_get(&answer->body), answer->body.len, 0, NULL);
    const char *reason = json_string_value(json_object_get(body, "reason"));
    if (reason && strstr(reason, what))
        ctl_fail("%s", reason);
    else if (reason)
        ctl_fail("%s: %s", what, reason);
    else
        ctl_fail("%s: the broker answered %ld %s", what, answer->status, ox_str_get(&answer->body));
    json_decref(body);
    return CTL_FAILED;
}
