/* SPDX-License-Identifier: BSD-3-Clause */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>

void world_init(struct world *w, unsigned servers, bool spread, uint64_t item_size_max)
{
    static const char *const names[SERVERS_MAX] = {"s0", "s1", "s2", "s3"};
    CHECK(servers <= SERVERS_MAX);
    for (unsigned s = 0; s < SERVERS_MAX; s++) {
        store_init(&w->stores[s], item_size_max, names[s]);
        w->stores[s].caps.evicts = s % 2 == 0;
    }
    w->cluster = (struct cluster){.stores = w->stores, .count = servers, .spread = spread};
    TAILQ_INIT(&w->late);
}

void world_begin(struct world *w, unsigned servers, bool spread, uint64_t now_us)
{
    for (unsigned s = 0; s < SERVERS_MAX; s++) {
        store_restart(&w->stores[s]);
        w->stores[s].out_of_memory = false;
    }
    w->cluster = (struct cluster){.stores = w->stores, .count = servers, .spread = spread};
    w->now_us = now_us;
    w->last_epoch = 0;
    w->end_s = 0;
    w->failed = false;
    w->violation[0] = '\0';
    CHECK(TAILQ_EMPTY(&w->late));
}

void world_fini(struct world *w)
{
    for (unsigned s = 0; s < SERVERS_MAX; s++) {
        store_fini(&w->stores[s]);
    }
}

void world_violation(struct world *w, const char *format, ...)
{
    if (w->failed) {
        return;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(w->violation, sizeof w->violation, format, args);
    va_end(args);
    w->failed = true;
    trace(w, "VIOLATION: %s", w->violation);
}
