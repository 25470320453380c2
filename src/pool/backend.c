/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's vocabulary over a pool: requests become exchanges, answers become replies. */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "pool/context.h"
#include "pool/pool.h"
#include "pool/server.h"
#include "proto/server/backend_format.h"
#include "proto/server/backend_parse.h"

#define TEXT_MAX 512
/* Calls kept for reuse; more than so many are rarely on their way at once. */
#define SPARE_MAX 1024

/* A request on its way. */
struct call {
    struct exchange exchange;
    struct backend *backend;
    struct be_request *req;
    SLIST_ENTRY(call) free_link;
};

struct backend {
    struct pool **pools;
    size_t pool_count;
    backend_done_fn *done;
    void *arg;
    size_t in_flight;
    SLIST_HEAD(, call) spare;
    size_t spare_count;
};

struct backend *backend_create(struct pool **pools, size_t pool_count, backend_done_fn *done,
                               void *arg)
{
    struct backend *backend = calloc(1, sizeof *backend);
    CHECK(backend != NULL);
    backend->pools = pools;
    backend->pool_count = pool_count;
    backend->done = done;
    backend->arg = arg;
    SLIST_INIT(&backend->spare);
    return backend;
}

void backend_destroy(struct backend **slot)
{
    struct backend *backend = *slot;
    struct call *call;
    *slot = NULL;
    if (backend == NULL) {
        return;
    }
    CHECK(backend->in_flight == 0);
    while ((call = SLIST_FIRST(&backend->spare)) != NULL) {
        SLIST_REMOVE_HEAD(&backend->spare, free_link);
        free(call);
    }
    free(backend);
}

static struct call *take_call(struct backend *backend)
{
    struct call *call = SLIST_FIRST(&backend->spare);
    if (call != NULL) {
        SLIST_REMOVE_HEAD(&backend->spare, free_link);
        backend->spare_count--;
    } else {
        call = malloc(sizeof *call);
        CHECK(call != NULL);
        call->backend = backend;
    }
    backend->in_flight++;
    return call;
}

static void give_call(struct call *call)
{
    struct backend *backend = call->backend;
    backend->in_flight--;
    if (backend->spare_count >= SPARE_MAX) {
        free(call);
        return;
    }
    backend->spare_count++;
    SLIST_INSERT_HEAD(&backend->spare, call, free_link);
}

/* text: room for what reply->text may point to. */
static void read_answer(const struct call *call, const struct exchange_reply *answer,
                        struct be_reply *reply, char text[TEXT_MAX])
{
    const struct backend_parsed parsed = {
        .line = answer->line, .has_value = answer->has_value, .value = answer->value};
    const struct exchange *x = &call->exchange;
    reply->epoch = answer->epoch;
    reply->block = answer->block;
    if (backend_reply_read(call->req->verb, &parsed, reply) < 0) {
        /* Requests and answers are out of step: nothing on this connection can be believed any
         * more. */
        *answer->distrust = true;
        *reply = (struct be_reply){.status = BE_LOST, .caps = answer->caps, .text = text};
        if (x->changes) {
            metric_inc(x->server->context->metrics, METRIC_outcomes_unknown);
        }
        snprintf(text, TEXT_MAX, "backend %s: unexpected answer, outcome unknown",
                 answer->caps->server_name);
    } else if (reply->status == BE_REFUSED) {
        char line[160];
        /* A server that is a proxy itself may have done it and lost the answer. A client error
         * means that our request was misread: its data may have been taken for commands. `incr` has
         * no data, and is refused so where there is no number. */
        bool unknown = x->changes && slice_starts_with(answer->line, SLICE_LIT("SERVER_ERROR"));
        *answer->distrust = !unknown && x->changes && call->req->verb != BE_INCR;
        snprintf(text, TEXT_MAX, "backend %s: %s%s", answer->caps->server_name,
                 backend_line_text(answer->line, line, sizeof line),
                 unknown ? ", outcome unknown" : "");
        reply->text = text;
        if (unknown) {
            reply->status = BE_LOST;
            metric_inc(x->server->context->metrics, METRIC_outcomes_unknown);
        }
    }
}

static void on_done(struct exchange *x, const struct exchange_reply *answer)
{
    struct call *call = x->owner;
    struct backend *backend = call->backend;
    struct be_request *req = call->req;
    struct be_reply reply = {.caps = answer->caps, .text = answer->text};
    char text[TEXT_MAX];
    switch (answer->status) {
    case EXCHANGE_ANSWERED:
        read_answer(call, answer, &reply, text);
        break;
    case EXCHANGE_NOT_SENT:
        /* Another connection's CAS number counts as changed (storage rule 5). */
        reply.status = answer->stale ? BE_EXISTS : BE_DOWN;
        break;
    case EXCHANGE_LOST:
        reply.status = BE_LOST;
        break;
    }
    give_call(call);
    backend->done(backend->arg, req, &reply);
}

void backend_submit(struct backend *backend, struct be_request *req)
{
    char line[BACKEND_LINE_MAX];
    struct call *call = take_call(backend);
    bool conditional = req->verb == BE_CAS || req->verb == BE_CAS_DELETE;
    CHECK(req->pool_index < backend->pool_count);
    CHECK(!conditional || req->epoch != 0);
    call->req = req;
    call->exchange = (struct exchange){
        .line = slice_make(line, backend_format(req, line)),
        .epoch = conditional ? req->epoch : 0,
        .needs_cas = true,
        .done = on_done,
        .owner = call,
    };
    if (backend_has_body(req->verb)) {
        call->exchange.body = req->value;
        call->exchange.body_block = req->block;
        call->exchange.body_bare = true;
    }
    pool_submit(backend->pools[req->pool_index], be_placement(req), &call->exchange);
}
