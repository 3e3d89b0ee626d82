// resend_int.h - the table of re-sends, for this folder's own eyes.
#ifndef BROKER_RESEND_INT_H
#define BROKER_RESEND_INT_H

#include "broker/resend.h"

struct resend_slot {
    uint64_t name; // hash of the producer's name
    uint64_t sequence_id;
    uint32_t crc, len;
    struct ox_pos pos;
    bool used;
};

struct ox_resend {
    struct resend_slot *slots;
    size_t cap, count;   // cap is a power of two
    struct ox_pos upto;  // the log's end has been read up to here
    bool holds;          // the log keeps what is consumed meanwhile
    uint64_t scanned_ns; // when
    uint64_t charged;    // bytes counted in shard->resend_bytes
};

#endif
