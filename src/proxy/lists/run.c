/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/lists/run.h"

#include "list/engine.h"
#include "pool/pool.h"
#include "proxy/core/shared.h"
#include "proxy/core/worker.h"
#include "proxy/lists/call_part.h"

bool run_engine(struct worker *w, struct backend *backend, uint64_t *next_us)
{
    if (!w->engine_dirty) {
        return false;
    }
    w->engine_dirty = false;
    *next_us = engine_run(w->engine, w->now);
    struct be_request *request;
    while ((request = engine_take_request(w->engine)) != NULL) {
        backend_submit(backend, request);
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

void run_backend_done(void *arg, struct be_request *request, const struct be_reply *reply)
{
    struct worker *w = arg;
    worker_woke(w);
    w->engine_dirty = true;
    if (trace_is_on(&w->shared->trace)) {
        trace_reply(w, request, reply);
    }
    engine_reply(w->engine, request, reply, w->now);
}

void run_flush_pools(struct worker *w)
{
    for (size_t i = 0; i < w->config->pool_count; i++) {
        pool_flush(w->pools[i]);
    }
}
