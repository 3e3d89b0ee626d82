// partition_seed.c - making partitions by their nodes alone: look what is there, read the subscriptions, write all that is missing and the count.
#include "broker/partition_seed.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "broker/topic_int.h"
#include "wire/mldata.h"

#define SEED_STEPS_MAX 1000u                // of one transaction
#define SEED_ARENA_BYTES (8u * 1024 * 1024) // one cursor's node, unpacked

static ox_step seed_look(struct ox_seq *s);
static ox_step seed_looked(struct ox_seq *s);
static ox_step seed_read(struct ox_seq *s);
static ox_step seed_unload(struct ox_seq *s);
static ox_step seed_write(struct ox_seq *s);

static struct ox_seed *seed_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct ox_seed, seq);
}

static char *seed_log_path(const struct ox_seed *e, uint32_t part)
{
    struct ox_topic_name name;
    ox_partition_name(&name, e->name, part);
    OX_CLEANUP(ox_free_ptr)
    char *storage = ox_topic_name_storage(&name);
    ox_topic_name_fini(&name);
    return ox_asprintf("/managed-ledgers/%s", storage);
}

// ---- what is there

static bool seed_knows(const struct ox_seed *e, const char *node)
{
    for (size_t i = 0; i < e->subscription_count; i++)
        if (!strcmp(e->subscriptions[i].node, node))
            return true;
    return false;
}

static void seed_note(struct ox_seed *e, const char *node)
{
    if (cursor_is_internal(node) || seed_knows(e, node))
        return;
    e->subscriptions = ox_realloc(e->subscriptions, e->subscription_count + 1, sizeof *e->subscriptions);
    e->subscriptions[e->subscription_count++] = (struct seed_subscription){.node = ox_strdup(node), .part = e->at};
}

static ox_step seed_look_next(struct ox_seed *e)
{
    e->at++;
    return OX_GOTO(&e->seq, seed_look);
}

static ox_step seed_looked(struct ox_seq *s)
{
    struct ox_seed *e = seed_of(s);
    struct seed_part *part = &e->parts[e->at];
    if (s->err && s->err != OX_E_NOT_FOUND)
        return OX_FINISH(s, s->err);
    part->exists = !s->err;
    if (s->err)
        return seed_look_next(e);
    for (size_t i = 0; i < e->children.count; i++) {
        if (e->at < e->old)
            seed_note(e, e->children.names[i]);
        else
            ox_kv_set(&part->have, e->children.names[i], "");
    }
    ox_meta_names_free(e->children.names, e->children.count);
    return seed_look_next(e);
}

static ox_step seed_look(struct ox_seq *s)
{
    struct ox_seed *e = seed_of(s);
    bool persistent = e->name->domain == OX_DOMAIN_PERSISTENT;
    if (!persistent || e->at == (e->gathered ? e->old : e->count)) {
        e->at = 0;
        e->sub_at = e->known;
        return OX_GOTO(s, seed_read);
    }
    OX_CLEANUP(ox_free_ptr)
    char *path = seed_log_path(e, e->at);
    ox_seq_bind(s, &e->children.op, "partitions.look");
    ox_meta_children(e->shard->meta, &e->children, path);
    return OX_WAIT(s, seed_looked);
}

// ---- what a new subscription's node says

static bool property_is_users(const Mldata__StringProperty *p)
{
    return strncmp(p->name, "#pulsar.internal.", 17) != 0 && strncmp(p->name, "_pulsar.", 8) != 0;
}

// At the beginning of a log without ledgers, with the user's properties of the other one.
static struct ox_buf seed_cursor(const struct ox_seed *e, const Mldata__ManagedCursorInfo *from)
{
    Mldata__ManagedCursorInfo info = MLDATA__MANAGED_CURSOR_INFO__INIT;
    info.cursors_ledger_id = -1;
    info.has_mark_delete_ledger_id = info.has_mark_delete_entry_id = info.has_last_active = 1;
    info.mark_delete_ledger_id = info.mark_delete_entry_id = -1;
    info.last_active = (int64_t)ox_wall_ms(e->shard->loop);
    OX_CLEANUP(ox_free_ptr)
    void *properties = ox_calloc(from->n_cursor_properties + 1, sizeof *info.cursor_properties);
    info.cursor_properties = properties;
    for (size_t i = 0; i < from->n_cursor_properties; i++)
        if (property_is_users(from->cursor_properties[i]))
            info.cursor_properties[info.n_cursor_properties++] = from->cursor_properties[i];
    return ox_cursor_encode(&info, OX_RECORD_PLAIN);
}

static void seed_forget(struct ox_seed *e, size_t i)
{
    ox_free(e->subscriptions[i].node);
    ox_buf_unref(&e->subscriptions[i].value);
    e->subscriptions[i] = e->subscriptions[--e->subscription_count];
}

static ox_step seed_read_got(struct ox_seq *s)
{
    struct ox_seed *e = seed_of(s);
    struct ox_arena arena;
    Mldata__ManagedCursorInfo *info = NULL;
    if (s->err == OX_E_NOT_FOUND) { // unsubscribed meanwhile
        seed_forget(e, e->sub_at);
        return OX_GOTO(s, seed_read);
    }
    if (s->err)
        return OX_FINISH(s, s->err);
    ox_arena_init(&arena, SEED_ARENA_BYTES);
    enum ox_err err = ox_cursor_decode(&arena, e->get.value, &info, NULL);
    if (!err)
        e->subscriptions[e->sub_at++].value = seed_cursor(e, info);
    ox_arena_fini(&arena);
    ox_buf_unref(&e->get.value);
    return err ? OX_FINISH(s, err) : OX_GOTO(s, seed_read);
}

// All subscriptions that were found; then they are looked for once more, since looking takes a while.
static ox_step seed_read(struct ox_seq *s)
{
    struct ox_seed *e = seed_of(s);
    if (e->sub_at < e->subscription_count) {
        const struct seed_subscription *sub = &e->subscriptions[e->sub_at];
        OX_CLEANUP(ox_free_ptr)
        char *log = seed_log_path(e, sub->part);
        OX_CLEANUP(ox_free_ptr)
        char *path = ox_asprintf("%s/%s", log, sub->node);
        ox_seq_bind(s, &e->get.op, "partitions.subscription");
        ox_meta_get(e->shard->meta, &e->get, path);
        return OX_WAIT(s, seed_read_got);
    }
    bool again = !e->gathered || e->subscription_count > e->known;
    e->gathered = true;
    e->known = e->subscription_count;
    return again && e->old ? OX_GOTO(s, seed_look) : OX_GOTO(s, seed_unload);
}

// ---- writing

static ox_step seed_unloaded(struct ox_seq *s)
{
    return s->err ? OX_FINISH(s, s->err) : OX_GOTO(s, seed_unload);
}

// A plain topic of a new partition's name may be loaded: it would not see the subscriptions that are made behind its back.
static ox_step seed_unload(struct ox_seq *s)
{
    struct ox_seed *e = seed_of(s);
    e->at = OX_MAX(e->at, e->old);
    for (; e->at < e->count && e->subscription_count; e->at++) {
        struct ox_topic_name name;
        if (!e->parts[e->at].exists)
            continue;
        ox_partition_name(&name, e->name, e->at);
        struct ox_topic *t = ox_topic_find(e->shard, name.full);
        ox_topic_name_fini(&name);
        if (!t)
            continue;
        ox_seq_bind(s, &e->step, "partitions.unload");
        topic_close(t, &e->step, OX_E_TOPIC_FENCED);
        return OX_WAIT(s, seed_unloaded);
    }
    e->at = 0;
    e->sub_at = 0;
    return OX_GOTO(s, seed_write);
}

static void seed_add(struct ox_seed *e, char *take_path, struct ox_buf take_value, int64_t expected)
{
    e->steps[e->step_count++] =
        (struct ox_meta_step){.kind = OX_META_PUT, .path = take_path, .value = take_value, .expected = expected};
}

static void seed_add_subscription(struct ox_seed *e, const char *log, const struct seed_subscription *sub)
{
    if (!ox_kv_find(&e->parts[e->at].have, sub->node))
        seed_add(e, ox_asprintf("%s/%s", log, sub->node), ox_buf_ref(sub->value), OX_META_ABSENT);
}

// As much of the partition as fits; true if all of it.
static bool seed_add_part(struct ox_seed *e)
{
    struct seed_part *part = &e->parts[e->at];
    if (e->at < e->old && part->exists)
        return true;
    OX_CLEANUP(ox_free_ptr)
    char *log = seed_log_path(e, e->at);
    if (!part->exists && !part->begun)
        seed_add(e, ox_strdup(log), ox_buf_empty(), OX_META_ABSENT);
    part->begun = true;
    for (; e->sub_at < e->subscription_count && e->step_count < SEED_STEPS_MAX; e->sub_at++)
        seed_add_subscription(e, log, &e->subscriptions[e->sub_at]);
    return e->sub_at == e->subscription_count;
}

static void seed_steps_free(struct ox_seed *e)
{
    for (size_t i = 0; i < e->step_count; i++) {
        ox_free((char *)(uintptr_t)e->steps[i].path);
        ox_buf_unref(&e->steps[i].value);
    }
    ox_free(e->steps);
    e->steps = NULL;
    e->step_count = 0;
}

static ox_step seed_written(struct ox_seq *s)
{
    struct ox_seed *e = seed_of(s);
    bool last = e->at > e->count;
    seed_steps_free(e);
    if (s->err || last)
        return OX_FINISH(s, s->err);
    OX_CRASHPOINT(s->loop, "partitions.after_part");
    return OX_GOTO(s, seed_write);
}

static ox_step seed_write(struct ox_seq *s)
{
    struct ox_seed *e = seed_of(s);
    e->steps = ox_calloc(SEED_STEPS_MAX + 2, sizeof *e->steps);
    bool persistent = e->name->domain == OX_DOMAIN_PERSISTENT;
    for (e->at = persistent ? e->at : e->count; e->at < e->count && e->step_count < SEED_STEPS_MAX; e->at++) {
        if (!seed_add_part(e))
            break;
        e->sub_at = 0;
    }
    if (e->at == e->count && e->step_count < SEED_STEPS_MAX) {
        seed_add(e, ox_strdup(e->path), ox_partitions_encode(e->node, e->count, false), e->expected);
        e->at++;
    }
    e->multi.steps = e->steps;
    e->multi.count = e->step_count;
    ox_seq_bind(s, &e->multi.op, "partitions.put");
    ox_meta_multi(e->shard->meta, &e->multi);
    return OX_WAIT(s, seed_written);
}

static void seed_done(struct ox_seq *s, enum ox_err err)
{
    struct ox_seed *e = seed_of(s);
    for (uint32_t i = 0; i < e->count; i++)
        ox_kv_fini(&e->parts[i].have);
    ox_free(e->parts);
    while (e->subscription_count)
        seed_forget(e, e->subscription_count - 1);
    ox_free(e->subscriptions);
    ox_op_finish(&e->op, err);
}

void partition_seed(struct ox_seed *e)
{
    ox_op_begin(&e->op);
    e->parts = ox_calloc(e->count, sizeof *e->parts);
    ox_seq_start(&e->seq, e->shard->loop, "partitions.seed", seed_look, seed_done);
}
