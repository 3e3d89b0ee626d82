// compaction_move.c - for whoever moves storage: a topic's compacted ledger is brought into its place; a topic that was not loaded is loaded for that.
#include <string.h>

#include "base/mem.h"
#include "broker/compaction_int.h"

struct move_log {
    struct ox_shard *shard;
    struct ox_op *op;
    struct ox_topic_get get;
    struct ox_op step;
    bool was_loaded;
    enum ox_err err;
};

static void move_finish(struct move_log *m, enum ox_err err)
{
    struct ox_op *op = m->op;
    ox_free(m);
    ox_op_finish(op, err);
}

static void move_unloaded(struct ox_op *op)
{
    struct move_log *m = CONTAINER_OF(op, struct move_log, step);
    move_finish(m, m->err);
}

// A topic that nobody uses goes as it came.
static void move_over(struct move_log *m, enum ox_err err)
{
    struct ox_topic *t = m->get.topic;
    m->err = err;
    bool unload = !m->was_loaded && t->state == OX_TOPIC_OPEN && !ox_topic_is_used(t);
    if (unload) {
        ox_op_init(&m->step, m->shard->loop, move_unloaded, "topic.unload");
        ox_topic_unload(m->shard, &m->step, t->name.full);
    }
    ox_topic_put(t);
    if (!unload)
        move_finish(m, err);
}

static void move_done(struct ox_op *op)
{
    move_over(CONTAINER_OF(op, struct move_log, step), op->err);
}

static void move_got(struct ox_op *op)
{
    struct move_log *m = CONTAINER_OF(op, struct move_log, get.op);
    if (op->err) {
        move_finish(m, op->err == OX_E_TOPIC_NOT_FOUND ? OX_E_NOT_FOUND : op->err);
        return;
    }
    ox_op_init(&m->step, m->shard->loop, move_done, "compaction.move");
    enum ox_err err = ox_compaction_move(m->get.topic, &m->step);
    if (err)
        move_over(m, err);
}

// "public/default/persistent/a%2Fb" is persistent://public/default/a/b.
static enum ox_err move_name(const char *log, struct ox_topic_name *ret)
{
    const char *local = strrchr(log, '/'), *domain = local;
    while (domain && domain > log && domain[-1] != '/')
        domain--;
    if (!local || domain <= log + 1)
        return OX_E_INVALID_TOPIC_NAME;
    struct ox_str text = {0};
    ox_str_addf(&text, "%.*s://%.*s/", (int)(local - domain), domain, (int)(domain - log - 1), log);
    enum ox_err err = ox_name_decode(&text, local + 1);
    if (err == OX_OK)
        err = ox_topic_name_parse(ret, ox_str_get(&text));
    ox_str_fini(&text);
    return err;
}

void compaction_move_log(void *ctx, struct ox_op *op, const char *log)
{
    struct ox_shard *sh = ctx;
    struct ox_topic_name name = {0};
    ox_op_begin(op);
    enum ox_err err = move_name(log, &name);
    if (err) {
        ox_op_finish(op, err);
        return;
    }
    struct move_log *m = ox_malloc(sizeof *m);
    m->shard = sh;
    m->op = op;
    m->was_loaded = ox_topic_find(sh, name.full) != NULL;
    ox_op_init(&m->get.op, sh->loop, move_got, "topic.get");
    ox_topic_get(sh, &m->get, &name);
    ox_topic_name_fini(&name);
}
