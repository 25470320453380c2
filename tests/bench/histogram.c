/* SPDX-License-Identifier: BSD-3-Clause */
#include "histogram.h"

#include <math.h>

/* Below 2 * SUB durations are exact; from there on each power of two has SUB buckets. */
#define SUB_BITS 6
#define SUB (1u << SUB_BITS)

static unsigned bucket_of(uint64_t ns)
{
    if (ns < 2 * SUB) {
        return (unsigned)ns;
    }
    unsigned shift = 63 - (unsigned)__builtin_clzll(ns) - SUB_BITS;
    return shift * SUB + (unsigned)(ns >> shift);
}

static uint64_t bucket_end(unsigned bucket)
{
    if (bucket < 2 * SUB) {
        return bucket;
    }
    unsigned shift = bucket / SUB - 1;
    uint64_t first = (uint64_t)(bucket % SUB + SUB) << shift;
    return first + ((uint64_t)1 << shift) - 1;
}

void histogram_add(struct histogram *histogram, uint64_t duration_ns, uint64_t count)
{
    histogram->counts[bucket_of(duration_ns)] += count;
    histogram->total += count;
    if (count > 0 && duration_ns > histogram->max_ns) {
        histogram->max_ns = duration_ns;
    }
}

uint64_t histogram_at(const struct histogram *histogram, double quantile)
{
    uint64_t wanted = (uint64_t)ceil((double)histogram->total * quantile);
    uint64_t seen = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->counts[i];
        if (seen > 0 && seen >= wanted) {
            uint64_t end = bucket_end(i);
            return end < histogram->max_ns ? end : histogram->max_ns;
        }
    }
    return histogram->max_ns;
}
