// record_fuzz.c - fuzzes the reader of metadata records; the checksum is made right, so that what follows it is reached.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "metastore/lmdb_nodes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t key_bytes[OX_META_KEY_BYTES_MAX];
    MDB_val key = {ox_meta_record_key(key_bytes, 1, "fuzz", 4), key_bytes};
    uint8_t *copy = ox_memdup(data, size);
    MDB_val record = {size, copy};
    if (size >= OX_META_RECORD_HEADER)
        ox_meta_record_seal(key, record);
    struct ox_meta_node node;
    const char *name;
    size_t name_len;
    if (ox_meta_record_decode(key, record, &node, &name, &name_len) == OX_OK)
        OX_ASSERT(name_len + node.value.len + OX_META_RECORD_HEADER == size);
    ox_free(copy);
    return 0;
}
