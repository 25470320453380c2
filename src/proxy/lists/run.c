/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/lists/run.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "list/core/op.h"
#include "list/engine.h"
#include "list/moving/moving.h"
#include "pool/pool.h"
#include "proxy/core/gate.h"
#include "proxy/core/shared.h"
#include "proxy/core/worker.h"
#include "proxy/lists/call_part.h"

/* An exchange begins with its operation, and that is what the engine's request ends with. */
const size_t run_room_bytes = sizeof(struct exchange) - sizeof(struct be_operation);
_Static_assert(offsetof(struct exchange, op) == 0 &&
                   offsetof(struct list_request, be) % _Alignof(struct exchange) == 0,
               "the exchange lies where the operation does");

static struct exchange *exchange_of(struct list_request *request)
{
    return (struct exchange *)(void *)&request->be;
}

static struct list_request *request_of(struct exchange *x)
{
    return (struct list_request *)((char *)x - offsetof(struct list_request, be));
}

/* ---- answers ---- */

RARE static void trace_reply(struct worker *w, struct list_request *request,
                             const struct be_reply *reply)
{
    const struct exchange *x = exchange_of(request);
    struct trace_row row = {.worker = w->index,
                            .us = x->since_us == 0 ? 0 : w->now.mono_us - x->since_us,
                            .verb = trace_verb(request->be.verb)};
    trace_add_reply(&w->shared->trace, &row, request->be.key, reply);
}

/* Other proxies may have taken two steps while this one slept (gate.h). */
RARE static const struct be_reply *distrusted(const struct be_reply *reply)
{
    static const struct be_reply lost = {.status = BE_LOST, .text = GATE_DISTRUST_TEXT};
    return reply->status == BE_DOWN ? reply : &lost;
}

static void on_done(struct exchange *x, const struct be_reply *reply)
{
    struct worker *w = x->owner;
    struct list_request *request = request_of(x);
    worker_woke(w);
    w->engine_dirty = true;
    if (trace_is_on(&w->shared->trace)) {
        trace_reply(w, request, reply);
    }
    if (UNLIKELY(!gate_trusts(w, request->pool_index, x->since_us))) {
        reply = distrusted(reply);
    }
    if (UNLIKELY(request->moves != NULL)) {
        moving_reply(request->moves, request, reply);
    } else {
        engine_reply(w->engine, request, reply, w->now);
    }
}

/* ---- requests ---- */

/* What is to take the request: its list has another server by the new pool. Else NULL. old_is_gone:
 * the file says so of its server. */
static struct moving *moving_of(struct worker *w, const struct list_request *request,
                                bool *old_is_gone)
{
    struct pool_place here, there;
    struct slice placement = request_placement(request);
    struct moving *moving = w->moves[request->pool_index];
    if (moving == NULL || placement.len == 0 || placement.p[placement.len - 1] != '#') {
        return NULL;
    }
    const struct pool_config *config = &w->config->pools[request->pool_index];
    bool moves = pool_find(w->pools[request->pool_index], placement, &here) &&
                 pool_find(w->pools[config->next_index], placement, &there) &&
                 strcmp(here.server, there.server) != 0;
    *old_is_gone = moves && strcmp(here.server, config->dead) == 0;
    return moves ? moving : NULL;
}

/* To its pool, by the next pool_flush. */
static void submit_to_pool(struct worker *w, struct list_request *request)
{
    struct exchange *x = exchange_of(request);
    const struct be_operation *op = &request->be;
    CHECK(op->epoch != 0 || !(be_is_conditional(op->verb) || op->with_cas));
    memset(&x->op + 1, 0, run_room_bytes);
    x->needs_cas = true;
    x->told_there = request_told_unknown(request);
    x->done = on_done;
    x->owner = w;
    pool_submit(w->pools[request->pool_index], request_placement(request), x);
}

static void submit(struct worker *w, struct list_request *request)
{
    bool old_is_gone;
    struct moving *moving = w->moves == NULL ? NULL : moving_of(w, request, &old_is_gone);
    if (moving != NULL) {
        moving_submit(moving, request, old_is_gone);
    } else {
        submit_to_pool(w, request);
    }
}

RARE static void submit_moves(struct worker *w)
{
    struct list_request *request;
    for (size_t i = 0; i < w->config->pool_count; i++) {
        if (w->moves[i] == NULL) {
            continue;
        }
        bool moves = w->now.mono_us >= atomic_load(&w->shared->moves_at_us[i]);
        moving_update(w->moves[i], moves ? MOVING_MOVE : MOVING_LEARN, w->now.wall_s);
        while ((request = moving_take_request(w->moves[i])) != NULL) {
            submit_to_pool(w, request);
        }
    }
}

bool run_engine(struct worker *w, uint64_t *next_us)
{
    if (!w->engine_dirty) {
        return false;
    }
    w->engine_dirty = false;
    *next_us = engine_run(w->engine, w->now);
    struct list_request *request;
    while ((request = engine_take_request(w->engine)) != NULL) {
        submit(w, request);
    }
    if (UNLIKELY(w->moves != NULL)) {
        submit_moves(w);
    }
    struct list_call *call;
    while ((call = engine_take_done(w->engine)) != NULL) {
        call_part_done(call);
    }
    return true;
}

/* A moving_done_fn. */
static void on_moved(void *arg, struct list_request *request, const struct be_reply *reply)
{
    static const struct be_reply closing = {.status = BE_DOWN, .text = "the proxy stops"};
    struct worker *w = arg;
    engine_reply(w->engine, request, reply != NULL ? reply : &closing, w->now);
}

void run_create_moves(struct worker *w, struct rng *rng)
{
    for (uint32_t i = 0; i < w->config->pool_count; i++) {
        const struct pool_config *pool = &w->config->pools[i];
        if (pool->next_name[0] == '\0') {
            continue;
        }
        if (w->moves == NULL) {
            w->moves = calloc(w->config->pool_count, sizeof(struct moving *));
            CHECK(w->moves != NULL);
        }
        w->moves[i] = moving_create(i, pool->next_index, run_room_bytes, pool->next_bytes, rng,
                                    &w->metrics, on_moved, w);
        moving_update(w->moves[i], MOVING_LEARN, w->now.wall_s);
    }
}

void run_destroy_moves(struct worker *w)
{
    for (size_t i = 0; w->moves != NULL && i < w->config->pool_count; i++) {
        if (w->moves[i] != NULL) {
            moving_destroy(&w->moves[i]);
        }
    }
    free(w->moves);
    w->moves = NULL;
}

void run_flush_pools(struct worker *w)
{
    for (size_t i = 0; i < w->config->pool_count; i++) {
        pool_flush(w->pools[i]);
    }
}
