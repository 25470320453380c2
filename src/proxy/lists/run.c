/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/lists/run.h"

#include "list/engine.h"
#include "pool/pool.h"
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

void run_backend_done(void *arg, struct be_request *request, const struct be_reply *reply)
{
    struct worker *w = arg;
    worker_woke(w);
    w->engine_dirty = true;
    engine_reply(w->engine, request, reply, w->now);
}

void run_flush_pools(struct worker *w)
{
    for (size_t i = 0; i < w->config->pool_count; i++) {
        pool_flush(w->pools[i]);
    }
}
