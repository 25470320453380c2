/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The world of one case: three proxies with an engine each, and the servers. Nothing happens by
 * itself: whoever runs a case says which proxy takes its next step, and the step is one request
 * that a server executes and answers. So all orders of events can be gone through.
 *
 * A proxy's requests to one server are executed in the order sent, as on one connection.
 */
#ifndef CRASH_WORLD_H
#define CRASH_WORLD_H

#include "history.h"
#include "list/core/cache.h"
#include "scene.h"

#define SERVERS 2
#define VIOLATION_MAX 1024

/* Who is who: A is the one that something happens to, B the other, C looks at the end. */
enum { PROXY_A, PROXY_B, PROXY_C, PROXIES };

/* A request on its way. */
struct flight {
    TAILQ_ENTRY(flight) link;
    struct be_request *request; /* the engine's, or after a crash its only owner's */
    unsigned server;
    uint64_t epoch;
    bool executed;
    struct be_reply reply;
    const char *step;
};
TAILQ_HEAD(flights, flight);

/* A request and its answer take so long. */
#define STEP_US 10
/* Nobody takes more steps. */
#define STEPS_MAX 500

/* A step that was taken. */
struct step {
    uint64_t key; /* the request's, hashed */
    bool changed; /* what is stored */
    bool news;    /* a call was answered */
};

struct proxy {
    char name;
    struct engine *engine; /* NULL: not started, or crashed */
    struct cache *cache;
    struct rng rng;
    struct metrics metrics;
    struct list_session session;
    struct flights flights; /* in the order sent */
    uint64_t epoch[SERVERS];
    uint64_t wake_us;
    unsigned steps; /* requests answered */
    bool down;      /* its requests are not sent any more */
    bool may_fail;  /* its calls may be answered with errors */
    const struct op_spec *op;
    unsigned asked, open; /* calls of op submitted, and not answered yet */
    unsigned changes;     /* of what is stored, by its requests */
    unsigned met;         /* those of all others when it was asked last */
    struct step taken[STEPS_MAX];
};

/* An item that somebody stored. */
struct kept_key {
    uint8_t len, server;
    char key[KEY_BYTES_MAX];
};

/* No case stores more. */
#define KEPT_MAX 1024

struct world {
    const struct scene *scene;
    bool trace;
    uint64_t now_us;
    uint64_t last_epoch;
    struct store stores[SERVERS];
    struct cluster cluster;
    struct proxy proxies[PROXIES];
    struct kept_key kept[KEPT_MAX]; /* all keys that may be in the stores */
    unsigned kept_count;
    struct flights late; /* of connections that are gone: they may still arrive */
    struct history history;
    bool known; /* what happens now is a case of its own: nothing is checked */
    bool failed;
    char violation[VIOLATION_MAX]; /* the first one */
};

/* The world of that scene, with proxies A and B started. warm_a, warm_b: that one has read the
 * whole list before, so that it has its sublists in the cache. w: zeroed, or after world_fini,
 * which ends it and keeps empty stores. */
void world_init(struct world *w, const struct scene *scene, bool warm_a, bool warm_b, bool trace);
void world_fini(struct world *w);

void world_start(struct world *w, unsigned proxy);
/* Asks that proxy's engine: requests are on their way afterwards, none is executed. */
void world_ask(struct world *w, unsigned proxy, const struct op_spec *op);
/* Takes one step: waits, if need be, until a request is on its way, and has it executed and
 * answered. False when the proxy has come to rest. */
bool world_step(struct world *w, unsigned proxy);
/* Takes steps until so many have been taken in all; false when the proxy came to rest before. */
bool world_steps(struct world *w, unsigned proxy, unsigned steps);
/* Until it comes to rest. */
void world_rest(struct world *w, unsigned proxy);
/* What can be on its way is: waits for that. False when the proxy has come to rest. */
bool world_wait_sent(struct world *w, unsigned proxy);
/* Time passes for everybody. */
void world_pass(struct world *w, uint64_t us);
/* The engine looks at the clock. */
void world_turn(struct world *w, unsigned proxy);

/* Executes the next request without answering it: world_step does that. */
void world_execute(struct world *w, unsigned proxy);
/* Would it make a difference if that request were executed before the steps of the other proxy, of
 * which those from..to-1 count? If it is about another item, or both only read, it would not. */
bool world_depends(const struct world *w, const struct flight *f, unsigned other, unsigned from,
                   unsigned to);
/* The same for a step that was taken. */
bool world_step_depends(const struct world *w, const struct step *step, unsigned other,
                        unsigned from, unsigned to);
/* How many requests are on their way to that server. */
unsigned world_in_flight(const struct world *w, unsigned proxy, unsigned server);
/* The proxy is gone. So many of the requests on their way to each server still arrive, now. */
void world_crash(struct world *w, unsigned proxy, const unsigned arrive[SERVERS]);
/* The connection of the next request is lost with all that is on its way there, of which the first
 * `arrive` are executed: now, or with late when world_arrive_late says so. */
void world_lose(struct world *w, unsigned proxy, unsigned arrive, bool late);
void world_arrive_late(struct world *w);
/* The next request is not executed but answered with that status. */
void world_refuse(struct world *w, unsigned proxy, enum be_status status);
/* The next request's server has no memory for it. */
void world_step_without_memory(struct world *w, unsigned proxy);
void world_all_out_of_memory(struct world *w, bool out_of_memory);

/* Reads what is stored into the history. */
void world_observe(struct world *w);
void world_violation(struct world *w, const char *format, ...) PRINTF_LIKE(2, 3);
void world_trace(const struct world *w, const char *format, ...) PRINTF_LIKE(2, 3);

static inline struct now world_now(const struct world *w)
{
    int64_t since_us = (int64_t)w->now_us - (int64_t)START_US;
    return (struct now){w->now_us, START_WALL_S + since_us / 1000000};
}

/* For the files that make it up. Executes a request and keeps the answer with it. */
void flight_execute(struct world *w, struct proxy *p, struct flight *f);
/* Gives the answer to the proxy's engine; f is gone afterwards. */
void flight_answer(struct world *w, struct proxy *p, struct flight *f);
/* own_request: the request is nobody else's. */
void flight_drop(struct flights *flights, struct flight *f, bool own_request);
uint64_t flight_key(const struct flight *f);
void flight_trace(const struct world *w, const struct proxy *p, const struct flight *f);

/* finish.c: everybody is at rest or gone. Checks what is stored, lets the grace time pass, compacts
 * by a proxy that has seen nothing, checks again. */
void world_finish(struct world *w);

#endif
