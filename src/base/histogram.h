/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A histogram of times in fixed memory: eight buckets for each doubling, from 1 us to two minutes,
 * so that a quantile is right to an eighth of its value. One thread adds, any may read, and the
 * histograms of several threads add up.
 */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_SUB_BITS 3
/* Of the highest bit that has buckets of its own: 2^27 us. Longer times are in the last bucket. */
#define HISTOGRAM_TOP_BIT 26
#define HISTOGRAM_BUCKETS ((HISTOGRAM_TOP_BIT - HISTOGRAM_SUB_BITS + 2) << HISTOGRAM_SUB_BITS)

struct histogram {
    _Atomic uint64_t counts[HISTOGRAM_BUCKETS];
    /* The writer's own: what was added last, and where, or NULL. */
    uint64_t last_us;
    _Atomic uint64_t *last;
};

/* A copy that one thread has for itself, of one or several added up. */
struct histogram_sum {
    uint64_t counts[HISTOGRAM_BUCKETS];
    uint64_t count;  /* of all buckets */
    uint64_t sum_us; /* of all times, each taken for the middle of its bucket */
};

static inline size_t histogram_bucket(uint64_t us)
{
    if (us < 1u << HISTOGRAM_SUB_BITS) {
        return us;
    }
    unsigned top = 63u - (unsigned)__builtin_clzll(us);
    if (top > HISTOGRAM_TOP_BIT) {
        return HISTOGRAM_BUCKETS - 1;
    }
    return ((top - HISTOGRAM_SUB_BITS) << HISTOGRAM_SUB_BITS) + (us >> (top - HISTOGRAM_SUB_BITS));
}

/* The first value that is beyond the bucket. */
uint64_t histogram_bucket_end(size_t bucket);

/* histogram_add, of a time that may be another one than the last. */
void histogram_add_other(struct histogram *histogram, uint64_t us);

/* Adds a time that is the same as the last one. False where it is another. A worker reads its clock
 * once in a turn, so that of a pipeline many take the same time to the microsecond. */
static inline bool histogram_add_again(struct histogram *h, uint64_t us)
{
    if (us != h->last_us || h->last == NULL) {
        return false;
    }
    /* A plain add for the single writer: no bus lock. */
    uint64_t n = atomic_load_explicit(h->last, memory_order_relaxed);
    atomic_store_explicit(h->last, n + 1, memory_order_relaxed);
    return true;
}

/* Adds a time. */
static inline void histogram_add(struct histogram *h, uint64_t us)
{
    if (!histogram_add_again(h, us)) {
        histogram_add_other(h, us);
    }
}

/* Adds what is in from. */
void histogram_sum_add(struct histogram_sum *sum, const struct histogram *from);
void histogram_sum_join(struct histogram_sum *sum, const struct histogram_sum *from);
/* Takes what is in from away: what has come since it was made. */
void histogram_sum_take(struct histogram_sum *sum, const struct histogram_sum *from);
/* The time that the part q of all is not longer than, in us: 0.5 is the median. The upper end of
 * its bucket. 0 where nothing was counted. */
uint64_t histogram_sum_quantile(const struct histogram_sum *sum, double q);
/* How many took less than 2^bit us; bit: HISTOGRAM_SUB_BITS to HISTOGRAM_TOP_BIT. */
uint64_t histogram_sum_below(const struct histogram_sum *sum, unsigned bit);

#endif
