// show.c - answers for people: names, lines of name and value, tables; and for programs, as they are.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "oxbowctl/bookie_clusters.h"
#include "oxbowctl/ctl.h"

#define COLUMNS_MAX 10 // wider ones are shown as lines

void ctl_print_json(const json_t *answer)
{
    char *text = json_dumps(answer, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    printf("%s\n", text ? text : "null");
    free(text);
    fflush(stdout);
}

void ctl_show_none(const json_t *answer)
{
    (void)answer;
}

static bool is_plain(const json_t *value)
{
    return !json_is_object(value) && !json_is_array(value);
}

static bool all_plain(const json_t *array)
{
    for (size_t i = 0; i < json_array_size(array); i++)
        if (!is_plain(json_array_get(array, i)))
            return false;
    return true;
}

// A value in one cell: a text as it is, names joined by ", ", nothing as "-", anything else as JSON.
static char *cell(const json_t *value)
{
    if (!value || json_is_null(value) || (json_is_string(value) && json_string_length(value) == 0) ||
        (json_is_array(value) && json_array_size(value) == 0) || (json_is_object(value) && json_object_size(value) == 0))
        return ox_strdup("-");
    if (json_is_string(value))
        return ox_strdup(json_string_value(value));
    struct ox_str text = {0};
    if (json_is_array(value) && all_plain(value)) {
        for (size_t i = 0; i < json_array_size(value); i++) {
            OX_CLEANUP(ox_free_ptr)
            char *item = cell(json_array_get(value, i));
            ox_str_addf(&text, "%s%s", i ? ", " : "", item);
        }
    } else {
        char *dumped = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
        ox_str_adds(&text, dumped);
        free(dumped);
    }
    return ox_str_take(&text);
}

// A cell that stays on its line; what a terminal would obey is shown instead (payloads are anybody's).
static char *cell_inert(const json_t *value)
{
    OX_CLEANUP(ox_free_ptr)
    char *text = cell(value);
    struct ox_str inert = {0};
    for (const char *c = text; *c; c++)
        if (*c == '\n')
            ox_str_adds(&inert, "\\n");
        else if ((unsigned char)*c < 0x20 || *c == 0x7F)
            ox_str_addf(&inert, "\\x%02x", (unsigned)*c);
        else
            ox_str_add(&inert, c, 1);
    return ox_str_take(&inert);
}

void ctl_show_text(const json_t *answer)
{
    OX_CLEANUP(ox_free_ptr)
    char *text = cell(answer);
    size_t len = strlen(text);
    printf("%s%s", text, len && text[len - 1] == '\n' ? "" : "\n");
}

// ---- lines ----------------------------------------------------------------------------------------------------------

static void lines_add(struct ctl_table *t, const char *name, const json_t *value);

static void lines_members(struct ctl_table *t, const char *prefix, const json_t *object)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        OX_CLEANUP(ox_free_ptr)
        char *whole = ox_asprintf("%s%s%s", prefix, *prefix ? "." : "", name);
        lines_add(t, whole, value);
    }
}

static void lines_items(struct ctl_table *t, const char *prefix, const json_t *array)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        OX_CLEANUP(ox_free_ptr)
        char *whole = ox_asprintf("%s%s%zu", prefix, *prefix ? "." : "", i);
        lines_add(t, whole, json_array_get(array, i));
    }
}

static void lines_add(struct ctl_table *t, const char *name, const json_t *value)
{
    if (json_is_object(value) && json_object_size(value) > 0) {
        lines_members(t, name, value);
    } else if (json_is_array(value) && !all_plain(value)) {
        lines_items(t, name, value);
    } else {
        OX_CLEANUP(ox_free_ptr)
        char *text = cell_inert(value);
        ctl_table_add(t, "%s", name);
        ctl_table_add(t, "%s", text);
    }
}

static void show_lines(const json_t *answer)
{
    struct ctl_table t = {.columns = 2};
    if (json_is_array(answer))
        lines_items(&t, "", answer);
    else
        lines_members(&t, "", answer);
    ctl_table_print(&t, stdout);
}

// ---- tables ---------------------------------------------------------------------------------------------------------

// The names of all members of some objects, in the order of their first appearance: {name: true if all are numbers}.
static json_t *columns_of(const json_t *const *items, size_t count)
{
    json_t *columns = json_object();
    for (size_t i = 0; i < count; i++) {
        const char *name;
        json_t *value;
        json_object_foreach((json_t *)(uintptr_t)items[i], name, value)
        {
            const json_t *before = json_object_get(columns, name);
            json_object_set_new(columns, name, json_boolean(json_is_number(value) && (!before || json_is_true(before))));
        }
    }
    return columns;
}

static void table_head(struct ctl_table *t, bool named, const json_t *columns)
{
    const char *name;
    json_t *number;
    t->columns = json_object_size(columns) + named;
    if (named)
        ctl_table_add(t, "NAME");
    size_t at = named;
    json_object_foreach((json_t *)(uintptr_t)columns, name, number)
    {
        t->right |= json_is_true(number) ? 1u << at : 0;
        at++;
        ctl_table_add(t, "%s", name);
    }
}

static void table_row(struct ctl_table *t, const char *name, const json_t *item, const json_t *columns)
{
    const char *column;
    json_t *number;
    if (name)
        ctl_table_add(t, "%s", name);
    json_object_foreach((json_t *)(uintptr_t)columns, column, number)
    {
        OX_CLEANUP(ox_free_ptr)
        char *text = cell_inert(json_object_get(item, column));
        ctl_table_add(t, "%s", text);
    }
}

// Objects as rows; names NULL: they have none. False: they are too many things for a table.
static bool show_table(const char *const *names, const json_t *const *items, size_t count)
{
    struct ctl_table t = {0};
    json_t *columns = columns_of(items, count);
    bool fits = count > 0 && json_object_size(columns) > 0 && json_object_size(columns) < COLUMNS_MAX;
    if (fits) {
        table_head(&t, names != NULL, columns);
        for (size_t i = 0; i < count; i++)
            table_row(&t, names ? names[i] : NULL, items[i], columns);
        ctl_table_print(&t, stdout);
    }
    json_decref(columns);
    return fits;
}

// An object that holds nothing but texts, numbers and lists of them.
static bool is_flat(const json_t *value)
{
    const char *name;
    json_t *member;
    if (!json_is_object(value))
        return false;
    json_object_foreach((json_t *)(uintptr_t)value, name,
                        member) if (!is_plain(member) && !(json_is_array(member) && all_plain(member))) return false;
    return true;
}

static bool show_objects(const json_t *answer)
{
    size_t size = json_is_array(answer) ? json_array_size(answer) : json_object_size(answer), count = 0;
    const char **names = ox_calloc(size + 1, sizeof *names), *name;
    const json_t **items = ox_calloc(size + 1, sizeof *items);
    json_t *value;
    bool flat = true;
    if (json_is_array(answer))
        for (; count < size; count++)
            items[count] = json_array_get(answer, count);
    else
        json_object_foreach((json_t *)(uintptr_t)answer, name, value)
        {
            names[count] = name;
            items[count++] = value;
        }
    for (size_t i = 0; i < count; i++)
        flat = flat && is_flat(items[i]);
    bool shown = flat && show_table(json_is_array(answer) ? NULL : names, items, count);
    ox_free(names);
    ox_free(items);
    return shown;
}

static void show_names(const json_t *array)
{
    for (size_t i = 0; i < json_array_size(array); i++)
        ctl_show_text(json_array_get(array, i));
}

void ctl_show_auto(const json_t *answer)
{
    if (is_plain(answer))
        ctl_show_text(answer);
    else if (json_is_array(answer) && all_plain(answer))
        show_names(answer);
    else if (!show_objects(answer))
        show_lines(answer);
}
