// server.c - the HTTP server on the loop: requests come in, wait while the broker works, go out.
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "admin/request.h"

static void admin_run(struct ox_admin *admin);

static void admin_readable(void *arg)
{
    admin_run((struct ox_admin *)arg);
}

static void admin_timer(struct ox_timer *t)
{
    admin_run(CONTAINER_OF(t, struct ox_admin, timer));
}

static void admin_hook(struct ox_turn_hook *h)
{
    admin_run(CONTAINER_OF(h, struct ox_admin, run_hook));
}

static void admin_run(struct ox_admin *admin)
{
    MHD_UNSIGNED_LONG_LONG timeout_ms;
    MHD_run(admin->daemon);
    if (MHD_get_timeout(admin->daemon, &timeout_ms) == MHD_YES)
        ox_timer_start(&admin->timer, (uint64_t)timeout_ms * OX_MS);
    else
        ox_timer_stop(&admin->timer);
}

static void request_split(struct admin_request *r, const char *url)
{
    while (*url) {
        size_t len = strcspn(url + 1, "/");
        if (r->count == ADMIN_SEGMENTS_MAX) {
            r->path_err = OX_E_TOO_BIG;
            return;
        }
        struct ox_str segment = {0};
        if (ox_percent_decode(&segment, url + 1, len) != OX_OK)
            r->path_err = OX_E_INVALID;
        r->segments[r->count++] = ox_str_take(&segment);
        url += 1 + len;
    }
    if (r->count && !*r->segments[r->count - 1])
        ox_free(r->segments[--r->count]); // a slash at the end
}

static struct admin_request *request_new(struct ox_admin *admin, struct MHD_Connection *connection, const char *url)
{
    struct admin_request *r = ox_malloc(sizeof *r);
    r->admin = admin;
    r->connection = connection;
    request_split(r, *url == '/' ? url : "");
    ox_list_push_back(&admin->requests, &r->link);
    return r;
}

// Requests that a handler has and that have no answer yet.
static bool admin_busy(struct ox_admin *admin)
{
    OX_LIST_EACH(&admin->requests, link) {
        const struct admin_request *r = CONTAINER_OF(link, struct admin_request, link);
        if (r->dispatched && !r->answered)
            return true;
    }
    return false;
}

static void admin_tell_drained(struct ox_admin *admin)
{
    struct ox_op *op = admin->drained;
    if (!op || admin_busy(admin))
        return;
    admin->drained = NULL;
    ox_op_finish(op, OX_OK);
}

void ox_admin_drain(struct ox_admin *admin, struct ox_op *op)
{
    ox_op_begin(op);
    admin->draining = true;
    admin->drained = op;
    admin_tell_drained(admin);
}

static void request_free(struct admin_request *r)
{
    ox_list_remove(&r->admin->requests, &r->link);
    for (size_t i = 0; i < r->count; i++)
        ox_free(r->segments[i]);
    ox_topic_name_fini(&r->topic);
    ox_free(r->ns);
    json_decref(r->json);
    ox_kv_fini(&r->query);
    ox_kv_fini(&r->headers);
    ox_str_fini(&r->body);
    ox_str_fini(&r->answer);
    ox_free(r);
}

static enum MHD_Result request_send(struct admin_request *r)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(r->answer.len, (void *)(uintptr_t)ox_str_get(&r->answer), MHD_RESPMEM_MUST_COPY);
    if (r->type)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, r->type);
    for (size_t i = 0; i < r->headers.count; i++)
        MHD_add_response_header(response, r->headers.pairs[i].key, r->headers.pairs[i].value);
    enum MHD_Result result = MHD_queue_response(r->connection, r->status, response);
    MHD_destroy_response(response);
    return result;
}

// MHD calls this for the head, for each part of the body, and again after a resume.
static enum MHD_Result admin_access(void *arg, struct MHD_Connection *connection, const char *url, const char *method,
                                    const char *version, const char *data, size_t *data_len, void **slot)
{
    (void)version;
    struct admin_request *r = (struct admin_request *)*slot;
    if (!r) {
        *slot = request_new((struct ox_admin *)arg, connection, url);
        return MHD_YES;
    }
    if (*data_len) {
        r->body_too_big |= r->body.len + *data_len > ADMIN_BODY_BYTES_MAX;
        if (!r->body_too_big)
            ox_str_add(&r->body, data, *data_len);
        *data_len = 0;
        return MHD_YES;
    }
    if (!r->dispatched) {
        r->dispatched = true;
        r->in_handler = true;
        admin_dispatch(r, method);
        r->in_handler = false;
    }
    if (r->answered)
        return request_send(r);
    r->suspended = true;
    MHD_suspend_connection(connection);
    return MHD_YES;
}

// The client is gone or served. A request that a broker operation still works for is freed when that ends.
static void admin_completed(void *arg, struct MHD_Connection *connection, void **slot, enum MHD_RequestTerminationCode code)
{
    (void)arg, (void)connection, (void)code;
    struct admin_request *r = (struct admin_request *)*slot;
    *slot = NULL;
    if (!r)
        return;
    r->connection = NULL;
    if (!r->dispatched || r->answered)
        request_free(r);
}

static void request_answered(struct admin_request *r)
{
    OX_ASSERT(!r->answered);
    r->answered = true;
    admin_tell_drained(r->admin);
    if (!r->connection && !r->in_handler) {
        request_free(r);
        return;
    }
    if (!r->suspended)
        return;
    r->suspended = false;
    MHD_resume_connection(r->connection);
    ox_turn_end(r->admin->shard->loop, &r->admin->run_hook);
}

void admin_json(struct admin_request *r, unsigned status, json_t *take_json)
{
    char *text = take_json ? json_dumps(take_json, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    if (!text) {
        json_decref(take_json);
        admin_fail(r, MHD_HTTP_INTERNAL_SERVER_ERROR, "the answer holds text that is not valid UTF-8");
        return;
    }
    ox_str_adds(&r->answer, text);
    free(text);
    json_decref(take_json);
    r->status = status;
    r->type = "application/json";
    request_answered(r);
}

void admin_empty(struct admin_request *r, unsigned status)
{
    r->status = status;
    request_answered(r);
}

void admin_text(struct admin_request *r, unsigned status, const char *type, const char *text)
{
    ox_str_adds(&r->answer, text);
    r->status = status;
    r->type = type;
    request_answered(r);
}

void admin_bytes(struct admin_request *r, unsigned status, const void *data, size_t len)
{
    ox_str_add(&r->answer, data, len);
    r->status = status;
    r->type = "application/json"; // whatever it is: that is what Pulsar says
    request_answered(r);
}

// JSON takes only UTF-8, and what the client sent may be anything.
static void reason_make_utf8(struct ox_str *reason)
{
    if (ox_utf8_valid(ox_str_get(reason), reason->len))
        return;
    for (size_t i = 0; i < reason->len; i++) {
        if ((unsigned char)reason->data[i] >= 0x80)
            reason->data[i] = '?';
    }
}

void admin_fail(struct admin_request *r, unsigned status, const char *format, ...)
{
    struct ox_str reason = {0};
    va_list args;
    va_start(args, format);
    ox_str_addv(&reason, format, args);
    va_end(args);
    reason_make_utf8(&reason);
    admin_json(r, status, json_pack("{s:s}", "reason", ox_str_get(&reason)));
    ox_str_fini(&reason);
}

// Segments are decoded one by one after the path is split, so that an encoded slash stays inside its segment.
static size_t admin_no_unescape(void *arg, struct MHD_Connection *connection, char *text)
{
    (void)arg, (void)connection;
    return strlen(text);
}

static enum ox_err admin_listen(struct ox_admin *admin, const char *host, uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
        return OX_E_INVALID;
    errno = 0;
    admin->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, port, NULL, NULL, admin_access, admin,
                                     MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_UNESCAPE_CALLBACK, admin_no_unescape,
                                     NULL, MHD_OPTION_NOTIFY_COMPLETED, admin_completed, NULL,
                                     MHD_OPTION_CONNECTION_LIMIT, (unsigned)ADMIN_CONNECTIONS_MAX,
                                     MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)ADMIN_IDLE_SECONDS, MHD_OPTION_END);
    if (!admin->daemon)
        return errno == EADDRINUSE ? OX_E_ADDRESS_IN_USE : errno ? ox_err_from_errno(errno) : OX_E_IO;
    admin->port = MHD_get_daemon_info(admin->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
    return OX_OK;
}

enum ox_err ox_admin_open(const struct ox_admin_config *config, struct ox_admin **ret)
{
    struct ox_admin *admin = ox_malloc(sizeof *admin);
    admin->shard = config->shard;
    admin->storage = config->storage;
    admin->poll = config->poll;
    admin->run_hook.run = admin_hook;
    ox_list_init(&admin->requests);
    ox_timer_init(&admin->timer, config->shard->loop, admin_timer);
    enum ox_err err = admin_listen(admin, config->host, config->port);
    if (err == OX_OK) {
        int fd = MHD_get_daemon_info(admin->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
        admin->watch = admin->poll.start(admin->poll.ctx, fd, admin_readable, admin);
        err = admin->watch ? OX_OK : OX_E_IO;
    }
    if (err == OX_OK)
        *ret = admin;
    else
        ox_admin_close(admin);
    return err;
}

uint16_t ox_admin_port(const struct ox_admin *admin)
{
    return admin->port;
}

void ox_admin_close(struct ox_admin *admin)
{
    OX_ASSERT(!admin_busy(admin));
    if (admin->daemon)
        MHD_run(admin->daemon); // what has been answered in this turn goes out
    ox_timer_stop(&admin->timer);
    ox_turn_end_cancel(admin->shard->loop, &admin->run_hook);
    if (admin->watch)
        admin->poll.stop(admin->watch);
    if (admin->daemon)
        MHD_stop_daemon(admin->daemon);
    ox_free(admin);
}
