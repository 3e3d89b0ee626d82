// args.c - reading a command's arguments, and what is printed when they are wrong.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "oxbowctl/ctl.h"

int ctl_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("oxbowctl: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return CTL_FAILED;
}

void ctl_usage(const struct ctl_command *c, bool full)
{
    FILE *to = full ? stdout : stderr;
    fprintf(to, "usage: oxbowctl %s%s%s %s\n", c->noun, c->verb ? " " : "", c->verb ? c->verb : "", c->synopsis);
    if (full)
        fprintf(to, "\n%s\n%s%s", c->summary, *c->help ? "\n" : "", c->help);
}

int ctl_misuse(const struct ctl *ctl, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("oxbowctl: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    ctl_usage(ctl->command, false);
    return CTL_USAGE;
}

// One command's parsing.
struct parser {
    struct ctl *ctl;
    const struct ctl_option *options;
    size_t option_count;
    int at;
};

static bool parser_fail(const struct parser *p, const char *what, const char *word)
{
    fprintf(stderr, "oxbowctl: %s %s\n", what, word);
    ctl_usage(p->ctl->command, false);
    return false;
}

static bool option_is(const char *word, const char *name, const char **ret_value)
{
    size_t len = strlen(name);
    if (strncmp(word, name, len) != 0 || (word[len] != '\0' && word[len] != '='))
        return false;
    *ret_value = word[len] == '=' ? word + len + 1 : NULL;
    return true;
}

static void list_add(struct ctl_words *list, const char *value)
{
    list->items = ox_realloc(list->items, list->count + 1, sizeof *list->items);
    list->items[list->count++] = value;
}

static bool option_store(const struct parser *p, const struct ctl_option *o, const char *value)
{
    switch (o->kind) {
    case CTL_FLAG: *o->to.flag = true; return true;
    case CTL_TEXT: *o->to.text = value; return true;
    case CTL_LIST: list_add(o->to.list, value); return true;
    case CTL_NUMBER:
        if (ox_parse_i64(value, 0, INT64_MAX, o->to.number) == OX_OK)
            return true;
        return parser_fail(p, "a number is wanted after", o->name);
    }
    OX_UNREACHABLE("option kind");
}

static bool parser_option(struct parser *p, const char *word)
{
    for (size_t i = 0; i < p->option_count; i++) {
        const struct ctl_option *o = &p->options[i];
        const char *value;
        if (!option_is(word, o->name, &value))
            continue;
        if (o->kind == CTL_FLAG && value)
            return parser_fail(p, "no value is wanted after", o->name);
        if (o->kind != CTL_FLAG && !value) {
            if (p->at >= p->ctl->arg_count)
                return parser_fail(p, "a value is missing after", o->name);
            value = p->ctl->args[p->at++];
        }
        return option_store(p, o, value);
    }
    return parser_fail(p, "unknown option", word);
}

static bool parser_run(struct parser *p, const char **words, size_t min, size_t max)
{
    size_t count = 0;
    bool options = true;
    while (p->at < p->ctl->arg_count) {
        const char *word = p->ctl->args[p->at++];
        if (options && strcmp(word, "--") == 0)
            options = false;
        else if (options && word[0] == '-' && word[1] != '\0') {
            if (!parser_option(p, word))
                return false;
        } else if (count == max)
            return parser_fail(p, "too many words:", word);
        else
            words[count++] = word;
    }
    return count >= min || parser_fail(p, "something is missing:", p->ctl->command->synopsis);
}

bool ctl_parse(struct ctl *ctl, const struct ctl_option *options, size_t option_count, const char **words, size_t min,
               size_t max)
{
    const char *format = "table";
    struct ctl_option *all = ox_calloc(option_count + 3, sizeof *all);
    if (option_count)
        memcpy(all, options, option_count * sizeof *all);
    all[option_count] = (struct ctl_option){"--url", CTL_TEXT, {.text = &ctl->url}};
    all[option_count + 1] = (struct ctl_option){"--service-url", CTL_TEXT, {.text = &ctl->service_url}};
    all[option_count + 2] = (struct ctl_option){"-o", CTL_TEXT, {.text = &format}};
    struct parser p = {ctl, all, option_count + 3, 0};
    bool good = parser_run(&p, words, min, max);
    if (good && strcmp(format, "json") != 0 && strcmp(format, "table") != 0)
        good = parser_fail(&p, "-o wants table or json, not", format);
    ctl->json = strcmp(format, "json") == 0;
    ox_free(all);
    return good;
}
