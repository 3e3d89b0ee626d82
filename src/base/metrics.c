// metrics.c - families of metrics by name, printed together.
#include "base/metrics.h"

#include <string.h>

#include "base/mem.h"

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

static void family_print(struct family *f, struct ox_str *out)
{
    const char *type = f->kind == OX_METRIC_COUNTER ? "counter" : "gauge";
    ox_str_addf(out, "# HELP %s %s\n# TYPE %s %s\n", f->name, f->help, f->name, type);
    OX_LIST_EACH(&f->metrics, link) {
        struct ox_metric *m = CONTAINER_OF(link, struct ox_metric, link);
        ox_str_adds(out, m->name);
        if (m->labels)
            ox_str_addf(out, "{%s}", m->labels);
        ox_str_addf(out, " %lld\n", (long long)m->value);
    }
}

void ox_metrics_print(const struct ox_metrics *registry, struct ox_str *out)
{
    for (struct ox_link *link = registry->families.head.next; link != &registry->families.head; link = link->next)
        family_print(CONTAINER_OF(link, struct family, link), out);
}
