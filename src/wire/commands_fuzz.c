// commands_fuzz.c - a BaseCommand through the hand decoders and through protobuf; where both read it, they agree.
#include "base/assert.h"
#include "base/varint.h"
#include "fuzz.h"
#include "wire/pulsar_command.h"

#define ARENA_BYTES (4u * 1024 * 1024)

static void fuzz_send(struct ox_buf sub, const Oxpb__CommandSend *pb)
{
    struct ox_command_send c;
    if (ox_command_send_decode(sub, &c) != OX_OK || pb == NULL)
        return;
    OX_ASSERT(c.producer_id == pb->producer_id && c.sequence_id == pb->sequence_id && c.num_messages == pb->num_messages);
    OX_ASSERT(c.has_highest == pb->has_highest_sequence_id);
}

static void fuzz_ack(struct ox_buf sub, const Oxpb__CommandAck *pb)
{
    struct ox_command_ack c;
    struct ox_message_id id;
    uint64_t words[8];
    size_t at = 0, count = 0;
    if (ox_command_ack_decode(sub, &c) != OX_OK)
        return;
    for (; ox_command_ack_next(&c, &at, &id); count++)
        OX_ASSERT(ox_message_id_ack_set(&id, words, 8) == (id.ack_set_words < 8 ? id.ack_set_words : 8));
    OX_ASSERT(count == c.id_count);
    if (pb)
        OX_ASSERT(c.consumer_id == pb->consumer_id && count == pb->n_message_id && c.has_request_id == pb->has_request_id);
}

// pb: what protobuf read, or NULL where the two readings may differ.
static void fuzz_sub(uint32_t type, struct ox_buf sub, const Oxpb__BaseCommand *pb)
{
    struct ox_command_flow c;
    fuzz_send(sub, pb && type == OXPB__BASE_COMMAND__TYPE__SEND ? pb->send : NULL);
    fuzz_ack(sub, pb && type == OXPB__BASE_COMMAND__TYPE__ACK ? pb->ack : NULL);
    const Oxpb__CommandFlow *flow = pb && type == OXPB__BASE_COMMAND__TYPE__FLOW ? pb->flow : NULL;
    if (ox_command_flow_decode(sub, &c) == OX_OK && flow)
        OX_ASSERT(c.consumer_id == flow->consumer_id && c.permits == flow->message_permits);
}

// True if field `number` occurs once: protobuf merges repeated ones, the hand decoders take one.
static bool fuzz_once(struct ox_buf command, uint32_t number)
{
    const uint8_t *p = command.data, *end = p + command.len;
    struct ox_pb_field f;
    int count = 0;
    while (ox_pb_next(&p, end, &f) > 0)
        count += f.number == number;
    return count == 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t nothing[1];
    struct ox_buf command = ox_buf_static(size ? data : nothing, size), sub;
    struct ox_arena arena;
    Oxpb__BaseCommand *pb = NULL;
    uint32_t type;
    ox_arena_init(&arena, ARENA_BYTES);
    bool is_read = ox_proto_unpack(&oxpb__base_command__descriptor, &arena, command.data, command.len, &pb) == OX_OK;
    if (ox_command_peek(command, &type, &sub) == OX_OK) {
        bool is_same = is_read && (uint32_t)pb->type == type && fuzz_once(command, type);
        fuzz_sub(type, sub, is_same ? pb : NULL);
    }
    if (is_read) {
        struct ox_buf frame = ox_command_pack(pb);
        ox_buf_unref(&frame);
    }
    ox_arena_fini(&arena);
    return 0;
}
