/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool/locate/shard.h"

#include <libmemcached/memcached.h>
#include <stdio.h>
#include <stdlib.h>

/* Two of these, in two neighbouring cache lines, are a set: a key is looked for in one set only. */
struct known_key {
    uint8_t len; /* 0: no key */
    uint8_t index;
    char key[62];
};
#define SET_BYTES (2 * sizeof(struct known_key))

struct shard {
    memcached_st *ring; /* NULL: a single server needs none */
    size_t server_count;
    struct known_key *known; /* in known_memory; NULL: asking the ring is as cheap */
    void *known_memory;
    size_t set_mask;
};
_Static_assert(sizeof(struct known_key) == 64, "as long as a cache line");
_Static_assert(CONFIG_SERVERS_MAX <= UINT8_MAX, "known_key.index");

static const struct {
    memcached_hash_t hash;
    const char *name;
} hashes[] = {
    [HASH_DEFAULT] = {MEMCACHED_HASH_DEFAULT, "default"},
    [HASH_ONE_AT_A_TIME] = {MEMCACHED_HASH_DEFAULT, "one-at-a-time"},
    [HASH_MD5] = {MEMCACHED_HASH_MD5, "md5"},
    [HASH_CRC] = {MEMCACHED_HASH_CRC, "crc"},
    [HASH_FNV1_64] = {MEMCACHED_HASH_FNV1_64, "fnv1-64"},
    [HASH_FNV1A_64] = {MEMCACHED_HASH_FNV1A_64, "fnv1a-64"},
    [HASH_FNV1_32] = {MEMCACHED_HASH_FNV1_32, "fnv1-32"},
    [HASH_FNV1A_32] = {MEMCACHED_HASH_FNV1A_32, "fnv1a-32"},
    [HASH_JENKINS] = {MEMCACHED_HASH_JENKINS, "jenkins"},
    [HASH_MURMUR] = {MEMCACHED_HASH_MURMUR, "murmur"},
    [HASH_HSIEH] = {MEMCACHED_HASH_HSIEH, "hsieh"},
};

static int set_behaviors(memcached_st *ring, const struct pool_config *config,
                         char error[CONFIG_ERROR_MAX])
{
    memcached_return_t rc = MEMCACHED_SUCCESS;
    if (config->distribution == DISTRIBUTION_KETAMA_WEIGHTED) {
        rc = memcached_behavior_set(ring, MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, 1);
    } else if (config->distribution == DISTRIBUTION_KETAMA) {
        rc = memcached_behavior_set(ring, MEMCACHED_BEHAVIOR_KETAMA, 1);
    }
    if (rc != MEMCACHED_SUCCESS) {
        snprintf(error, CONFIG_ERROR_MAX, "pool %s: the distribution is not available: %s",
                 config->name, memcached_strerror(ring, rc));
        return -1;
    }
    if (config->hash == HASH_DEFAULT) {
        return 0;
    }
    /* After the distribution, which sets a hash of its own. */
    rc = memcached_behavior_set(ring, MEMCACHED_BEHAVIOR_HASH, hashes[config->hash].hash);
    if (rc != MEMCACHED_SUCCESS) {
        snprintf(error, CONFIG_ERROR_MAX,
                 "pool %s: this libmemcached was built without the hash %s", config->name,
                 hashes[config->hash].name);
        return -1;
    }
    return 0;
}

/* One push for all servers: each one computes the ring anew. */
static int add_servers(memcached_st *ring, const struct pool_config *config)
{
    memcached_server_list_st list = NULL;
    memcached_return_t rc = MEMCACHED_SUCCESS;
    for (size_t i = 0; i < config->server_count && rc == MEMCACHED_SUCCESS; i++) {
        const struct server_config *s = &config->servers[i];
        /* Port 0 says that the name is the path of a unix socket, to libmemcached as well. */
        memcached_server_list_st longer = memcached_server_list_append_with_weight(
            list, s->endpoint.host, s->endpoint.port, s->weight, &rc);
        list = longer != NULL ? longer : list;
    }
    if (rc == MEMCACHED_SUCCESS) {
        rc = memcached_server_push(ring, list);
    }
    memcached_server_list_free(list);
    return rc == MEMCACHED_SUCCESS && memcached_server_count(ring) == config->server_count ? 0 : -1;
}

static void create_cache(struct shard *shard, size_t bytes)
{
    size_t sets = 1;
    if (bytes < SET_BYTES ||
        memcached_behavior_get(shard->ring, MEMCACHED_BEHAVIOR_HASH) != MEMCACHED_HASH_MD5) {
        return;
    }
    while (sets * 2 * SET_BYTES <= bytes) {
        sets *= 2;
    }
    /* From calloc, large memory costs nothing until it is used. */
    shard->known_memory = calloc(sets + 1, SET_BYTES);
    CHECK(shard->known_memory != NULL);
    uintptr_t at = (uintptr_t)shard->known_memory;
    shard->known = (void *)((at + SET_BYTES - 1) / SET_BYTES * SET_BYTES);
    shard->set_mask = sets - 1;
}

struct shard *shard_create(const struct pool_config *config, char error[CONFIG_ERROR_MAX])
{
    /* libmemcached ends the process when there are more. */
    if (config->server_count == 0 || config->server_count > CONFIG_SERVERS_MAX) {
        snprintf(error, CONFIG_ERROR_MAX, "pool %s: 1 to %d servers are needed, there are %zu",
                 config->name, CONFIG_SERVERS_MAX, config->server_count);
        return NULL;
    }
    struct shard *shard = calloc(1, sizeof *shard);
    CHECK(shard != NULL);
    shard->server_count = config->server_count;
    if (config->server_count == 1) {
        return shard;
    }
    shard->ring = memcached_create(NULL);
    CHECK(shard->ring != NULL);
    if (set_behaviors(shard->ring, config, error) < 0) {
        shard_destroy(&shard);
        return NULL;
    }
    if (add_servers(shard->ring, config) < 0) {
        snprintf(error, CONFIG_ERROR_MAX, "pool %s: libmemcached does not take the servers",
                 config->name);
        shard_destroy(&shard);
        return NULL;
    }
    create_cache(shard, config->hash_cache_bytes);
    return shard;
}

void shard_destroy(struct shard **slot)
{
    struct shard *shard = *slot;
    *slot = NULL;
    if (shard == NULL) {
        return;
    }
    if (shard->ring != NULL) {
        memcached_free(shard->ring);
    }
    free(shard->known_memory);
    free(shard);
}

static size_t ask_ring(const struct shard *shard, struct slice key)
{
    size_t index = memcached_generate_hash(shard->ring, key.p, key.len);
    CHECK(index < shard->server_count);
    return index;
}

static bool is_known(const struct known_key *known, struct slice key)
{
    return known->len == key.len && memcmp(known->key, key.p, key.len) == 0;
}

static size_t set_of(const struct shard *shard, struct slice key)
{
    return (size_t)(hash_bytes(key.p, key.len, 0) & shard->set_mask) * 2;
}

static size_t look_up(const struct shard *shard, struct known_key *set, struct slice key)
{
    for (size_t i = 0; i < 2; i++) {
        if (is_known(&set[i], key)) {
            return set[i].index;
        }
    }
    size_t index = ask_ring(shard, key);
    if (key.len > 0 && key.len <= sizeof set->key) {
        set[1] = set[0];
        set[0].len = (uint8_t)key.len;
        set[0].index = (uint8_t)index;
        memcpy(set[0].key, key.p, key.len);
    }
    return index;
}

size_t shard_index(const struct shard *shard, struct slice key)
{
    if (shard->ring == NULL) {
        return 0;
    }
    if (shard->known == NULL) {
        return ask_ring(shard, key);
    }
    return look_up(shard, &shard->known[set_of(shard, key)], key);
}

void shard_indexes(const struct shard *shard, const struct slice *keys, size_t count,
                   size_t *indexes)
{
    if (shard->known == NULL) {
        for (size_t i = 0; i < count; i++) {
            indexes[i] = shard_index(shard, keys[i]);
        }
        return;
    }
    /* Nearly each set has to come from far away: all of them at the same time. */
    for (size_t i = 0; i < count; i++) {
        indexes[i] = set_of(shard, keys[i]);
        __builtin_prefetch(&shard->known[indexes[i]]);
    }
    for (size_t i = 0; i < count; i++) {
        indexes[i] = look_up(shard, &shard->known[indexes[i]], keys[i]);
    }
}

uint16_t shard_vbucket(struct slice key, size_t vbucket_count)
{
    uint32_t hash = memcached_generate_hash_value(key.p, key.len, MEMCACHED_HASH_CRC);
    return (uint16_t)(hash & (vbucket_count - 1));
}
