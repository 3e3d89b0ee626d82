// fake_broker.h - for tests of the client: one topic and its subscription in memory behind a real listener, with faults on demand.
#ifndef CLIENT_FAKE_BROKER_H
#define CLIENT_FAKE_BROKER_H

#include "client/client.h"

#define FAKE_PORT 6650
#define FAKE_LEDGER 7
#define FAKE_ENTRIES_MAX 512

struct fake_session;

struct fake_broker {
    struct ox_listener *listener;
    struct ox_list sessions;
    // The topic: entries of ledger 7, and what the subscription has acknowledged.
    struct ox_buf entries[FAKE_ENTRIES_MAX];
    uint32_t messages[FAKE_ENTRIES_MAX]; // in each entry
    bool acked[FAKE_ENTRIES_MAX];
    size_t count;
    uint64_t ack_words;    // words of the last ack set
    int64_t read_from;     // where the next subscriber starts
    int64_t last_sequence; // of the one producer; for deduplication
    // What it did.
    uint32_t connects, lookups, producers, subscribes, acks, permits_given;
    // What it shall do.
    const char *redirect; // look-ups are sent to this URL
    bool silent;          // answers nothing but the handshake
    bool wrong_answers;   // answers the creation of a producer as that of a consumer
    bool garbage;         // answers look-ups with a damaged frame
    bool deduplicate;
    int receipts_before_cut;        // then the connection breaks instead of a receipt; -1: never
    Oxpb__ServerError create_error; // for producers and consumers, with the count below
    int create_errors;
    Oxpb__ServerError send_error; // for the next send
    bool has_send_error;
    uint64_t outstanding; // of each batch that it delivers; 0: all
    uint32_t partitions;
    size_t message_bytes_max; // 0: not told
};

void fake_broker_start(struct fake_broker *b, struct ox_net *net);
// Cuts all connections; stops listening as well.
void fake_broker_cut(struct fake_broker *b);
void fake_broker_stop(struct fake_broker *b);
// Adds an entry as if it had been sent.
void fake_broker_add(struct fake_broker *b, struct ox_buf give_entry, uint32_t messages);
// Closes all consumers (or producers) with a command, as a broker does that unloads the topic.
void fake_broker_unload(struct fake_broker *b);

#endif
