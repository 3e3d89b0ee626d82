// request.c - what is open while the broker works for a connection.
#include "base/assert.h"
#include "base/mem.h"
#include "pulsar/session.h"

void *request_new(struct session *s, size_t size, uint64_t id)
{
    struct request *r = ox_malloc(size);
    r->session = s;
    r->id = id;
    r->name.partition = -1;
    session_hold(s);
    s->requests++;
    session_throttle(s);
    return r;
}

void request_error(struct request *r, enum ox_err err, const char *why)
{
    if (session_alive(r->session))
        session_error(r->session, r->id, err, r->name.full, why);
}

bool request_topic(struct request *r, const char *topic)
{
    if (ox_topic_name_parse(&r->name, topic) == OX_OK)
        return true;
    session_error(r->session, r->id, OX_E_INVALID_TOPIC_NAME, topic, NULL);
    request_free(r);
    return false;
}

void request_set_idle(struct request *r)
{
    struct session *s = r->session;
    if (r->idle)
        return;
    OX_ASSERT(s->requests > 0);
    r->idle = true;
    s->requests--;
    session_throttle(s);
}

void request_free(struct request *r)
{
    struct session *s = r->session;
    request_set_idle(r);
    ox_topic_name_fini(&r->name);
    ox_free(r);
    session_put(s);
}
