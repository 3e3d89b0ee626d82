// net.c - listeners and connects over TCP.
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "io/posix/posix_int.h"
#include "io/posix/stream.h"

#define NET_BACKLOG 4096       // the kernel may keep fewer
#define NET_ACCEPTS_A_TURN 64u // a crowd at the door is for several turns
#define NET_CONNECT_NS (10 * OX_SEC)

struct posix_listener {
    struct ox_listener listener;
    uv_tcp_t tcp;
    bool refusing;     // the last connection was one too many
    bool held;         // by its owner
    bool pending;      // libuv has a connection that was not taken, and looks for no other until it is
    unsigned accepted; // in this turn
    struct ox_turn_hook turn;
};

// A connect: first perhaps a look-up of the name, then one address after another.
struct net_connect {
    struct posix_loop *p;
    struct ox_op *op; // NULL: finished already
    struct ox_stream **ret;
    uint16_t port;
    uv_getaddrinfo_t look_up;
    bool looking_up;
    struct addrinfo *found, *next; // next: to try after this one
    uv_connect_t req;
    struct posix_stream *stream; // being connected
    struct ox_timer limit;
    struct ox_link link; // in p->connects while op is set
};

static void listener_freed(uv_handle_t *handle)
{
    ox_free(CONTAINER_OF((uv_tcp_t *)handle, struct posix_listener, tcp));
}

// Too many descriptors are open; said once until there is room again.
static bool listener_refuses(struct posix_listener *l, const struct posix_stream *s)
{
    uv_os_fd_t fd;
    bool refuses = uv_fileno((const uv_handle_t *)&s->tcp, &fd) == 0 && fd >= posix_of(l->listener.net->loop)->accept_fd_end;
    if (refuses && !l->refusing)
        ox_warn(l->listener.net->loop->log, "posix.accept_refused",
                "port=%u descriptor=%d hint=\"raise the limit of open files (ulimit -n)\"", l->listener.port, fd);
    l->refusing = refuses;
    return refuses;
}

static void listener_take(struct posix_listener *l)
{
    struct posix_stream *s = posix_stream_new(l->listener.net->loop);
    l->pending = false;
    l->accepted++;
    ox_turn_end(l->listener.net->loop, &l->turn);
    if (uv_accept((uv_stream_t *)&l->tcp, (uv_stream_t *)&s->tcp) != 0 || !l->listener.accept || listener_refuses(l, s)) {
        s->told = true;
        posix_stream_kill(s, OX_E_DISCONNECTED);
        return;
    }
    posix_stream_connected(s);
    l->listener.accept(&l->listener, &s->stream);
}

static void listener_connection(uv_stream_t *handle, int status)
{
    struct posix_listener *l = CONTAINER_OF((uv_tcp_t *)handle, struct posix_listener, tcp);
    if (status != 0)
        ox_warn(l->listener.net->loop->log, "posix.accept_failed", "error=%s", uv_err_name(status));
    else if (l->held || l->accepted >= NET_ACCEPTS_A_TURN)
        l->pending = true;
    else
        listener_take(l);
}

static void listener_turn(struct ox_turn_hook *hook)
{
    struct posix_listener *l = CONTAINER_OF(hook, struct posix_listener, turn);
    l->accepted = 0;
    if (l->pending && !l->held)
        listener_take(l);
}

static void net_hold(struct ox_listener *listener, bool on)
{
    struct posix_listener *l = CONTAINER_OF(listener, struct posix_listener, listener);
    l->held = on;
    if (l->pending && !on)
        ox_turn_end(listener->net->loop, &l->turn);
}

static bool net_parse(const char *host, uint16_t port, struct sockaddr_storage *ret)
{
    return uv_ip4_addr(host, port, (struct sockaddr_in *)ret) == 0 ||
           uv_ip6_addr(host, port, (struct sockaddr_in6 *)ret) == 0;
}

static const struct addrinfo net_hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC};

// The address to listen on; a name is looked up on the spot, as this happens at start-up only.
static enum ox_err net_resolve_now(struct posix_loop *p, const char *host, uint16_t port, struct sockaddr_storage *ret)
{
    uv_getaddrinfo_t req;
    char service[8];
    if (net_parse(host, port, ret))
        return OX_OK;
    (void)snprintf(service, sizeof(service), "%u", port);
    if (!*host || uv_getaddrinfo(&p->uv, &req, NULL, host, service, &net_hints) != 0)
        return OX_E_INVALID;
    memcpy(ret, req.addrinfo->ai_addr, req.addrinfo->ai_addrlen);
    uv_freeaddrinfo(req.addrinfo);
    return OX_OK;
}

static int listener_bind(struct posix_listener *l, const struct sockaddr_storage *addr)
{
    int status = uv_tcp_bind(&l->tcp, (const struct sockaddr *)addr, 0);
    return status ? status : uv_listen((uv_stream_t *)&l->tcp, NET_BACKLOG, listener_connection);
}

static uint16_t listener_port(struct posix_listener *l)
{
    struct sockaddr_storage addr = {0};
    int len = (int)sizeof(addr);
    OX_ASSERT(uv_tcp_getsockname(&l->tcp, (struct sockaddr *)&addr, &len) == 0);
    return ntohs(addr.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&addr)->sin6_port
                                            : ((struct sockaddr_in *)&addr)->sin_port);
}

static enum ox_err net_listen(struct ox_net *net, const char *host, uint16_t port, struct ox_listener **ret)
{
    struct posix_loop *p = posix_of(net->loop);
    struct sockaddr_storage addr = {0};
    enum ox_err err = net_resolve_now(p, host, port, &addr);
    if (err)
        return err;
    struct posix_listener *l = ox_malloc(sizeof(*l));
    l->turn.run = listener_turn;
    OX_ASSERT(uv_tcp_init(&p->uv, &l->tcp) == 0);
    int status = listener_bind(l, &addr);
    if (status != 0) {
        uv_close((uv_handle_t *)&l->tcp, listener_freed);
        return status == UV_EADDRNOTAVAIL ? OX_E_INVALID : posix_err(status);
    }
    l->listener = (struct ox_listener){.net = net, .port = listener_port(l)};
    *ret = &l->listener;
    return OX_OK;
}

static void net_unlisten(struct ox_listener *listener)
{
    struct posix_listener *l = CONTAINER_OF(listener, struct posix_listener, listener);
    ox_turn_end_cancel(listener->net->loop, &l->turn);
    uv_close((uv_handle_t *)&l->tcp, listener_freed);
}

static void connect_free_if_over(struct net_connect *k)
{
    if (k->op || k->looking_up || k->stream)
        return;
    if (k->found)
        uv_freeaddrinfo(k->found);
    ox_free(k);
}

// The operation is over; what libuv still holds of it ends by itself.
static void connect_finish(struct net_connect *k, enum ox_err err)
{
    struct ox_op *op = k->op;
    k->op = NULL;
    ox_timer_stop(&k->limit);
    ox_list_remove(&k->p->connects, &k->link);
    if (k->looking_up)
        (void)uv_cancel((uv_req_t *)&k->look_up);
    if (k->stream)
        posix_stream_kill(k->stream, err);
    ox_op_finish(op, err);
}

static void connect_next(struct net_connect *k, enum ox_err err);

static void connect_answered(uv_connect_t *req, int status)
{
    struct net_connect *k = CONTAINER_OF(req, struct net_connect, req);
    struct posix_stream *s = k->stream;
    k->stream = NULL;
    if (!k->op) {
        posix_stream_kill(s, OX_E_CANCELED);
    } else if (status != 0) {
        posix_stream_kill(s, posix_err(status));
        connect_next(k, posix_err(status));
    } else {
        s->told = false;
        posix_stream_connected(s);
        *k->ret = &s->stream;
        connect_finish(k, OX_OK);
    }
    connect_free_if_over(k);
}

static void connect_try(struct net_connect *k, const struct sockaddr *addr)
{
    struct posix_stream *s = posix_stream_new(&k->p->loop);
    s->told = true;
    int status = uv_tcp_connect(&k->req, &s->tcp, addr, connect_answered);
    if (status == 0) {
        k->stream = s;
        return;
    }
    posix_stream_kill(s, posix_err(status));
    connect_next(k, posix_err(status));
}

// Goes on with the next address, or ends with the last one's error.
static void connect_next(struct net_connect *k, enum ox_err err)
{
    struct addrinfo *a = k->next;
    if (!a) {
        connect_finish(k, err);
        return;
    }
    k->next = a->ai_next;
    connect_try(k, a->ai_addr);
}

static void connect_looked_up(uv_getaddrinfo_t *req, int status, struct addrinfo *found)
{
    struct net_connect *k = CONTAINER_OF(req, struct net_connect, look_up);
    k->looking_up = false;
    k->found = k->next = found;
    if (k->op)
        connect_next(k, status == 0 ? OX_E_CONNECTION_REFUSED : OX_E_INVALID);
    connect_free_if_over(k);
}

static void connect_timed_out(struct ox_timer *timer)
{
    struct net_connect *k = CONTAINER_OF(timer, struct net_connect, limit);
    connect_finish(k, OX_E_TIMEOUT);
    connect_free_if_over(k);
}

static void connect_cancel(struct ox_op *op)
{
    OX_LIST_EACH(&posix_of(op->loop)->connects, link) {
        struct net_connect *k = CONTAINER_OF(link, struct net_connect, link);
        if (k->op != op)
            continue;
        connect_finish(k, OX_E_CANCELED);
        connect_free_if_over(k);
        return;
    }
}

static void connect_look_up(struct net_connect *k, const char *host)
{
    char service[8];
    (void)snprintf(service, sizeof(service), "%u", k->port);
    k->looking_up = uv_getaddrinfo(&k->p->uv, &k->look_up, connect_looked_up, host, service, &net_hints) == 0;
    if (!k->looking_up)
        connect_finish(k, OX_E_INVALID);
}

static void net_connect(struct ox_net *net, struct ox_op *op, const char *host, uint16_t port, struct ox_stream **ret)
{
    struct net_connect *k = ox_malloc(sizeof(*k));
    struct sockaddr_storage addr = {0};
    k->p = posix_of(net->loop);
    k->op = op;
    k->ret = ret;
    k->port = port;
    ox_list_push_back(&k->p->connects, &k->link);
    ox_timer_init(&k->limit, net->loop, connect_timed_out);
    ox_timer_start(&k->limit, NET_CONNECT_NS);
    ox_op_begin(op);
    op->cancel = connect_cancel;
    if (net_parse(host, port, &addr))
        connect_try(k, (struct sockaddr *)&addr);
    else
        connect_look_up(k, host);
    connect_free_if_over(k);
}

const struct ox_net_body posix_net_body = {
    .listen = net_listen, .unlisten = net_unlisten, .hold = net_hold, .connect = net_connect};
