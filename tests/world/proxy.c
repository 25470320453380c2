/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy.h"

#include <stdlib.h>

#include "dialect/dialects.h"
#include "list/core/op.h"
#include "model.h"
#include "step.h"

/* Room for a few lists: others are looked up anew. */
#define MOVING_BYTES 1500

enum call_end call_end_of(const struct list_call *call)
{
    if (call->status != LIST_SERVER_ERROR && call->status != LIST_CLIENT_ERROR) {
        return CALL_DONE;
    }
    return strstr(call->error, "unknown") != NULL ? CALL_UNKNOWN : CALL_REFUSED;
}

void proxy_connect(struct world *w, struct proxy *p, unsigned server)
{
    p->epochs[server] = ++w->last_epoch;
}

/* Only then are there counts of own changes: to clear them is a fifth of a short case. */
static bool may_be_stale(const struct config *config)
{
    bool may = false;
    for (size_t i = 0; i < config->list_count; i++) {
        may = may || config->lists[i].max_stale_ms > 0;
    }
    return may;
}

void proxy_start(struct world *w, struct proxy *p, const struct config *config,
                 uint64_t cache_bytes, unsigned index_checks, uint64_t seed)
{
    rng_init_seed(&p->rng, seed);
    p->cache = cache_create(cache_bytes);
    p->indexes = run_indexes_create(config->index_bytes, index_checks);
    p->engine = engine_create(config, &p->cache, &dialects, &p->rng, &p->metrics);
    engine_set_run_indexes(p->engine, p->indexes);
    if (may_be_stale(config)) {
        p->own_changes = calloc(1, sizeof *p->own_changes);
        CHECK(p->own_changes != NULL);
        engine_set_own_changes(p->engine, p->own_changes);
    }
    p->wake_us = UINT64_MAX;
    TAILQ_INIT(&p->flights);
    for (unsigned s = 0; s < w->cluster.count; s++) {
        proxy_connect(w, p, s);
    }
}

static void on_moved(void *arg, struct list_request *request, const struct be_reply *reply)
{
    struct proxy *p = arg;
    p->answered(p, request);
    if (reply == NULL) {
        block_unref(&request->be.block);
        free(request);
    } else {
        engine_reply(p->engine, request, reply, proxy_now(p->world, p));
    }
}

void proxy_move_lists(struct world *w, struct proxy *p, enum moving_step step)
{
    p->world = w;
    p->moving = moving_create(0, 1, 0, MOVING_BYTES, &p->rng, &p->metrics, on_moved, p);
    p->moving_step = step;
}

void proxy_stop(struct proxy *p)
{
    struct flight *f;
    engine_destroy(&p->engine);
    cache_destroy(&p->cache);
    run_indexes_destroy(&p->indexes);
    free(p->own_changes);
    p->own_changes = NULL;
    TAILQ_FOREACH(f, &p->flights, link)
    {
        if (!f->original->is_own) {
            if (p->moving != NULL) {
                p->answered(p, f->original);
            }
            block_unref(&f->original->be.block);
            free(f->original);
        }
        f->original = NULL;
    }
    if (p->moving != NULL) {
        moving_destroy(&p->moving);
    }
}

static struct list_request *take_request(struct proxy *p)
{
    struct list_request *r;
    if (p->moving == NULL) {
        return engine_take_request(p->engine);
    }
    while ((r = engine_take_request(p->engine)) != NULL) {
        p->asked(p, r);
        moving_submit(p->moving, r, cluster_is_gone(&p->world->cluster, request_placement(r)));
    }
    moving_update(p->moving, p->moving_step, world_now(p->world).wall_s);
    return moving_take_request(p->moving);
}

struct flight *proxy_send(struct world *w, struct proxy *p, size_t size)
{
    struct list_request *r = take_request(p);
    if (r == NULL) {
        return NULL;
    }
    struct flight *f = calloc(1, size);
    CHECK(f != NULL);
    flight_take(f, r);
    if (r->be.block != NULL) {
        (void)block_ref(r->be.block);
    }
    f->original = r;
    bool by_new = p->moving != NULL && r->pool_index == 1;
    f->server = (unsigned)(cluster_place(&w->cluster, request_placement(r), by_new) - w->stores);
    f->epoch = p->epochs[f->server];
    f->step = r->is_own ? "moving" : step_name(r->op);
    TAILQ_INSERT_TAIL(&p->flights, f, link);
    return f;
}

bool flight_is_stale(const struct flight *f)
{
    return f->request.be.epoch != 0 && f->request.be.epoch != f->epoch;
}

/* Its proxy has slept, or its list was dropped meanwhile. It has to find out, and to delete that.
 */
static void note_late(struct world *w, const struct flight *f)
{
    struct slice key = f->request.be.key;
    const char *end = memchr(key.p, '#', key.len);
    if (f->request.be.verb != BE_ADD || f->reply.status != BE_STORED || end == NULL ||
        end == key.p + key.len - 1) {
        return;
    }
    int64_t now_s = world_now(w).wall_s;
    struct item *item = store_find(&w->stores[f->server], key, now_s);
    struct slice list = slice_make(key.p, (size_t)(end - key.p));
    if (item != NULL) {
        item->is_late = !model_head_announces(&w->cluster, list, now_s, key);
    }
}

void flight_execute(struct world *w, struct flight *f)
{
    store_execute(&w->stores[f->server], &f->request.be, world_now(w).wall_s, &f->reply);
    note_late(w, f);
    f->reply.epoch = f->epoch;
    f->executed = true;
}

void flight_answer(struct world *w, struct proxy *p, struct flight *f)
{
    struct list_request *r = f->original;
    f->original = NULL;
    if (f->reply.expires_s != 0) {
        /* A node tells the second alone: what is left is counted by the proxy. */
        int64_t left_s = f->reply.expires_s - proxy_now(w, p).wall_s;
        f->reply.ttl_s = left_s > 0 ? left_s : 0;
    }
    TAILQ_REMOVE(&p->flights, f, link);
    if (p->moving != NULL) {
        moving_reply(p->moving, r, &f->reply);
    } else {
        engine_reply(p->engine, r, &f->reply, proxy_now(w, p));
    }
}

void flight_free(struct flight *f)
{
    block_unref(&f->request.be.block);
    block_unref(&f->reply.block);
    free(f);
}

void flight_trace(const struct world *w, const char *who, const struct flight *f)
{
    char value[96];
    if (trace_mode == TRACE_OFF) {
        return;
    }
    struct slice shown = f->request.be.value.len > 0 ? f->request.be.value : f->reply.value;
    trace(w, "%s s%u %-10s %-34.*s %s -> %s  %.*s", who, f->server,
          be_verb_name(f->request.be.verb), SLICE_ARGS(flight_key(f)), f->step,
          be_status_name(f->reply.status), 90, slice_escape(shown, value, sizeof value));
}
