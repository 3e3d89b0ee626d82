// session_watch.h - watchers of topic lists on a connection.
#ifndef PULSAR_SESSION_WATCH_H
#define PULSAR_SESSION_WATCH_H

#include "broker/topic_list.h"
#include "pulsar/handlers.h"

#define SESSION_WATCHERS_MAX 1000u

struct session_watcher {
    struct ox_map_node node; // in session->watchers
    struct session *session;
    uint64_t id;
    struct ox_topics_watch watch;
    struct ox_topic_pattern *pattern;
    char hash[16];           // what the client knows when it asks
    struct request *opening; // the request, until it is answered
    bool closed;             // while opening: not wanted any more
};

// Ends all of a connection's.
void session_watchers_close(struct session *s);

#endif
