/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef POOL_LINK_SERVER_STATS_H
#define POOL_LINK_SERVER_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"
#include "config/config.h"

/* Why a connection was given up over what the server answered: GARBLED(name, text) */
#define GARBLED_TABLE(GARBLED) \
    GARBLED(garbage, "garbage") \
    GARBLED(unasked, "an answer without a request") \
    GARBLED(misfit, "an answer that does not fit its request") \
    GARBLED(dropped, "it has dropped answers for want of memory")

enum garbled {
#define GARBLED_ENUM(name, text) GARBLED_##name,
    GARBLED_TABLE(GARBLED_ENUM)
#undef GARBLED_ENUM
        GARBLED_COUNT
};

/* The reason's name; it lives for ever. */
const char *garbled_name(enum garbled reason);

/* A snapshot for `stats backends`: written by the pool's worker, readable from any thread as long
 * as the pool lives. */
struct server_stats {
    char name[SERVER_NAME_MAX];
    char state[16]; /* "up", "connecting", "ejected", "down", "idle", "draining", "drained" */
    int64_t silent_since_s;  /* it has not answered since that second; 0: it does */
    int64_t drained_since_s; /* an operator has drained it in that second; 0: it is in use */
    bool is_ejected;         /* a connection is, and its probe was not answered yet */
    char version[32];
    char address[CONFIG_NAME_MAX + 16]; /* of the last connection, "" = none yet */
    uint64_t requests, errors, timeouts, ejections, connects, connect_failures, pending;
    uint64_t refused_full;           /* operations refused for want of memory */
    uint64_t garbled[GARBLED_COUNT]; /* connections given up over what it answered */
    uint64_t evictions;              /* the server's own count */
    int64_t full_s, garbled_s;       /* the second of the last one of these; 0: none */
    struct histogram_sum times;      /* from a request's submission to its answer */
    /* What the last looks at its `stats` and its times have found, see health_watch. */
    int64_t restarted_s; /* about then; 0: not that it is known */
    uint64_t restarts;
    uint64_t items;         /* at the last look, by its own count */
    uint64_t evicted;       /* items between the last two looks */
    uint64_t recent_count;  /* answers between them */
    uint64_t recent_p50_us; /* half of these took no longer */
    uint64_t recent_p99_us;
    uint64_t others_p50_us; /* the same of the pool's other servers: the median of theirs */
    bool is_slow;           /* far slower than these, in two looks */
};

#endif
