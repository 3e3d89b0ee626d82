// server.c - the HTTP server on the loop: who is let in, whose turn it is, who has to go. Nothing here takes longer than a part of a turn.
#include <string.h>

#include "admin/connection.h"

#define SERVER_SPACE_BYTES 16384u
#define SERVER_READS_A_TURN 128u
#define SERVER_QUEUE_MAX 256u        // requests that wait for their turn, beyond which no more are read
#define SERVER_WORK_NS OX_MS         // of requests, before the loop does other things
#define SERVER_REST_NS OX_MS         // for which it then does
#define SERVER_LOOK_NS (100 * OX_MS) // between looks for connections that take too long
#define SERVER_YOUNG_NS OX_SEC       // so long a connection is not in the way of a new one
#define SERVER_DRAIN_NS OX_SEC       // so long a drain waits for clients that take their answers
#define SERVER_DRAIN_LOOK_NS (10 * OX_MS)

static const struct ox_admin_limits limits_default = {
    .connections = 2048, .head_bytes = 8192, .request_ns = 10 * OX_SEC, .idle_ns = 60 * OX_SEC, .answer_ns = 30 * OX_SEC};

// ---- requests

static void request_split(struct admin_request *r, const char *path)
{
    while (*path == '/') {
        size_t whole = strcspn(path + 1, "/"),
               len = OX_MIN(whole, strcspn(path + 1, ";")); // ";name=value" says nothing to anybody here
        if (r->count == ADMIN_SEGMENTS_MAX) {
            r->path_err = OX_E_TOO_BIG;
            return;
        }
        struct ox_str segment = {0};
        if (ox_percent_decode(&segment, path + 1, len) != OX_OK)
            r->path_err = OX_E_INVALID;
        r->segments[r->count++] = ox_str_take(&segment);
        path += 1 + whole;
    }
    if (r->count && !*r->segments[r->count - 1])
        ox_free(r->segments[--r->count]); // a slash at the end
}

struct admin_request *admin_request_new(struct http_connection *c, const char *head, size_t len)
{
    struct admin_request *r = ox_malloc(sizeof *r);
    r->admin = c->admin;
    r->connection = c;
    ox_list_push_back(&c->admin->requests, &r->link);
    if (!len)
        return r;
    r->head_text = ox_strndup(head, len);
    memcpy(r->head_text, head, len); // zero bytes are for the parser to find
    http_head_parse(&r->head, r->head_text, len);
    if (!r->head.status)
        request_split(r, r->head.path);
    return r;
}

void admin_request_free(struct admin_request *r)
{
    ox_list_remove(r->answered ? &r->admin->answered : &r->admin->requests, &r->link);
    r->admin->body_bytes -= r->body.len;
    for (size_t i = 0; i < r->count; i++)
        ox_free(r->segments[i]);
    ox_topic_name_fini(&r->topic);
    ox_free(r->ns);
    ox_free(r->head_text);
    json_decref(r->json);
    ox_kv_fini(&r->query);
    ox_kv_fini(&r->headers);
    ox_str_fini(&r->body);
    admin_parts_fini(r->admin, &r->answer);
    if (r->source)
        r->source->free(r->source);
    ox_free(r);
}

void admin_request_dispatch(struct admin_request *r)
{
    r->dispatched = true;
    r->admin->requests_total.value++;
    admin_dispatch(r, r->head.method);
}

// Requests that a handler has and that have no answer yet.
static bool admin_busy(struct ox_admin *admin)
{
    OX_LIST_EACH(&admin->requests, link) {
        if (CONTAINER_OF(link, struct admin_request, link)->dispatched)
            return true;
    }
    return false;
}

// Answers that are not with the kernel yet; who takes them slowly is not waited for.
static bool admin_sending(struct ox_admin *admin)
{
    if (ox_now_ns(admin->shard->loop) >= admin->drain_until_ns)
        return false;
    return admin->answered.count || admin->in[CONN_WRITING].count || admin->in[CONN_ROOM].count;
}

static void admin_tell_drained(struct ox_admin *admin)
{
    struct ox_op *op = admin->drained;
    if (!op || admin_busy(admin) || admin_sending(admin))
        return;
    admin->drained = NULL;
    ox_op_finish(op, OX_OK);
}

static void server_drain_look(struct ox_timer *timer)
{
    struct ox_admin *admin = CONTAINER_OF(timer, struct ox_admin, drain);
    if (admin_busy(admin))
        admin->drain_until_ns = ox_now_ns(admin->shard->loop) + SERVER_DRAIN_NS;
    admin_tell_drained(admin);
    if (admin->drained)
        ox_timer_start(timer, SERVER_DRAIN_LOOK_NS);
}

void ox_admin_drain(struct ox_admin *admin, struct ox_op *op)
{
    ox_op_begin(op);
    admin->draining = true;
    admin->drained = op;
    admin->drain_until_ns = ox_now_ns(admin->shard->loop) + SERVER_DRAIN_NS;
    server_drain_look(&admin->drain);
}

// It lives on until the turn's end: whoever answers may look at it after that.
void admin_request_answered(struct admin_request *r)
{
    OX_ASSERT(!r->answered);
    r->answered = true;
    ox_list_remove(&r->admin->requests, &r->link);
    ox_list_push_back(&r->admin->answered, &r->link);
    ox_turn_end(r->admin->shard->loop, &r->admin->turn);
    admin_tell_drained(r->admin);
}

static void server_answer(struct ox_admin *admin)
{
    OX_LIST_EACH(&admin->answered, link) {
        struct admin_request *r = CONTAINER_OF(link, struct admin_request, link);
        if (r->connection)
            http_connection_answer(r->connection, r);
        admin_request_free(r);
    }
}

// ---- turns

size_t admin_server_space(struct ox_admin *admin, uint8_t **ret_data)
{
    if (admin->reads >= SERVER_READS_A_TURN || admin->in[CONN_QUEUED].count >= SERVER_QUEUE_MAX)
        return 0;
    admin->reads++;
    ox_turn_end(admin->shard->loop, &admin->turn);
    *ret_data = admin->scratch;
    return SERVER_SPACE_BYTES;
}

void admin_server_wake(struct ox_admin *admin)
{
    if (!ox_timer_started(&admin->rest))
        ox_turn_end(admin->shard->loop, &admin->turn);
}

static bool server_work_left(struct ox_admin *admin)
{
    return admin->in[CONN_QUEUED].count || admin->in[CONN_ROOM].count || admin->unread.count;
}

// Long answers go on first, so that their memory comes back.
static bool server_work_one(struct ox_admin *admin)
{
    struct ox_link *link = ox_list_first(&admin->in[CONN_ROOM]);
    if (!link)
        link = ox_list_first(&admin->in[CONN_QUEUED]);
    if (link)
        http_connection_go(CONTAINER_OF(link, struct http_connection, link));
    return link != NULL;
}

static void server_read_on(struct ox_admin *admin)
{
    for (size_t n = 0; n < SERVER_READS_A_TURN && admin->in[CONN_QUEUED].count + n < SERVER_QUEUE_MAX; n++) {
        struct ox_link *link = ox_list_pop_front(&admin->unread);
        if (!link)
            return;
        struct http_connection *c = CONTAINER_OF(link, struct http_connection, unread);
        http_connection_wait(c);
        ox_stream_resume(c->stream);
    }
}

// A slice of work, at most SERVER_WORK_NS of it between two rests, in however many turns.
static void server_work(struct ox_admin *admin)
{
    uint64_t begin = ox_now_ns(admin->shard->loop), now = begin;
    if (ox_timer_started(&admin->rest))
        return;
    if (begin - admin->worked_at_ns > SERVER_REST_NS)
        admin->worked_ns = 0;
    while (now - begin + admin->worked_ns < SERVER_WORK_NS && server_work_one(admin))
        now = ox_now_ns(admin->shard->loop);
    admin->worked_ns += now - begin;
    admin->worked_at_ns = now;
    server_read_on(admin);
    admin_server_make_room(admin);
    if (server_work_left(admin) && admin->worked_ns >= SERVER_WORK_NS)
        ox_timer_start(&admin->rest, SERVER_REST_NS);
    else if (server_work_left(admin))
        ox_timer_start(&admin->rest, 0);
}

static void server_turn(struct ox_turn_hook *hook)
{
    struct ox_admin *admin = CONTAINER_OF(hook, struct ox_admin, turn);
    admin->reads = 0;
    server_answer(admin);
    server_work(admin);
}

static void server_rested(struct ox_timer *t)
{
    server_work(CONTAINER_OF(t, struct ox_admin, rest));
}

// ---- who is let in, who has to go

// The connection that has been in a state for longest, if that is at least so long. One that was not read for want of time may have sent what it is waited for: its time begins anew.
static struct http_connection *server_oldest(struct ox_admin *admin, enum conn_state state, uint64_t ns)
{
    uint64_t now = ox_now_ns(admin->shard->loop);
    for (struct ox_link *link; (link = ox_list_first(&admin->in[state])) != NULL;) {
        struct http_connection *c = CONTAINER_OF(link, struct http_connection, link);
        if (now - c->since_ns < ns)
            return NULL;
        if (!ox_link_linked(&c->unread))
            return c;
        http_connection_wait(c);
    }
    return NULL;
}

// A connection that holds no whole request makes room for one that may.
static bool server_evict(struct ox_admin *admin)
{
    struct http_connection *silent = server_oldest(admin, CONN_SILENT, SERVER_YOUNG_NS),
                           *coming = server_oldest(admin, CONN_COMING, SERVER_YOUNG_NS);
    if (!silent && !coming)
        return false;
    admin->evicted.value++;
    http_connection_end(coming && (!silent || coming->since_ns < silent->since_ns) ? coming : silent, false);
    return true;
}

void admin_server_make_room(struct ox_admin *admin)
{
    if (admin->making_room || !admin->listener)
        return;
    admin->making_room = true;
    while (admin->connections.value >= (int64_t)admin->limits.connections && server_evict(admin))
        ;
    admin->making_room = false;
    bool full = admin->connections.value >= (int64_t)admin->limits.connections || admin->unread.count > 0;
    if (full == admin->full)
        return;
    admin->full = full;
    if (full)
        ox_listener_pause(admin->listener);
    else
        ox_listener_resume(admin->listener);
}

void admin_server_shed(struct ox_admin *admin)
{
    struct http_connection *c = server_oldest(admin, CONN_WRITING, SERVER_YOUNG_NS);
    if (!c)
        return;
    admin->evicted.value++;
    http_connection_end(c, false);
}

static void server_look(struct ox_timer *timer)
{
    struct ox_admin *admin = CONTAINER_OF(timer, struct ox_admin, look);
    struct http_connection *c;
    while ((c = server_oldest(admin, CONN_SILENT, admin->limits.idle_ns)) != NULL)
        http_connection_end(c, true);
    while ((c = server_oldest(admin, CONN_COMING, admin->limits.request_ns)) != NULL)
        http_connection_refuse(c, HTTP_REQUEST_TIMEOUT,
                               "the request did not come as a whole within httpRequestTimeoutSeconds");
    while ((c = server_oldest(admin, CONN_WRITING, admin->limits.answer_ns)) != NULL)
        http_connection_end(c, false);
    admin_server_make_room(admin);
    if (admin->connections.value)
        ox_timer_start(&admin->look, SERVER_LOOK_NS);
}

static void server_accept(struct ox_listener *l, struct ox_stream *give_s)
{
    struct ox_admin *admin = (struct ox_admin *)l->owner;
    http_connection_new(admin, give_s);
    admin_server_make_room(admin);
    if (!ox_timer_started(&admin->look))
        ox_timer_start(&admin->look, SERVER_LOOK_NS);
}

// ---- open and close

static void server_metrics(struct ox_admin *admin)
{
    struct ox_metrics *m = admin->shard->metrics;
    ox_metric_init(&admin->connections, m, OX_METRIC_GAUGE, "oxbow_http_connections",
                   "Open connections of HTTP clients.", NULL);
    ox_metric_init(&admin->requests_total, m, OX_METRIC_COUNTER, "oxbow_http_requests_total",
                   "HTTP requests that were served.", NULL);
    ox_metric_init(&admin->evicted, m, OX_METRIC_COUNTER, "oxbow_http_evicted_total",
                   "HTTP connections that were closed to make room for others.", NULL);
    ox_metric_init(&admin->turn_longest, m, OX_METRIC_GAUGE, "oxbow_loop_longest_turn_microseconds",
                   "The longest turn of the event loop since this page was last shown.", NULL);
    ox_metric_init(&admin->turns_slow, m, OX_METRIC_COUNTER, "oxbow_loop_slow_turns_total",
                   "Turns of the event loop that took longer than 5 ms.", NULL);
}

void admin_metrics_look(struct ox_admin *admin)
{
    struct ox_loop *loop = admin->shard->loop;
    admin->turn_longest.value = (int64_t)(loop->turn_longest_ns / 1000);
    admin->turns_slow.value = (int64_t)loop->turns_slow;
    loop->turn_longest_ns = 0;
}

static void server_limits(struct ox_admin_limits *l)
{
    l->connections = l->connections ? l->connections : limits_default.connections;
    l->head_bytes = l->head_bytes ? l->head_bytes : limits_default.head_bytes;
    l->request_ns = l->request_ns ? l->request_ns : limits_default.request_ns;
    l->idle_ns = l->idle_ns ? l->idle_ns : limits_default.idle_ns;
    l->answer_ns = l->answer_ns ? l->answer_ns : limits_default.answer_ns;
}

enum ox_err ox_admin_open(const struct ox_admin_config *config, struct ox_admin **ret)
{
    struct ox_listener *listener;
    enum ox_err err = ox_net_listen(config->net, config->host, config->port, &listener);
    if (err)
        return err;
    struct ox_admin *admin = ox_malloc(sizeof *admin);
    admin->shard = config->shard;
    admin->storage = config->storage;
    admin->settings = config->settings;
    admin->process = config->process;
    admin->started_ms = ox_wall_ms(config->shard->loop);
    admin->process = config->process;
    admin->started_ms = ox_wall_ms(config->shard->loop);
    admin->limits = config->limits;
    server_limits(&admin->limits);
    admin->scratch = (uint8_t *)ox_malloc_raw(SERVER_SPACE_BYTES);
    admin->turn.run = server_turn;
    ox_list_init(&admin->requests);
    ox_list_init(&admin->answered);
    ox_list_init(&admin->walks);
    ox_list_init(&admin->snapshots);
    ox_list_init(&admin->unread);
    for (int i = 0; i < CONN_STATE_COUNT; i++)
        ox_list_init(&admin->in[i]);
    ox_timer_init(&admin->rest, config->shard->loop, server_rested);
    ox_timer_init(&admin->look, config->shard->loop, server_look);
    ox_timer_init(&admin->drain, config->shard->loop, server_drain_look);
    server_metrics(admin);
    admin->listener = listener;
    listener->owner = admin;
    listener->accept = server_accept;
    *ret = admin;
    return OX_OK;
}

uint16_t ox_admin_port(const struct ox_admin *admin)
{
    return admin->listener->port;
}

void ox_admin_close(struct ox_admin *admin)
{
    OX_ASSERT(!admin_busy(admin));
    ox_net_unlisten(admin->listener);
    admin->listener = NULL;
    server_answer(admin);
    for (int state = 0; state < CONN_STATE_COUNT; state++) {
        OX_LIST_EACH(&admin->in[state], link)
            http_connection_end(CONTAINER_OF(link, struct http_connection, link), true);
    }
    OX_ASSERT(ox_list_empty(&admin->requests) && admin->answer_bytes == 0 && admin->body_bytes == 0);
    ox_timer_stop(&admin->rest);
    ox_timer_stop(&admin->look);
    ox_timer_stop(&admin->drain);
    ox_turn_end_cancel(admin->shard->loop, &admin->turn);
    ox_metric_fini(&admin->connections);
    ox_metric_fini(&admin->requests_total);
    ox_metric_fini(&admin->evicted);
    ox_metric_fini(&admin->turn_longest);
    ox_metric_fini(&admin->turns_slow);
    ox_free(admin->scratch);
    ox_free(admin);
}
