// topic_pattern.c - regular expressions over topic names, on PCRE2 with limits on its steps and its memory.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "broker/topic_pattern.h"

#include <pcre2.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define STEPS_MAX 5000u // of one name: a fraction of a millisecond
#define DEPTH_MAX 1000u
#define HEAP_KIB_MAX 256u

struct ox_topic_pattern {
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *limits;
    bool gave_up;
};

static const char *without_domain(const char *name)
{
    const char *colon = strstr(name, "://");
    return colon ? colon + 3 : name;
}

enum ox_err ox_topic_pattern_new(const char *text, struct ox_topic_pattern **ret, char *why, size_t n)
{
    int error = 0;
    PCRE2_SIZE at = 0;
    text = without_domain(text);
    if (strlen(text) > OX_TOPIC_PATTERN_BYTES_MAX) {
        snprintf(why, n, "Invalid topics pattern: longer than %u bytes", OX_TOPIC_PATTERN_BYTES_MAX);
        return OX_E_INVALID;
    }
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)text, strlen(text),
                      PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &error, &at, NULL);
    if (!code) {
        char reason[128] = "";
        pcre2_get_error_message(error, (PCRE2_UCHAR *)reason, sizeof reason);
        snprintf(why, n, "Invalid topics pattern: %s near index %zu", reason, (size_t)at);
        return OX_E_INVALID;
    }
    struct ox_topic_pattern *p = ox_malloc(sizeof *p);
    p->code = code;
    p->data = pcre2_match_data_create(1, NULL);
    p->limits = pcre2_match_context_create(NULL);
    pcre2_set_match_limit(p->limits, STEPS_MAX);
    pcre2_set_depth_limit(p->limits, DEPTH_MAX);
    pcre2_set_heap_limit(p->limits, HEAP_KIB_MAX);
    *ret = p;
    return OX_OK;
}

void ox_topic_pattern_free(struct ox_topic_pattern *p)
{
    if (!p)
        return;
    pcre2_match_context_free(p->limits);
    pcre2_match_data_free(p->data);
    pcre2_code_free(p->code);
    ox_free(p);
}

bool ox_topic_pattern_matches(struct ox_topic_pattern *p, const char *full_name)
{
    const char *name = without_domain(full_name);
    int found = pcre2_match(p->code, (PCRE2_SPTR)name, strlen(name), 0, 0, p->data, p->limits);
    p->gave_up |= found == PCRE2_ERROR_MATCHLIMIT || found == PCRE2_ERROR_DEPTHLIMIT || found == PCRE2_ERROR_HEAPLIMIT;
    return found >= 0;
}

bool ox_topic_pattern_gave_up(const struct ox_topic_pattern *p)
{
    return p->gave_up;
}
