// topic_load.c - loading a topic: the namespace, the partition's number, then the log with its cursors.
#include <jansson.h>
#include <string.h>

#include "base/mem.h"
#include "broker/subscription_int.h"
#include "broker/topic_int.h"
#include "mledger/cursor.h"

static struct topic_impl *load_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct topic_impl, seq);
}

static ox_step load_fail(struct topic_impl *impl, enum ox_err err, const char *why)
{
    impl->why = why;
    impl->tried_create = impl->create;
    impl->tried_explicit = impl->explicit_create;
    return OX_FINISH(&impl->seq, err);
}

// Durable cursors that are not subscriptions: deduplication, compaction, replication.
static bool cursor_is_internal(const char *name)
{
    return !strcmp(name, "pulsar.dedup") || !strcmp(name, "__compaction") || !strncmp(name, "pulsar.repl.", 12);
}

// What a crash left stored without a receipt will be sent again. Not to know the log's end keeps nobody from using the topic.
static ox_step load_scanned(struct ox_seq *s)
{
    struct ox_topic *t = load_of(s)->topic;
    if (s->err)
        ox_warn(t->shard->log, "topic.resend.failed", "topic=%s error=%s", t->name.full, ox_err_name(s->err));
    return OX_FINISH(s, OX_OK);
}

static ox_step load_opened(struct ox_seq *s)
{
    struct topic_impl *impl = load_of(s);
    struct ox_topic *t = impl->topic;
    if (s->err)
        return OX_FINISH(s, s->err == OX_E_NOT_FOUND ? OX_E_TOPIC_NOT_FOUND : s->err);
    t->ml = impl->open.ml;
    t->loaded_ms = ox_wall_ms(t->shard->loop);
    OX_LIST_EACH(&t->ml->cursors, l) {
        struct ox_cursor *c = CONTAINER_OF(l, struct ox_cursor, link);
        if (!cursor_is_internal(c->name))
            subscription_adopt(t, c);
    }
    ox_seq_bind(s, &impl->scan.op, "resend.scan");
    ox_resend_scan(t, &impl->scan);
    return OX_WAIT(s, load_scanned);
}

// May the log be made? Yes if an administrator asks, if it is a partition of a topic that is there, or if automatic creation is on.
static bool load_may_create(const struct topic_impl *impl, uint32_t partitions)
{
    const struct ox_namespace_policies *ns = &impl->ns.policies;
    if (impl->explicit_create)
        return true;
    if (!impl->create)
        return false;
    if (partitions)
        return true;
    return ns->auto_topic_creation >= 0 ? ns->auto_topic_creation == 1 : impl->topic->shard->config.auto_topic_creation;
}

static ox_step load_open(struct topic_impl *impl, uint32_t partitions)
{
    struct ox_topic *t = impl->topic;
    impl->tried_create = impl->create;
    impl->tried_explicit = impl->explicit_create;
    OX_CLEANUP(ox_free_ptr)
    char *storage = ox_topic_name_storage(&t->name);
    ox_seq_bind(&impl->seq, &impl->open.op, "mledger.open");
    ox_mledger_open(t->shard->mledgers, &impl->open, storage, load_may_create(impl, partitions));
    return OX_WAIT(&impl->seq, load_opened);
}

static uint32_t load_partitions(struct ox_buf value)
{
    json_t *root = json_loadb((const char *)value.data, value.len, 0, NULL);
    json_int_t n = json_integer_value(json_object_get(root, "partitions"));
    json_decref(root);
    return n > 0 && n <= INT32_MAX ? (uint32_t)n : 0;
}

static ox_step load_partitions_got(struct ox_seq *s)
{
    struct topic_impl *impl = load_of(s);
    uint32_t partitions = 0;
    if (s->err && s->err != OX_E_NOT_FOUND)
        return OX_FINISH(s, s->err);
    if (!s->err) {
        partitions = load_partitions(impl->get.value);
        ox_buf_unref(&impl->get.value);
    }
    int32_t number = impl->topic->name.partition;
    if (partitions && number < 0)
        return load_fail(impl, OX_E_UNSUPPORTED, "the topic is partitioned: use one of its partitions");
    if (partitions && (uint32_t)number >= partitions)
        return load_fail(impl, OX_E_TOPIC_NOT_FOUND, "the topic has fewer partitions than this one's number");
    return load_open(impl, partitions);
}

static ox_step load_namespace_got(struct ox_seq *s)
{
    struct topic_impl *impl = load_of(s);
    if (s->err)
        return OX_FINISH(s, s->err);
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_topic_name_partitions_path(&impl->topic->name);
    ox_seq_bind(s, &impl->get.op, "topic.partitions");
    ox_meta_get(impl->topic->shard->meta, &impl->get, path);
    return OX_WAIT(s, load_partitions_got);
}

static ox_step load_start(struct ox_seq *s)
{
    struct topic_impl *impl = load_of(s);
    ox_seq_bind(s, &impl->ns.op, "namespace.get");
    ox_namespace_get(impl->topic->shard, &impl->ns, impl->topic->name.ns);
    return OX_WAIT(s, load_namespace_got);
}

static void load_serve(struct ox_topic *t)
{
    struct topic_impl *impl = t->impl;
    bool close = impl->close_wanted;
    for (struct ox_link *l = ox_list_pop_front(&t->waiters); l; l = ox_list_pop_front(&t->waiters))
        topic_get_finish(CONTAINER_OF(l, struct ox_topic_get, link), t, OX_OK, NULL);
    if (close) {
        topic_close(t, NULL, OX_E_TOPIC_FENCED);
        return;
    }
    t->impl = NULL;
    ox_free(impl);
}

static void load_done(struct ox_seq *s, enum ox_err err)
{
    struct topic_impl *impl = load_of(s);
    struct ox_topic *t = impl->topic;
    struct ox_shard *sh = t->shard;
    if (err) {
        sh->topic_load_failures.value++;
        enum ox_log_level level = ox_err_class(err) == OX_CLASS_CLIENT ? OX_LOG_INFO : OX_LOG_WARN;
        if (ox_log_on(sh->log, level))
            ox_log_line(sh->log, level, "topic.load.failed", "topic=%s step=%s error=%s", t->name.full, s->step,
                        ox_err_name(err));
        topic_gone(t, err);
        return;
    }
    sh->topic_loads.value++;
    sh->topics_count.value++;
    topic_set_state(t, OX_TOPIC_OPEN, "loaded");
    load_serve(t);
}

void topic_load(struct ox_topic *t)
{
    struct topic_impl *impl = ox_malloc(sizeof *impl);
    impl->topic = t;
    ox_list_init(&impl->closers);
    t->impl = impl;
    ox_seq_start(&impl->seq, t->shard->loop, "topic.load", load_start, load_done);
}
