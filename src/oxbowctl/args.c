// args.c - reading the command line by the table.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "oxbowctl/ctl.h"

#define TIMEOUT_SECONDS_MAX (30 * 86400)

// What was typed for a word of the row.
struct typed {
    const char **texts;
    size_t count;
};

struct parser {
    struct ctl *ctl;
    int at, count;
    char *const *words;
    struct typed *typed; // by the index of the row's word
    size_t positional;   // words that are no options, so far
};

// The options of the program itself: those of GLOBAL in tools/ctlgen.py, in its order.
enum global {
    GLOBAL_URL,
    GLOBAL_SERVICE_URL,
    GLOBAL_OUTPUT,
    GLOBAL_TIMEOUT,
    GLOBAL_PRINT,
    GLOBAL_HELP,
    GLOBAL_VERSION
};
static const char *const globals[] = {
    [GLOBAL_URL] = "--url --admin-url",     [GLOBAL_SERVICE_URL] = "--service-url", [GLOBAL_OUTPUT] = "-o --output",
    [GLOBAL_TIMEOUT] = "--request-timeout", [GLOBAL_PRINT] = "--print-request",     [GLOBAL_HELP] = "-h --help",
    [GLOBAL_VERSION] = "--version"};

static bool misuse(const struct parser *p, const char *before, const char *word, const char *after)
{
    ctl_misuse(p->ctl, "%s%s%s", before, word, after);
    return false;
}

// ---- options --------------------------------------------------------------------------------------------------------

static bool unknown_option(const struct parser *p, const char *word)
{
    OX_CLEANUP(ox_free_ptr)
    char *name = ox_strndup(word, strcspn(word, "="));
    struct ctl_nearest nearest = {.typed = name};
    for (size_t i = 0; p->ctl->row && i < p->ctl->row->word_count; i++)
        ctl_nearest_look(&nearest, p->ctl->row->words[i].names, ' ');
    for (size_t i = 0; i < OX_COUNT(globals); i++)
        ctl_nearest_look(&nearest, globals[i], ' ');
    OX_CLEANUP(ox_free_ptr)
    char *hint = ctl_nearest_hint(&nearest);
    ctl_misuse(p->ctl, "unknown option %s%s", name, hint);
    return false;
}

// The value of an option: behind its '=', or the next word.
static bool option_value(struct parser *p, const char *word, const char **ret)
{
    const char *equals = strchr(word, '=');
    if (!equals && p->at >= p->count)
        return misuse(p, "a value is missing after ", word, "");
    *ret = equals ? equals + 1 : p->words[p->at++];
    return true;
}

static void typed_add(struct typed *t, const char *text)
{
    t->texts = ox_realloc(t->texts, t->count + 1, sizeof *t->texts);
    t->texts[t->count++] = text;
}

static bool row_option(struct parser *p, const struct ctl_word *w, struct typed *typed, const char *word)
{
    const char *value = "true";
    if (w->type == CTL_FLAG && strchr(word, '='))
        return misuse(p, "no value is wanted after ", word, "");
    if (w->type != CTL_FLAG && !option_value(p, word, &value))
        return false;
    typed_add(typed, w->sent ? w->sent : value);
    return true;
}

static bool global_timeout(struct parser *p, const char *value)
{
    int64_t seconds;
    if (ox_parse_i64(value, 1, TIMEOUT_SECONDS_MAX, &seconds) != OX_OK)
        return misuse(p, "--request-timeout wants seconds, 1 or more, not '", value, "'");
    p->ctl->timeout_ms = seconds * 1000;
    return true;
}

static bool global_output(struct parser *p, const char *value)
{
    p->ctl->json = strcmp(value, "json") == 0;
    return p->ctl->json || strcmp(value, "table") == 0 || misuse(p, "-o wants table or json, not '", value, "'");
}

static bool global_option(struct parser *p, enum global which, const char *word)
{
    const char *value = NULL;
    if (which < GLOBAL_PRINT && !option_value(p, word, &value))
        return false;
    switch (which) {
    case GLOBAL_URL: p->ctl->url = value; return true;
    case GLOBAL_SERVICE_URL: p->ctl->service_url = value; return true;
    case GLOBAL_OUTPUT: return global_output(p, value);
    case GLOBAL_TIMEOUT: return global_timeout(p, value);
    case GLOBAL_PRINT: p->ctl->print_request = true; return true;
    case GLOBAL_HELP: p->ctl->help = true; return true;
    case GLOBAL_VERSION: p->ctl->version = true; return true;
    }
    OX_UNREACHABLE("global option");
}

// A verb's own options come first: "clusters create --url" is the cluster's.
static bool parse_option(struct parser *p, const char *word)
{
    size_t len = strcspn(word, "=");
    for (size_t i = 0; p->ctl->row && i < p->ctl->row->word_count; i++)
        if (ctl_names_have(p->ctl->row->words[i].names, ' ', word, len))
            return row_option(p, &p->ctl->row->words[i], &p->typed[i], word);
    for (size_t i = 0; i < OX_COUNT(globals); i++)
        if (ctl_names_have(globals[i], ' ', word, len))
            return global_option(p, (enum global)i, word);
    return unknown_option(p, word);
}

// ---- words ----------------------------------------------------------------------------------------------------------

static void row_found(struct parser *p, const struct ctl_row *row)
{
    p->ctl->row = row;
    p->ctl->values = ox_calloc(row->word_count + 1, sizeof(json_t *));
    p->ctl->given = ox_calloc(row->word_count + 1, sizeof(bool));
    p->typed = ox_calloc(row->word_count + 1, sizeof *p->typed);
}

static bool parse_noun(struct parser *p, const char *word)
{
    if (strcmp(word, "help") == 0) {
        p->ctl->help = true;
        return true;
    }
    p->ctl->noun = ctl_noun_find(word);
    if (p->ctl->noun) {
        if (!*p->ctl->noun->rows[0].verb)
            row_found(p, &p->ctl->noun->rows[0]);
        return true;
    }
    struct ctl_nearest nearest = {.typed = word};
    size_t count;
    const struct ctl_noun *nouns = ctl_nouns(&count);
    for (size_t i = 0; i < count; i++)
        ctl_nearest_look(&nearest, nouns[i].noun, ' ');
    OX_CLEANUP(ox_free_ptr)
    char *hint = ctl_nearest_hint(&nearest);
    ctl_misuse(p->ctl, "there is no command '%s'%s", word, hint);
    return false;
}

static bool parse_verb(struct parser *p, const char *word)
{
    const struct ctl_noun *noun = p->ctl->noun;
    const struct ctl_row *row = ctl_row_find(noun, word);
    if (row) {
        row_found(p, row);
        return true;
    }
    struct ctl_nearest nearest = {.typed = word};
    for (const struct ctl_noun *n = noun; n; n = n->also ? ctl_noun_find(n->also) : NULL)
        for (size_t i = 0; i < n->row_count; i++)
            ctl_nearest_look(&nearest, n->rows[i].verb, ' ');
    OX_CLEANUP(ox_free_ptr)
    char *hint = ctl_nearest_hint(&nearest);
    ctl_misuse(p->ctl, "%s has no verb '%s'%s", noun->noun, word, hint);
    return false;
}

static bool parse_word(struct parser *p, const char *word)
{
    if (!p->ctl->noun)
        return parse_noun(p, word);
    if (!p->ctl->row)
        return parse_verb(p, word);
    size_t at = p->positional++;
    if (at >= p->ctl->row->word_count || !p->ctl->row->words[at].positional)
        return misuse(p, "too many words: ", word, "");
    typed_add(&p->typed[at], word);
    return true;
}

static bool parse_all(struct parser *p)
{
    bool options = true;
    while (p->at < p->count) {
        const char *word = p->words[p->at++];
        if (options && strcmp(word, "--") == 0)
            options = false;
        else if (!(options && word[0] == '-' && word[1] ? parse_option(p, word) : parse_word(p, word)))
            return false;
    }
    return true;
}

// ---- what must be there ---------------------------------------------------------------------------------------------

static bool value_missing(const struct parser *p, const struct ctl_word *w)
{
    OX_CLEANUP(ox_free_ptr)
    char *label = ctl_word_label(w);
    return misuse(p, label, " is missing: ", w->help);
}

static bool value_store(struct parser *p, size_t i)
{
    const struct ctl_word *w = &p->ctl->row->words[i];
    const struct typed *t = &p->typed[i];
    const char *const *texts = t->count ? t->texts : &w->standard;
    OX_CLEANUP(ox_free_ptr)
    char *label = ctl_word_label(w);
    if (w->positional && t->count > 1) {
        ctl_misuse(p->ctl, "%s is given twice: '%s' and '%s'", label, t->texts[0], t->texts[1]);
        return false;
    }
    bool named = w->positional || (w->to && strncmp(w->to, "path.", 5) == 0); // an empty segment is another route
    if (named && !*texts[OX_MAX(t->count, (size_t)1) - 1])
        return value_missing(p, w);
    OX_CLEANUP(ox_free_ptr)
    char *wants = NULL;
    p->ctl->values[i] = ctl_value_read(w, texts, OX_MAX(t->count, (size_t)1), &wants);
    p->ctl->given[i] = t->count > 0;
    if (p->ctl->values[i])
        return true;
    ctl_misuse(p->ctl, "%s wants %s, not '%s'", label, wants, texts[t->count ? t->count - 1 : 0]);
    return false;
}

static bool store_all(struct parser *p)
{
    const struct ctl_row *row = p->ctl->row;
    for (size_t i = 0; i < row->word_count; i++) {
        const struct ctl_word *w = &row->words[i];
        if (!p->typed[i].count && w->required)
            return value_missing(p, w);
        if ((p->typed[i].count || w->standard) && !value_store(p, i))
            return false;
    }
    return true;
}

// How many options of a list are given.
static size_t given_of(const struct ctl *ctl, const char *list)
{
    size_t count = 0;
    for (size_t i = 0; i < ctl->row->word_count; i++) {
        const char *names = ctl->row->words[i].names;
        while (names && *names && ctl->given[i]) {
            size_t len = strcspn(names, " ");
            if (ctl_names_have(list, ' ', names, len)) {
                count++;
                break;
            }
            names += names[len] ? len + 1 : len;
        }
    }
    return count;
}

static bool choices_fit(const struct parser *p)
{
    const char *one = p->ctl->row->exactly_one, *some = p->ctl->row->at_least_one;
    size_t count = one ? given_of(p->ctl, one) : 1;
    if (count != 1)
        return misuse(p, count ? "only one can be given of: " : "one must be given of: ", one, "");
    return !some || given_of(p->ctl, some) > 0 || misuse(p, "one or more must be given of: ", some, "");
}

static void names_fill(struct ctl *ctl)
{
    for (size_t i = 0; i < ctl->row->word_count; i++) {
        const struct ctl_word *w = &ctl->row->words[i];
        if (!ctl->values[i])
            continue;
        if (w->type >= CTL_TOPIC)
            ctl_value_names(ctl->values[i], w->type, ctl->names);
        if (!w->to || strncmp(w->to, "path.", 5) != 0)
            continue;
        OX_CLEANUP(ox_free_ptr)
        char *text = ctl_value_text(ctl->values[i]);
        struct ox_str encoded = {0};
        if (w->twice)
            ctl_encode(&encoded, text);
        json_object_set_new(ctl->names, w->to + 5, json_string(w->twice ? ox_str_get(&encoded) : text));
        ox_str_fini(&encoded);
    }
}

static bool parse_whole(struct parser *p)
{
    if (!parse_all(p))
        return false;
    if (p->ctl->help || p->ctl->version)
        return true;
    if (!p->ctl->row)
        return misuse(p, p->ctl->noun ? p->ctl->noun->noun : "a command", p->ctl->noun ? " needs a verb" : " is missing", "");
    if (!store_all(p) || !choices_fit(p))
        return false;
    names_fill(p->ctl);
    return true;
}

bool ctl_parse(struct ctl *ctl, int count, char *const *words)
{
    const char *url = getenv("OXBOWCTL_URL");
    struct parser p = {.ctl = ctl, .count = count, .words = words};
    ctl->url = url && *url ? url : "http://127.0.0.1:8080";
    ctl->service_url = "pulsar://127.0.0.1:6650";
    ctl->names = json_object();
    bool good = parse_whole(&p);
    for (size_t i = 0; p.typed && i < ctl->row->word_count; i++)
        ox_free(p.typed[i].texts);
    ox_free(p.typed);
    return good;
}

void ctl_fini(struct ctl *ctl)
{
    for (size_t i = 0; ctl->row && i < ctl->row->word_count; i++)
        json_decref(ctl->values[i]);
    ox_free(ctl->values);
    ox_free(ctl->given);
    json_decref(ctl->names);
    ox_free(ctl->raw);
    *ctl = (struct ctl){0};
}

// ---- asking for values ----------------------------------------------------------------------------------------------

json_t *ctl_value(const struct ctl *ctl, const char *name)
{
    for (size_t i = 0; i < ctl->row->word_count; i++) {
        const struct ctl_word *w = &ctl->row->words[i];
        if (ctl_names_have(w->names, ' ', name, strlen(name)) || (w->positional && strcmp(w->name, name) == 0))
            return ctl->values[i];
    }
    return NULL;
}

const char *ctl_text(const struct ctl *ctl, const char *name)
{
    return json_string_value(ctl_value(ctl, name));
}

int64_t ctl_integer(const struct ctl *ctl, const char *name)
{
    return json_integer_value(ctl_value(ctl, name));
}

bool ctl_flag(const struct ctl *ctl, const char *name)
{
    return json_is_true(ctl_value(ctl, name));
}

char *ctl_subject(const struct ctl *ctl)
{
    struct ox_str text = {0};
    for (size_t i = 0; i < ctl->row->word_count && ctl->row->words[i].positional; i++)
        if (ctl->values[i]) {
            OX_CLEANUP(ox_free_ptr)
            char *value = ctl_value_text(ctl->values[i]);
            ox_str_addf(&text, "%s%s", text.len ? " " : "", value);
        }
    if (!text.len)
        ox_str_addf(&text, "%s%s%s", ctl->noun->noun, *ctl->row->verb ? " " : "", ctl->row->verb);
    return ox_str_take(&text);
}
