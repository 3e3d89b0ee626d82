// topic_list.c - lists of topics: from the metadata store, or (non-persistent ones) from what is loaded.
#include "broker/topic_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "base/str.h"
#include "broker/topic.h"

static ox_step list_domain(struct ox_seq *s);

static struct ox_topics_list *list_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct ox_topics_list, seq);
}

static int name_order(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void list_add(struct ox_topics_list *l, const char *full)
{
    if (l->count == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 64;
        l->names = ox_realloc(l->names, l->cap, sizeof *l->names);
    }
    l->names[l->count++] = ox_strdup(full);
}

// A child whose name cannot be decoded is left out.
static void list_add_node(struct ox_topics_list *l, const char *node)
{
    struct ox_str local = {0};
    struct ox_topic_name name = {0};
    if (ox_name_decode(&local, node) == OX_OK) {
        OX_CLEANUP(ox_free_ptr)
        char *full = ox_asprintf("%s://%s/%s", l->domain == OX_DOMAIN_PERSISTENT ? "persistent" : "non-persistent",
                                 l->ns, ox_str_get(&local));
        if (ox_topic_name_parse(&name, full) == OX_OK && (l->with_system || !ox_topic_name_is_system(&name)))
            list_add(l, name.full);
    }
    ox_topic_name_fini(&name);
    ox_str_fini(&local);
}

static ox_step list_next(struct ox_topics_list *l)
{
    bool more = l->domain == OX_DOMAIN_PERSISTENT && l->mode == OX_TOPICS_ALL;
    l->domain = OX_DOMAIN_NON_PERSISTENT;
    return more ? OX_GOTO(&l->seq, list_domain) : OX_FINISH(&l->seq, OX_OK);
}

static ox_step list_children(struct ox_seq *s)
{
    struct ox_topics_list *l = list_of(s);
    if (s->err && s->err != OX_E_NOT_FOUND)
        return OX_FINISH(s, s->err);
    if (!s->err) {
        for (size_t i = 0; i < l->children.count; i++)
            list_add_node(l, l->children.names[i]);
        ox_meta_names_free(l->children.names, l->children.count);
    }
    return list_next(l);
}

static void list_loaded(struct ox_topics_list *l)
{
    OX_MAP_EACH(&l->shard->topics, n) {
        const struct ox_topic *t = CONTAINER_OF(n, struct ox_topic, by_name);
        if (t->name.domain == OX_DOMAIN_NON_PERSISTENT && t->state == OX_TOPIC_OPEN && !strcmp(t->name.ns, l->ns) &&
            (l->with_system || !ox_topic_name_is_system(&t->name)))
            list_add(l, t->name.full);
    }
}

static ox_step list_domain(struct ox_seq *s)
{
    struct ox_topics_list *l = list_of(s);
    bool persistent = l->domain == OX_DOMAIN_PERSISTENT;
    if (!persistent && !l->partitioned) {
        list_loaded(l);
        return list_next(l);
    }
    OX_CLEANUP(ox_free_ptr)
    char *path = l->partitioned
                     ? ox_asprintf("/admin/partitioned-topics/%s/%s", l->ns, persistent ? "persistent" : "non-persistent")
                     : ox_asprintf("/managed-ledgers/%s/persistent", l->ns);
    ox_seq_bind(s, &l->children.op, "topics.children");
    ox_meta_children(l->shard->meta, &l->children, path);
    return OX_WAIT(s, list_children);
}

static ox_step list_namespace_got(struct ox_seq *s)
{
    struct ox_topics_list *l = list_of(s);
    bool going = s->err == OX_E_NAMESPACE_NOT_FOUND && l->get.policies.deleted;
    if (s->err && !(going && l->marked))
        return OX_FINISH(s, s->err);
    return OX_GOTO(s, list_domain);
}

static ox_step list_start(struct ox_seq *s)
{
    struct ox_topics_list *l = list_of(s);
    if (!ox_namespace_valid(l->ns))
        return OX_FINISH(s, OX_E_NAMESPACE_NOT_FOUND);
    ox_seq_bind(s, &l->get.op, "namespace.get");
    ox_namespace_get(l->shard, &l->get, l->ns);
    return OX_WAIT(s, list_namespace_got);
}

// If the pattern gives up at a name nothing is left out: the client looks for itself.
static void list_filter(struct ox_topics_list *l)
{
    size_t kept = 0;
    OX_CLEANUP(ox_free_ptr)
    bool *matches = ox_calloc(l->count + 1, sizeof *matches);
    for (size_t i = 0; i < l->count && !ox_topic_pattern_gave_up(l->pattern); i++)
        matches[i] = ox_topic_pattern_matches(l->pattern, l->names[i]);
    l->filtered = !ox_topic_pattern_gave_up(l->pattern);
    for (size_t i = 0; i < l->count && l->filtered; i++) {
        if (matches[i])
            l->names[kept++] = l->names[i];
        else
            ox_free(l->names[i]);
    }
    l->count = l->filtered ? kept : l->count;
}

static void list_done(struct ox_seq *s, enum ox_err err)
{
    struct ox_topics_list *l = list_of(s);
    ox_free(l->ns);
    if (err)
        ox_topics_list_fini(l);
    else if (l->pattern)
        list_filter(l);
    if (l->count)
        qsort(l->names, l->count, sizeof *l->names, name_order);
    ox_op_finish(&l->op, err);
}

void ox_topics_list(struct ox_shard *sh, struct ox_topics_list *l, const char *ns)
{
    ox_op_begin(&l->op);
    l->shard = sh;
    l->names = NULL;
    l->count = l->cap = 0;
    l->filtered = false;
    l->domain = l->mode == OX_TOPICS_NON_PERSISTENT ? OX_DOMAIN_NON_PERSISTENT : OX_DOMAIN_PERSISTENT;
    l->get.policies = (struct ox_namespace_policies){0};
    l->ns = ox_strdup(ns);
    ox_seq_start(&l->seq, sh->loop, "topics.list", list_start, list_done);
}

void ox_topics_list_fini(struct ox_topics_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        ox_free(l->names[i]);
    ox_free(l->names);
    l->names = NULL;
    l->count = 0;
}

void ox_topics_hash(char *const *names, size_t count, char out[9])
{
    uint32_t crc = 0;
    for (size_t i = 0; i < count; i++) {
        if (i)
            crc = ox_crc32c(crc, ",", 1);
        crc = ox_crc32c(crc, names[i], strlen(names[i]));
    }
    snprintf(out, 9, "%08x", __builtin_bswap32(crc));
}
