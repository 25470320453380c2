/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cache of sublists. They never change once written, so nothing is ever invalidated; shared by
 * all workers of the process, bounded in bytes, least recently used first out.
 */
#ifndef LIST_CORE_CACHE_H
#define LIST_CORE_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct cache;
struct sublist;

/* Returns a cache for up to limit_bytes (0: keeps nothing), owned by the caller until
 * cache_destroy. */
struct cache *cache_create(uint64_t limit_bytes);
void cache_destroy(struct cache **cache);

/* The sublist stored under that backend key, with a reference for the caller (sublist_unref), or
 * NULL. */
struct sublist *cache_get(struct cache *cache, struct slice key);
/* Is it there? Counts as no use. */
int cache_has(struct cache *cache, struct slice key);
/* Keeps a reference to the sublist under key if it fits; returns how many others were thrown out.
 */
size_t cache_put(struct cache *cache, struct slice key, struct sublist *sublist);

struct cache_stats {
    uint64_t bytes, limit_bytes, sublists;
};
void cache_get_stats(struct cache *cache, struct cache_stats *out);

#endif
