/* SPDX-License-Identifier: BSD-3-Clause */
/* The list engine's requests as exchanges of the pools. */
#include <stdlib.h>

#include "base/check.h"
#include "pool/pool.h"

struct backend {
    struct pool **pools;
    size_t pool_count;
    backend_done_fn *done;
    void *arg;
    size_t in_flight;
};

const size_t backend_room_bytes = sizeof(struct exchange);
_Static_assert(sizeof(struct be_request) % _Alignof(struct exchange) == 0,
               "the exchange lies behind its request");

struct backend *backend_create(struct pool **pools, size_t pool_count, backend_done_fn *done,
                               void *arg)
{
    struct backend *backend = calloc(1, sizeof *backend);
    CHECK(backend != NULL);
    backend->pools = pools;
    backend->pool_count = pool_count;
    backend->done = done;
    backend->arg = arg;
    return backend;
}

void backend_destroy(struct backend **slot)
{
    struct backend *backend = *slot;
    *slot = NULL;
    CHECK(backend == NULL || backend->in_flight == 0);
    free(backend);
}

static void on_done(struct exchange *x, const struct be_reply *reply)
{
    struct backend *backend = x->owner;
    struct be_request *req = (struct be_request *)(void *)x - 1;
    backend->in_flight--;
    backend->done(backend->arg, req, reply);
}

void backend_submit(struct backend *backend, struct be_request *req)
{
    struct exchange *x = be_request_room(req);
    bool conditional = be_is_conditional(req->verb) || req->with_cas;
    bool has_value = be_has_value(req->verb);
    CHECK(req->pool_index < backend->pool_count);
    CHECK(!conditional || req->epoch != 0);
    *x = (struct exchange){
        .op = {.verb = req->verb,
               .durable = req->durable,
               .with_cas = req->with_cas,
               .asks_cas = req->with_cas, /* no classic command is one */
               .time_optional = true,
               .flags = req->flags,
               .exptime = req->exptime,
               .key = slice_make(req->key, req->key_len),
               .value = has_value ? req->value : SLICE_NONE,
               .block = has_value ? req->block : NULL,
               .cas = req->cas,
               .delta = req->delta},
        .epoch = conditional ? req->epoch : 0,
        .needs_cas = true,
        .told_there = req->told_unknown,
        .done = on_done,
        .owner = backend,
    };
    backend->in_flight++;
    pool_submit(backend->pools[req->pool_index], be_placement(req), x);
}
