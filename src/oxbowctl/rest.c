// rest.c - one request to the REST door, and what is said when it fails.
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "oxbowctl/ctl.h"

#define REST_CONNECT_MS 3000L
#define REST_TIMEOUT_MS 60000L
#define REST_REDIRECTS_MAX 5L
#define REST_ANSWER_BYTES_MAX (64u << 20)
#define SAID_MAX ((size_t)300) // bytes of an answer that are shown
#define REST_HEADER_BYTES_MAX (1u << 20)

static size_t rest_take(char *data, size_t size, size_t count, void *ctx)
{
    struct ox_str *body = ctx;
    if (body->len + size * count > REST_ANSWER_BYTES_MAX)
        return 0;
    ox_str_add(body, data, size * count);
    return size * count;
}

static size_t rest_header(char *data, size_t size, size_t count, void *ctx)
{
    struct ox_str *headers = ctx;
    if (headers->len + size * count > REST_HEADER_BYTES_MAX)
        return 0;
    ox_str_add(headers, data, size * count);
    return size * count;
}

static char *rest_trouble(const struct ctl *ctl, CURLcode code)
{
    if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST)
        return ox_asprintf("no broker answers at %s: is it running? (--url names another one)", ctl->url);
    if (code == CURLE_OPERATION_TIMEDOUT)
        return ox_asprintf("%s: no answer in time; the broker may still be at it (--request-timeout waits longer)", ctl->url);
    return ox_asprintf("%s: %s", ctl->url, curl_easy_strerror(code));
}

static void rest_prepare(CURL *curl, const struct ctl *ctl, const struct ctl_ask *ask, struct ctl_answer *ret)
{
    int64_t timeout_ms = ctl->timeout_ms ? ctl->timeout_ms : ask->timeout_ms ? ask->timeout_ms : REST_TIMEOUT_MS;
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, ask->method);
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L); // another broker may be the one to ask
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, REST_REDIRECTS_MAX);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, REST_CONNECT_MS);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, rest_take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &ret->body);
    if (ask->wants_headers) {
        curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, rest_header);
        curl_easy_setopt(curl, CURLOPT_HEADERDATA, &ret->headers);
    }
    if (ask->body)
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, ask->body);
}

static void rest_print(const struct ctl_ask *ask, struct ctl_answer *ret)
{
    printf("%s %s\n", ask->method, ask->path);
    if (ask->body)
        printf("%s\n", ask->body);
    ret->trouble = ox_strdup("");
}

// TLS costs 10 ms to set up: only where it is used.
static CURL *rest_curl(const char *url)
{
    bool tls = strncmp(url, "https:", 6) == 0;
    curl_global_init(tls ? CURL_GLOBAL_ALL : CURL_GLOBAL_ALL & ~CURL_GLOBAL_SSL);
    CURL *curl = curl_easy_init();
    OX_ASSERT(curl);
    return curl;
}

bool ctl_rest_send(const struct ctl *ctl, const struct ctl_ask *ask, struct ctl_answer *ret)
{
    *ret = (struct ctl_answer){0};
    if (ctl->print_request) {
        rest_print(ask, ret);
        return false;
    }
    size_t len = strlen(ctl->url);
    OX_CLEANUP(ox_free_ptr)
    char *url = ox_asprintf("%.*s%s", (int)(len && ctl->url[len - 1] == '/' ? len - 1 : len), ctl->url, ask->path);
    OX_CLEANUP(ox_free_ptr)
    char *media = ox_asprintf("Content-Type: %s", ask->media ? ask->media : "application/json");
    CURL *curl = rest_curl(url);
    struct curl_slist *headers = ask->body ? curl_slist_append(NULL, media) : NULL;
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    rest_prepare(curl, ctl, ask, ret);
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &ret->status);
    curl_easy_cleanup(curl);
    curl_slist_free_all(headers);
    if (code != CURLE_OK)
        ret->trouble = rest_trouble(ctl, code);
    return code == CURLE_OK;
}

void ctl_answer_fini(struct ctl_answer *answer)
{
    ox_str_fini(&answer->body);
    ox_str_fini(&answer->headers);
    ox_free(answer->trouble);
}

char *ctl_answer_header(const struct ctl_answer *answer, const char *name)
{
    size_t len = strlen(name);
    for (const char *line = ox_str_get(&answer->headers); *line;) {
        const char *end = strchrnul(line, '\n');
        if (strncasecmp(line, name, len) == 0 && line[len] == ':') {
            const char *value = line + len + 1;
            value += strspn(value, " ");
            return ox_strndup(value, strcspn(value, "\r\n"));
        }
        line = *end ? end + 1 : end;
    }
    return NULL;
}

void ctl_encode(struct ox_str *out, const char *text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    for (; *text; text++)
        ox_str_addf(out, strchr(plain, *text) ? "%c" : "%%%02X", (unsigned char)*text);
}

void ctl_path_add(struct ox_str *path, const char *segment)
{
    ox_str_adds(path, "/");
    ctl_encode(path, segment);
}

// ---- failures -------------------------------------------------------------------------------------------------------

static bool has_verb(const char *noun_name, const char *verb)
{
    const struct ctl_noun *noun = ctl_noun_find(noun_name);
    return noun && ctl_row_find(noun, verb);
}

static const char *name_of(const struct ctl *ctl, const char *name)
{
    return json_string_value(json_object_get(ctl->names, name));
}

// What is not there, and the command that shows what is. Appends nothing if that cannot be told.
static void advise_missing(const struct ctl *ctl, const char *reason, struct ox_str *out)
{
    const char *topic = name_of(ctl, "topic"), *space = name_of(ctl, "namespace"), *tenant = name_of(ctl, "tenant");
    if (topic && strcasestr(reason, "subscription"))
        ox_str_addf(out, "; 'oxbowctl topics subscriptions %s://%s/%s/%s' shows which there are",
                    name_of(ctl, "domain"), tenant, space, topic);
    else if (topic && space && strcasestr(reason, "topic") && !strcasestr(reason, "namespace"))
        ox_str_addf(out, "; 'oxbowctl topics list %s/%s' shows which there are", tenant, space);
    else if (space && strcasestr(reason, "namespace") && has_verb("namespaces", "list"))
        ox_str_addf(out, "; 'oxbowctl namespaces list %s' shows which there are", tenant);
    else if (tenant && strcasestr(reason, "tenant") && has_verb("tenants", "list"))
        ox_str_adds(out, "; 'oxbowctl tenants list' shows which there are");
    else if (name_of(ctl, "cluster") && has_verb("clusters", "list"))
        ox_str_adds(out, "; 'oxbowctl clusters list' shows which there are");
}

static bool can_force(const struct ctl *ctl)
{
    for (size_t i = 0; i < ctl->row->word_count; i++)
        if (ctl_names_have(ctl->row->words[i].names, ' ', "--force", 7))
            return !json_is_true(ctl->values[i]);
    return false;
}

// True if a reason is one that force overrides.
static bool is_in_use(const char *reason)
{
    return strcasestr(reason, "connected") || strcasestr(reason, "active") || strcasestr(reason, "empty") ||
           strcasestr(reason, "in use");
}

static void advise(const struct ctl *ctl, long status, const char *reason, struct ox_str *out)
{
    if (status == 401)
        ox_str_adds(out, "; the broker wants to know who asks, and oxbowctl has no way to say it yet");
    else if (status == 403 && !*reason)
        ox_str_adds(out, "; it is not allowed: ask whoever gave you the right to be here");
    else if (status == 404 && !strcasestr(reason, "polic"))
        advise_missing(ctl, reason, out);
    else if ((status == 409 || status == 412) && can_force(ctl) && is_in_use(reason))
        ox_str_adds(out, "; --force does it all the same");
    else if (status == 429 || status == 503 || status == 504)
        ox_str_adds(out, "; try again in a moment");
}

// Of an answer that is no JSON with a reason: its first line, unless it is a web page.
static void rest_failed_plainly(const struct ctl *ctl, const struct ctl_answer *answer, const char *what, const char *advice)
{
    const char *text = ox_str_get(&answer->body);
    if (*text == '<')
        ctl_fail("%s: %s answers %ld with a web page: is it a broker's REST door? (--url)", what, ctl->url, answer->status);
    else
        ctl_fail("%s: the broker answered %ld %.*s%s", what, answer->status,
                 (int)OX_MIN(strcspn(text, "\r\n"), SAID_MAX), text, advice);
}

int ctl_rest_failed(const struct ctl *ctl, const struct ctl_answer *answer, const char *what)
{
    json_t *body = json_loadb(ox_str_get(&answer->body), answer->body.len, 0, NULL);
    const char *reason = json_string_value(json_object_get(body, "reason"));
    struct ox_str advice = {0};
    advise(ctl, answer->status, reason ? reason : "", &advice);
    size_t len = reason ? strlen(reason) : 0;
    if (len && advice.len && reason[len - 1] == '.')
        len--;
    if (reason && strstr(reason, what))
        ctl_fail("%.*s%s", (int)len, reason, ox_str_get(&advice));
    else if (reason)
        ctl_fail("%s: %.*s%s", what, (int)len, reason, ox_str_get(&advice));
    else
        rest_failed_plainly(ctl, answer, what, ox_str_get(&advice));
    ox_str_fini(&advice);
    json_decref(body);
    return CTL_FAILED;
}

int ctl_answer_failed(const struct ctl *ctl, const struct ctl_answer *answer, const char *what)
{
    if (!answer->trouble)
        return ctl_rest_failed(ctl, answer, what);
    return *answer->trouble ? ctl_fail("%s", answer->trouble) : CTL_DONE;
}
