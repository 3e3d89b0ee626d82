// resend.h - what a producer that comes back may send again: a table of the newest stored entries by who sent them and what they are.
//
// An entry is told from others by producer name, sequence id, length and CRC-32C of its bytes behind the checksum. A client that sends again after a
// broken connection sends the very same bytes (its name, the sequence id and the publish time are inside), so it gets the receipt of the stored entry.
#ifndef BROKER_RESEND_H
#define BROKER_RESEND_H

#include "broker/topic.h"

#define OX_RESEND_ENTRIES_MIN 4096u  // entries read back whatever their publish times say: producers' clocks differ
#define OX_RESEND_ENTRIES_MAX 65536u // entries read back from a log's end
#define OX_RESEND_BYTES_MAX (16u * 1024 * 1024) // bytes read back
#define OX_RESEND_WINDOW_MS \
    60000u // publish time: what is older than the newest entry by this has its receipt long since
#define OX_RESEND_TOTAL_BYTES_MAX \
    (64u * 1024 * 1024) // memory of all tables of a process; beyond it the log's end is not read, with a warning

// Who sent what. The name is borrowed.
struct ox_resend_key {
    const void *name;
    size_t name_len;
    uint64_t sequence_id;
    uint32_t crc; // of the plain entry: from the metadata's size on
    size_t len;   // its bytes
};

// A new, empty table.
struct ox_resend *ox_resend_new(void);
// Frees it; NULL is allowed.
void ox_resend_free(struct ox_resend *r);
// Notes a stored entry.
void ox_resend_add(struct ox_resend *r, const struct ox_resend_key *key, struct ox_pos pos);
// Was it stored? The newest position if so.
bool ox_resend_find(const struct ox_resend *r, const struct ox_resend_key *key, struct ox_pos *ret_pos);
// How many entries are noted.
size_t ox_resend_count(const struct ox_resend *r);
// Bytes of memory.
uint64_t ox_resend_bytes(const struct ox_resend *r);

// Reads the end of a topic's log into topic->resend, or what has come since it was read last: from the newest entry back, until what was published
// OX_RESEND_WINDOW_MS before the newest one (at least OX_RESEND_ENTRIES_MIN entries), or a limit. While there is a table the log keeps what is consumed: what a
// crash left without a receipt must be
// found after a second crash too. Finishes with OK also where entries are damaged (they are passed, with a warning). Errors: TOPIC_FENCED, SHUTDOWN, those of the log.
struct ox_resend_scan {
    struct ox_op op;
    struct ox_topic *topic;           // private
    struct ox_ml_read read;           // private
    struct ox_pos end, stop;          // private: the newest entry to look at; the newest one not to look at
    int64_t ledger, first, low, high; // private: the chunk first..high of it is being read, at low
    uint32_t step;                    // private: entries of one read
    uint64_t newest_ms, chunk_ms;     // private: publish times, of all and of the entries being read
    uint64_t entries, bytes;          // private: read so far
    uint64_t damaged;                 // private
};
void ox_resend_scan(struct ox_topic *t, struct ox_resend_scan *op);
// Drops a table that is too old to be of use; called now and then.
void ox_resend_expire(struct ox_topic *t);
// Somebody may come back and send again: from now on the log keeps what is consumed, until a scan or the time is over.
void ox_resend_expect(struct ox_topic *t);
// Drops the table.
void ox_resend_drop(struct ox_topic *t);

#endif
