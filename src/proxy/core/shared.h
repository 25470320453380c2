/* SPDX-License-Identifier: BSD-3-Clause */
/* What all workers see. Everything but the atomics stays as it is while threads run. */
#ifndef PROXY_CORE_SHARED_H
#define PROXY_CORE_SHARED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/metric.h"
#include "config/config.h"
#include "list/core/own_changes.h"
#include "proxy/core/hot_keys.h"
#include "proxy/core/timing.h"
#include "proxy/core/trace.h"

struct cache;
struct gate;
struct listen_set;
struct resolver;
struct slow_log;
struct worker;

/* What another thread wants workers to do between two turns: proxy_ask(), proxy_change(). */
struct asking {
    pthread_mutex_t turn; /* of the thread that asks */
    pthread_mutex_t lock; /* of what follows, and of all jobs */
    pthread_cond_t changed;
    bool rests;     /* workers are to wait */
    size_t resting; /* so many do */
};

/* How attempts to read the configuration anew have ended. */
struct reload_figures {
    uint64_t good, failed;
    int64_t last_good_s;          /* wall clock; the start counts */
    char error[CONFIG_ERROR_MAX]; /* of the last one; "": it was good */
};
struct reloads {
    pthread_mutex_t lock;
    struct reload_figures last;
};

/* Until when the proxy may take its gate for read: see gate.h. */
struct gate_fresh {
    _Atomic uint64_t until_us; /* UINT64_MAX: it need not be read */
    _Atomic uint64_t gap_us;   /* the end of the last time in which it was not; 0: there was none */
};

struct shared {
    const struct config *config; /* changes while all workers rest */
    struct gate *gate;
    /* By pool: GATE_QUIET, or a list verb must ask the gate (gate.h). */
    _Atomic uint8_t gate_states[CONFIG_POOLS_MAX];
    struct gate_fresh gate_fresh[CONFIG_POOLS_MAX]; /* by pool */
    /* By pool: from when on lists move to its next; UINT64_MAX: not in this step (gate.h). */
    _Atomic uint64_t moves_at_us[CONFIG_POOLS_MAX];
    /* By pool: enum pool_step, as the gate says. */
    _Atomic uint8_t steps[CONFIG_POOLS_MAX];
    struct worker **workers;
    size_t worker_count;
    struct cache **caches; /* by list_policy.index; several policies may share one */
    struct run_indexes *indexes;
    struct own_changes own_changes;
    struct listen_set *listen;
    struct resolver *resolver;
    struct slow_log *slow;
    struct timing_baseline timing_baseline;
    struct asking asking;
    struct reloads reloads;
    struct trace trace;
    struct hot_keys hot_keys;
    uint64_t started_us;      /* on the clock that nothing sets back */
    atomic_bool serves;       /* clients are accepted */
    atomic_bool receives;     /* the process before still hands over clients */
    _Atomic int heir;         /* the connection to the process that takes the clients; -1 */
    _Atomic uint64_t clients; /* ever */
    _Atomic uint32_t connections;
    _Atomic uint32_t reserved;             /* of these, those in reserve: proxy/client/reserve.h */
    _Atomic uint64_t doomed_bytes;         /* of requests of clients closed for want of memory */
    _Atomic uint64_t baseline[METRIC_MAX]; /* what `stats reset` subtracts */
};

#endif
