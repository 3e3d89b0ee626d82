// dispatch_entry.c - what all dispatchers do with an entry and with a read that failed.
#include <string.h>

#include "base/mem.h"
#include "broker/dispatch_int.h"
#include "broker/limits.h"
#include "wire/pulsar_frame.h"

static bool part_has_strays(const struct ox_batch_ack *part, uint32_t messages)
{
    for (size_t i = messages / 64; i < part->words; i++)
        if (part->bits[i] >> (i == messages / 64 ? messages % 64 : 0))
            return true;
    return false;
}

// What is still to be delivered of a batch; NULL: all of it. A client's set may have bits of messages that are not there: nobody would ever acknowledge those. *ret_gone: with them nothing is left.
static const struct ox_batch_ack *part_of(struct ox_cursor *c, struct ox_pos pos, uint32_t messages, bool *ret_gone)
{
    uint64_t there[OX_BATCH_WORDS_MAX];
    const struct ox_batch_ack *part = ox_cursor_part(c, pos);
    if (!part || !part_has_strays(part, messages))
        return part;
    size_t words = OX_MIN(((size_t)messages + 63) / 64, OX_COUNT(there));
    memset(there, 0xff, words * sizeof there[0]);
    if (messages % 64 && words * 64 >= messages)
        there[words - 1] = (UINT64_C(1) << messages % 64) - 1;
    ox_cursor_delete_part(c, NULL, pos, there, words, ret_gone, NULL);
    return *ret_gone ? NULL : ox_cursor_part(c, pos);
}

bool dispatch_fill(const struct ox_subscription *s, const struct ox_entry *entry, struct dispatch_view *ret)
{
    struct ox_message_view view;
    ret->out = (struct ox_dispatch){.pos = entry->pos, .entry = entry->data, .messages = 1};
    ret->metadata = (struct ox_buf){0};
    if (ox_message_parse(entry->data, false, &view))
        return true;
    ret->out.entry = view.entry;
    if (view.has_broker_entry) {
        ret->out.broker_metadata = entry->data;
        ret->out.broker_metadata.len = (size_t)(view.entry.data - entry->data.data);
    }
    if (ox_message_meta_scan(view.metadata.data, view.metadata.len, &ret->meta))
        return true;
    ret->metadata = view.metadata;
    ret->out.messages = (uint32_t)ret->meta.num_messages;
    bool gone = false;
    const struct ox_batch_ack *partly = part_of(s->cursor, entry->pos, ret->out.messages, &gone);
    if (partly) {
        ret->out.ack_set = partly->bits;
        ret->out.ack_words = partly->words;
        ret->out.messages = OX_MIN(ret->out.messages, ox_batch_bits_count(partly->bits, partly->words));
    }
    return !ret->meta.has_marker && !gone;
}

void dispatch_count(struct ox_consumer *c, const struct ox_dispatch *dispatch)
{
    struct ox_shard *sh = c->topic->shard;
    c->permits -= dispatch->messages;
    dispatch_take(c->subscription, dispatch->messages, dispatch->entry.len);
    ox_rate_add(&c->out, dispatch->messages, dispatch->entry.len);
    ox_rate_add(&c->subscription->out, dispatch->messages, dispatch->entry.len);
    ox_rate_add(&c->topic->out, dispatch->messages, dispatch->entry.len);
    sh->out_messages.value += dispatch->messages;
    sh->out_bytes.value += (int64_t)dispatch->entry.len;
    sh->out_bytes_by[c->subscription->is_system].value += (int64_t)dispatch->entry.len;
}

bool dispatch_retries(struct ox_subscription *s, enum ox_err err, uint64_t *delay_ns)
{
    struct ox_topic *t = s->topic;
    if (err == OX_E_CANCELED)
        return false;
    ox_warn(t->shard->log, "dispatch.read.failed", "topic=%s error=%s", t->name.full, ox_err_name(err));
    if (ox_err_class(err) == OX_CLASS_FENCED || err == OX_E_SHUTDOWN) {
        topic_fail(t, err);
        return false;
    }
    *delay_ns = *delay_ns ? OX_MIN(*delay_ns * 2, DISPATCH_RETRY_NS_MAX) : DISPATCH_RETRY_NS_MIN;
    return true;
}
