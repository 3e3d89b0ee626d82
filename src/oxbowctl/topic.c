// topic.c - topic names as people type them, and JSON strings.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "oxbowctl/ctl.h"

static const char *const domains[] = {"persistent", "non-persistent"};

void ctl_topic_fini(struct ctl_topic *t)
{
    ox_free(t->full);
    ox_free(t->domain);
    ox_free(t->tenant);
    ox_free(t->namespace);
    ox_free(t->name);
    *t = (struct ctl_topic){0};
}

// The name behind "domain://"; NULL: the domain is unknown. Without one it is persistent.
static const char *domain_parse(const char *text, const char **ret_domain)
{
    const char *colon = strstr(text, "://");
    *ret_domain = domains[0];
    if (!colon)
        return text;
    for (size_t i = 0; i < OX_COUNT(domains); i++)
        if ((size_t)(colon - text) == strlen(domains[i]) && strncmp(text, domains[i], strlen(domains[i])) == 0) {
            *ret_domain = domains[i];
            return colon + 3;
        }
    return NULL;
}

bool ctl_namespace_parse(const char *text, char **ret_tenant, char **ret_namespace)
{
    const char *slash = strchr(text, '/');
    if (!slash || slash == text || !slash[1] || strchr(slash + 1, '/') || strstr(text, "://"))
        return false;
    *ret_tenant = ox_strndup(text, (size_t)(slash - text));
    *ret_namespace = ox_strdup(slash + 1);
    return true;
}

bool ctl_topic_parse(const char *text, struct ctl_topic *t)
{
    const char *domain, *rest = domain_parse(text, &domain);
    *t = (struct ctl_topic){0};
    if (!rest || !*rest)
        return false;
    const char *first = strchr(rest, '/'), *second = first ? strchr(first + 1, '/') : NULL;
    if (!first && rest == text) {
        t->tenant = ox_strdup("public");
        t->namespace = ox_strdup("default");
        t->name = ox_strdup(rest);
    } else if (first && second && first > rest && second > first + 1 && second[1]) {
        t->tenant = ox_strndup(rest, (size_t)(first - rest));
        t->namespace = ox_strndup(first + 1, (size_t)(second - first - 1));
        t->name = ox_strdup(second + 1);
    } else {
        return false;
    }
    t->domain = ox_strdup(domain);
    t->full = ox_asprintf("%s://%s/%s/%s", t->domain, t->tenant, t->namespace, t->name);
    return true;
}

// Java counts in UTF-16: characters behind U+FFFF are two units.
uint32_t ctl_java_hash(const char *text)
{
    uint32_t hash = 0;
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        size_t more = *p < 0xC0 ? 0 : *p < 0xE0 ? 1 : *p < 0xF0 ? 2 : 3;
        uint32_t c = *p++ & (more ? 0x3Fu >> more : 0x7Fu);
        for (; more > 0; more--)
            c = c << 6 | (*p++ & 0x3Fu);
        if (c > 0xFFFF) {
            hash = 31 * hash + (0xD7C0 + (c >> 10));
            c = 0xDC00 | (c & 0x3FF);
        }
        hash = 31 * hash + c;
    }
    return hash;
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
