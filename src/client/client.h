// client.h - a small client of Pulsar's binary protocol on the stream port: for the tools, the load generator and the simulator's workload.
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/kv.h"
#include "io/loop.h"
#include "io/stream.h"
#include "wire/message_meta.h"
#include "wire/pulsar_command.h"
#include "wire/pulsar_frame.h"

struct ox_client;
struct ox_client_producer;
struct ox_client_consumer;

// Errors of all calls: what the server said (ox_client_err_of_server), CONNECTION_REFUSED, DISCONNECTED, TIMEOUT, MALFORMED (the server broke the protocol),
// CLOSED (closed by the caller), SHUTDOWN (the process is dead). A call that answers DISCONNECTED or TIMEOUT may have taken effect.

#define OX_CLIENT_TEXT_BYTES 256
// An operation whose error may come with a sentence. The caller embeds it and keeps it alive until done.
struct ox_client_call {
    struct ox_op op;                 // initialised by the caller
    char text[OX_CLIENT_TEXT_BYTES]; // result: the server's words or what failed, "" if there are none
};

struct ox_client_config {
    struct ox_net *net;      // borrowed for the client's life
    const char *service_url; // "pulsar://host:port" or "host:port"; copied
    uint64_t timeout_ns;     // of one request; 0: 30 s
    bool patient; // keep trying to open producers and consumers where trying again may help, instead of answering the first error
};

// A client; it connects when it is needed. Errors: INVALID (the URL).
enum ox_err ox_client_new(const struct ox_client_config *config, struct ox_client **ret) OX_CHECKED;
// Closes all connections and frees the client. Producers and consumers must be closed and no other call pending (asserted).
void ox_client_close(struct ox_client *client, struct ox_op *op);
// Breaks all connections now, as a network failure would: producers and consumers attach again.
void ox_client_break(struct ox_client *client);
// Splits "pulsar://host:port", "host:port" or "host" (port 6650). *ret_host: to be given to ox_free. Errors: INVALID.
enum ox_err ox_client_parse_url(const char *url, char **ret_host, uint16_t *ret_port) OX_CHECKED;

// How many partitions a topic has; 0: it is not partitioned.
struct ox_client_partitions {
    struct ox_client_call call;
    uint32_t count; // result
};
// Asks for a topic's partitions; topic is copied. It is made if the server makes topics by itself.
void ox_client_partitions(struct ox_client *client, struct ox_client_partitions *op, const char *topic);

// ---- producers

struct ox_client_producer_config {
    const char *topic;        // copied
    const char *name;         // copied; NULL: the server makes one
    uint32_t pending_max;     // messages without a receipt; 0: 1000
    size_t pending_bytes_max; // bytes of them; 0: 16 MiB
    uint32_t batch_messages;  // most messages of a batch; 0 or 1: no batches
    size_t batch_bytes;       // a batch is closed above this; 0: 128 KiB
    uint64_t batch_delay_ns;  // a batch is closed after this; 0: at the end of the loop's turn
    uint32_t compression;     // an enum ox_compression
    uint64_t send_timeout_ns; // messages without a receipt for so long fail with TIMEOUT (they may be stored); 0: never
};
struct ox_client_producer_open {
    struct ox_client_call call;
    struct ox_client_producer *producer; // result
    struct ox_client_producer *opening;  // private
};
// Opens a producer. Canceling the operation gives up (CANCELED).
void ox_client_producer_open(struct ox_client *client, struct ox_client_producer_open *op,
                             const struct ox_client_producer_config *config);

// A message to send. OK: the server has stored it (or had stored it before, where it deduplicates: id is then -1:-1).
struct ox_client_send {
    struct ox_op op;       // Errors: LIMIT (the window is full: try again when a send is done), TOO_BIG, TIMEOUT, ...
    struct ox_buf payload; // in: borrowed until ox_client_producer_send returns, as are key and properties
    const char *key;       // in: or NULL
    const struct ox_kv *properties; // in: or NULL
    uint64_t event_time_ms;         // in: 0: none
    uint64_t deliver_at_ms; // in: not to be delivered before (Shared and Key_Shared subscriptions); 0: at once. Never in a batch
    uint64_t sequence_id;    // result, at once: rises by one for each message
    struct ox_message_id id; // result; batch_index -1: not in a batch
    size_t bytes;            // private
};
// Sends a message. Messages of a producer are stored in the order of the calls; after a lost connection those without a receipt are sent again, with the same
// sequence ids: stored once where the server deduplicates, else possibly twice.
void ox_client_producer_send(struct ox_client_producer *p, struct ox_client_send *op);
// Closes the batch that is being filled, if there is one.
void ox_client_producer_flush(struct ox_client_producer *p);
// The producer's name. Borrowed.
const char *ox_client_producer_name(const struct ox_client_producer *p);
// The sequence id that the server reported at first, -1 if the producer was new.
int64_t ox_client_producer_last_sequence(const struct ox_client_producer *p);
// Why sends fail: the last words of the server, "" if none. Borrowed.
const char *ox_client_producer_text(const struct ox_client_producer *p);
// Messages without a receipt.
uint32_t ox_client_producer_pending(const struct ox_client_producer *p);
// Closes and frees the producer; messages without a receipt finish with CLOSED first.
void ox_client_producer_close(struct ox_client_producer *p, struct ox_op *op);

// ---- consumers

// A message as received. All is borrowed for the callback; take references (ox_buf_ref) of what is to live longer.
struct ox_received {
    struct ox_message_id id;            // with batch index and size if it was in a batch
    struct ox_buf payload;              // plain, unless meta->is_encrypted
    struct ox_span key;                 // data NULL: none
    struct ox_property_iter properties; // walk with ox_property_next
    uint64_t sequence_id, event_time_ms;
    uint32_t redelivery_count;
    const struct ox_message_meta *meta;         // of the entry
    const struct ox_broker_entry *broker_entry; // has_... false where the server sends none
};

struct ox_client_consumer_events {
    // One message.
    void (*message)(struct ox_client_consumer *c, const struct ox_received *m);
    // Optional. Attached again after the connection, or the server, closed it: messages that were not acknowledged come again.
    void (*attached)(struct ox_client_consumer *c);
    // Optional. It will never attach again: only closing is left. text is borrowed.
    void (*failed)(struct ox_client_consumer *c, enum ox_err err, const char *text);
    // Optional. An entry that could not be read: CHECKSUM, MALFORMED, UNSUPPORTED, TOO_BIG.
    void (*damaged)(struct ox_client_consumer *c, const struct ox_message_id *id, enum ox_err err);
    // Optional. The topic was terminated and all was received.
    void (*end_of_topic)(struct ox_client_consumer *c);
    // Optional. Failover: this consumer is (not) the one that gets messages.
    void (*active)(struct ox_client_consumer *c, bool is_active);
};

struct ox_client_consumer_config {
    const char *topic, *subscription; // copied
    const char *name;                 // copied; NULL: none
    Oxpb__CommandSubscribe__SubType type;
    bool non_durable; // a reader: starts at `start` (or earliest/latest), goes on behind the last message received when attached again
    bool earliest;              // where a new subscription starts; else at the end
    bool has_start;             // non-durable
    struct ox_message_id start; // non-durable: the first message is the one behind it, or itself if start_inclusive
    bool start_inclusive;
    bool read_compacted;
    bool batch_index_ack;    // tell the server of messages acknowledged within a batch; else only of whole ones
    uint32_t receiver_queue; // permits given to the server; 0: 1000
    int32_t priority;        // lower gets messages first (Shared), or is the active one (Failover)
    const int32_t *ranges; // Key_Shared: sticky hash ranges, start, end, start, end ...; borrowed for the consumer's life. None: auto split
    size_t range_count;                             // pairs of them
    bool out_of_order;                              // Key_Shared: a key need not wait for its former consumer
    const struct ox_client_consumer_events *events; // borrowed for the consumer's life
    void *owner;                                    // for ox_client_consumer_owner
};
struct ox_client_consumer_open {
    struct ox_client_call call;
    struct ox_client_consumer *consumer; // result; messages may come before the operation is done
    struct ox_client_consumer *opening;  // private
};
// Subscribes. Canceling the operation gives up (CANCELED).
void ox_client_consumer_open(struct ox_client *client, struct ox_client_consumer_open *op,
                             const struct ox_client_consumer_config *config);
// What the configuration's owner was.
void *ox_client_consumer_owner(const struct ox_client_consumer *c);
// When the request to subscribe was sent that attached it last (the loop's clock): what it is given was sent later.
uint64_t ox_client_consumer_since_ns(const struct ox_client_consumer *c);
// Gives no more permits: at most receiver_queue messages still come.
void ox_client_consumer_pause(struct ox_client_consumer *c);
// Goes on.
void ox_client_consumer_resume(struct ox_client_consumer *c);
// Acknowledges a message, or all up to it. With a call: it is done when the server has answered. NULL: no answer is asked for.
// A message inside a batch reaches the server when all of its batch are acknowledged, or at once with batch_index_ack.
void ox_client_consumer_ack(struct ox_client_consumer *c, struct ox_client_call *call, const struct ox_message_id *id,
                            bool cumulative);
// What no honest client says, for tests: an acknowledgement of a whole entry or, with words, with that set as it is; and permits out of nowhere.
void ox_client_consumer_ack_raw(struct ox_client_consumer *c, const struct ox_message_id *id, bool cumulative,
                                const uint64_t *words, size_t count);
void ox_client_consumer_flow_raw(struct ox_client_consumer *c, uint32_t permits);
// Asks for messages again; count 0: for all that are not acknowledged.
void ox_client_consumer_redeliver(struct ox_client_consumer *c, const struct ox_message_id *ids, size_t count);
// Moves the subscription to a message (which comes next), OX_POS_EARLIEST or OX_POS_LATEST as an id; or to the first one published at or after a time.
// Messages received from before are not delivered any more.
void ox_client_consumer_seek(struct ox_client_consumer *c, struct ox_client_call *call, const struct ox_message_id *id);
// Moves the subscription to a publish time, ms since 1970.
void ox_client_consumer_seek_time(struct ox_client_consumer *c, struct ox_client_call *call, uint64_t publish_time_ms);
// The topic's last message.
struct ox_client_last_id {
    struct ox_client_call call;
    struct ox_message_id id;          // result; -1:-1: none
    bool has_mark_delete;             // result
    struct ox_message_id mark_delete; // result: the subscription's position
};
// Asks for it.
void ox_client_consumer_last_id(struct ox_client_consumer *c, struct ox_client_last_id *op);
// Removes the subscription; the consumer is left to be closed.
void ox_client_consumer_unsubscribe(struct ox_client_consumer *c, struct ox_client_call *call);
// Closes and frees the consumer; calls that are pending finish with CLOSED first.
void ox_client_consumer_close(struct ox_client_consumer *c, struct ox_op *op);

// What an error of the server means here.
enum ox_err ox_client_err_of_server(Oxpb__ServerError error);

#endif
