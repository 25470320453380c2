/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/lru.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define BUCKETS_MIN ((size_t)1024)

struct lru_entry {
    TAILQ_ENTRY(lru_entry) link; /* most recently used first */
    struct lru_entry *next;      /* in the bucket */
    void *thing;
    size_t bytes;
    uint64_t hash;
    size_t key_len;
    char key[];
};

void lru_init(struct lru *s, uint64_t limit_bytes, void (*ref)(void *), void (*unref)(void *))
{
    *s = (struct lru){.ref = ref, .unref = unref, .limit_bytes = limit_bytes};
    pthread_mutex_init(&s->lock, NULL);
    TAILQ_INIT(&s->queue);
    s->bucket_count = BUCKETS_MIN;
    s->buckets = calloc(s->bucket_count, sizeof(struct lru_entry *));
    CHECK(s->buckets != NULL);
}

static struct slice entry_key(const struct lru_entry *entry)
{
    return slice_make(entry->key, entry->key_len);
}

static struct lru_entry **find(struct lru *s, struct slice key, uint64_t hash)
{
    struct lru_entry **at = &s->buckets[hash & (s->bucket_count - 1)];
    while (*at != NULL && !((*at)->hash == hash && slice_equal(entry_key(*at), key))) {
        at = &(*at)->next;
    }
    return at;
}

static void remove_entry(struct lru *s, struct lru_entry **at)
{
    struct lru_entry *entry = *at;
    *at = entry->next;
    TAILQ_REMOVE(&s->queue, entry, link);
    s->bytes -= entry->bytes;
    s->entries--;
    s->unref(entry->thing);
    free(entry);
}

static size_t make_room(struct lru *s)
{
    size_t evicted = 0;
    while (s->bytes + s->reserved_bytes > s->limit_bytes && !TAILQ_EMPTY(&s->queue)) {
        struct lru_entry *oldest = TAILQ_LAST(&s->queue, lru_queue);
        remove_entry(s, find(s, entry_key(oldest), oldest->hash));
        evicted++;
    }
    return evicted;
}

void lru_fini(struct lru *s)
{
    s->limit_bytes = 0;
    make_room(s);
    CHECK(s->entries == 0);
    free(s->buckets);
    pthread_mutex_destroy(&s->lock);
}

static void enter(struct lru *s, struct lru_entry *entry)
{
    struct lru_entry **bucket = &s->buckets[entry->hash & (s->bucket_count - 1)];
    entry->next = *bucket;
    *bucket = entry;
}

static void grow(struct lru *s)
{
    struct lru_entry *entry;
    free(s->buckets);
    s->bucket_count *= 2;
    s->buckets = calloc(s->bucket_count, sizeof(struct lru_entry *));
    CHECK(s->buckets != NULL);
    TAILQ_FOREACH(entry, &s->queue, link)
    {
        enter(s, entry);
    }
}

static uint64_t hash_of(struct slice key)
{
    return hash_bytes(key.p, key.len, 0);
}

void *lru_get(struct lru *s, struct slice key)
{
    uint64_t hash = hash_of(key);
    void *found = NULL;
    pthread_mutex_lock(&s->lock);
    struct lru_entry *entry = *find(s, key, hash);
    if (entry != NULL) {
        found = entry->thing;
        s->ref(found);
        TAILQ_REMOVE(&s->queue, entry, link);
        TAILQ_INSERT_HEAD(&s->queue, entry, link);
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

bool lru_has(struct lru *s, struct slice key)
{
    uint64_t hash = hash_of(key);
    pthread_mutex_lock(&s->lock);
    bool has = *find(s, key, hash) != NULL;
    pthread_mutex_unlock(&s->lock);
    return has;
}

size_t lru_put(struct lru *s, struct slice key, void *thing, size_t bytes)
{
    struct lru_entry *entry = malloc(sizeof *entry + key.len);
    CHECK(entry != NULL);
    *entry = (struct lru_entry){.thing = thing,
                                .bytes = sizeof *entry + key.len + bytes,
                                .hash = hash_of(key),
                                .key_len = key.len};
    memcpy(entry->key, key.p, key.len);
    pthread_mutex_lock(&s->lock);
    s->ref(thing);
    struct lru_entry **at = find(s, key, entry->hash);
    if (*at != NULL) {
        remove_entry(s, at);
    }
    if (s->entries >= s->bucket_count) {
        grow(s);
    }
    enter(s, entry);
    TAILQ_INSERT_HEAD(&s->queue, entry, link);
    s->bytes += entry->bytes;
    s->entries++;
    size_t evicted = make_room(s);
    pthread_mutex_unlock(&s->lock);
    return evicted;
}

void lru_drop(struct lru *s, struct slice key)
{
    pthread_mutex_lock(&s->lock);
    struct lru_entry **at = find(s, key, hash_of(key));
    if (*at != NULL) {
        remove_entry(s, at);
    }
    pthread_mutex_unlock(&s->lock);
}

bool lru_reserve(struct lru *s, int64_t bytes)
{
    pthread_mutex_lock(&s->lock);
    s->reserved_bytes += (uint64_t)bytes;
    make_room(s);
    bool fits = s->reserved_bytes <= s->limit_bytes;
    pthread_mutex_unlock(&s->lock);
    return fits;
}

void lru_get_stats(struct lru *s, struct lru_stats *out)
{
    pthread_mutex_lock(&s->lock);
    *out = (struct lru_stats){.bytes = s->bytes + s->reserved_bytes,
                              .limit_bytes = s->limit_bytes,
                              .entries = s->entries};
    pthread_mutex_unlock(&s->lock);
}
