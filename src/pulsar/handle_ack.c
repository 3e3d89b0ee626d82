// handle_ack.c - ACK: single, cumulative, parts of batches; with a request id it is answered when the store holds it.
#include "pulsar/handlers.h"

struct acking {
    struct request request;
    struct ox_cursor_ack ack;
    uint64_t consumer_id;
};

static void ack_answer(struct session *s, uint64_t consumer_id, uint64_t request_id, enum ox_err err, const char *why)
{
    struct ox_ack_answer answer = {.consumer_id = consumer_id, .request_id = request_id};
    if (err) {
        answer.has_error = true;
        answer.error = server_error(err);
        answer.message = why ? why : ox_err_text(err);
    }
    session_write(s, ox_encode_ack_response(&s->encoder, &answer));
}

static void ack_done(struct ox_op *op)
{
    struct acking *a = CONTAINER_OF(op, struct acking, ack.op);
    if (session_alive(a->request.session))
        ack_answer(a->request.session, a->consumer_id, a->request.id, op->err, NULL);
    request_free(&a->request);
}

// Ids and their sets in the arena; NULL if they do not fit.
static struct ox_ack_id *ack_ids(struct ox_arena *arena, const struct ox_command_ack *c)
{
    struct ox_ack_id *ids = ox_arena_calloc(arena, c->id_count ? c->id_count : 1, sizeof *ids);
    struct ox_message_id id;
    size_t n = 0;
    for (size_t at = 0; ids && ox_command_ack_next(c, &at, &id); n++) {
        ids[n].pos = (struct ox_pos){id.ledger, id.entry};
        if (!id.ack_set_words)
            continue;
        uint64_t *words = ox_arena_calloc(arena, id.ack_set_words, sizeof *words);
        if (!words)
            return NULL;
        ids[n].words = ox_message_id_ack_set(&id, words, id.ack_set_words);
        ids[n].set = words;
    }
    return ids;
}

static void ack_refuse(struct session *s, const struct ox_command_ack *c, enum ox_err err, const char *why)
{
    if (c->has_request_id)
        ack_answer(s, c->consumer_id, c->request_id, err, why);
}

static struct ox_cursor_ack *ack_begin(struct session *s, const struct ox_command_ack *c)
{
    if (!c->has_request_id)
        return NULL;
    struct acking *a = request_new(s, sizeof *a, c->request_id);
    a->consumer_id = c->consumer_id;
    ox_op_init(&a->ack.op, s->stream->loop, ack_done, "consumer.ack");
    return &a->ack;
}

enum ox_err handle_ack(struct session *s, struct ox_buf sub, struct ox_buf body)
{
    struct ox_command_ack c;
    (void)body;
    enum ox_err err = ox_command_ack_decode(sub, &c);
    if (err)
        return err;
    struct ox_consumer *consumer = session_open_consumer(s, c.consumer_id);
    if (!consumer) {
        ack_refuse(s, &c, OX_E_CONSUMER_NOT_FOUND, NULL);
        return OX_OK;
    }
    if (c.has_txn) {
        ack_refuse(s, &c, OX_E_UNSUPPORTED, "transactions are not supported");
        return OX_OK;
    }
    ox_arena_reset(&s->server->arena);
    struct ox_ack_id *ids = ack_ids(&s->server->arena, &c);
    if (!ids)
        return OX_E_TOO_BIG;
    ox_consumer_ack(consumer, ack_begin(s, &c), c.is_cumulative, ids, c.id_count);
    return OX_OK;
}
