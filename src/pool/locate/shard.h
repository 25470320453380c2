/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which server owns a key: libmemcached's distributions, so that keys stay where other clients of
 * the same servers find them. libmemcached is used as a pure function only; its own I/O is never
 * touched. A key keeps its server whether that one is up or not. Where that takes an MD5 sum, the
 * servers of keys that were asked for lately are remembered (hash_cache_bytes).
 *
 *     here              php-memcached               pylibmc
 *     ketama_weighted   OPT_LIBKETAMA_COMPATIBLE    ketama_weighted
 *     ketama            DISTRIBUTION_CONSISTENT     ketama
 *     modula            the default                 the default
 */
#ifndef POOL_LOCATE_SHARD_H
#define POOL_LOCATE_SHARD_H

#include <stddef.h>

#include "base/slice.h"
#include "config/config.h"

struct shard;

/* Returns the mapping for the pool's servers, distribution and hash, owned by the caller until
 * shard_destroy; NULL with the reason in error when they cannot be used. config need not live on.
 */
struct shard *shard_create(const struct pool_config *config, char error[CONFIG_ERROR_MAX]);
void shard_destroy(struct shard **shard);

/* Index of the server that owns the key: 0 .. server_count-1. For one thread at a time. */
size_t shard_index(const struct shard *shard, struct slice key);
/* The same for many keys, in less time. */
void shard_indexes(const struct shard *shard, const struct slice *keys, size_t count,
                   size_t *indexes);

/* The vBucket of a key in a Couchbase cluster that has so many of them, a power of two up to
 * 32,768.
 */
uint16_t shard_vbucket(struct slice key, size_t vbucket_count);

#endif
