/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A world in which nothing happens by itself: the driver says which proxy takes its next step, and
 * a step is one request that a server executes and answers. So all orders of events can be gone
 * through. The requests of a proxy are executed in the order sent.
 *
 * Rewriting an item must keep the second in which it expires; every step is checked for that.
 */
#ifndef WORLD_STEPPED_H
#define WORLD_STEPPED_H

#include "proxy.h"

/* A request and its answer take so long. */
#define STEP_US 10
/* What arrives with `arrive` requests: all of them. */
#define ARRIVE_ALL UINT32_MAX

/* What a driver does beside the steps. p: NULL when the proxy is gone. */
struct driver {
    struct slice list_key; /* the list that it is about */
    unsigned steps_max;    /* a proxy that takes as many without coming to rest never will */
    /* A server has executed the request, or the proxy has not sent it: the answer is in f->reply.
     */
    void (*executed)(struct world *w, struct proxy *p, const struct flight *f);
    /* The engine is given the answer now, as step p->steps, counted from 0. */
    void (*answering)(struct world *w, struct proxy *p, const struct flight *f);
    /* The engine is done with a call. */
    void (*done)(struct world *w, struct proxy *p, struct list_call *call);
    /* Submits what the proxy is to be asked next. False: nothing now. */
    bool (*ask_next)(struct world *w, struct proxy *p);
};

/* Submits a call; the driver lets the engine run afterwards, by proxy_turn. */
void proxy_submit(struct world *w, struct proxy *p, struct list_call *call);
/* The engine looks at the clock and goes as far as it can without an answer. */
void proxy_turn(struct world *w, struct proxy *p);
/* Waits until a request is in flight. False when the proxy has come to rest. */
bool proxy_wait_sent(struct world *w, struct proxy *p);
/* Takes one step: waits, if need be, until a request is in flight, and has it executed and
 * answered. False when the proxy has come to rest, or a rule is broken. */
bool proxy_step(struct world *w, struct proxy *p);
/* Takes steps until p->steps is that; false when the proxy came to rest before. */
bool proxy_steps(struct world *w, struct proxy *p, unsigned steps);
/* Takes steps until the proxy comes to rest. */
void proxy_rest(struct world *w, struct proxy *p);

/* Executes the request without answering it; p: NULL when the proxy is gone. */
void proxy_execute(struct world *w, struct proxy *p, struct flight *f);
/* Gives f->reply to the engine as a step of the proxy. */
void proxy_answer(struct world *w, struct proxy *p, struct flight *f);

/* The connection to that server is lost with all that is in flight there, of which the first
 * `arrive` are executed: now, or with late when world_arrive_late says so. */
void proxy_lose(struct world *w, struct proxy *p, unsigned server, unsigned arrive, bool late);
/* The proxy is gone. So many of the requests in flight to each server still arrive: now, or when
 * world_arrive_late says so. */
void proxy_crash(struct world *w, struct proxy *p, const unsigned arrive[SERVERS_MAX], bool late);
/* Has its last step changed nothing, and answered no call? Then a crash of which nothing arrives is
 * the crash before that step. */
bool crash_is_same(const struct proxy *p);
void world_arrive_late(struct world *w);
/* Forgets what may still arrive. */
void world_drop_late(struct world *w);

#endif
