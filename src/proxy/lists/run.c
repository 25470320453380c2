/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/lists/run.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "list/engine.h"
#include "list/moving/moving.h"
#include "pool/pool.h"
#include "proxy/core/gate.h"
#include "proxy/core/shared.h"
#include "proxy/core/worker.h"
#include "proxy/lists/call_part.h"

/* What is to take the request: its list has another server by the new pool. Else NULL. old_is_gone:
 * the file says so of its server. */
static struct moving *moving_of(struct worker *w, const struct be_request *request,
                                bool *old_is_gone)
{
    struct pool_place here, there;
    struct slice placement = be_placement(request);
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

static void submit(struct worker *w, struct backend *backend, struct be_request *request)
{
    bool old_is_gone;
    struct moving *moving = w->moves == NULL ? NULL : moving_of(w, request, &old_is_gone);
    if (moving != NULL) {
        moving_submit(moving, request, old_is_gone);
    } else {
        backend_submit(backend, request);
    }
}

RARE static void submit_moves(struct worker *w, struct backend *backend)
{
    struct be_request *request;
    for (size_t i = 0; i < w->config->pool_count; i++) {
        if (w->moves[i] == NULL) {
            continue;
        }
        bool moves = w->now.mono_us >= atomic_load(&w->shared->moves_at_us[i]);
        moving_update(w->moves[i], moves ? MOVING_MOVE : MOVING_LEARN, w->now.wall_s);
        while ((request = moving_take_request(w->moves[i])) != NULL) {
            backend_submit(backend, request);
        }
    }
}

bool run_engine(struct worker *w, struct backend *backend, uint64_t *next_us)
{
    if (!w->engine_dirty) {
        return false;
    }
    w->engine_dirty = false;
    *next_us = engine_run(w->engine, w->now);
    struct be_request *request;
    while ((request = engine_take_request(w->engine)) != NULL) {
        submit(w, backend, request);
    }
    if (UNLIKELY(w->moves != NULL)) {
        submit_moves(w, backend);
    }
    struct list_call *call;
    while ((call = engine_take_done(w->engine)) != NULL) {
        call_part_done(call);
    }
    return true;
}

RARE static void trace_reply(struct worker *w, struct be_request *request,
                             const struct be_reply *reply)
{
    const struct exchange *x = be_request_room(request);
    struct trace_row row = {.worker = w->index,
                            .us = x->since_us == 0 ? 0 : w->now.mono_us - x->since_us,
                            .verb = trace_verb(request->verb)};
    trace_add_reply(&w->shared->trace, &row, slice_make(request->key, request->key_len), reply);
}

/* Other proxies may have taken two steps while this one slept (gate.h). */
RARE static const struct be_reply *distrusted(const struct be_reply *reply)
{
    static const struct be_reply lost = {.status = BE_LOST, .text = GATE_DISTRUST_TEXT};
    return reply->status == BE_DOWN ? reply : &lost;
}

void run_backend_done(void *arg, struct be_request *request, const struct be_reply *reply)
{
    struct worker *w = arg;
    const struct exchange *x = be_request_room(request);
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

/* A moving_done_fn. */
static void on_moved(void *arg, struct be_request *request, const struct be_reply *reply)
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
        w->moves[i] = moving_create(i, pool->next_index, backend_room_bytes, pool->next_bytes, rng,
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
