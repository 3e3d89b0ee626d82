// partitions.c - partitioned topics: reading the count, making, growing, deleting.
#include "broker/partitions.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "broker/partition_seed.h"
#include "broker/topic_int.h"
#include "broker/topic_policies.h"

enum ox_err ox_partitions_decode(struct ox_buf node, uint32_t *ret_count, bool *ret_deleted)
{
    json_t *root = json_loadb((const char *)node.data, node.len, 0, NULL);
    json_t *count = json_object_get(root, "partitions");
    bool good = json_is_integer(count) && json_integer_value(count) >= 0 && json_integer_value(count) <= INT32_MAX;
    if (good) {
        *ret_count = (uint32_t)json_integer_value(count);
        *ret_deleted = json_is_true(json_object_get(root, "deleted"));
    }
    json_decref(root);
    return good ? OX_OK : OX_E_CORRUPT;
}

struct ox_buf ox_partitions_encode(struct ox_buf before, uint32_t count, bool deleted)
{
    json_t *root = json_loadb((const char *)before.data, before.len, 0, NULL);
    if (!json_is_object(root)) {
        json_decref(root);
        root = json_object();
    }
    json_object_set_new(root, "partitions", json_integer(count));
    json_object_set_new(root, "deleted", json_boolean(deleted));
    char *text = json_dumps(root, JSON_COMPACT);
    struct ox_buf node = ox_buf_copy(text, strlen(text));
    json_decref(root);
    free(text);
    return node;
}

void ox_partition_name(struct ox_topic_name *ret, const struct ox_topic_name *base, uint32_t i)
{
    *ret = (struct ox_topic_name){.domain = base->domain,
                                  .full = ox_asprintf("%s-partition-%u", base->full, (unsigned)i),
                                  .tenant = ox_strdup(base->tenant),
                                  .cluster = base->cluster ? ox_strdup(base->cluster) : NULL,
                                  .ns = ox_strdup(base->ns),
                                  .local = ox_asprintf("%s-partition-%u", base->local, (unsigned)i),
                                  .partition = (int32_t)i};
}

// The node of the topic itself, as if it were not partitioned.
static char *plain_path(const struct ox_topic_name *name)
{
    OX_CLEANUP(ox_free_ptr)
    char *storage = ox_topic_name_storage(name);
    return ox_asprintf("/managed-ledgers/%s", storage);
}

// The seed of a topic's operation; freed by its done function.
static struct ox_seed *seed_new(struct ox_shard *sh, const struct ox_topic_name *name, const char *path)
{
    struct ox_seed *e = ox_malloc(sizeof *e);
    e->shard = sh;
    e->name = name;
    e->path = path;
    return e;
}

// ---- how many

static ox_step get_plain(struct ox_seq *s);

static struct ox_partitions_get *get_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct ox_partitions_get, seq);
}

// Of a partition's own name: 0 if it is counted, or is a plain topic that looks like one.
static enum ox_err get_answer(struct ox_partitions_get *p)
{
    uint32_t count;
    bool deleted;
    enum ox_err err = ox_partitions_decode(p->get.value, &count, &deleted);
    ox_buf_unref(&p->get.value);
    if (err)
        return err;
    if (deleted || (p->name.partition >= 0 && count && (uint32_t)p->name.partition >= count))
        return OX_E_TOPIC_NOT_FOUND;
    p->partitions = p->name.partition >= 0 ? 0 : count;
    return OX_OK;
}

static ox_step get_got(struct ox_seq *s)
{
    struct ox_partitions_get *p = get_of(s);
    if (s->err == OX_E_NOT_FOUND)
        return OX_GOTO(s, get_plain);
    return OX_FINISH(s, s->err ? s->err : get_answer(p));
}

static ox_step get_node(struct ox_seq *s)
{
    struct ox_partitions_get *p = get_of(s);
    ox_seq_bind(s, &p->get.op, "partitions.get");
    ox_meta_get(p->shard->meta, &p->get, p->path);
    return OX_WAIT(s, get_got);
}

static ox_step get_namespace_got(struct ox_seq *s)
{
    return s->err ? OX_FINISH(s, s->err) : OX_GOTO(s, get_node);
}

static ox_step get_start(struct ox_seq *s)
{
    struct ox_partitions_get *p = get_of(s);
    ox_seq_bind(s, &p->ns.op, "namespace.get");
    ox_namespace_get(p->shard, &p->ns, p->name.ns);
    return OX_WAIT(s, get_namespace_got);
}

static ox_step get_put(struct ox_seq *s)
{
    struct ox_partitions_get *p = get_of(s);
    if (s->err == OX_E_BAD_VERSION)
        return OX_GOTO(s, get_node);
    if (!s->err)
        ox_free(p->put.path);
    return OX_FINISH(s, s->err);
}

static ox_step get_room_got(struct ox_seq *s)
{
    struct ox_partitions_get *p = get_of(s);
    if (s->err)
        return OX_FINISH(s, s->err);
    struct ox_buf value = ox_partitions_encode(ox_buf_empty(), p->partitions, false);
    ox_seq_bind(&p->seq, &p->put.op, "partitions.put");
    ox_meta_put(p->shard->meta, &p->put, p->path, value, OX_META_ABSENT, 0);
    ox_buf_unref(&value);
    return OX_WAIT(&p->seq, get_put);
}

// Nowhere: made, if that is wanted and allowed. Its partitions are made by their first users.
static ox_step get_make(struct ox_partitions_get *p)
{
    const struct ox_namespace_policies *ns = &p->ns.policies;
    const struct ox_broker_config *c = &p->shard->config;
    bool own = ns->auto_topic_creation >= 0;
    bool allowed = own ? ns->auto_topic_creation == 1 : c->auto_topic_creation;
    if (!p->create || !allowed)
        return OX_FINISH(&p->seq, OX_E_TOPIC_NOT_FOUND);
    if (p->name.partition >= 0 || !(own ? ns->auto_topic_partitioned : c->auto_topic_partitioned))
        return OX_FINISH(&p->seq, OX_OK);
    uint32_t count = own ? ns->default_partitions : c->default_partitions;
    p->partitions = count && count <= OX_PARTITIONS_MAX ? count : 1;
    p->room.partitions = p->partitions;
    ox_seq_bind(&p->seq, &p->room.op, "topic.room");
    ox_topic_room(p->shard, &p->room, &p->name);
    return OX_WAIT(&p->seq, get_room_got);
}

static ox_step get_plain_got(struct ox_seq *s)
{
    struct ox_partitions_get *p = get_of(s);
    if (s->err == OX_E_NOT_FOUND)
        return get_make(p);
    if (!s->err)
        ox_buf_unref(&p->get.value);
    return OX_FINISH(s, s->err);
}

// Not a partitioned topic: is there a plain one?
static ox_step get_plain(struct ox_seq *s)
{
    struct ox_partitions_get *p = get_of(s);
    if (p->name.domain == OX_DOMAIN_NON_PERSISTENT) {
        const struct ox_topic *t = ox_topic_find(p->shard, p->name.full);
        return t && t->state == OX_TOPIC_OPEN ? OX_FINISH(s, OX_OK) : get_make(p);
    }
    OX_CLEANUP(ox_free_ptr)
    char *path = plain_path(&p->name);
    ox_seq_bind(s, &p->get.op, "partitions.plain");
    ox_meta_get(p->shard->meta, &p->get, path);
    return OX_WAIT(s, get_plain_got);
}

static void get_done(struct ox_seq *s, enum ox_err err)
{
    struct ox_partitions_get *p = get_of(s);
    ox_free(p->path);
    ox_topic_name_fini(&p->name);
    ox_op_finish(&p->op, err);
}

void ox_partitions_get(struct ox_shard *sh, struct ox_partitions_get *p, const struct ox_topic_name *name)
{
    ox_op_begin(&p->op);
    p->shard = sh;
    p->partitions = 0;
    ox_topic_name_copy(&p->name, name);
    p->path = ox_topic_name_partitions_path(name);
    ox_seq_start(&p->seq, sh->loop, "partitions.get", get_start, get_done);
}

// ---- making

static struct ox_partitions_create *create_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct ox_partitions_create, seq);
}

static ox_step create_seeded(struct ox_seq *s)
{
    return OX_FINISH(s, s->err == OX_E_BAD_VERSION ? OX_E_EXISTS : s->err);
}

static ox_step create_seed(struct ox_partitions_create *p)
{
    p->seed = seed_new(p->shard, &p->name, p->path);
    p->seed->count = p->partitions;
    p->seed->expected = OX_META_ABSENT;
    ox_seq_bind(&p->seq, &p->seed->op, "partitions.seed");
    partition_seed(p->seed);
    return OX_WAIT(&p->seq, create_seeded);
}

static ox_step create_plain_got(struct ox_seq *s)
{
    struct ox_partitions_create *p = create_of(s);
    if (s->err == OX_E_NOT_FOUND)
        return create_seed(p);
    if (!s->err)
        ox_buf_unref(&p->get.value);
    return OX_FINISH(s, s->err ? s->err : OX_E_EXISTS);
}

static ox_step create_node_got(struct ox_seq *s)
{
    struct ox_partitions_create *p = create_of(s);
    if (!s->err)
        ox_buf_unref(&p->get.value);
    if (s->err != OX_E_NOT_FOUND)
        return OX_FINISH(s, s->err ? s->err : OX_E_EXISTS);
    if (p->name.domain == OX_DOMAIN_NON_PERSISTENT)
        return ox_topic_find(p->shard, p->name.full) ? OX_FINISH(s, OX_E_EXISTS) : create_seed(p);
    OX_CLEANUP(ox_free_ptr)
    char *path = plain_path(&p->name);
    ox_seq_bind(s, &p->get.op, "partitions.plain");
    ox_meta_get(p->shard->meta, &p->get, path);
    return OX_WAIT(s, create_plain_got);
}

static ox_step create_room_got(struct ox_seq *s)
{
    struct ox_partitions_create *p = create_of(s);
    if (s->err)
        return OX_FINISH(s, s->err);
    ox_seq_bind(s, &p->get.op, "partitions.get");
    ox_meta_get(p->shard->meta, &p->get, p->path);
    return OX_WAIT(s, create_node_got);
}

static ox_step create_namespace_got(struct ox_seq *s)
{
    struct ox_partitions_create *p = create_of(s);
    if (s->err)
        return OX_FINISH(s, s->err);
    p->room.partitions = p->partitions;
    ox_seq_bind(s, &p->room.op, "topic.room");
    ox_topic_room(p->shard, &p->room, &p->name);
    return OX_WAIT(s, create_room_got);
}

static ox_step create_start(struct ox_seq *s)
{
    struct ox_partitions_create *p = create_of(s);
    if (p->partitions == 0 || p->partitions > OX_PARTITIONS_MAX || p->name.partition >= 0)
        return OX_FINISH(s, OX_E_INVALID);
    ox_seq_bind(s, &p->ns.op, "namespace.get");
    ox_namespace_get(p->shard, &p->ns, p->name.ns);
    return OX_WAIT(s, create_namespace_got);
}

static void create_done(struct ox_seq *s, enum ox_err err)
{
    struct ox_partitions_create *p = create_of(s);
    ox_free(p->seed);
    ox_free(p->path);
    ox_topic_name_fini(&p->name);
    ox_op_finish(&p->op, err);
}

void ox_partitions_create(struct ox_shard *sh, struct ox_partitions_create *p, const struct ox_topic_name *name)
{
    ox_op_begin(&p->op);
    p->shard = sh;
    p->seed = NULL;
    ox_topic_name_copy(&p->name, name);
    p->path = ox_topic_name_partitions_path(name);
    ox_seq_start(&p->seq, sh->loop, "partitions.create", create_start, create_done);
}

// ---- growing

static struct ox_partitions_update *update_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct ox_partitions_update, seq);
}

static ox_step update_fail(struct ox_partitions_update *p, enum ox_err err, const char *why)
{
    p->why = why;
    return OX_FINISH(&p->seq, err);
}

static ox_step update_seeded(struct ox_seq *s)
{
    if (s->err == OX_E_BAD_VERSION)
        return update_fail(update_of(s), OX_E_BUSY, "the topic was changed by somebody else meanwhile: try again");
    return OX_FINISH(s, s->err);
}

static ox_step update_seed(struct ox_partitions_update *p)
{
    p->seed = seed_new(p->shard, &p->name, p->path);
    p->seed->old = p->had;
    p->seed->count = p->partitions ? p->partitions : p->had;
    p->seed->expected = p->get.stat.version;
    p->seed->node = p->get.value;
    ox_seq_bind(&p->seq, &p->seed->op, "partitions.seed");
    partition_seed(p->seed);
    return OX_WAIT(&p->seq, update_seeded);
}

static ox_step update_roomed(struct ox_seq *s)
{
    struct ox_partitions_update *p = update_of(s);
    if (s->err)
        return update_fail(p, s->err, s->err == OX_E_NOT_ALLOWED ? "Exceed maximum number of topics in namespace." : NULL);
    return update_seed(p);
}

static ox_step update_room(struct ox_partitions_update *p)
{
    p->room.partitions = p->partitions - p->had;
    ox_seq_bind(&p->seq, &p->room.op, "topic.room");
    ox_topic_room(p->shard, &p->room, &p->name);
    return OX_WAIT(&p->seq, update_roomed);
}

static ox_step update_got(struct ox_seq *s)
{
    struct ox_partitions_update *p = update_of(s);
    bool deleted = false;
    if (s->err)
        return OX_FINISH(s, s->err == OX_E_NOT_FOUND ? OX_E_TOPIC_NOT_FOUND : s->err);
    enum ox_err err = ox_partitions_decode(p->get.value, &p->had, &deleted);
    if (err)
        return OX_FINISH(s, err);
    if (deleted)
        return update_fail(p, OX_E_TOPIC_NOT_FOUND, "the topic is being deleted");
    if (p->partitions && p->partitions < p->had)
        return update_fail(p, OX_E_INVALID, "the number of partitions cannot be less than the present one");
    return p->partitions > p->had ? update_room(p) : update_seed(p);
}

static ox_step update_namespace_got(struct ox_seq *s)
{
    struct ox_partitions_update *p = update_of(s);
    if (s->err)
        return OX_FINISH(s, s->err);
    ox_seq_bind(s, &p->get.op, "partitions.get");
    ox_meta_get(p->shard->meta, &p->get, p->path);
    return OX_WAIT(s, update_got);
}

static ox_step update_start(struct ox_seq *s)
{
    struct ox_partitions_update *p = update_of(s);
    if (p->partitions > OX_PARTITIONS_MAX || p->name.partition >= 0)
        return update_fail(p, OX_E_INVALID, "too many partitions, or the name of a partition");
    ox_seq_bind(s, &p->ns.op, "namespace.get");
    ox_namespace_get(p->shard, &p->ns, p->name.ns);
    return OX_WAIT(s, update_namespace_got);
}

static void update_done(struct ox_seq *s, enum ox_err err)
{
    struct ox_partitions_update *p = update_of(s);
    if (err)
        ox_warn(p->shard->log, "partitions.update.failed", "topic=%s had=%u wanted=%u step=%s error=%s", p->name.full,
                (unsigned)p->had, (unsigned)p->partitions, s->step, ox_err_name(err));
    ox_free(p->seed);
    ox_buf_unref(&p->get.value);
    ox_free(p->path);
    ox_topic_name_fini(&p->name);
    ox_op_finish(&p->op, err);
}

void ox_partitions_update(struct ox_shard *sh, struct ox_partitions_update *p, const struct ox_topic_name *name)
{
    ox_op_begin(&p->op);
    p->shard = sh;
    p->seed = NULL;
    p->get.value = ox_buf_empty();
    p->why = NULL;
    p->had = 0;
    ox_topic_name_copy(&p->name, name);
    p->path = ox_topic_name_partitions_path(name);
    ox_seq_start(&p->seq, sh->loop, "partitions.update", update_start, update_done);
}

// ---- deleting

static ox_step delete_part(struct ox_seq *s);
static ox_step delete_policies(struct ox_seq *s);
static ox_step delete_fence(struct ox_partitions_delete *p);

static struct ox_partitions_delete *delete_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct ox_partitions_delete, seq);
}

static ox_step delete_unmarked(struct ox_seq *s)
{
    struct ox_partitions_delete *p = delete_of(s);
    if (!s->err)
        ox_free(p->put.path);
    return OX_FINISH(s, p->err);
}

static ox_step delete_mark(struct ox_partitions_delete *p, bool deleted, ox_step_fn next, const char *step)
{
    struct ox_buf value = ox_partitions_encode(p->get.value, p->count, deleted);
    ox_seq_bind(&p->seq, &p->put.op, "partitions.mark");
    ox_meta_put(p->shard->meta, &p->put, p->path, value, p->version, 0);
    ox_buf_unref(&value);
    return ox_seq_goto(&p->seq, next, step, OX_STEP_WAIT);
}

static ox_step delete_node_gone(struct ox_seq *s)
{
    return OX_FINISH(s, s->err == OX_E_NOT_FOUND ? OX_OK : s->err);
}

// Some partitions at once: most of the time is spent waiting for the disk.
#define DELETES_AT_ONCE 16u
struct partition_delete {
    struct ox_topic_delete delete_;
    struct ox_partitions_delete *whole;
};

static ox_step delete_part_gone(struct ox_seq *s)
{
    struct ox_partitions_delete *p = delete_of(s);
    if (s->err == OX_E_BUSY)
        return delete_mark(p, false, delete_unmarked, "delete_unmarked");
    return s->err ? OX_FINISH(s, s->err) : OX_GOTO(s, delete_part);
}

// Those that were never made are no error.
static void delete_part_done(struct ox_op *op)
{
    struct ox_partitions_delete *p = CONTAINER_OF(op, struct partition_delete, delete_.op)->whole;
    if (op->err && op->err != OX_E_TOPIC_NOT_FOUND && !p->err)
        p->err = op->err;
    OX_CRASHPOINT(p->shard->loop, "partitions.after_delete");
    if (--p->running == 0)
        ox_seq_resume(&p->seq, p->err);
}

static void delete_part_start(struct ox_partitions_delete *p, struct partition_delete *one)
{
    struct ox_topic_name name;
    ox_partition_name(&name, &p->name, p->at++);
    *one = (struct partition_delete){.delete_ = {.force = p->force, .marked = true, .absent = p->only_empty}, .whole = p};
    ox_op_init(&one->delete_.op, p->shard->loop, delete_part_done, "partition.delete");
    p->running++;
    ox_topic_delete(p->shard, &one->delete_, &name);
    ox_topic_name_fini(&name);
}

static ox_step delete_node(struct ox_seq *s)
{
    struct ox_partitions_delete *p = delete_of(s);
    ox_seq_bind(s, &p->del.op, "partitions.remove");
    ox_meta_del(p->shard->meta, &p->del, p->path, p->version);
    return OX_WAIT(s, delete_node_gone);
}

static ox_step delete_part(struct ox_seq *s)
{
    struct ox_partitions_delete *p = delete_of(s);
    if (p->at == p->count)
        return OX_GOTO(s, delete_policies);
    if (!p->parts)
        p->parts = ox_calloc(DELETES_AT_ONCE, sizeof *p->parts);
    for (uint32_t i = 0; i < DELETES_AT_ONCE && p->at < p->count; i++)
        delete_part_start(p, &p->parts[i]);
    return OX_WAIT(s, delete_part_gone);
}

// The topic's own policies go when its partitions have: one that stays keeps its retention. Where there can be none, that is no error.
struct partitions_forget {
    struct ox_topic_policies_get get;
    struct ox_topic_policies_update update;
};

static bool forget_is_needless(enum ox_err err)
{
    return err == OX_E_UNSUPPORTED || err == OX_E_NAMESPACE_NOT_FOUND || err == OX_E_NOT_ALLOWED;
}

static ox_step delete_forgotten(struct ox_seq *s)
{
    return s->err && !forget_is_needless(s->err) ? OX_FINISH(s, s->err) : OX_GOTO(s, delete_node);
}

static ox_step delete_policies_got(struct ox_seq *s)
{
    struct partitions_forget *f = delete_of(s)->forget;
    if (s->err && !forget_is_needless(s->err))
        return OX_FINISH(s, s->err);
    if (s->err || !f->get.own)
        return OX_GOTO(s, delete_node);
    json_decref(f->get.own);
    ox_seq_bind(s, &f->update.op, "partitions.forget");
    ox_topic_policies_update(delete_of(s)->shard, &f->update, &delete_of(s)->name);
    return OX_WAIT(s, delete_forgotten);
}

static ox_step delete_policies(struct ox_seq *s)
{
    struct ox_partitions_delete *p = delete_of(s);
    p->forget = ox_malloc(sizeof *p->forget);
    ox_seq_bind(s, &p->forget->get.op, "partitions.policies");
    ox_topic_policies_get(p->shard, &p->forget->get, &p->name);
    return OX_WAIT(s, delete_policies_got);
}

static ox_step delete_marked(struct ox_seq *s)
{
    struct ox_partitions_delete *p = delete_of(s);
    if (s->err)
        return OX_FINISH(s, s->err == OX_E_BAD_VERSION ? OX_E_BUSY : s->err);
    ox_free(p->put.path);
    p->version = p->put.stat.version;
    OX_CRASHPOINT(s->loop, "partitions.after_mark");
    return delete_fence(p);
}

static struct ox_topic *delete_loaded(const struct ox_partitions_delete *p, uint32_t i)
{
    struct ox_topic_name name;
    ox_partition_name(&name, &p->name, i);
    struct ox_topic *t = ox_topic_find(p->shard, name.full);
    ox_topic_name_fini(&name);
    return t;
}

static bool delete_is_used(const struct ox_partitions_delete *p)
{
    for (uint32_t i = 0; i < p->count && (!p->force || p->only_empty); i++) {
        const struct ox_topic *t = delete_loaded(p, i);
        if (t && (p->only_empty || ox_topic_is_used(t)))
            return true;
    }
    return false;
}

// Behind the mark nobody loads a partition: with those that are loaded closed too it is decided for all of them at once whether they go.
static ox_step delete_fence(struct ox_partitions_delete *p)
{
    if (delete_is_used(p)) {
        p->err = OX_E_BUSY;
        return delete_mark(p, false, delete_unmarked, "delete_unmarked");
    }
    for (uint32_t i = 0; i < p->count && !p->force; i++) {
        struct ox_topic *t = delete_loaded(p, i);
        if (t)
            topic_close(t, NULL, OX_E_TOPIC_FENCED);
    }
    return OX_GOTO(&p->seq, delete_part);
}

static ox_step delete_got(struct ox_seq *s)
{
    struct ox_partitions_delete *p = delete_of(s);
    bool deleted = false;
    if (s->err)
        return OX_FINISH(s, s->err == OX_E_NOT_FOUND ? OX_E_TOPIC_NOT_FOUND : s->err);
    enum ox_err err = ox_partitions_decode(p->get.value, &p->count, &deleted);
    if (err)
        return OX_FINISH(s, err);
    p->version = p->get.stat.version;
    if (delete_is_used(p))
        return OX_FINISH(s, OX_E_BUSY);
    return deleted ? delete_fence(p) : delete_mark(p, true, delete_marked, "delete_marked");
}

static ox_step delete_start(struct ox_seq *s)
{
    struct ox_partitions_delete *p = delete_of(s);
    if (p->name.partition >= 0)
        return OX_FINISH(s, OX_E_TOPIC_NOT_FOUND);
    ox_seq_bind(s, &p->get.op, "partitions.get");
    ox_meta_get(p->shard->meta, &p->get, p->path);
    return OX_WAIT(s, delete_got);
}

static void delete_done(struct ox_seq *s, enum ox_err err)
{
    struct ox_partitions_delete *p = delete_of(s);
    if (err)
        ox_warn(p->shard->log, "partitions.delete.failed", "topic=%s partition=%u of=%u step=%s error=%s", p->name.full,
                (unsigned)p->at, (unsigned)p->count, s->step, ox_err_name(err));
    ox_free(p->forget);
    ox_free(p->parts);
    ox_buf_unref(&p->get.value);
    ox_free(p->path);
    ox_topic_name_fini(&p->name);
    ox_op_finish(&p->op, err);
}

void ox_partitions_delete(struct ox_shard *sh, struct ox_partitions_delete *p, const struct ox_topic_name *name)
{
    ox_op_begin(&p->op);
    p->shard = sh;
    p->at = p->count = p->running = 0;
    p->err = OX_OK;
    p->parts = NULL;
    p->get.value = ox_buf_empty();
    p->forget = NULL;
    ox_topic_name_copy(&p->name, name);
    p->path = ox_topic_name_partitions_path(name);
    ox_seq_start(&p->seq, sh->loop, "partitions.delete", delete_start, delete_done);
}
