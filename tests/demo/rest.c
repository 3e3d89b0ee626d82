// rest.c - one HTTP request on a connection of its own, through the stream port.
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "demo.h"

static void rest_space(struct ox_stream *s, uint8_t **ret_data, size_t *ret_len)
{
    struct rest_call *c = (struct rest_call *)s->owner;
    *ret_data = c->block;
    *ret_len = sizeof c->block;
}

static void rest_filled(struct ox_stream *s, size_t n)
{
    struct rest_call *c = (struct rest_call *)s->owner;
    ox_str_add(&c->text, c->block, n);
}

static void rest_closed(struct ox_stream *s, enum ox_err err)
{
    struct rest_call *c = (struct rest_call *)s->owner;
    const char *text = ox_str_get(&c->text), *body = strstr(text, "\r\n\r\n");
    bool whole = body && strncmp(text, "HTTP/1.1 ", 9) == 0;
    if (whole) {
        c->status = atoi(text + 9);
        c->answer = json_loads(body + 4, JSON_DECODE_ANY, NULL);
    }
    ox_op_finish(&c->op, whole ? OX_OK : err == OX_OK ? OX_E_MALFORMED : err);
}

static const struct ox_stream_events rest_events = {.space = rest_space, .filled = rest_filled, .closed = rest_closed};

static void rest_connected(struct ox_op *op)
{
    struct rest_call *c = CONTAINER_OF(op, struct rest_call, connect);
    if (op->err == OX_OK) {
        c->stream->events = &rest_events;
        c->stream->owner = c;
        ox_stream_write(c->stream, &c->request, 1);
    }
    ox_buf_unref(&c->request);
    if (op->err != OX_OK)
        ox_op_finish(&c->op, op->err);
}

void rest_ask(struct ox_net *net, struct rest_call *c, uint16_t port, const char *method, const char *path, const char *body)
{
    rest_fini(c);
    c->status = 0;
    OX_CLEANUP(ox_free_ptr)
    char *text = ox_asprintf("%s /admin/v2/bookie-clusters/%s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                             "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                             method, path, body ? strlen(body) : 0, body ? body : "");
    c->request = ox_buf_copy(text, strlen(text));
    ox_op_begin(&c->op);
    ox_op_init(&c->connect, net->loop, rest_connected, "demo.connect");
    ox_net_connect(net, &c->connect, "127.0.0.1", port, &c->stream);
}

void rest_fini(struct rest_call *c)
{
    json_decref(c->answer);
    c->answer = NULL;
    ox_str_fini(&c->text);
}
