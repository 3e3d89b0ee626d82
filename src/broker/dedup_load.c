// dedup_load.c - turning deduplication on and off: the cursor, and the log behind it.
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "broker/dedup_int.h"
#include "broker/topic_int.h"
#include "wire/message_meta.h"
#include "wire/pulsar_frame.h"

#define READ_ENTRIES 100u
#define READ_BYTES (1024u * 1024)
#define AGAIN_NS OX_SEC // after a failure

static void dedup_read(struct ox_dedup *d);

static void dedup_answer(struct ox_dedup *d, enum ox_err err)
{
    for (struct ox_link *l = ox_list_pop_front(&d->waiters); l; l = ox_list_pop_front(&d->waiters))
        ox_op_finish(CONTAINER_OF(l, struct ox_op, link), err);
}

// A step is over: the topic may close, or the policy has changed meanwhile.
static void dedup_rest(struct ox_dedup *d, enum ox_err err)
{
    struct ox_topic *t = d->topic;
    dedup_answer(d, err);
    if (!err)
        dedup_follow(d);
    else
        ox_timer_start(&d->snapshot_timer, AGAIN_NS);
    topic_unpin(t);
}

static void dedup_failed(struct ox_dedup *d, enum ox_err err)
{
    struct ox_topic *t = d->topic;
    ox_warn(t->shard->log, "dedup.load.failed", "topic=%s error=%s", t->name.full, ox_err_name(err));
    dedup_forget(d);
    dedup_set_state(d, DEDUP_OFF, ox_err_name(err));
    dedup_rest(d, err);
}

// ---- reading the log behind the cursor

static void read_note(struct ox_dedup *d, const struct ox_entry *entry)
{
    struct ox_message_view view;
    struct ox_message_meta meta;
    if (ox_message_parse(entry->data, false, &view) != OX_OK ||
        ox_message_meta_scan(view.metadata.data, view.metadata.len, &meta) != OX_OK)
        return;
    d->noted++;
    if (meta.has_marker || (meta.is_chunk && meta.chunk_id < meta.num_chunks - 1))
        return;
    struct dedup_name *n = ox_dedup_name(d->topic, meta.producer_name.data, meta.producer_name.len);
    dedup_note(n, (int64_t)ox_message_meta_last_sequence(&meta));
    ox_dedup_unref(d->topic, n);
}

static void read_over(struct ox_dedup *d)
{
    struct ox_topic *t = d->topic;
    if (d->damaged)
        ox_warn(t->shard->log, "dedup.load.damaged", "topic=%s entries=%llu", t->name.full, (unsigned long long)d->damaged);
    if (ox_pos_cmp(d->stored, d->end) < 0)
        d->stored = d->end;
    dedup_set_state(d, DEDUP_ON, "read");
    dedup_rest(d, OX_OK);
}

// What cannot be read is tried entry by entry and then passed: nobody will see that message, so its like may be stored.
static void read_failed(struct ox_dedup *d, enum ox_err err)
{
    if (err == OX_E_NO_ENTRY) {
        read_over(d);
        return;
    }
    if (err != OX_E_CORRUPT && err != OX_E_NO_LEDGER) {
        dedup_failed(d, err);
        return;
    }
    if (err == OX_E_NO_LEDGER)
        d->at = (struct ox_pos){d->at.ledger + 1, 0};
    else if (d->step == 1)
        d->at.entry++;
    d->damaged += err == OX_E_NO_LEDGER || d->step == 1;
    d->step = 1;
    dedup_read(d);
}

static void read_done(struct ox_op *op)
{
    struct ox_dedup *d = CONTAINER_OF(op, struct ox_dedup, read.op);
    if (op->err) {
        read_failed(d, op->err);
        return;
    }
    for (size_t i = 0; i < d->read.count; i++)
        if (ox_pos_cmp(d->read.entries[i].pos, d->end) <= 0)
            read_note(d, &d->read.entries[i]);
    d->at = d->read.next;
    ox_ml_read_fini(&d->read);
    d->step = READ_ENTRIES;
    dedup_read(d);
}

static void dedup_read(struct ox_dedup *d)
{
    struct ox_topic *t = d->topic;
    if (t->state != OX_TOPIC_OPEN && t->state != OX_TOPIC_LOADING) {
        dedup_failed(d, OX_E_TOPIC_FENCED);
        return;
    }
    if (ox_pos_cmp(d->at, d->end) > 0) {
        read_over(d);
        return;
    }
    d->read = (struct ox_ml_read){.from = d->at, .entries_max = d->step, .bytes_max = READ_BYTES};
    ox_op_init(&d->read.op, t->shard->loop, read_done, "dedup.read");
    ox_mledger_read(t->ml, &d->read);
}

static void read_start(struct ox_dedup *d)
{
    const struct ox_kv *kv = &d->cursor->position_properties;
    for (size_t i = 0; i < kv->count; i++) {
        int64_t last;
        if (ox_parse_i64(kv->pairs[i].value, INT64_MIN, INT64_MAX, &last) != OX_OK)
            continue;
        struct dedup_name *n = ox_dedup_name(d->topic, kv->pairs[i].key, strlen(kv->pairs[i].key));
        dedup_note(n, last);
        ox_dedup_unref(d->topic, n);
    }
    d->at = ox_ml_next(d->topic->ml, d->cursor->mark_delete);
    d->end = d->topic->ml->last;
    d->step = READ_ENTRIES;
    d->damaged = 0;
    dedup_set_state(d, DEDUP_READING, "opened");
    dedup_read(d);
}

// ---- the cursor

static void open_done(struct ox_op *op)
{
    struct ox_dedup *d = CONTAINER_OF(op, struct ox_dedup, open.op);
    if (op->err) {
        dedup_failed(d, op->err);
        return;
    }
    d->cursor = d->open.cursor;
    read_start(d);
}

static void dedup_begin(struct ox_dedup *d)
{
    struct ox_topic *t = d->topic;
    topic_pin(t);
    d->stored = t->ml->last;
    d->noted = 0;
    dedup_set_state(d, DEDUP_OPENING, "wanted");
    d->cursor = ox_cursor_find(t->ml, OX_DEDUP_CURSOR);
    if (d->cursor) {
        read_start(d);
        return;
    }
    ox_op_init(&d->open.op, t->shard->loop, open_done, "dedup.cursor");
    ox_cursor_open(t->ml, &d->open, OX_DEDUP_CURSOR, true, t->ml->last, NULL);
}

static void remove_done(struct ox_op *op)
{
    struct ox_dedup *d = CONTAINER_OF(op, struct ox_dedup, remove);
    struct ox_topic *t = d->topic;
    if (op->err)
        ox_warn(t->shard->log, "dedup.remove.failed", "topic=%s error=%s", t->name.full, ox_err_name(op->err));
    dedup_set_state(d, DEDUP_OFF, "removed");
    if (op->err == OX_OK)
        ox_mledger_trim(t->ml);
    else
        topic_fail(t, op->err); // its node is still there: it is tried again with the next load
    dedup_rest(d, op->err);
}

static void dedup_end(struct ox_dedup *d, struct ox_cursor *cursor)
{
    struct ox_topic *t = d->topic;
    topic_pin(t);
    ox_timer_stop(&d->snapshot_timer);
    dedup_set_state(d, DEDUP_ENDING, "not wanted");
    dedup_forget(d);
    d->cursor = NULL;
    ox_op_init(&d->remove, t->shard->loop, remove_done, "dedup.remove");
    ox_cursor_remove(cursor, &d->remove);
}

void dedup_follow(struct ox_dedup *d)
{
    struct ox_topic *t = d->topic;
    if (t->state != OX_TOPIC_OPEN && t->state != OX_TOPIC_LOADING)
        return;
    struct ox_cursor *cursor = d->wanted ? NULL : ox_cursor_find(t->ml, OX_DEDUP_CURSOR);
    if (d->state == DEDUP_OFF && d->wanted)
        dedup_begin(d);
    else if (cursor && (d->state == DEDUP_OFF || d->state == DEDUP_ON))
        dedup_end(d, cursor);
}

void ox_dedup_start(struct ox_topic *t, struct ox_op *op)
{
    struct ox_dedup *d = t->dedup ? t->dedup : dedup_new(t);
    d->wanted = true;
    if (op) {
        ox_op_begin(op);
        if (d->state == DEDUP_ON)
            ox_op_finish(op, OX_OK);
        else
            ox_list_push_back(&d->waiters, &op->link);
    }
    dedup_follow(d);
}

void ox_dedup_stop(struct ox_topic *t)
{
    if (!t->dedup && !ox_cursor_find(t->ml, OX_DEDUP_CURSOR))
        return;
    struct ox_dedup *d = t->dedup ? t->dedup : dedup_new(t);
    d->wanted = false;
    dedup_follow(d);
}
