/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where plain keys go: [route PREFIX].
 *
 *     key -> route -> pool                   each request
 *                  -> failover               where the pool gave no answer:
 *                       reads                  of every kind of silence
 *                       set, ms                only when nothing gets to the server, and with
 *                                              failover_ttl_s at most to live
 *                       delete, md             as well, and the answer stays an error: the old
 *                                              value is still on the first server
 *
 * Others end with the error of the first pool: what they do depends on what is there. Workers whose
 * plain keys all go to one pool of memcacheds do not come here: worker.plain_pool.
 */
#ifndef PROXY_PLAIN_ROUTE_H
#define PROXY_PLAIN_ROUTE_H

#include "proto/client/request_parse.h"
#include "proxy/core/route_counts.h"
#include "proxy/plain/forward_part.h"

/* What the worker, whose pools must be there, keeps for this. */
void route_init(struct worker *worker);
void route_fini(struct worker *worker);

/* The key that a request with one key means; decoded is where it may lie. */
struct slice route_key(const struct request *request, char decoded[KEY_BYTES_MAX]);
/* Of such a request, and of a part of any. */
const struct route_config *route_of_request(const struct worker *worker,
                                            const struct request *request);
const struct route_config *route_of_part(const struct forward_part *part);

/* Do the servers of its pools take lines? */
static inline bool route_takes_lines(const struct worker *w, const struct route_config *route)
{
    return w->config->pools[route->pool_index].type == POOL_MEMCACHED;
}

/* Do the servers of that route's pool take lines? The request has one key. */
static inline bool route_has_lines(const struct worker *w, const struct request *r)
{
    return LIKELY(w->plain_pool != NULL) || route_takes_lines(w, route_of_request(w, r));
}

/* Does that failure mean that the server has not answered? One that does not know the command is
 * there. */
static inline bool route_is_silent(const struct worker *w, const struct route_config *route,
                                   enum be_status status)
{
    return status != BE_REFUSED || !route_takes_lines(w, route);
}

/* Are plain reads without a reply answered as misses (down_reads)? */
static inline bool route_reads_miss(const struct worker *w, const struct route_config *route)
{
    return w->config->pools[route->pool_index].down_reads == DOWN_READS_MISS;
}

/* Finds out the key and the pool of route_submit. */
void route_find(struct forward_part *part);

/* Submits the part's own exchange, which is filled, to the pool of its route. */
static ALWAYS_INLINE void route_submit(struct forward_part *f)
{
    struct pool *pool = worker_of(f->part.pending)->plain_pool;
    if (LIKELY(pool != NULL && !f->part.pending->request.base64)) {
        pool_submit(pool, f->part.key, &f->exchange);
    } else {
        route_find(f);
    }
}

/* The same of a part whose answer was dropped: that counts no more. */
void route_submit_again(struct forward_part *part);
/* What is counted and done besides for a part whose key, which is of that route, was just asked
 * for: its own exchange says what. */
void route_note(struct forward_part *part, const struct route_config *route, struct slice key);
/* Counts it for the route with that index, and for the worker. */
void route_count(struct worker *worker, size_t index, enum route_count which);

/* The part has failed so. True: it was sent to the failover pool, and a reply will come. */
bool route_fails_over(struct forward_part *part, const struct be_reply *reply);
/* Submits the part's own exchange, which is filled, to the failover pool of that route. */
void route_submit_elsewhere(struct forward_part *part, const struct route_config *route,
                            enum route_count which);
/* The exptime of a set that is sent there. */
int64_t route_failover_exptime(const struct forward_part *part, int64_t exptime);

#endif
