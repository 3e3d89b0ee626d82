// key_hash.h - the sticky hash of an entry: Key_Shared gives all entries of a hash to one consumer at a time.
#ifndef BROKER_KEY_HASH_H
#define BROKER_KEY_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "wire/message_meta.h"

#define OX_KEY_HASHES 65536u // hashes are 1 .. 65535: what would be 0 is 1, as in Pulsar

// The hash of an entry: murmur3 (32 bits, seed 0) of the ordering key, else the partition key (decoded from base64 where the metadata says so, "NONE_KEY" if it is none),
// else "<producer name>-<sequence id>"; & 0x7fffffff, % 65536. Keys inside a batch do not count.
uint32_t ox_key_hash(const struct ox_message_meta *meta);

// murmur3, x86, 32 bits.
uint32_t ox_murmur3(const void *data, size_t len, uint32_t seed);

#endif
