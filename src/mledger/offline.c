// offline.c - claims on logs that are not open in this process, and changes of their nodes.
#include "mledger/offline.h"

// ---- claims ----------------------------------------------------------------------------------------------------------

// Claims on one log: those that are held (one, or several that share), and those that wait.
struct ml_gate {
    struct ox_ml_factory *factory;
    char *log;
    struct ox_map_node by_log; // in factory->claims
    uint32_t holders;
    bool shared;            // the holders share it
    struct ox_list waiting; // of struct ml_claim, by op.link
};

static struct ml_gate *gate_of(struct ox_ml_factory *f, const char *log)
{
    struct ox_map_node *node = ox_map_find_str(&f->claims, log);
    if (node)
        return CONTAINER_OF(node, struct ml_gate, by_log);
    struct ml_gate *g = ox_malloc(sizeof *g);
    g->factory = f;
    g->log = ox_strdup(log);
    ox_list_init(&g->waiting);
    ox_map_put_str(&f->claims, &g->by_log, g->log);
    return g;
}

static bool gate_admits(const struct ml_gate *g, const struct ml_claim *c)
{
    return g->holders == 0 || (g->shared && c->shared);
}

static void gate_grant(struct ml_gate *g, struct ml_claim *c)
{
    g->holders++;
    g->shared = c->shared;
    ox_op_finish(&c->op, OX_OK);
}

static void claim_ask(struct ox_ml_factory *f, struct ml_claim *c, const char *log, bool shared)
{
    ox_op_begin(&c->op);
    c->shared = shared;
    c->gate = gate_of(f, log);
    if (ox_list_empty(&c->gate->waiting) && gate_admits(c->gate, c))
        gate_grant(c->gate, c);
    else
        ox_list_push_back(&c->gate->waiting, &c->op.link);
}

void ml_claim(struct ox_ml_factory *f, struct ml_claim *c, const char *log)
{
    claim_ask(f, c, log, false);
}

void ml_claim_shared(struct ox_ml_factory *f, struct ml_claim *c, const char *log)
{
    claim_ask(f, c, log, true);
}

void ml_claim_release(struct ml_claim *c)
{
    struct ml_gate *g = c->gate;
    struct ox_link *link;
    c->gate = NULL;
    g->holders--;
    while ((link = ox_list_first(&g->waiting)) && gate_admits(g, CONTAINER_OF(link, struct ml_claim, op.link))) {
        ox_list_remove(&g->waiting, link);
        gate_grant(g, CONTAINER_OF(link, struct ml_claim, op.link));
    }
    if (g->holders > 0)
        return;
    ox_map_remove(&g->factory->claims, &g->by_log);
    ox_free(g->log);
    ox_free(g);
}

bool ml_is_claimed(const struct ox_ml_factory *f, const char *log)
{
    return ox_map_find_str(&f->claims, log) != NULL;
}

enum ml_presence ml_presence(const struct ox_ml_factory *f, const char *log, struct ox_mledger **ret_ml)
{
    struct ox_map_node *node = ox_map_find_str(&f->open, log);
    if (!node)
        return ML_AWAY;
    struct ox_mledger *ml = CONTAINER_OF(node, struct ox_mledger, by_name);
    if (!ml_is_open(ml) && ml->state != OX_ML_FAILED)
        return ML_BETWEEN;
    *ret_ml = ml;
    return ML_HERE;
}

// ---- changes of a node -----------------------------------------------------------------------------------------------

static ox_step edit_read(struct ox_seq *s);
static ox_step edit_present(struct ox_seq *s);
static ox_step edit_written(struct ox_seq *s);

static struct ml_node_edit *edit_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct ml_node_edit, seq);
}

static void edit_done(struct ox_seq *s, enum ox_err err)
{
    struct ml_node_edit *e = edit_of(s);
    ox_buf_unref(&e->value);
    ox_op_finish(&e->op, err);
}

static void edit_pause_over(struct ox_timer *t)
{
    ox_seq_resume(&CONTAINER_OF(t, struct ml_node_edit, pause)->seq, OX_OK);
}

void ml_node_edit_start(struct ox_ml_factory *f, struct ml_node_edit *e, const char *path)
{
    ox_op_begin(&e->op);
    e->factory = f;
    e->path = path;
    e->unsure = e->nothing = false;
    e->value = ox_buf_empty();
    e->tries = 0;
    ox_timer_init(&e->pause, f->loop, edit_pause_over);
    ox_seq_start(&e->seq, f->loop, "mledger.node_edit", edit_read, edit_done);
}

static ox_step edit_read(struct ox_seq *s)
{
    struct ml_node_edit *e = edit_of(s);
    ox_seq_bind(s, &e->get.op, "mledger.node_edit.get");
    ox_meta_get(e->factory->meta, &e->get, e->path);
    return OX_WAIT(s, edit_present);
}

// Once more after a pause, or not: a write whose outcome is still unknown is told as such.
static ox_step edit_again(struct ox_seq *s, enum ox_err err)
{
    struct ml_node_edit *e = edit_of(s);
    if (++e->tries >= ML_WRITE_TRIES)
        return OX_FINISH(s, e->unsure ? OX_E_UNKNOWN_OUTCOME : err);
    ox_timer_start(&e->pause, e->tries > 1 ? ML_RETRY_NS : 0);
    return OX_WAIT(s, edit_read);
}

static ox_step edit_write(struct ox_seq *s, struct ox_buf present)
{
    struct ml_node_edit *e = edit_of(s);
    ox_buf_unref(&e->value);
    enum ox_err err = e->edit(e, present, &e->value);
    if (err != OX_OK || e->nothing)
        return OX_FINISH(s, err);
    e->version = e->get.stat.version;
    ox_seq_bind(s, &e->put.op, "mledger.node_edit.put");
    ox_meta_put(e->factory->meta, &e->put, e->path, e->value, e->version, 0);
    return OX_WAIT(s, edit_written);
}

static ox_step edit_present(struct ox_seq *s)
{
    struct ml_node_edit *e = edit_of(s);
    if (s->err == OX_E_DISCONNECTED && e->unsure)
        return edit_again(s, s->err);
    if (s->err != OX_OK)
        return OX_FINISH(s, s->err);
    struct ox_buf present = e->get.value;
    bool ours = e->unsure && e->get.stat.version == e->version + 1 && ox_buf_equal(present, e->value);
    ox_step step = ours ? OX_FINISH(s, OX_OK) : edit_write(s, present);
    ox_buf_unref(&present);
    return step;
}

static ox_step edit_written(struct ox_seq *s)
{
    struct ml_node_edit *e = edit_of(s);
    bool unknown = s->err == OX_E_UNKNOWN_OUTCOME || s->err == OX_E_TIMEOUT || s->err == OX_E_IO;
    if (s->err == OX_OK)
        ox_free(e->put.path);
    if (!unknown && s->err != OX_E_BAD_VERSION)
        return OX_FINISH(s, s->err);
    e->unsure |= unknown;
    return edit_again(s, unknown ? s->err : OX_E_BUSY);
}
