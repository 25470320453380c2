/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a request is meant to do, found out when it leaves its operation: later its calls may be
 * gone.
 */
#include <stdlib.h>

#include "dialect/paired/paired.h"
#include "dialect/shared/work.h"
#include "list/change/cas.h"
#include "list/change/forget.h"
#include "list/change/put.h"
#include "list/change/round.h"
#include "list/compact/compact.h"
#include "list/core/engine_state.h"
#include "list/core/expiry.h"
#include "list/joint/read.h"
#include "world.h"

static void purpose_add(struct purpose *purpose, struct list_call *call)
{
    purpose->calls = realloc(purpose->calls, (purpose->count + 1) * sizeof(struct sim_call *));
    CHECK(purpose->calls != NULL);
    purpose->calls[purpose->count++] = call->owner;
}

/* Pairs are folded in several steps: what lset, ldrop and exact changes do is done by the first
 * write of the additions that succeeds, and lcompact changes nothing. */
static bool pair_carries(const struct sim_world *w, const struct message *m,
                         const struct list_request *request, const struct list_call *call)
{
    const struct work *work = (const struct work *)request->op;
    enum format_part part;
    uint64_t number;
    struct slice key = flight_key(&m->flight);
    (void)format_list(&w->format, key, &part, &number);
    bool blind = work->lane == LANE_ADD || work->lane == LANE_DELETE;
    if (!blind && request->tag == PAIRED_TAG_BEGIN) {
        return false;
    }
    return blind || (call->verb != LIST_COMPACT && part == FORMAT_ADDS &&
                     ((struct sim_call *)call->owner)->applied == 0);
}

/* An lcreate that has found the list is answered so, whatever becomes of the others. */
static void find_work(const struct sim_world *w, struct message *m,
                      const struct list_request *request)
{
    struct purpose *purpose = &m->purpose;
    struct list_call *call;
    bool reads = m->flight.request.be.verb < BE_ADD;
    purpose->kind = reads ? PURPOSE_READ : PURPOSE_WORK;
    if (!reads) {
        TAILQ_FOREACH(call, &((struct work *)request->op)->calls, link)
        {
            bool carries = w->p.dialect != DIALECT_PAIRED || pair_carries(w, m, request, call);
            /* An lpop that no client waits for any more takes nothing. */
            carries = carries && !(call->ghost && call->verb == LIST_POP);
            if (carries && (call->verb != LIST_CREATE || call->status == LIST_OK)) {
                purpose_add(purpose, call);
            }
        }
    }
}

/* The op of the first entry that a write brings: of an append, or behind the header of a new head.
 */
static char first_op(const struct list_request *request)
{
    struct slice value = request->be.value;
    const char *end = request->be.verb == BE_ADD ? memchr(value.p, '\n', value.len) : NULL;
    if (end != NULL) {
        (void)slice_take(&value, (size_t)(end + 1 - value.p));
    }
    return (request->be.verb == BE_APPEND || end != NULL) && value.len > 0 ? value.p[0] : 0;
}

static void find_compaction(struct message *m, struct op *op)
{
    struct purpose *purpose = &m->purpose;
    enum be_verb verb = m->flight.request.be.verb;
    const struct op_compact *c = (const struct op_compact *)op;
    bool drop = c->call != NULL && c->call->verb == LIST_DROP;
    bool append_clear =
        verb == BE_APPEND && slice_equal(m->flight.request.be.value, SLICE_LIT("!0:"));
    purpose->kind = append_clear ? PURPOSE_DROP : PURPOSE_COMPACT;
    purpose->clears = verb == BE_CAS && c->plan.kind == PLAN_CLEAR;
    purpose->may_remove =
        c->goal == COMPACT_DROP || c->goal == COMPACT_CLEAR || c->goal == COMPACT_TIDY;
    if (drop && (append_clear || purpose->clears || verb == BE_CAS_DELETE)) {
        purpose_add(purpose, c->call);
    }
}

/* The call that the operation carries: it is about several lists, and active in none. Without one
 * it only says what counts. */
static void find_tx(struct message *m, const struct op *op)
{
    struct sim_call *call = m->proxy->world->all_calls;
    while (call != NULL && (call->done || call->call.op != op)) {
        call = call->next;
    }
    m->purpose.kind = call != NULL ? PURPOSE_TX : PURPOSE_COMPACT;
    if (call != NULL) {
        purpose_add(&m->purpose, &call->call);
    }
}

static void find_purpose(struct message *m, struct op *op, uint64_t tag)
{
    struct purpose *purpose = &m->purpose;
    struct list *list = op->list;
    struct list_call *call;
    enum be_verb verb = m->flight.request.be.verb;
    char begins_with = first_op(&m->flight.request);
    if (verb < BE_ADD) {
        purpose->kind = PURPOSE_READ;
    } else if (begins_with == ENTRY_INTENT) {
        find_tx(m, op);
    } else if (begins_with == ENTRY_DECISION) {
        purpose->kind = PURPOSE_COMPACT; /* it only says what counts */
    } else if (list->round == op) {
        purpose->kind = PURPOSE_ROUND;
        TAILQ_FOREACH(call, &((struct op_round *)op)->writes, link)
        {
            purpose_add(purpose, call);
        }
    } else if (list->turns == op) {
        purpose->kind = PURPOSE_TURNS;
        TAILQ_FOREACH(call, &((struct op_cas *)op)->calls, link)
        {
            if (call->verb != LIST_HAS) {
                purpose_add(purpose, call);
            }
        }
    } else if (list->exact == op) {
        /* Of those that ask for the lease at the same time the answers tell which has got it. */
        const struct list_call *first = TAILQ_FIRST(&list->active);
        while (first != NULL && first->op != op) {
            first = TAILQ_NEXT(first, active);
        }
        if (first == NULL || first->verb == LIST_LEASE) {
            purpose->kind = PURPOSE_LEASE;
            return;
        }
        purpose->kind = PURPOSE_EXACT;
        TAILQ_FOREACH(call, &list->active, active)
        {
            if (call->op == op) {
                purpose_add(purpose, call);
            }
        }
    } else if (list->renewal == op || op->step == joint_read_step) {
        purpose->kind = PURPOSE_COMPACT; /* nothing changes */
    } else if (list->forget == op) {
        bool takes = tag == FORGET_TAG_WRITE;
        purpose->kind = takes ? PURPOSE_PURGE : PURPOSE_COMPACT;
        TAILQ_FOREACH(call, &list->active, active)
        {
            if (takes && call->op == op) {
                purpose_add(purpose, call);
            }
        }
    } else if (list->put == op) {
        bool publishes = tag == PUT_TAG_PUBLISH;
        purpose->kind = publishes ? PURPOSE_PUT : PURPOSE_COMPACT;
        TAILQ_FOREACH(call, &list->active, active)
        {
            if (publishes && call->fills) {
                purpose_add(purpose, call);
            }
        }
    } else if (list->compaction == op || list->merge == op) {
        find_compaction(m, op);
    } else if (verb == BE_ADD && begins_with == 0) {
        purpose->kind = PURPOSE_COMPACT; /* without an intent: what settles asks a node for proof */
    } else {
        find_tx(m, op); /* a transaction, or what settles them: no content changes by that */
        purpose->settles = verb == BE_CAS;
    }
}

/* A write that waits in the engine, and what it carries: calls that end at their deadlines are in
 * it all the same. */
struct waiting {
    TAILQ_ENTRY(waiting) link;
    const struct list_request *request;
    enum be_verb verb;
    char key[KEY_BYTES_MAX];
    uint8_t key_len;
    bool seen;
    struct purpose purpose;
};

static void find_any(struct sim_world *w, struct message *m, const struct list_request *request)
{
    if (w->p.dialect != DIALECT_NATIVE) {
        find_work(w, m, request);
    } else if (request->op != NULL) {
        find_purpose(m, request->op, request->tag);
    }
}

static struct waiting *waiting_find(struct sim_proxy *p, const struct list_request *request)
{
    struct waiting *x;
    TAILQ_FOREACH(x, &p->waiting, link)
    {
        /* One that has failed meanwhile may have left its memory to another. */
        if (x->request == request && x->verb == request->be.verb &&
            slice_equal(slice_make(x->key, x->key_len), request->be.key)) {
            return x;
        }
    }
    return NULL;
}

static void waiting_free(struct sim_proxy *p, struct waiting *x)
{
    TAILQ_REMOVE(&p->waiting, x, link);
    free(x->purpose.calls);
    free(x);
}

/* Looks at what waits since the last time, before calls of it can end, and forgets what does not
 * wait any more. */
void purposes_note(struct sim_proxy *p)
{
    struct waiting *x, *next;
    for (const struct list_request *r = expiries_next(p->base.engine, NULL); r != NULL;
         r = expiries_next(p->base.engine, r)) {
        x = waiting_find(p, r);
        if (x == NULL) {
            x = calloc(1, sizeof *x);
            CHECK(x != NULL);
            x->request = r;
            x->verb = r->be.verb;
            x->key_len = r->be.key.len;
            memcpy(x->key, r->key, r->be.key.len);
            TAILQ_INSERT_TAIL(&p->waiting, x, link);
            struct message m = {.proxy = p, .flight.request = *r};
            find_any(p->world, &m, r);
            x->purpose = m.purpose;
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

void purpose_find(struct sim_world *w, struct message *m, const struct list_request *r)
{
    struct waiting *x = waiting_find(m->proxy, r);
    if (m->list < 0) {
        m->purpose.kind = PURPOSE_READ;
    } else if (x != NULL) {
        m->purpose = x->purpose;
        x->purpose.calls = NULL;
        waiting_free(m->proxy, x);
    } else {
        find_any(w, m, r);
    }
}

void sim_proxy_forget(struct sim_proxy *p)
{
    while (!TAILQ_EMPTY(&p->waiting)) {
        waiting_free(p, TAILQ_FIRST(&p->waiting));
    }
}
