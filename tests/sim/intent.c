/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a request is meant to do, found out when it leaves its operation: later its calls may be
 * gone.
 */
#include <stdlib.h>

#include "dialect/shared/work.h"
#include "list/change/interleaved.h"
#include "list/change/put.h"
#include "list/change/round.h"
#include "list/compact/compact.h"
#include "list/core/engine_state.h"
#include "list/core/expiry.h"
#include "world.h"

static void intent_add(struct intent *intent, struct list_call *call)
{
    intent->calls = realloc(intent->calls, (intent->count + 1) * sizeof(struct sim_call *));
    CHECK(intent->calls != NULL);
    intent->calls[intent->count++] = call->owner;
}

/* Pairs are folded in several steps: what lset and ldrop do is done by the first write of the
 * additions that succeeds, and lcompact changes nothing. */
static bool pair_carries(const struct sim_world *w, const struct message *m,
                         const struct list_call *call)
{
    enum format_part part;
    uint64_t number;
    struct slice key = flight_key(&m->flight);
    (void)format_list(&w->format, key, &part, &number);
    bool alone = call->verb == LIST_SET || call->verb == LIST_DROP;
    return call->verb == LIST_ADD || call->verb == LIST_DEL ||
           (alone && part == FORMAT_ADDS && ((struct sim_call *)call->owner)->applied == 0);
}

/* An lcreate that has found the list is answered so, whatever becomes of the others. */
static void find_work(const struct sim_world *w, struct message *m, struct op *op)
{
    struct intent *intent = &m->intent;
    struct list_call *call;
    bool reads = m->flight.request.verb < BE_ADD;
    intent->kind = reads ? INTENT_READ : INTENT_WORK;
    if (!reads) {
        TAILQ_FOREACH(call, &((struct work *)op)->calls, link)
        {
            bool carries = w->p.dialect != DIALECT_PAIRED || pair_carries(w, m, call);
            if (carries && (call->verb != LIST_CREATE || call->status == LIST_OK)) {
                intent_add(intent, call);
            }
        }
    }
}

static void find_intent(struct message *m, struct op *op)
{
    struct intent *intent = &m->intent;
    struct list *list = op->list;
    struct list_call *call;
    enum be_verb verb = m->flight.request.verb;
    if (verb < BE_ADD) {
        intent->kind = INTENT_READ;
    } else if (list->round == op) {
        intent->kind = INTENT_ROUND;
        TAILQ_FOREACH(call, &((struct op_round *)op)->writes, link)
        {
            intent_add(intent, call);
        }
    } else if (list->turns == op) {
        intent->kind = INTENT_TURNS;
        TAILQ_FOREACH(call, &((struct op_turns *)op)->calls, link)
        {
            if (call->verb != LIST_HAS) {
                intent_add(intent, call);
            }
        }
    } else if (list->exact == op) {
        /* Of those that ask for the lease at the same time the answers tell which has got it. */
        const struct list_call *first = TAILQ_FIRST(&list->active);
        while (first != NULL && first->op != op) {
            first = TAILQ_NEXT(first, active);
        }
        if (first == NULL || first->verb == LIST_LEASE) {
            intent->kind = INTENT_LEASE;
            return;
        }
        intent->kind = INTENT_EXACT;
        TAILQ_FOREACH(call, &list->active, active)
        {
            if (call->op == op) {
                intent_add(intent, call);
            }
        }
    } else if (list->renewal == op) {
        intent->kind = INTENT_COMPACT; /* nothing changes */
    } else if (list->put == op) {
        bool publishes = m->flight.request.tag == PUT_TAG_PUBLISH;
        intent->kind = publishes ? INTENT_PUT : INTENT_COMPACT;
        TAILQ_FOREACH(call, &list->active, active)
        {
            if (publishes && call->fills) {
                intent_add(intent, call);
            }
        }
    } else if (list->compaction == op || list->merge == op) {
        const struct op_compact *c = (const struct op_compact *)op;
        bool drop = c->call != NULL && c->call->verb == LIST_DROP;
        bool append_clear =
            verb == BE_APPEND && slice_equal(m->flight.request.value, SLICE_LIT("!0:"));
        intent->kind = append_clear ? INTENT_DROP : INTENT_COMPACT;
        intent->clears = verb == BE_CAS && c->plan.kind == PLAN_CLEAR;
        intent->may_remove =
            c->goal == COMPACT_DROP || c->goal == COMPACT_CLEAR || c->goal == COMPACT_TIDY;
        if (drop && (append_clear || intent->clears || verb == BE_CAS_DELETE)) {
            intent_add(intent, c->call);
        }
    }
}

/* A write that waits in the engine, and what it carries: calls that end at their deadlines are in
 * it all the same. */
struct waiting {
    TAILQ_ENTRY(waiting) link;
    const struct be_request *request;
    bool seen;
    struct intent intent;
};

static void find_any(struct sim_world *w, struct message *m, struct op *op)
{
    if (w->p.dialect != DIALECT_NATIVE) {
        find_work(w, m, op);
    } else if (op != NULL) {
        find_intent(m, op);
    }
}

static struct waiting *waiting_find(struct sim_proxy *p, const struct be_request *request)
{
    struct waiting *x;
    TAILQ_FOREACH(x, &p->waiting, link)
    {
        if (x->request == request) {
            return x;
        }
    }
    return NULL;
}

static void waiting_free(struct sim_proxy *p, struct waiting *x)
{
    TAILQ_REMOVE(&p->waiting, x, link);
    free(x->intent.calls);
    free(x);
}

/* Looks at what waits since the last time, before calls of it can end, and forgets what does not
 * wait any more. */
void intents_note(struct sim_proxy *p)
{
    struct waiting *x, *next;
    for (const struct be_request *r = expiries_next(p->base.engine, NULL); r != NULL;
         r = expiries_next(p->base.engine, r)) {
        x = waiting_find(p, r);
        if (x == NULL) {
            x = calloc(1, sizeof *x);
            CHECK(x != NULL);
            x->request = r;
            TAILQ_INSERT_TAIL(&p->waiting, x, link);
            struct message m = {.proxy = p, .flight.request = *r};
            find_any(p->world, &m, r->op);
            x->intent = m.intent;
        }
        x->seen = true;
    }
    for (x = TAILQ_FIRST(&p->waiting); x != NULL; x = next) {
        next = TAILQ_NEXT(x, link);
        if (!x->seen) {
            waiting_free(p, x);
        } else {
            x->seen = false;
        }
    }
}

void intent_find(struct sim_world *w, struct message *m, const struct be_request *r)
{
    struct waiting *x = waiting_find(m->proxy, r);
    if (m->list < 0) {
        m->intent.kind = INTENT_READ;
    } else if (x != NULL) {
        m->intent = x->intent;
        x->intent.calls = NULL;
        waiting_free(m->proxy, x);
    } else {
        find_any(w, m, r->op);
    }
}

void sim_proxy_forget(struct sim_proxy *p)
{
    while (!TAILQ_EMPTY(&p->waiting)) {
        waiting_free(p, TAILQ_FIRST(&p->waiting));
    }
}
