/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker: one thread with its own event base, listening sockets, clients, backend connections and
 * list engine. Nothing that changes is shared between workers but what struct shared names.
 *
 * One turn of the loop:
 *     wait     libevent's callbacks move bytes and complete exchanges
 *     flush    list engine, clients' requests and answers, until nothing moves any more; then
 *              sockets are written
 *
 * Here stands what the rooms of this folder need of their worker. What one file alone needs is its
 * own: thread.c keeps the thread and its events, each module its timers.
 */
#ifndef PROXY_CORE_WORKER_H
#define PROXY_CORE_WORKER_H

#include <sys/queue.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/spare.h"
#include "config/config.h"
#include "proxy/core/laggards.h"
#include "proxy/core/metrics.h"
#include "proxy/core/timing.h"

struct client;
struct client_handlers;
struct deadlines;
struct engine;
struct event_base;
struct listener;
struct moving;
struct multiget;
struct pending;
struct pool;
struct pressure;
struct request_clock;
struct route_state;
struct shared;

TAILQ_HEAD(client_list, client);
TAILQ_HEAD(pending_list, pending);

struct worker {
    struct shared *shared;
    const struct config *config;
    size_t index;
    struct event_base *base;
    struct now now; /* read once per turn, see worker_woke */
    bool now_fresh;
    bool draining;
    bool moving; /* and its clients go to another process: client/move.h */
    bool ending; /* its pools go, one after the other: nothing new is sent */
    int wake_fd; /* eventfd */
    struct metrics metrics;

    /* Below. */
    struct pool **pools;        /* by list_policy.pool_index */
    struct pool *plain_pool;    /* takes all plain keys, as lines; NULL: see proxy/plain/route.h */
    struct route_state *routes; /* by route_config.index */
    struct engine *engine;
    struct moving **moves; /* by pool_index, of pools with next; NULL: there is none */
    size_t carry_bytes;    /* of plain/carry.h, where no client waits for it */
    struct worker *heeded; /* itself, while an operator looks on (core/trace.h); else NULL */
    bool engine_dirty;     /* wants engine_run in this turn */

    /* Clients. */
    const struct client_handlers *handlers; /* of their requests */
    struct client_list clients;             /* longest inactive first */
    struct client_list touched;
    struct client_list unsent;
    struct client_list graveyard;
    struct client_list reserved; /* those of client/reserve.h, oldest first */
    struct log_limit full_limit; /* of clients that are refused: max_connections */

    /* The state of modules. */
    struct listener *listener;
    struct deadlines *deadlines;
    struct pending_list watched; /* by these, in the order of their deadlines */
    struct request_clock *request_clock;
    struct lingerers *lingerers;
    struct pressure *pressure;
    struct timing timing;
    struct laggards laggards;
    uint64_t slow_us; /* from when on a request is slow; UINT64_MAX: none is */
    struct multiget *multiget;
    bool watches_all;        /* client/deadline.h: also requests of one exchange */
    uint64_t pressure_bytes; /* held by all, above which */
    bool pressed;            /* is set */
    struct log_limit slow_limit;
    struct log_limit stranger_limit;
    struct log_limit login_limit;
    struct log_limit secure_limit;

    /* Spare memory. */
    struct spare_list spare_pendings;
    struct pending *next_pending; /* see pending_room, or NULL */
    struct spare_list spare_exchanges;
    struct spare_list spare_calls;
    struct spare_list spare_shadows;
    char *scratch;
    size_t scratch_cap;
};

/* Makes its thread go round its loop once. Thread-safe. */
void worker_wake(struct worker *worker);

/* Reads the clock if that has not been done since the loop began to wait: the first callback of a
 * turn calls it. */
static inline void worker_woke(struct worker *worker)
{
    if (!worker->now_fresh) {
        worker->now = clock_now();
        worker->now_fresh = true;
    }
}

/* At least len bytes of memory, valid until the next call. */
char *worker_scratch(struct worker *worker, size_t len);

#endif
