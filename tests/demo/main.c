// main.c - oxbow-demo: a broker's storage moves to another bookie cluster and back while messages flow; every message is counted.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "demo.h"
#include "io/posix/posix.h"

#define POLL_NS (100 * OX_MS)
#define READY_NS (20 * OX_SEC)
#define STAGE_NS (60 * OX_SEC) // a stage that takes longer has failed
#define DRAIN_NS (30 * OX_SEC)

struct demo {
    struct ox_loop *loop;
    struct ox_net *net;
    struct demo_broker broker;
    struct demo_load *load;
    struct demo_show show;
    struct ox_seq seq;
    struct ox_timer pause, picture;
    struct rest_call rest, look; // look: the picture's own
    json_t *status;              // as last seen
    uint64_t began_ns, limit_ns;
    ox_step_fn then;
    bool done, interrupted;
    struct ox_str failure;
};

static struct demo *demo_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct demo, seq);
}

static ox_step demo_fail(struct ox_seq *s, const char *what, const char *why)
{
    struct demo *d = demo_of(s);
    ox_str_addf(&d->failure, "%s: %s", what, why);
    return OX_FINISH(s, OX_E_IO);
}

static void demo_paused(struct ox_timer *t)
{
    ox_seq_resume(&CONTAINER_OF(t, struct demo, pause)->seq, OX_OK);
}

static void demo_sleep(struct demo *d, uint64_t ns)
{
    ox_timer_start(&d->pause, ns);
}

static void demo_chapter(struct demo *d, const char *what)
{
    show_chapter(&d->show, ox_now_ns(d->loop), d->began_ns, what);
}

static void demo_ask(struct ox_seq *s, const char *method, const char *path, const char *body)
{
    struct demo *d = demo_of(s);
    ox_seq_bind(s, &d->rest.op, path);
    rest_ask(d->net, &d->rest, d->broker.web_port, method, path, body);
}

// True if an order was taken; else says what the broker answered.
static bool demo_taken(struct ox_seq *s, const char *what)
{
    struct demo *d = demo_of(s);
    if (s->err == OX_OK && d->rest.status / 100 == 2)
        return true;
    const char *reason = json_string_value(json_object_get(d->rest.answer, "reason"));
    ox_str_addf(&d->failure, "%s: %s", what, reason ? reason : ox_err_text(s->err));
    return false;
}

// ---- the picture, beside what is being done

static void picture_seen(struct ox_op *op)
{
    struct demo *d = CONTAINER_OF(op, struct demo, look.op);
    if (op->err == OX_OK && d->look.status == 200) {
        json_decref(d->status);
        d->status = json_incref(d->look.answer);
    }
}

static void picture_draw(struct ox_timer *t)
{
    struct demo *d = CONTAINER_OF(t, struct demo, picture);
    struct demo_counts c;
    load_count(d->load, &c);
    show_draw(&d->show, ox_now_ns(d->loop), d->began_ns, &c, d->status);
    ox_timer_start(t, POLL_NS);
    if (ox_op_pending(&d->look.op))
        return;
    ox_op_init(&d->look.op, d->loop, picture_seen, "demo.look");
    rest_ask(d->net, &d->look, d->broker.web_port, "GET", "status", NULL);
}

// ---- the story, step by step

static ox_step demo_ready(struct ox_seq *s);
static ox_step demo_flows(struct ox_seq *s);
static ox_step demo_register(struct ox_seq *s);
static ox_step demo_switch(struct ox_seq *s);
static ox_step demo_switched(struct ox_seq *s);
static ox_step demo_look(struct ox_seq *s);
static ox_step demo_looked(struct ox_seq *s);
static ox_step demo_rest(struct ox_seq *s);
static ox_step demo_throttle(struct ox_seq *s);
static ox_step demo_move(struct ox_seq *s);
static ox_step demo_moving(struct ox_seq *s);
static ox_step demo_back(struct ox_seq *s);
static ox_step demo_going_back(struct ox_seq *s);
static ox_step demo_last(struct ox_seq *s);
static ox_step demo_drain(struct ox_seq *s);

static ox_step demo_ready(struct ox_seq *s)
{
    struct demo *d = demo_of(s);
    bool gone;
    char url[64];
    if (broker_is_ready(&d->broker, &gone)) {
        snprintf(url, sizeof url, "pulsar://127.0.0.1:%u", d->broker.port);
        d->load = load_start(d->loop, d->net, url);
        demo_chapter(d, "a broker with its embedded store; 4 topics, 2,000 messages a second of 1 KiB, each counted");
        ox_timer_start(&d->picture, POLL_NS);
        return OX_GOTO(s, demo_flows);
    }
    if (gone || ox_now_ns(d->loop) - d->began_ns > READY_NS) {
        broker_print_log(&d->broker);
        return demo_fail(s, d->broker.binary, "the broker did not start");
    }
    demo_sleep(d, 20 * OX_MS);
    return OX_WAIT(s, demo_ready);
}

static ox_step demo_flows(struct ox_seq *s)
{
    struct demo *d = demo_of(s);
    if (*load_trouble(d->load))
        return demo_fail(s, "clients", load_trouble(d->load));
    bool flows = load_flows(d->load);
    demo_sleep(d, flows ? 4 * OX_SEC : 20 * OX_MS);
    return flows ? OX_WAIT(s, demo_register) : OX_WAIT(s, demo_flows);
}

static ox_step demo_register(struct ox_seq *s)
{
    struct demo *d = demo_of(s);
    char body[160];
    demo_chapter(d, "a second bookie cluster is registered: two");
    snprintf(body, sizeof body, "{\"metadataServiceUri\": \"embedded:%s/two\"}", d->broker.folder);
    demo_ask(s, "POST", "two", body);
    return OX_WAIT(s, demo_switch);
}

static ox_step demo_switch(struct ox_seq *s)
{
    struct demo *d = demo_of(s);
    if (!demo_taken(s, "register two"))
        return OX_FINISH(s, OX_E_IO);
    demo_chapter(d, "switch to two: new data and all cursors go there, at once");
    demo_ask(s, "POST", "switch", "{\"target\": \"two\"}");
    return OX_WAIT(s, demo_switched);
}

// Follows the present switch to its end, then goes on with `then`.
static ox_step demo_follow(struct ox_seq *s, ox_step_fn then)
{
    struct demo *d = demo_of(s);
    d->then = then;
    d->limit_ns = ox_now_ns(d->loop) + STAGE_NS;
    return OX_GOTO(s, demo_look);
}

static ox_step demo_switched(struct ox_seq *s)
{
    if (!demo_taken(s, "switch to two"))
        return OX_FINISH(s, OX_E_IO);
    return demo_follow(s, demo_rest);
}

static ox_step demo_look(struct ox_seq *s)
{
    demo_ask(s, "GET", "status", NULL);
    return OX_WAIT(s, demo_looked);
}

static ox_step demo_looked(struct ox_seq *s)
{
    struct demo *d = demo_of(s);
    if (!demo_taken(s, "status"))
        return OX_FINISH(s, OX_E_IO);
    const char *state = json_string_value(json_object_get(json_object_get(d->rest.answer, "switch"), "state"));
    if (state && strcmp(state, "DONE") == 0)
        return ox_seq_goto(s, d->then, "then", OX_STEP_NEXT);
    if (!state || strcmp(state, "RUNNING") != 0 || ox_now_ns(d->loop) > d->limit_ns)
        return demo_fail(s, "the switch does not end well", state ? state : "no state");
    demo_sleep(d, POLL_NS);
    return OX_WAIT(s, demo_look);
}

static ox_step demo_rest(struct ox_seq *s)
{
    struct demo *d = demo_of(s);
    demo_chapter(d, "done: new data is in two, older data is read where it is");
    demo_sleep(d, 3 * OX_SEC);
    return OX_WAIT(s, demo_throttle);
}

// So slow that it can be watched: five seconds.
static ox_step demo_throttle(struct ox_seq *s)
{
    struct demo *d = demo_of(s);
    struct demo_counts c;
    char body[64];
    load_count(d->load, &c);
    snprintf(body, sizeof body, "{\"bytesPerSecond\": %llu}", (unsigned long long)(c.bytes / 8 + 1));
    demo_ask(s, "PUT", "throttle", body);
    return OX_WAIT(s, demo_move);
}

static ox_step demo_move(struct ox_seq *s)
{
    if (!demo_taken(s, "throttle"))
        return OX_FINISH(s, OX_E_IO);
    demo_chapter(demo_of(s), "move-data: older data is copied to two, verified, and read there from then on");
    demo_ask(s, "POST", "move-data", "{\"target\": \"two\"}");
    return OX_WAIT(s, demo_moving);
}

static ox_step demo_moving(struct ox_seq *s)
{
    if (!demo_taken(s, "move-data"))
        return OX_FINISH(s, OX_E_IO);
    return demo_follow(s, demo_back);
}

static ox_step demo_back(struct ox_seq *s)
{
    demo_chapter(demo_of(s), "done: nothing needs the first bookie cluster any more; now back again");
    demo_ask(s, "POST", "rollback", NULL);
    return OX_WAIT(s, demo_going_back);
}

static ox_step demo_going_back(struct ox_seq *s)
{
    if (!demo_taken(s, "rollback"))
        return OX_FINISH(s, OX_E_IO);
    return demo_follow(s, demo_last);
}

static ox_step demo_last(struct ox_seq *s)
{
    demo_chapter(demo_of(s), "back in the first one");
    demo_sleep(demo_of(s), 3 * OX_SEC);
    return OX_WAIT(s, demo_drain);
}

static ox_step demo_drain(struct ox_seq *s)
{
    struct demo *d = demo_of(s);
    static const char *const late = "acknowledged messages have not come";
    if (d->then != demo_drain) {
        d->then = demo_drain;
        d->limit_ns = ox_now_ns(d->loop) + DRAIN_NS;
        load_finish(d->load);
    }
    if (*load_trouble(d->load))
        return demo_fail(s, "clients", load_trouble(d->load));
    if (load_is_over(d->load))
        return OX_FINISH(s, OX_OK);
    if (ox_now_ns(d->loop) > d->limit_ns)
        return demo_fail(s, "the end", late);
    demo_sleep(d, 20 * OX_MS);
    return OX_WAIT(s, demo_drain);
}

static void demo_over(struct ox_seq *s, enum ox_err err)
{
    struct demo *d = demo_of(s);
    d->done = err == OX_OK;
    ox_posix_stop(d->loop);
}

// ---- the program

static void demo_signal(void *ctx, int signo)
{
    struct demo *d = (struct demo *)ctx;
    (void)signo;
    d->interrupted = true;
    ox_posix_stop(d->loop);
}

static int demo_report(struct demo *d)
{
    struct demo_counts c = {0};
    if (d->load)
        load_count(d->load, &c);
    bool good = d->done && c.lost == 0 && c.missing == 0 && c.doubled == 0 && c.failed == 0 && c.acked > 0;
    if (d->interrupted)
        printf("\ninterrupted\n");
    else if (!d->done)
        fprintf(stderr, "\noxbow-demo: %s\n", ox_str_get(&d->failure));
    else
        printf("\n%s: %llu messages sent, %llu acknowledged, %llu received, %llu lost, %llu doubled, %llu refused; "
               "longest pause of a producer %.0f ms\n",
               good ? "good" : "BAD", (unsigned long long)c.sent, (unsigned long long)c.acked,
               (unsigned long long)c.received, (unsigned long long)(c.lost + c.missing), (unsigned long long)c.doubled,
               (unsigned long long)c.failed, (double)c.pause_ns / 1e6);
    return d->interrupted ? 130 : good ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void demo_run(struct demo *d)
{
    d->net = ox_posix_net(d->loop);
    d->began_ns = ox_now_ns(d->loop);
    ox_posix_on_signal(d->loop, demo_signal, d);
    ox_timer_init(&d->pause, d->loop, demo_paused);
    ox_timer_init(&d->picture, d->loop, picture_draw);
    ox_op_init(&d->look.op, d->loop, picture_seen, "demo.look");
    show_init(&d->show);
    ox_seq_start(&d->seq, d->loop, "demo", demo_ready, demo_over);
    ox_posix_run(d->loop);
}

int main(int argc, char **argv)
{
    struct ox_log log;
    struct demo d = {0};
    if (argc > 1) {
        printf("usage: oxbow-demo\n  A broker's storage moves to another bookie cluster and back while messages flow; "
               "exit status 1 if one is lost or doubled.\n");
        return strcmp(argv[1], "--help") == 0 ? 0 : 2;
    }
    if (!broker_start(&d.broker, argv[0])) {
        broker_end(&d.broker);
        return EXIT_FAILURE;
    }
    ox_posix_log_init(&log, OX_LOG_ERROR);
    d.loop = ox_posix_loop_new(&log);
    demo_run(&d);
    int status = demo_report(&d);
    if (!broker_end(&d.broker) && status == EXIT_SUCCESS) {
        fprintf(stderr, "oxbow-demo: the broker did not end cleanly\n");
        status = EXIT_FAILURE;
    }
    fflush(stdout);
    _exit(status); // clients and loop are not taken down: the broker is gone
}
