/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters. Each folder that counts names its own in a header metrics.h: a table of
 * METRIC(name, help), the name as `stats` prints it; memcached's own name where it means the same.
 * Each table has a range of numbers, which proxy/stats.c checks not to overlap. A worker has one
 * set of all counters, in which its engine, pools and clients count; `stats` adds the sets up.
 */
#ifndef BASE_METRIC_H
#define BASE_METRIC_H

#include <stdatomic.h>
#include <stdint.h>

/* Numbers of counters are below this. */
#define METRIC_MAX 160

struct metric_row {
    const char *name;
    const char *help; /* what it counts */
};
#define METRIC_ROW(name, help) {#name, help},

struct metric_table {
    const struct metric_row *rows;
    unsigned first; /* the number of the first row */
    unsigned count;
};

/* One worker's counters. Only their owner adds; any thread may read. */
struct metrics {
    _Atomic uint64_t value[METRIC_MAX];
};

/* A plain add for the single writer: no bus lock. */
static inline void metric_add(struct metrics *m, unsigned which, uint64_t n)
{
    uint64_t v = atomic_load_explicit(&m->value[which], memory_order_relaxed);
    atomic_store_explicit(&m->value[which], v + n, memory_order_relaxed);
}

static inline void metric_inc(struct metrics *m, unsigned which)
{
    metric_add(m, which, 1);
}

static inline uint64_t metric_get(const struct metrics *m, unsigned which)
{
    return atomic_load_explicit(&m->value[which], memory_order_relaxed);
}

/* The name of one that is in the table. */
static inline const char *metric_name(const struct metric_table *table, unsigned which)
{
    return table->rows[which - table->first].name;
}

#endif
