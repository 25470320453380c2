/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef POOL_LINK_SERVER_STATS_H
#define POOL_LINK_SERVER_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"
#include "config/config.h"

/* A snapshot for `stats backends`: written by the pool's worker, readable from any thread as long
 * as the pool lives. */
struct server_stats {
    char name[SERVER_NAME_MAX];
    char state[16];         /* "up", "connecting", "ejected", "down", "idle" */
    int64_t silent_since_s; /* it has not answered since that second; 0: it does */
    bool is_ejected;        /* a connection is, and its probe was not answered yet */
    char version[32];
    char address[CONFIG_NAME_MAX + 16]; /* of the last connection, "" = none yet */
    uint64_t requests, errors, timeouts, ejections, connects, connect_failures, pending, evictions;
    struct histogram_sum times; /* from a request's submission to its answer */
};

#endif
