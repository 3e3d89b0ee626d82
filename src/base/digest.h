// digest.h - a 128-bit digest (XXH3) of bytes that come in pieces: tells copies apart, is no protection against somebody who wants to deceive.
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define OX_DIGEST_TEXT_BYTES 38 // "xxh3:", 32 hexadecimal digits, terminator

// A digest being computed.
struct ox_digest {
    void *state; // private
};

// Starts a digest of nothing.
void ox_digest_init(struct ox_digest *d);
// Frees it; zeroed memory is allowed.
void ox_digest_fini(struct ox_digest *d);
// Adds n bytes behind what was added before. May run in a job while nobody else uses the digest.
void ox_digest_add(struct ox_digest *d, const void *data, size_t n);
// Adds one entry of a ledger: its id, its length and its bytes, so that no two lists of entries add the same bytes.
void ox_digest_add_entry(struct ox_digest *d, int64_t entry, const void *data, size_t n);
// The digest of all that was added as text, "xxh3:" and 32 hexadecimal digits; more may be added afterwards.
void ox_digest_text(const struct ox_digest *d, char ret[OX_DIGEST_TEXT_BYTES]);

#endif
