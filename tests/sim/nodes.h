/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The servers as nodes of a Couchbase cluster. Beside what tests/world/store.c and journal.c know
 * of them, it is this:
 *
 * - Each connection is served one request at a time: behind a durable change, which waits for the
 *   replicas, and between the two requests of a BE_GET all others wait. Meanwhile other connections
 *   go on.
 * - Changes of a key that a durable change is under way of are refused for now, as is all of a
 *   vBucket that moves. The proxy's pool sends those again, as src/pool/couchbase/cluster.c does:
 *   later ones of the same vBucket wait behind them, those under way already may be done first, and
 *   then the older one is given up.
 * - When a node fails, a replica takes over: changes that were not durable may be lost. A durable
 *   change that was under way is done or not; no answer tells.
 */
#ifndef SIM_NODES_H
#define SIM_NODES_H

#include "../world/journal.h"
#include "params.h"

struct sim_world;
struct sim_proxy;
struct message;
TAILQ_HEAD(messages, message);

/* What a proxy's pool holds back of one vBucket. */
struct hold {
    struct messages back, fresh; /* refused for now, and behind them */
    unsigned in_flight;
    uint64_t due_us;
};

/* A connection whose request is not over. */
struct service {
    TAILQ_ENTRY(service) link;
    uint64_t epoch; /* the connection's */
    struct message *at_work;
    struct messages waiting;
};
TAILQ_HEAD(services, service);

/* Makes the world of a seed one of such nodes, by draws of its own. */
void nodes_mix(struct params *p);

void nodes_start(struct sim_world *w);
void nodes_fini(struct sim_world *w);
void nodes_proxy_started(struct sim_proxy *p);

/* The pool gets a request from its engine: sends it, or holds it. */
void nodes_submit(struct sim_world *w, struct message *m);
/* An answer has come, or the news that none will. Returns whether the pool keeps the request, to
 * send it again. */
bool nodes_keep(struct sim_world *w, struct message *m);
/* EVENT_RELEASE: what is held of a vBucket may go out. which: as in its event. */
void nodes_release(struct sim_proxy *p, uint64_t which);

/* Is the node at it? It may be done behind the connection's end, and where a replica takes over. */
bool nodes_at_work(const struct sim_world *w, const struct message *m);

/* A request has arrived. Returns whether it waits for another one of its connection. */
bool nodes_waits(struct sim_world *w, struct message *m);
/* It has its turn. Returns whether it takes its time; m->refused: it is refused for now. */
bool nodes_arrive(struct sim_world *w, struct message *m);
/* EVENT_SERVED: what it was waiting for is over. */
void nodes_served(struct sim_world *w, struct message *m);
/* Around its execution: what the oracle knew before goes with a change that may be lost. */
void *nodes_before(struct sim_world *w, struct message *m);
void nodes_executed(struct sim_world *w, struct message *m, void *saved);

/* Faults. */
void nodes_fail_over(struct sim_world *w, unsigned server);
void nodes_move(struct sim_world *w, unsigned server);

#endif
