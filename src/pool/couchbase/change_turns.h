/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Durable changes of a key in a cluster's pool, one after the other. A node refuses each change of
 * a key while a durable one of it is under way. What has been sent behind a refused one would be
 * done before it, and the refused one could not be done any more without undoing the other's. So
 * while a durable change of a key is under way, later changes of it wait; and behind those that
 * wait, reads of it as well. Other workers and proxies are met all the same: see cluster.c.
 */
#ifndef POOL_COUCHBASE_CHANGE_TURNS_H
#define POOL_COUCHBASE_CHANGE_TURNS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "pool/link/exchange.h"

/* Keys that share a turn wait for each other without need; so there are many. */
#define CHANGE_TURNS 4096

struct cluster;

struct change_turn {
    TAILQ_ENTRY(change_turn) link;
    TAILQ_ENTRY(change_turn) ready_link;
    uint16_t index;
    bool is_taken; /* a durable change is under way */
    bool is_ready; /* in change_turns.ready */
    struct exchange_list waiting;
};
TAILQ_HEAD(change_turn_list, change_turn);

struct change_turns {
    struct change_turn *of_key[CHANGE_TURNS]; /* by the key's hash; NULL: free */
    struct change_turn_list all;
    struct change_turn_list ready; /* those that were given back since change_turns_next */
};

void change_turns_init(struct change_turns *turns);
/* None may be taken, as after the end of all requests. */
void change_turns_check_free(const struct change_turns *turns);

/* Must the request wait? If so it is in the turn's list, or has ended since too many wait; once its
 * turn has come, change_turns_next returns it. */
bool change_turn_waits(struct cluster *cluster, struct exchange *exchange);
/* The request has its answer, or ends without one: its turn, if it had one, is given back. */
static inline void change_turn_end(struct change_turns *turns, struct exchange *x)
{
    if (x->has_turn) {
        struct change_turn *turn = turns->of_key[x->turn];
        x->has_turn = turn->is_taken = false;
        if (!turn->is_ready) {
            turn->is_ready = true;
            TAILQ_INSERT_TAIL(&turns->ready, turn, ready_link);
        }
    }
}
/* The next request whose turn has come, to be sent; NULL: there is none. Ends those that are over
 * meanwhile. */
struct exchange *change_turns_next(struct cluster *cluster);
/* Ends those that are over. Returns when to look at them again. */
uint64_t change_turns_tend(struct cluster *cluster);

#endif
