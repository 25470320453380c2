/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The world of one case: a server, and proxies with an engine each, before one list of a dialect
 * that may be converted. Nothing happens by itself: whoever runs a case says which proxy takes its
 * next step, and a step is one request that the server executes and answers.
 */
#ifndef STEPS_STEPS_H
#define STEPS_STEPS_H

#include "../world/store.h"
#include "list/core/cache.h"
#include "list/engine.h"

#define LIST_KEY "k"
/* Nobody takes more steps. */
#define STEPS_MAX 4000
/* Items are the letters a to z, sets of them are bits. */
#define LETTERS 26
typedef uint32_t letters;

/* What a proxy is asked for. */
struct op_spec {
    const char *name;
    enum list_verb verb;
    const char *items; /* a letter each */
};

enum call_end {
    CALL_OPEN,    /* no answer */
    CALL_DONE,    /* it took effect */
    CALL_REFUSED, /* it did not */
    CALL_UNKNOWN, /* it did or it did not */
};

struct asked {
    struct list_call call;
    struct slice items[LETTERS];
    const struct op_spec *spec;
    enum call_end end;
    bool busy;               /* refused, for there were too many conflicts */
    char order[LETTERS + 1]; /* of an lget: the items */
    letters held;            /* the same as a set */
    bool twice;              /* one of them came twice */
};

struct flight {
    TAILQ_ENTRY(flight) link;
    struct be_request *request;
};
TAILQ_HEAD(flights, flight);

struct proxy {
    struct engine *engine; /* NULL: not started, or crashed */
    struct cache *cache;
    struct rng rng;
    struct metrics metrics;
    struct list_session session;
    struct flights flights; /* in the order sent */
    uint64_t epoch, wake_us;
    unsigned steps;
    bool down; /* its requests are not sent any more */
    struct asked asked;
};

/* A and B are those that something happens to, C looks at the end, and D when all is native. */
enum { PROXY_A, PROXY_B, PROXY_C, PROXY_D, PROXIES };

struct world {
    const struct config *config, *native;
    struct store store;
    uint64_t now_us, last_epoch;
    struct proxy proxies[PROXIES];
    struct flights late; /* of connections that are gone: they may still arrive */
    bool trace;
    bool stuck; /* somebody never comes to rest */
    /* Whoever rewrites an item, or makes one that expires, must keep this; 0: nothing expires. */
    int64_t end_s;
    bool mistimed; /* somebody has not */
};

/* config: of a dialect, native: of the same list when it is converted. Both outlive the world. */
void world_init(struct world *w, const struct config *config, const struct config *native);
/* Empties the server, too. */
void world_fini(struct world *w);

void world_start(struct world *w, unsigned proxy);
/* Asks that proxy's engine: requests are on their way afterwards, none is executed. */
void world_ask(struct world *w, unsigned proxy, const struct op_spec *spec);
/* Takes so many steps. False when the proxy came to rest before. */
bool world_steps(struct world *w, unsigned proxy, unsigned steps);
void world_rest(struct world *w, unsigned proxy);
/* Starts it if need be, asks, and lets it come to rest. Returns what was asked. */
const struct asked *world_do(struct world *w, unsigned proxy, const struct op_spec *spec);

/* hand.c: appends to a stored item, or creates it. */
void hand_append(struct world *w, const char *key, const char *text);
/* What a client by hand sees of a pair. strange: something else than a letter is among it. */
letters hand_sees(struct world *w, bool *strange);

/* What to do with what is on its way when a connection goes. */
enum lost { LOST_NONE, LOST_FIRST, LOST_ALL, LOST_LATE, LOST_KINDS };
/* LOST_NONE: nothing of it is executed; LOST_FIRST: the first one is; LOST_LATE: all of it, when
 * world_arrive is called. */
void world_lose(struct world *w, unsigned proxy, enum lost lost);
/* The proxy is gone, after its connection. */
void world_crash(struct world *w, unsigned proxy, enum lost lost);
void world_arrive(struct world *w);
/* All that is stored is given a time to live. */
void world_touch(struct world *w);

#endif
