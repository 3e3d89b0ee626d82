// analyze.c - looking through a backlog and counting it, without consuming anything.
#include "broker/subscription_admin.h"
#include "broker/subscription_int.h"
#include "wire/message_meta.h"
#include "wire/pulsar_frame.h"

#define ANALYZE_ENTRIES 100u         // of a portion
#define ANALYZE_BYTES (1024u * 1024) // of a portion
#define ANALYZE_REST_NS (1 * OX_MS)  // until the next one

static ox_step analyze_read(struct ox_seq *q);

static struct ox_backlog_analysis *analyze_of(struct ox_seq *q)
{
    return CONTAINER_OF(q, struct ox_backlog_analysis, seq);
}

// Messages in an entry; what cannot be read counts as one.
static uint64_t analyze_messages(const struct ox_entry *entry)
{
    struct ox_message_view view;
    struct ox_message_meta meta;
    if (ox_message_parse(entry->data, false, &view) || ox_message_meta_scan(view.metadata.data, view.metadata.len, &meta))
        return 1;
    return (uint64_t)meta.num_messages;
}

// There is more, and it is not looked at any more.
static bool analyze_is_over(const struct ox_backlog_analysis *o)
{
    if (ox_pos_cmp(ox_pos_max(o->last, ox_ml_prev(o->topic->ml, o->next)), o->topic->ml->last) >= 0)
        return false;
    return o->entries >= o->entries_max || ox_now_ns(o->seq.loop) - o->began_ns > o->time_max_ms * OX_MS;
}

// Counts a portion, as far as the bound goes.
static void analyze_count(struct ox_backlog_analysis *o, const struct ox_cursor *c)
{
    o->next = o->read.next;
    for (size_t i = 0; i < o->read.count; i++) {
        const struct ox_entry *entry = &o->read.entries[i];
        if (o->entries == o->entries_max) {
            o->next = entry->pos;
            break;
        }
        if (ox_pos_cmp(entry->pos, c->mark_delete) > 0 && ox_cursor_is_deleted(c, entry->pos))
            continue;
        if (!o->entries++)
            o->first = entry->pos;
        o->last = entry->pos;
        o->messages += analyze_messages(entry);
    }
    ox_ml_read_fini(&o->read);
}

static void analyze_rested(struct ox_timer *t)
{
    ox_seq_resume(&CONTAINER_OF(t, struct ox_backlog_analysis, rest)->seq, OX_OK);
}

static ox_step analyze_got(struct ox_seq *q)
{
    struct ox_backlog_analysis *o = analyze_of(q);
    struct ox_subscription *s = ox_subscription_find(o->topic, o->name);
    if (q->err)
        return OX_FINISH(q, q->err == OX_E_NO_ENTRY ? OX_OK : q->err);
    if (!s || !s->cursor) {
        ox_ml_read_fini(&o->read);
        return OX_FINISH(q, OX_E_SUBSCRIPTION_NOT_FOUND);
    }
    analyze_count(o, s->cursor);
    o->aborted = analyze_is_over(o);
    if (o->aborted)
        return OX_FINISH(q, OX_OK);
    ox_timer_start(&o->rest, ANALYZE_REST_NS);
    return OX_WAIT(q, analyze_read);
}

static ox_step analyze_read(struct ox_seq *q)
{
    struct ox_backlog_analysis *o = analyze_of(q);
    if (o->topic->state != OX_TOPIC_OPEN)
        return OX_FINISH(q, OX_E_TOPIC_FENCED);
    o->read = (struct ox_ml_read){.from = o->next, .entries_max = ANALYZE_ENTRIES, .bytes_max = ANALYZE_BYTES};
    ox_seq_bind(q, &o->read.op, "analyze.read");
    ox_mledger_read(o->topic->ml, &o->read);
    return OX_WAIT(q, analyze_got);
}

static void analyze_done(struct ox_seq *q, enum ox_err err)
{
    struct ox_backlog_analysis *o = analyze_of(q);
    topic_unpin(o->topic);
    ox_op_finish(&o->op, err);
}

static enum ox_err analyze_refused(struct ox_topic *t, const char *name)
{
    const struct ox_subscription *s = ox_subscription_find(t, name);
    if (t->state != OX_TOPIC_OPEN)
        return OX_E_TOPIC_FENCED;
    if (!s)
        return OX_E_SUBSCRIPTION_NOT_FOUND;
    return s->cursor && t->ml ? OX_OK : OX_E_NOT_ALLOWED;
}

void ox_backlog_analyze(struct ox_topic *t, struct ox_backlog_analysis *o)
{
    ox_op_begin(&o->op);
    enum ox_err err = analyze_refused(t, o->name);
    if (err) {
        ox_op_finish(&o->op, err);
        return;
    }
    const struct ox_cursor *c = ox_subscription_find(t, o->name)->cursor;
    topic_pin(t);
    o->topic = t;
    o->next = o->has_from ? o->from : ox_ml_next(t->ml, c->mark_delete);
    o->began_ns = ox_now_ns(t->shard->loop);
    o->first = o->last = OX_POS_EARLIEST;
    ox_timer_init(&o->rest, t->shard->loop, analyze_rested);
    ox_seq_start(&o->seq, t->shard->loop, "backlog.analyze", analyze_read, analyze_done);
}
