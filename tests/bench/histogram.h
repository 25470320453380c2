/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts of durations in buckets that grow with the duration: 64 per power of two, so that what is
 * read back is at most 1.6 % too large. */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BUCKETS 4096

struct histogram {
    uint64_t counts[HISTOGRAM_BUCKETS];
    uint64_t total;
    uint64_t max_ns;
};

/* Adds `count` durations of the same length. */
void histogram_add(struct histogram *histogram, uint64_t duration_ns, uint64_t count);

/* The duration that the share `quantile` (0 to 1) of all does not exceed; 0 when there are none. */
uint64_t histogram_at(const struct histogram *histogram, double quantile);

#endif
