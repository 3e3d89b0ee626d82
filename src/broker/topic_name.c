// topic_name.c - names of topics: parsing by splitting at slashes, and what is derived from a name.
#include "broker/topic_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "base/str.h"

#define PARTITION_MARK "-partition-"

static const char *const domain_names[] = {[OX_DOMAIN_PERSISTENT] = "persistent", [OX_DOMAIN_NON_PERSISTENT] = "non-persistent"};

// Tenants and namespaces: letters, digits and "-=:._".
static bool name_part_valid(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = s[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!plain && !strchr("-=:._", c))
            return false;
    }
    return len > 0 && len <= 255 && !(len == 1 && s[0] == '.') && !(len == 2 && s[0] == '.' && s[1] == '.');
}

static bool local_valid(const char *s)
{
    size_t len = strlen(s);
    return len > strspn(s, " \t\r\n") && ox_utf8_valid(s, len);
}

// N of a name that ends in "-partition-N"; -1 otherwise (leading zeros and signs are no partition).
static int32_t name_partition(const char *local)
{
    const char *at = NULL;
    for (const char *p = strstr(local, PARTITION_MARK); p; p = strstr(p + 1, PARTITION_MARK))
        at = p;
    if (!at)
        return -1;
    const char *digits = at + strlen(PARTITION_MARK);
    int64_t n;
    if (digits[0] < '0' || digits[0] > '9' || (digits[0] == '0' && digits[1]) || ox_parse_i64(digits, 0, INT32_MAX, &n) != OX_OK)
        return -1;
    return (int32_t)n;
}

struct name_parts {
    enum ox_domain domain;
    const char *at[4]; // tenant, [cluster], namespace; the local name is the rest
    size_t len[4];
    size_t count;
    const char *local;
};

static enum ox_err name_domain(const char **text, enum ox_domain *ret)
{
    const char *colon = strstr(*text, "://");
    if (!colon)
        return OX_OK;
    for (size_t d = 0; d < OX_COUNT(domain_names); d++) {
        if (strlen(domain_names[d]) == (size_t)(colon - *text) && !strncmp(*text, domain_names[d], strlen(domain_names[d]))) {
            *ret = (enum ox_domain)d;
            *text = colon + 3;
            return OX_OK;
        }
    }
    return OX_E_INVALID_TOPIC_NAME;
}

// Cuts at slashes: two before the local name, or three in a v1 name. A local name of a v2 name has no slash.
static enum ox_err name_split(const char *text, bool short_form, struct name_parts *p)
{
    size_t slashes = 0;
    for (const char *s = text; *s; s++)
        slashes += *s == '/';
    if (slashes == 0 && short_form) {
        p->local = text;
        return OX_OK;
    }
    if (slashes < 2 || (short_form && slashes != 2))
        return OX_E_INVALID_TOPIC_NAME;
    size_t parts = slashes == 2 ? 2 : 3;
    for (; p->count < parts; p->count++) {
        const char *slash = strchr(text, '/');
        p->at[p->count] = text;
        p->len[p->count] = (size_t)(slash - text);
        text = slash + 1;
    }
    p->local = text;
    return OX_OK;
}

static void name_fill(struct ox_topic_name *ret, const struct name_parts *p)
{
    bool v1 = p->count == 3;
    ret->domain = p->domain;
    ret->tenant = p->count ? ox_strndup(p->at[0], p->len[0]) : ox_strdup("public");
    ret->cluster = v1 ? ox_strndup(p->at[1], p->len[1]) : NULL;
    size_t whole = p->count ? (size_t)(p->at[p->count - 1] + p->len[p->count - 1] - p->at[0]) : 0;
    ret->ns = p->count ? ox_strndup(p->at[0], whole) : ox_strdup("public/default");
    ret->local = ox_strdup(p->local);
    ret->full = ox_asprintf("%s://%s/%s", domain_names[p->domain], ret->ns, ret->local);
    ret->partition = name_partition(ret->local);
}

enum ox_err ox_topic_name_parse(struct ox_topic_name *ret, const char *text)
{
    struct name_parts parts = {.domain = OX_DOMAIN_PERSISTENT};
    if (strlen(text) > OX_TOPIC_NAME_BYTES_MAX)
        return OX_E_INVALID_TOPIC_NAME;
    const char *rest = text;
    enum ox_err err = name_domain(&rest, &parts.domain);
    if (!err)
        err = name_split(rest, rest == text, &parts);
    for (size_t i = 0; !err && i < parts.count; i++)
        err = name_part_valid(parts.at[i], parts.len[i]) ? OX_OK : OX_E_INVALID_TOPIC_NAME;
    if (err || !local_valid(parts.local))
        return OX_E_INVALID_TOPIC_NAME;
    name_fill(ret, &parts);
    return OX_OK;
}

void ox_topic_name_fini(struct ox_topic_name *name)
{
    ox_free(name->full);
    ox_free(name->tenant);
    ox_free(name->cluster);
    ox_free(name->ns);
    ox_free(name->local);
    *name = (struct ox_topic_name){.partition = -1};
}

void ox_topic_name_copy(struct ox_topic_name *to, const struct ox_topic_name *from)
{
    *to = (struct ox_topic_name){.domain = from->domain,
                                 .full = ox_strdup(from->full),
                                 .tenant = ox_strdup(from->tenant),
                                 .cluster = from->cluster ? ox_strdup(from->cluster) : NULL,
                                 .ns = ox_strdup(from->ns),
                                 .local = ox_strdup(from->local),
                                 .partition = from->partition};
}

// Bytes of a name without its partition's suffix.
static size_t name_base_len(const char *name, int32_t partition)
{
    char suffix[40];
    if (partition < 0)
        return strlen(name);
    int n = snprintf(suffix, sizeof suffix, PARTITION_MARK "%" PRId32, partition);
    return strlen(name) - (size_t)n;
}

char *ox_topic_name_base(const struct ox_topic_name *name)
{
    return ox_strndup(name->full, name_base_len(name->full, name->partition));
}

char *ox_topic_name_storage(const struct ox_topic_name *name)
{
    struct ox_str s = {0};
    ox_str_addf(&s, "%s/%s/", name->ns, domain_names[name->domain]);
    ox_name_encode(&s, name->local);
    return ox_str_take(&s);
}

char *ox_topic_name_partitions_path(const struct ox_topic_name *name)
{
    struct ox_str s = {0};
    OX_CLEANUP(ox_free_ptr)
    char *base = ox_strndup(name->local, name_base_len(name->local, name->partition));
    ox_str_addf(&s, "/admin/partitioned-topics/%s/%s/", name->ns, domain_names[name->domain]);
    ox_name_encode(&s, base);
    return ox_str_take(&s);
}

uint32_t ox_topic_name_hash(const struct ox_topic_name *name)
{
    return ox_crc32(0, name->full, strlen(name->full));
}

// The lower boundary of bundle i of count; that of bundle `count` is the end of the ring.
static uint32_t bundle_boundary(uint32_t i, uint32_t count)
{
    return i >= count ? UINT32_MAX : (uint32_t)(((uint64_t)UINT32_MAX + 1) / count * i);
}

void ox_bundle_name(uint32_t hash, uint32_t count, char *out)
{
    uint32_t i = (uint32_t)(hash / (((uint64_t)UINT32_MAX + 1) / count));
    if (i >= count)
        i = count - 1;
    snprintf(out, 32, "0x%08" PRIx32 "_0x%08" PRIx32, bundle_boundary(i, count), bundle_boundary(i + 1, count));
}

bool ox_namespace_valid(const char *text)
{
    size_t parts = 0;
    for (;;) {
        size_t len = strcspn(text, "/");
        if (!name_part_valid(text, len))
            return false;
        parts++;
        if (!text[len])
            return parts == 2 || parts == 3;
        text += len + 1;
    }
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}

bool ox_topic_name_is_system(const struct ox_topic_name *name)
{
    OX_CLEANUP(ox_free_ptr)
    char *base = ox_strndup(name->local, name_base_len(name->local, name->partition));
    return !strncmp(base, "__", 2) || ends_with(base, "__transaction_pending_ack") || !strcmp(name->ns, "pulsar/system");
}
