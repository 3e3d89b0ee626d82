// kv.c - ordered lists of string pairs; short, so searched from the front.
#include "base/kv.h"

#include <string.h>

#include "base/mem.h"

static struct ox_kv_pair *kv_pair(const struct ox_kv *kv, const char *key)
{
    for (size_t i = 0; i < kv->count; i++)
        if (strcmp(kv->pairs[i].key, key) == 0)
            return &kv->pairs[i];
    return NULL;
}

void ox_kv_fini(struct ox_kv *kv)
{
    for (size_t i = 0; i < kv->count; i++) {
        ox_free(kv->pairs[i].key);
        ox_free(kv->pairs[i].value);
    }
    ox_free(kv->pairs);
    *kv = (struct ox_kv){0};
}

void ox_kv_add(struct ox_kv *kv, const char *key, const char *value)
{
    if (kv->count == kv->cap) {
        kv->cap = kv->cap ? kv->cap * 2 : 4;
        kv->pairs = (struct ox_kv_pair *)ox_realloc(kv->pairs, kv->cap, sizeof *kv->pairs);
    }
    kv->pairs[kv->count++] = (struct ox_kv_pair){ox_strdup(key), ox_strdup(value)};
}

void ox_kv_set(struct ox_kv *kv, const char *key, const char *value)
{
    struct ox_kv_pair *pair = kv_pair(kv, key);
    if (!pair) {
        ox_kv_add(kv, key, value);
        return;
    }
    char *copy = ox_strdup(value);
    ox_free(pair->value);
    pair->value = copy;
}

const char *ox_kv_find(const struct ox_kv *kv, const char *key)
{
    const struct ox_kv_pair *pair = kv_pair(kv, key);
    return pair ? pair->value : NULL;
}

bool ox_kv_remove(struct ox_kv *kv, const char *key)
{
    struct ox_kv_pair *pair = kv_pair(kv, key);
    if (!pair)
        return false;
    ox_free(pair->key);
    ox_free(pair->value);
    size_t at = (size_t)(pair - kv->pairs);
    kv->count--;
    memmove(pair, pair + 1, (kv->count - at) * sizeof *pair);
    return true;
}

void ox_kv_copy(struct ox_kv *to, const struct ox_kv *from)
{
    if (to == from)
        return;
    ox_kv_fini(to);
    for (size_t i = 0; i < from->count; i++)
        ox_kv_add(to, from->pairs[i].key, from->pairs[i].value);
}

bool ox_kv_contains(const struct ox_kv *whole, const struct ox_kv *part)
{
    for (size_t i = 0; i < part->count; i++) {
        const char *value = ox_kv_find(whole, part->pairs[i].key);
        if (!value || strcmp(value, part->pairs[i].value) != 0)
            return false;
    }
    return true;
}
