// lookup.c - finds the broker that owns a topic, following redirections.
#include <string.h>

#include "base/mem.h"
#include "client/client_int.h"

#define LOOKUP_HOPS_MAX 20

static ox_step lookup_ask(struct ox_seq *s);
static ox_step lookup_answered(struct ox_seq *s);

static struct client_lookup *lookup_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct client_lookup, seq);
}

static ox_step lookup_connect(struct ox_seq *s)
{
    struct client_lookup *l = lookup_of(s);
    ox_seq_bind(s, &l->conn_op, "client.lookup.connect");
    ox_client_conn_get(l->client, &l->conn_op, l->host, l->port);
    return OX_WAIT(s, lookup_ask);
}

static ox_step lookup_ask(struct ox_seq *s)
{
    struct client_lookup *l = lookup_of(s);
    if (s->err != OX_OK)
        return OX_FINISH(s, s->err);
    struct conn *conn = ox_client_conn_find(l->client, l->host, l->port);
    if (!conn)
        return OX_FINISH(s, OX_E_DISCONNECTED);
    Oxpb__CommandLookupTopic ask = OXPB__COMMAND_LOOKUP_TOPIC__INIT;
    ask.topic = l->topic;
    ask.request_id = ox_client_next_id(l->client);
    ask.has_authoritative = ask.authoritative = l->authoritative;
    ox_client_conn_request(conn, &l->request, ask.request_id,
                           ox_command_pack_sub(OXPB__BASE_COMMAND__TYPE__LOOKUP, &ask.base));
    return OX_WAIT(s, lookup_answered);
}

// Takes the broker's address from an answer.
static enum ox_err lookup_read(struct client_lookup *l, const Oxpb__CommandLookupTopicResponse *m)
{
    if (m->response == OXPB__COMMAND_LOOKUP_TOPIC_RESPONSE__LOOKUP_TYPE__Failed || !m->broker_service_url) {
        ox_client_text(l->call.text, m->message ? m->message : "");
        return m->has_error ? ox_client_err_of_server(m->error) : OX_E_MALFORMED;
    }
    l->redirected = m->response == OXPB__COMMAND_LOOKUP_TOPIC_RESPONSE__LOOKUP_TYPE__Redirect;
    l->authoritative = m->authoritative;
    char *host;
    if (ox_client_parse_url(m->broker_service_url, &host, &l->port) != OX_OK)
        return OX_E_MALFORMED;
    ox_free(l->host);
    l->host = host;
    if (!m->proxy_through_service_url || (l->port == l->client->port && strcmp(host, l->client->host) == 0))
        return OX_OK; // a standalone broker says "through the service URL" and means itself
    ox_client_text(l->call.text, "the topic's broker is reached through a proxy, which is not supported");
    return OX_E_UNSUPPORTED;
}

static void lookup_got(struct client_request *r, enum ox_err err, uint32_t type, void *message, const char *text)
{
    struct client_lookup *l = CONTAINER_OF(r, struct client_lookup, request);
    ox_client_text(l->call.text, text);
    if (err == OX_OK)
        err = type == OXPB__BASE_COMMAND__TYPE__LOOKUP_RESPONSE ? lookup_read(l, message) : OX_E_MALFORMED;
    ox_seq_resume(&l->seq, err);
}

static ox_step lookup_answered(struct ox_seq *s)
{
    struct client_lookup *l = lookup_of(s);
    if (s->err != OX_OK || !l->redirected)
        return OX_FINISH(s, s->err);
    if (++l->hops > LOOKUP_HOPS_MAX) {
        ox_client_text(l->call.text, "redirected too often");
        return OX_FINISH(s, OX_E_NOT_OWNER);
    }
    return OX_GOTO(s, lookup_connect);
}

static void lookup_done(struct ox_seq *s, enum ox_err err)
{
    ox_op_finish(&lookup_of(s)->call.op, err);
}

void ox_client_lookup(struct ox_client *client, struct client_lookup *l, const char *topic)
{
    ox_op_begin(&l->call.op);
    ox_client_lookup_fini(l);
    l->client = client;
    l->topic = ox_strdup(topic);
    l->host = ox_strdup(client->host);
    l->port = client->port;
    l->call.text[0] = '\0';
    l->authoritative = l->redirected = false;
    l->hops = 0;
    l->request.done = lookup_got;
    ox_seq_start(&l->seq, client->loop, "client.lookup", lookup_connect, lookup_done);
}

void ox_client_lookup_fini(struct client_lookup *l)
{
    ox_free(l->topic);
    ox_free(l->host);
    l->topic = l->host = NULL;
}
