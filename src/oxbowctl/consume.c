// consume.c - oxbowctl consume: messages as lines of standard output.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/pos.h"
#include "base/str.h"
#include "oxbowctl/ctl.h"

#define CONSUME_IDLE_NS (1 * OX_SEC) // nothing more comes: what is left was acknowledged one by one before

struct consume {
    struct ctl_session session;
    struct ctl_topic topic;
    const char *subscription, *from;
    char *reader_name;
    int64_t count;
    bool follow;
    struct ox_client_consumer_config config;
    struct ox_client_consumer_open open;
    struct ox_client_consumer *consumer;
    struct ox_client_last_id last;
    bool last_known;
    struct ox_client_call ack;
    struct ox_op close;
    struct ox_timer idle;
    struct ox_turn_hook flush;
    struct ox_message_id seen; // the last message printed
    bool unacked;              // `seen` is not acknowledged yet
    int64_t printed;
    bool ending, failed;
};

static void consume_end(struct consume *c);

static void consume_closed(struct ox_op *op)
{
    struct consume *c = CONTAINER_OF(op, struct consume, close);
    ctl_session_end(&c->session, c->failed ? CTL_FAILED : CTL_DONE);
}

static void consume_close(struct consume *c)
{
    ox_op_init(&c->close, c->session.loop, consume_closed, "consume.close");
    ox_client_consumer_close(c->consumer, &c->close);
}

static void consume_acked(struct ox_op *op)
{
    struct ox_client_call *call = CONTAINER_OF(op, struct ox_client_call, op);
    struct consume *c = CONTAINER_OF(call, struct consume, ack);
    if (op->err != OX_OK) {
        ctl_session_fail(&c->session, "the acknowledgement", op->err, call->text);
        c->failed = true;
    }
    consume_close(c);
}

// Acknowledges what was printed (and has left this process), then closes.
static void consume_end(struct consume *c)
{
    if (c->ending || !c->consumer)
        return;
    c->ending = true;
    ox_timer_stop(&c->idle);
    ox_turn_end_cancel(c->session.loop, &c->flush);
    if (fflush(stdout) != 0) {
        ctl_fail("standard output: write failed");
        c->failed = true;
    }
    if (!c->unacked || c->failed) {
        consume_close(c);
        return;
    }
    ox_op_init(&c->ack.op, c->session.loop, consume_acked, "consume.ack");
    ox_client_consumer_ack(c->consumer, &c->ack, &c->seen, true);
}

static void consume_flush(struct ox_turn_hook *hook)
{
    struct consume *c = CONTAINER_OF(hook, struct consume, flush);
    if (fflush(stdout) != 0) {
        consume_end(c);
        return;
    }
    if (c->unacked && c->consumer)
        ox_client_consumer_ack(c->consumer, NULL, &c->seen, true);
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
static bool consume_at_end(const struct consume *c)
{
    if (!c->last_known || c->last.id.entry < 0)
        return c->last_known;
    struct ox_pos last = {c->last.id.ledger, c->last.id.entry}, seen = {c->seen.ledger, c->seen.entry};
    struct ox_pos marked = {c->last.mark_delete.ledger, c->last.mark_delete.entry};
    if (c->subscription && c->last.has_mark_delete && ox_pos_cmp(marked, last) >= 0)
        return true;
    int cmp = ox_pos_cmp(seen, last);
    return cmp > 0 || (cmp == 0 && (c->seen.batch_index < 0 || c->seen.batch_index + 1 >= c->seen.batch_size));
}

static void consume_check_end(struct consume *c)
{
    if ((c->count && c->printed >= c->count) || (!c->follow && !c->count && consume_at_end(c)))
        consume_end(c);
}

static void consume_message(struct ox_client_consumer *consumer, const struct ox_received *m)
{
    struct consume *c = ox_client_consumer_owner(consumer);
    if (c->ending || (c->count && c->printed >= c->count))
        return;
    consume_print(c, m);
    c->printed++;
    c->seen = m->id;
    c->unacked = c->subscription != NULL;
    if (ox_timer_started(&c->idle))
        ox_timer_start(&c->idle, CONSUME_IDLE_NS);
    ox_turn_end(c->session.loop, &c->flush);
    consume_check_end(c);
}

static void consume_failed(struct ox_client_consumer *consumer, enum ox_err err, const char *text)
{
    struct consume *c = ox_client_consumer_owner(consumer);
    ctl_session_fail(&c->session, c->topic.full, err, text);
    c->failed = true;
    consume_end(c);
}

static void consume_damaged(struct ox_client_consumer *consumer, const struct ox_message_id *id, enum ox_err err)
{
    struct consume *c = ox_client_consumer_owner(consumer);
    ctl_fail("entry %lld:%lld: %s", (long long)id->ledger, (long long)id->entry, ox_err_text(err));
    c->seen = *id;
    consume_check_end(c);
}

static void consume_end_of_topic(struct ox_client_consumer *consumer)
{
    consume_end(ox_client_consumer_owner(consumer));
}

static const struct ox_client_consumer_events consume_events = {
    .message = consume_message, .failed = consume_failed, .damaged = consume_damaged, .end_of_topic = consume_end_of_topic};

static void consume_idle(struct ox_timer *timer)
{
    consume_end(CONTAINER_OF(timer, struct consume, idle));
}

static void consume_last_known(struct ox_op *op)
{
    struct ox_client_call *call = CONTAINER_OF(op, struct ox_client_call, op);
    struct consume *c = CONTAINER_OF(CONTAINER_OF(call, struct ox_client_last_id, call), struct consume, last);
    if (c->ending)
        return;
    if (op->err != OX_OK) {
        ctl_session_fail(&c->session, c->topic.full, op->err, call->text);
        c->failed = true;
        consume_end(c);
        return;
    }
    c->last_known = true;
    if (strcmp(c->from, "latest") == 0 && !c->subscription)
        c->seen = c->last.id; // a reader at the end: all of it is behind
    ox_timer_start(&c->idle, CONSUME_IDLE_NS);
    consume_check_end(c);
}

static void consume_opened(struct ox_op *op)
{
    struct ox_client_call *call = CONTAINER_OF(op, struct ox_client_call, op);
    struct consume *c = CONTAINER_OF(CONTAINER_OF(call, struct ox_client_consumer_open, call), struct consume, open);
    if (op->err != OX_OK) {
        ctl_session_fail(&c->session, c->topic.full, op->err, call->text);
        ctl_session_end(&c->session, CTL_FAILED);
        return;
    }
    c->consumer = c->open.consumer;
    if (c->follow || c->count) {
        consume_check_end(c);
        return;
    }
    ox_op_init(&c->last.call.op, c->session.loop, consume_last_known, "consume.last");
    ox_client_consumer_last_id(c->consumer, &c->last);
}

static void consume_signal(void *ctx, int signo)
{
    struct consume *c = ctx;
    (void)signo;
    if (!c->consumer || c->ending)
        exit(CTL_FAILED);
    consume_end(c);
}

static void consume_start(struct ctl_session *s)
{
    struct consume *c = CONTAINER_OF(s, struct consume, session);
    ox_timer_init(&c->idle, s->loop, consume_idle);
    c->flush.run = consume_flush;
    ox_posix_on_signal(s->loop, consume_signal, c);
    ox_op_init(&c->open.call.op, s->loop, consume_opened, "consume.open");
    ox_client_consumer_open(s->client, &c->open, &c->config);
}

static bool consume_parse(struct consume *c, struct ctl *ctl)
{
    const char *topic;
    c->from = "earliest";
    const struct ctl_option options[] = {
        {"--subscription", CTL_TEXT, {.text = &c->subscription}},
        {"--from", CTL_TEXT, {.text = &c->from}},
        {"--count", CTL_NUMBER, {.number = &c->count}},
        {"--follow", CTL_FLAG, {.flag = &c->follow}},
    };
    if (!ctl_parse(ctl, options, OX_COUNT(options), &topic, 1, 1) || !ctl_topic_parse(topic, &c->topic))
        return false;
    if (strcmp(c->from, "earliest") == 0 || strcmp(c->from, "latest") == 0)
        return true;
    ctl_fail("--from wants earliest or latest, not '%s'", c->from);
    return false;
}

int ctl_consume(struct ctl *ctl)
{
    struct consume *c = ox_malloc(sizeof *c);
    c->seen = OX_MESSAGE_ID_NONE;
    int status = CTL_USAGE;
    if (consume_parse(c, ctl)) {
        c->reader_name = c->subscription ? NULL : ox_asprintf("oxbowctl-reader-%ld", (long)getpid());
        c->config =
            (struct ox_client_consumer_config){.topic = c->topic.full,
                                               .subscription = c->subscription ? c->subscription : c->reader_name,
                                               .non_durable = c->subscription == NULL,
                                               .earliest = strcmp(c->from, "earliest") == 0,
                                               .batch_index_ack = true,
                                               .receiver_queue = c->count && c->count < 1000 ? (uint32_t)c->count : 0,
                                               .events = &consume_events,
                                               .owner = c};
        status = ctl_session_run(&c->session, ctl, c->topic.full, consume_start);
    }
    ctl_topic_fini(&c->topic);
    ox_free(c->reader_name);
    ox_free(c);
    return status;
}
