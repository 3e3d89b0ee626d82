// messages.c - single messages by id, by number and by time, and the last one's id.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/each.h"
#include "base/limits.h"
#include "gen/rest_routes.h"
#include "wire/compress.h"
#include "wire/message_meta.h"
#include "wire/pulsar_frame.h"

static void header_number(struct ox_kv *headers, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    ox_kv_set(headers, name, text);
}

static void header_span(struct ox_kv *headers, const char *name, struct ox_span span)
{
    OX_CLEANUP(ox_free_ptr)
    char *text = ox_strndup((const char *)span.data, span.len);
    if (span.data && !text[strcspn(text, "\r\n")])
        ox_kv_set(headers, name, text);
}

// All properties as one JSON object in letters of ASCII.
static void header_properties(struct ox_kv *headers, struct ox_buf metadata)
{
    struct ox_property_iter it = ox_property_iter(metadata.data, metadata.len, OX_PROPERTIES_OF_MESSAGE);
    struct ox_span key, value;
    json_t *object = json_object();
    while (ox_property_next(&it, &key, &value)) {
        OX_CLEANUP(ox_free_ptr)
        char *name = ox_strndup((const char *)key.data, key.len);
        json_object_set_new(object, name, json_stringn((const char *)value.data, value.len));
    }
    char *text = json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII);
    if (text)
        ox_kv_set(headers, "X-Pulsar-PROPERTY", text);
    free(text);
    json_decref(object);
}

static void header_payload(struct ox_kv *headers, const struct ox_message_meta *meta, const struct ox_message_view *view)
{
    static const char *const compressions[] = {"NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY"};
    if (meta->has_num_messages) {
        header_number(headers, "X-Pulsar-num-batch-message", (uint64_t)meta->num_messages);
        header_number(headers, "X-Pulsar-batch-size", view->metadata.len + view->payload.len);
    }
    if (meta->compression == OX_COMPRESSION_NONE || meta->compression >= OX_COUNT(compressions))
        return;
    ox_kv_set(headers, "X-Pulsar-compression", compressions[meta->compression]);
    header_number(headers, "X-Pulsar-uncompressed-size", meta->uncompressed_size);
}

static void message_headers(struct ox_kv *headers, struct ox_pos pos, const struct ox_message_meta *meta,
                            const struct ox_message_view *view)
{
    char text[64];
    snprintf(text, sizeof text, OX_POS_FMT, OX_POS_ARG(pos));
    ox_kv_set(headers, "X-Pulsar-Message-ID", text);
    header_properties(headers, view->metadata);
    admin_time(meta->publish_time_ms, text);
    ox_kv_set(headers, "X-Pulsar-publish-time", text);
    if (meta->event_time_ms) {
        admin_time(meta->event_time_ms, text);
        ox_kv_set(headers, "X-Pulsar-event-time", text);
    }
    header_payload(headers, meta, view);
    ox_kv_set(headers, "X-Pulsar-Is-Encrypted", meta->is_encrypted ? "true" : "false");
    header_span(headers, "X-Pulsar-producer-name", meta->producer_name);
    header_number(headers, "X-Pulsar-sequence-id", meta->sequence_id);
    header_span(headers, "X-Pulsar-partition-key", meta->partition_key);
    header_span(headers, "X-Pulsar-replicated-from", meta->replicated_from);
    ox_kv_set(headers, "X-Pulsar-txn-uncommitted", "false");
}

// The payload plain, a batch as a whole; what cannot be decompressed (it is encrypted, say) as it is.
static void message_answer(struct admin_request *r, const struct ox_entry *entry)
{
    struct ox_message_view view;
    struct ox_message_meta meta;
    struct ox_buf plain = {0};
    if (ox_message_parse(entry->data, false, &view) || ox_message_meta_scan(view.metadata.data, view.metadata.len, &meta)) {
        admin_fail(r, HTTP_INTERNAL_SERVER_ERROR, "the entry " OX_POS_FMT " cannot be read as a message",
                   OX_POS_ARG(entry->pos));
        return;
    }
    message_headers(&r->headers, entry->pos, &meta, &view);
    bool packed = meta.compression != OX_COMPRESSION_NONE && !meta.is_encrypted;
    if (packed && ox_decompress(meta.compression, view.payload.data, view.payload.len, meta.uncompressed_size,
                                OX_PEEK_BYTES_MAX, &plain) == OX_OK) {
        admin_bytes(r, HTTP_OK, plain.data, plain.len);
        ox_buf_unref(&plain);
    } else {
        admin_bytes(r, HTTP_OK, view.payload.data, view.payload.len);
    }
}

// ---- one entry

static ox_step peek_at(struct admin_each *e, struct ox_pos pos)
{
    e->u.peek.pos = pos;
    each_bind(e, &e->u.peek.op);
    ox_topic_peek(e->topic, &e->u.peek);
    return each_wait(e);
}

static void peek_collect(struct admin_each *e)
{
    message_answer(e->request, &e->u.peek.entry);
    ox_buf_unref(&e->u.peek.entry.data);
}

static ox_step by_id_run(struct admin_each *e)
{
    if (!e->topic->ml || !ox_ml_ledger(e->topic->ml, e->pos.ledger))
        return each_refuse(e, HTTP_NOT_FOUND, "Message id not found");
    return peek_at(e, e->pos);
}

static const struct admin_verb by_id_verb = {.name = "admin.message.get",
                                             .partitioned = EACH_REFUSED,
                                             .refusal = "GetMessageById is not allowed on partitioned-topic",
                                             .run = by_id_run,
                                             .collect = peek_collect};

static void message_by_id(struct admin_request *r)
{
    struct ox_pos pos;
    if (!admin_number(r, 7, &pos.ledger) || !admin_number(r, 9, &pos.entry))
        return;
    struct admin_each *e = each_new(r, &by_id_verb);
    e->pos = pos;
    each_start(e);
}

// A subscription that is not there would begin with the first message: as on Pulsar, which makes it for that, and keeps it.
static ox_step nth_run(struct admin_each *e)
{
    uint64_t n = (uint64_t)e->number, all = e->topic->ml ? e->topic->ml->total_entries : 0;
    struct ox_pos pos = e->subscription ? ox_subscription_nth(e->subscription, n)
                        : n && n <= all ? ox_topic_nth(e->topic, false, n)
                                        : OX_POS_EARLIEST;
    return pos.entry < 0 ? each_refuse(e, HTTP_NOT_FOUND, "Message not found") : peek_at(e, pos);
}

static const struct admin_verb nth_verb = {.name = "admin.message.peek",
                                           .partitioned = EACH_REFUSED,
                                           .refusal = "Peek messages on a partitioned topic is not allowed",
                                           .run = nth_run,
                                           .collect = peek_collect};

static void message_nth(struct admin_request *r)
{
    int64_t n;
    if (!admin_number(r, 9, &n))
        return;
    struct admin_each *e = each_new(r, &nth_verb);
    each_subscription(e, 7);
    e->number = OX_MAX(n, 0);
    each_start(e);
}

static ox_step examine_run(struct admin_each *e)
{
    struct ox_pos pos = ox_topic_nth(e->topic, e->flag, (uint64_t)e->number);
    if (pos.entry < 0)
        return each_refuse(e, HTTP_PRECONDITION_FAILED, "Could not examine messages due to the total message is zero");
    return peek_at(e, pos);
}

static const struct admin_verb examine_verb = {.name = "admin.message.examine",
                                               .partitioned = EACH_REFUSED,
                                               .refusal = "Examine messages on a partitioned topic is not allowed, "
                                                          "please try examine message on specific topic partition",
                                               .run = examine_run,
                                               .collect = peek_collect};

static void message_examine(struct admin_request *r)
{
    const char *from = admin_query(r, "initialPosition"), *count = admin_query(r, "messagePosition");
    int64_t n = 1;
    if (count && ox_parse_i64(count, 0, INT64_MAX, &n) != OX_OK) {
        admin_fail(r, HTTP_NOT_FOUND, "messagePosition \"%s\" is no whole number", count);
        return;
    }
    struct admin_each *e = each_new(r, &examine_verb);
    e->flag = !from || strcmp(from, "earliest") != 0;
    e->number = n;
    each_start(e);
}

// ---- ids

static ox_step by_time_run(struct admin_each *e)
{
    if (!e->topic->ml)
        return each_refuse(e, HTTP_METHOD_NOT_ALLOWED, "Get message ID by timestamp on a non-persistent topic is not allowed");
    e->u.time.time_ms = (uint64_t)e->number;
    each_bind(e, &e->u.time.op);
    ox_topic_find_time(e->topic, &e->u.time);
    return each_wait(e);
}

static void by_time_collect(struct admin_each *e)
{
    e->result = admin_message_id(e->u.time.pos, each_partition(e), -1);
}

static const struct admin_verb by_time_verb = {.name = "admin.message.id",
                                               .partitioned = EACH_REFUSED,
                                               .refusal = "Get message ID by timestamp on a partitioned topic is not "
                                                          "allowed, please try do it on specific topic partition",
                                               .run = by_time_run,
                                               .collect = by_time_collect};

static void message_id_by_time(struct admin_request *r)
{
    int64_t time_ms;
    if (!admin_number(r, 7, &time_ms))
        return;
    struct admin_each *e = each_new(r, &by_time_verb);
    e->number = OX_MAX(time_ms, 0);
    each_start(e);
}

static ox_step last_run(struct admin_each *e)
{
    if (!e->topic->ml)
        return each_refuse(e, HTTP_METHOD_NOT_ALLOWED, "GetLastMessageId on a non-persistent topic is not allowed");
    each_bind(e, &e->u.last_id.op);
    ox_topic_last_id(e->topic, &e->u.last_id);
    return each_wait(e);
}

static void last_collect(struct admin_each *e)
{
    const struct ox_last_id *last = &e->u.last_id;
    struct ox_pos pos = last->pos.ledger < 0 && e->topic->ml ? e->topic->ml->last : last->pos;
    e->result = admin_message_id(pos, each_partition(e), last->batch_index);
}

static const struct admin_verb last_verb = {
    .name = "admin.message.last", .partitioned = EACH_NOT_FOUND, .run = last_run, .collect = last_collect};

static void message_last(struct admin_request *r)
{
    each_start(each_new(r, &last_verb));
}

static const struct admin_route routes[] = {ADMIN_ROUTES_MESSAGES};
const struct admin_route_table admin_messages = {routes, OX_COUNT(routes)};
