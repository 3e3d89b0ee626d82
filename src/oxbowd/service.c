// service.c - messages to the service manager.
#include "oxbowd/service.h"

#include "base/mem.h"

#define SEND_AGAIN_NS (250 * OX_MS)
#define SEND_TRIES 240u  // a minute: it is gone then
#define WATCHDOG_PARTS 3 // signs of life within the time after which the service counts as stuck

static void service_alive(struct ox_timer *t)
{
    struct service *s = CONTAINER_OF(t, struct service, watchdog);
    (void)ox_posix_notify(s->manager, "WATCHDOG=1");
    ox_timer_start(t, s->watchdog_ns);
}

// Its socket holds few messages, and at a machine's start many services write to it.
static void service_send(struct ox_timer *t)
{
    struct service *s = CONTAINER_OF(t, struct service, again);
    if (ox_posix_notify(s->manager, ox_str_get(&s->unsent)) || ++s->tries == SEND_TRIES)
        ox_timer_stop(t);
    else
        ox_timer_start(t, SEND_AGAIN_NS);
}

void service_start(struct service *s, struct ox_loop *loop)
{
    s->loop = loop;
    s->manager = ox_posix_notify_new();
    s->watchdog_ns = s->manager ? ox_posix_watchdog_ns() / WATCHDOG_PARTS : 0;
    ox_timer_init(&s->watchdog, loop, service_alive);
    ox_timer_init(&s->again, loop, service_send);
    if (s->watchdog_ns)
        ox_timer_start(&s->watchdog, 0);
}

static void service_say(struct service *s, struct ox_str *give_lines)
{
    ox_str_fini(&s->unsent);
    s->unsent = *give_lines;
    s->tries = 0;
    if (s->manager)
        service_send(&s->again);
}

void service_ready(struct service *s, const char *status)
{
    struct ox_str lines = {0};
    ox_str_addf(&lines, "READY=1\nSTATUS=%s", status);
    service_say(s, &lines);
}

void service_reloading(struct service *s)
{
    struct ox_str lines = {0};
    ox_str_addf(&lines, "RELOADING=1\nMONOTONIC_USEC=%llu\nSTATUS=reading the settings again",
                (unsigned long long)(ox_now_ns(s->loop) / 1000));
    service_say(s, &lines);
}

void service_stopping(struct service *s, uint64_t within_ms)
{
    struct ox_str lines = {0};
    ox_str_addf(&lines, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%llu\nSTATUS=closing topics and stores",
                (unsigned long long)within_ms * 1000);
    service_say(s, &lines);
}

void service_fini(struct service *s)
{
    ox_timer_stop(&s->watchdog);
    ox_timer_stop(&s->again);
    ox_str_fini(&s->unsent);
    ox_posix_notify_free(s->manager);
    s->manager = NULL;
}
