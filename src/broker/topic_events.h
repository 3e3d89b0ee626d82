// topic_events.h - the log of topics' own policies, the namespace's topic __change_events: read once, then followed, whoever writes to it.
#ifndef BROKER_TOPIC_EVENTS_H
#define BROKER_TOPIC_EVENTS_H

#include "broker/policy_scope.h"

struct topic_events {
    struct policy_scope *scope;
    struct ox_topic *topic; // while it is open and followed, else NULL
    struct ox_pos next;     // the first entry that has not been applied
    struct ox_topic_get get;
    struct ox_ml_read read;
    struct ox_cursor_view *read_view; // of the read: NULL: the log itself
    struct ox_seq seq;                // reading up to the log's end
    bool loading;                     // the first reading: the scope waits for it
    bool plain;                       // its compacted ledger could not be read: the log has it all
    struct ox_pos horizon;            // up to it the first reading takes what compaction left
    struct ox_ml_waiter waiter;
    struct ox_list applied; // of struct events_wait
    struct ox_list updates; // of struct ox_topic_policies_update: the first one is under way
};

// Somebody waits until an entry has been applied.
struct events_wait {
    struct ox_op *op;
    struct ox_pos pos;
    struct ox_link link;
};

// The name of the topic that holds a namespace's events; the caller's. Errors: INVALID_TOPIC_NAME.
enum ox_err topic_events_name(const char *ns, struct ox_topic_name *ret) OX_CHECKED;
// The events of a scope; made when they are first asked for.
struct topic_events *topic_events_of(struct policy_scope *scope);
// Reads all events of the scope's namespace; scope_loaded is told the outcome.
void topic_events_load(struct policy_scope *scope);
// Frees what a scope has for its events.
void topic_events_free(struct policy_scope *scope);
// A topic has been opened: if it holds its namespace's events, they are followed.
void topic_events_opened(struct ox_topic *t);
// A topic is about to close: its events are not followed any more.
void topic_events_closing(struct ox_topic *t);
// Finishes op (begun here) when the entry at pos has been applied; what the topic's closing leaves out: TOPIC_FENCED.
void topic_events_wait(struct topic_events *e, struct ox_op *op, struct ox_pos pos);

#endif
