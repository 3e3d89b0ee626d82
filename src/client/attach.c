// attach.c - keeps a producer or consumer attached to its topic's broker: look-up, connection, creation, and again after a loss.
#include <string.h>

#include "base/mem.h"
#include "client/client_int.h"

#define ATTACH_DELAY_MIN_NS (50 * OX_MS)
#define ATTACH_DELAY_MAX_NS (3 * OX_SEC)

static ox_step attach_connect(struct ox_seq *s);
static ox_step attach_create(struct ox_seq *s);
static ox_step attach_answered(struct ox_seq *s);

static struct attach *attach_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct attach, seq);
}

static void attach_set_state(struct attach *a, enum attach_state state)
{
    a->state = state;
}

static ox_step attach_find(struct ox_seq *s)
{
    struct attach *a = attach_of(s);
    ox_seq_bind(s, &a->lookup.call.op, "client.lookup");
    ox_client_lookup(a->client, &a->lookup, a->topic);
    return OX_WAIT(s, attach_connect);
}

static ox_step attach_connect(struct ox_seq *s)
{
    struct attach *a = attach_of(s);
    ox_client_text(a->text, a->lookup.call.text);
    if (s->err != OX_OK)
        return OX_FINISH(s, s->err);
    ox_seq_bind(s, &a->conn_op, "client.connect");
    ox_client_conn_get(a->client, &a->conn_op, a->lookup.host, a->lookup.port);
    return OX_WAIT(s, attach_create);
}

static ox_step attach_create(struct ox_seq *s)
{
    struct attach *a = attach_of(s);
    if (s->err != OX_OK)
        return OX_FINISH(s, s->err);
    struct conn *conn = ox_client_conn_find(a->client, a->lookup.host, a->lookup.port);
    if (!conn || a->closing)
        return OX_FINISH(s, a->closing ? OX_E_CLOSED : OX_E_DISCONNECTED);
    uint64_t id = ox_client_next_id(a->client);
    a->asked = conn;
    ox_client_conn_request(conn, &a->request, id, a->body->command(a, id));
    return OX_WAIT(s, attach_answered);
}

static void attach_got(struct client_request *r, enum ox_err err, uint32_t type, void *message, const char *text)
{
    struct attach *a = CONTAINER_OF(r, struct attach, request);
    ox_client_text(a->text, text);
    if (err == OX_OK && type != a->body->made_type) {
        ox_client_text(a->text, "the server answered with another command");
        err = OX_E_MALFORMED;
    }
    if (err == OX_E_TIMEOUT || err == OX_E_MALFORMED)
        ox_client_conn_break(a->asked, err); // the server may still do it: only a new connection is sure to be rid of it
    if (err == OX_OK) {
        ox_client_conn_add_peer(a->asked, &a->peer, a->id);
        attach_set_state(a, ATTACH_ON);
        a->times++;
        a->delay_ns = 0;
        a->body->on(a, message);
    }
    ox_seq_resume(&a->seq, err);
}

static ox_step attach_answered(struct ox_seq *s)
{
    return OX_FINISH(s, s->err);
}

// An error that may be over at the next try. What an earlier connection of ours has left behind at the server counts too.
static bool attach_may_retry(const struct attach *a, enum ox_err err)
{
    if (a->client->loop->dead || a->closing)
        return false;
    if (a->times == 0 && !a->client->patient)
        return false;
    enum ox_err_class class = ox_err_class(err);
    if (class == OX_CLASS_RETRY || class == OX_CLASS_REFRESH || err == OX_E_MALFORMED || err == OX_E_IO)
        return true;
    return a->times > 0 && (err == OX_E_CONSUMER_BUSY || err == OX_E_PRODUCER_BUSY);
}

static void attach_wait(struct attach *a)
{
    attach_set_state(a, ATTACH_WAITING);
    uint64_t delay = a->delay_ns;
    a->delay_ns = OX_MIN(OX_MAX(delay * 2, ATTACH_DELAY_MIN_NS), ATTACH_DELAY_MAX_NS);
    ox_timer_start(&a->again, delay + (delay ? ox_loop_random(a->client->loop) % delay / 4 : 0));
}

static void attach_end_close(struct attach *a)
{
    ox_client_conn_remove_peer(&a->peer);
    ox_timer_stop(&a->again);
    attach_set_state(a, ATTACH_OFF);
    a->client->attached--;
    a->body->closed(a);
}

static void attach_close_at_server(struct attach *a);

// A try is over. It may have been attached, and lost again, before this runs.
static void attach_tried(struct ox_seq *s, enum ox_err err)
{
    struct attach *a = attach_of(s);
    if (a->closing) {
        attach_close_at_server(a);
    } else if (err == OX_OK) {
        if (a->state != ATTACH_ON && !a->hold)
            attach_wait(a);
    } else if (attach_may_retry(a, err)) {
        attach_wait(a);
    } else {
        attach_set_state(a, ATTACH_FAILED);
        a->body->failed(a, err);
    }
}

void ox_client_attach_start(struct attach *a)
{
    attach_set_state(a, ATTACH_TRYING);
    ox_seq_start(&a->seq, a->client->loop, "client.attach", attach_find, attach_tried);
}

static void attach_again(struct ox_timer *timer)
{
    ox_client_attach_start(CONTAINER_OF(timer, struct attach, again));
}

// Off the connection, for whatever reason.
static void attach_off(struct attach *a)
{
    attach_set_state(a, ATTACH_OFF);
    a->body->off(a);
    if (!a->seq.active && !a->hold && !a->closing && a->state == ATTACH_OFF)
        attach_wait(a);
}

void ox_client_attach_release(struct attach *a)
{
    a->hold = false;
    if (a->state == ATTACH_OFF && !a->seq.active && !a->closing)
        attach_wait(a);
}

static void attach_lost(struct conn_peer *peer, enum ox_err err)
{
    (void)err;
    struct attach *a = CONTAINER_OF(peer, struct attach, peer);
    if (a->state == ATTACH_ON)
        attach_off(a);
}

static void attach_command(struct conn_peer *peer, uint32_t type, struct ox_buf sub, struct ox_buf body)
{
    struct attach *a = CONTAINER_OF(peer, struct attach, peer);
    if (a->closing)
        return;
    if (type != a->body->close_type) {
        a->body->event(a, type, sub, body);
        return;
    }
    ox_client_conn_remove_peer(peer);
    if (a->state == ATTACH_ON)
        attach_off(a);
}

void ox_client_attach_init(struct attach *a, const struct attach_body *body, struct ox_client *client,
                           const char *topic, bool consumer)
{
    a->body = body;
    a->client = client;
    a->topic = ox_strdup(topic);
    a->id = ox_client_next_id(client);
    a->peer.consumer = consumer;
    a->peer.command = attach_command;
    a->peer.lost = attach_lost;
    a->request.done = attach_got;
    ox_timer_init(&a->again, client->loop, attach_again);
    client->attached++;
}

static void attach_server_closed(struct client_request *r, enum ox_err err, uint32_t type, void *message, const char *text)
{
    (void)err, (void)type, (void)message, (void)text;
    attach_end_close(CONTAINER_OF(r, struct attach, request));
}

// Closes at the server where that is possible; the answer, or the connection's end, ends it.
static void attach_close_at_server(struct attach *a)
{
    struct conn *conn = attach_conn(a);
    if (!conn || conn->broken) {
        attach_end_close(a);
        return;
    }
    uint64_t request_id = ox_client_next_id(a->client);
    struct ox_buf frame;
    if (a->peer.consumer) {
        Oxpb__CommandCloseConsumer close = OXPB__COMMAND_CLOSE_CONSUMER__INIT;
        close.consumer_id = a->id;
        close.request_id = request_id;
        frame = ox_command_pack_sub(OXPB__BASE_COMMAND__TYPE__CLOSE_CONSUMER, &close.base);
    } else {
        Oxpb__CommandCloseProducer close = OXPB__COMMAND_CLOSE_PRODUCER__INIT;
        close.producer_id = a->id;
        close.request_id = request_id;
        frame = ox_command_pack_sub(OXPB__BASE_COMMAND__TYPE__CLOSE_PRODUCER, &close.base);
    }
    a->request.done = attach_server_closed;
    ox_client_conn_request(conn, &a->request, request_id, frame);
}

static void attach_close_now(struct ox_seq *s, enum ox_err err)
{
    (void)err;
    attach_close_at_server(attach_of(s));
}

static ox_step attach_close_step(struct ox_seq *s)
{
    return OX_FINISH(s, OX_OK);
}

void ox_client_attach_close(struct attach *a)
{
    OX_ASSERT(!a->closing);
    a->closing = true;
    ox_timer_stop(&a->again);
    if (!a->seq.active) // else the try's end goes on from here
        ox_seq_start(&a->seq, a->client->loop, "client.close", attach_close_step, attach_close_now);
}

void ox_client_attach_fini(struct attach *a)
{
    ox_client_lookup_fini(&a->lookup);
    ox_free(a->topic);
}
