// copies.c - the list of a ledger's other locations, and its text.
#include "mledger/copies.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/str.h"

void ox_copies_fini(struct ox_copies *c)
{
    for (size_t i = 0; i < c->count; i++)
        ox_free(c->items[i].place);
    ox_free(c->items);
    *c = (struct ox_copies){0};
}

static size_t copies_index(const struct ox_copies *c, const char *place, int64_t physical)
{
    size_t i = 0;
    while (i < c->count && (c->items[i].physical != physical || strcmp(c->items[i].place, place) != 0))
        i++;
    return i;
}

const struct ox_copy *ox_copies_find(const struct ox_copies *c, const char *place, int64_t physical)
{
    size_t i = copies_index(c, place, physical);
    return i < c->count ? &c->items[i] : NULL;
}

static void copies_take(struct ox_copies *c, struct ox_copy copy)
{
    c->items = ox_realloc(c->items, c->count + 1, sizeof *c->items);
    c->items[c->count++] = copy;
}

void ox_copies_add(struct ox_copies *c, const char *place, int64_t physical, uint64_t since_ms)
{
    OX_ASSERT(!ox_copies_find(c, place, physical));
    copies_take(c, (struct ox_copy){ox_strdup(place), physical, since_ms});
}

bool ox_copies_remove(struct ox_copies *c, const char *place, int64_t physical)
{
    size_t i = copies_index(c, place, physical);
    if (i == c->count)
        return false;
    ox_free(c->items[i].place);
    c->count--;
    memmove(c->items + i, c->items + i + 1, (c->count - i) * sizeof *c->items);
    return true;
}

char *ox_copies_text(const struct ox_copies *c)
{
    struct ox_str text = {0};
    if (c->count == 0)
        return NULL;
    for (size_t i = 0; i < c->count; i++)
        ox_str_addf(&text, "%s%s:%lld:%llu", i ? "," : "", c->items[i].place, (long long)c->items[i].physical,
                    (unsigned long long)c->items[i].since_ms);
    return ox_str_take(&text);
}

// "place:physical:since"; the numbers are cut off from the right. A place has a name without ':' and ','.
static enum ox_err copies_parse_one(struct ox_copies *ret, char *text)
{
    char *physical = strchr(text, ':');
    char *since = physical ? strchr(physical + 1, ':') : NULL;
    int64_t id, ms;
    if (!since || physical == text)
        return OX_E_CORRUPT;
    *physical++ = 0;
    *since++ = 0;
    if (ret->count >= OX_COPIES_MAX)
        return OX_E_CORRUPT;
    if (ox_parse_i64(physical, 0, INT64_MAX, &id) != OX_OK || ox_parse_i64(since, 0, INT64_MAX, &ms) != OX_OK)
        return OX_E_CORRUPT;
    if (!ox_copies_find(ret, text, id)) // said twice is said once
        copies_take(ret, (struct ox_copy){ox_strdup(text), id, (uint64_t)ms});
    return OX_OK;
}

enum ox_err ox_copies_parse(struct ox_copies *ret, const char *text)
{
    ox_copies_fini(ret);
    if (!text)
        return OX_OK;
    OX_CLEANUP(ox_free_ptr)
    char *mine = ox_strdup(text);
    enum ox_err err = OX_OK;
    for (char *at = mine, *comma; at && err == OX_OK; at = comma) {
        comma = strchr(at, ',');
        if (comma)
            *comma++ = 0;
        err = copies_parse_one(ret, at);
    }
    if (err != OX_OK)
        ox_copies_fini(ret);
    return err;
}
