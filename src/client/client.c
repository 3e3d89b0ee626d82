// client.c - the client itself: its URL, its connections' life, questions that need no producer or consumer.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "client/client_int.h"

#define CLIENT_PORT 6650
#define CLIENT_TIMEOUT_NS (30 * OX_SEC)

enum ox_err ox_client_parse_url(const char *url, char **ret_host, uint16_t *ret_port)
{
    if (strncmp(url, "pulsar://", 9) == 0)
        url += 9;
    bool bracket = url[0] == '[';
    const char *host = url + bracket;
    size_t len = strcspn(host, bracket ? "]" : ":/");
    const char *rest = host + len + (bracket && host[len] == ']');
    int64_t port = CLIENT_PORT;
    if (len == 0 || (bracket && host[len] != ']'))
        return OX_E_INVALID;
    if (*rest == ':') {
        OX_CLEANUP(ox_free_ptr)
        char *digits = ox_strndup(rest + 1, strcspn(rest + 1, "/"));
        rest += 1 + strlen(digits);
        if (ox_parse_i64(digits, 1, UINT16_MAX, &port) != OX_OK)
            return OX_E_INVALID;
    }
    if (*rest != '\0' && strcmp(rest, "/") != 0)
        return OX_E_INVALID;
    *ret_host = ox_strndup(host, len);
    *ret_port = (uint16_t)port;
    return OX_OK;
}

enum ox_err ox_client_new(const struct ox_client_config *config, struct ox_client **ret)
{
    struct ox_client *client = ox_malloc(sizeof *client);
    enum ox_err err = ox_client_parse_url(config->service_url, &client->host, &client->port);
    if (err != OX_OK) {
        ox_free(client);
        return err;
    }
    client->net = config->net;
    client->loop = config->net->loop;
    client->timeout_ns = config->timeout_ns ? config->timeout_ns : CLIENT_TIMEOUT_NS;
    client->patient = config->patient;
    ox_list_init(&client->conns);
    *ret = client;
    return OX_OK;
}

void ox_client_break(struct ox_client *client)
{
    OX_LIST_EACH(&client->conns, link)
        ox_client_conn_break(CONTAINER_OF(link, struct conn, link), OX_E_DISCONNECTED);
}

void ox_client_conn_gone(struct ox_client *client)
{
    if (!client->closing || !ox_list_empty(&client->conns))
        return;
    struct ox_op *op = client->closing;
    ox_free(client->host);
    ox_free(client);
    ox_op_finish(op, OX_OK);
}

void ox_client_close(struct ox_client *client, struct ox_op *op)
{
    OX_ASSERT(client->attached == 0 && !client->closing);
    ox_op_begin(op);
    client->closing = op;
    OX_LIST_EACH(&client->conns, link)
        ox_client_conn_break(CONTAINER_OF(link, struct conn, link), OX_E_CLOSED);
    ox_client_conn_gone(client);
}

uint64_t ox_client_next_id(struct ox_client *client)
{
    return ++client->last_id;
}

void ox_client_text(char *to, const char *text)
{
    snprintf(to, OX_CLIENT_TEXT_BYTES, "%s", text);
}

// A question about partitions on its way.
struct partitions {
    struct ox_client *client;
    struct ox_client_partitions *ask;
    struct ox_op conn_op;
    struct client_request request;
    char *topic;
};

static void partitions_finish(struct partitions *p, enum ox_err err, const char *text)
{
    struct ox_client_partitions *ask = p->ask;
    ox_client_text(ask->call.text, text);
    ox_free(p->topic);
    ox_free(p);
    ox_op_finish(&ask->call.op, err);
}

static void partitions_answered(struct client_request *r, enum ox_err err, uint32_t type, void *message, const char *text)
{
    struct partitions *p = CONTAINER_OF(r, struct partitions, request);
    if (err == OX_OK && type != OXPB__BASE_COMMAND__TYPE__PARTITIONED_METADATA_RESPONSE)
        err = OX_E_MALFORMED;
    if (err != OX_OK) {
        partitions_finish(p, err, text);
        return;
    }
    const Oxpb__CommandPartitionedTopicMetadataResponse *m = message;
    if (m->has_error ||
        (m->has_response && m->response == OXPB__COMMAND_PARTITIONED_TOPIC_METADATA_RESPONSE__LOOKUP_TYPE__Failed)) {
        partitions_finish(p, ox_client_err_of_server(m->error), m->message ? m->message : "");
        return;
    }
    p->ask->count = m->partitions;
    partitions_finish(p, OX_OK, "");
}

static void partitions_connected(struct ox_op *op)
{
    struct partitions *p = CONTAINER_OF(op, struct partitions, conn_op);
    struct conn *conn = op->err == OX_OK ? ox_client_conn_find(p->client, p->client->host, p->client->port) : NULL;
    if (!conn) {
        partitions_finish(p, op->err != OX_OK ? op->err : OX_E_DISCONNECTED, "");
        return;
    }
    Oxpb__CommandPartitionedTopicMetadata ask = OXPB__COMMAND_PARTITIONED_TOPIC_METADATA__INIT;
    ask.topic = p->topic;
    ask.request_id = ox_client_next_id(p->client);
    ox_client_conn_request(conn, &p->request, ask.request_id,
                           ox_command_pack_sub(OXPB__BASE_COMMAND__TYPE__PARTITIONED_METADATA, &ask.base));
}

void ox_client_partitions(struct ox_client *client, struct ox_client_partitions *ask, const char *topic)
{
    ox_op_begin(&ask->call.op);
    struct partitions *p = ox_malloc(sizeof *p);
    p->client = client;
    p->ask = ask;
    p->topic = ox_strdup(topic);
    p->request.done = partitions_answered;
    ox_op_init(&p->conn_op, client->loop, partitions_connected, "client.partitions");
    ox_client_conn_get(client, &p->conn_op, client->host, client->port);
}
