// session_clients.c - a connection's producers and consumers: by id, and what the broker tells them.
#include "base/bytes.h"
#include "base/mem.h"
#include "pulsar/session.h"

#define PRODUCER_OF(n) CONTAINER_OF(n, struct session_producer, node)
#define CONSUMER_OF(n) CONTAINER_OF(n, struct session_consumer, node)

struct session_producer *session_find_producer(struct session *s, uint64_t id)
{
    struct ox_map_node *n = ox_map_find_u64(&s->producers, id);
    return n ? PRODUCER_OF(n) : NULL;
}

struct session_producer *session_find_sender(struct session *s, uint64_t id)
{
    if (!s->sender || s->sender->id != id)
        s->sender = session_find_producer(s, id);
    return s->sender;
}

struct session_consumer *session_find_consumer(struct session *s, uint64_t id)
{
    struct ox_map_node *n = ox_map_find_u64(&s->consumers, id);
    return n ? CONSUMER_OF(n) : NULL;
}

struct ox_consumer *session_open_consumer(struct session *s, uint64_t id)
{
    struct session_consumer *sc = session_find_consumer(s, id);
    return sc ? sc->consumer : NULL;
}

struct session_producer *session_add_producer(struct session *s, uint64_t id)
{
    struct session_producer *sp = ox_malloc(sizeof *sp);
    sp->session = s;
    sp->id = id;
    ox_map_put_u64(&s->producers, &sp->node, id);
    return sp;
}

struct session_consumer *session_add_consumer(struct session *s, uint64_t id)
{
    struct session_consumer *sc = ox_malloc(sizeof *sc);
    sc->session = s;
    sc->id = id;
    ox_map_put_u64(&s->consumers, &sc->node, id);
    return sc;
}

static void producer_unblock(struct session_producer *sp)
{
    if (!sp->waiting)
        return;
    sp->waiting = false;
    sp->session->blocked--;
    session_throttle(sp->session);
}

void session_drop_producer(struct session_producer *sp)
{
    if (sp->session->sender == sp)
        sp->session->sender = NULL;
    ox_map_remove(&sp->session->producers, &sp->node);
    ox_free(sp);
}

void session_drop_consumer(struct session_consumer *sc)
{
    ox_map_remove(&sc->session->consumers, &sc->node);
    ox_free(sc);
}

void session_cancel_producer(struct session_producer *sp)
{
    sp->canceled = true;
    if (sp->opening)
        ox_producer_open_cancel(sp->opening);
}

void session_close_producer(struct session_producer *sp)
{
    producer_unblock(sp);
    ox_producer_close(sp->producer);
    session_drop_producer(sp);
}

enum ox_err session_unknown_producer(struct session *s, uint64_t id)
{
    for (size_t i = 0; i < OX_COUNT(s->closed_producers); i++)
        if (s->closed_producers[i] == id + 1)
            return OX_OK;
    struct session_producer *sp = session_find_producer(s, id);
    return sp ? OX_OK : OX_E_PRODUCER_NOT_FOUND;
}

// Those that are still being opened are closed by their requests.
void session_detach_all(struct session *s)
{
    OX_MAP_EACH(&s->producers, n) {
        struct session_producer *sp = PRODUCER_OF(n);
        session_cancel_producer(sp);
        if (!sp->producer)
            continue;
        ox_producer_lost(sp->producer);
        session_drop_producer(sp);
    }
    OX_MAP_EACH(&s->consumers, m) {
        struct session_consumer *sc = CONSUMER_OF(m);
        sc->canceled = true;
        if (!sc->consumer)
            continue;
        ox_consumer_close(sc->consumer);
        session_drop_consumer(sc);
    }
}

// ---- what the broker tells producers

// Clients drop a message for a ChecksumError; for other errors of a send they connect anew and send it again, for ever if it is the message that is bad.
static Oxpb__ServerError send_error(enum ox_err err)
{
    return err == OX_E_MALFORMED ? OXPB__SERVER_ERROR__ChecksumError : server_error(err);
}

// A failed append closes the producer in any case; of what a person should know the client is told besides, once.
static void producer_send_failed(struct session_producer *sp, const struct ox_receipt *r)
{
    struct session *s = sp->session;
    char text[1024];
    enum ox_err_class class = ox_err_class(r->err);
    if (sp->told || class == OX_CLASS_FENCED || class == OX_CLASS_REFRESH || r->err == OX_E_SHUTDOWN || r->err == OX_E_CANCELED)
        return;
    sp->told = class != OX_CLASS_CLIENT;
    error_text(text, sizeof text, r->err, sp->producer->topic->name.full, r->why);
    session_write(s, ox_encode_send_error(&s->encoder, sp->id, r->sequence_id, send_error(r->err), text));
}

static void producer_receipt(struct ox_producer *p, const struct ox_receipt *r)
{
    struct session_producer *sp = p->owner;
    struct session *s = sp->session;
    if (r->err) {
        producer_send_failed(sp, r);
        return;
    }
    struct ox_message_id id = {.ledger = r->pos.ledger, .entry = r->pos.entry, .partition = -1, .batch_index = -1};
    session_write(s, ox_encode_send_receipt(&s->encoder, sp->id, r->sequence_id, r->highest_sequence_id, &id));
}

static void producer_unblocked(struct ox_producer *p)
{
    producer_unblock(p->owner);
}

static void producer_closed(struct ox_producer *p, enum ox_err err)
{
    struct session_producer *sp = p->owner;
    Oxpb__CommandCloseProducer close = OXPB__COMMAND_CLOSE_PRODUCER__INIT;
    (void)err;
    close.producer_id = sp->id;
    close.request_id = SESSION_NO_REQUEST;
    session_command(sp->session, OXPB__BASE_COMMAND__TYPE__CLOSE_PRODUCER, &close.base);
    producer_unblock(sp);
    sp->session->closed_producers[sp->session->closed_at++ % OX_COUNT(sp->session->closed_producers)] = sp->id + 1;
    session_drop_producer(sp);
}

static void producer_probe(struct ox_producer *p, struct ox_op *op)
{
    session_probe(((struct session_producer *)p->owner)->session, op);
}

const struct ox_producer_events session_producer_events = {
    .receipt = producer_receipt, .unblocked = producer_unblocked, .closed = producer_closed, .probe = producer_probe};

// ---- what the broker tells consumers

// The entry for a client that does not know checksums begins behind it.
static struct ox_buf entry_for(const struct session *s, struct ox_buf entry)
{
    bool has_checksum = entry.len > OX_CHECKSUM_HEAD_BYTES && ox_get_be16(entry.data) == OX_MAGIC_CHECKSUM;
    size_t skip = has_checksum && s->protocol_version < PROTOCOL_CHECKSUM ? OX_CHECKSUM_HEAD_BYTES : 0;
    return ox_buf_sub(entry, skip, entry.len - skip);
}

static void consumer_deliver(struct ox_consumer *c, const struct ox_dispatch *d)
{
    struct session_consumer *sc = c->owner;
    struct session *s = sc->session;
    struct ox_delivery head = {.consumer_id = sc->id,
                               .id = OX_MESSAGE_ID_NONE,
                               .redelivery_count = d->redelivery_count,
                               .ack_set = d->ack_set,
                               .ack_set_words = OX_MIN(d->ack_words, (size_t)OX_ACK_SET_WORDS_MAX),
                               .has_epoch = d->consumer_epoch > 0,
                               .consumer_epoch = d->consumer_epoch};
    head.id.ledger = d->pos.ledger;
    head.id.entry = d->pos.entry;
    head.id.partition = sc->partition;
    struct ox_buf entry = entry_for(s, d->entry);
    session_write(s, ox_encode_message_head(&s->encoder, &head, entry.len));
    session_write(s, entry);
}

static bool consumer_ready(struct ox_consumer *c)
{
    return session_ready(((struct session_consumer *)c->owner)->session);
}

// OK: the client asked for it by unsubscribing.
static void consumer_closed(struct ox_consumer *c, enum ox_err err)
{
    struct session_consumer *sc = c->owner;
    Oxpb__CommandCloseConsumer close = OXPB__COMMAND_CLOSE_CONSUMER__INIT;
    close.consumer_id = sc->id;
    close.request_id = SESSION_NO_REQUEST;
    if (err)
        session_command(sc->session, OXPB__BASE_COMMAND__TYPE__CLOSE_CONSUMER, &close.base);
    session_drop_consumer(sc);
}

static void consumer_probe(struct ox_consumer *c, struct ox_op *op)
{
    session_probe(((struct session_consumer *)c->owner)->session, op);
}

static void consumer_active(struct ox_consumer *c, bool is_active)
{
    struct session_consumer *sc = c->owner;
    Oxpb__CommandActiveConsumerChange change = OXPB__COMMAND_ACTIVE_CONSUMER_CHANGE__INIT;
    change.consumer_id = sc->id;
    change.has_is_active = 1;
    change.is_active = is_active;
    session_command(sc->session, OXPB__BASE_COMMAND__TYPE__ACTIVE_CONSUMER_CHANGE, &change.base);
}

static void consumer_end_of_topic(struct ox_consumer *c)
{
    struct session_consumer *sc = c->owner;
    Oxpb__CommandReachedEndOfTopic end = OXPB__COMMAND_REACHED_END_OF_TOPIC__INIT;
    end.consumer_id = sc->id;
    session_command(sc->session, OXPB__BASE_COMMAND__TYPE__REACHED_END_OF_TOPIC, &end.base);
}

const struct ox_consumer_events session_consumer_events = {.deliver = consumer_deliver,
                                                           .ready = consumer_ready,
                                                           .closed = consumer_closed,
                                                           .probe = consumer_probe,
                                                           .active = consumer_active,
                                                           .end_of_topic = consumer_end_of_topic};
