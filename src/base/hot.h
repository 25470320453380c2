/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which names are asked for most, in bounded memory ("space saving": Metwally, Agrawal, El Abbadi,
 * 2005). A name that is not among those that are kept takes the place of the rarest one, and its
 * count. So a name that has more than 1/HOT_NAMES of all is always kept, and counts are too high by
 * the rarest count at most. Counts are halved now and then, so that they are of the last minutes.
 *
 * One thread counts, any may read: a lock, which the counting thread takes for one name in
 * HOT_SAMPLE only.
 */
#ifndef BASE_HOT_H
#define BASE_HOT_H

#include <pthread.h>
#include <stdbool.h>

#include "base/check.h"
#include "base/slice.h"

#define HOT_NAMES 128
/* Longest name, memcached's; longer ones are cut. */
#define HOT_NAME_BYTES 250
/* One name in so many is looked at: a prime, so that it is not always the same one of a pattern. */
#define HOT_SAMPLE 31
/* Counts are halved so often. */
#define HOT_HALF_S 60

struct hot_name {
    uint64_t hash;
    uint64_t count;
    uint8_t len;
    char bytes[HOT_NAME_BYTES];
};

struct hot {
    pthread_mutex_t lock; /* for what follows */
    uint64_t total;       /* of all names, kept or not */
    size_t count;
    struct hot_name names[HOT_NAMES];
    int64_t halved_s;
    unsigned next; /* names until one is looked at; the counting thread's own */
};

void hot_init(struct hot *hot);
void hot_fini(struct hot *hot);

/* Counts a name, by the second now_s. */
void hot_count(struct hot *hot, struct slice name, int64_t now_s);

/* Is it the turn of one that is to be counted? */
static inline bool hot_is_next(struct hot *hot)
{
    if (LIKELY(hot->next-- != 0)) {
        return false;
    }
    hot->next = HOT_SAMPLE - 1;
    return true;
}

/* Those that several have counted, added up. */
struct hot_sum {
    uint64_t total;
    size_t count;
    size_t cap;
    struct hot_name *names; /* the most frequent first, once it is sorted */
};

/* Adds those of one; starts with a zeroed sum. Thread-safe. */
void hot_sum_add(struct hot_sum *sum, struct hot *from);
void hot_sum_sort(struct hot_sum *sum);
void hot_sum_fini(struct hot_sum *sum);

#endif
