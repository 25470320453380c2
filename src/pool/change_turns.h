/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Durable changes of a key in a cluster's pool, one after the other. A node refuses each change of
 * a key while a durable one of it is under way. What has been sent behind a refused one would be
 * done before it, and the refused one could not be done any more without undoing the other's. So
 * while a durable change of a key is under way, later changes of it wait; and behind those that
 * wait, reads of it as well. Other workers and proxies are met all the same: see cluster.c.
 */
#ifndef POOL_CHANGE_TURNS_H
#define POOL_CHANGE_TURNS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* Keys that share a turn wait for each other without need; so there are many. */
#define CHANGE_TURNS 4096

struct change_turn;
struct cluster;
struct exchange;

struct change_turns {
    struct change_turn *of_key[CHANGE_TURNS]; /* by the key's hash; NULL: free */
    TAILQ_HEAD(, change_turn) all;
};

void change_turns_init(struct change_turns *turns);
/* None may be taken, as after the end of all requests. */
void change_turns_check_free(const struct change_turns *turns);

/* Must the request wait? If so it is in the turn's list, or has ended since too many wait; once its
 * turn has come, cluster_route is called. */
bool change_turn_waits(struct cluster *cluster, struct exchange *exchange);
/* The request has its answer, or ends without one. */
void change_turn_end(struct cluster *cluster, struct exchange *exchange);
/* Ends those that are over. Returns when to look at them again. */
uint64_t change_turns_tend(struct cluster *cluster);

#endif
