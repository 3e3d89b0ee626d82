// connection.c - bytes into requests, answers into bytes; the rules of server.c say who may go on when.
#include "admin/connection.h"

#include <string.h>

#include "base/assert.h"

#define CONN_WRITE_BYTES (256u * 1024) // of a long answer, before the others have their turn
#define CONN_CHUNK_HEAD 10u            // its length in eight digits, and the line's end

static const struct ox_stream_events connection_events, gone_events;

static struct http_connection *connection_of(struct ox_stream *s)
{
    return (struct http_connection *)s->owner;
}

static void connection_set(struct http_connection *c, enum conn_state state)
{
    struct ox_admin *admin = c->admin;
    ox_list_remove(&admin->in[c->state], &c->link);
    c->state = state;
    c->since_ns = ox_now_ns(admin->shard->loop);
    ox_list_push_back(&admin->in[state], &c->link);
}

void http_connection_wait(struct http_connection *c)
{
    connection_set(c, c->state);
}

void http_connection_new(struct ox_admin *admin, struct ox_stream *give_stream)
{
    struct http_connection *c = ox_malloc(sizeof *c);
    c->admin = admin;
    c->stream = give_stream;
    c->since_ns = ox_now_ns(admin->shard->loop);
    ox_list_push_back(&admin->in[CONN_SILENT], &c->link);
    admin->connections.value++;
    give_stream->owner = c;
    give_stream->events = &connection_events;
    give_stream->high_bytes = 0; // `writable` says that the kernel has taken everything
    give_stream->low_bytes = 1;
}

// A handler goes on with its request; nobody hears the answer.
static void connection_drop_request(struct http_connection *c)
{
    struct admin_request *r = c->request;
    c->request = NULL;
    if (!r)
        return;
    r->connection = NULL;
    if (!r->dispatched)
        admin_request_free(r);
}

static void connection_source_free(struct http_connection *c)
{
    if (c->source)
        c->source->free(c->source);
    c->source = NULL;
}

static void connection_free(struct http_connection *c)
{
    struct ox_admin *admin = c->admin;
    connection_drop_request(c);
    ox_list_remove(&admin->in[c->state], &c->link);
    if (ox_link_linked(&c->unread))
        ox_list_remove(&admin->unread, &c->unread);
    admin_parts_fini(admin, &c->out);
    connection_source_free(c);
    ox_str_fini(&c->in);
    ox_free(c);
    admin->connections.value--;
    admin_server_make_room(admin);
}

void http_connection_end(struct http_connection *c, bool orderly)
{
    c->stream->events = &gone_events;
    if (orderly)
        ox_stream_close(c->stream);
    else
        ox_stream_abort(c->stream, OX_E_CANCELED);
    connection_free(c);
}

// ---- requests

static void connection_used(struct http_connection *c, size_t n)
{
    memmove(c->in.data, c->in.data + n, c->in.len - n);
    ox_str_truncate(&c->in, c->in.len - n);
    c->scanned = 0;
}

void http_connection_refuse(struct http_connection *c, unsigned status, const char *why)
{
    if (!c->request)
        c->request = admin_request_new(c, "", 0);
    struct admin_request *r = c->request;
    r->head.keep_alive = false;
    r->dispatched = true;
    ox_stream_pause(c->stream);
    connection_set(c, CONN_WORKING);
    admin_fail(r, status, "%s", why);
}

static void connection_head_too_long(struct http_connection *c)
{
    const char *line = memchr(c->in.data, '\n', c->in.len);
    bool target = !line || (size_t)(line - c->in.data) > c->admin->limits.head_bytes;
    http_connection_refuse(c, target ? HTTP_URI_TOO_LONG : HTTP_HEADERS_TOO_LARGE,
                           target ? "the request's first line is longer than httpMaxRequestHeaderSize"
                                  : "the request's headers are longer than httpMaxRequestHeaderSize");
}

static void connection_continue(struct http_connection *c)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    const struct ox_buf buf = ox_buf_static(text, sizeof text - 1);
    if (c->request->head.expects_continue && c->in.len == 0)
        ox_stream_write(c->stream, &buf, 1);
}

// False: it was refused.
static bool connection_head_sound(struct http_connection *c)
{
    const struct http_head *head = &c->request->head;
    char why[80];
    if (head->status) {
        http_connection_refuse(c, head->status, head->why);
        return false;
    }
    if (head->length > ADMIN_BODY_BYTES_MAX) {
        snprintf(why, sizeof why, "the body is larger than %u bytes", ADMIN_BODY_BYTES_MAX);
        http_connection_refuse(c, HTTP_CONTENT_TOO_LARGE, why);
        return false;
    }
    if (head->length || head->chunked)
        connection_continue(c);
    return true;
}

// False: there is no whole head.
static bool connection_take_head(struct http_connection *c)
{
    size_t blank = 0;
    while (blank < c->in.len && (c->in.data[blank] == '\r' || c->in.data[blank] == '\n'))
        blank++; // some clients end a body with an empty line
    if (blank)
        connection_used(c, blank);
    if (!c->in.len)
        return false;
    if (c->state == CONN_SILENT)
        connection_set(c, CONN_COMING);
    size_t end = http_head_end(c->in.data, c->in.len, &c->scanned);
    if (end > c->admin->limits.head_bytes || (!end && c->in.len > c->admin->limits.head_bytes)) {
        connection_head_too_long(c);
        return false;
    }
    if (!end)
        return false;
    c->chunks = (struct http_chunks){0};
    c->request = admin_request_new(c, c->in.data, end);
    connection_used(c, end);
    return connection_head_sound(c);
}

static enum http_part connection_take_length(struct http_connection *c, size_t *ret_used)
{
    struct admin_request *r = c->request;
    *ret_used = (size_t)OX_MIN((uint64_t)c->in.len, r->head.length - r->body.len);
    ox_str_add(&r->body, c->in.data, *ret_used);
    return r->body.len == r->head.length ? HTTP_PART_DONE : HTTP_PART_MORE;
}

// False: the body goes on, or it was refused.
static bool connection_take_body(struct http_connection *c)
{
    struct admin_request *r = c->request;
    char why[80];
    size_t used = 0, had = r->body.len;
    enum http_part part = r->head.chunked
                              ? http_chunks_take(&c->chunks, c->in.data, c->in.len, &used, &r->body, ADMIN_BODY_BYTES_MAX)
                              : connection_take_length(c, &used);
    c->admin->body_bytes += r->body.len - had;
    if (part == HTTP_PART_BAD) {
        http_connection_refuse(c, HTTP_BAD_REQUEST, "the body is not in chunks, as its head says");
    } else if (part == HTTP_PART_TOO_BIG) {
        snprintf(why, sizeof why, "the body is larger than %u bytes", ADMIN_BODY_BYTES_MAX);
        http_connection_refuse(c, HTTP_CONTENT_TOO_LARGE, why);
    } else if (c->admin->body_bytes > ADMIN_BODIES_BYTES_MAX) {
        http_connection_refuse(c, HTTP_SERVICE_UNAVAILABLE,
                               "the bodies of all requests at work take too much memory; try again");
    } else {
        connection_used(c, used);
        return part == HTTP_PART_DONE;
    }
    return false;
}

static void connection_read(struct http_connection *c)
{
    if (!c->request && !connection_take_head(c))
        return;
    if (!connection_take_body(c))
        return;
    ox_stream_pause(c->stream); // the next request has to wait
    connection_set(c, CONN_QUEUED);
    admin_server_wake(c->admin);
}

static void connection_space(struct ox_stream *s, uint8_t **ret_data, size_t *ret_len)
{
    struct http_connection *c = connection_of(s);
    bool wanted = c->state == CONN_SILENT || c->state == CONN_COMING;
    *ret_len = wanted ? admin_server_space(c->admin, ret_data) : 0;
    if (wanted && !*ret_len && !ox_link_linked(&c->unread)) {
        ox_list_push_back(&c->admin->unread, &c->unread);
        admin_server_wake(c->admin);
    }
}

static void connection_filled(struct ox_stream *s, size_t n)
{
    struct http_connection *c = connection_of(s);
    ox_str_add(&c->in, c->admin->scratch, n);
    connection_read(c);
}

// ---- answers

// Makes n bytes that lie behind a chunk's head a chunk; none: the last one. Returns how many there are with head and end.
static size_t chunk_frame(uint8_t *data, size_t n)
{
    char head[16];
    if (!n) {
        memcpy(data, "0\r\n\r\n", 5);
        return 5;
    }
    snprintf(head, sizeof head, "%08x\r\n", (uint32_t)n);
    memcpy(data, head, CONN_CHUNK_HEAD);
    memcpy(data + CONN_CHUNK_HEAD + n, "\r\n", 2);
    return CONN_CHUNK_HEAD + n + 2;
}

// The source's next piece. False: there will be none.
static bool connection_pull(struct http_connection *c)
{
    uint8_t *data;
    size_t head = c->chunked ? CONN_CHUNK_HEAD : 0;
    admin_parts_fini(c->admin, &c->out);
    c->out_at = 0;
    if (c->admin->answer_bytes + CONN_WRITE_BYTES > ADMIN_ANSWERS_BYTES_MAX)
        admin_server_shed(c->admin);
    struct ox_buf part = ox_buf_new(CONN_WRITE_BYTES, &data);
    size_t n = c->source->more(c->source, (char *)data + head, CONN_WRITE_BYTES - 2 * CONN_CHUNK_HEAD);
    if (n == ADMIN_SOURCE_FAILED) {
        ox_buf_unref(&part);
        return false;
    }
    part.len = c->chunked ? chunk_frame(data, n) : n;
    if (!n)
        connection_source_free(c);
    admin_parts_put(c->admin, &c->out, part);
    return true;
}

static void connection_write(struct http_connection *c)
{
    size_t bytes = 0;
    connection_set(c, CONN_WRITING);
    while (c->out_at < c->out.count && bytes < CONN_WRITE_BYTES) {
        const struct ox_buf *part = &c->out.bufs[c->out_at++];
        bytes += part->len;
        ox_stream_write(c->stream, part, 1);
    }
    if (c->stream->queued_bytes > 0)
        return; // `writable` follows
    connection_set(c, CONN_ROOM);
    admin_server_wake(c->admin);
}

void http_connection_answer(struct http_connection *c, struct admin_request *r)
{
    struct ox_str text = {0};
    struct http_answer head = {.status = r->status,
                               .type = r->type,
                               .length = r->answer.bytes,
                               .streamed = r->source,
                               .headers = &r->headers,
                               .close = !r->head.keep_alive || c->admin->draining || (r->source && r->head.minor == 0),
                               .minor = r->head.minor,
                               .now_ms = ox_wall_ms(c->admin->shard->loop)};
    http_answer_head(&text, &head);
    struct ox_buf buf = ox_buf_copy(text.data, text.len);
    ox_str_fini(&text);
    c->ends = head.close;
    c->source = r->source;
    c->chunked = r->head.minor > 0;
    r->source = NULL;
    if (r->head.method && strcmp(r->head.method, "HEAD") == 0) {
        admin_parts_fini(c->admin, &r->answer);
        connection_source_free(c);
    }
    c->out = r->answer;
    c->out_at = 0;
    r->answer = (struct admin_parts){0};
    c->request = NULL;
    ox_stream_write(c->stream, &buf, 1);
    ox_buf_unref(&buf);
    connection_write(c);
}

// All is written: the next request, part of which may be here already.
static void connection_next(struct http_connection *c)
{
    admin_parts_fini(c->admin, &c->out);
    if (c->ends) {
        http_connection_end(c, true);
        return;
    }
    if (c->in.len == 0)
        ox_str_fini(&c->in);
    connection_set(c, CONN_SILENT);
    ox_stream_resume(c->stream);
    connection_read(c);
}

void http_connection_go(struct http_connection *c)
{
    if (c->state == CONN_QUEUED) {
        connection_set(c, CONN_WORKING);
        admin_request_dispatch(c->request);
    } else if (c->out_at < c->out.count || c->source) {
        if (c->out_at < c->out.count || connection_pull(c))
            connection_write(c);
        else
            http_connection_end(c, false);
    } else {
        connection_next(c);
    }
}

static void connection_writable(struct ox_stream *s)
{
    struct http_connection *c = connection_of(s);
    if (c->state != CONN_WRITING)
        return;
    if (c->out_at == c->out.count && !c->source) {
        connection_next(c);
        return;
    }
    connection_set(c, CONN_ROOM);
    admin_server_wake(c->admin);
}

static void connection_closed(struct ox_stream *s, enum ox_err err)
{
    (void)err;
    connection_free(connection_of(s));
}

static const struct ox_stream_events connection_events = {
    .space = connection_space, .filled = connection_filled, .writable = connection_writable, .closed = connection_closed};

// ---- streams whose connection is no more

static void gone_space(struct ox_stream *s, uint8_t **ret_data, size_t *ret_len)
{
    (void)s, (void)ret_data;
    *ret_len = 0;
}

static void gone_filled(struct ox_stream *s, size_t n)
{
    (void)s, (void)n;
}

static void gone_writable(struct ox_stream *s)
{
    (void)s;
}

static void gone_closed(struct ox_stream *s, enum ox_err err)
{
    (void)s, (void)err;
}

static const struct ox_stream_events gone_events = {
    .space = gone_space, .filled = gone_filled, .writable = gone_writable, .closed = gone_closed};
