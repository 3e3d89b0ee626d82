// brokers.c - the epoch barrier: which live brokers have said that they make new ledgers in the directive's target.
#include <string.h>

#include "move/storage/control_int.h"

#define BROKERS_LIVE "/loadbalance/brokers" // where brokers register; without it this broker is alone

static ox_step brokers_live(struct ox_seq *s);
static ox_step brokers_live_read(struct ox_seq *s);
static ox_step brokers_acks_read(struct ox_seq *s);

static struct storage_brokers *brokers_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct storage_brokers, seq);
}

static void brokers_done(struct ox_seq *s, enum ox_err err)
{
    struct storage_brokers *b = brokers_of(s);
    ox_free(b->acks_path);
    ox_op_finish(&b->op, err);
}

void storage_brokers_ask(struct ox_storage *st, struct storage_brokers *b)
{
    ox_op_begin(&b->op);
    b->st = st;
    b->acked = json_array();
    b->missing = json_array();
    b->acks_path = storage_path(st, "acks/%lld", (long long)st->directive.epoch);
    ox_seq_start(&b->seq, st->p.loop, "storage.brokers", brokers_live, brokers_done);
}

void storage_brokers_fini(struct storage_brokers *b)
{
    json_decref(b->acked);
    json_decref(b->missing);
    b->acked = b->missing = NULL;
}

void storage_brokers_note(struct ox_storage *st, const struct storage_brokers *b)
{
    struct storage_control *control = st->control;
    json_decref(control->acked);
    json_decref(control->missing);
    control->acked = json_incref(b->acked);
    control->missing = json_incref(b->missing);
    control->lag.value = (int64_t)json_array_size(b->missing);
}

static ox_step brokers_live(struct ox_seq *s)
{
    struct storage_brokers *b = brokers_of(s);
    ox_seq_bind(s, &b->children.op, "storage.brokers.live");
    ox_meta_children(b->st->p.meta, &b->children, BROKERS_LIVE);
    return OX_WAIT(s, brokers_live_read);
}

static bool brokers_has(const json_t *names, const char *name, size_t *ret_at)
{
    for (size_t i = 0; i < json_array_size(names); i++)
        if (!strcmp(json_string_value(json_array_get(names, i)), name)) {
            *ret_at = i;
            return true;
        }
    return false;
}

// All live brokers are missing at first.
static ox_step brokers_live_read(struct ox_seq *s)
{
    struct storage_brokers *b = brokers_of(s);
    size_t at;
    if (s->err != OX_OK && s->err != OX_E_NOT_FOUND)
        return OX_FINISH(s, s->err);
    for (size_t i = 0; s->err == OX_OK && i < b->children.count; i++)
        json_array_append_new(b->missing, json_string(b->children.names[i]));
    if (s->err == OX_OK)
        ox_meta_names_free(b->children.names, b->children.count);
    if (!brokers_has(b->missing, b->st->p.config.broker, &at))
        json_array_append_new(b->missing, json_string(b->st->p.config.broker));
    ox_seq_bind(s, &b->children.op, "storage.brokers.acks");
    ox_meta_children(b->st->p.meta, &b->children, b->acks_path);
    return OX_WAIT(s, brokers_acks_read);
}

static ox_step brokers_acks_read(struct ox_seq *s)
{
    struct storage_brokers *b = brokers_of(s);
    size_t at;
    if (s->err == OX_E_NOT_FOUND)
        return OX_FINISH(s, OX_OK);
    if (s->err != OX_OK)
        return OX_FINISH(s, s->err);
    for (size_t i = 0; i < b->children.count; i++) {
        if (brokers_has(b->missing, b->children.names[i], &at))
            json_array_remove(b->missing, at);
        json_array_append_new(b->acked, json_string(b->children.names[i]));
    }
    ox_meta_names_free(b->children.names, b->children.count);
    return OX_FINISH(s, OX_OK);
}
