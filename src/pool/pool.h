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
#include "base/slice.h"
#include "config/config.h"
#include "pool/metrics.h"
#include "proto/server/backend.h"

struct event_base;
struct pool;
struct exchange;
struct resolver;
struct server;

/*
 * One operation on one server. The submitter owns the memory and keeps it until done() is called,
 * exactly once, never from within pool_submit or pool_flush: only from the pool's own events and
 * pool_destroy. It may submit again. Line and value are copied or referenced at submission and
 * need not live on. The key of an operation must until done(), with which the answer is compared,
 * and so must form; in a pool of type couchbase the value, too: it may have to be sent again. Every
 * operation must draw exactly one answer: a line (BE_LINE) asks without noreply and quiet flags.
 *
 * Replies are valid only during the call that brings them; take a reference to the block to keep
 * what lies in it. They say BE_DOWN when the operation was definitely not done, no byte of it was
 * sent; BE_EXISTS also when its epoch is over; BE_LOST when it was sent, at least in part, and its
 * outcome is unknown. Then text says what happened ("backend HOST:PORT down" and the like, with the
 * server's name as the config has it), and caps are NULL if the server never answered.
 */
struct exchange {
    struct be_operation op;
    bool needs_cas;         /* BE_DOWN on a server that runs without CAS */
    bool told;              /* the submitter has said, and counted, that the outcome is unknown */
    const bool *told_there; /* or says so there; NULL: nowhere */
    uint64_t epoch;         /* 0, or: only on the connection of that name, else BE_EXISTS */
    /* BE_LINE_GET: each value is given to value() as it comes, whatever becomes of the rest. done()
     * has the last line, "END" or an error. NULL for all others. */
    void (*value)(struct exchange *exchange, const struct be_reply *reply);
    void (*done)(struct exchange *exchange, const struct be_reply *reply);
    void *owner; /* the submitter's */

    /* The pool's, until done(). */
    TAILQ_ENTRY(exchange) link;
    struct server *server;          /* that has it; NULL: none, it waits */
    uint64_t since_us, deadline_us; /* submission, and when it times out */
    uint64_t start, end;            /* its bytes in the connection's output, see pool/upstream.h */
    uint8_t failure;                /* why there is no answer, see pool/server.h */
    bool changes;                   /* a lost answer leaves the item's state unknown */
    bool is_internal;               /* the pool's own; not counted, and no limit holds for it */
    /* Of a pool of type couchbase, see pool/cluster.h. */
    uint8_t attempts;  /* refusals so far, for reasons that pass */
    uint32_t code;     /* of the last one, or 0 */
    uint64_t first_us; /* the first submission */
    uint64_t order;    /* among all submissions */
    uint16_t turn;     /* of its key, see pool/change_turns.h */
    bool takes_turn;   /* a durable change: it may take longer */
    bool has_turn;
};
TAILQ_HEAD(exchange_list, exchange);

/* Makes an exchange for a line and its answer, which is like that to another operation
 * (be_line_form), with no value to store. Field by field: the fields that other operations have are
 * not read. */
static inline void exchange_init_line(struct exchange *x, enum be_verb verb, struct slice line,
                                      enum be_verb like,
                                      void (*done)(struct exchange *, const struct be_reply *),
                                      void *owner)
{
    x->op.verb = verb;
    x->op.line = line;
    x->op.form.meta = 0;
    x->op.form.like = like;
    x->op.value = SLICE_NONE;
    x->op.block = NULL;
    x->needs_cas = x->told = false;
    x->told_there = NULL;
    x->epoch = 0;
    x->value = NULL;
    x->done = done;
    x->owner = owner;
}

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
/* The submitter wants the operation no more. True: nothing of it was sent, and nothing will be.
 * False: it may have been sent, or will be. done() is called in either case, as always. */
bool pool_withdraw(struct exchange *exchange);
/* These four are for pools that take lines.
 *
 * Finds out for each key which connection it has, 0 .. pool_route_count-1: keys with the same one
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

/* The most servers that a pool of either type has. */
#define POOL_SERVERS_MAX (CONFIG_SERVERS_MAX + 256)

/* A snapshot for `stats backends`: written by the pool's worker, readable from any thread as long
 * as the pool lives. */
struct server_stats {
    char name[SERVER_NAME_MAX];
    char state[16];  /* "up", "connecting", "ejected", "down", "idle" */
    bool is_ejected; /* a connection is, and its probe was not answered yet */
    char version[32];
    char address[CONFIG_NAME_MAX + 16]; /* of the last connection, "" = none yet */
    uint64_t requests, errors, timeouts, ejections, connects, connect_failures, pending, evictions;
};
/* Fills out with up to max servers of this pool; returns how many. */
size_t pool_stats(struct pool *pool, struct server_stats *out, size_t max);

/*
 * The list engine's requests as exchanges (pool/backend.c). One per worker; pools is indexed by
 * be_request.pool_index. Each request has its exchange in its own memory, behind it
 * (be_request_room): backend_room_bytes for the engine to leave free there.
 *
 * done is called exactly once for each request, never from within backend_submit; the request stays
 * the caller's and must live until then. Destroy the pools first: they end the requests that still
 * wait.
 */
typedef void backend_done_fn(void *arg, struct be_request *req, const struct be_reply *reply);
struct backend;
struct backend *backend_create(struct pool **pools, size_t pool_count, backend_done_fn *done,
                               void *arg);
void backend_destroy(struct backend **backend);
extern const size_t backend_room_bytes;
/* Submits the request as pool_submit does: written by the next pool_flush of its pool. */
void backend_submit(struct backend *backend, struct be_request *req);

#endif
