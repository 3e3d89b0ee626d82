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
#define PRODUCE_WINDOW_BYTES (16u << 20) // above this nothing more is read; one message may pass it

struct produce;

// The producer of a partition, or of a topic that has none.
struct produce_part {
    struct produce *p;
    char *topic;
    struct ox_client_producer_config config;
    struct ox_client_producer_open open;
    struct ox_client_producer *producer; // NULL: not open
    struct ox_op close;
};

struct produce {
    struct ctl_session session;
    struct ctl_topic topic;
    const json_t *texts; // of -m, or NULL
    const char *key;
    struct ox_kv properties;
    struct ox_client_producer_config config;
    struct produce_part *parts; // session.part_count
    uint32_t busy;              // parts that open or close
    uint32_t pending;           // messages without a receipt
    size_t pending_bytes;
    uint64_t sent; // messages without a key
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
    struct produce_part *part;
    size_t len;
};

static void produce_more(struct produce *p);

static void produce_end(struct produce *p)
{
    if (!p->failed && !p->session.ctl->json)
        fprintf(stderr, "%llu message%s stored\n", (unsigned long long)p->stored, p->stored == 1 ? "" : "s");
    ctl_session_end(&p->session, p->failed ? CTL_FAILED : CTL_DONE);
}

static void produce_closed(struct ox_op *op)
{
    struct produce *p = CONTAINER_OF(op, struct produce_part, close)->p;
    if (--p->busy == 0)
        produce_end(p);
}

static void produce_close(struct produce *p)
{
    if (p->closing || ox_op_pending(&p->reading.op))
        return;
    p->closing = true;
    for (uint32_t i = 0; i < p->session.part_count; i++) {
        struct produce_part *part = &p->parts[i];
        if (!part->producer)
            continue;
        p->busy++;
        ox_op_init(&part->close, p->session.loop, produce_closed, "produce.close");
        ox_client_producer_close(part->producer, &part->close);
    }
    if (p->busy == 0)
        produce_end(p);
}

// A receipt does not name the partition; who sent there knows it.
static void produce_print(const struct produce_part *part, const struct ox_message_id *id)
{
    bool partitioned = part->p->session.partitions.count > 0;
    printf("{\"messageId\":\"%lld:%lld:%d:%d\"}\n", (long long)id->ledger, (long long)id->entry,
           partitioned ? (int)(part - part->p->parts) : id->partition, id->batch_index);
}

static void produce_fail(struct produce_part *part, enum ox_err err)
{
    struct produce *p = part->p;
    if (!p->failed)
        ctl_session_fail(&p->session, part->topic, err, ox_client_producer_text(part->producer));
    p->failed = true;
    if (ox_op_pending(&p->reading.op)) // blocked in a read that may never end
        exit(CTL_FAILED);
}

static void produce_sent(struct ox_op *op)
{
    struct ox_client_send *send = CONTAINER_OF(op, struct ox_client_send, op);
    struct outgoing *out = CONTAINER_OF(send, struct outgoing, send);
    struct produce *p = out->part->p;
    p->pending--;
    p->pending_bytes -= out->len;
    if (op->err != OX_OK && !(p->closing && op->err == OX_E_CLOSED))
        produce_fail(out->part, op->err);
    if (op->err == OX_OK) {
        p->stored++;
        if (p->session.ctl->json)
            produce_print(out->part, &send->id);
    }
    ox_free(out);
    produce_more(p);
}

// A key's messages go to the partition that Pulsar's Java clients choose, others go round, a batch each.
static struct produce_part *produce_choose(struct produce *p)
{
    uint64_t at = p->key ? ctl_java_hash(p->key) & INT32_MAX : p->sent++ / p->config.batch_messages;
    return &p->parts[at % p->session.part_count];
}

static void produce_send(struct produce *p, const char *text, size_t len)
{
    struct outgoing *out = ox_malloc(sizeof *out);
    out->part = produce_choose(p);
    out->len = len;
    p->pending++;
    p->pending_bytes += len;
    out->send.payload = ox_buf_static(text, len);
    out->send.key = p->key;
    out->send.properties = &p->properties;
    ox_op_init(&out->send.op, p->session.loop, produce_sent, "produce.send");
    ox_client_producer_send(out->part->producer, &out->send);
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
    if (!p->texts)
        return produce_line(p, ret_text, ret_len);
    const json_t *text = json_array_get(p->texts, p->next_text++);
    *ret_text = json_string_value(text);
    *ret_len = json_string_length(text);
    return *ret_text != NULL;
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

static bool produce_full(const struct produce *p)
{
    return p->pending >= PRODUCE_WINDOW || p->pending_bytes >= PRODUCE_WINDOW_BYTES;
}

// Sends what there is while the window has room; reads on; closes at the end.
static void produce_more(struct produce *p)
{
    const char *text;
    size_t len;
    if (p->closing)
        return;
    while (!p->failed && !produce_full(p) && produce_next(p, &text, &len))
        produce_send(p, text, len);
    bool ended = p->failed || p->input_ended || p->texts;
    if (produce_full(p) && !p->failed)
        return;
    if (!ended && !ox_op_pending(&p->reading.op)) {
        produce_read_on(p);
    } else if (p->failed || (ended && p->pending == 0)) {
        produce_close(p);
    }
}

static void produce_opened(struct ox_op *op)
{
    struct ox_client_call *call = CONTAINER_OF(op, struct ox_client_call, op);
    struct produce_part *part =
        CONTAINER_OF(CONTAINER_OF(call, struct ox_client_producer_open, call), struct produce_part, open);
    struct produce *p = part->p;
    if (op->err == OX_OK)
        part->producer = part->open.producer;
    else if (!p->failed)
        ctl_session_fail(&p->session, part->topic, op->err, call->text);
    p->failed |= op->err != OX_OK;
    if (--p->busy == 0)
        produce_more(p);
}

static void produce_start(struct ctl_session *s)
{
    struct produce *p = CONTAINER_OF(s, struct produce, session);
    p->parts = ox_calloc(s->part_count, sizeof *p->parts);
    p->busy = s->part_count;
    for (uint32_t i = 0; i < s->part_count; i++) {
        struct produce_part *part = &p->parts[i];
        *part = (struct produce_part){.p = p, .topic = ctl_session_part(s, p->topic.full, i), .config = p->config};
        part->config.topic = part->topic;
        ox_op_init(&part->open.call.op, s->loop, produce_opened, "produce.open");
        ox_client_producer_open(s->client, &part->open, &part->config);
    }
}

// The number of the protocol: the names stand in its order.
static uint32_t produce_compression(const char *name)
{
    const char *names[] = {"none", "lz4", "zlib", "zstd", "snappy"};
    for (uint32_t i = 0; i < OX_COUNT(names); i++)
        if (strcmp(names[i], name) == 0)
            return i;
    OX_UNREACHABLE("a compression of the table");
}

static bool produce_properties(struct produce *p, const struct ctl *ctl)
{
    const json_t *pairs = ctl_value(ctl, "--property");
    for (size_t i = 0; i < json_array_size(pairs); i++) {
        const char *pair = json_string_value(json_array_get(pairs, i)), *equals = strchr(pair, '=');
        if (!equals || equals == pair) {
            ctl_misuse(ctl, "'%s' is no property: use NAME=VALUE", pair);
            return false;
        }
        OX_CLEANUP(ox_free_ptr)
        char *name = ox_strndup(pair, (size_t)(equals - pair));
        ox_kv_set(&p->properties, name, equals + 1);
    }
    return true;
}

static bool produce_configure(struct produce *p, const struct ctl *ctl)
{
    if (!ctl_topic_parse(ctl_text(ctl, "TOPIC"), &p->topic) || !produce_properties(p, ctl))
        return false;
    p->texts = ctl_value(ctl, "-m");
    p->key = ctl_text(ctl, "--key");
    p->config =
        (struct ox_client_producer_config){.name = ctl_text(ctl, "--name"),
                                           .pending_max = PRODUCE_WINDOW,
                                           .pending_bytes_max = SIZE_MAX,
                                           .batch_messages = (uint32_t)OX_MIN(ctl_integer(ctl, "--batch"), PRODUCE_WINDOW),
                                           .batch_delay_ns = OX_MS,
                                           .compression = produce_compression(ctl_text(ctl, "--compression"))};
    return true;
}

int ctl_produce(struct ctl *ctl)
{
    struct produce *p = ox_malloc(sizeof *p);
    p->reading.run = produce_read;
    p->reading.lane = OX_LANE_POOL;
    int status = CTL_USAGE;
    if (produce_configure(p, ctl))
        status = ctl_session_run(&p->session, ctl, p->topic.full, produce_start);
    for (uint32_t i = 0; p->parts && i < p->session.part_count; i++)
        ox_free(p->parts[i].topic);
    ox_free(p->parts);
    ctl_topic_fini(&p->topic);
    ox_kv_fini(&p->properties);
    ox_str_fini(&p->input);
    ox_free(p);
    return status;
}
