// compaction_last.c - the last message that compaction has left.
#include "base/mem.h"
#include "broker/compaction_int.h"
#include "wire/compress.h"

struct last_job {
    struct ox_ml_read read;
    struct ox_op *op;
    struct ox_pos *ret_pos;
    int32_t *ret_index;
};

bool ox_compaction_covers(const struct ox_topic *t)
{
    const struct ox_compaction *c = t->compaction;
    return c && c->ledger && t->ml && ox_ml_count(t->ml, c->view.upto, t->ml->last) == 0;
}

static int32_t last_index(struct ox_buf data)
{
    struct compaction_entry e;
    struct compaction_message m;
    struct ox_buf plain = ox_buf_empty();
    int32_t index = -1;
    compaction_entry_scan(&e, data);
    if (compaction_entry_is_packed(&e) && ox_decompress(e.meta.compression, e.payload.data, e.payload.len,
                                                        e.meta.uncompressed_size, OX_MESSAGE_BYTES_MAX, &plain) != OX_OK)
        plain = ox_buf_empty();
    compaction_entry_open(&e, plain);
    if (e.kind == COMPACTION_KEEP && e.meta.has_num_messages)
        index = e.meta.num_messages - 1;
    for (size_t at = 0; compaction_entry_next(&e, &at, &m);)
        if (!m.gone)
            index = m.index;
    compaction_entry_fini(&e);
    return index;
}

static void last_done(struct ox_op *op)
{
    struct last_job *j = CONTAINER_OF(op, struct last_job, read.op);
    struct ox_op *caller = j->op;
    enum ox_err err = op->err;
    *j->ret_pos = OX_POS_EARLIEST;
    *j->ret_index = -1;
    if (err == OX_OK && j->read.count > 0) {
        *j->ret_pos = j->read.entries[0].pos;
        *j->ret_index = last_index(j->read.entries[0].data);
    }
    if (err == OX_OK)
        ox_ml_read_fini(&j->read);
    ox_free(j);
    ox_op_finish(caller, err);
}

void ox_compaction_last(struct ox_topic *t, struct ox_op *op, struct ox_pos *ret_pos, int32_t *ret_index)
{
    struct last_job *j = ox_malloc(sizeof *j);
    OX_ASSERT(t->compaction && t->compaction->ledger);
    ox_op_begin(op);
    j->op = op;
    j->ret_pos = ret_pos;
    j->ret_index = ret_index;
    j->read = (struct ox_ml_read){.entries_max = 1, .bytes_max = 1};
    ox_op_init(&j->read.op, t->shard->loop, last_done, "compaction.last");
    compacted_read_last(t->compaction, &j->read);
}
