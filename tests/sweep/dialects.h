/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The world of one case: a server, and proxies before one list of a dialect that may be converted,
 * driven step by step. The case (main.c) says which proxy takes its next step.
 */
#ifndef SWEEP_DIALECTS_H
#define SWEEP_DIALECTS_H

#include "../world/stepped.h"

#define LIST_KEY "k"
/* No proxy takes more steps. */
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

struct dialect_proxy {
    struct proxy base;
    struct list_session session;
    struct asked asked;
};

/* A and B are those that something happens to, C looks at the end, and D when all is native. */
enum { PROXY_A, PROXY_B, PROXY_C, PROXY_D, PROXIES };

struct dialect_world {
    struct world base;
    const struct config *config, *native;
    struct dialect_proxy proxies[PROXIES];
};

/* config: of a dialect, native: of the same list when it is converted. Both outlive the world. */
void steps_init(struct dialect_world *w, const struct config *config, const struct config *native);
/* Ends the proxies; the world can be used again. */
void steps_fini(struct dialect_world *w);

void steps_start(struct dialect_world *w, unsigned proxy);
/* Asks that proxy's engine: requests are in flight afterwards, none is executed. */
void steps_ask(struct dialect_world *w, unsigned proxy, const struct op_spec *spec);
/* Takes so many steps. False when the proxy came to rest before. */
bool steps_take(struct dialect_world *w, unsigned proxy, unsigned steps);
void steps_rest(struct dialect_world *w, unsigned proxy);
/* Starts it if need be, asks, and lets it come to rest. Returns what was asked. */
const struct asked *steps_do(struct dialect_world *w, unsigned proxy, const struct op_spec *spec);

/* hand.c: appends to a stored item, or creates it. */
void hand_append(struct dialect_world *w, const char *key, const char *text);
/* The name of a pair's additions. */
const char *hand_adds(const struct dialect_world *w);
/* What a client by hand sees of a pair. strange: something else than a letter is among it. */
letters hand_sees(struct dialect_world *w, bool *strange);

/* What becomes of the requests in flight when a connection goes: none, the first or all of them are
 * executed, or all when world_arrive_late is called. */
enum lost { LOST_NONE, LOST_FIRST, LOST_ALL, LOST_LATE, LOST_KINDS };
void steps_lose(struct dialect_world *w, unsigned proxy, enum lost lost);
/* The proxy is gone, after its connection. */
void steps_crash(struct dialect_world *w, unsigned proxy, enum lost lost);
/* All that is stored is given a time to live. */
void steps_touch(struct dialect_world *w);

#endif
