/* SPDX-License-Identifier: BSD-3-Clause */
#include "stepped.h"

#include <stdlib.h>

#include "list/core/expiry.h"

static void never_ends(struct world *w, const struct proxy *p, const char *what)
{
    world_violation(w, "%c %s: %s", p->name, what, engine_waiting(p->engine, w->driver->list_key));
}

/* ---- steps ---- */

void proxy_submit(struct world *w, struct proxy *p, struct list_call *call)
{
    p->open++;
    engine_submit(p->engine, call, proxy_now(w, p));
}

void proxy_turn(struct world *w, struct proxy *p)
{
    struct list_call *call;
    do {
        p->wake_us = engine_run(p->engine, proxy_now(w, p));
        while (proxy_send(w, p, sizeof(struct flight)) != NULL) {
        }
        while ((call = engine_take_done(p->engine)) != NULL) {
            p->open--;
            p->mattered = true;
            w->driver->done(w, p, call);
        }
    } while (w->driver->ask_next != NULL && w->driver->ask_next(w, p));
}

bool proxy_wait_sent(struct world *w, struct proxy *p)
{
    unsigned turns = 0;
    while (TAILQ_EMPTY(&p->flights)) {
        if (!engine_busy(p->engine) && p->open == 0) {
            return false;
        }
        if (p->wake_us == UINT64_MAX || ++turns > w->driver->steps_max) {
            never_ends(w, p, "waits for ever");
        }
        if (w->failed) {
            return false;
        }
        w->now_us = p->wake_us > w->now_us ? p->wake_us : w->now_us + 1;
        proxy_turn(w, p);
    }
    return true;
}

/* In which second the item expires; 0: never, or there is none. */
static int64_t end_of(struct world *w, const struct flight *f)
{
    const struct item *item = store_find(&w->stores[f->server], flight_key(f), world_now(w).wall_s);
    return item == NULL ? 0 : item->expires_s;
}

/* Rewriting keeps the time. A head that is made has none, or that of the list, and sublists end
 * behind it; the item from which proxies read a server's clock has times of its own. */
static void check_time(struct world *w, const struct proxy *p, const struct flight *f,
                       int64_t before_s)
{
    int64_t end_s = end_of(w, f);
    struct slice key = flight_key(f);
    bool sublist = key.len > 0 && key.p[key.len - 1] != '#';
    bool lasts = end_s == w->end_s || (sublist && end_s > w->end_s);
    bool good = f->request.be.verb == BE_ADD ? end_s == 0 || lasts : end_s == before_s;
    if (!good && f->request.be.value.len > 0 && !clock_key_is(key)) {
        world_violation(w, "%.*s does not expire when it was to, after a request of %c (%s)",
                        SLICE_ARGS(key), p == NULL ? '-' : p->name, f->step);
    }
}

void proxy_execute(struct world *w, struct proxy *p, struct flight *f)
{
    char who[] = {p == NULL ? '-' : p->name, '\0'};
    int64_t end_s = end_of(w, f);
    w->now_us += STEP_US;
    if (p != NULL && p->down) {
        f->reply = (struct be_reply){.status = BE_DOWN, .text = "backend s: down"};
        f->executed = true;
    } else if (flight_is_stale(f)) {
        f->reply = (struct be_reply){.status = BE_EXISTS};
        f->executed = true;
    } else {
        flight_execute(w, f);
    }
    flight_trace(w, who, f);
    if (f->reply.status == BE_STORED &&
        (f->request.be.verb == BE_CAS || f->request.be.verb == BE_ADD)) {
        check_time(w, p, f, end_s);
    }
    if (w->driver->executed != NULL) {
        w->driver->executed(w, p, f);
    }
}

void proxy_answer(struct world *w, struct proxy *p, struct flight *f)
{
    if (w->driver->answering != NULL) {
        w->driver->answering(w, p, f);
    }
    p->mattered = flight_has_changed(f);
    flight_answer(w, p, f);
    flight_free(f);
    if (++p->steps == w->driver->steps_max) {
        never_ends(w, p, "never ends");
    }
}

bool crash_is_same(const struct proxy *p)
{
    return p->steps > 0 && !p->mattered;
}

bool proxy_step(struct world *w, struct proxy *p)
{
    if (p->engine == NULL || w->failed || !proxy_wait_sent(w, p)) {
        return false;
    }
    struct flight *f = TAILQ_FIRST(&p->flights);
    if (!f->executed) {
        proxy_execute(w, p, f);
    }
    proxy_answer(w, p, f);
    proxy_turn(w, p);
    return true;
}

bool proxy_steps(struct world *w, struct proxy *p, unsigned steps)
{
    while (p->steps < steps) {
        if (!proxy_step(w, p)) {
            return false;
        }
    }
    return true;
}

void proxy_rest(struct world *w, struct proxy *p)
{
    while (proxy_step(w, p)) {
    }
}

/* ---- faults ---- */

/* A copy of it may still arrive. */
static void keep_late(struct world *w, const struct flight *f)
{
    struct flight *late = malloc(sizeof *late);
    CHECK(late != NULL);
    *late = *f;
    flight_take(late, &f->request);
    late->original = NULL;
    if (late->request.be.block != NULL) {
        (void)block_ref(late->request.be.block);
    }
    TAILQ_INSERT_TAIL(&w->late, late, link);
}

/* The first requests to that server arrive, now or later. */
static void arrive(struct world *w, struct proxy *p, unsigned server, unsigned count, bool late)
{
    struct flight *f;
    TAILQ_FOREACH(f, &p->flights, link)
    {
        if (f->server != server || f->executed || count == 0) {
            continue;
        }
        count--;
        if (late) {
            keep_late(w, f);
        } else {
            proxy_execute(w, p, f);
        }
    }
}

void proxy_lose(struct world *w, struct proxy *p, unsigned server, unsigned count, bool late)
{
    struct flight *f, *next;
    trace(w, "%c loses its connection to s%u", p->name, server);
    arrive(w, p, server, count, late);
    proxy_connect(w, p, server);
    for (f = TAILQ_FIRST(&p->flights); f != NULL; f = next) {
        next = TAILQ_NEXT(f, link);
        if (f->server != server) {
            continue;
        }
        block_unref(&f->reply.block);
        f->reply = (struct be_reply){
            .status = BE_LOST,
            .text = flight_is_change(f) ? "backend s: connection lost, outcome unknown"
                                        : "backend s: connection lost",
        };
        proxy_answer(w, p, f);
    }
    proxy_turn(w, p);
}

static void drop_all(struct flights *flights)
{
    struct flight *f;
    while ((f = TAILQ_FIRST(flights)) != NULL) {
        TAILQ_REMOVE(flights, f, link);
        flight_free(f);
    }
}

void proxy_crash(struct world *w, struct proxy *p, const unsigned count[SERVERS_MAX], bool late)
{
    trace(w, "%c crashes", p->name);
    for (unsigned s = 0; s < w->cluster.count; s++) {
        arrive(w, p, s, count[s], late);
    }
    proxy_stop(p);
    drop_all(&p->flights);
}

void world_arrive_late(struct world *w)
{
    struct flight *f;
    while ((f = TAILQ_FIRST(&w->late)) != NULL) {
        proxy_execute(w, NULL, f);
        TAILQ_REMOVE(&w->late, f, link);
        flight_free(f);
    }
}

void world_drop_late(struct world *w)
{
    drop_all(&w->late);
}
