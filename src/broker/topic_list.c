// topic_list.c - lists of topics: from the metadata store, or (non-persistent ones) from what is loaded.
#include "broker/topic_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "base/str.h"
#include "broker/topic.h"

#define LIST_NAMES_A_TURN 512u
#define LIST_PAUSE_NS OX_MS

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
    struct ox_topic_name name = {0};
    ox_str_truncate(&l->full, 0);
    ox_str_adds(&l->full, l->domain == OX_DOMAIN_PERSISTENT ? "persistent://" : "non-persistent://");
    ox_str_adds(&l->full, l->ns);
    ox_str_add(&l->full, "/", 1);
    if (ox_name_decode(&l->full, node) == OX_OK && ox_topic_name_parse(&name, ox_str_get(&l->full)) == OX_OK &&
        (l->with_system || !ox_topic_name_is_system(&name)))
        list_add(l, name.full);
    ox_topic_name_fini(&name);
}

static ox_step list_next(struct ox_topics_list *l)
{
    bool more = l->domain == OX_DOMAIN_NON_PERSISTENT && l->mode == OX_TOPICS_ALL;
    l->domain = OX_DOMAIN_PERSISTENT;
    return more ? OX_GOTO(&l->seq, list_domain) : OX_FINISH(&l->seq, OX_OK);
}

static void list_paused(struct ox_timer *t)
{
    ox_seq_resume(&CONTAINER_OF(t, struct ox_topics_list, pause)->seq, OX_OK);
}

// A portion of the names; the loop does other things before the next one.
static ox_step list_names(struct ox_seq *s)
{
    struct ox_topics_list *l = list_of(s);
    for (size_t n = 0; l->at < l->children.count && n < LIST_NAMES_A_TURN; n++)
        list_add_node(l, l->children.names[l->at++]);
    if (l->at < l->children.count) {
        ox_timer_init(&l->pause, l->shard->loop, list_paused);
        ox_timer_start(&l->pause, LIST_PAUSE_NS);
        return OX_WAIT(s, list_names);
    }
    ox_meta_names_free(l->children.names, l->children.count);
    return list_next(l);
}

static ox_step list_children(struct ox_seq *s)
{
    struct ox_topics_list *l = list_of(s);
    if (s->err == OX_E_NOT_FOUND)
        return list_next(l);
    if (s->err)
        return OX_FINISH(s, s->err);
    l->at = 0;
    return OX_GOTO(s, list_names);
}

static void list_loaded(struct ox_topics_list *l)
{
    OX_LIST_EACH(&l->shard->nonpersistent, link) {
        const struct ox_topic *t = CONTAINER_OF(link, struct ox_topic, in_nonpersistent);
        if (t->state == OX_TOPIC_OPEN && !strcmp(t->name.ns, l->ns) && (l->with_system || !ox_topic_name_is_system(&t->name)))
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

// They mostly are, as the metadata store gives them so.
static bool list_is_sorted(const struct ox_topics_list *l)
{
    for (size_t i = 1; i < l->count; i++) {
        if (strcmp(l->names[i - 1], l->names[i]) > 0)
            return false;
    }
    return true;
}

static void list_done(struct ox_seq *s, enum ox_err err)
{
    struct ox_topics_list *l = list_of(s);
    ox_free(l->ns);
    ox_str_fini(&l->full);
    if (err)
        ox_topics_list_fini(l);
    else if (l->pattern)
        list_filter(l);
    if (!list_is_sorted(l))
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
    l->domain = l->mode == OX_TOPICS_PERSISTENT ? OX_DOMAIN_PERSISTENT : OX_DOMAIN_NON_PERSISTENT;
    l->full = (struct ox_str){0};
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
