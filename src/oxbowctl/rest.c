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

static bool rest_explain(const struct ctl *ctl, CURLcode code)
{
    if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST)
        ctl_fail("no broker answers at %s: is it running? (--url names another one)", ctl->url);
    else
        ctl_fail("%s: %s", ctl->url, curl_easy_strerror(code));
    return false;
}

bool ctl_rest(struct ctl *ctl, const char *method, const char *path, struct ctl_answer *ret)
{
    *ret = (struct ctl_answer){0};
    CURL *curl = curl_easy_init();
    size_t len = strlen(ctl->url);
    OX_CLEANUP(ox_free_ptr)
    char *url = ox_asprintf("%.*s%s", (int)(len && ctl->url[len - 1] == '/' ? len - 1 : len), ctl->url, path);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, REST_CONNECT_MS);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, REST_TIMEOUT_MS);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, rest_take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &ret->body);
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &ret->status);
    curl_easy_cleanup(curl);
    return code == CURLE_OK || rest_explain(ctl, code);
}

static void path_add(struct ox_str *path, const char *segment)
{
    char *encoded = curl_easy_escape(NULL, segment, 0);
    ox_str_addf(path, "/%s", encoded);
    curl_free(encoded);
}

char *ctl_topic_path(const struct ctl_topic *t, const char *suffix)
{
    struct ox_str path = {0};
    ox_str_adds(&path, "/admin/v2/persistent");
    path_add(&path, t->tenant);
    path_add(&path, t->namespace);
    if (t->name)
        path_add(&path, t->name);
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
