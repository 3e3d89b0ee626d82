// figures.c - sizes, times and tables for people, and reading members of answers.
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "oxbowctl/bookie_clusters.h"

// The unit in which a size has up to four digits before the point; divides it.
static const char *size_unit(double *bytes, double *ret_divisor)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t unit = 0;
    *ret_divisor = 1;
    while (*bytes >= 1023.95 && unit + 1 < OX_COUNT(units)) { // 1023.96 would be printed as 1024.0
        *bytes /= 1024;
        *ret_divisor *= 1024;
        unit++;
    }
    return units[unit];
}

void ctl_add_size(struct ox_str *out, double bytes)
{
    double divisor;
    const char *unit = size_unit(&bytes, &divisor);
    ox_str_addf(out, "%.*f %s", divisor > 1, bytes, unit);
}

void ctl_add_size_of(struct ox_str *out, double bytes, double total)
{
    double divisor;
    const char *unit = size_unit(&total, &divisor);
    ox_str_addf(out, "%.*f/%.*f %s", divisor > 1, bytes / divisor, divisor > 1, total, unit);
}

void ctl_add_time(struct ox_str *out, double seconds)
{
    if (seconds < 0.95) {
        ox_str_addf(out, "%.1f s", seconds);
        return;
    }
    if (seconds > 3650.0 * 86400) {
        ox_str_adds(out, "years");
        return;
    }
    int64_t s = (int64_t)(seconds + 0.5);
    if (s < 60)
        ox_str_addf(out, "%" PRId64 " s", s);
    else if (s < 3600)
        ox_str_addf(out, "%" PRId64 " min %" PRId64 " s", s / 60, s % 60);
    else if (s < 86400)
        ox_str_addf(out, "%" PRId64 " h %" PRId64 " min", s / 3600, s / 60 % 60);
    else
        ox_str_addf(out, "%" PRId64 " d %" PRId64 " h", s / 86400, s / 3600 % 24);
}

void ctl_add_date(struct ox_str *out, int64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm parts;
    char text[40];
    if (ms <= 0 || !gmtime_r(&seconds, &parts) || strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts) == 0)
        ox_str_adds(out, "-");
    else
        ox_str_adds(out, text);
}

static void table_give(struct ctl_table *t, char *give_text)
{
    t->cells = ox_realloc(t->cells, t->count + 1, sizeof *t->cells);
    t->cells[t->count++] = give_text;
}

void ctl_table_add(struct ctl_table *t, const char *format, ...)
{
    struct ox_str text = {0};
    va_list args;
    va_start(args, format);
    ox_str_addv(&text, format, args);
    va_end(args);
    table_give(t, ox_str_take(&text));
}

void ctl_table_take(struct ctl_table *t, struct ox_str *text)
{
    table_give(t, ox_str_take(text));
}

// Characters, not bytes.
static int cell_width(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static int column_width(const struct ctl_table *t, size_t column)
{
    int width = 0;
    for (size_t i = column; i < t->count; i += t->columns)
        width = OX_MAX(width, cell_width(t->cells[i]));
    return width;
}

void ctl_table_print(struct ctl_table *t, FILE *to)
{
    int *widths = ox_calloc(t->columns, sizeof *widths);
    for (size_t c = 0; c < t->columns; c++)
        widths[c] = column_width(t, c);
    for (size_t i = 0; i < t->count; i++) {
        size_t column = i % t->columns;
        bool last = column + 1 == t->columns, right = t->right >> column & 1;
        int pad = widths[column] - cell_width(t->cells[i]);
        fprintf(to, "%*s%s%*s%s", right ? pad : 0, "", t->cells[i], right || last ? 0 : pad, "", last ? "\n" : "  ");
        ox_free(t->cells[i]);
    }
    ox_free(widths);
    ox_free(t->cells);
    t->cells = NULL;
    t->count = 0;
}

int64_t ctl_integer_of(const json_t *o, const char *name)
{
    return json_integer_value(json_object_get(o, name));
}

double ctl_number_of(const json_t *o, const char *name)
{
    return json_number_value(json_object_get(o, name));
}

const char *ctl_text_of(const json_t *o, const char *name)
{
    const json_t *value = json_object_get(o, name);
    if (json_is_boolean(value))
        return json_is_true(value) ? "yes" : "no";
    const char *text = json_string_value(value);
    return text && *text ? text : "-";
}
