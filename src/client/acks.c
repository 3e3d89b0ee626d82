// acks.c - which messages of partly acknowledged batches are still outstanding.
#include <string.h>

#include "base/mem.h"
#include "client/client_int.h"

struct batch_ack {
    struct ox_map_node node;
    int64_t key[2]; // ledger, entry
    size_t words;
    uint64_t outstanding[];
};

static struct batch_ack *batch_ack_get(struct batch_acks *b, const struct ox_message_id *id)
{
    int64_t key[2] = {id->ledger, id->entry};
    struct ox_map_node *node = ox_map_find(&b->map, key, sizeof key);
    if (node)
        return CONTAINER_OF(node, struct batch_ack, node);
    size_t words = ((size_t)id->batch_size + 63) / 64;
    struct batch_ack *ack = ox_malloc(sizeof *ack + words * sizeof ack->outstanding[0]);
    memcpy(ack->key, key, sizeof key);
    ack->words = words;
    for (int32_t i = 0; i < id->batch_size; i++)
        ack->outstanding[i / 64] |= UINT64_C(1) << i % 64;
    ox_map_put(&b->map, &ack->node, ack->key, sizeof ack->key);
    return ack;
}

static void batch_ack_drop(struct batch_acks *b, struct batch_ack *ack)
{
    ox_map_remove(&b->map, &ack->node);
    ox_free(ack);
}

void ox_client_acks_seed(struct batch_acks *b, const struct ox_message_id *id, const uint64_t *words, size_t count)
{
    int64_t key[2] = {id->ledger, id->entry};
    struct ox_map_node *node = ox_map_find(&b->map, key, sizeof key);
    if (node)
        batch_ack_drop(b, CONTAINER_OF(node, struct batch_ack, node));
    struct batch_ack *ack = ox_malloc(sizeof *ack + count * sizeof ack->outstanding[0]);
    memcpy(ack->key, key, sizeof key);
    ack->words = count;
    memcpy(ack->outstanding, words, count * sizeof *words);
    ox_map_put(&b->map, &ack->node, ack->key, sizeof ack->key);
}

bool ox_client_acks_note(struct batch_acks *b, const struct ox_message_id *id, bool cumulative,
                         const uint64_t **ret_words, size_t *ret_count)
{
    struct batch_ack *ack = batch_ack_get(b, id);
    for (int32_t i = cumulative ? 0 : id->batch_index; i <= id->batch_index && i / 64 < (int32_t)ack->words; i++)
        ack->outstanding[i / 64] &= ~(UINT64_C(1) << i % 64);
    *ret_words = ack->outstanding;
    *ret_count = ack->words;
    for (size_t i = 0; i < ack->words; i++)
        if (ack->outstanding[i])
            return false;
    batch_ack_drop(b, ack);
    return true;
}

void ox_client_acks_clear(struct batch_acks *b)
{
    OX_MAP_EACH(&b->map, node)
        batch_ack_drop(b, CONTAINER_OF(node, struct batch_ack, node));
}
