// topic_load.c - loading a topic: the namespace, the partition's number, then the log with its cursors.
#include <string.h>

#include "base/mem.h"
#include "broker/partitions.h"
#include "broker/policing.h"
#include "broker/subscription_int.h"
#include "broker/topic_events.h"
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
    impl->tried_marked = impl->marked;
    return OX_FINISH(&impl->seq, err);
}

bool cursor_is_internal(const char *name)
{
    return !strcmp(name, "pulsar.dedup") || !strcmp(name, "__compaction") || !strncmp(name, "pulsar.repl.", 12);
}

static ox_step load_producers_known(struct ox_seq *s)
{
    return OX_FINISH(s, OX_OK);
}

// What a crash left stored without a receipt will be sent again. Not to know the log's end keeps nobody from using the topic.
static ox_step load_scanned(struct ox_seq *s)
{
    struct ox_topic *t = load_of(s)->topic;
    if (s->err)
        ox_warn(t->shard->log, "topic.resend.failed", "topic=%s error=%s", t->name.full, ox_err_name(s->err));
    ox_seq_bind(s, &load_of(s)->op, "producers.load");
    producers_load(t, &load_of(s)->op);
    return OX_WAIT(s, load_producers_known);
}

static ox_step load_opened(struct ox_seq *s)
{
    struct topic_impl *impl = load_of(s);
    struct ox_topic *t = impl->topic;
    if (s->err)
        return OX_FINISH(s, s->err == OX_E_NOT_FOUND ? OX_E_TOPIC_NOT_FOUND : s->err);
    t->ml = impl->open.ml;
    t->loaded_ms = ox_wall_ms(t->shard->loop);
    t->loaded_ns = ox_now_ns(t->shard->loop);
    topic_policies_changed(t);
    OX_LIST_EACH(&t->ml->cursors, l) {
        struct ox_cursor *c = CONTAINER_OF(l, struct ox_cursor, link);
        if (!cursor_is_internal(c->name))
            subscription_adopt(t, c);
    }
    compaction_load(t);
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

// A non-persistent topic is there as long as it is loaded; a partition that is counted always is.
static ox_step load_without_log(struct topic_impl *impl, uint32_t partitions)
{
    struct ox_topic *t = impl->topic;
    if (!load_may_create(impl, partitions) && !partitions)
        return OX_FINISH(&impl->seq, OX_E_TOPIC_NOT_FOUND);
    t->loaded_ms = ox_wall_ms(t->shard->loop);
    t->loaded_ns = ox_now_ns(t->shard->loop);
    topic_policies_changed(t);
    return OX_FINISH(&impl->seq, OX_OK);
}

static ox_step load_log(struct topic_impl *impl)
{
    struct ox_topic *t = impl->topic;
    OX_CLEANUP(ox_free_ptr)
    char *storage = ox_topic_name_storage(&t->name);
    ox_seq_bind(&impl->seq, &impl->open.op, "mledger.open");
    ox_mledger_open(t->shard->mledgers, &impl->open, storage, load_may_create(impl, impl->partitions));
    return OX_WAIT(&impl->seq, load_opened);
}

static ox_step load_room_got(struct ox_seq *s)
{
    struct topic_impl *impl = load_of(s);
    if (s->err)
        return load_fail(impl, s->err, s->err == OX_E_NOT_ALLOWED ? "Exceed maximum number of topics in namespace." : NULL);
    return load_log(impl);
}

static ox_step load_open(struct topic_impl *impl, uint32_t partitions)
{
    struct ox_topic *t = impl->topic;
    impl->tried_create = impl->create;
    impl->tried_explicit = impl->explicit_create;
    impl->tried_marked = impl->marked;
    if (t->name.domain == OX_DOMAIN_NON_PERSISTENT)
        return load_without_log(impl, partitions);
    impl->partitions = partitions;
    if (!t->policies.max_topics || !load_may_create(impl, partitions))
        return load_log(impl);
    ox_seq_bind(&impl->seq, &impl->room.op, "topic.room");
    ox_topic_room(t->shard, &impl->room, &t->name);
    return OX_WAIT(&impl->seq, load_room_got);
}

// May a partition be loaded? One that is behind the count is refused, and so not made.
static ox_step load_partition(struct topic_impl *impl, uint32_t partitions, bool deleted)
{
    int32_t number = impl->topic->name.partition;
    if (impl->marked)
        return load_open(impl, partitions);
    if (deleted)
        return load_fail(impl, OX_E_TOPIC_NOT_FOUND, "the partitioned topic is being deleted");
    if (partitions && number < 0)
        return load_fail(impl, OX_E_UNSUPPORTED, "the topic is partitioned: use one of its partitions");
    if (partitions && (uint32_t)number >= partitions)
        return load_fail(impl, OX_E_TOPIC_NOT_FOUND, "the topic has fewer partitions than this one's number");
    return load_open(impl, partitions);
}

static ox_step load_partitions_got(struct ox_seq *s)
{
    struct topic_impl *impl = load_of(s);
    uint32_t partitions = 0;
    bool deleted = false;
    if (s->err && s->err != OX_E_NOT_FOUND)
        return OX_FINISH(s, s->err);
    if (!s->err) {
        enum ox_err err = ox_partitions_decode(impl->get.value, &partitions, &deleted);
        ox_buf_unref(&impl->get.value);
        if (err)
            return OX_FINISH(s, err);
    }
    return load_partition(impl, partitions, deleted);
}

static ox_step load_policies_got(struct ox_seq *s)
{
    struct topic_impl *impl = load_of(s);
    if (s->err)
        return OX_FINISH(s, s->err);
    scope_join(impl->scope.scope, impl->topic);
    OX_CLEANUP(ox_free_ptr)
    char *path = ox_topic_name_partitions_path(&impl->topic->name);
    ox_seq_bind(s, &impl->get.op, "topic.partitions");
    ox_meta_get(impl->topic->shard->meta, &impl->get, path);
    return OX_WAIT(s, load_partitions_got);
}

static ox_step load_namespace_got(struct ox_seq *s)
{
    struct topic_impl *impl = load_of(s);
    bool going = s->err == OX_E_NAMESPACE_NOT_FOUND && impl->ns.policies.deleted;
    if (s->err && !(going && impl->marked))
        return load_fail(impl, s->err, NULL);
    impl->scope.system = ox_topic_name_is_system(&impl->topic->name);
    ox_seq_bind(s, &impl->scope.op, "policies.get");
    scope_get(impl->topic->shard, &impl->scope, impl->topic->name.ns);
    return OX_WAIT(s, load_policies_got);
}

static ox_step load_start(struct ox_seq *s)
{
    struct topic_impl *impl = load_of(s);
    const struct ox_broker_config *c = &impl->topic->shard->config;
    bool persistent = impl->topic->name.domain == OX_DOMAIN_PERSISTENT;
    if (!(persistent ? c->persistent_topics : c->non_persistent_topics) && !ox_topic_name_is_system(&impl->topic->name))
        return load_fail(impl, OX_E_NOT_ALLOWED,
                         "topics of this domain are switched off (enablePersistentTopics, enableNonPersistentTopics)");
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
    sh->topics_loading.value--;
    if (err) {
        bool unused = err == OX_E_TOPIC_NOT_FOUND && ox_topic_name_is_system(&t->name); // the broker looks whether there is one
        sh->topic_load_failures.value += !unused;
        enum ox_log_level level = unused                                 ? OX_LOG_DEBUG
                                  : ox_err_class(err) == OX_CLASS_CLIENT ? OX_LOG_INFO
                                                                         : OX_LOG_WARN;
        if (ox_log_on(sh->log, level))
            ox_log_line(sh->log, level, "topic.load.failed", "topic=%s step=%s error=%s", t->name.full, s->step,
                        ox_err_name(err));
        topic_gone(t, err);
        return;
    }
    sh->topic_loads.value++;
    ox_summary_add(&sh->topic_load_times, (ox_now_ns(sh->loop) - impl->since_ns) / 1000);
    sh->topics_count.value++;
    topic_set_state(t, OX_TOPIC_OPEN, "loaded");
    policing_opened(t);
    topic_events_opened(t);
    load_serve(t);
}

void topic_load(struct ox_topic *t)
{
    struct topic_impl *impl = ox_malloc(sizeof *impl);
    impl->topic = t;
    impl->since_ns = ox_now_ns(t->shard->loop);
    t->shard->topics_loading.value++;
    ox_list_init(&impl->closers);
    t->impl = impl;
    ox_seq_start(&impl->seq, t->shard->loop, "topic.load", load_start, load_done);
}
