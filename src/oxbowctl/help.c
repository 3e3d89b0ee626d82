// help.c - help and messages.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "oxbowctl/bookie_clusters.h"
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

bool ctl_flush(void)
{
    return fflush(stdout) == 0 && !ferror(stdout); // a failed fwrite drops its bytes, and the next fflush knows nothing of it
}

static const char *word_shown(const struct ctl_word *w)
{
    return w->type == CTL_FLAG ? "" : w->name;
}

void ctl_synopsis(struct ox_str *out, const struct ctl_noun *noun, const struct ctl_row *row)
{
    ox_str_addf(out, "oxbowctl %s%s%s", noun->noun, *row->verb ? " " : "", row->verb);
    for (size_t i = 0; i < row->word_count; i++) {
        const struct ctl_word *w = &row->words[i];
        OX_CLEANUP(ox_free_ptr)
        char *label = ctl_word_label(w);
        const char *value = w->positional ? "" : word_shown(w);
        ox_str_addf(out, w->required ? " %s%s%s" : " [%s%s%s]", label, *value ? " " : "", value);
        if (w->many || w->type == CTL_MAP)
            ox_str_adds(out, "...");
    }
}

static void usage_print(const struct ctl *ctl, FILE *to)
{
    struct ox_str line = {0};
    if (ctl->row)
        ctl_synopsis(&line, ctl->noun, ctl->row);
    else if (ctl->noun)
        ox_str_addf(&line, "oxbowctl %s VERB ...; 'oxbowctl %s --help' lists the verbs", ctl->noun->noun, ctl->noun->noun);
    else
        ox_str_adds(&line, "oxbowctl NOUN VERB ...; 'oxbowctl --help' lists the nouns");
    fprintf(to, "usage: %s\n", ox_str_get(&line));
    ox_str_fini(&line);
}

int ctl_misuse(const struct ctl *ctl, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("oxbowctl: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    usage_print(ctl, stderr);
    return CTL_USAGE;
}

// "-t, --time TIME", or "TOPIC (or --name)".
static void word_names(struct ox_str *out, const struct ctl_word *w)
{
    if (w->positional)
        ox_str_adds(out, w->name);
    if (w->positional && w->names)
        ox_str_adds(out, ", or ");
    for (const char *at = w->names; at && *at; at++)
        ox_str_addf(out, *at == ' ' ? ", " : "%c", *at);
    if (!w->positional && *word_shown(w) && w->type != CTL_ENUM)
        ox_str_addf(out, " %s", w->name);
}

static void word_help(struct ctl_table *t, const struct ctl_word *w)
{
    struct ox_str names = {0}, help = {0};
    word_names(&names, w);
    ox_str_adds(&help, w->help);
    if (w->values)
        for (const char *at = w->values; *at; at++)
            ox_str_addf(&help, at == w->values ? " (%c" : *at == '|' ? ", " : "%c", *at);
    if (w->values)
        ox_str_adds(&help, ")");
    if (w->standard && w->type != CTL_FLAG)
        ox_str_addf(&help, " (default %s)", w->standard);
    if (w->required && !w->positional)
        ox_str_adds(&help, "; must be given");
    ctl_table_add(t, "%s", "");
    ctl_table_take(t, &names);
    ctl_table_take(t, &help);
}

static void row_help(const struct ctl *ctl)
{
    const struct ctl_row *row = ctl->row;
    struct ctl_table t = {.columns = 3};
    usage_print(ctl, stdout);
    printf("\n%s\n", row->summary);
    if (row->help)
        printf("%s\n", row->help);
    if (row->word_count)
        printf("\n");
    for (size_t i = 0; i < row->word_count; i++)
        word_help(&t, &row->words[i]);
    ctl_table_print(&t, stdout);
    if (row->aliases)
        printf("\nalso called: %s\n", row->aliases);
    if (row->route_count) {
        printf("\nasks:");
        for (size_t i = 0; i < row->route_count; i++)
            printf("%s%s %s\n", i ? "      " : " ", row->routes[i].method, row->routes[i].path);
    }
    printf("\nexample: %s\n", row->example);
}

static void noun_help(const struct ctl *ctl)
{
    struct ctl_table t = {.columns = 3};
    printf("usage: oxbowctl %s VERB ...\n\n%s\n\n", ctl->noun->noun, ctl->noun->about);
    for (size_t i = 0; i < ctl->noun->row_count; i++) {
        ctl_table_add(&t, "%s", "");
        ctl_table_add(&t, "%s", ctl->noun->rows[i].verb);
        ctl_table_add(&t, "%s", ctl->noun->rows[i].summary);
    }
    ctl_table_print(&t, stdout);
    if (ctl->noun->also)
        printf("\nThe verbs of %s can be said with %s too.\n", ctl->noun->also, ctl->noun->noun);
    printf("\n'oxbowctl %s VERB --help' tells more and gives an example.\n", ctl->noun->noun);
}

static void program_help(void)
{
    size_t count;
    const struct ctl_noun *nouns = ctl_nouns(&count);
    struct ctl_table t = {.columns = 3};
    printf("usage: oxbowctl [OPTION]... NOUN [VERB] ...\n\n");
    for (size_t i = 0; i < count; i++) {
        ctl_table_add(&t, "%s", "");
        ctl_table_add(&t, "%s", nouns[i].noun);
        ctl_table_add(&t, "%s", nouns[i].about);
    }
    ctl_table_print(&t, stdout);
    fputs("\n"
          "  --url, --admin-url URL     the broker's REST door (OXBOWCTL_URL of the environment, or "
          "http://127.0.0.1:8080)\n"
          "  --service-url URL          its door for clients (pulsar://127.0.0.1:6650)\n"
          "  -o, --output FORMAT        table (default) for people, json for programs\n"
          "  --request-timeout SECONDS  how long to wait for an answer (60)\n"
          "  --print-request            show what would be asked, and ask nothing\n"
          "  --version, -h, --help\n"
          "\n"
          "'oxbowctl NOUN --help' lists its verbs, 'oxbowctl NOUN VERB --help' tells more and gives an example. "
          "Example:\n"
          "oxbowctl topics stats persistent://public/default/orders\n"
          "Exit status: 0 done, 1 failed, 2 wrong usage.\n",
          stdout);
}

void ctl_help(const struct ctl *ctl)
{
    if (ctl->row)
        row_help(ctl);
    else if (ctl->noun)
        noun_help(ctl);
    else
        program_help();
}
