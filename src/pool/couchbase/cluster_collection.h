/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The collection of a cluster's pool: the number by which nodes know it. It is another one when the
 * collection was dropped and made again. A node tells by which manifest, a list of all collections
 * with a number that grows, it answers: nodes hear of a new manifest one after the other, and what
 * one says by an older one counts for nothing. Between the files of cluster.h.
 */
#ifndef POOL_COUCHBASE_CLUSTER_COLLECTION_H
#define POOL_COUCHBASE_CLUSTER_COLLECTION_H

#include "pool/couchbase/cluster.h"

void cluster_collection_init(struct cluster *cluster);
/* What a node has told in its handshake. */
void cluster_collection_learn(struct cluster *cluster, const struct handshake *hs);
/* Is there no such collection, as far as is known? */
static inline bool cluster_collection_is_missing(const struct cluster *c)
{
    return c->collection.state > COLLECTION_IS_THERE;
}
/* The status by which nodes refuse requests for a collection that is missing. */
uint32_t cluster_collection_code(const struct cluster *cluster);
/* Asks a node for the number soon: the one that refused the old one, or any, for NULL. */
void cluster_collection_want(struct cluster *cluster, struct node *node);
/* What the timer does for it; returns when it is to come again. */
uint64_t cluster_collection_tend(struct cluster *cluster);
#endif
