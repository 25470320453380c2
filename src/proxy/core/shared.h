/* SPDX-License-Identifier: BSD-3-Clause */
/* What all workers see. Everything but the atomics stays as it is while threads run. */
#ifndef PROXY_CORE_SHARED_H
#define PROXY_CORE_SHARED_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/metric.h"
#include "proxy/core/timing.h"

struct cache;
struct config;
struct listen_set;
struct resolver;
struct slow_log;
struct worker;

struct shared {
    const struct config *config;
    struct worker **workers;
    size_t worker_count;
    struct cache **caches; /* by list_policy.index; several policies may share one */
    struct run_indexes *indexes;
    struct listen_set *listen;
    struct resolver *resolver;
    struct slow_log *slow;
    struct timing_baseline timing_baseline;
    uint64_t started_us; /* on the clock that nothing sets back */
    _Atomic uint32_t connections;
    _Atomic uint32_t reserved;             /* of these, those in reserve: proxy/client/reserve.h */
    _Atomic uint64_t doomed_bytes;         /* of requests of clients closed for want of memory */
    _Atomic uint64_t baseline[METRIC_MAX]; /* what `stats reset` subtracts */
};

#endif
