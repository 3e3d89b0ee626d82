// session.c - the loop and the client around produce and consume.
#include <stdio.h>

#include "base/mem.h"
#include "oxbowctl/ctl.h"

void ctl_session_fail(struct ctl_session *s, const char *what, enum ox_err err, const char *text)
{
    const char *url = s->ctl->service_url;
    if (err == OX_E_CONNECTION_REFUSED || err == OX_E_DISCONNECTED)
        ctl_fail("%s: no broker answers at %s: is it running? (--service-url names another one)", what, url);
    else
        ctl_fail("%s: %s", what, *text ? text : ox_err_text(err)); // the broker's words hold the error's
}

static void session_closed(struct ox_op *op)
{
    ox_posix_stop(CONTAINER_OF(op, struct ctl_session, close)->loop);
}

void ctl_session_end(struct ctl_session *s, int status)
{
    OX_ASSERT(!s->ending);
    s->ending = true;
    s->status = status;
    ox_op_init(&s->close, s->loop, session_closed, "ctl.close");
    ox_client_close(s->client, &s->close);
}

// The first question has no answer: what is wrong may be what was asked.
static void session_unanswered(struct ctl_session *s, enum ox_err err, const char *text)
{
    if (err == OX_E_INVALID && !*text)
        ctl_fail("%s: the host of %s cannot be found: is --service-url right?", s->topic, s->ctl->service_url);
    else if ((err == OX_E_MALFORMED || err == OX_E_TOO_BIG) && !*text)
        ctl_fail("%s: what answers at %s is no Pulsar broker: is it the port for clients? (--service-url)", s->topic,
                 s->ctl->service_url);
    else
        ctl_session_fail(s, s->topic, err, text);
}

static void session_checked(struct ox_op *op)
{
    struct ox_client_call *call = CONTAINER_OF(op, struct ox_client_call, op);
    struct ox_client_partitions *ask = CONTAINER_OF(call, struct ox_client_partitions, call);
    struct ctl_session *s = CONTAINER_OF(ask, struct ctl_session, partitions);
    if (op->err != OX_OK) {
        session_unanswered(s, op->err, call->text);
        ctl_session_end(s, CTL_FAILED);
    } else {
        s->part_count = ask->count ? ask->count : 1;
        s->start(s);
    }
}

char *ctl_session_part(const struct ctl_session *s, const char *topic, uint32_t index)
{
    return s->partitions.count ? ox_asprintf("%s-partition-%u", topic, index) : ox_strdup(topic);
}

int ctl_session_run(struct ctl_session *s, struct ctl *ctl, const char *topic, void (*start)(struct ctl_session *s))
{
    s->ctl = ctl;
    s->topic = topic;
    s->start = start;
    ox_posix_log_init(&s->log, OX_LOG_ERROR);
    s->loop = ox_posix_loop_new(&s->log);
    struct ox_client_config config = {.net = ox_posix_net(s->loop), .service_url = ctl->service_url};
    if (ox_client_new(&config, &s->client) != OX_OK) {
        ox_posix_loop_free(s->loop);
        ctl_fail("'%s' is no service URL: use pulsar://HOST:PORT", ctl->service_url);
        return CTL_USAGE;
    }
    ox_op_init(&s->partitions.call.op, s->loop, session_checked, "ctl.partitions");
    ox_client_partitions(s->client, &s->partitions, topic);
    ox_posix_run(s->loop);
    ox_posix_loop_free(s->loop);
    return s->status;
}
