// writer.c - changes of a log's record, one compare-and-set after another; an unknown outcome is re-read before anybody is told.
#include "mledger/mledger_int.h"

static struct mledger_impl *writer_impl(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct mledger_impl, writer.seq);
}

static void writer_pause_over(struct ox_timer *t)
{
    ox_seq_resume(&CONTAINER_OF(t, struct ml_writer, pause)->seq, OX_OK);
}

void ml_writer_init(struct ox_mledger *ml)
{
    struct ml_writer *w = &ml_impl(ml)->writer;
    w->draft = ox_record_new();
    ox_list_init(&w->queue);
    ox_timer_init(&w->pause, ml->factory->loop, writer_pause_over);
}

void ml_writer_fini(struct ox_mledger *ml)
{
    struct ml_writer *w = &ml_impl(ml)->writer;
    ox_record_free(w->draft);
    ox_buf_unref(&w->value);
}

void ml_edit_append(struct ox_mledger *ml, struct ox_record *draft, struct ox_location where)
{
    ox_record_append_open(draft, where.id);
    if (ml->factory->settings.stamps)
        ox_record_stamp(draft, where, ox_router_name(ml->factory->router, where.place));
}

void ml_edit_index(struct ox_mledger *ml, struct ox_record *draft)
{
    if (!ml->factory->settings.broker_entry_metadata)
        return;
    OX_CLEANUP(ox_free_ptr)
    char *index = ox_asprintf("%lld", (long long)ml_impl(ml)->acked_index);
    ox_record_set_property(draft, OX_PROPERTY_INDEX, index);
}

static ox_step writer_next(struct ox_seq *s);

static void writer_done(struct ox_seq *s, enum ox_err err)
{
    (void)err;
    struct mledger_impl *impl = writer_impl(s);
    if (!ox_list_empty(&impl->writer.queue))
        ox_seq_start(s, s->loop, "mledger.write", writer_next, writer_done);
    ml_poke(impl->ml);
}

void ml_edit_start(struct ox_mledger *ml, struct ml_edit *e)
{
    struct ml_writer *w = &ml_impl(ml)->writer;
    ox_op_begin(&e->op);
    e->ml = ml;
    ox_list_push_back(&w->queue, &e->op.link);
    if (!w->seq.active)
        ox_seq_start(&w->seq, ml->factory->loop, "mledger.write", writer_next, writer_done);
}

// Tells the outcome of the edit being written and goes on to the next.
static ox_step writer_tell(struct ox_seq *s, enum ox_err err)
{
    struct mledger_impl *impl = writer_impl(s);
    struct ml_edit *e = impl->writer.edit;
    impl->writer.edit = NULL;
    ox_buf_unref(&impl->writer.value);
    ox_op_finish(&e->op, err);
    if (err == OX_E_FENCED)
        ml_fail(impl->ml, OX_E_FENCED, "the node was written by somebody else");
    return OX_GOTO(s, writer_next);
}

static ox_step writer_put(struct ox_seq *s);
static ox_step writer_answered(struct ox_seq *s);
static ox_step writer_reread(struct ox_seq *s);
static ox_step writer_learned(struct ox_seq *s);
static ox_step writer_again(struct ox_seq *s);

static ox_step writer_next(struct ox_seq *s)
{
    struct mledger_impl *impl = writer_impl(s);
    struct ml_writer *w = &impl->writer;
    struct ox_link *link = ox_list_pop_front(&w->queue);
    if (!link)
        return OX_FINISH(s, OX_OK);
    struct ox_ml_factory *f = impl->ml->factory;
    w->edit = CONTAINER_OF(link, struct ml_edit, op.link);
    w->tries = 0;
    if (impl->fail_err == OX_E_FENCED)
        return writer_tell(s, OX_E_FENCED);
    ox_record_copy(w->draft, impl->record);
    w->edit->apply(w->edit, w->draft);
    w->value = ox_record_encode(w->draft, f->settings.guarded_records, ox_router_name(f->router, 0));
    return OX_GOTO(s, writer_put);
}

static ox_step writer_put(struct ox_seq *s)
{
    struct mledger_impl *impl = writer_impl(s);
    struct ml_writer *w = &impl->writer;
    ox_seq_bind(s, &w->put.op, "mledger.node.put");
    ox_meta_put(impl->ml->factory->meta, &w->put, impl->ml->path, w->value, impl->ml->node_version, 0);
    return OX_WAIT(s, writer_answered);
}

// The node holds the draft under this version.
static ox_step writer_written(struct ox_seq *s, int64_t version)
{
    struct mledger_impl *impl = writer_impl(s);
    struct ox_record *old = impl->record;
    impl->record = impl->writer.draft;
    impl->writer.draft = old;
    impl->ml->node_version = version;
    return writer_tell(s, OX_OK);
}

static ox_step writer_answered(struct ox_seq *s)
{
    struct mledger_impl *impl = writer_impl(s);
    struct ml_writer *w = &impl->writer;
    if (s->err == OX_OK) {
        ox_free(w->put.path);
        w->put.path = NULL;
        return writer_written(s, w->put.stat.version);
    }
    if (s->err == OX_E_UNKNOWN_OUTCOME || s->err == OX_E_TIMEOUT || s->err == OX_E_IO) {
        ox_warn(impl->ml->factory->log, "mledger.write.unknown", "log=%s version=%lld", impl->ml->name,
                (long long)impl->ml->node_version);
        return OX_GOTO(s, writer_reread);
    }
    if (s->err == OX_E_BAD_VERSION || s->err == OX_E_SESSION_EXPIRED)
        return writer_tell(s, OX_E_FENCED);
    return writer_tell(s, s->err);
}

static ox_step writer_reread(struct ox_seq *s)
{
    struct mledger_impl *impl = writer_impl(s);
    ox_seq_bind(s, &impl->writer.get.op, "mledger.node.reread");
    ox_meta_get(impl->ml->factory->meta, &impl->writer.get, impl->ml->path);
    return OX_WAIT(s, writer_learned);
}

static ox_step writer_learned(struct ox_seq *s)
{
    struct mledger_impl *impl = writer_impl(s);
    struct ml_writer *w = &impl->writer;
    if (s->err == OX_E_SHUTDOWN)
        return writer_tell(s, s->err);
    if (s->err == OX_E_NOT_FOUND || s->err == OX_E_SESSION_EXPIRED)
        return writer_tell(s, OX_E_FENCED);
    if (s->err != OX_OK) {
        ox_timer_start(&w->pause, ML_RETRY_NS);
        return OX_WAIT(s, writer_reread);
    }
    int64_t version = w->get.stat.version;
    bool ours = version == impl->ml->node_version + 1 && ox_buf_equal(w->get.value, w->value);
    ox_buf_unref(&w->get.value);
    if (ours)
        return writer_written(s, version);
    return version == impl->ml->node_version ? OX_GOTO(s, writer_again) : writer_tell(s, OX_E_FENCED);
}

// It had no effect: once more, or after many tries the news that it doesn't work.
static ox_step writer_again(struct ox_seq *s)
{
    struct ml_writer *w = &writer_impl(s)->writer;
    if (w->tries++ >= ML_WRITE_TRIES)
        return writer_tell(s, OX_E_IO);
    ox_timer_start(&w->pause, w->tries > 1 ? ML_RETRY_NS : 0);
    return OX_WAIT(s, writer_put);
}
