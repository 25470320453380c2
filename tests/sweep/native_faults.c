/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What goes wrong in the world of a case.
 */
#include "native_world.h"

void case_crash(struct native_world *w, unsigned proxy, const unsigned arrive[SERVERS_MAX])
{
    struct proxy *p = &w->proxies[proxy].base;
    proxy_crash(&w->base, p, arrive, false);
    history_crash(&w->history, p->name);
}

static struct flight *next_of(struct proxy *p)
{
    struct flight *f = TAILQ_FIRST(&p->flights);
    CHECK(f != NULL && !f->executed);
    return f;
}

void case_lose(struct native_world *w, unsigned proxy, unsigned arrive, bool late)
{
    struct proxy *p = &w->proxies[proxy].base;
    proxy_lose(&w->base, p, next_of(p)->server, arrive, late);
}

void case_arrive_late(struct native_world *w)
{
    if (!TAILQ_EMPTY(&w->base.late)) {
        world_arrive_late(&w->base);
        history_settle(&w->history);
    }
}

void case_refuse(struct native_world *w, unsigned proxy, enum be_status status)
{
    struct proxy *p = &w->proxies[proxy].base;
    struct flight *f = next_of(p);
    w->base.now_us += STEP_US;
    f->executed = true;
    f->reply = (struct be_reply){.status = status};
    if (status == BE_DOWN) {
        f->reply.text = "backend s: queue full";
    } else {
        f->reply.text = "backend s: CLIENT_ERROR refused";
        f->reply.caps = &w->base.stores[f->server].caps;
        f->reply.epoch = f->epoch;
    }
    flight_trace(&w->base, (char[]){p->name, '\0'}, f);
    proxy_answer(&w->base, p, f);
    proxy_turn(&w->base, p);
}

void case_step_without_memory(struct native_world *w, unsigned proxy)
{
    struct proxy *p = &w->proxies[proxy].base;
    struct flight *f = next_of(p);
    struct store *store = &w->base.stores[f->server];
    store->out_of_memory = true;
    proxy_execute(&w->base, p, f);
    store->out_of_memory = false;
    (void)proxy_step(&w->base, p);
}

void case_all_out_of_memory(struct native_world *w, bool out_of_memory)
{
    for (unsigned s = 0; s < w->base.cluster.count; s++) {
        w->base.stores[s].out_of_memory = out_of_memory;
    }
}
