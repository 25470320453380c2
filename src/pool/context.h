/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the servers and connections of one pool share. Owned by the pool; for this folder only.
 */
#ifndef POOL_CONTEXT_H
#define POOL_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/rng.h"
#include "config/config.h"
#include "pool/pool.h"

struct cluster;
struct event;
struct upstream;
struct wire;
struct tls_trust;
struct wire_login;
TAILQ_HEAD(upstream_list, upstream);

struct pool_context {
    const struct pool_config *config;
    const struct wire *wire;        /* how the servers are spoken to */
    const struct wire_login *login; /* as whom, or NULL */
    struct tls_trust *tls;          /* connections are encrypted; or NULL */
    struct cluster *cluster;        /* whose nodes they are, or NULL */
    struct event_base *base;
    struct now *now; /* the worker's */
    struct metrics *metrics;
    struct rng rng; /* for back-off */
    /* Exchanges that ended without an answer. They are handed back by finish_timer, in a turn of
     * their own, so that no done() is called from within pool_submit or pool_flush. */
    struct exchange_list finished;
    struct event *finish_timer;
    struct upstream_list dirty; /* connections with something new to write */
    size_t busy;                /* exchanges of submitters that are not done() */
    bool watch;                 /* see pool_set_watch */
    bool closing;
};

/* To be called first by each of the pool's own events: after a long wait the worker's clock still
 * shows the time before it, and a deadline that is over would not be seen. */
static inline void context_woke(struct pool_context *context)
{
    *context->now = clock_now();
}

#endif
