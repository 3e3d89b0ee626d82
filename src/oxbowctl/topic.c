// topic.c - topic names as people type them, and JSON strings.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "oxbowctl/ctl.h"

#define TOPIC_DOMAIN "persistent://"

void ctl_topic_fini(struct ctl_topic *t)
{
    ox_free(t->full);
    ox_free(t->tenant);
    ox_free(t->namespace);
    ox_free(t->name);
    *t = (struct ctl_topic){0};
}

static bool topic_wrong(const char *text)
{
    ctl_fail("'%s' is no topic: use NAME, TENANT/NAMESPACE/NAME or persistent://TENANT/NAMESPACE/NAME", text);
    return false;
}

bool ctl_topic_parse(const char *text, struct ctl_topic *t)
{
    const char *rest = text;
    *t = (struct ctl_topic){0};
    bool full = strncmp(text, TOPIC_DOMAIN, strlen(TOPIC_DOMAIN)) == 0;
    if (full)
        rest += strlen(TOPIC_DOMAIN);
    else if (strstr(text, "://"))
        return topic_wrong(text);
    const char *first = strchr(rest, '/'), *second = first ? strchr(first + 1, '/') : NULL;
    if (!first && !full && *text) {
        t->tenant = ox_strdup("public");
        t->namespace = ox_strdup("default");
        t->name = ox_strdup(rest);
    } else if (first && second && first > rest && second > first + 1 && second[1]) {
        t->tenant = ox_strndup(rest, (size_t)(first - rest));
        t->namespace = ox_strndup(first + 1, (size_t)(second - first - 1));
        t->name = ox_strdup(second + 1);
    } else {
        return topic_wrong(text);
    }
    t->full = ox_asprintf(TOPIC_DOMAIN "%s/%s/%s", t->tenant, t->namespace, t->name);
    return true;
}

static void json_byte(struct ox_str *out, unsigned char c)
{
    if (c == '"' || c == '\\')
        ox_str_addf(out, "\\%c", c);
    else if (c == '\n')
        ox_str_adds(out, "\\n");
    else if (c < 0x20)
        ox_str_addf(out, "\\u%04x", c);
    else
        ox_str_add(out, &c, 1);
}

// Bytes of the UTF-8 sequence at p; 0 if it is none.
static size_t utf8_length(const char *p, size_t left)
{
    for (size_t n = 1; n <= 4 && n <= left; n++)
        if (ox_utf8_valid(p, n))
            return n;
    return 0;
}

void ctl_json_string(struct ox_str *out, const void *data, size_t len)
{
    const char *p = data, *end = p + len;
    ox_str_adds(out, "\"");
    while (p < end) {
        size_t n = utf8_length(p, (size_t)(end - p));
        if (n == 1)
            json_byte(out, (unsigned char)*p);
        else if (n > 1)
            ox_str_add(out, p, n);
        else
            ox_str_adds(out, "\xef\xbf\xbd");
        p += n ? n : 1;
    }
    ox_str_adds(out, "\"");
}
