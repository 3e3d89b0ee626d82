// kv.h - small ordered lists of string pairs: properties and custom metadata.
#ifndef BASE_KV_H
#define BASE_KV_H

#include <stdbool.h>
#include <stddef.h>

// One pair; both strings are owned by the list.
struct ox_kv_pair {
    char *key;
    char *value;
};

// Pairs in the order in which they were set. Zeroed memory is an empty list.
struct ox_kv {
    struct ox_kv_pair *pairs; // read-only
    size_t count;             // read-only
    size_t cap;               // private
};

// Frees all pairs; the list is empty then.
void ox_kv_fini(struct ox_kv *kv);
// Sets a key (copies both strings); an existing key keeps its place.
void ox_kv_set(struct ox_kv *kv, const char *key, const char *value);
// Adds a key that is known not to be there: no look at the others.
void ox_kv_add(struct ox_kv *kv, const char *key, const char *value);
// The value of a key, or NULL. Borrowed.
const char *ox_kv_find(const struct ox_kv *kv, const char *key);
// Removes a key; false if it was not there.
bool ox_kv_remove(struct ox_kv *kv, const char *key);
// Makes `to` (emptied first) a copy of `from`.
void ox_kv_copy(struct ox_kv *to, const struct ox_kv *from);
// True if every pair of `part` is in `whole` with the same value.
bool ox_kv_contains(const struct ox_kv *whole, const struct ox_kv *part);

#endif
