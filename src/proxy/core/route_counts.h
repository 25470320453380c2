/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens to plain keys by their routes: of each route, in each worker. */
#ifndef PROXY_CORE_ROUTE_COUNTS_H
#define PROXY_CORE_ROUTE_COUNTS_H

#include "proxy/core/metrics.h"

/* The first is of the route alone; the others are counters of the worker by the same names, in the
 * same order. */
#define ROUTE_COUNT_TABLE(COUNT) \
    COUNT(requests, "requests for keys of the route, each key of a get or gat") \
    COUNT(failover_reads, "reads sent to the failover pool") \
    COUNT(failover_sets, "values stored in the failover pool") \
    COUNT(failover_deletes, "deletes sent to the failover pool as well") \
    COUNT(shadow_requests, "requests sent to the shadow pool as well") \
    COUNT(shadow_dropped, "requests not sent there because of shadow_bytes") \
    COUNT(shadow_skipped, \
          "requests not sent there, since they mean nothing there: cas and the like") \
    COUNT(shadow_failed, "requests sent there that had no answer")

enum route_count {
#define ROUTE_COUNT_ENUM(name, help) ROUTE_##name,
    ROUTE_COUNT_TABLE(ROUTE_COUNT_ENUM)
#undef ROUTE_COUNT_ENUM
        ROUTE_COUNTS
};

/* Of one route. Only the worker adds; any thread may read. */
struct route_counts {
    _Atomic uint64_t value[ROUTE_COUNTS];
};

/* What a worker knows of a route. */
struct route_state {
    struct route_counts counts;
    size_t shadow_bytes; /* of requests to the shadow pool that are under way */
};

static inline void route_counts_inc(struct route_counts *counts, enum route_count which)
{
    uint64_t v = atomic_load_explicit(&counts->value[which], memory_order_relaxed);
    atomic_store_explicit(&counts->value[which], v + 1, memory_order_relaxed);
}

#endif
