// metrics.c - families of metrics by name, printed together; tables printed column by column.
#include "base/metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/hist.h"
#include "base/mem.h"

#define NUMBER_BYTES 40u // of a value in text, with the space before and the line end behind it
#define WHOLE_MAX 1e15   // beyond it a double is not sure to be exact to the next whole number
#define BLOCK_ROWS 64u
#define LABELS_BYTES_MAX 16384u // of a row; names are bounded far below

// All metrics of one name; lives while it has one.
struct family {
    struct ox_link link;
    struct ox_list metrics;
    const char *name, *help;
    enum ox_metric_kind kind;
};

void ox_metrics_init(struct ox_metrics *registry)
{
    ox_list_init(&registry->families);
    ox_list_init(&registry->summaries);
}

static struct family *family_find(struct ox_metrics *registry, const char *name)
{
    OX_LIST_EACH(&registry->families, link) {
        struct family *f = CONTAINER_OF(link, struct family, link);
        if (f->name == name || strcmp(f->name, name) == 0)
            return f;
    }
    return NULL;
}

static struct family *family_new(struct ox_metrics *registry, enum ox_metric_kind kind, const char *name, const char *help)
{
    struct family *f = (struct family *)ox_malloc(sizeof *f);
    ox_list_init(&f->metrics);
    f->name = name;
    f->help = help;
    f->kind = kind;
    ox_list_push_back(&registry->families, &f->link);
    return f;
}

void ox_metric_init(struct ox_metric *m, struct ox_metrics *registry, enum ox_metric_kind kind, const char *name,
                    const char *help, const char *labels)
{
    struct family *f = family_find(registry, name);
    if (!f)
        f = family_new(registry, kind, name, help);
    OX_ASSERT(f->kind == kind);
    m->registry = registry;
    m->name = name;
    m->help = help;
    m->kind = kind;
    m->labels = labels ? ox_strdup(labels) : NULL;
    ox_list_push_back(&f->metrics, &m->link);
}

void ox_metric_fini(struct ox_metric *m)
{
    struct family *f = family_find(m->registry, m->name);
    OX_ASSERT(f);
    ox_list_remove(&f->metrics, &m->link);
    if (ox_list_empty(&f->metrics)) {
        ox_list_remove(&m->registry->families, &f->link);
        ox_free(f);
    }
    ox_free(m->labels);
    *m = (struct ox_metric){0};
}

// ---- labels

void ox_metric_escape(struct ox_str *out, const char *value)
{
    bool utf8 = ox_utf8_valid(value, strlen(value));
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            ox_str_add(out, "\\", 1);
        if (*value == '\n')
            ox_str_adds(out, "\\n");
        else
            ox_str_add(out, !utf8 && (unsigned char)*value >= 0x80 ? "?" : value, 1);
    }
}

static bool name_is_pulsars(const char *name)
{
    return strncmp(name, "pulsar_", 7) == 0 || strncmp(name, "topic_", 6) == 0;
}

// "{...} ": the cluster where the family has it, then others; nothing if there are none.
static void labels_print(const struct ox_metrics *registry, const char *name, const char *labels, struct ox_str *out)
{
    bool cluster = registry->cluster && name_is_pulsars(name);
    ox_str_adds(out, name);
    if (!cluster && !labels)
        return;
    ox_str_adds(out, cluster ? "{cluster=\"" : "{");
    if (cluster)
        ox_metric_escape(out, registry->cluster);
    if (cluster)
        ox_str_adds(out, labels ? "\"," : "\"");
    ox_str_adds(out, labels ? labels : "");
    ox_str_adds(out, "}");
}

// ---- the registry's page

static void head_print(const char *name, const char *help, const char *type, struct ox_str *out)
{
    ox_str_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void family_print(const struct ox_metrics *registry, struct family *f, struct ox_str *out)
{
    head_print(f->name, f->help, f->kind == OX_METRIC_COUNTER ? "counter" : "gauge", out);
    OX_LIST_EACH(&f->metrics, link) {
        struct ox_metric *m = CONTAINER_OF(link, struct ox_metric, link);
        labels_print(registry, m->name, m->labels, out);
        ox_str_addf(out, " %lld\n", (long long)m->value);
    }
}

static void summary_line(const struct ox_summary *s, const char *suffix, const char *labels, struct ox_str *out)
{
    OX_CLEANUP(ox_free_ptr)
    char *name = ox_asprintf("%s%s", s->name, suffix);
    labels_print(s->registry, name, labels, out);
}

static void summary_quantile(const struct ox_summary *s, const struct ox_hist *both, const char *quantile, struct ox_str *out)
{
    OX_CLEANUP(ox_free_ptr)
    char *labels = ox_asprintf("quantile=\"%s\"", quantile);
    summary_line(s, "", labels, out);
    if (both->count)
        ox_str_addf(out, " %.3f\n", (double)ox_hist_quantile(both, strtod(quantile, NULL)) / 1000);
    else
        ox_str_adds(out, " NaN\n");
}

static void summary_print(const struct ox_summary *s, struct ox_str *out)
{
    OX_CLEANUP(ox_free_ptr)
    char *memory = ox_malloc(sizeof(struct ox_hist));
    struct ox_hist *both = (struct ox_hist *)(void *)memory;
    ox_hist_merge(both, s->last);
    ox_hist_merge(both, s->now);
    head_print(s->name, s->help, "summary", out);
    for (const char *const *q = s->quantiles; *q; q++)
        summary_quantile(s, both, *q, out);
    summary_line(s, "_count", NULL, out);
    ox_str_addf(out, " %llu\n", (unsigned long long)s->count);
    summary_line(s, "_sum", NULL, out);
    ox_str_addf(out, " %.3f\n", (double)s->sum_us / 1000);
}

void ox_metrics_print(const struct ox_metrics *registry, struct ox_str *out)
{
    OX_LIST_EACH(&registry->families, link)
        family_print(registry, CONTAINER_OF(link, struct family, link), out);
    OX_LIST_EACH(&registry->summaries, link)
        summary_print(CONTAINER_OF(link, struct ox_summary, link), out);
}

// ---- summaries

void ox_summary_init(struct ox_summary *s, struct ox_metrics *registry, const char *name, const char *help,
                     const char *const *quantiles)
{
    s->registry = registry;
    s->name = name;
    s->help = help;
    s->quantiles = quantiles;
    s->now = ox_malloc(sizeof *s->now);
    s->last = ox_malloc(sizeof *s->last);
    ox_list_push_back(&registry->summaries, &s->link);
}

void ox_summary_fini(struct ox_summary *s)
{
    ox_list_remove(&s->registry->summaries, &s->link);
    ox_free(s->now);
    ox_free(s->last);
    *s = (struct ox_summary){0};
}

void ox_summary_add(struct ox_summary *s, uint64_t us)
{
    ox_hist_add(s->now, us);
    s->count++;
    s->sum_us += us;
}

void ox_metrics_tick(struct ox_metrics *registry)
{
    OX_LIST_EACH(&registry->summaries, link) {
        struct ox_summary *s = CONTAINER_OF(link, struct ox_summary, link);
        struct ox_hist *emptied = s->last;
        s->last = s->now;
        s->now = emptied;
        memset(emptied, 0, sizeof *emptied);
    }
}

// ---- tables

// Some rows. `used` tells for a full block which columns have a value in it: a page has many columns that hardly a row has.
struct ox_metric_block {
    struct ox_str labels; // of all rows, one behind the other
    uint32_t ends[BLOCK_ROWS];
    uint32_t rows;
    bool *used;
    double values[];
};

void ox_metric_table_fini(struct ox_metric_table *t)
{
    for (size_t i = 0; i * BLOCK_ROWS < t->row_count; i++) {
        ox_str_fini(&t->blocks[i]->labels);
        ox_free(t->blocks[i]->used);
        ox_free(t->blocks[i]);
    }
    ox_free(t->blocks);
}

static void block_seal(const struct ox_metric_table *t, struct ox_metric_block *block)
{
    block->used = ox_calloc(t->column_count, sizeof *block->used);
    for (size_t row = 0; row < block->rows; row++) {
        for (size_t i = 0; i < t->column_count; i++)
            block->used[i] |= !isnan(block->values[row * t->column_count + i]);
    }
}

static struct ox_metric_block *block_new(struct ox_metric_table *t)
{
    size_t at = t->row_count / BLOCK_ROWS;
    if (at)
        block_seal(t, t->blocks[at - 1]);
    if (at == t->block_cap) {
        t->block_cap = at ? at * 2 : 1;
        t->blocks = ox_realloc(t->blocks, t->block_cap, sizeof *t->blocks);
    }
    struct ox_metric_block *block = ox_malloc_raw(sizeof *block + BLOCK_ROWS * t->column_count * sizeof block->values[0]);
    block->labels = (struct ox_str){0};
    block->rows = 0;
    block->used = NULL;
    t->blocks[at] = block;
    return block;
}

size_t ox_metric_table_add(struct ox_metric_table *t, const char *labels, size_t len)
{
    OX_ASSERT(len <= LABELS_BYTES_MAX);
    struct ox_metric_block *block = t->row_count % BLOCK_ROWS ? t->blocks[t->row_count / BLOCK_ROWS] : block_new(t);
    ox_str_add(&block->labels, labels, len);
    block->ends[block->rows++] = (uint32_t)block->labels.len;
    double *row = ox_metric_table_row(t, t->row_count);
    for (size_t i = 0; i < t->column_count; i++)
        row[i] = (double)NAN;
    return t->row_count++;
}

double *ox_metric_table_row(const struct ox_metric_table *t, size_t row)
{
    return t->blocks[row / BLOCK_ROWS]->values + row % BLOCK_ROWS * t->column_count;
}

static char *put_text(char *at, const char *text, size_t len)
{
    memcpy(at, text, len);
    return at + len;
}

static char *put_whole(char *at, uint64_t n)
{
    char digits[20];
    size_t len = 0;
    do
        digits[len++] = (char)('0' + n % 10);
    while (n /= 10);
    while (len)
        *at++ = digits[--len];
    return at;
}

// A number that is not whole, with at most six places.
static char *put_fraction(char *at, double value)
{
    uint64_t millionths = (uint64_t)(value * 1e6 + 0.5), rest = millionths % 1000000;
    at = put_whole(at, millionths / 1000000);
    if (!rest)
        return at;
    *at++ = '.';
    for (uint64_t digit = 100000; rest; rest %= digit, digit /= 10)
        *at++ = (char)('0' + rest / digit);
    return at;
}

// " value\n"; printf is ten times as slow, and there may be a million of them.
static char *put_value(char *at, double value)
{
    double size = fabs(value);
    *at++ = ' ';
    if (value < 0)
        *at++ = '-';
    if (size < WHOLE_MAX && size == (double)(uint64_t)size)
        at = put_whole(at, (uint64_t)size);
    else if (size >= 1e-3 && size < 1e12)
        at = put_fraction(at, size);
    else
        at += snprintf(at, NUMBER_BYTES - 3, "%.15g", size);
    *at++ = '\n';
    return at;
}

// The line of one value.
static char *put_line(char *at, const struct ox_metric_column *c, const char *extra, const char *labels, size_t len,
                      double value)
{
    size_t extra_len = strlen(extra);
    at = put_text(at, c->name, strlen(c->name));
    if (len || extra_len)
        *at++ = '{';
    at = put_text(at, labels, len);
    if (len && extra_len)
        *at++ = ',';
    at = put_text(at, extra, extra_len);
    if (len || extra_len)
        *at++ = '}';
    return put_value(at, value);
}

// Where lines go.
struct page {
    char *at;
    const char *end;
};

// Goes on with a column in one block; false: a line did not fit.
static bool block_print(const struct ox_metric_table *t, const struct ox_metric_block *block, const char *head,
                        struct ox_metric_place *place, struct page *page)
{
    const struct ox_metric_column *c = &t->columns[place->column];
    const char *extra = t->summed ? c->summed : c->extra;
    size_t fixed = strlen(c->name) + strlen(extra) + strlen(head) + NUMBER_BYTES + 3;
    for (size_t i = place->row % BLOCK_ROWS; i < block->rows; i++, place->row++) {
        double value = block->values[i * t->column_count + place->column];
        size_t from = i ? block->ends[i - 1] : 0, len = block->ends[i] - from;
        if (isnan(value))
            continue;
        if ((size_t)(page->end - page->at) < fixed + len)
            return false;
        if (!place->headed)
            page->at = put_text(page->at, head, strlen(head));
        place->headed = true;
        page->at = put_line(page->at, c, extra, ox_str_get(&block->labels) + from, len, value);
    }
    return true;
}

// Likewise in all.
static bool column_print(const struct ox_metric_table *t, struct ox_metric_place *place, struct page *page)
{
    const struct ox_metric_column *first = &t->columns[place->column];
    while (!first->head)
        first--;
    while (place->row < t->row_count) {
        const struct ox_metric_block *block = t->blocks[place->row / BLOCK_ROWS];
        if (block->used && !block->used[place->column])
            place->row += BLOCK_ROWS;
        else if (!block_print(t, block, first->head, place, page))
            return false;
    }
    return true;
}

size_t ox_metric_table_print(const struct ox_metric_table *t, struct ox_metric_place *place, char *data, size_t cap)
{
    struct page page = {data, data + cap};
    OX_ASSERT(cap >= OX_METRIC_PIECE_MIN);
    for (; place->column < t->column_count; place->column++, place->row = 0) {
        const struct ox_metric_column *c = &t->columns[place->column];
        if (c->head && place->row == 0)
            place->headed = false;
        if ((!t->summed || c->summed) && !column_print(t, place, &page))
            break;
    }
    return (size_t)(page.at - data);
}
