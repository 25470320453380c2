/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What clients ask for.
 */
#include <stdio.h>
#include <stdlib.h>

#include "world.h"

static enum list_verb choose_change(struct world *w)
{
    uint64_t n = rng_below(&w->rng, 100);
    if (rng_below(&w->rng, 100) < w->p.growth) {
        return n < 85 ? LIST_ADD : LIST_ADDX;
    }
    return n < 35   ? LIST_ADD
           : n < 65 ? LIST_DEL
           : n < 77 ? LIST_ADDX
           : n < 89 ? LIST_DELX
           : n < 93 ? LIST_SET
           : n < 97 ? LIST_CREATE
                    : LIST_DROP;
}

static enum list_verb choose_verb(struct world *w)
{
    static const enum list_verb reads[] = {LIST_GET, LIST_GET,   LIST_HAS,   LIST_HAS,
                                           LIST_LEN, LIST_RANGE, LIST_RANGE, LIST_STAT};
    uint64_t n = rng_below(&w->rng, 100);
    if (n < 60) {
        return choose_change(w);
    }
    return n == 60 ? LIST_COMPACT : reads[rng_below(&w->rng, sizeof reads / sizeof reads[0])];
}

struct sim_call *call_create(struct world *w, struct client *client, enum list_verb verb,
                             unsigned list)
{
    struct sim_call *call = calloc(1, sizeof *call);
    CHECK(call != NULL);
    call->number = ++w->calls_made;
    call->list = list;
    call->proxy = client->proxy->number;
    call->session = client->number;
    call->call = (struct list_call){
        .verb = verb,
        .form = rng_below(&w->rng, 4) == 0 ? LIST_FORM_ITEMS : LIST_FORM_JOINED,
        .key = slice_make(call->key, (size_t)snprintf(call->key, sizeof call->key, "L%u", list)),
        .policy = &w->config->lists[0],
        .session = &client->session,
        .items = call->items,
        .owner = call,
    };
    chain_init(&call->call.answer);
    call->next = w->all_calls;
    w->all_calls = call;
    client->pending++;
    return call;
}

static void choose_items(struct world *w, struct sim_call *call)
{
    enum list_verb verb = call->call.verb;
    bool takes = verb == LIST_ADD || verb == LIST_DEL || verb == LIST_SET || verb == LIST_ADDX ||
                 verb == LIST_DELX || verb == LIST_CREATE || verb == LIST_HAS;
    if (!takes) {
        return;
    }
    uint64_t most = verb == LIST_HAS ? CALL_ITEMS_MAX : rng_below(&w->rng, 8) == 0 ? 6 : 2;
    size_t count = rng_below(&w->rng, most) + !(verb == LIST_SET || verb == LIST_CREATE);
    for (size_t i = 0; i < count; i++) {
        call->ids[i] = (uint16_t)rng_below(&w->rng, w->p.items);
        call->items[i] = slice_make(call->names[i], item_name(call->names[i], call->ids[i]));
    }
    call->call.item_count = count;
}

void client_think(struct client *client)
{
    struct proxy *p = client->proxy;
    struct world *w = p->world;
    if (w->quiet || p->engine == NULL) {
        return;
    }
    if (client->pending < w->p.depth && w->calls_made < w->p.ops) {
        struct sim_call *call =
            call_create(w, client, choose_verb(w), (unsigned)rng_below(&w->rng, w->p.lists));
        choose_items(w, call);
        uint64_t reach = 2 * w->p.items + 1;
        call->call.from = (int64_t)rng_below(&w->rng, reach) - (int64_t)w->p.items;
        call->call.to = (int64_t)rng_below(&w->rng, reach) - (int64_t)w->p.items;
        proxy_submit(p, call);
    }
    events_plan(&w->events, w->now_us + 1 + rng_below(&w->rng, w->p.think_us), EVENT_CLIENT, client,
                p->life);
}

void call_done(struct world *w, struct sim_call *call)
{
    char text[320];
    struct proxy *p = &w->proxies[call->proxy];
    for (unsigned i = 0; i < w->p.clients; i++) {
        p->clients[i].pending -= p->clients[i].number == call->session;
    }
    CHECK(!call->done);
    w->calls_pending--;
    w->last_answer_us = w->now_us;
    w->statuses[call->call.status]++;
    call->done = true;
    if (sim_trace) {
        call_describe(call, text, sizeof text);
        trace(w, "%s", text);
    }
    oracle_done(&w->oracle, call);
}
