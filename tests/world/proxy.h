/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A proxy in the simulated world: the real list engine, its connections, and the requests that it
 * has sent. A driver's own struct begins with it.
 */
#ifndef WORLD_PROXY_H
#define WORLD_PROXY_H

#include "list/core/cache.h"
#include "list/core/own_changes.h"
#include "list/core/run_index.h"
#include "list/engine.h"
#include "list/moving/moving.h"
#include "world.h"

/* How a call has ended, as far as its client can know. */
enum call_end {
    CALL_OPEN,    /* no answer yet */
    CALL_DONE,    /* answered: it took effect */
    CALL_REFUSED, /* answered: it did not */
    CALL_UNKNOWN, /* it did or it did not */
};

/* Of a call that is answered. */
enum call_end call_end_of(const struct list_call *call);

/* A request on its way to a server, and its answer on the way back. */
struct flight {
    TAILQ_ENTRY(flight) link;
    struct list_request request;   /* a copy: it arrives even when its proxy has crashed */
    struct list_request *original; /* the engine's; NULL: the engine does not wait for an answer */
    unsigned server;
    uint64_t epoch;   /* of the connection over which it went out */
    const char *step; /* the wait that it ends, by name */
    bool executed;    /* reply is set */
    struct be_reply reply;
};

struct proxy {
    struct engine *engine; /* NULL: not started, or crashed */
    struct moving *moving; /* NULL: lists do not move */
    enum moving_step moving_step;
    struct world *world; /* these three: if they do */
    /* The engine asks for that. */
    void (*asked)(struct proxy *p, struct list_request *request);
    /* It has the answer, or its engine is no more. */
    void (*answered)(struct proxy *p, struct list_request *request);
    struct cache *cache;
    struct run_indexes *indexes;
    struct own_changes *own_changes;
    struct rng rng;
    struct metrics metrics;
    int64_t clock_skew_s;         /* what its wall clock shows, less what the world's does */
    uint64_t epochs[SERVERS_MAX]; /* of its connections */
    uint64_t wake_us;             /* when the engine wants to run */
    struct flights flights;       /* in the order sent */

    /* Of a world that is driven step by step: stepped.h. */
    char name;
    bool down;      /* its requests are not sent any more */
    unsigned steps; /* answers that its engine was given */
    unsigned open;  /* calls submitted, and not answered yet */
    bool mattered;  /* its last step has changed what is stored, or answered a call */
};

/* The world's time as that proxy's clocks have it. */
static inline struct now proxy_now(const struct world *w, const struct proxy *p)
{
    struct now now = world_now(w);
    now.wall_s += p->clock_skew_s;
    return now;
}

/* Starts an engine with nothing in flight and a connection to each server. config outlives it.
 * index_checks: as run_indexes_create takes them. seed: of the engine's random numbers. */
void proxy_start(struct world *w, struct proxy *p, const struct config *config,
                 uint64_t cache_bytes, unsigned index_checks, uint64_t seed);
/* The engine is gone, as in a crash. What is in flight stays there and may arrive. */
void proxy_stop(struct proxy *p);
/* From now on its lists move; asked and answered are set. Until proxy_stop. */
void proxy_move_lists(struct world *w, struct proxy *p, enum moving_step step);
/* A new connection to that server. */
void proxy_connect(struct world *w, struct proxy *p, unsigned server);

/* Takes the next request out of the engine, puts it last into p->flights and returns it; NULL: the
 * engine sends nothing more now. size: of the driver's struct that begins with a flight; the rest
 * is zeroed. */
struct flight *proxy_send(struct world *w, struct proxy *p, size_t size);

/* A CAS may go out only over the connection that has brought its number; another one is answered
 * BE_EXISTS by the proxy itself. */
bool flight_is_stale(const struct flight *f);
/* The server executes the request: reply is set. */
void flight_execute(struct world *w, struct flight *f);
/* Gives the answer to the proxy's engine, which may free its request. f leaves the proxy's flights
 * and is the caller's. */
void flight_answer(struct world *w, struct proxy *p, struct flight *f);
void flight_free(struct flight *f);

/* Its copy of the request. The key lies in it. */
static inline void flight_take(struct flight *f, const struct list_request *request)
{
    f->request = *request;
    f->request.be.key.p = f->request.key;
}

static inline struct slice flight_key(const struct flight *f)
{
    return f->request.be.key;
}

/* May it change what is stored? */
static inline bool flight_is_change(const struct flight *f)
{
    return f->request.be.verb >= BE_ADD;
}

/* Has it? */
static inline bool flight_has_changed(const struct flight *f)
{
    return flight_is_change(f) && (f->reply.status == BE_STORED || f->reply.status == BE_DELETED);
}

/* One line; who: the proxy, by name. */
void flight_trace(const struct world *w, const char *who, const struct flight *f);

#endif
