/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of a cluster's pool that no node has: lists in which they wait, and their end. Between
 * the files of cluster.h.
 */
#ifndef POOL_COUCHBASE_CLUSTER_WAITS_H
#define POOL_COUCHBASE_CLUSTER_WAITS_H

#include "pool/couchbase/cluster.h"

static inline uint64_t cluster_now_us(const struct cluster *c)
{
    return c->context->now->mono_us;
}

/* Is it known where requests go? */
static inline bool cluster_is_ready(const struct cluster *c)
{
    return c->map != NULL && c->collection.state != COLLECTION_NOT_TOLD;
}

/* Has the timer fire then, or earlier. */
void cluster_set_timer(struct cluster *cluster, uint64_t at_us);

/* When it is of no use any more. */
uint64_t cluster_deadline_us(const struct cluster *cluster, const struct exchange *exchange);
/* Is it of no use to wait with it any longer? */
bool cluster_is_over(const struct cluster *cluster, const struct exchange *exchange);

/* At the list's end. The timer fires at its deadline. */
void cluster_add_waiting(struct cluster *cluster, struct exchange_list *list,
                         struct exchange *exchange);
/* The same, or its end where no more may wait. */
void cluster_wait_or_end(struct cluster *cluster, struct exchange_list *list,
                         struct exchange *exchange);
/* The first of a list that has some. */
struct exchange *cluster_take_waiting(struct cluster *cluster, struct exchange_list *list);
/* Takes it out of its list. */
void cluster_remove_waiting(struct cluster *cluster, struct exchange_list *list,
                            struct exchange *exchange);

/* No server has it, and it is in no list. The submitter is told in the timer's turn. */
void cluster_end(struct cluster *cluster, struct exchange *exchange, enum exchange_failure failure);
/* Ends one that is over. */
void cluster_end_over(struct cluster *cluster, struct exchange *exchange);
/* Ends those that are over, up to the first that is not: what stands behind a durable change may
 * wait as long as that. */
void cluster_end_those_over(struct cluster *cluster, struct exchange_list *list);

#endif
