// net.c - the simulated network: connections of two ends, pipes of chunks in flight, listeners, partitions.
#include "sim/sim_net.h"

#include <string.h>

#include "base/assert.h"
#include "io/outq.h"
#include "sim/sim_int.h"

#define NET_LINGER_NS OX_SEC
#define NET_CONNECT_NS (10 * OX_SEC)
#define NET_CHUNK_BYTES_MAX 65536u
#define NET_NOTICE_NS (3 * OX_SEC) // peers of a machine without power notice within this
#define NET_PORT_FIRST 40000u
#define NET_HELD_NS OX_MS // how often a connection that waits at a held listener looks again

enum chunk_kind { CHUNK_DATA, CHUNK_END, CHUNK_RESET };

struct net_chunk {
    struct ox_timer event;
    struct net_conn *conn;
    int side; // of the sender
    enum chunk_kind kind;
    size_t len, taken;
    struct ox_link link; // in the pipe, then in the receiver's queue
    uint8_t data[];
};

// One direction of a connection.
struct net_pipe {
    struct ox_list chunks; // in flight, in order
    uint64_t last_ns;      // when the last one arrives
    size_t bytes;          // in flight or not taken by the receiver
};

struct net_conn {
    struct ox_sim *sim;
    struct net_end *ends[2]; // NULL when freed
    struct ox_sim_node *nodes[2];
    struct net_pipe pipes[2]; // by the sender's side
    size_t window_bytes;
    struct ox_link link;
};

enum end_state { END_OPEN, END_CLOSING, END_ENDED };

struct net_end {
    struct ox_stream stream;
    struct net_conn *conn;
    int side;
    struct sim_process *process;
    enum end_state state;
    enum ox_err err; // for `closed`
    bool paused;
    struct ox_outq out;
    struct ox_list in; // arrived chunks
    struct ox_turn_hook turn;
    struct ox_timer linger, ended;
    struct ox_link link;
};

struct net_listener {
    struct ox_listener listener;
    struct sim_process *process;
    bool held;
    struct ox_link link;
};

struct net_connect {
    struct ox_timer event;
    struct sim_process *process;
    struct ox_op *op;
    struct ox_sim_node *to; // NULL: no such host
    uint16_t port;
    struct ox_stream **ret;
    uint64_t deadline_ns;
    struct ox_link link;
};

struct net_cut {
    struct ox_sim_node *a, *b;
    struct ox_link link;
};

struct sim_net_world {
    struct ox_sim *sim;
    struct ox_list conns, cuts;
    uint64_t delay_min_ns, delay_max_ns;
    uint16_t port_next;
};

static void end_free(struct net_end *e);
static void end_read(struct net_end *e);

struct sim_net_world *sim_net_new(struct ox_sim *sim)
{
    struct sim_net_world *w = ox_malloc(sizeof(*w));
    w->sim = sim;
    w->delay_min_ns = 50000;
    w->delay_max_ns = 500000;
    w->port_next = NET_PORT_FIRST;
    ox_list_init(&w->conns);
    ox_list_init(&w->cuts);
    return w;
}

static struct net_cut *net_find_cut(struct sim_net_world *w, const struct ox_sim_node *a, const struct ox_sim_node *b)
{
    OX_LIST_EACH(&w->cuts, link) {
        struct net_cut *cut = CONTAINER_OF(link, struct net_cut, link);
        if ((cut->a == a && cut->b == b) || (cut->a == b && cut->b == a))
            return cut;
    }
    return NULL;
}

static uint64_t net_delay(struct ox_sim *sim)
{
    uint64_t delay = sim_between(sim, sim->net->delay_min_ns, sim->net->delay_max_ns);
    return sim_chance(sim, sim->faults.net_slow) ? delay + sim_between(sim, 0, OX_SEC) : delay;
}

static struct net_conn *conn_new(struct ox_sim *sim, struct ox_sim_node *a, struct ox_sim_node *b)
{
    struct net_conn *c = ox_malloc(sizeof(*c));
    c->sim = sim;
    c->nodes[0] = a;
    c->nodes[1] = b;
    c->window_bytes = sim_between(sim, 8192, 262144);
    ox_list_init(&c->pipes[0].chunks);
    ox_list_init(&c->pipes[1].chunks);
    ox_list_push_back(&sim->net->conns, &c->link);
    return c;
}

static void conn_free_if_over(struct net_conn *c)
{
    if (c->ends[0] || c->ends[1] || !ox_list_empty(&c->pipes[0].chunks) || !ox_list_empty(&c->pipes[1].chunks))
        return;
    ox_list_remove(&c->sim->net->conns, &c->link);
    ox_free(c);
}

static void pipe_drop(struct net_pipe *pipe)
{
    for (struct ox_link *link; (link = ox_list_pop_front(&pipe->chunks));) {
        struct net_chunk *chunk = CONTAINER_OF(link, struct net_chunk, link);
        ox_timer_stop(&chunk->event);
        pipe->bytes -= chunk->len;
        ox_free(chunk);
    }
}

static void chunk_fired(struct ox_timer *timer);

// Gives a chunk its time of arrival, behind those before it.
static void chunk_send(struct net_chunk *chunk, uint64_t delay_ns)
{
    struct ox_sim *sim = chunk->conn->sim;
    struct net_pipe *pipe = &chunk->conn->pipes[chunk->side];
    pipe->last_ns = OX_MAX(pipe->last_ns, sim->now_ns + delay_ns);
    ox_timer_start(&chunk->event, pipe->last_ns - sim->now_ns);
}

static struct net_chunk *chunk_new(struct net_conn *c, int side, enum chunk_kind kind, size_t len)
{
    struct net_chunk *chunk = ox_malloc(sizeof(*chunk) + len);
    chunk->conn = c;
    chunk->side = side;
    chunk->kind = kind;
    chunk->len = len;
    ox_timer_init(&chunk->event, &c->sim->world, chunk_fired);
    ox_list_push_back(&c->pipes[side].chunks, &chunk->link);
    c->pipes[side].bytes += len;
    return chunk;
}

static void conn_send_mark(struct net_conn *c, int side, enum chunk_kind kind, uint64_t delay_ns)
{
    chunk_send(chunk_new(c, side, kind, 0), delay_ns);
}

static void end_fired(struct ox_timer *timer)
{
    struct net_end *e = CONTAINER_OF(timer, struct net_end, ended);
    if (e->stream.events)
        e->stream.events->closed(&e->stream, e->err);
    end_free(e);
}

// The end is over for its owner: `closed` comes with the next event.
static void end_finish(struct net_end *e, enum ox_err err)
{
    if (e->state == END_ENDED)
        return;
    e->state = END_ENDED;
    e->err = err;
    ox_outq_fini(&e->out);
    ox_timer_stop(&e->linger);
    ox_turn_end_cancel(e->stream.loop, &e->turn);
    ox_timer_start(&e->ended, 0);
}

static void end_drop_in(struct net_end *e)
{
    for (struct ox_link *link; (link = ox_list_pop_front(&e->in));) {
        struct net_chunk *chunk = CONTAINER_OF(link, struct net_chunk, link);
        e->conn->pipes[1 - e->side].bytes -= chunk->len - chunk->taken;
        ox_free(chunk);
    }
}

static void end_free(struct net_end *e)
{
    struct net_conn *c = e->conn;
    end_drop_in(e);
    ox_outq_fini(&e->out);
    ox_timer_stop(&e->linger);
    ox_timer_stop(&e->ended);
    ox_turn_end_cancel(e->stream.loop, &e->turn);
    ox_list_remove(&e->process->ends, &e->link);
    c->ends[e->side] = NULL;
    ox_free(e);
    conn_free_if_over(c);
}

// The connection ends for both sides at once.
static void conn_break(struct net_conn *c)
{
    for (int side = 0; side < 2; side++) {
        pipe_drop(&c->pipes[side]);
        if (c->ends[side])
            end_finish(c->ends[side], OX_E_DISCONNECTED);
    }
    conn_free_if_over(c);
}

static void chunk_arrive(struct net_chunk *chunk)
{
    struct net_conn *c = chunk->conn;
    struct net_end *e = c->ends[1 - chunk->side];
    ox_list_remove(&c->pipes[chunk->side].chunks, &chunk->link);
    sim_hash(c->sim, c->nodes[1 - chunk->side], "net", chunk->len);
    if (e && e->state == END_OPEN && chunk->kind != CHUNK_RESET) {
        ox_list_push_back(&e->in, &chunk->link);
        end_read(e);
        return;
    }
    c->pipes[chunk->side].bytes -= chunk->len;
    if (e && chunk->kind == CHUNK_RESET)
        end_finish(e, OX_E_DISCONNECTED);
    ox_free(chunk);
    conn_free_if_over(c);
}

static void chunk_fired(struct ox_timer *timer)
{
    struct net_chunk *chunk = CONTAINER_OF(timer, struct net_chunk, event);
    struct net_conn *c = chunk->conn;
    if (net_find_cut(c->sim->net, c->nodes[0], c->nodes[1]))
        return; // waits in the pipe until the partition heals
    if (sim_chance(c->sim, c->sim->faults.net_reset))
        conn_break(c);
    else
        chunk_arrive(chunk);
}

// Gives arrived bytes to the owner as long as it takes them.
static void end_read(struct net_end *e)
{
    struct net_pipe *pipe = &e->conn->pipes[1 - e->side];
    bool made_room = false;
    for (struct ox_link *link; e->stream.events && e->state == END_OPEN && !e->paused && (link = ox_list_first(&e->in));) {
        struct net_chunk *chunk = CONTAINER_OF(link, struct net_chunk, link);
        if (chunk->kind == CHUNK_END) {
            end_finish(e, OX_E_END_OF_FILE);
            return;
        }
        uint8_t *to;
        size_t n = 0;
        e->stream.events->space(&e->stream, &to, &n);
        if (n == 0) {
            e->paused = true;
            return;
        }
        n = OX_MIN(n, chunk->len - chunk->taken);
        memcpy(to, chunk->data + chunk->taken, n);
        chunk->taken += n;
        pipe->bytes -= n;
        made_room = true;
        if (chunk->taken == chunk->len) {
            ox_list_remove(&e->in, link);
            ox_free(chunk);
        }
        e->stream.events->filled(&e->stream, n);
    }
    struct net_end *peer = e->conn->ends[1 - e->side];
    if (made_room && peer && peer->out.bytes)
        ox_turn_end(peer->stream.loop, &peer->turn);
}

static void end_send_chunk(struct net_end *e, size_t n)
{
    struct net_chunk *chunk = chunk_new(e->conn, e->side, CHUNK_DATA, n);
    struct iovec iov[64];
    for (size_t filled = 0; filled < n;) {
        size_t taken = 0, parts = ox_outq_peek(&e->out, iov, OX_COUNT(iov));
        for (size_t i = 0; i < parts && filled < n; i++) {
            size_t k = OX_MIN(iov[i].iov_len, n - filled);
            memcpy(chunk->data + filled, iov[i].iov_base, k);
            filled += k;
            taken += k;
        }
        ox_outq_consume(&e->out, taken);
    }
    chunk_send(chunk, net_delay(e->conn->sim));
}

static size_t end_chunk_size(struct net_end *e, size_t max)
{
    struct ox_sim *sim = e->conn->sim;
    if (sim_chance(sim, sim->faults.net_chop))
        return (size_t)sim_between(sim, 1, OX_MIN(max, (size_t)40));
    return ox_random_below(&sim->random, 4) ? max : (size_t)sim_between(sim, 1, max);
}

// Moves what the owner has written into the pipe, as far as the window allows.
static void end_pump(struct net_end *e)
{
    struct net_pipe *pipe = &e->conn->pipes[e->side];
    while (e->out.bytes && pipe->bytes < e->conn->window_bytes) {
        size_t max = OX_MIN(OX_MIN(e->out.bytes, e->conn->window_bytes - pipe->bytes), NET_CHUNK_BYTES_MAX);
        end_send_chunk(e, end_chunk_size(e, max));
    }
    bool writable = ox_stream_drained(&e->stream, e->out.bytes);
    if (e->state == END_CLOSING && !e->out.bytes) {
        conn_send_mark(e->conn, e->side, CHUNK_END, net_delay(e->conn->sim));
        end_finish(e, OX_OK);
    } else if (writable && e->state == END_OPEN && e->stream.events) {
        e->stream.events->writable(&e->stream);
    }
}

static void end_turn(struct ox_turn_hook *hook)
{
    struct net_end *e = CONTAINER_OF(hook, struct net_end, turn);
    if (e->state != END_ENDED)
        end_pump(e);
    if (e->state == END_OPEN)
        end_read(e);
}

static struct net_end *end_of(struct ox_stream *s)
{
    return CONTAINER_OF(s, struct net_end, stream);
}

static void stream_write(struct ox_stream *s, const struct ox_buf *bufs, size_t n)
{
    struct net_end *e = end_of(s);
    if (e->state != END_OPEN || s->loop->dead)
        return;
    ox_outq_add(&e->out, bufs, n);
    ox_stream_queued(s, e->out.bytes);
    ox_turn_end(s->loop, &e->turn);
}

static void stream_pause(struct ox_stream *s)
{
    end_of(s)->paused = true;
}

static void stream_resume(struct ox_stream *s)
{
    struct net_end *e = end_of(s);
    e->paused = false;
    if (e->state == END_OPEN)
        ox_turn_end(s->loop, &e->turn);
}

static void stream_close(struct ox_stream *s)
{
    struct net_end *e = end_of(s);
    if (e->state != END_OPEN)
        return;
    e->state = END_CLOSING;
    ox_timer_start(&e->linger, NET_LINGER_NS);
    ox_turn_end(s->loop, &e->turn);
}

// What the peer sees of an end that is gone: the end of the stream behind what was sent, or a reset.
static void end_cut_peer(struct net_end *e, uint64_t delay_ns)
{
    bool reset = ox_random_below(&e->conn->sim->random, 2);
    if (reset)
        pipe_drop(&e->conn->pipes[e->side]);
    conn_send_mark(e->conn, e->side, reset ? CHUNK_RESET : CHUNK_END, delay_ns);
}

static void stream_abort(struct ox_stream *s, enum ox_err err)
{
    struct net_end *e = end_of(s);
    if (e->state == END_ENDED)
        return;
    end_cut_peer(e, net_delay(e->conn->sim));
    end_finish(e, err);
}

static bool stream_peer_ended(struct ox_stream *s)
{
    struct net_end *e = end_of(s);
    struct ox_link *last = ox_list_last(&e->in);
    return e->state != END_OPEN || (last && CONTAINER_OF(last, struct net_chunk, link)->kind == CHUNK_END);
}

static void end_lingered(struct ox_timer *timer)
{
    struct net_end *e = CONTAINER_OF(timer, struct net_end, linger);
    stream_abort(&e->stream, OX_OK);
}

static const struct ox_stream_body net_stream_body = {.write = stream_write,
                                                      .pause = stream_pause,
                                                      .resume = stream_resume,
                                                      .close = stream_close,
                                                      .abort = stream_abort,
                                                      .peer_ended = stream_peer_ended};

static struct net_end *end_new(struct net_conn *c, int side, struct sim_process *p)
{
    struct net_end *e = ox_malloc(sizeof(*e));
    ox_stream_init(&e->stream, &net_stream_body, &p->loop);
    e->conn = c;
    e->side = side;
    e->process = p;
    e->turn.run = end_turn;
    ox_list_init(&e->in);
    ox_timer_init(&e->linger, &c->sim->world, end_lingered);
    ox_timer_init(&e->ended, &c->sim->world, end_fired);
    ox_list_push_back(&p->ends, &e->link);
    c->ends[side] = e;
    OX_CLEANUP(ox_free_ptr)
    char *peer = ox_asprintf("%s:%u", c->nodes[1 - side]->name, 1024 + c->nodes[1 - side]->id);
    strncpy(e->stream.peer, peer, sizeof(e->stream.peer) - 1);
    ox_turn_end(&p->loop, &e->turn);
    return e;
}

static struct net_listener *net_find_listener(struct sim_process *p, uint16_t port)
{
    OX_LIST_EACH(&p->listeners, link) {
        struct net_listener *l = CONTAINER_OF(link, struct net_listener, link);
        if (l->listener.port == port)
            return l;
    }
    return NULL;
}

static enum ox_err net_listen(struct ox_net *net, const char *host, uint16_t port, struct ox_listener **ret)
{
    struct sim_process *p = sim_process_of(net->loop);
    if (!*host)
        return OX_E_INVALID;
    if (port && net_find_listener(p, port))
        return OX_E_ADDRESS_IN_USE;
    struct net_listener *l = ox_malloc(sizeof(*l));
    l->listener = (struct ox_listener){.net = net, .port = port ? port : p->sim->net->port_next++};
    l->process = p;
    ox_list_push_back(&p->listeners, &l->link);
    *ret = &l->listener;
    return OX_OK;
}

static void net_unlisten(struct ox_listener *listener)
{
    struct net_listener *l = CONTAINER_OF(listener, struct net_listener, listener);
    ox_list_remove(&l->process->listeners, &l->link);
    ox_free(l);
}

static void net_hold(struct ox_listener *listener, bool on)
{
    CONTAINER_OF(listener, struct net_listener, listener)->held = on;
}

static struct ox_sim_node *net_resolve(struct sim_process *p, const char *host)
{
    static const char *const own[] = {"127.0.0.1", "localhost", "0.0.0.0", "::1"};
    for (size_t i = 0; i < OX_COUNT(own); i++) {
        if (strcmp(host, own[i]) == 0)
            return p->node;
    }
    OX_LIST_EACH(&p->sim->nodes, link) {
        struct ox_sim_node *node = CONTAINER_OF(link, struct ox_sim_node, link);
        if (strcmp(node->name, host) == 0)
            return node;
    }
    return NULL;
}

static void connect_end(struct net_connect *k, enum ox_err err)
{
    struct ox_op *op = k->op;
    ox_timer_stop(&k->event);
    ox_list_remove(&k->process->connects, &k->link);
    ox_free(k);
    ox_op_finish(op, err);
}

static void connect_accepted(struct net_connect *k, struct net_listener *l)
{
    struct ox_sim *sim = k->process->sim;
    struct net_conn *c = conn_new(sim, k->process->node, k->to);
    struct net_end *client = end_new(c, 0, k->process), *server = end_new(c, 1, l->process);
    sim_hash(sim, k->to, "connect", k->port);
    *k->ret = &client->stream;
    connect_end(k, OX_OK); // before accept, which may crash this very process
    l->listener.accept(&l->listener, &server->stream);
}

static void connect_fired(struct ox_timer *timer)
{
    struct net_connect *k = CONTAINER_OF(timer, struct net_connect, event);
    struct ox_sim *sim = k->process->sim;
    if (!k->to) {
        connect_end(k, OX_E_INVALID);
        return;
    }
    if (net_find_cut(sim->net, k->process->node, k->to) || !k->to->powered) {
        if (sim->now_ns >= k->deadline_ns)
            connect_end(k, OX_E_TIMEOUT);
        else
            ox_timer_start(timer, k->deadline_ns - sim->now_ns);
        return;
    }
    struct sim_process *p = k->to->process;
    struct net_listener *l = p->loop.dead ? NULL : net_find_listener(p, k->port);
    if (!l || !l->listener.accept || sim_chance(sim, sim->faults.net_refuse))
        connect_end(k, OX_E_CONNECTION_REFUSED);
    else if (l->held && sim->now_ns < k->deadline_ns)
        ox_timer_start(timer, NET_HELD_NS);
    else
        connect_accepted(k, l);
}

static void connect_cancel(struct ox_op *op)
{
    OX_LIST_EACH(&sim_process_of(op->loop)->connects, link) {
        struct net_connect *k = CONTAINER_OF(link, struct net_connect, link);
        if (k->op != op)
            continue;
        connect_end(k, OX_E_CANCELED);
        return;
    }
}

static void net_connect(struct ox_net *net, struct ox_op *op, const char *host, uint16_t port, struct ox_stream **ret)
{
    struct sim_process *p = sim_process_of(net->loop);
    struct net_connect *k = ox_malloc(sizeof(*k));
    k->process = p;
    k->op = op;
    k->to = net_resolve(p, host);
    k->port = port;
    k->ret = ret;
    k->deadline_ns = p->sim->now_ns + NET_CONNECT_NS;
    ox_op_begin(op);
    op->cancel = connect_cancel;
    ox_timer_init(&k->event, &p->sim->world, connect_fired);
    ox_timer_start(&k->event, net_delay(p->sim));
    ox_list_push_back(&p->connects, &k->link);
}

const struct ox_net_body sim_net_body = {
    .listen = net_listen, .unlisten = net_unlisten, .hold = net_hold, .connect = net_connect};

void sim_net_crash(struct sim_process *p, enum ox_sim_crash how)
{
    OX_LIST_EACH(&p->ends, link) {
        struct net_end *e = CONTAINER_OF(link, struct net_end, link);
        if (e->state != END_ENDED)
            end_cut_peer(e, how == OX_SIM_CRASH_MACHINE ? sim_between(p->sim, 0, NET_NOTICE_NS) : net_delay(p->sim));
        end_finish(e, OX_E_SHUTDOWN);
    }
    for (struct ox_link *link; (link = ox_list_first(&p->connects));)
        connect_end(CONTAINER_OF(link, struct net_connect, link), OX_E_SHUTDOWN);
}

void sim_net_free(struct sim_net_world *w)
{
    OX_LIST_EACH(&w->conns, link) {
        struct net_conn *c = CONTAINER_OF(link, struct net_conn, link);
        struct net_end *ends[2] = {c->ends[0], c->ends[1]};
        pipe_drop(&c->pipes[0]);
        pipe_drop(&c->pipes[1]);
        if (ends[0])
            end_free(ends[0]);
        if (ends[1])
            end_free(ends[1]);
        if (!ends[0] && !ends[1])
            conn_free_if_over(c);
    }
    OX_LIST_EACH(&w->cuts, link)
        ox_free(CONTAINER_OF(link, struct net_cut, link));
    ox_free(w);
}

// Held chunks go on, in order; so do all others of the connection.
static void conn_go_on(struct net_conn *c)
{
    for (int side = 0; side < 2; side++) {
        c->pipes[side].last_ns = 0;
        OX_LIST_EACH(&c->pipes[side].chunks, link)
            chunk_send(CONTAINER_OF(link, struct net_chunk, link), net_delay(c->sim));
    }
}

static void cut_mend(struct sim_net_world *w, struct net_cut *cut)
{
    struct ox_sim_node *a = cut->a, *b = cut->b;
    ox_list_remove(&w->cuts, &cut->link);
    ox_free(cut);
    OX_LIST_EACH(&w->conns, link) {
        struct net_conn *c = CONTAINER_OF(link, struct net_conn, link);
        if ((c->nodes[0] == a && c->nodes[1] == b) || (c->nodes[0] == b && c->nodes[1] == a))
            conn_go_on(c);
    }
}

void ox_sim_net_partition(struct ox_sim_node *a, struct ox_sim_node *b, bool cut)
{
    struct sim_net_world *w = a->sim->net;
    struct net_cut *old = net_find_cut(w, a, b);
    OX_ASSERT(a != b);
    sim_hash(a->sim, a, cut ? "cut" : "mend", b->id);
    if (old && !cut)
        cut_mend(w, old);
    if (old || !cut)
        return;
    struct net_cut *fresh = ox_malloc(sizeof(*fresh));
    fresh->a = a;
    fresh->b = b;
    ox_list_push_back(&w->cuts, &fresh->link);
}

void ox_sim_net_heal(struct ox_sim *sim)
{
    for (struct ox_link *link; (link = ox_list_first(&sim->net->cuts));)
        cut_mend(sim->net, CONTAINER_OF(link, struct net_cut, link));
}

void ox_sim_net_reset(struct ox_sim_node *a, struct ox_sim_node *b)
{
    OX_LIST_EACH(&a->sim->net->conns, link) {
        struct net_conn *c = CONTAINER_OF(link, struct net_conn, link);
        if ((c->nodes[0] == a && (!b || c->nodes[1] == b)) || (c->nodes[1] == a && (!b || c->nodes[0] == b)))
            conn_break(c);
    }
}

void ox_sim_net_set_delay(struct ox_sim *sim, uint64_t min_ns, uint64_t max_ns)
{
    OX_ASSERT(min_ns <= max_ns);
    sim->net->delay_min_ns = min_ns;
    sim->net->delay_max_ns = max_ns;
}
