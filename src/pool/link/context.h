/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the servers and connections of one pool share. Owned by the pool; for this folder only.
 */
#ifndef POOL_LINK_CONTEXT_H
#define POOL_LINK_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/rng.h"
#include "config/config.h"
#include "pool/link/exchange.h"
#include "pool/link/metrics.h"

struct cluster;
struct event;
struct event_base;
struct handshake;

struct upstream;
struct wire;
struct tls_trust;
struct wire_login;
struct wire_news;
TAILQ_HEAD(upstream_list, upstream);

/* What a cluster does about its nodes. */
struct cluster_hooks {
    /* Is that answer, or end without one, kept from the submitter, since the request is sent again?
     * Asked once for each time that a server was given an exchange of a submitter. */
    bool (*keeps)(struct cluster *cluster, struct exchange *exchange, const struct be_reply *reply);
    /* A handshake is over; what the node has told in it. */
    void (*learn)(struct cluster *cluster, struct server *from, const struct handshake *hs);
    /* The node has sent its map in it. */
    void (*take_map)(struct cluster *cluster, struct server *from, struct slice json);
    /* It says by itself that it has a map. */
    void (*hear)(struct cluster *cluster, struct server *from, const struct wire_news *news);
};

struct pool_context {
    const struct pool_config *config;
    const struct wire *wire;           /* how the servers are spoken to */
    const struct wire_login *login;    /* as whom, or NULL */
    struct tls_trust *tls;             /* connections are encrypted; or NULL. The pool's */
    struct cluster *cluster;           /* whose nodes they are, or NULL */
    const struct cluster_hooks *hooks; /* of the cluster */
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

/* Hands an answer of a server, or an end without one, to the submitter, unless it is kept. */
static inline void exchange_answer(struct pool_context *context, struct exchange *x,
                                   const struct be_reply *reply)
{
    if (!x->is_internal) {
        if (UNLIKELY(context->cluster != NULL) &&
            context->hooks->keeps(context->cluster, x, reply)) {
            return;
        }
        context->busy--;
    }
    x->done(x, reply);
}

#endif
