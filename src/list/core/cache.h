/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cache of sublists: those that are at hand, by their backend keys.
 */
#ifndef LIST_CORE_CACHE_H
#define LIST_CORE_CACHE_H

#include "list/core/lru.h"
#include "list/format/sublist.h"

struct cache {
    struct lru lru;
};

/* Returns a cache for up to limit_bytes (0: keeps nothing), owned by the caller until
 * cache_destroy. */
struct cache *cache_create(uint64_t limit_bytes);
void cache_destroy(struct cache **cache);

/* The sublist kept under that backend key, with a reference for the caller (sublist_unref), or
 * NULL. */
static inline struct sublist *cache_get(struct cache *cache, struct slice key)
{
    return lru_get(&cache->lru, key);
}
/* Is it there? Counts as no use. */
static inline bool cache_has(struct cache *cache, struct slice key)
{
    return lru_has(&cache->lru, key);
}
/* Keeps a reference to the sublist under key if it fits; returns how many others were thrown out.
 */
size_t cache_put(struct cache *cache, struct slice key, struct sublist *sublist);

#endif
