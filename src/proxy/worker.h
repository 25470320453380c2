/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker: one thread with its own event base, listening sockets, clients, backend connections and
 * list engine. Nothing that changes is shared between workers but what struct shared names.
 *
 * One turn of the loop:
 *     wait     libevent's callbacks move bytes and complete exchanges
 *     flush    list engine, clients' requests and answers, until nothing moves any more; then
 *              sockets are written
 */
#ifndef PROXY_WORKER_H
#define PROXY_WORKER_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "proxy/metrics.h"
#include "base/rng.h"
#include "config/config.h"
#include "list/core/cache.h"
#include "list/engine.h"
#include "pool/pool.h"
#include "proxy/client.h"
#include "proxy/listener.h"
#include "proxy/pending.h"

/* What all workers see. Everything but the atomics stays as it is while threads run. */
struct shared {
    const struct config *config;
    struct worker **workers;
    size_t worker_count;
    struct cache **caches; /* by list_policy.index; several policies may share one */
    struct listen_set *listen;
    struct resolver *resolver;
    uint64_t started_us; /* on the clock that nothing sets back */
    _Atomic uint32_t connections;
    _Atomic uint64_t doomed_bytes;         /* of requests of clients closed for want of memory */
    _Atomic uint64_t baseline[METRIC_MAX]; /* what `stats reset` subtracts */
};

/* Freed objects of one size, kept for reuse as long as there are no more than max of them in all,
 * in use or not. */
struct spare {
    struct spare *next;
};
struct spare_list {
    struct spare *first;
    uint32_t made, max;
    size_t size;
};
struct multiget_route;

enum worker_order { WORKER_RUN, WORKER_DRAIN, WORKER_STOP };

struct worker {
    struct shared *shared;
    const struct config *config;
    size_t index;

    /* The thread. */
    struct event_base *base;
    struct now now; /* read once per turn, see worker_woke */
    bool now_fresh;
    pthread_t thread;
    bool started;
    int wake_fd; /* eventfd */
    struct event wake_event;
    _Atomic int order;    /* enum worker_order, set by main */
    _Atomic bool drained; /* told to main */
    bool draining;

    /* Below. */
    struct metrics metrics;
    struct rng rng;
    struct pool **pools; /* by list_policy.pool_index */
    struct backend *backend;
    struct engine *engine;
    bool engine_dirty;       /* wants engine_run in this turn */
    uint64_t engine_next_us; /* when engine_run asked to be called again */
    struct event timer;
    TAILQ_HEAD(, pending) watched; /* late.h */
    struct event watch_timer;      /* the first one's deadline, or earlier */
    bool watch_timer_set;
    bool watches_all;  /* also requests of one exchange */
    uint64_t timer_us; /* what timer is set to, UINT64_MAX = not set */

    /* Clients. */
    struct acceptor *acceptors;
    size_t acceptor_count;
    struct event accept_timer; /* accepting pauses while descriptors are used up */
    struct event idle_timer;
    struct client_list clients;
    struct client_list touched;
    struct client_list unsent;
    struct client_list graveyard;
    struct client_list receiving; /* a part of a request is there: request_clock.h */
    struct event receive_timer;
    bool receive_timer_set;

    /* Memory: pressure.h. */
    uint64_t pressure_bytes; /* held by all, above which */
    bool pressed;            /* is set */
    uint64_t woke_others_us;
    struct event trim_timer;
    bool trims; /* trim_timer is set */

    /* Spare memory. */
    struct spare_list spare_pendings;
    struct pending *next_pending; /* see pending_room, or NULL */
    struct spare_list spare_exchanges;
    struct spare_list spare_shared;
    struct spare_list spare_calls;
    struct multiget_route *routes; /* by pool_route of the pool of plain keys */
    char *scratch;
    size_t scratch_cap;

    struct log_limit slow_limit;
    struct log_limit stranger_limit;
    struct log_limit memory_limit;
    struct log_limit receive_limit;
    struct log_limit accept_limit;
};

/* Builds everything of a worker but its thread. Returns NULL with a text in error. */
MUST_CHECK struct worker *worker_create(struct shared *shared, size_t index,
                                        char error[CONFIG_ERROR_MAX]);
/* The thread must be over. */
void worker_destroy(struct worker **worker);

/* Returns 0 or an errno. */
MUST_CHECK int worker_start(struct worker *worker);
/* Tells the thread; returns at once. Thread-safe. */
void worker_order(struct worker *worker, enum worker_order order);
/* Makes its thread go round its loop once. Thread-safe. */
void worker_wake(struct worker *worker);
/* Waits for the end of a thread that was ordered to stop. */
void worker_join(struct worker *worker);

/* Reads the clock if that has not been done since the loop began to wait: the first callback of a
 * turn calls it. */
static inline void worker_woke(struct worker *worker)
{
    if (!worker->now_fresh) {
        worker->now = clock_now();
        worker->now_fresh = true;
    }
}

/* What a worker keeps of each kind of spare memory, bytes at most. */
size_t worker_spare_bytes(const struct config *config);

/* At least len bytes of memory, valid until the next call. */
char *worker_scratch(struct worker *worker, size_t len);

/* Free lists of equal objects of size bytes: take returns a new one, all zeros, or one as it was
 * given, but for its first bytes. Never NULL. What they hold counts in base/memory.h, spare ones
 * too. */
void spare_init(struct spare_list *list, size_t size, size_t bytes_max);
void *spare_new(struct spare_list *list);
void spare_free(struct spare_list *list, void *object);
static inline void *spare_take(struct spare_list *list)
{
    struct spare *object = list->first;
    if (object == NULL) {
        return spare_new(list);
    }
    list->first = object->next;
    return object;
}
/* Will an object that is given now be kept? If not, what it holds itself must be freed before. */
static inline bool spare_has_room(const struct spare_list *list)
{
    return LIKELY(list->made <= list->max);
}
static inline void spare_give(struct spare_list *list, void *object)
{
    struct spare *s = object;
    if (!spare_has_room(list)) {
        spare_free(list, object);
        return;
    }
    s->next = list->first;
    list->first = s;
}
void spare_fini(struct spare_list *list);

#endif
