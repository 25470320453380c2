/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/check.h"
#include "list/format/sublist.h"

#define BUCKETS_MIN ((size_t)1024)

struct cache_entry {
    TAILQ_ENTRY(cache_entry) lru; /* most recently used first */
    struct cache_entry *next;     /* in the bucket */
    struct sublist *sublist;
    size_t bytes;
    uint64_t hash;
    size_t key_len;
    char key[];
};

struct cache {
    pthread_mutex_t lock;
    TAILQ_HEAD(cache_lru, cache_entry) lru;
    struct cache_entry **buckets;
    size_t bucket_count; /* a power of two */
    size_t entries;
    uint64_t bytes, limit_bytes;
};

struct cache *cache_create(uint64_t limit_bytes)
{
    struct cache *c = calloc(1, sizeof *c);
    CHECK(c != NULL);
    pthread_mutex_init(&c->lock, NULL);
    TAILQ_INIT(&c->lru);
    c->bucket_count = BUCKETS_MIN;
    c->buckets = calloc(c->bucket_count, sizeof *c->buckets);
    CHECK(c->buckets != NULL);
    c->limit_bytes = limit_bytes;
    return c;
}

static struct cache_entry **find(struct cache *c, struct slice key, uint64_t hash)
{
    struct cache_entry **at = &c->buckets[hash & (c->bucket_count - 1)];
    while (*at != NULL &&
           !((*at)->hash == hash && slice_equal(slice_make((*at)->key, (*at)->key_len), key))) {
        at = &(*at)->next;
    }
    return at;
}

static void remove_entry(struct cache *c, struct cache_entry **at)
{
    struct cache_entry *e = *at;
    *at = e->next;
    TAILQ_REMOVE(&c->lru, e, lru);
    c->bytes -= e->bytes;
    c->entries--;
    sublist_unkeep(e->sublist);
    sublist_unref(&e->sublist);
    free(e);
}

void cache_destroy(struct cache **slot)
{
    struct cache *c = *slot;
    *slot = NULL;
    if (c == NULL) {
        return;
    }
    while (!TAILQ_EMPTY(&c->lru)) {
        struct cache_entry *e = TAILQ_FIRST(&c->lru);
        remove_entry(c, find(c, slice_make(e->key, e->key_len), e->hash));
    }
    free(c->buckets);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

static void grow(struct cache *c)
{
    size_t old_count = c->bucket_count;
    struct cache_entry **old = c->buckets;
    c->bucket_count *= 2;
    c->buckets = calloc(c->bucket_count, sizeof *c->buckets);
    CHECK(c->buckets != NULL);
    for (size_t i = 0; i < old_count; i++) {
        while (old[i] != NULL) {
            struct cache_entry *e = old[i];
            old[i] = e->next;
            struct cache_entry **bucket = &c->buckets[e->hash & (c->bucket_count - 1)];
            e->next = *bucket;
            *bucket = e;
        }
    }
    free(old);
}

struct sublist *cache_get(struct cache *c, struct slice key)
{
    uint64_t hash = hash_bytes(key.p, key.len, 0);
    struct sublist *found = NULL;
    pthread_mutex_lock(&c->lock);
    struct cache_entry *e = *find(c, key, hash);
    if (e != NULL) {
        found = sublist_ref(e->sublist);
        TAILQ_REMOVE(&c->lru, e, lru);
        TAILQ_INSERT_HEAD(&c->lru, e, lru);
    }
    pthread_mutex_unlock(&c->lock);
    return found;
}

int cache_has(struct cache *c, struct slice key)
{
    uint64_t hash = hash_bytes(key.p, key.len, 0);
    pthread_mutex_lock(&c->lock);
    int has = *find(c, key, hash) != NULL;
    pthread_mutex_unlock(&c->lock);
    return has;
}

static size_t make_room(struct cache *c, size_t bytes)
{
    size_t evicted = 0;
    while (c->bytes + bytes > c->limit_bytes && !TAILQ_EMPTY(&c->lru)) {
        struct cache_entry *oldest = TAILQ_LAST(&c->lru, cache_lru);
        remove_entry(c, find(c, slice_make(oldest->key, oldest->key_len), oldest->hash));
        evicted++;
    }
    return evicted;
}

size_t cache_put(struct cache *c, struct slice key, struct sublist *sublist)
{
    uint64_t hash = hash_bytes(key.p, key.len, 0);
    size_t bytes = sizeof(struct cache_entry) + key.len + sublist_memory_bytes(sublist);
    /* One sublist must not empty the whole cache for itself. */
    if (bytes > c->limit_bytes / 4) {
        return 0;
    }
    struct cache_entry *e = malloc(sizeof *e + key.len);
    CHECK(e != NULL);
    *e = (struct cache_entry){
        .sublist = sublist_ref(sublist), .bytes = bytes, .hash = hash, .key_len = key.len};
    sublist_keep(sublist);
    memcpy(e->key, key.p, key.len);
    pthread_mutex_lock(&c->lock);
    struct cache_entry **at = find(c, key, hash);
    if (*at != NULL) {
        remove_entry(c, at);
    }
    size_t evicted = make_room(c, bytes);
    if (c->entries >= c->bucket_count) {
        grow(c);
    }
    struct cache_entry **bucket = &c->buckets[hash & (c->bucket_count - 1)];
    e->next = *bucket;
    *bucket = e;
    TAILQ_INSERT_HEAD(&c->lru, e, lru);
    c->bytes += bytes;
    c->entries++;
    pthread_mutex_unlock(&c->lock);
    return evicted;
}

void cache_get_stats(struct cache *c, struct cache_stats *out)
{
    pthread_mutex_lock(&c->lock);
    *out = (struct cache_stats){
        .bytes = c->bytes, .limit_bytes = c->limit_bytes, .sublists = c->entries};
    pthread_mutex_unlock(&c->lock);
}
