// consume.c - oxbowctl consume: messages as lines of standard output.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/pos.h"
#include "base/str.h"
#include "oxbowctl/ctl.h"

#define CONSUME_IDLE_NS (3 * OX_SEC) // nothing more comes: what is left was acknowledged one by one before

struct consume;

// The consumer of a partition, or of a topic that has none.
struct consume_part {
    struct consume *c;
    char *topic;
    struct ox_client_consumer_config config;
    struct ox_client_consumer_open open;
    struct ox_client_consumer *consumer; // NULL: not open
    struct ox_client_last_id last;
    bool last_known;
    struct ox_client_last_id alive; // asked when nothing comes: is the broker there at all?
    struct ox_message_id seen;      // the last message printed
    bool fresh;                     // `seen` is not acknowledged yet
    bool unsure;                    // ... or was, but the broker did not say that it took it
    bool lost;                      // the broker has taken its consumer away
    bool ended;                     // terminated, and all of it was read
    struct ox_client_call ack;
    struct ox_op close;
};

struct consume {
    struct ctl_session session;
    struct ctl_topic topic;
    const char *subscription, *from;
    char *reader_name;
    int64_t count;
    bool follow;
    struct ox_client_consumer_config config;
    struct consume_part *parts; // session.part_count
    uint32_t busy;              // parts that open, or close
    struct ox_timer idle;
    uint32_t asked;          // parts whose broker has not answered yet
    int64_t printed_at_idle; // when they were asked
    struct ox_turn_hook flush;
    int64_t printed;
    bool ending, failed;
    bool unwritten; // standard output failed: what was printed may not have left
};

static void consume_end(struct consume *c);

static void consume_closed(struct ox_op *op)
{
    struct consume *c = CONTAINER_OF(op, struct consume_part, close)->c;
    if (--c->busy == 0)
        ctl_session_end(&c->session, c->failed ? CTL_FAILED : CTL_DONE);
}

static void consume_close(struct consume_part *part)
{
    ox_op_init(&part->close, part->c->session.loop, consume_closed, "consume.close");
    ox_client_consumer_close(part->consumer, &part->close);
}

static void consume_acked(struct ox_op *op)
{
    struct ox_client_call *call = CONTAINER_OF(op, struct ox_client_call, op);
    struct consume_part *part = CONTAINER_OF(call, struct consume_part, ack);
    if (op->err != OX_OK) {
        ctl_session_fail(&part->c->session, "the acknowledgement", op->err, call->text);
        part->c->failed = true;
    }
    consume_close(part);
}

// Acknowledges what was printed, then closes; all that was opened.
static void consume_leave(struct consume *c)
{
    ox_timer_stop(&c->idle);
    ox_turn_end_cancel(c->session.loop, &c->flush);
    for (uint32_t i = 0; i < c->session.part_count; i++) {
        struct consume_part *part = &c->parts[i];
        c->busy += part->consumer != NULL;
        if (part->consumer && part->unsure && !part->lost && !c->unwritten) {
            ox_op_init(&part->ack.op, c->session.loop, consume_acked, "consume.ack");
            ox_client_consumer_ack(part->consumer, &part->ack, &part->seen, true);
        } else if (part->consumer) {
            consume_close(part);
        }
    }
    if (c->busy == 0)
        ctl_session_end(&c->session, c->failed ? CTL_FAILED : CTL_DONE);
}

// What was printed leaves this process before it is acknowledged. While parts are being opened the last of them goes on.
static void consume_end(struct consume *c)
{
    if (c->ending)
        return;
    c->ending = true;
    c->unwritten = !ctl_flush(); // main says so
    if (c->busy == 0)
        consume_leave(c);
}

static void consume_flush(struct ox_turn_hook *hook)
{
    struct consume *c = CONTAINER_OF(hook, struct consume, flush);
    if (!ctl_flush()) {
        consume_end(c);
        return;
    }
    for (uint32_t i = 0; i < c->session.part_count; i++) {
        struct consume_part *part = &c->parts[i];
        if (part->fresh && part->consumer) {
            part->fresh = false;
            ox_client_consumer_ack(part->consumer, NULL, &part->seen, true);
        }
    }
}

static void consume_print_properties(struct ox_str *line, struct ox_property_iter properties)
{
    struct ox_span key, value;
    const char *comma = "";
    ox_str_adds(line, ",\"properties\":{");
    while (ox_property_next(&properties, &key, &value)) {
        ox_str_adds(line, comma);
        ctl_json_string(line, key.data, key.len);
        ox_str_adds(line, ":");
        ctl_json_string(line, value.data, value.len);
        comma = ",";
    }
    ox_str_adds(line, "}");
}

static void consume_print_json(const struct ox_received *m)
{
    struct ox_str line = {0};
    ox_str_addf(&line, "{\"messageId\":\"%lld:%lld:%d:%d\"", (long long)m->id.ledger, (long long)m->id.entry,
                m->id.partition, m->id.batch_index);
    if (m->key.data) {
        ox_str_adds(&line, ",\"key\":");
        ctl_json_string(&line, m->key.data, m->key.len);
    }
    consume_print_properties(&line, m->properties);
    ox_str_addf(&line, ",\"publishTime\":%llu,\"redeliveryCount\":%u,\"payload\":",
                (unsigned long long)m->meta->publish_time_ms, m->redelivery_count);
    ctl_json_string(&line, m->payload.data, m->payload.len);
    ox_str_adds(&line, "}\n");
    fwrite(line.data, 1, line.len, stdout);
    ox_str_fini(&line);
}

static void consume_print(const struct consume *c, const struct ox_received *m)
{
    if (c->session.ctl->json) {
        consume_print_json(m);
        return;
    }
    if (m->payload.len)
        fwrite(m->payload.data, 1, m->payload.len, stdout);
    fputc('\n', stdout);
}

// True when nothing that was in the topic at the start can come any more.
static bool consume_part_at_end(const struct consume_part *part)
{
    const struct ox_client_last_id *known = &part->last;
    if (part->ended)
        return true;
    if (!part->last_known || known->id.entry < 0)
        return part->last_known;
    struct ox_pos last = {known->id.ledger, known->id.entry}, seen = {part->seen.ledger, part->seen.entry};
    struct ox_pos marked = {known->mark_delete.ledger, known->mark_delete.entry};
    if (part->c->subscription && known->has_mark_delete && ox_pos_cmp(marked, last) >= 0)
        return true;
    int cmp = ox_pos_cmp(seen, last);
    return cmp > 0 || (cmp == 0 && (part->seen.batch_index < 0 || part->seen.batch_index + 1 >= part->seen.batch_size));
}

static bool consume_at_end(const struct consume *c)
{
    for (uint32_t i = 0; i < c->session.part_count; i++)
        if (!consume_part_at_end(&c->parts[i]))
            return false;
    return true;
}

static void consume_check_end(struct consume *c)
{
    if ((c->count && c->printed >= c->count) || (!c->follow && !c->count && consume_at_end(c)))
        consume_end(c);
}

static void consume_message(struct ox_client_consumer *consumer, const struct ox_received *m)
{
    struct consume_part *part = ox_client_consumer_owner(consumer);
    struct consume *c = part->c;
    if (c->ending || (c->count && c->printed >= c->count))
        return;
    consume_print(c, m);
    c->printed++;
    part->seen = m->id;
    part->fresh = part->unsure = c->subscription != NULL;
    if (ox_timer_started(&c->idle))
        ox_timer_start(&c->idle, CONSUME_IDLE_NS);
    ox_turn_end(c->session.loop, &c->flush);
    consume_check_end(c);
}

static void consume_failed(struct ox_client_consumer *consumer, enum ox_err err, const char *text)
{
    struct consume_part *part = ox_client_consumer_owner(consumer);
    ctl_session_fail(&part->c->session, part->topic, err, text);
    part->c->failed = part->lost = true;
    consume_end(part->c);
}

static void consume_damaged(struct ox_client_consumer *consumer, const struct ox_message_id *id, enum ox_err err)
{
    struct consume_part *part = ox_client_consumer_owner(consumer);
    ctl_fail("entry %lld:%lld: %s", (long long)id->ledger, (long long)id->entry, ox_err_text(err));
    part->c->failed = true; // the others are printed all the same
    part->seen = *id;
    consume_check_end(part->c);
}

static void consume_end_of_topic(struct ox_client_consumer *consumer)
{
    struct consume_part *part = ox_client_consumer_owner(consumer);
    part->ended = true;
    for (uint32_t i = 0; i < part->c->session.part_count; i++)
        if (!part->c->parts[i].ended) {
            consume_check_end(part->c);
            return;
        }
    consume_end(part->c);
}

static const struct ox_client_consumer_events consume_events = {
    .message = consume_message, .failed = consume_failed, .damaged = consume_damaged, .end_of_topic = consume_end_of_topic};

// All brokers answered: silence means that nothing is left, unless something came meanwhile.
static void consume_alive(struct ox_op *op)
{
    struct ox_client_call *call = CONTAINER_OF(op, struct ox_client_call, op);
    struct consume_part *part = CONTAINER_OF(CONTAINER_OF(call, struct ox_client_last_id, call), struct consume_part, alive);
    struct consume *c = part->c;
    c->asked--;
    if (c->ending)
        return;
    if (op->err != OX_OK) {
        ctl_session_fail(&c->session, part->topic, op->err, call->text);
        c->failed = true;
        consume_end(c);
    } else if (c->asked == 0 && c->printed == c->printed_at_idle) {
        consume_end(c);
    } else if (c->asked == 0) {
        ox_timer_start(&c->idle, CONSUME_IDLE_NS);
    }
}

static void consume_idle(struct ox_timer *timer)
{
    struct consume *c = CONTAINER_OF(timer, struct consume, idle);
    if (c->busy > 0) { // not all of them are open yet
        ox_timer_start(&c->idle, CONSUME_IDLE_NS);
        return;
    }
    c->printed_at_idle = c->printed;
    c->asked = c->session.part_count;
    for (uint32_t i = 0; i < c->session.part_count; i++) {
        ox_op_init(&c->parts[i].alive.call.op, c->session.loop, consume_alive, "consume.alive");
        ox_client_consumer_last_id(c->parts[i].consumer, &c->parts[i].alive);
    }
}

static void consume_last_known(struct ox_op *op)
{
    struct ox_client_call *call = CONTAINER_OF(op, struct ox_client_call, op);
    struct consume_part *part = CONTAINER_OF(CONTAINER_OF(call, struct ox_client_last_id, call), struct consume_part, last);
    struct consume *c = part->c;
    if (c->ending)
        return;
    if (op->err != OX_OK) {
        ctl_session_fail(&c->session, part->topic, op->err, call->text);
        c->failed = true;
        consume_end(c);
        return;
    }
    part->last_known = true;
    if (strcmp(c->from, "latest") == 0 && !c->subscription)
        part->seen = part->last.id; // a reader at the end: all of it is behind
    ox_timer_start(&c->idle, CONSUME_IDLE_NS);
    consume_check_end(c);
}

static void consume_opened(struct ox_op *op)
{
    struct ox_client_call *call = CONTAINER_OF(op, struct ox_client_call, op);
    struct consume_part *part =
        CONTAINER_OF(CONTAINER_OF(call, struct ox_client_consumer_open, call), struct consume_part, open);
    struct consume *c = part->c;
    bool ending = c->ending;
    c->busy--;
    if (op->err == OX_OK) {
        part->consumer = part->open.consumer;
    } else {
        if (!c->failed)
            ctl_session_fail(&c->session, part->topic, op->err, call->text);
        c->failed = true;
        consume_end(c);
    }
    if (ending && c->busy == 0)
        consume_leave(c);
    if (c->ending)
        return;
    if (c->follow || c->count) {
        consume_check_end(c);
        return;
    }
    ox_op_init(&part->last.call.op, c->session.loop, consume_last_known, "consume.last");
    ox_client_consumer_last_id(part->consumer, &part->last);
}

static void consume_signal(void *ctx, int signo)
{
    struct consume *c = ctx;
    (void)signo;
    if (c->busy > 0 || c->ending)
        exit(CTL_FAILED);
    consume_end(c);
}

static void consume_start(struct ctl_session *s)
{
    struct consume *c = CONTAINER_OF(s, struct consume, session);
    ox_timer_init(&c->idle, s->loop, consume_idle);
    c->flush.run = consume_flush;
    ox_posix_on_signal(s->loop, consume_signal, c);
    c->parts = ox_calloc(s->part_count, sizeof *c->parts);
    c->busy = s->part_count;
    for (uint32_t i = 0; i < s->part_count; i++) {
        struct consume_part *part = &c->parts[i];
        *part = (struct consume_part){
            .c = c, .topic = ctl_session_part(s, c->topic.full, i), .config = c->config, .seen = OX_MESSAGE_ID_NONE};
        part->config.topic = part->topic;
        part->config.owner = part;
        ox_op_init(&part->open.call.op, s->loop, consume_opened, "consume.open");
        ox_client_consumer_open(s->client, &part->open, &part->config);
    }
}

static void consume_configure(struct consume *c, const struct ctl *ctl)
{
    c->subscription = ctl_text(ctl, "--subscription");
    c->from = ctl_text(ctl, "--from");
    c->count = ctl_integer(ctl, "--count");
    c->follow = ctl_flag(ctl, "--follow");
    c->reader_name = c->subscription ? NULL : ox_asprintf("oxbowctl-reader-%ld", (long)getpid());
    c->config = (struct ox_client_consumer_config){.subscription = c->subscription ? c->subscription : c->reader_name,
                                                   .non_durable = c->subscription == NULL,
                                                   .earliest = strcmp(c->from, "earliest") == 0,
                                                   .batch_index_ack = true,
                                                   .receiver_queue = c->count && c->count < 1000 ? (uint32_t)c->count : 0,
                                                   .events = &consume_events};
}

static bool consume_has_end(const struct consume *c, const struct ctl *ctl)
{
    if (strcmp(c->topic.domain, "persistent") == 0 || ctl_flag(ctl, "--follow") || ctl_integer(ctl, "--count") > 0)
        return true;
    ctl_misuse(ctl, "%s keeps no messages, so there is no end to read to: --follow or --count waits for new ones",
               c->topic.full);
    return false;
}

int ctl_consume(struct ctl *ctl)
{
    struct consume *c = ox_malloc(sizeof *c);
    int status = CTL_USAGE;
    if (ctl_topic_parse(ctl_text(ctl, "TOPIC"), &c->topic) && consume_has_end(c, ctl)) {
        consume_configure(c, ctl);
        status = ctl_session_run(&c->session, ctl, c->topic.full, consume_start);
    }
    for (uint32_t i = 0; c->parts && i < c->session.part_count; i++)
        ox_free(c->parts[i].topic);
    ox_free(c->parts);
    ctl_topic_fini(&c->topic);
    ox_free(c->reader_name);
    ox_free(c);
    return status;
}
