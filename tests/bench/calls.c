// calls.c - HTTP requests at a fixed rate, or one after another, over some connections: how long each takes, and what was answered.
//
// oxbow-bench-calls PORT CONNECTIONS RATE COUNT < CALLS: each line of CALLS is "METHOD PATH [BODY]"; they are sent in order, again from the start after the last one, COUNT in all.
// RATE is a second's, over all connections; a request is due at its time and its latency counts from then. RATE 0: each connection sends as soon as it has its answer.
// Prints a line of JSON: seconds, latencies in milliseconds, how often each status came.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/hist.h"
#include "base/mem.h"
#include "base/str.h"

#define READ_BYTES 65536u
#define STATUS_MAX 600

struct call {
    char *bytes;
    size_t len;
};

struct connection {
    int fd;
    bool busy;
    uint64_t due_ns;
    struct ox_str got; // of the answer's head
    bool in_body;
    uint64_t body_left;
};

struct bench {
    struct call *calls;
    size_t call_count, next_call;
    struct connection *connections;
    size_t connection_count;
    double rate;
    uint64_t count, sent, answered, start_ns;
    struct ox_hist latency; // microseconds
    uint64_t statuses[STATUS_MAX];
    int poll;
};

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "oxbow-bench-calls: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void call_add(struct bench *b, char *line)
{
    struct ox_str text = {0};
    char *path = strchr(line, ' '), *body = path ? strchr(path + 1, ' ') : NULL;
    if (!path)
        return;
    *path++ = 0;
    if (body)
        *body++ = 0;
    ox_str_addf(&text, "%s %s HTTP/1.1\r\nHost: bench\r\n", line, path);
    if (body || strcmp(line, "GET") != 0)
        ox_str_addf(&text, "Content-Type: application/json\r\nContent-Length: %zu\r\n", body ? strlen(body) : 0);
    ox_str_addf(&text, "\r\n%s", body ? body : "");
    b->calls = ox_realloc(b->calls, b->call_count + 1, sizeof *b->calls);
    b->calls[b->call_count].len = text.len;
    b->calls[b->call_count++].bytes = ox_str_take(&text);
}

static void calls_read(struct bench *b)
{
    char *line = NULL;
    size_t cap = 0;
    for (ssize_t len; (len = getline(&line, &cap, stdin)) > 0;) {
        line[strcspn(line, "\r\n")] = 0;
        call_add(b, line);
    }
    free(line);
}

static void connection_open(struct bench *b, struct connection *c, uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int one = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, sizeof address) != 0)
        fail("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = c}};
    if (epoll_ctl(b->poll, EPOLL_CTL_ADD, c->fd, &event) != 0)
        fail("epoll_ctl");
}

static uint64_t due_ns(const struct bench *b)
{
    return b->rate > 0 ? b->start_ns + (uint64_t)((double)b->sent * 1e9 / b->rate) : now_ns();
}

static void connection_send(struct bench *b, struct connection *c)
{
    const struct call *call = &b->calls[b->next_call++ % b->call_count];
    c->due_ns = due_ns(b);
    c->busy = true;
    b->sent++;
    for (size_t at = 0; at < call->len;) {
        ssize_t n = write(c->fd, call->bytes + at, call->len - at);
        if (n < 0)
            fail("write");
        at += (size_t)n;
    }
}

static void connection_answered(struct bench *b, struct connection *c)
{
    unsigned long status = strtoul(ox_str_get(&c->got) + 9, NULL, 10);
    b->statuses[OX_MIN(status, STATUS_MAX - 1)]++;
    ox_hist_add(&b->latency, (now_ns() - c->due_ns) / 1000);
    b->answered++;
    c->busy = c->in_body = false;
    ox_str_truncate(&c->got, 0);
}

// One answer at a time is on its way: what comes is a head, then its body.
static void connection_take(struct bench *b, struct connection *c, const char *data, size_t len)
{
    if (!c->in_body) {
        ox_str_add(&c->got, data, len);
        const char *end = strstr(ox_str_get(&c->got), "\r\n\r\n"),
                   *length = strcasestr(ox_str_get(&c->got), "\r\nContent-Length:");
        if (!end)
            return;
        c->in_body = true;
        c->body_left = length && length < end ? strtoull(length + 17, NULL, 10) : 0;
        len = c->got.len - (size_t)(end + 4 - c->got.data);
    }
    c->body_left -= OX_MIN((uint64_t)len, c->body_left);
    if (c->body_left == 0)
        connection_answered(b, c);
}

static void connection_read(struct bench *b, struct connection *c)
{
    static char space[READ_BYTES];
    ssize_t n = read(c->fd, space, sizeof space);
    if (n <= 0)
        fail("the server has closed a connection");
    connection_take(b, c, space, (size_t)n);
}

// Sends what is due; returns how long to wait for the next one, in milliseconds.
static int send_due(struct bench *b)
{
    for (size_t i = 0; i < b->connection_count && b->sent < b->count; i++) {
        struct connection *c = &b->connections[i];
        uint64_t due = due_ns(b), now = now_ns();
        if (due > now)
            return (int)((due - now) / 1000000 + 1);
        if (!c->busy)
            connection_send(b, c);
    }
    return 1000;
}

static void run(struct bench *b)
{
    struct epoll_event events[64];
    b->start_ns = now_ns();
    while (b->answered < b->count) {
        int n = epoll_wait(b->poll, events, 64, send_due(b));
        for (int i = 0; i < n; i++)
            connection_read(b, (struct connection *)events[i].data.ptr);
    }
}

static void report(const struct bench *b)
{
    const char *between = "";
    printf("{\"seconds\":%.4f,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f,\"statuses\":{",
           (double)(now_ns() - b->start_ns) / 1e9, (double)ox_hist_quantile(&b->latency, 0.5) / 1e3,
           (double)ox_hist_quantile(&b->latency, 0.99) / 1e3, (double)b->latency.max / 1e3);
    for (int status = 0; status < STATUS_MAX; status++) {
        if (b->statuses[status])
            printf("%s\"%d\":%llu", between, status, (unsigned long long)b->statuses[status]);
        between = b->statuses[status] ? "," : between;
    }
    printf("}}\n");
}

int main(int argc, char **argv)
{
    struct bench b = {.poll = epoll_create1(EPOLL_CLOEXEC)};
    if (argc != 5) {
        fputs("usage: oxbow-bench-calls PORT CONNECTIONS RATE COUNT < CALLS\n", stderr);
        return 2;
    }
    uint16_t port = (uint16_t)strtoul(argv[1], NULL, 10);
    b.connection_count = strtoul(argv[2], NULL, 10);
    b.rate = strtod(argv[3], NULL);
    b.count = strtoull(argv[4], NULL, 10);
    b.connections = ox_calloc(b.connection_count, sizeof *b.connections);
    calls_read(&b);
    if (!b.call_count || !b.connection_count) {
        fputs("oxbow-bench-calls: there is nothing to call\n", stderr);
        return 2;
    }
    for (size_t i = 0; i < b.connection_count; i++)
        connection_open(&b, &b.connections[i], port);
    run(&b);
    report(&b);
    for (size_t i = 0; i < b.connection_count; i++) {
        close(b.connections[i].fd);
        ox_str_fini(&b.connections[i].got);
    }
    for (size_t i = 0; i < b.call_count; i++)
        ox_free(b.calls[i].bytes);
    ox_free(b.connections);
    ox_free(b.calls);
    close(b.poll);
    return 0;
}
