/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulated world: servers, each a virtual memcached (store.h), and a virtual clock. Proxies
 * (proxy.h) live in it, each with the real list engine. Two programs drive it: the simulator
 * (tests/sim) draws from a seed what happens next, tests/sweep chooses it step by step (stepped.h).
 * Each keeps its own struct that begins with this one.
 */
#ifndef WORLD_WORLD_H
#define WORLD_WORLD_H

#include "base/clock.h"
#include "model.h"
#include "trace.h"

#define VIOLATION_MAX 1024
/* The wall clock when the virtual one shows 0. */
#define START_WALL_S ((int64_t)1700000000)

struct flight;
TAILQ_HEAD(flights, flight);

struct world {
    uint64_t now_us;
    uint64_t last_epoch; /* of connections, counted over all proxies */
    struct store stores[SERVERS_MAX];
    struct cluster cluster; /* which of these has a key */

    /* Of a world that is driven step by step: stepped.h. */
    const struct driver *driver;
    struct flights late; /* of connections that are gone: these may still arrive */
    int64_t end_s;       /* an item that is made must expire in this second, or never */
    bool failed;         /* a rule is broken: nothing more happens */
    char violation[VIOLATION_MAX];
};

/* Makes empty servers. w: zeroed. */
void world_init(struct world *w, unsigned servers, bool spread, uint64_t item_size_max);
/* As after world_init, with that time: for a world that is used again and again. */
void world_begin(struct world *w, unsigned servers, bool spread, uint64_t now_us);
void world_fini(struct world *w);

static inline struct now world_now(const struct world *w)
{
    return (struct now){w->now_us, START_WALL_S + (int64_t)(w->now_us / 1000000)};
}

/* One line, with the time in front; see trace.h. */
#define trace(w, ...) \
    do { \
        if (trace_mode != TRACE_OFF) { \
            trace_line((w)->now_us, __VA_ARGS__); \
        } \
    } while (0)

/* Notes that a rule is broken; the first text stays. */
void world_violation(struct world *w, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
