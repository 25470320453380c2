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

#include "base/clock.h"
#include "base/slice.h"
#include "config/config.h"
#include "base/version.h"
#include "pool/link/exchange.h"
#include "pool/link/metrics.h"
#include "pool/link/server_stats.h"

struct event_base;
struct pool;
struct resolver;

/* Returns a pool, owned by the caller until pool_destroy. Connections are made by pool_connect or
 * on the first request. now is the time: the worker refreshes it each turn, and the pool before it
 * handles an event of its own, since the wait before that may have been a long one. config and
 * resolver must live as long as the pool; resolver may be NULL, then servers with names are down.
 * Returns NULL with a text in error when the server list cannot be used. Nothing here blocks. */
struct pool *pool_create(const struct pool_config *config, struct event_base *base, struct now *now,
                         struct metrics *metrics, struct resolver *resolver,
                         char error[CONFIG_ERROR_MAX]);
/* The configuration has changed, in keys that the table calls live. */
void pool_take_config(struct pool *pool);
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
/* Of the server that has the exchange; NULL: none, or it has never answered. */
const struct be_caps *pool_caps_of(const struct exchange *exchange);
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
/* Queues a question of the proxy's own for the server with that index: statistics do not count it,
 * and no limit holds for it. In a pool of type couchbase the index is 0, and the key chooses. */
void pool_submit_own(struct pool *pool, size_t server_index, struct exchange *exchange);
size_t pool_server_count(const struct pool *pool);

/* Who has the items that are placed by a key. */
struct pool_place {
    char server[SERVER_NAME_MAX];
    int vbucket; /* -1: in no pool of type couchbase */
};
/* By the rules in force, or the cluster's map. False: no server has them, or it is not known yet;
 * then vbucket is filled all the same, if it is known. */
bool pool_find(const struct pool *pool, struct slice placement_key, struct pool_place *out);

/* The lowest version that a memcached of the pool has told this worker. False: none has, or the
 * pool is of type couchbase. */
bool pool_lowest_version(const struct pool *pool, struct version *out);

/* Writes what was queued since the last call, one writev per connection. Call at the end of each
 * turn. */
void pool_flush(struct pool *pool);
/* Whether this pool asks its servers every watch_interval_s for `stats`, compares their times, and
 * warns of evictions, restarts, slowness and missing CAS. On by default; one worker of the process
 * is enough. */
void pool_set_watch(struct pool *pool, bool watch);

/* The most servers that a pool of either type has. */
#define POOL_SERVERS_MAX (CONFIG_SERVERS_MAX + 256)

/* An operator takes the server of that name, if the pool has it, out of use, or back into it; not
 * of a pool of type couchbase, whose cluster does that. Requests that are under way are answered,
 * others are refused. */
void pool_drain(struct pool *pool, const char *server_name, bool drained);

/* Fills out with up to max servers of this pool; returns how many. */
size_t pool_stats(struct pool *pool, struct server_stats *out, size_t max);

#endif
