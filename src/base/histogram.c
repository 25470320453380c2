/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/histogram.h"

#include "base/check.h"

uint64_t histogram_bucket_end(size_t bucket)
{
    uint64_t eighths = (bucket & ((1u << HISTOGRAM_SUB_BITS) - 1)) + (1u << HISTOGRAM_SUB_BITS) + 1;
    size_t group = bucket >> HISTOGRAM_SUB_BITS;
    return group == 0 ? bucket + 1 : eighths << (group - 1);
}

void histogram_add_other(struct histogram *h, uint64_t us)
{
    h->last_us = us;
    h->last = &h->counts[histogram_bucket(us)];
    (void)histogram_add_again(h, us);
}

static uint64_t middle_of(size_t bucket)
{
    return bucket == 0 ? 0
                       : (histogram_bucket_end(bucket - 1) + histogram_bucket_end(bucket) - 1) / 2;
}

void histogram_sum_add(struct histogram_sum *sum, const struct histogram *from)
{
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        uint64_t n = atomic_load_explicit(&from->counts[i], memory_order_relaxed);
        sum->counts[i] += n;
        sum->count += n;
        sum->sum_us += n * middle_of(i);
    }
}

void histogram_sum_join(struct histogram_sum *sum, const struct histogram_sum *from)
{
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        sum->counts[i] += from->counts[i];
    }
    sum->count += from->count;
    sum->sum_us += from->sum_us;
}

void histogram_sum_take(struct histogram_sum *sum, const struct histogram_sum *from)
{
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        sum->counts[i] -= from->counts[i];
    }
    sum->count -= from->count;
    sum->sum_us -= from->sum_us;
}

uint64_t histogram_sum_quantile(const struct histogram_sum *sum, double q)
{
    uint64_t seen = 0;
    uint64_t wanted = (uint64_t)(q * (double)sum->count);
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += sum->counts[i];
        if (seen > 0 && seen >= wanted) {
            return histogram_bucket_end(i) - 1;
        }
    }
    return 0;
}

uint64_t histogram_sum_below(const struct histogram_sum *sum, unsigned bit)
{
    CHECK(bit >= HISTOGRAM_SUB_BITS && bit <= HISTOGRAM_TOP_BIT);
    uint64_t below = 0;
    size_t end = (size_t)(bit - HISTOGRAM_SUB_BITS + 1) << HISTOGRAM_SUB_BITS;
    for (size_t i = 0; i < end; i++) {
        below += sum->counts[i];
    }
    return below;
}
