// table.c - the table of verbs, and finding things in it.
#include "oxbowctl/table.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "oxbowctl/bookie_clusters.h"
#include "oxbowctl/ctl.h"

#include "gen/ctl_commands.h"

#define NEAREST_MAX ((size_t)3) // letters that may be wrong

const struct ctl_noun *ctl_nouns(size_t *ret_count)
{
    *ret_count = OX_COUNT(ctl_noun_table);
    return ctl_noun_table;
}

bool ctl_names_have(const char *names, char separator, const char *name, size_t len)
{
    while (names && *names) {
        const char *end = strchrnul(names, separator);
        if ((size_t)(end - names) == len && memcmp(names, name, len) == 0)
            return true;
        names = *end ? end + 1 : end;
    }
    return false;
}

static bool named(const char *name, const char *aliases, const char *typed)
{
    return strcmp(name, typed) == 0 || ctl_names_have(aliases, ' ', typed, strlen(typed));
}

const struct ctl_noun *ctl_noun_find(const char *name)
{
    for (size_t i = 0; i < OX_COUNT(ctl_noun_table); i++)
        if (named(ctl_noun_table[i].noun, ctl_noun_table[i].aliases, name))
            return &ctl_noun_table[i];
    return NULL;
}

const struct ctl_row *ctl_row_find(const struct ctl_noun *noun, const char *name)
{
    for (size_t i = 0; i < noun->row_count; i++)
        if (!*noun->rows[i].verb || named(noun->rows[i].verb, noun->rows[i].aliases, name))
            return &noun->rows[i];
    return noun->also ? ctl_row_find(ctl_noun_find(noun->also), name) : NULL;
}

char *ctl_word_label(const struct ctl_word *word)
{
    if (word->positional)
        return ox_strdup(word->name);
    const char *space = strrchr(word->names, ' ');
    return ox_strdup(space ? space + 1 : word->names);
}

// How far a name is from what was typed; a beginning of it counts as one wrong letter.
static size_t nearness(const char *typed, const char *name)
{
    size_t whole = ox_edit_distance(typed, name, NEAREST_MAX + 1), len = strlen(typed);
    if (len < 3 || strlen(name) <= len)
        return whole;
    size_t begun = SIZE_MAX;
    for (size_t cut = len - 1; cut <= len + 1; cut++) {
        OX_CLEANUP(ox_free_ptr)
        char *beginning = ox_strndup(name, cut);
        begun = OX_MIN(begun, 1 + ox_edit_distance(typed, beginning, NEAREST_MAX + 1));
    }
    return OX_MIN(whole, begun);
}

void ctl_nearest_look(struct ctl_nearest *n, const char *names, char separator)
{
    size_t allowed = OX_MIN(NEAREST_MAX, 1 + strlen(n->typed) / 4);
    while (names && *names) {
        const char *end = strchrnul(names, separator);
        OX_CLEANUP(ox_free_ptr)
        char *name = ox_strndup(names, (size_t)(end - names));
        size_t distance = nearness(n->typed, name);
        if (distance <= allowed && (!n->best || distance < n->distance)) {
            n->best = names;
            n->best_len = (size_t)(end - names);
            n->distance = distance;
        }
        names = *end ? end + 1 : end;
    }
}

char *ctl_nearest_hint(const struct ctl_nearest *n)
{
    return n->best ? ox_asprintf(" (did you mean '%.*s'?)", (int)n->best_len, n->best) : ox_strdup("");
}
