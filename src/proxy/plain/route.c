/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/plain/route.h"

#include <stdlib.h>

#include "list/core/expiry.h"
#include "proxy/plain/meta.h"
#include "proxy/plain/next.h"
#include "proxy/plain/protect.h"
#include "proxy/plain/shadow.h"

void route_init(struct worker *w)
{
    const struct config *config = w->config;
    bool is_one =
        !config->has_routes && route_takes_lines(w, &config->routes[0]) && !config->routes[0].moves;
    w->plain_pool = is_one ? w->pools[config->pool_index] : NULL;
    w->routes = calloc(config->route_count, sizeof *w->routes);
    CHECK(w->routes != NULL);
}

void route_fini(struct worker *w)
{
    free(w->routes);
}

struct slice route_key(const struct request *r, char decoded[KEY_BYTES_MAX])
{
    size_t len = r->base64 ? key_decode_base64(r->key, decoded) : 0;
    return len > 0 ? slice_make(decoded, len) : r->key;
}

/* Not inlined: a buffer in the caller would cost requests without a route a check of the stack. */
RARE const struct route_config *route_of_request(const struct worker *w, const struct request *r)
{
    char decoded[KEY_BYTES_MAX];
    return config_route(w->config, route_key(r, decoded));
}

void route_count(struct worker *w, size_t index, enum route_count which)
{
    route_counts_inc(&w->routes[index].counts, which);
    if (which != ROUTE_requests) {
        metric_inc(&w->metrics, METRIC_failover_reads + (unsigned)(which - ROUTE_failover_reads));
    }
}

void route_note(struct forward_part *f, const struct route_config *route, struct slice key)
{
    struct worker *w = worker_of(f->part.pending);
    route_count(w, route->index, ROUTE_requests);
    if (shadow_takes(route, key)) {
        shadow_send(w, route, key, &f->part.pending->request, &f->exchange);
    }
}

static struct slice key_of(const struct forward_part *f, char decoded[KEY_BYTES_MAX])
{
    const struct request *r = &f->part.pending->request;
    return r->base64 ? route_key(r, decoded) : f->part.key;
}

RARE void route_find(struct forward_part *f)
{
    char decoded[KEY_BYTES_MAX];
    struct worker *w = worker_of(f->part.pending);
    struct slice key = key_of(f, decoded);
    if (w->plain_pool != NULL) {
        pool_submit(w->plain_pool, key, &f->exchange);
        return;
    }
    const struct route_config *route = config_route(w->config, key);
    if (next_has(w, route, key)) {
        next_submit(f, route, key);
        route_count(w, route->index, ROUTE_requests);
        return;
    }
    pool_submit(w->pools[route->pool_index], key, &f->exchange);
    route_note(f, route, key);
}

void route_submit_again(struct forward_part *f)
{
    char decoded[KEY_BYTES_MAX];
    struct worker *w = worker_of(f->part.pending);
    struct slice key = key_of(f, decoded);
    const struct route_config *route = config_route(w->config, key);
    f->failed_over = false;
    if (next_has(w, route, key)) {
        next_submit(f, route, key);
    } else {
        pool_submit(w->pools[route->pool_index], key, &f->exchange);
    }
}

const struct route_config *route_of_part(const struct forward_part *f)
{
    char decoded[KEY_BYTES_MAX];
    return config_route(worker_of(f->part.pending)->config, key_of(f, decoded));
}

/* --- failover ------------------------------------------------------------------------------- */

/* A new value, whatever was there before. */
static bool is_set(const struct request *r)
{
    uint64_t others = letter_bit('C') | letter_bit('E') | letter_bit('I');
    return r->verb->verb == VERB_SET ||
           (r->verb->verb == VERB_MS && (r->meta_flags & others) == 0 &&
            (meta_mode(r) == 0 || meta_mode(r) == 'S'));
}

static bool is_delete(const struct pending *p)
{
    const struct request *r = &p->request;
    uint64_t others =
        letter_bit('C') | letter_bit('E') | letter_bit('I') | letter_bit('T') | letter_bit('x');
    return (r->verb->verb == VERB_DELETE && !(client_is_binary(p->client) && r->cas != 0)) ||
           (r->verb->verb == VERB_MD && (r->meta_flags & others) == 0);
}

/* May it ask the failover pool, and as what? ROUTE_requests: it may not. */
static enum route_count failover_of(const struct forward_part *f, const struct route_config *route,
                                    const struct be_reply *reply)
{
    const struct request *r = &f->part.pending->request;
    if (!request_changes(r) && r->verb->verb != VERB_ME) {
        return route_is_silent(worker_of(f->part.pending), route, reply->status)
                   ? ROUTE_failover_reads
                   : ROUTE_requests;
    }
    if (reply->status != BE_DOWN || !reply->server_down) {
        return ROUTE_requests;
    }
    return is_set(r) && route->failover_ttl_s > 0 ? ROUTE_failover_sets
           : is_delete(f->part.pending)           ? ROUTE_failover_deletes
                                                  : ROUTE_requests;
}

/* Whatever became of it there, the item is still on the first server. */
static void on_deleted(struct exchange *exchange, const struct be_reply *reply)
{
    struct forward_part *f = exchange->owner;
    struct be_reply kept = {.status = BE_DOWN,
                            .text = "not deleted, since the server is down: deleted in the "
                                    "failover pool alone"};
    forward_part_reply(f, exchange, reply->status >= BE_NO_MEMORY ? reply : &kept);
}

void route_submit_elsewhere(struct forward_part *f, const struct route_config *route,
                            enum route_count which)
{
    char decoded[KEY_BYTES_MAX];
    struct worker *w = worker_of(f->part.pending);
    f->failed_over = true;
    route_count(w, route->index, which);
    if (which == ROUTE_failover_deletes) {
        f->exchange.done = on_deleted;
    }
    pool_submit(w->pools[route->failover_index], key_of(f, decoded), &f->exchange);
}

bool route_fails_over(struct forward_part *f, const struct be_reply *reply)
{
    const struct pending *p = f->part.pending;
    if (worker_of(p)->plain_pool != NULL || f->failed_over || p->handler->redirect == NULL ||
        client_is_closed(p->client)) {
        return false;
    }
    const struct route_config *route = route_of_part(f);
    enum route_count which =
        route->failover_index == ROUTE_NONE ? ROUTE_requests : failover_of(f, route, reply);
    if (which == ROUTE_requests) {
        return false;
    }
    p->handler->redirect(&f->part);
    route_submit_elsewhere(f, route, which);
    return true;
}

int64_t route_failover_exptime(const struct forward_part *f, int64_t exptime)
{
    const struct worker *w = worker_of(f->part.pending);
    int64_t ttl_s = route_of_part(f)->failover_ttl_s;
    int64_t left_s = exptime > EXPTIME_RELATIVE_MAX_S ? exptime - w->now.wall_s : exptime;
    return exptime == 0 || left_s > ttl_s ? ttl_s : exptime;
}
