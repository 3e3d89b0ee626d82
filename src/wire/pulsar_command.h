// pulsar_command.h - commands: the envelope and the frequent ones by hand without allocation, all others through protobuf.
#ifndef WIRE_PULSAR_COMMAND_H
#define WIRE_PULSAR_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "wire/proto.h"

// ---- reading

// Finds a command's type (an OXPB__BASE_COMMAND__TYPE__..., or a number this version does not know) and the bytes of its one sub-message
// (borrowed; empty if absent). Errors: MALFORMED.
enum ox_err ox_command_peek(struct ox_buf command, uint32_t *ret_type, struct ox_buf *ret_sub) OX_CHECKED;

// A message id. Ledger and entry are signed here: -1 travels as 2^64-1.
struct ox_message_id {
    int64_t ledger, entry;
    int32_t partition;      // -1: none
    int32_t batch_index;    // -1: none
    int32_t batch_size;     // 0: not told
    const uint8_t *ack_set; // private: borrowed bytes of the MessageIdData, for ox_message_id_ack_set
    size_t ack_set_len;     // private
    size_t ack_set_words;   // read-only: words of the ack set, 0 if there is none
};
#define OX_MESSAGE_ID_NONE ((struct ox_message_id){.ledger = -1, .entry = -1, .partition = -1, .batch_index = -1})

// Decodes a MessageIdData. Errors: MALFORMED.
enum ox_err ox_message_id_decode(const void *data, size_t len, struct ox_message_id *ret) OX_CHECKED;
// Copies the first `max` words of a decoded id's ack set (a set bit is a message that is still outstanding); returns how many were copied.
size_t ox_message_id_ack_set(const struct ox_message_id *id, uint64_t *words, size_t max);

struct ox_command_send {
    uint64_t producer_id, sequence_id;
    uint64_t highest_sequence_id; // valid if has_highest
    uint64_t txn_most, txn_least; // valid if has_txn
    int32_t num_messages;
    bool has_highest, has_txn, is_chunk, is_marker, has_message_id;
    struct ox_message_id message_id; // valid if has_message_id (replicators)
};
// Decodes a CommandSend. Errors: MALFORMED.
enum ox_err ox_command_send_decode(struct ox_buf sub, struct ox_command_send *ret) OX_CHECKED;

struct ox_command_flow {
    uint64_t consumer_id;
    uint32_t permits;
};
// Decodes a CommandFlow. Errors: MALFORMED.
enum ox_err ox_command_flow_decode(struct ox_buf sub, struct ox_command_flow *ret) OX_CHECKED;

struct ox_command_ack {
    uint64_t consumer_id;
    uint64_t request_id;          // valid if has_request_id: an AckResponse is wanted
    uint64_t txn_most, txn_least; // valid if has_txn
    size_t id_count;              // message ids, each checked; walk them with ox_command_ack_next
    int32_t validation_error;     // an OXPB__COMMAND_ACK__VALIDATION_ERROR__..., or -1
    bool is_cumulative, has_request_id, has_txn;
    struct ox_buf sub; // private: borrowed
};
// Decodes a CommandAck. Errors: MALFORMED (a damaged id included).
enum ox_err ox_command_ack_decode(struct ox_buf sub, struct ox_command_ack *ret) OX_CHECKED;
// The next message id of a decoded ack; *at is 0 at first. False at the end.
bool ox_command_ack_next(const struct ox_command_ack *ack, size_t *at, struct ox_message_id *ret);

// ---- writing

// Writes small frames one behind another into shared slabs. Zeroed memory is ready for use.
struct ox_encoder {
    struct ox_slab *slab; // private
};
// Gives the encoder's slab back; frames live on.
void ox_encoder_fini(struct ox_encoder *e);

// Each of these returns a whole frame of which the caller owns one reference; frames written one after another touch, so that ox_buf_extend can join them.
struct ox_buf ox_encode_success(struct ox_encoder *e, uint64_t request_id);
struct ox_buf ox_encode_ping(struct ox_encoder *e);
struct ox_buf ox_encode_pong(struct ox_encoder *e);
// A CommandError. The message is cut at 1,000 bytes.
struct ox_buf ox_encode_error(struct ox_encoder *e, uint64_t request_id, Oxpb__ServerError error, const char *message);
// A CommandSendError. The message is cut at 1,000 bytes.
struct ox_buf ox_encode_send_error(struct ox_encoder *e, uint64_t producer_id, uint64_t sequence_id,
                                   Oxpb__ServerError error, const char *message);
// A CommandSendReceipt; highest_sequence_id is left out if 0.
struct ox_buf ox_encode_send_receipt(struct ox_encoder *e, uint64_t producer_id, uint64_t sequence_id,
                                     uint64_t highest_sequence_id, const struct ox_message_id *id);
struct ox_ack_answer {
    uint64_t consumer_id, request_id;
    uint64_t txn_most, txn_least; // left out if both are 0
    bool has_error;
    Oxpb__ServerError error;
    const char *message; // borrowed, may be NULL; cut at 1,000 bytes
};
// A CommandAckResponse.
struct ox_buf ox_encode_ack_response(struct ox_encoder *e, const struct ox_ack_answer *answer);
// For clients: a CommandFlow.
struct ox_buf ox_encode_flow(struct ox_encoder *e, uint64_t consumer_id, uint32_t permits);
struct ox_delivery {
    uint64_t consumer_id;
    struct ox_message_id id; // its ack set is not written; batch index and size are, if told
    uint32_t redelivery_count;
    const uint64_t *ack_set; // borrowed: outstanding messages of a batch, or NULL
    size_t ack_set_words;    // at most OX_ACK_SET_WORDS_MAX
    bool has_epoch;
    uint64_t consumer_epoch;
};
#define OX_ACK_SET_WORDS_MAX 1024
// The head of a message's frame: sizes and CommandMessage. The entry's entry_bytes bytes must follow it on the stream.
struct ox_buf ox_encode_message_head(struct ox_encoder *e, const struct ox_delivery *d, size_t entry_bytes);

// A frame of any command of which only the sub-message is given: `ox_command_pack_sub(OXPB__BASE_COMMAND__TYPE__CONNECTED, &connected.base)`.
// The caller owns one reference.
struct ox_buf ox_command_pack_sub(Oxpb__BaseCommand__Type type, const ProtobufCMessage *sub);
// A frame of a whole BaseCommand. The caller owns one reference.
struct ox_buf ox_command_pack(const Oxpb__BaseCommand *command);

#endif
