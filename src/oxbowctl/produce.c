// produce.c - oxbowctl produce: texts or lines of standard input become messages.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "oxbowctl/ctl.h"
#include "wire/compress.h"

#define PRODUCE_READ_BYTES (64u << 10)
#define PRODUCE_WINDOW 1000

struct produce {
    struct ctl_session session;
    struct ctl_topic topic;
    const char *key, *name, *compression;
    int64_t batch;
    struct ctl_words texts, pairs;
    struct ox_kv properties;
    struct ox_client_producer_config config;
    struct ox_client_producer_open open;
    struct ox_client_producer *producer;
    struct ox_op close;
    // Where messages come from.
    size_t next_text;
    struct ox_job reading;
    char chunk[PRODUCE_READ_BYTES];
    ssize_t chunk_len; // of the last read; 0: the end, -1: an error
    struct ox_str input;
    size_t input_at;
    bool input_ended;
    uint64_t stored;
    bool failed, closing;
};

// A message on its way.
struct outgoing {
    struct ox_client_send send;
    struct produce *p;
};

static void produce_more(struct produce *p);

static void produce_closed(struct ox_op *op)
{
    struct produce *p = CONTAINER_OF(op, struct produce, close);
    if (!p->failed && !p->session.ctl->json)
        fprintf(stderr, "%llu messages stored\n", (unsigned long long)p->stored);
    ctl_session_end(&p->session, p->failed ? CTL_FAILED : CTL_DONE);
}

static void produce_close(struct produce *p)
{
    if (p->closing || ox_op_pending(&p->reading.op))
        return;
    p->closing = true;
    ox_op_init(&p->close, p->session.loop, produce_closed, "produce.close");
    ox_client_producer_close(p->producer, &p->close);
}

static void produce_print(const struct ox_message_id *id)
{
    printf("{\"messageId\":\"%lld:%lld:%d:%d\"}\n", (long long)id->ledger, (long long)id->entry, id->partition,
           id->batch_index);
}

static void produce_fail(struct produce *p, enum ox_err err)
{
    if (!p->failed)
        ctl_session_fail(&p->session, p->topic.full, err, ox_client_producer_text(p->producer));
    p->failed = true;
    if (ox_op_pending(&p->reading.op)) // blocked in a read that may never end
        exit(CTL_FAILED);
}

static void produce_sent(struct ox_op *op)
{
    struct ox_client_send *send = CONTAINER_OF(op, struct ox_client_send, op);
    struct outgoing *out = CONTAINER_OF(send, struct outgoing, send);
    struct produce *p = out->p;
    if (op->err != OX_OK && !(p->closing && op->err == OX_E_CLOSED))
        produce_fail(p, op->err);
    if (op->err == OX_OK) {
        p->stored++;
        if (p->session.ctl->json)
            produce_print(&send->id);
    }
    ox_free(out);
    produce_more(p);
}

static void produce_send(struct produce *p, const char *text, size_t len)
{
    struct outgoing *out = ox_malloc(sizeof *out);
    out->p = p;
    out->send.payload = ox_buf_static(text, len);
    out->send.key = p->key;
    out->send.properties = &p->properties;
    ox_op_init(&out->send.op, p->session.loop, produce_sent, "produce.send");
    ox_client_producer_send(p->producer, &out->send);
}

static void produce_read(struct ox_job *job)
{
    struct produce *p = CONTAINER_OF(job, struct produce, reading);
    p->chunk_len = read(STDIN_FILENO, p->chunk, sizeof p->chunk);
}

static void produce_was_read(struct ox_op *op)
{
    struct produce *p = CONTAINER_OF(op, struct produce, reading.op);
    if (p->chunk_len > 0)
        ox_str_add(&p->input, p->chunk, (size_t)p->chunk_len);
    else
        p->input_ended = true;
    if (p->chunk_len < 0) {
        ctl_fail("standard input: read failed");
        p->failed = true;
    }
    produce_more(p);
}

// The next line of the input, without its end; false if more has to be read.
static bool produce_line(struct produce *p, const char **ret_line, size_t *ret_len)
{
    const char *from = ox_str_get(&p->input) + p->input_at;
    size_t left = p->input.len - p->input_at;
    const char *end = memchr(from, '\n', left);
    if (!end && (!p->input_ended || left == 0))
        return false;
    *ret_line = from;
    *ret_len = end ? (size_t)(end - from) : left;
    p->input_at += *ret_len + (end != NULL);
    return true;
}

static bool produce_next(struct produce *p, const char **ret_text, size_t *ret_len)
{
    if (p->texts.count == 0)
        return produce_line(p, ret_text, ret_len);
    if (p->next_text == p->texts.count)
        return false;
    *ret_text = p->texts.items[p->next_text++];
    *ret_len = strlen(*ret_text);
    return true;
}

static void produce_read_on(struct produce *p)
{
    struct ox_str rest = {0};
    ox_str_add(&rest, ox_str_get(&p->input) + p->input_at, p->input.len - p->input_at);
    ox_str_fini(&p->input);
    p->input = rest;
    p->input_at = 0;
    if (p->input.len > OX_MESSAGE_BYTES_MAX) {
        ctl_fail("a line is longer than %u bytes", OX_MESSAGE_BYTES_MAX);
        p->failed = p->input_ended = true;
        produce_close(p);
        return;
    }
    ox_op_init(&p->reading.op, p->session.loop, produce_was_read, "produce.read");
    ox_job_submit(p->session.loop, &p->reading);
}

// Sends what there is while the window has room; reads on; closes at the end.
static void produce_more(struct produce *p)
{
    const char *text;
    size_t len;
    if (p->closing)
        return;
    while (!p->failed && ox_client_producer_pending(p->producer) < PRODUCE_WINDOW && produce_next(p, &text, &len))
        produce_send(p, text, len);
    bool full = ox_client_producer_pending(p->producer) >= PRODUCE_WINDOW;
    bool ended = p->failed || p->input_ended || p->texts.count > 0;
    if (full && !p->failed)
        return;
    if (!ended && !ox_op_pending(&p->reading.op)) {
        produce_read_on(p);
    } else if (p->failed || (ended && ox_client_producer_pending(p->producer) == 0)) {
        produce_close(p);
    }
}

static void produce_opened(struct ox_op *op)
{
    struct ox_client_call *call = CONTAINER_OF(op, struct ox_client_call, op);
    struct produce *p = CONTAINER_OF(CONTAINER_OF(call, struct ox_client_producer_open, call), struct produce, open);
    if (op->err != OX_OK) {
        ctl_session_fail(&p->session, p->topic.full, op->err, call->text);
        ctl_session_end(&p->session, CTL_FAILED);
        return;
    }
    p->producer = p->open.producer;
    produce_more(p);
}

static void produce_start(struct ctl_session *s)
{
    struct produce *p = CONTAINER_OF(s, struct produce, session);
    ox_op_init(&p->open.call.op, s->loop, produce_opened, "produce.open");
    ox_client_producer_open(s->client, &p->open, &p->config);
}

static bool produce_compression(const char *name, uint32_t *ret)
{
    const char *names[] = {"none", "lz4", "zlib", "zstd", "snappy"};
    for (uint32_t i = 0; i < OX_COUNT(names); i++)
        if (strcmp(names[i], name) == 0) {
            *ret = i;
            return true;
        }
    ctl_fail("'%s' is no compression: use none, lz4, zlib, zstd or snappy", name);
    return false;
}

static bool produce_properties(struct produce *p)
{
    for (size_t i = 0; i < p->pairs.count; i++) {
        const char *pair = p->pairs.items[i], *equals = strchr(pair, '=');
        if (!equals || equals == pair) {
            ctl_fail("'%s' is no property: use NAME=VALUE", pair);
            return false;
        }
        OX_CLEANUP(ox_free_ptr)
        char *name = ox_strndup(pair, (size_t)(equals - pair));
        ox_kv_set(&p->properties, name, equals + 1);
    }
    return true;
}

static bool produce_parse(struct produce *p, struct ctl *ctl)
{
    const char *topic;
    p->compression = "none";
    p->batch = 1;
    const struct ctl_option options[] = {
        {"-m", CTL_LIST, {.list = &p->texts}},
        {"--key", CTL_TEXT, {.text = &p->key}},
        {"--property", CTL_LIST, {.list = &p->pairs}},
        {"--batch", CTL_NUMBER, {.number = &p->batch}},
        {"--compression", CTL_TEXT, {.text = &p->compression}},
        {"--name", CTL_TEXT, {.text = &p->name}},
    };
    if (!ctl_parse(ctl, options, OX_COUNT(options), &topic, 1, 1))
        return false;
    if (!ctl_topic_parse(topic, &p->topic) || !produce_properties(p))
        return false;
    p->config = (struct ox_client_producer_config){.topic = p->topic.full,
                                                   .name = p->name,
                                                   .pending_max = PRODUCE_WINDOW,
                                                   .pending_bytes_max = SIZE_MAX,
                                                   .batch_messages = (uint32_t)OX_MIN(p->batch, PRODUCE_WINDOW),
                                                   .batch_delay_ns = OX_MS};
    return produce_compression(p->compression, &p->config.compression);
}

int ctl_produce(struct ctl *ctl)
{
    struct produce *p = ox_malloc(sizeof *p);
    p->reading.run = produce_read;
    p->reading.lane = OX_LANE_POOL;
    int status = CTL_USAGE;
    if (produce_parse(p, ctl))
        status = ctl_session_run(&p->session, ctl, p->topic.full, produce_start);
    ctl_topic_fini(&p->topic);
    ox_kv_fini(&p->properties);
    ox_str_fini(&p->input);
    ox_free(p->texts.items);
    ox_free(p->pairs.items);
    ox_free(p);
    return status;
}
