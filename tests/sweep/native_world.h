/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The world of one case: three proxies before one list, driven step by step. The case (run.c)
 * says which proxy takes its next step.
 */
#ifndef SWEEP_NATIVE_WORLD_H
#define SWEEP_NATIVE_WORLD_H

#include "../world/seen.h"
#include "../world/stepped.h"
#include "native_history.h"
#include "native_scene.h"

/* Who is who: A is the one that something happens to, B the other, C looks at the end. */
enum { PROXY_A, PROXY_B, PROXY_C, PROXIES };

/* No proxy takes more steps. Those of a change that waits for room until its deadline are most: it
 * asks about once in a millisecond. */
#define STEPS_MAX 2500

/* A step that was taken. */
struct step {
    uint64_t key; /* the request's, hashed */
    bool changed; /* what is stored */
};

struct native_proxy {
    struct proxy base;
    struct list_session session;
    bool may_fail; /* its calls may be answered with errors */
    const struct op_spec *op;
    unsigned asked;   /* calls of op submitted */
    unsigned changes; /* of what is stored, by its requests */
    unsigned met;     /* those of all others when it was asked last */
    struct step taken[STEPS_MAX];
};

/* What other cases of the scene have come to already, and was right. */
struct native_seen {
    struct seen whole;    /* well-formed, and all there */
    struct seen finishes; /* a last compaction tidies it, and leaves the items as they are */
};

struct native_world {
    struct world base;
    const struct scene *scene;
    struct native_proxy proxies[PROXIES];
    struct history history;
    struct native_seen seen;
    bool known; /* what happens now is a case of its own: nothing is checked */
};

/* The world of that scene, with proxies A and B started. warm_a, warm_b: that one has read the
 * whole list before, so that it has its sublists in the cache. w: zeroed, or after case_fini,
 * which keeps empty servers. */
void case_init(struct native_world *w, const struct scene *scene, bool warm_a, bool warm_b,
               bool trace);
void case_fini(struct native_world *w);

void case_start(struct native_world *w, unsigned proxy);
/* Asks that proxy's engine: requests are in flight afterwards, none is executed. */
void case_ask(struct native_world *w, unsigned proxy, const struct op_spec *op);
/* The functions of stepped.h, by number. */
bool case_steps(struct native_world *w, unsigned proxy, unsigned steps);
void case_rest(struct native_world *w, unsigned proxy);
bool case_wait_sent(struct native_world *w, unsigned proxy);
/* Time passes for all proxies. */
void case_pass(struct native_world *w, uint64_t us);

/* Would it make a difference if that request were executed before the steps of the other proxy, of
 * which those from..to-1 count? If it is about another item, or both only read, it would not. */
bool case_depends(const struct native_world *w, const struct flight *f, unsigned other,
                  unsigned from, unsigned to);
/* The same for a step that was taken. */
bool case_step_depends(const struct native_world *w, const struct step *step, unsigned other,
                       unsigned from, unsigned to);
/* faults.c: the proxy is gone. So many of the requests in flight to each server still arrive, now.
 */
void case_crash(struct native_world *w, unsigned proxy, const unsigned arrive[SERVERS_MAX]);
/* The connection of the next request is lost, see proxy_lose. */
void case_lose(struct native_world *w, unsigned proxy, unsigned arrive, bool late);
void case_arrive_late(struct native_world *w);
/* The next request is not executed but answered with that status. */
void case_refuse(struct native_world *w, unsigned proxy, enum be_status status);
/* The next request's server has no memory for it. */
void case_step_without_memory(struct native_world *w, unsigned proxy);
void case_all_out_of_memory(struct native_world *w, bool out_of_memory);

/* Reads what is stored into the history, and into *listing. */
void case_observe(struct native_world *w, struct listing *listing);

/* finish.c: all proxies are at rest or gone. Checks what is stored, lets the grace time pass,
 * compacts by a proxy that has seen nothing, checks again. */
void case_finish(struct native_world *w);

#endif
