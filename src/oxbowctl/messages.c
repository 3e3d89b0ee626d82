// messages.c - verbs that show single messages: the broker answers an entry's payload, with the rest in headers.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "oxbowctl/bookie_clusters.h"
#include "oxbowctl/ctl.h"
#include "wire/message_meta.h"

// What is shown of one message.
struct shown {
    const struct ctl_answer *answer; // of the entry
    const void *payload;
    size_t len;
    int partition;       // -1: none
    int64_t batch_index; // -1: no batch
    const struct ox_batch_message *message;
};

static const char *const fields[][2] = {
    {"publishTime", "X-Pulsar-publish-time"}, {"eventTime", "X-Pulsar-event-time"},
    {"producer", "X-Pulsar-producer-name"},   {"sequenceId", "X-Pulsar-sequence-id"},
    {"key", "X-Pulsar-partition-key"},        {"replicatedFrom", "X-Pulsar-replicated-from"},
    {"encrypted", "X-Pulsar-Is-Encrypted"},
};

static void set_text(json_t *o, const char *name, const void *data, size_t len)
{
    struct ox_str text = {0};
    ctl_json_string(&text, data, len); // bytes that are no UTF-8 are replaced
    json_object_set_new(o, name, json_loadb(text.data, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL));
    ox_str_fini(&text);
}

static void set_properties(json_t *o, const struct shown *s)
{
    json_t *properties = NULL;
    if (s->message) {
        struct ox_span key, value;
        struct ox_property_iter at =
            ox_property_iter(s->message->metadata.data, s->message->metadata.len, OX_PROPERTIES_OF_SINGLE);
        properties = json_object();
        while (ox_property_next(&at, &key, &value)) {
            OX_CLEANUP(ox_free_ptr)
            char *name = ox_strndup((const char *)key.data, key.len);
            set_text(properties, name, value.data, value.len);
        }
    } else {
        OX_CLEANUP(ox_free_ptr)
        char *text = ctl_answer_header(s->answer, "X-Pulsar-PROPERTY");
        properties = text ? json_loads(text, 0, NULL) : NULL;
    }
    if (json_object_size(properties))
        json_object_set(o, "properties", properties);
    json_decref(properties);
}

static json_t *message_json(const struct shown *s)
{
    json_t *o = json_object();
    OX_CLEANUP(ox_free_ptr)
    char *id = ctl_answer_header(s->answer, "X-Pulsar-Message-ID");
    json_object_set_new(o, "messageId", json_sprintf("%s:%d:%" PRId64, id ? id : "-", s->partition, s->batch_index));
    for (size_t i = 0; i < OX_COUNT(fields); i++) {
        OX_CLEANUP(ox_free_ptr)
        char *value = ctl_answer_header(s->answer, fields[i][1]);
        if (value && *value)
            set_text(o, fields[i][0], value, strlen(value));
    }
    if (s->message && s->message->partition_key.data)
        set_text(o, "key", s->message->partition_key.data, s->message->partition_key.len);
    set_properties(o, s);
    set_text(o, "payload", s->payload, s->len);
    return o;
}

static void message_print(const struct ctl *ctl, const struct shown *s)
{
    json_t *o = message_json(s);
    if (ctl->json)
        ctl_print_json(o);
    else
        ctl_show_auto(o);
    json_decref(o);
}

// The number of a topic "...-partition-N", else -1.
static int partition_of(const struct ctl *ctl)
{
    static const char mark[] = "-partition-";
    const char *name = json_string_value(json_object_get(ctl->names, "topic")), *at = strstr(name, mark);
    int64_t n;
    for (const char *next = at; next; next = strstr(next + 1, mark))
        at = next; // the last one
    return at && ox_parse_i64(at + strlen(mark), 0, INT32_MAX, &n) == OX_OK ? (int)n : -1;
}

// Prints the messages of an entry, up to max. Returns how many.
static int64_t entry_print(const struct ctl *ctl, const struct ctl_answer *answer, int64_t max)
{
    OX_CLEANUP(ox_free_ptr)
    char *batch = ctl_answer_header(answer, "X-Pulsar-num-batch-message");
    const char *data = ox_str_get(&answer->body);
    struct ox_batch_message m;
    size_t at = 0;
    int64_t count = 0;
    int partition = partition_of(ctl);
    while (batch && count < max && ox_batch_next(data, answer->body.len, &at, &m) == OX_OK) {
        if (count > 0 && !ctl->json)
            printf("\n");
        message_print(ctl, &(struct shown){answer, m.payload.data, m.payload.len, partition, count, &m});
        count++;
    }
    if (count == 0 && max > 0) { // no batch, or one that cannot be taken apart (it is encrypted, say)
        message_print(ctl, &(struct shown){answer, data, answer->body.len, partition, -1, NULL});
        count = 1;
    }
    return count;
}

static bool entry_ask(const struct ctl *ctl, const char *path, struct ctl_answer *ret)
{
    struct ctl_ask ask = {.method = "GET", .path = path, .wants_headers = true};
    if (!ctl_rest_send(ctl, &ask, ret) || ret->status != 200)
        return false;
    OX_CLEANUP(ox_free_ptr)
    char *id = ctl_answer_header(ret, "X-Pulsar-Message-ID");
    if (!id)
        ret->trouble = ox_asprintf("%s answers without a message: is it a broker's REST door? (--url)", ctl->url);
    return id != NULL;
}

int ctl_message_show(struct ctl *ctl)
{
    struct ctl_request request;
    struct ctl_answer answer = {0};
    OX_CLEANUP(ox_free_ptr)
    char *what = ctl_subject(ctl);
    int status = ctl_request_make(ctl, &request);
    if (status == CTL_DONE) {
        if (entry_ask(ctl, ox_str_get(&request.path), &answer))
            entry_print(ctl, &answer, INT64_MAX);
        else
            status = ctl_answer_failed(ctl, &answer, what);
    }
    ctl_answer_fini(&answer);
    ctl_request_fini(&request);
    return status;
}

// Entry after entry from the subscription's position, until enough messages are shown or there are no more.
int ctl_message_peek(struct ctl *ctl)
{
    int64_t left = ctl_integer(ctl, "--count");
    OX_CLEANUP(ox_free_ptr)
    char *what = ctl_subject(ctl);
    int status = CTL_DONE;
    for (int64_t position = 1; left > 0 && status == CTL_DONE; position++) {
        struct ctl_request request;
        struct ctl_answer answer = {0};
        json_object_set_new(ctl->names, "position", json_sprintf("%" PRId64, position));
        status = ctl_request_make(ctl, &request);
        bool good = status == CTL_DONE && entry_ask(ctl, ox_str_get(&request.path), &answer);
        if (good && position > 1 && !ctl->json)
            printf("\n");
        if (good)
            left -= entry_print(ctl, &answer, left);
        else if (answer.status == 404 && strcasestr(ox_str_get(&answer.body), "message not found")) // there are no more
            left = 0;
        else if (status == CTL_DONE) {
            status = ctl_answer_failed(ctl, &answer, what);
            left = 0;
        }
        ctl_answer_fini(&answer);
        ctl_request_fini(&request);
    }
    return status;
}
