// outq.h - the queue of slices that a stream's owner has written and the kernel has not taken; for bodies of the stream port.
#ifndef IO_OUTQ_H
#define IO_OUTQ_H

#include <stddef.h>
#include <sys/uio.h>

#include "base/buf.h"

// Slices in order. Zeroed memory is an empty queue.
struct ox_outq {
    struct ox_buf *bufs; // private: a ring
    size_t head, count;  // private
    size_t cap;          // private: a power of two
    size_t bytes;        // read-only: bytes in the queue
};

// Appends slices (a reference of each is taken; empty ones are skipped).
void ox_outq_add(struct ox_outq *q, const struct ox_buf *bufs, size_t n);
// Describes the first slices in at most `max` parts; returns how many parts were filled in. They stay valid until ox_outq_consume or _fini.
size_t ox_outq_peek(const struct ox_outq *q, struct iovec *iov, size_t max);
// Takes n bytes off the front and gives the references of finished slices back.
void ox_outq_consume(struct ox_outq *q, size_t n);
// Gives every reference back; the queue is empty then.
void ox_outq_fini(struct ox_outq *q);

#endif
