// opener.c - opens the storage that a URI names, and brings URIs into their one form.
#include "oxbowd/opener.h"

#include <string.h>

#include "base/mem.h"
#include "oxbowd/settings.h"

#define EMBEDDED "embedded:"

static struct opener *opener_of(struct ox_place_opener *o)
{
    return CONTAINER_OF(o, struct opener, opener);
}

// Appends the segments of a path to an absolute one; ".." takes the last one away.
static void opener_walk(struct ox_str *to, const char *path)
{
    while (*path) {
        size_t len = strcspn(path, "/");
        if (len == 2 && memcmp(path, "..", 2) == 0) {
            const char *last = strrchr(ox_str_get(to), '/');
            if (last)
                ox_str_truncate(to, (size_t)(last - to->data));
        } else if (len > 0 && !(len == 1 && *path == '.')) {
            ox_str_addf(to, "/%.*s", (int)len, path);
        }
        path += len + (path[len] == '/');
    }
}

char *opener_absolute(const char *cwd, const char *dir)
{
    struct ox_str to = {0};
    if (*dir != '/')
        opener_walk(&to, cwd);
    opener_walk(&to, dir);
    if (to.len == 0)
        ox_str_adds(&to, "/");
    return ox_str_take(&to);
}

// The directory of a URI, or NULL.
static const char *opener_dir(const char *uri)
{
    size_t len = strlen(EMBEDDED);
    return strncmp(uri, EMBEDDED, len) == 0 && uri[len] ? uri + len : NULL;
}

// True if a directory is this one, or has it somewhere in it.
static bool opener_holds(const char *dir, const char *inner)
{
    size_t len = strlen(dir);
    return !strcmp(dir, "/") || (!strncmp(dir, inner, len) && (inner[len] == '/' || !inner[len]));
}

static bool opener_printable(const char *dir)
{
    while ((unsigned char)*dir >= 0x20 && *dir != 0x7f)
        dir++;
    return !*dir;
}

static char *opener_canonical(struct ox_place_opener *opener, const char *uri, const char **why)
{
    const char *dir = opener_dir(uri);
    if (dir && !opener_printable(dir)) {
        *why = "there is a control character in it";
        return NULL;
    }
    if (dir) {
        OX_CLEANUP(ox_free_ptr)
        char *absolute = opener_absolute(opener_of(opener)->cwd, dir);
        if (!opener_of(opener)->data || !opener_holds(absolute, opener_of(opener)->data))
            return ox_asprintf(EMBEDDED "%s", absolute);
        *why = "the broker's own data folder is in it: choose a directory of its own";
        return NULL;
    }
    if (strncmp(uri, EMBEDDED, strlen(EMBEDDED)) == 0)
        *why = "the directory is missing: use embedded:DIR";
    else if (strncmp(uri, "zk", 2) == 0 || strncmp(uri, "metadata-store:", 15) == 0)
        *why = "places of this kind come with BookKeeper support, which is not built yet: use embedded:DIR";
    else
        *why = "no such kind of bookie cluster: use embedded:DIR";
    return NULL;
}

// Each place gets a journal lane of its own while there are some, so that a slow disk under one does not hold up the others.
static enum ox_lane opener_lane(struct opener *o)
{
    static const enum ox_lane lanes[] = {OX_LANE_JOURNAL, OX_LANE_JOURNAL_2, OX_LANE_JOURNAL_3, OX_LANE_JOURNAL_4};
    return lanes[o->opened++ % OX_COUNT(lanes)];
}

static void opener_open(struct ox_place_opener *opener, struct ox_op *op, const char *name, const char *uri,
                        bool existing, struct ox_place **ret)
{
    struct opener *o = opener_of(opener);
    const char *dir = opener_dir(uri);
    if (!dir) {
        ox_op_begin(op);
        ox_op_finish(op, OX_E_INVALID);
        return;
    }
    struct ox_store_config config;
    ox_store_config_init(&config, dir);
    settings_store(o->config, &config);
    config.name = name;
    config.existing = existing;
    config.metrics = o->metrics;
    config.journal_lane = opener_lane(o);
    if (o->segment_bytes)
        config.segment_bytes = o->segment_bytes;
    if (o->table.open)
        config.table = o->table;
    ox_store_open(o->loop, o->fs, op, &config, ret);
}

void opener_init(struct opener *o)
{
    o->opener = (struct ox_place_opener){.open = opener_open, .canonical = opener_canonical};
}
