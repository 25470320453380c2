/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pool as one worker sees it: which server owns a key, and connections to it. Requests are
 * pipelined; every one gets exactly one reply through its completion pointer, at the latest when
 * its timeout ends, and in the order of submission per connection; only refusals (down, queue full,
 * stale epoch) may overtake. One key always has the same connection. Not thread-safe: each worker
 * has pools of its own.
 *
 *     pool_submit -> shard           which server
 *                 -> server          which connection
 *                 -> upstream        queue, socket
 *                 -> exchange.done
 */
#ifndef POOL_POOL_H
#define POOL_POOL_H

#include <sys/queue.h>

#include "base/block.h"
#include "base/clock.h"
#include "pool/metrics.h"
#include "base/slice.h"
#include "config/config.h"
#include "proto/server/backend.h"

struct event_base;
struct pool;
struct exchange;
struct resolver;
struct server;

/* What came back. Valid only during the completion call; take a reference to block to keep line or
 * value. */
struct exchange_reply {
    enum {
        EXCHANGE_ANSWERED, /* the server's reply is in line (and value) */
        EXCHANGE_NOT_SENT, /* definitely not done: no byte of it was sent, or its epoch is over. See
                              text */
        EXCHANGE_LOST,     /* sent (in part), no answer: outcome unknown. See text */
    } status;
    bool stale;        /* EXCHANGE_NOT_SENT because epoch is over */
    struct slice line; /* the reply line without its line end */
    bool has_value;    /* a "VA" or "VALUE" line: value is its data block without its line end. In
                          memory line, line end, value and line end follow each other */
    struct slice value;
    struct block *block;        /* where line and value live */
    uint64_t epoch;             /* names the connection */
    const struct be_caps *caps; /* of the server, or NULL when it never answered */
    const char *text; /* not ANSWERED: "backend HOST:PORT down" and the like; names the server as
                         the config does */
    bool *distrust;   /* ANSWERED: done() may set it when the line cannot be the answer to its
                         request: all else that was sent on the connection is LOST then, as after
                         any garbage */
};

/*
 * One request to one server. The submitter owns the memory and keeps it until done() is called,
 * exactly once, never from within pool_submit or pool_flush: only from the pool's own events and
 * pool_destroy. It may submit again. line and body are copied or referenced at submission and need
 * not live on. Every request must draw exactly one reply line (plus a data block for "VA"; values
 * before it where value() is set): no noreply, no quiet flags.
 */
struct exchange {
    struct slice line; /* the request line with its line end */
    struct slice body; /* the data block with its line end, or empty; lives in body_block */
    bool body_bare;    /* body comes without its line end (it may be empty): the pool adds it */
    struct block *body_block; /* the pool takes its own reference; NULL: body is copied */
    uint64_t epoch; /* 0, or: only on the connection of that name, else EXCHANGE_NOT_SENT and stale
                     */
    bool needs_cas; /* refuse (EXCHANGE_NOT_SENT) on a server that runs without CAS */
    /* Line is a `get` or `gets`, which draws any number of values before its last line. Each is
     * given to value() as it comes, whatever becomes of the rest: line is the "VALUE" line, and
     * what is said of done() and its reply holds here as well. done() has the last line, "END" or
     * an error. NULL: any other request. */
    void (*value)(struct exchange *exchange, const struct exchange_reply *reply);
    void (*done)(struct exchange *exchange, const struct exchange_reply *reply);
    void *owner; /* the submitter's */
    bool told;   /* the submitter has said, and counted, that the outcome is unknown */

    /* The pool's, until done(). */
    TAILQ_ENTRY(exchange) link;
    struct server *server;
    uint64_t since_us, deadline_us; /* submission, and when it times out */
    uint64_t start, end;            /* its bytes in the connection's output, see pool/upstream.h */
    uint8_t fate;                   /* why there is no answer, see pool/server.h */
    bool changes;                   /* a lost answer leaves the item's state unknown */
    bool listing; /* the answer is a list of STAT lines (the pool's own exchanges) */
};
TAILQ_HEAD(exchange_list, exchange);

/* Returns a pool, owned by the caller until pool_destroy. Connections are made by pool_connect or
 * on the first request. now is the time: the worker refreshes it each turn, and the pool before it
 * handles an event of its own, since the wait before that may have been a long one. config and
 * resolver must live as long as the pool; resolver may be NULL, then servers with names are down.
 * Returns NULL with a text in error when the server list cannot be used. Nothing here blocks. */
struct pool *pool_create(const struct pool_config *config, struct event_base *base, struct now *now,
                         struct metrics *metrics, struct resolver *resolver,
                         char error[CONFIG_ERROR_MAX]);
/* Begins to connect to all servers; what fails is tried again in the background. */
void pool_connect(struct pool *pool);
/* Ends all connections; every waiting exchange is done() as NOT_SENT or LOST first. What done()
 * still submits is refused in the same way. Not to be called from done(). */
void pool_destroy(struct pool **pool);

/* Queues the exchange for the server that owns placement_key. Written by the next pool_flush. */
void pool_submit(struct pool *pool, struct slice placement_key, struct exchange *exchange);
/* Finds out for each key which connection it has, 0 .. pool_route_count-1: keys with the same one
 * may share an exchange. */
void pool_routes(const struct pool *pool, const struct slice *placement_keys, size_t count,
                 size_t *routes);
size_t pool_route_count(const struct pool *pool);
/* Queues the exchange for that connection. */
void pool_submit_on(struct pool *pool, size_t route, struct exchange *exchange);
/* Queues the exchange for the server with that index (0 .. server_count-1), for flush_all. */
void pool_submit_to(struct pool *pool, size_t server_index, struct exchange *exchange);
size_t pool_server_count(const struct pool *pool);

/* Writes what was queued since the last call, one writev per connection. Call at the end of each
 * turn. */
void pool_flush(struct pool *pool);
/* True while an exchange waits for its reply. */
bool pool_busy(const struct pool *pool);
/* Whether this pool asks its servers every 30 s for `stats`, for evictions, and warns of them and
 * of missing CAS. On by default; one worker of the process is enough. */
void pool_set_watch(struct pool *pool, bool watch);

/* A snapshot for `stats backends`: written by the pool's worker, readable from any thread as long
 * as the pool lives. */
struct server_stats {
    char name[CONFIG_NAME_MAX + 16];
    char state[16];  /* "up", "connecting", "ejected", "down", "idle" */
    bool is_ejected; /* a connection is, and its probe was not answered yet */
    char version[32];
    char address[CONFIG_NAME_MAX + 16]; /* of the last connection, "" = none yet */
    uint64_t requests, errors, timeouts, ejections, connects, connect_failures, pending, evictions;
};
/* Fills out with up to max servers of this pool; returns how many. */
size_t pool_stats(struct pool *pool, struct server_stats *out, size_t max);

/* Submits the engine's request and turns the reply into its vocabulary (pool/backend.c). done is
 * called exactly once, never from within this call; req stays the caller's and must live until
 * then. */
typedef void backend_done_fn(void *arg, struct be_request *req, const struct be_reply *reply);
struct backend;
/* One per worker; pools is indexed by be_request.pool_index. Destroy the pools first: they end the
 * requests that still wait. Requests are submitted as pool_submit does: written by the next
 * pool_flush of their pool. */
struct backend *backend_create(struct pool **pools, size_t pool_count, backend_done_fn *done,
                               void *arg);
void backend_destroy(struct backend **backend);
void backend_submit(struct backend *backend, struct be_request *req);

#endif
