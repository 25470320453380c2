/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes of several lists in one step, in all orders of steps: three lists of four items, proxies
 * that are driven step by step (tests/world/stepped.h), and calls that each client asks as a text:
 *
 *     ltx A+01-2 B?0!1=23    add 0 and 1 to A, delete 2; require 0 in B, refuse 1, set it to 2 3
 *     lmove A B 01    lpopto A B 1    ladd A 01    lget A    lgetx AB    lcompact A
 *
 * Contents are sets here, as bits: the simulator has sequences.
 */
#ifndef SWEEP_TRANSACTIONS_H
#define SWEEP_TRANSACTIONS_H

#include "../world/stepped.h"
#include "config/config.h"

#define LISTS 3
#define ITEMS 4
#define PROXIES 6
#define CALLS_MAX 24
#define CHANGES_MAX 6
#define TEXT_MAX 48

struct state {
    uint8_t items[LISTS];
};

struct asked {
    struct list_call call;
    struct atomic_world *world;
    char text[TEXT_MAX];
    char keys[LISTS];
    unsigned list_count, lists[LISTS];
    struct call_list several[LISTS];
    struct tx_change changes[LISTS][CHANGES_MAX];
    struct slice items[LISTS][CHANGES_MAX][ITEMS];
    uint8_t bits[LISTS][CHANGES_MAX]; /* of each change */
    uint8_t named;                    /* items of a call that names some */
    struct slice named_items[ITEMS];
    unsigned asked_at, answered_at; /* counted over all calls; 0: no answer */
    enum call_end end;
    uint8_t seen[LISTS]; /* what was answered of each */
};

struct atomic_proxy {
    struct proxy base;
    struct list_session session;
};

struct atomic_world {
    struct world base;
    struct config *config;
    struct atomic_proxy proxies[PROXIES];
    struct state first;
    struct asked calls[CALLS_MAX];
    unsigned count, moment;
};

/* ---- transactions_calls.c ---- */

/* Reads the text into the call, which is the caller's until call_fini. */
void asked_init(struct atomic_world *w, struct asked *a, const char *text);
void asked_fini(struct asked *a);
/* It is answered: reads the answer. */
void asked_answered(struct asked *a);
/* What it does to the lists, if it may be answered so: false otherwise. moved: an lpopto without an
 * answer takes these. */
bool asked_apply(const struct asked *a, uint8_t moved, struct state *state);
/* Says that nothing was done, and nothing of the lists. */
bool asked_says_nothing(const struct asked *a);
void asked_describe(const struct asked *a, char *out, size_t cap);

/* ---- transactions_explain.c ---- */

/* Does one order of the calls explain all answers, and end with that state? */
bool explains(const struct atomic_world *w, const struct state *last);

/* ---- transactions_world.c ---- */

/* An empty world with all proxies but the last; what the lists hold: "01 2 -" for A, B, C, where
 * "-" is a missing list. servers: 1 to 4. */
void atomic_begin(struct atomic_world *w, unsigned servers, const char *contents, bool trace);
void atomic_end(struct atomic_world *w);
void atomic_ask(struct atomic_world *w, unsigned proxy, const char *text);
/* Takes so many steps more; false when the proxy has come to rest before. */
bool atomic_steps(struct atomic_world *w, unsigned proxy, unsigned steps);
void atomic_rest(struct atomic_world *w, unsigned proxy);
/* How much of what is in flight to each server arrives, and when. */
enum arrival { NOTHING_ARRIVES, FIRST_ARRIVES, ALL_ARRIVES, FIRST_IS_LATE, ALL_IS_LATE, ARRIVALS };
void atomic_crash(struct atomic_world *w, unsigned proxy, enum arrival arrival);
/* The same of the connection to the server of its next request. */
void atomic_lose(struct atomic_world *w, unsigned proxy, enum arrival arrival);
void atomic_arrive_late(struct atomic_world *w);
/* The quiet end: a proxy that has seen nothing compacts and reads, and all is checked. */
void atomic_finish(struct atomic_world *w);

#endif
