// last_id.c - the id of a topic's last message: the last entry, and its place in the batch.
#include "broker/compaction.h"
#include "broker/topic_int.h"
#include "wire/message_meta.h"
#include "wire/pulsar_frame.h"

static void last_id_finish(struct ox_last_id *o, enum ox_err err)
{
    struct ox_topic *t = o->topic;
    topic_unpin(t);
    ox_op_finish(&o->op, err);
}

static int32_t batch_last_index(const struct ox_entry *entry)
{
    struct ox_message_view view;
    struct ox_message_meta meta;
    if (ox_message_parse(entry->data, false, &view) || ox_message_meta_scan(view.metadata.data, view.metadata.len, &meta))
        return -1;
    return meta.has_num_messages ? meta.num_messages - 1 : -1;
}

static void last_id_read(struct ox_op *op)
{
    struct ox_last_id *o = CONTAINER_OF(op, struct ox_last_id, read.op);
    if (op->err == OX_OK && o->read.count)
        o->batch_index = batch_last_index(&o->read.entries[0]);
    if (op->err == OX_OK)
        ox_ml_read_fini(&o->read);
    last_id_finish(o, op->err);
}

// All that is left is in the compacted ledger: the last message there is the one that a reader can expect.
static void last_id_compacted(struct ox_op *op)
{
    struct ox_last_id *o = CONTAINER_OF(op, struct ox_last_id, compacted);
    last_id_finish(o, op->err);
}

// The last entry there is: that of the newest ledger that holds one.
static struct ox_pos last_entry(const struct ox_mledger *ml)
{
    if (ml->last.entry >= 0)
        return ml->last;
    for (size_t i = ml->ledger_count; i-- > 0;) {
        const struct ox_ml_ledger *l = ml->ledgers[i];
        if (l->where.id < ml->last.ledger && l->entries > 0)
            return (struct ox_pos){l->where.id, l->entries - 1};
    }
    return OX_POS_EARLIEST;
}

void ox_topic_last_id(struct ox_topic *t, struct ox_last_id *o)
{
    ox_op_begin(&o->op);
    if (t->state != OX_TOPIC_OPEN || !t->ml) {
        ox_op_finish(&o->op, t->state != OX_TOPIC_OPEN ? OX_E_TOPIC_FENCED : OX_E_UNSUPPORTED);
        return;
    }
    topic_pin(t);
    o->topic = t;
    o->batch_index = -1;
    if (o->read_compacted && ox_compaction_covers(t)) {
        ox_op_init(&o->compacted, t->shard->loop, last_id_compacted, "last_id.compacted");
        ox_compaction_last(t, &o->compacted, &o->pos, &o->batch_index);
        return;
    }
    o->pos = last_entry(t->ml);
    if (o->pos.entry < 0) {
        last_id_finish(o, OX_OK);
        return;
    }
    o->read = (struct ox_ml_read){.from = o->pos, .entries_max = 1, .bytes_max = 1};
    ox_op_init(&o->read.op, t->shard->loop, last_id_read, "last_id.read");
    ox_mledger_read(t->ml, &o->read);
}
