// topic_room.c - max_topics_per_namespace: topics are counted only where there is a limit.
#include "broker/topic_room.h"

#include <string.h>

static struct ox_topic_room *room_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct ox_topic_room, seq);
}

static bool room_has(const struct ox_topic_room *o)
{
    for (size_t i = 0; i < o->list.count; i++)
        if (!strcmp(o->list.names[i], o->name.full))
            return true;
    return false;
}

static ox_step room_listed(struct ox_seq *s)
{
    struct ox_topic_room *o = room_of(s);
    if (s->err)
        return OX_FINISH(s, s->err);
    uint64_t more = OX_MAX(o->partitions, 1u);
    bool room = o->list.count + more <= o->max || (!o->partitions && room_has(o));
    ox_topics_list_fini(&o->list);
    return OX_FINISH(s, room ? OX_OK : OX_E_NOT_ALLOWED);
}

static ox_step room_scoped(struct ox_seq *s)
{
    struct ox_topic_room *o = room_of(s);
    if (s->err)
        return OX_FINISH(s, s->err);
    o->max = scope_base(o->scope.scope)->max_topics;
    scope_put(o->scope.scope);
    if (!o->max)
        return OX_FINISH(s, OX_OK);
    o->list = (struct ox_topics_list){.mode = OX_TOPICS_ALL};
    ox_seq_bind(s, &o->list.op, "topics.list");
    ox_topics_list(o->shard, &o->list, o->name.ns);
    return OX_WAIT(s, room_listed);
}

static ox_step room_start(struct ox_seq *s)
{
    struct ox_topic_room *o = room_of(s);
    if (ox_topic_name_is_system(&o->name))
        return OX_FINISH(s, OX_OK);
    o->scope.system = true; // the namespace's own policies are enough
    ox_seq_bind(s, &o->scope.op, "policies.get");
    scope_get(o->shard, &o->scope, o->name.ns);
    return OX_WAIT(s, room_scoped);
}

static void room_done(struct ox_seq *s, enum ox_err err)
{
    struct ox_topic_room *o = room_of(s);
    ox_topic_name_fini(&o->name);
    ox_op_finish(&o->op, err);
}

void ox_topic_room(struct ox_shard *sh, struct ox_topic_room *o, const struct ox_topic_name *name)
{
    ox_op_begin(&o->op);
    o->shard = sh;
    ox_topic_name_copy(&o->name, name);
    ox_seq_start(&o->seq, sh->loop, "topic.room", room_start, room_done);
}
