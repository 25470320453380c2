/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What workers have in common: things by key, bounded in bytes, those that were least recently used
 * out first. They never change, so nothing is ever invalidated. The cache of sublists (cache.h) is
 * one, the indexes of runs (run_index.h) another.
 */
#ifndef LIST_CORE_LRU_H
#define LIST_CORE_LRU_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/slice.h"

struct lru_entry;

struct lru {
    void (*ref)(void *thing);   /* takes a reference */
    void (*unref)(void *thing); /* gives back the one that was taken for it */
    pthread_mutex_t lock;
    TAILQ_HEAD(lru_queue, lru_entry) queue;
    struct lru_entry **buckets;
    size_t bucket_count; /* a power of two */
    size_t entries;
    uint64_t bytes, reserved_bytes, limit_bytes;
};

void lru_init(struct lru *lru, uint64_t limit_bytes, void (*ref)(void *thing),
              void (*unref)(void *thing));
void lru_fini(struct lru *lru);

/* What is kept under the key, with a reference for the caller, or NULL. */
void *lru_get(struct lru *lru, struct slice key);
/* Is it there? Counts as no use. */
bool lru_has(struct lru *lru, struct slice key);
/* Keeps a reference to the thing under a copy of the key, in place of what is there; bytes: of its
 * memory. Returns how many others were thrown out for it. */
size_t lru_put(struct lru *lru, struct slice key, void *thing, size_t bytes);
/* Throws it out, if it is there. */
void lru_drop(struct lru *lru, struct slice key);
/* So many bytes more (or, below zero, less) are taken beside what is kept. False when that alone
 * is more than the limit. */
bool lru_reserve(struct lru *lru, int64_t bytes);

struct lru_stats {
    uint64_t bytes, limit_bytes, entries;
};
void lru_get_stats(struct lru *lru, struct lru_stats *out);

#endif
