// map.h - intrusive hash maps that iterate in insertion order (uthash behind one door).
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uthash.h>

// A node, embedded in what is mapped. The key's bytes belong to the owner and must live and stay unchanged while mapped.
struct ox_map_node {
    const void *key; // read-only
    size_t key_len;  // read-only: bytes
    uint64_t number; // private: storage of an integer key
    UT_hash_handle hh;
};

// A map; zeroed memory is an empty map.
struct ox_map {
    struct ox_map_node *head; // private
};

// Maps a key; the key must not be mapped yet (asserted).
void ox_map_put(struct ox_map *map, struct ox_map_node *node, const void *key, size_t key_len);
// Maps a zero-terminated string key.
void ox_map_put_str(struct ox_map *map, struct ox_map_node *node, const char *key);
// Maps an integer key (stored in the node).
void ox_map_put_u64(struct ox_map *map, struct ox_map_node *node, uint64_t key);
// The node of a key, or NULL.
struct ox_map_node *ox_map_find(const struct ox_map *map, const void *key, size_t key_len);
// The node of a string key, or NULL.
struct ox_map_node *ox_map_find_str(const struct ox_map *map, const char *key);
// The node of an integer key, or NULL.
struct ox_map_node *ox_map_find_u64(const struct ox_map *map, uint64_t key);
// Takes a mapped node out.
void ox_map_remove(struct ox_map *map, struct ox_map_node *node);
// How many nodes are mapped.
size_t ox_map_count(const struct ox_map *map);
// The first node in insertion order, or NULL.
struct ox_map_node *ox_map_first(const struct ox_map *map);
// The node after another one, or NULL.
struct ox_map_node *ox_map_next(const struct ox_map_node *node);

// Walks a map in insertion order; the current node may be removed (and its owner freed) in the body.
#define OX_MAP_EACH(map, node)                                                                               \
    for (struct ox_map_node *node = ox_map_first(map), *node##_next = node ? ox_map_next(node) : NULL; node; \
         node = node##_next, node##_next = node ? ox_map_next(node) : NULL)

#endif
