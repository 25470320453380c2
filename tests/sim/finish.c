/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The quiet end: clients and faults are over, every list must compact, and what is stored must be
 * what the lists need, and no more.
 */
#include <stdlib.h>

#include "world.h"

struct leftovers {
    struct world *w;
    struct slice found;
};

static void check_named(void *arg, const struct item *item)
{
    struct leftovers *l = arg;
    struct slice key = item_key(item);
    const char *end = memchr(key.p, '#', key.len);
    if (item->value->used == 0 || end == key.p + key.len - 1) {
        return;
    }
    struct slice list = slice_make(key.p, (size_t)(end - key.p));
    if (!model_head_names(&l->w->oracle.cluster, list, world_now(l->w).wall_s, key)) {
        sim_violation("%.*s is left over: no head names it", SLICE_ARGS(key));
    }
}

static struct sim_call *ask(struct world *w, struct proxy *p, enum list_verb verb, unsigned list)
{
    struct sim_call *call = call_create(w, &p->clients[0], verb, list);
    call->call.form = LIST_FORM_JOINED;
    proxy_submit(p, call);
    world_rest(w, "at the end");
    return call;
}

static void let_pass(struct world *w, uint64_t us)
{
    uint64_t until_us = w->now_us + us;
    events_plan(&w->events, until_us, EVENT_PLENTY, w, 0);
    while (w->now_us < until_us && world_step(w)) {
    }
}

/* A connection that broke before may be noticed only now: a few tries are granted, and time to
 * connect anew. */
static struct sim_call *ask_again(struct world *w, struct proxy *p, enum list_verb verb,
                                  unsigned list)
{
    struct sim_call *call = NULL;
    for (int tries = 0; tries < 3; tries++) {
        call = ask(w, p, verb, list);
        if (call->call.status == LIST_OK || call->call.status == LIST_MISSING) {
            break;
        }
        let_pass(w, 1000000);
    }
    return call;
}

static void finish_list(struct world *w, unsigned list)
{
    struct proxy *p = &w->proxies[rng_below(&w->rng, w->p.proxies)];
    struct sim_call *call = ask_again(w, p, LIST_COMPACT, list);
    bool damaged = w->oracle.list[list].damaged;
    if (call->call.status == LIST_SERVER_ERROR && !damaged) {
        sim_violation("lcompact of a quiet list: %s", call->call.error);
    }
    if (!damaged) {
        oracle_final(&w->oracle, list, world_now(w).wall_s, !world_loses(w));
    }
    for (unsigned i = 0; i < w->p.proxies; i++) {
        call = ask_again(w, &w->proxies[i], LIST_GET, list);
        bool too_long = strstr(call->call.error, "max_answer_bytes") != NULL;
        if (call->call.status == LIST_SERVER_ERROR && !damaged && !too_long) {
            sim_violation("lget of a quiet list: %s", call->call.error);
        }
    }
}

void world_finish(struct world *w)
{
    /* Beyond this, announcements belong to dead proxies. */
    let_pass(w, (w->p.grace_s + 2 + 2 * (uint64_t)w->p.clock_skew_s) * 1000000ULL);
    world_rest(w, "after the grace period");
    for (unsigned list = 0; list < w->p.lists; list++) {
        finish_list(w, list);
    }
    if (!world_loses(w)) {
        struct leftovers leftovers = {.w = w};
        for (unsigned s = 0; s < w->p.servers; s++) {
            store_each(&w->stores[s], check_named, &leftovers);
        }
    }
}
