/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One server of a pool: its address, what it said of itself, its connections and counters. For this
 * folder only.
 */
#ifndef POOL_LINK_SERVER_H
#define POOL_LINK_SERVER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/check.h"
#include "base/log.h"
#include "pool/link/context.h"
#include "pool/link/health.h"
#include "pool/link/server_stats.h"
#include "pool/link/upstream.h"
#include "pool/link/wire.h"
#include "pool/locate/address.h"
#include "pool/locate/resolver.h"

#define SERVER_TEXT_MAX (SERVER_NAME_MAX + HANDSHAKE_ERROR_MAX + 16)

struct server {
    struct pool_context *context;
    const struct server_config *config;
    struct resolver_name *name; /* NULL: location is known from the start and never changes */
    struct location location;   /* as found by the last server_locate, with the port */
    uint64_t version;           /* of location; changes with its address */
    struct be_caps caps;
    bool caps_known;
    bool cas_warned, few_told;
    struct health *health; /* all workers' */
    LIST_ENTRY(server) health_link;
    bool is_lost; /* to this worker, as its health has it */
    char texts[FAILURE_COUNT][SERVER_TEXT_MAX];
    struct upstream *upstreams;
    uint32_t upstream_count;

    struct exchange watch_exchange; /* the `stats` of connections_watch */
    bool watching;
    /* What its `stats` said last, and say now; of the worker that watches. */
    struct server_look {
        uint64_t pid, uptime_s, items, evictions;
        uint64_t at_us; /* on the clock mono_us; 0: it is of no use, or there was none */
    } looked, looks;
    int64_t full_told_s; /* this worker last had it told */

    /* For snapshots from other threads; written by the pool's worker only. */
    _Atomic uint64_t requests, errors, timeouts, connects, connect_failures, pending, evictions;
    _Atomic uint64_t ejections, refused_full, garbled[GARBLED_COUNT];
    _Atomic int64_t full_s, garbled_s;                 /* the last of these */
    _Atomic int64_t drained_since_s;                   /* 0: it is in use */
    struct histogram times;                            /* of requests that were answered */
    _Atomic uint32_t in_state[UPSTREAM_STATE_COUNT];   /* how many connections are in each state */
    _Atomic uint32_t in_favour[UPSTREAM_FAVOUR_COUNT]; /* and how they are thought of */
    pthread_mutex_t text_lock;                         /* for the next two */
    char version_text[sizeof((struct handshake *)NULL)->version];
    char address_text[ADDRESS_TEXT_MAX]; /* of the last connection, "" = none yet */
};

/* Prepares the server but for its connections (pool/link/connections.h). Returns 0, or -1 with the
 * reason in error; then nothing is to be undone. resolver: may be NULL; then names mean nothing. */
MUST_CHECK int server_init(struct server *server, struct pool_context *context,
                           const struct server_config *config, struct resolver *resolver,
                           char error[CONFIG_ERROR_MAX]);
void server_fini(struct server *server);

/* Finds out where the server is, for an attempt to connect: with RESOLVER_KNOWN that is in location
 * and version. */
enum resolver_answer server_locate(struct server *server);

/* Takes what a handshake with that address found; logs what the operator should know, but does not
 * say again that it is up when it has only not answered for some time. */
void server_learn(struct server *server, const struct handshake *hs, const struct address *address);
/* May the server be asked for the CAS number of what the change stores? A memcached tells it only
 * to `ms`, which deletes what is there, whatever its mode, when there is no room for the new value.
 */
bool server_may_tell_cas(const struct server *server, const struct be_operation *op);
/* Makes the text of FAILURE_UNFIT: the server cannot be used because of what it answered. */
void server_set_unfit(struct server *server, const char *reason);
/* The server has refused a write for want of memory: counts it, and logs that now and then. */
void server_refuses_for_memory(struct server *server);
/* What the server answered cannot be followed: counts it. Returns text, which says so. */
const char *server_answers_garbage(struct server *server, enum garbled reason,
                                   char text[HANDSHAKE_ERROR_MAX]);
/* Logs, once per outage, that the server cannot be reached or was lost. */
void server_log_down(struct server *server, const char *what, const char *reason);

/* Ends an exchange that gets no answer: counts it and queues it; done() is called in the next turn.
 */
void server_finish(struct server *server, struct exchange *x, enum exchange_failure failure);
/* See pool_withdraw: as long as no connection to the server is established, its queued exchanges
 * are wholly unsent. The next connection ends those that were withdrawn. */
bool server_withdraw(struct server *server, struct exchange *x);
/* Hands back all that server_finish queued so far. */
void server_deliver_finished(struct pool_context *context);

void server_snapshot(struct server *server, struct server_stats *out);

/* A counter with a single writer: no bus lock. */
static inline void server_count(_Atomic uint64_t *counter, uint64_t n)
{
    uint64_t v = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, v + n, memory_order_relaxed);
}

#endif
