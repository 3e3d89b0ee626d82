// publish.c - sends: appending in order, receipts in order, memory in flight, recognising what is sent again.
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "broker/nonpersistent.h"
#include "broker/producer_int.h"
#include "broker/publish_hist.h"
#include "broker/resend.h"
#include "broker/topic_int.h"
#include "wire/message_meta.h"

#define POOL_MAX 4096u

// ---- operations

static void publish_done(struct ox_op *op);

// From the pool, the one that was used last first, or a new one; its operation stays bound.
static struct publish *publish_take(struct ox_shard *sh)
{
    struct ox_link *l = ox_list_pop_front(&sh->free_publishes);
    if (l)
        return CONTAINER_OF(l, struct publish, link);
    struct publish *pub = ox_malloc(sizeof *pub);
    ox_op_init(&pub->append.op, sh->loop, publish_done, "topic.append");
    return pub;
}

static struct dedup_send publish_seen(const struct ox_producer *p, const struct ox_send *send)
{
    const struct ox_message_meta *m = send->meta;
    struct dedup_send seen = {send->sequence_id, OX_MAX(send->highest_sequence_id, send->sequence_id), false};
    if (m && p->replicator)
        seen = (struct dedup_send){m->sequence_id, ox_message_meta_last_sequence(m), false};
    seen.open_chunk = m && m->is_chunk && m->chunk_id < m->num_chunks - 1;
    return seen;
}

static struct publish *publish_new(struct ox_producer *p, const struct ox_send *send)
{
    struct publish *pub = publish_take(p->topic->shard);
    pub->topic = p->topic;
    pub->producer = p;
    pub->receipt = (struct ox_receipt){
        .pos = {-1, -1}, .sequence_id = send->sequence_id, .highest_sequence_id = send->highest_sequence_id};
    pub->messages = send->messages;
    pub->bytes = 0;
    pub->over = pub->duplicate = false;
    pub->dedup = NULL;
    pub->seen = publish_seen(p, send);
    ox_topic_hold(pub->topic);
    ox_list_push_back(&p->publishes, &pub->link);
    p->inflight++;
    return pub;
}

// Gives a hold back, which for a send is hardly ever the last.
static void publish_let_go(struct ox_topic *t)
{
    if (t->holds > 1)
        t->holds--;
    else
        ox_topic_put(t);
}

static void publish_free(struct publish *pub)
{
    struct ox_topic *t = pub->topic;
    struct ox_shard *sh = t->shard;
    if (pub->dedup)
        ox_dedup_unref(t, pub->dedup);
    if (sh->free_publishes.count < POOL_MAX)
        ox_list_push_front(&sh->free_publishes, &pub->link);
    else
        ox_free(pub);
    publish_let_go(t);
}

void publish_pool_free(struct ox_shard *sh)
{
    for (struct ox_link *l = ox_list_pop_front(&sh->free_publishes); l; l = ox_list_pop_front(&sh->free_publishes))
        ox_free(CONTAINER_OF(l, struct publish, link));
}

void publishes_orphan(struct ox_producer *p)
{
    for (struct ox_link *l = ox_list_pop_front(&p->publishes); l; l = ox_list_pop_front(&p->publishes)) {
        struct publish *pub = CONTAINER_OF(l, struct publish, link);
        pub->producer = NULL;
        if (pub->over)
            publish_free(pub);
    }
    p->inflight = 0;
}

// A duplicate's outcome is the original's: all earlier sends are over now, so it is in the log or will never be.
static void publish_settle_duplicate(struct publish *pub)
{
    if (pub->receipt.err == OX_OK && pub->dedup->stored < (int64_t)pub->seen.last)
        pub->receipt.err = OX_E_DUPLICATE_UNKNOWN;
}

// Gives the outcomes that are known, as far as no earlier send is open.
static void producer_answer(struct ox_producer *p)
{
    struct ox_link *l;
    while ((l = ox_list_first(&p->publishes))) {
        struct publish *pub = CONTAINER_OF(l, struct publish, link);
        if (!pub->over)
            return;
        ox_list_remove(&p->publishes, l);
        p->inflight--;
        if (pub->duplicate)
            publish_settle_duplicate(pub);
        p->events->receipt(p, &pub->receipt);
        publish_free(pub);
    }
    producer_drained(p, OX_OK);
}

void producer_drained(struct ox_producer *p, enum ox_err err)
{
    struct ox_op *op = p->draining;
    p->draining = NULL;
    if (op)
        ox_op_finish(op, err);
}

void ox_producer_drain(struct ox_producer *p, struct ox_op *op)
{
    OX_ASSERT(p->magic == PRODUCER_MAGIC && !p->draining);
    ox_op_begin(op);
    if (ox_list_empty(&p->publishes))
        ox_op_finish(op, OX_OK);
    else
        p->draining = op;
}

// ---- memory in flight

static bool shard_is_over(const struct ox_shard *sh)
{
    return sh->inflight_bytes > sh->config.total_inflight_bytes;
}

static void publish_charge(struct publish *pub, uint64_t bytes)
{
    pub->bytes = bytes;
    pub->topic->inflight_bytes += bytes;
    pub->topic->shard->inflight_bytes += bytes;
    pub->topic->inflight++;
    pub->topic->appends++;
}

void blocked_wake(struct ox_shard *sh)
{
    OX_LIST_EACH(&sh->blocked, l) {
        struct ox_producer *p = CONTAINER_OF(l, struct ox_producer, blocked_link);
        if (p->topic->inflight_bytes > sh->config.topic_inflight_bytes / 2 ||
            sh->inflight_bytes > sh->config.total_inflight_bytes / 2 || !limits_ready(p->topic))
            continue;
        ox_list_remove(&sh->blocked, l);
        p->blocked = false;
        p->events->unblocked(p);
    }
}

static bool crosses(uint64_t before, uint64_t after, uint64_t mark)
{
    return before > mark && after <= mark;
}

static void publish_discharge(struct publish *pub)
{
    struct ox_topic *t = pub->topic;
    struct ox_shard *sh = t->shard;
    uint64_t topic_before = t->inflight_bytes, shard_before = sh->inflight_bytes;
    OX_ASSERT(t->inflight > 0 && topic_before >= pub->bytes && shard_before >= pub->bytes);
    t->inflight_bytes -= pub->bytes;
    sh->inflight_bytes -= pub->bytes;
    t->inflight--;
    t->appends_done++;
    if (crosses(topic_before, t->inflight_bytes, sh->config.topic_inflight_bytes / 2) ||
        crosses(shard_before, sh->inflight_bytes, sh->config.total_inflight_bytes / 2))
        blocked_wake(sh);
}

// ---- the outcome

// Sends that were under way when deduplication was turned on are noted too.
static void publish_note(struct publish *pub)
{
    struct dedup_name *name = pub->dedup ? pub->dedup : pub->producer ? pub->producer->dedup : NULL;
    if (name)
        ox_dedup_stored(pub->topic, name, &pub->seen, pub->append.pos);
}

static void publish_stored(struct publish *pub)
{
    struct ox_topic *t = pub->topic;
    struct ox_shard *sh = t->shard;
    uint64_t us = (shard_turn_ns(sh) - pub->since_ns) / 1000;
    pub->receipt.pos = pub->append.pos;
    pub->receipt.index = pub->append.index;
    ox_rate_add(&t->in, pub->messages, pub->bytes);
    publish_hist_add(&t->hist, us, pub->bytes);
    ox_summary_add(&sh->publish_latency, us);
    sh->in_messages.value += pub->messages;
    sh->in_bytes.value += (int64_t)pub->bytes;
    sh->in_bytes_by[t->is_system].value += (int64_t)pub->bytes;
    if (pub->producer)
        ox_rate_add(&pub->producer->in, pub->messages, pub->bytes);
    if (t->dedup)
        publish_note(pub);
}

static void publish_failed(struct publish *pub, enum ox_err err)
{
    pub->topic->shard->publish_errors.value++;
    if (err == OX_E_TOPIC_TERMINATED)
        return; // nothing is wrong with the log: each send is told
    if (pub->producer)
        pub->producer->failed = true;
    topic_fail(pub->topic, err);
}

static void publish_done(struct ox_op *op)
{
    struct publish *pub = CONTAINER_OF(op, struct publish, append.op);
    struct ox_topic *t = pub->topic;
    bool stored = pub->bytes > 0;
    ox_topic_hold(t);
    pub->over = true;
    if (op->err)
        pub->receipt.err = op->err;
    if (stored && op->err)
        publish_failed(pub, op->err);
    else if (stored)
        publish_stored(pub);
    if (stored)
        publish_discharge(pub);
    if (pub->producer)
        producer_answer(pub->producer);
    else
        publish_free(pub);
    if (!ox_list_empty(&t->drain_waiters))
        producers_drained(t);
    topic_quieter(t);
    publish_let_go(t);
}

// ---- sending

// Answers a send without storing anything; the receipt waits for those of earlier sends.
static void publish_answer(struct publish *pub, enum ox_err err)
{
    ox_op_begin(&pub->append.op);
    ox_op_finish(&pub->append.op, err);
}

// Is it the re-send of a stored entry? The first one that is not ends the search for this producer.
static bool publish_is_resend(struct ox_producer *p, const struct ox_send *send)
{
    struct ox_topic *t = p->topic;
    struct ox_resend_key key = {p->name, strlen(p->name), send->sequence_id, send->crc, send->plain_len};
    struct ox_pos pos;
    if (!t->resend || !ox_resend_find(t->resend, &key, &pos)) {
        p->resending = false;
        return false;
    }
    struct publish *pub = publish_new(p, send);
    pub->receipt.pos = pos;
    t->resent++;
    t->shard->resends.value++;
    publish_answer(pub, OX_OK);
    return true;
}

// What the topic's policies have against a send.
static enum ox_err publish_check(const struct ox_producer *p, const struct ox_send *send, const char **ret_why)
{
    const struct ox_topic *t = p->topic;
    const struct ox_message_meta *m = send->meta;
    const struct ox_policies *policy = &t->policies;
    *ret_why = "the message is larger than the topic's policy allows";
    if (policy->message_bytes_max && send->entry.len > policy->message_bytes_max && !m->is_chunk)
        return OX_E_TOO_BIG;
    *ret_why = NULL;
    if (policy->encryption_required && !m->is_encrypted)
        return OX_E_ENCRYPTION_REQUIRED;
    if (policy->delayed_max_ms && m->has_deliver_at && m->deliver_at_ms > 0 && (uint64_t)m->deliver_at_ms > m->publish_time_ms &&
        (uint64_t)m->deliver_at_ms - m->publish_time_ms > policy->delayed_max_ms) {
        *ret_why = "the delay is longer than the policy allows";
        return OX_E_NOT_ALLOWED;
    }
    return OX_OK;
}

static bool publish_is_forbidden(struct ox_producer *p, const struct ox_send *send, struct publish *pub)
{
    enum ox_err err = publish_check(p, send, &pub->receipt.why);
    if (err)
        publish_answer(pub, err);
    return err != OX_OK;
}

// The name by which duplicates of a send are known, with a reference.
static struct dedup_name *publish_name(struct ox_producer *p, const struct ox_send *send)
{
    if (p->replicator)
        return ox_dedup_name(p->topic, send->meta->producer_name.data, send->meta->producer_name.len);
    p->dedup->refs++;
    return p->dedup;
}

// Is it a duplicate? Then it is answered here. A batch that is new in part is neither stored nor said to be.
static bool publish_is_duplicate(struct ox_producer *p, const struct ox_send *send, struct publish *pub)
{
    pub->dedup = publish_name(p, send);
    enum dedup_answer answer = ox_dedup_check(p->topic, pub->dedup, &pub->seen);
    if (answer == DEDUP_NEW)
        return false;
    pub->duplicate = answer != DEDUP_PARTLY;
    if (answer == DEDUP_PARTLY)
        pub->receipt.why =
            "the batch begins with messages that are stored already and goes on with new ones: nothing of it is stored";
    p->topic->shard->duplicates.value++;
    publish_answer(pub, answer == DEDUP_PARTLY ? OX_E_NOT_ALLOWED : OX_OK);
    return true;
}

static void publish_append(struct publish *pub, const struct ox_send *send)
{
    publish_charge(pub, send->entry.len);
    pub->since_ns = shard_turn_ns(pub->topic->shard);
    pub->append.body = send->entry;
    pub->append.messages = send->messages;
    pub->append.tail_len = send->crc_known ? (uint32_t)send->plain_len : 0;
    pub->append.tail_crc = send->crc;
    ox_mledger_append(pub->topic->ml, &pub->append);
}

// A non-persistent topic: to who can take it now.
static void publish_pass_on(struct publish *pub, const struct ox_send *send)
{
    pub->receipt.pos = NONPERSISTENT_POS;
    ox_rate_add(&pub->topic->in, send->messages, send->entry.len);
    ox_rate_add(&pub->producer->in, send->messages, send->entry.len);
    pub->topic->shard->in_bytes_by[pub->topic->is_system].value += (int64_t)send->entry.len;
    nonpersistent_publish(pub->topic, send);
    publish_answer(pub, OX_OK);
}

// May its connection be read on after this send?
static bool publish_may_go_on(struct ox_producer *p, const struct ox_send *send)
{
    struct ox_topic *t = p->topic;
    struct ox_shard *sh = t->shard;
    bool fast = (t->limits || sh->publish_limited) && !limits_take(t, send->messages, send->entry.len);
    if (!fast && t->inflight_bytes <= sh->config.topic_inflight_bytes && !shard_is_over(sh))
        return true;
    if (!p->blocked)
        ox_list_push_back(&sh->blocked, &p->blocked_link);
    p->blocked = true;
    t->publish_waits += fast;
    if (fast)
        limits_wait(t);
    return false;
}

bool ox_producer_publish(struct ox_producer *p, const struct ox_send *send)
{
    OX_ASSERT(p->magic == PRODUCER_MAGIC);
    struct ox_topic *t = p->topic;
    if (t->state != OX_TOPIC_OPEN || p->failed || t->terminating)
        return true; // it will be told to reconnect, and sends again
    if (p->resending && publish_is_resend(p, send))
        return true;
    struct publish *pub = publish_new(p, send);
    if (t->looks && send->meta && publish_is_forbidden(p, send, pub))
        return true;
    if ((p->dedup || (p->replicator && ox_dedup_is_on(t))) && publish_is_duplicate(p, send, pub))
        return true;
    if (t->ml)
        publish_append(pub, send);
    else
        publish_pass_on(pub, send);
    return publish_may_go_on(p, send);
}

void ox_producer_refuse(struct ox_producer *p, enum ox_err err, uint64_t sequence_id, uint64_t highest_sequence_id)
{
    struct ox_send send = {.sequence_id = sequence_id, .highest_sequence_id = highest_sequence_id};
    publish_answer(publish_new(p, &send), err);
}
