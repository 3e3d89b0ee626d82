// fixture.h - a broker with its front door in the simulator, and raw clients that speak frames.
#ifndef PULSAR_FIXTURE_H
#define PULSAR_FIXTURE_H

#include "broker/fixture.h"
#include "pulsar/pulsar.h"
#include "wire/pulsar_command.h"
#include "wire/pulsar_frame.h"

#define DOOR_PORT 6650

struct door {
    struct rig rig;
    struct ox_pulsar pulsar;
    struct ox_sim_node *clients; // where raw clients live
};
void door_init(struct door *d);
void door_fini(struct door *d);
// kill -9 of the broker and start again; clients see their connections end.
void door_crash(struct door *d);

#define PEER_FRAMES_MAX 1024

// A raw client.
struct peer {
    struct door *door;
    struct ox_stream *stream; // NULL once closed
    struct ox_frame_reader reader;
    struct ox_arena arena;
    struct {
        Oxpb__BaseCommand *command;
        struct ox_buf body; // what follows the command: borrowed from frame
        struct ox_buf frame;
    } frames[PEER_FRAMES_MAX];
    size_t count, taken;
    bool deaf;   // reads nothing
    bool silent; // answers no ping
};
// Opens a connection; nothing is sent.
void peer_open(struct door *d, struct peer *p);
// Opens and says CONNECT; CONNECTED is taken.
void peer_connect(struct door *d, struct peer *p);
// Closes (if it is not) and frees.
void peer_fini(struct peer *p);
void peer_bytes(struct peer *p, const void *data, size_t len);
void peer_frame(struct peer *p, struct ox_buf give_frame);
void peer_command(struct peer *p, Oxpb__BaseCommand__Type type, const ProtobufCMessage *sub);
// The next frame; fails if none comes within ten seconds or it is of another type.
Oxpb__BaseCommand *peer_next(struct peer *p, Oxpb__BaseCommand__Type type);
// The entry of the frame that peer_next gave last.
struct ox_buf peer_body(const struct peer *p);
// Fails if any frame comes within a second.
void peer_expect_nothing(struct peer *p);
// Fails if the connection does not end within ten seconds.
void peer_expect_end(struct peer *p);
// Fails unless the next frame is an ERROR of that kind for the request.
void peer_expect_error(struct peer *p, uint64_t request_id, Oxpb__ServerError error);

// The usual commands.
void peer_producer(struct peer *p, uint64_t producer_id, const char *topic, const char *name, uint64_t epoch);
void peer_open_producer(struct peer *p, uint64_t producer_id, const char *topic);
struct ox_buf peer_send_frame(uint64_t producer_id, uint64_t sequence_id, const char *payload);
void peer_subscribe(struct peer *p, uint64_t consumer_id, const char *topic, const char *subscription);
void peer_open_consumer(struct peer *p, uint64_t consumer_id, const char *topic, const char *subscription);
void peer_flow(struct peer *p, uint64_t consumer_id, uint32_t permits);
// Takes a MESSAGE and checks its payload.
struct ox_message_id peer_expect_message(struct peer *p, const char *payload);
void peer_ack(struct peer *p, uint64_t consumer_id, struct ox_message_id id, bool cumulative, uint64_t request_id);

#endif
