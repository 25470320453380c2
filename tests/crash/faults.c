/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What goes wrong in a world.
 */
#include <stdlib.h>

#include "world.h"

void world_crash(struct world *w, unsigned proxy, const unsigned arrive[SERVERS])
{
    struct proxy *p = &w->proxies[proxy];
    struct flight *f;
    unsigned arrived[SERVERS] = {0};
    world_trace(w, "%c crashes", p->name);
    engine_destroy(&p->engine);
    cache_destroy(&p->cache);
    while ((f = TAILQ_FIRST(&p->flights)) != NULL) {
        if (!f->executed && arrived[f->server] < arrive[f->server]) {
            arrived[f->server]++;
            flight_execute(w, p, f);
        }
        flight_drop(&p->flights, f, true);
    }
    history_crash(&w->history, p->name);
}

/* The request is the engine's again once it is answered: what may still arrive is a copy. */
static void keep_late(struct world *w, const struct flight *f)
{
    struct flight *late = malloc(sizeof *late);
    CHECK(late != NULL);
    *late = *f;
    late->request = malloc(sizeof *late->request);
    CHECK(late->request != NULL);
    *late->request = *f->request;
    if (late->request->block != NULL) {
        (void)block_ref(late->request->block);
    }
    TAILQ_INSERT_TAIL(&w->late, late, link);
}

void world_lose(struct world *w, unsigned proxy, unsigned arrive, bool late)
{
    struct proxy *p = &w->proxies[proxy];
    struct flight *f, *next;
    struct flight *first = TAILQ_FIRST(&p->flights);
    CHECK(first != NULL);
    unsigned server = first->server, arrived = 0;
    world_trace(w, "%c loses its connection to s%u", p->name, server);
    p->epoch[server] = ++w->last_epoch;
    for (f = first; f != NULL; f = next) {
        next = TAILQ_NEXT(f, link);
        if (f->server != server) {
            continue;
        }
        bool change = f->request->verb >= BE_ADD;
        if (arrived < arrive) {
            arrived++;
            if (late) {
                keep_late(w, f);
            } else {
                flight_execute(w, p, f);
            }
        }
        block_unref(&f->reply.block);
        f->reply = (struct be_reply){
            .status = BE_LOST,
            .text = change ? "backend s: connection lost, outcome unknown"
                           : "backend s: connection lost",
        };
        flight_trace(w, p, f);
        flight_answer(w, p, f);
    }
    world_turn(w, proxy);
}

void world_arrive_late(struct world *w)
{
    static struct proxy nobody = {.name = '-'};
    struct flight *f;
    if (TAILQ_EMPTY(&w->late)) {
        return;
    }
    while ((f = TAILQ_FIRST(&w->late)) != NULL) {
        flight_execute(w, &nobody, f);
        flight_drop(&w->late, f, true);
    }
    history_settle(&w->history);
}

void world_refuse(struct world *w, unsigned proxy, enum be_status status)
{
    struct proxy *p = &w->proxies[proxy];
    struct flight *f = TAILQ_FIRST(&p->flights);
    CHECK(f != NULL && !f->executed);
    w->now_us += STEP_US;
    f->executed = true;
    f->reply = (struct be_reply){.status = status};
    if (status == BE_DOWN) {
        f->reply.text = "backend s: queue full";
    } else {
        f->reply.text = "backend s: CLIENT_ERROR refused";
        f->reply.caps = &w->stores[f->server].caps;
        f->reply.epoch = f->epoch;
    }
    flight_trace(w, p, f);
    flight_answer(w, p, f);
    world_turn(w, proxy);
}

void world_step_without_memory(struct world *w, unsigned proxy)
{
    struct flight *f = TAILQ_FIRST(&w->proxies[proxy].flights);
    CHECK(f != NULL && !f->executed);
    struct store *store = &w->stores[f->server];
    store->out_of_memory = true;
    flight_execute(w, &w->proxies[proxy], f);
    store->out_of_memory = false;
    (void)world_step(w, proxy);
}

void world_all_out_of_memory(struct world *w, bool out_of_memory)
{
    for (unsigned s = 0; s < SERVERS; s++) {
        w->stores[s].out_of_memory = out_of_memory;
    }
}
